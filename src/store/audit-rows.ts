/** Rows of the audit log: the entries of one flush in order, each a line of hash and hashed text. */
import { parseJson } from '../base/json/parse.ts';
import { canonicalJson } from '../base/json/write.ts';
import { DamagedState, decodeText, encodeText } from './rows.ts';
import type { AuditEntry, SealedEntry } from './store.ts';

/** Audit entries that a start reads back to show recent changes. */
export const RECENT_AUDIT = 1000;

/** Canonical text has no line breaks, and preserves numbers of any size. */
export function auditLine({ entry, text }: SealedEntry): string {
  return entry.hash + text;
}

/** The same for an entry that was read: its hashed text is its canonical form. */
export function auditLineOf({ hash, ...entry }: AuditEntry): string {
  return hash + canonicalJson(entry);
}

/** `last` is the number of the last of the entries. */
export function encodeEntries(last: number, lines: readonly string[]): Buffer {
  return encodeText('audit', last, lines.join('\n'));
}

export function decodeEntries(last: number, row: Buffer): AuditEntry[] {
  return decodeLines(last, row).map(decodeLine);
}

/** The lines of a row that come after the entry with this number. */
export function linesAfter(entry: number, last: number, row: Buffer): readonly string[] {
  const lines = decodeLines(last, row);
  return lines.slice(Math.max(0, lines.length - (last - entry)));
}

function decodeLines(last: number, row: Buffer): readonly string[] {
  return decodeText('audit', last, row).split('\n');
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
