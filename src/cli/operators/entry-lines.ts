/** How entries of the audit log are shown: a sentence each, whose words are those of the console. */
import { fromNow } from '../../base/duration.ts';
import type { JsonObject, JsonValue } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { parseRequestTimestamp } from '../../base/timestamp.ts';
import { areOneRequest, sentenceOf } from '../../protocol/audit-sentence.ts';
import type { NamedEntry } from '../../protocol/entry-names.ts';
import { option } from '../kernel/command.ts';
import { shortForms } from '../kernel/ids.ts';
import {
  type Line,
  painted,
  printable,
  printableJson,
  type Style,
  wrapped,
} from '../kernel/output.ts';
import type { TableOptions } from '../kernel/table.ts';

export const DETAILS = option('--details', 'also show the details of each entry');

export interface EntryOptions extends TableOptions {
  readonly details?: boolean;
}

/** An entry with what stands before it, such as its index. */
export interface Shown extends NamedEntry {
  readonly before?: string;
}

/** Whether each entry is a line by itself with everything in full, as in a pipe. */
function isPlain({ wide = false }: EntryOptions): boolean {
  return wide || !process.stdout.isTTY;
}

/** Groups of entries that are shown as one: on a terminal, the invites of one request. */
export async function* groupsOf(
  entries: AsyncIterable<Shown>,
  options: EntryOptions & { readonly follow?: boolean },
): AsyncGenerator<readonly Shown[], void> {
  const isSingle = isPlain(options) || options.details === true || options.follow === true;
  let group: Shown[] = [];
  for await (const shown of entries) {
    const [first] = group;
    if (first !== undefined && (isSingle || !areOneRequest(first.entry, shown.entry))) {
      yield group;
      group = [];
    }
    group.push(shown);
    if (isSingle) {
      yield group;
      group = [];
    }
  }
  if (group.length > 0) yield group;
}

/**
 * One line in a pipe, with full ids and timestamps. On a terminal, ids are short, times relative, and what is longer
 * than a line goes on below the sentence.
 */
export function entryLines([first, ...others]: readonly Shown[], options: EntryOptions): Line[] {
  if (first === undefined) return [];
  const { entry, names, before = '' } = first;
  const { created_at, event_type, details } = entry;
  const nameOf = (id: string) => names.get(id);
  const rest = others.map((other) => other.entry);
  if (isPlain(options)) {
    const sentence = sentenceOf(entry, { nameOf, short: (id) => id }, rest);
    const more = options.details ? `  ${printableJson(details)}` : '';
    return [`${before}${created_at}  ${event_type}  ${sentence}${more}`];
  }
  const time = fromNow((parseRequestTimestamp(created_at) ?? 0) - systemRuntime.now());
  const start = printable(`${before}${time.padEnd(TIME_WIDTH)}  `);
  const sentence = printable(sentenceOf(entry, { nameOf, short: shortId }, rest));
  const style = styleOf(event_type);
  const paint = (text: string) => (style === null ? text : painted(style, text, process.stdout));
  const lines = belowEachOther(sentence, start.length).map((line, index) => ({
    styled: (index === 0 ? start : ' '.repeat(start.length)) + paint(line),
  }));
  if (!options.details) return lines;
  const about = printable(`${event_type}  ${membersOf(details)}`);
  const below = belowEachOther(about, start.length);
  return [...lines, ...below.map((line) => ' '.repeat(start.length) + line)];
}

/** Wide enough for most values, so that most lines are aligned. */
const TIME_WIDTH = '119m ago'.length;

/** Lines that fit to the right of an indent. */
function belowEachOther(text: string, indent: number): string[] {
  const { isTTY, columns } = process.stdout;
  return wrapped(text, { isTTY, columns: columns - indent }, 0);
}

function shortId(id: string): string {
  return shortForms([id]).get(id) ?? id;
}

function styleOf(eventType: string): Style | null {
  if (/_(?:failed|denied|rejected|compromised)$/.test(eventType)) return 'red';
  return /_(?:revoked|withdrawn)$/.test(eventType) ? 'yellow' : null;
}

function membersOf(details: JsonObject): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}=${memberText(value)}`)
    .join('  ');
}

function memberText(value: JsonValue): string {
  return typeof value === 'string' && !/\s/.test(value) ? value : canonicalJson(value);
}
