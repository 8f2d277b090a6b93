/**
 * `mesh-na audit`: reads the audit log of a data folder or database, even while an authority is running on it; `show` also
 * that of the authority of a profile.
 */

import { Readable } from 'node:stream';
import type { Command } from 'commander';
import { verifyAuditChain } from '../../authority/audit/audit.ts';
import { counted } from '../../base/counts.ts';
import { messageOf } from '../../base/error-message.ts';
import { jsonText } from '../../base/json/write.ts';
import { type AuditSaid, createEntryNames } from '../../protocol/audit-sentence.ts';
import type { StoreAddress } from '../../store/postgresql/address.ts';
import { type AuditEntry, GENESIS_HASH } from '../../store/store.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import type { RecordOptions } from '../kernel/deliver.ts';
import { EXIT, failure, onLocalFiles } from '../kernel/errors.ts';
import { saveStream } from '../kernel/files.ts';
import { wholeNumber } from '../kernel/options.ts';
import {
  asJson,
  type OutputOptions,
  printableJson,
  printLines,
  printNote,
  printResult,
  printText,
} from '../kernel/output.ts';
import { counting } from '../kernel/terminal.ts';
import { databaseOf, onState, PLACE, type StatePlace, storeOption } from '../state/place.ts';
import {
  EVENT_FILTERS,
  entriesOf,
  entryLines,
  eventTest,
  groupsOf,
  keyNamed,
  type Shown,
} from './events.ts';

type AuditOptions = OutputOptions & StatePlace;

type ExportOptions = AuditOptions & RecordOptions;

const SHOW = [
  storeOption('database with the state, as for serve'),
  ...EVENT_FILTERS,
  option(
    '--last <n>',
    'only the newest entries, up to this number (default: a screenful on a terminal without --since, else all)',
    { parse: wholeNumber() },
  ),
] as const;

type ShowOptions = OptionsIn<typeof SHOW> & OperatorOptions;

/** With a profile, the authority is asked; what is on this machine can be read without one. */
const READER = {
  ...OPERATOR,
  async before(command: Command): Promise<void> {
    if (command.opts().store === undefined) await OPERATOR.before(command);
  },
};

export function addAuditCommands(audit: Command): void {
  define(audit, 'show', {
    about:
      'show who did what: the entries of the log, oldest first; of a data folder or database, or of an authority (standard)',
    asks: READER,
    options: SHOW,
    examples: [
      'mesh-na audit show --actor ops-privileged --since 2026-11-01',
      'mesh-na audit show --type certificate_revoked --type operator_key_revoked --json',
      'mesh-na audit show --subject web-1 --profile alpha',
    ],
    run: runShow,
  });
  define(audit, 'verify', {
    about: 'check that no entry was altered or removed; also checks the files of a data folder',
    options: PLACE,
    examples: [
      'mesh-na audit verify --data-dir ./mesh-data',
      'mesh-na audit verify --store postgresql://mesh@db/mesh',
    ],
    run: runVerify,
  });
  define(audit, 'export', {
    about: 'print one JSON object per entry and line; with --json, a single object',
    options: PLACE,
    out: 'the entries, one per line,',
    examples: ['mesh-na audit export --out audit.ndjson'],
    run: exportEntries,
  });
}

async function runVerify(options: AuditOptions): Promise<void> {
  const { pagesChecked, entries } = await openLog(options);
  const verdict = await verifyAuditChain(entries, GENESIS_HASH);
  if (!verdict.valid) {
    const { position, reason } = verdict;
    throw failure(
      EXIT.refused,
      reason,
      `The audit log is not intact: entry ${position}, ${reason}`,
    );
  }
  const { length, head } = verdict;
  const pages = pagesChecked === null ? {} : { pages_checked: pagesChecked };
  printResult(options, { valid: true, length, head, ...pages }, [
    `The audit log is intact: ${counted(length, 'entry', 'entries')}, head ${head}`,
    ...(pagesChecked === false ? [NOT_CHECKED] : []),
  ]);
}

const NOT_CHECKED =
  'The data files changed too often to be checked; the authority checks them when it starts';

async function exportEntries(options: ExportOptions): Promise<void> {
  const { json = false, out = '-' } = options;
  if (out !== '-') {
    const length = await saveEntries(out, options);
    printResult(options, { length, file: out }, [
      `Saved ${counted(length, 'entry', 'entries')} to ${out}.`,
    ]);
    return;
  }
  const { entries } = await openLog(options);
  const all: AuditEntry[] = [];
  let length = 0;
  for await (const entry of entries) {
    length += 1;
    if (json) all.push(entry);
    else printLines([printableJson(asJson(entry))]);
  }
  if (json) printResult({ json }, { entries: all.map(asJson) }, []);
  else if (length === 0) noteEmptyLog();
}

