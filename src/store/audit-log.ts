/**
 * The stored form of the audit log: one row per flush, keyed by the number of its last entry, with one line per entry
 * that contains its hash and hashed text.
 */
import { parseJson } from '../base/json/parse.ts';
import { canonicalJson } from '../base/json/write.ts';
import { assertTotal, DamagedState, decodeText, encodeText } from './rows.ts';
import { type AuditEntry, GENESIS_HASH, type SealedEntry, type StatePosition } from './store.ts';
import type { StoredRow, TableReader } from './tables.ts';

/** How many audit entries are read back at startup to show recent changes. */
export const RECENT_AUDIT = 1000;

/** Canonical text has no line breaks, and preserves numbers of any size. */
export function auditLine({ entry, text }: SealedEntry): string {
  return entry.hash + text;
}

/** Like `auditLine`, for an entry that was read back: its hashed text is its canonical form. */
export function auditLineOf({ hash, ...entry }: AuditEntry): string {
  return hash + canonicalJson(entry);
}

/** `last` is the number of the last of the entries. */
export function encodeEntries(last: number, lines: readonly string[]): Buffer {
  return encodeText('audit', last, lines.join('\n'));
}

export function decodeEntries(stored: StoredRow): AuditEntry[] {
  return decodeLines(stored).map(decodeLine);
}

function decodeLines({ key, row }: StoredRow): readonly string[] {
  return decodeText('audit', key, row).split('\n');
}

/** The entry in one line of a row. */
function decodeLine(line: string): AuditEntry {
  const textAt = line.indexOf('{');
  try {
    const entry = parseJson(line.slice(textAt)) as unknown as Omit<AuditEntry, 'hash'>;
    return { ...entry, hash: line.slice(0, textAt) };
  } catch {
    throw new DamagedState('an audit entry is not JSON');
  }
}

function rowEntries(stored: StoredRow) {
  return { last: stored.key as number, entries: decodeEntries(stored) };
}

/** All entries in order. Rejects unless there are `total`. */
export async function* readEntries(
  tables: TableReader,
  total: number,
): AsyncGenerator<readonly AuditEntry[], void> {
  let end = 0;
  for await (const rows of tables.scan('audit', rowEntries)) {
    for (const { last, entries } of rows) {
      if (end + entries.length !== last) throw new DamagedState('an audit entry is missing');
      end = last;
    }
    yield rows.flatMap(({ entries }) => entries);
  }
  assertTotal('audit', end, total);
}

/** A position in the log, with the hash of the entry before it. */
export type LogPosition = Pick<StatePosition, 'auditLength' | 'auditHead'>;

export const LOG_START: LogPosition = { auditLength: 0, auditHead: GENESIS_HASH };

/** The last entries after a position. Rejects unless there are `total` entries. */
export async function readEnd(tables: TableReader, total: number, since: LogPosition) {
  const { auditLength: after, auditHead } = since;
  if (total === after && after > 0) return { recentAudit: [], auditHead };
  const start = Math.max(after, total - RECENT_AUDIT);
  const recent: AuditEntry[] = [];
  let end = start;
  for await (const rows of tables.scan('audit', rowEntries, { after: start })) {
    for (const { last, entries } of rows) {
      recent.push(...entries);
      end = last;
    }
  }
  assertTotal('audit', end, total);
  const recentAudit = recent.slice(-RECENT_AUDIT);
  return { recentAudit, auditHead: recentAudit.at(-1)?.hash ?? auditHead };
}

/** The hash of the entry with this number; null if there is none. */
export async function readHash(tables: TableReader, entry: number): Promise<string | null> {
  const scanned = tables.scan('audit', rowEntries, { after: entry - 1, atOnce: 1 });
  for await (const [found] of scanned) {
    return found?.entries.at(entry - found.last - 1)?.hash ?? null;
  }
  return null;
}

/** The hash of the last entry, which is the one with the number `length`. */
export async function readHead(tables: TableReader, length: number): Promise<string> {
  const hash = length === 0 ? GENESIS_HASH : await readHash(tables, length);
  if (hash === null) throw new DamagedState('the last audit entry is missing');
  return hash;
}

/** A row may contain the entries of thousands of units. */
const ROWS_OF_LINES = 16;

/**
 * Reads the lines of the entries after the one with this number, at most this many. Readers take a long row in many small
 * parts, so the row that was decoded last is kept.
 */
export function createLineReader() {
  let kept = { last: 0, lines: [] as readonly string[] };

  return async (tables: TableReader, after: number, most: number): Promise<readonly string[]> => {
    const isKept = kept.last - kept.lines.length <= after && after < kept.last;
    const lines = isKept ? kept.lines.slice(after - kept.last) : [];
    const add = (stored: StoredRow) => {
      if (lines.length >= most) return;
      kept = { last: stored.key as number, lines: decodeLines(stored) };
      lines.push(...kept.lines.slice(Math.max(0, kept.lines.length - (kept.last - after))));
    };
    // One long row is usually enough.
    for (const atOnce of [1, ROWS_OF_LINES]) {
      if (lines.length >= most) break;
      const scanned = tables.scan('audit', add, { after: after + lines.length, atOnce });
      for await (const _ of scanned) if (atOnce === 1 || lines.length >= most) break;
    }
    return lines.slice(0, most);
  };
}
