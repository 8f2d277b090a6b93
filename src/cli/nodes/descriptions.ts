/** Names, labels and host names of nodes in options and lists. */
import { InvalidArgumentError, Option } from 'commander';
import { certificatePages } from '../../client/nodes.ts';
import type { OperatorClient } from '../../client/operator-client.ts';
import type { CertificateRow } from '../../protocol/rows/certificate.ts';
import {
  isLabel,
  isNodeName,
  labelsOf,
  labelTexts,
  type NodeLabels,
} from '../../protocol/rows/node-description.ts';
import { collectAll, collectAs, repeatable } from '../kernel/options.ts';
import { type Line, printNotice } from '../kernel/output.ts';
import { type Column, column } from '../kernel/table.ts';

/** The members that are set. */
type Description = Pick<CertificateRow, 'name' | 'labels' | 'hostname'>;

export function nameFilter(): Option {
  return new Option(
    '--name <pattern>',
    'only nodes with this name, or any of these; * stands for any text (repeatable)',
  ).argParser(collectAs(nodeName));
}

export function labelFilter(): Option {
  return new Option(
    '--label <label>',
    'only nodes with this label, and all others given: a key, or key=value (repeatable)',
  ).argParser(collectAll(labels));
}

/** Says which names other nodes have already: a name is to find one node. */
export async function noticeTaken(
  client: OperatorClient,
  pattern: string,
  isOther: (row: CertificateRow) => boolean,
): Promise<void> {
  const pages = certificatePages(client, { name: pattern, status: 'in_use' });
  const taken = new Set<string>();
  try {
    for await (const rows of pages) {
      for (const row of rows.filter(isOther)) taken.add(row.name ?? '');
      if (taken.size >= MOST_NAMED) break;
    }
  } catch {
    // What the command was to do is done, so it must not fail now.
  }
  if (taken.size === 0) return;
  const list = [...taken].slice(0, MOST_NAMED).join(', ');
  const verb = taken.size === 1 ? 'This name belongs' : 'These names belong';
  printNotice(`${verb} to other nodes, too: ${list}; commands then need a key or certificate id`);
}

const MOST_NAMED = 10;

export function nodeName(text: string): string {
  if (isNodeName(text)) return text;
  throw new InvalidArgumentError(
    'It must be 1 to 64 printable characters without a blank at either end.',
  );
}

/** Sets labels; repeatable. */
export function labelOption(description: string): Option {
  return new Option('--label <key=value>', description).argParser(
    repeatable((text: string, earlier: NodeLabels = {}) => {
      const mark = text.indexOf('=');
      if (mark < 0 || !isLabel(text)) throw new InvalidArgumentError(LABEL);
      const key = text.slice(0, mark);
      if (Object.hasOwn(earlier, key)) {
        throw new InvalidArgumentError(`The label ${key} is given twice.`);
      }
      return { ...earlier, [key]: text.slice(mark + 1) };
    }),
  );
}

function labels(text: string): readonly string[] {
  const all = labelsOf(text);
  if (all.every(isLabel)) return all;
  throw new InvalidArgumentError(LABEL);
}

const LABEL =
  'A label is key=value: 1 to 63 of a-z 0-9 . _ / - and at most 63 printable characters.';

/** The name, or the reported host name in parentheses: a node must not look as if operators had named it. */
export function descriptionColumns<Row>(of: (row: Row) => Description): Column<Row>[] {
  return [
    column('NAME', (row) => shownName(of(row)), 7),
    column('LABELS', (row) => labelTexts(of(row).labels ?? {}).join(','), 1),
  ];
}

function shownName({ name, hostname }: Description): string | undefined {
  return name ?? (hostname === undefined ? undefined : `(${hostname})`);
}

/** The members that are set, without those of the rest of the row. */
export function descriptionIn({ name, labels, hostname }: Description): Description {
  return {
    ...(name !== undefined && { name }),
    ...(labels !== undefined && { labels }),
    ...(hostname !== undefined && { hostname }),
  };
}

export function descriptionLines({ name, labels, hostname }: Description): Line[] {
  return [
    ...(name === undefined ? [] : [`name          ${name}`]),
    ...(labels === undefined ? [] : [`labels        ${labelTexts(labels).join(', ')}`]),
    ...(hostname === undefined ? [] : [`host name     ${hostname} (as reported)`]),
  ];
}