/** Streams the entries, because a long log does not fit in memory. */
async function saveEntries(out: string, options: ExportOptions): Promise<number> {
  const { force = false } = options;
  const { entries } = await openLog(options);
  let length = 0;
  async function* lines() {
    for await (const entry of entries) {
      length += 1;
      yield `${jsonText(asJson(entry))}\n`;
    }
  }
  await saveStream(out, lines(), { isSecret: true, overwrites: force });
  return length;
}

async function runShow(options: ShowOptions): Promise<void> {
  const { json = false } = options;
  const last = options.last ?? screenful(options);
  const kept: Shown[] = [];
  let read = 0;
  let matching = 0;
  const isWanted = eventTest(options, await keysOfNode(options));
  const named = createEntryNames();
  async function* wanted() {
    for await (const entry of await shownLog(options)) {
      read += 1;
      const shown = named(entry);
      if (!isWanted(entry)) continue;
      matching += 1;
      yield shown;
    }
  }
  if (json || last !== null) {
    for await (const shown of wanted()) {
      kept.push(shown);
      if (last !== null && kept.length >= 2 * last) kept.splice(0, kept.length - last);
    }
    if (last !== null) kept.splice(0, kept.length - last);
  }
  if (json) {
    return printResult({ json }, { entries: kept.map(({ entry }) => asJson(entry)) }, []);
  }
  const groups = groupsOf(last === null ? wanted() : Readable.from(kept), options);
  for await (const group of groups) printText(entryLines(group, options));
  if (read === 0) noteEmptyLog();
  else if (matching === 0) printNote(`None of the ${read} log entries match.`);
  else if (last !== null && options.last === undefined && matching > last) {
    printNote(`Showing the last ${last} of ${matching} entries; use --last to show more.`);
  }
}

/** The keys of the nodes that had the name; it may be given after what it is asked about. */
async function keysOfNode({ subject, ...place }: ShowOptions): Promise<string[]> {
  const keys: string[] = [];
  if (subject === undefined) return keys;
  for await (const entry of await shownLog(place)) keys.push(...keyNamed(entry, subject));
  return keys;
}

async function shownLog(options: OperatorOptions & StatePlace): Promise<AsyncIterable<AuditSaid>> {
  if (options.usedProfile === undefined) return (await openLog(options)).entries;
  return counting('Audit entries read:', entriesOf(operatorClient(options)));
}

/** How many entries fit on the terminal, with the prompt and a note below them; null to show all. */
function screenful({ json = false, since }: ShowOptions): number | null {
  const { isTTY, rows } = process.stdout;
  return isTTY && !json && since === undefined ? Math.max(rows - 2, 1) : null;
}

/**
 * The entries in order, from one snapshot; read errors end the command with a one-sentence message. Whether pages were
 * checked is false if the files changed too often, and null for a database, which checks its own pages.
 */
async function openLog(place: StatePlace) {
  const address = await onState(() => databaseOf(place));
  const log = address === null ? await logOfFolder(place.dataDir) : await logOfDatabase(address);
  return { ...log, entries: counting('Audit entries read:', log.entries) };
}

/** An empty log usually means that the wrong place was given. */
function noteEmptyLog(): void {
  printNote('The audit log is empty.');
}

/** Damaged pages can crash a process that reads them through LMDB, so they are checked first. */
async function logOfFolder(dataDir: string) {
  const { checkForReading } = await import('../../store/lmdb/folder-state.ts');
  const pagesChecked = onLocalFiles(() => checkForReading(dataDir));
  const { readAuditEntries } = await import('../../store/lmdb/source.ts');
  return { pagesChecked, entries: readable(readAuditEntries(dataDir), 'local_files') };
}

async function logOfDatabase(address: StoreAddress) {
  const { readAuditLog } = await import('../../store/postgresql/source.ts');
  return { pagesChecked: null, entries: readable(readAuditLog(address), 'store_unusable') };
}

async function* readable<T>(
  items: Iterable<T> | AsyncIterable<T>,
  code: string,
): AsyncGenerator<T, void> {
  try {
    yield* items;
  } catch (cause) {
    throw failure(EXIT.unusable, code, messageOf(cause));
  }
}
