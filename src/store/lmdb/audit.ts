/** The audit log in LMDB: one row per flush, keyed by the number of its last entry. */
import type { RangeOptions } from 'lmdb';
import { decodeEntries, linesAfter, RECENT_AUDIT } from '../audit-rows.ts';
import { type AuditEntry, GENESIS_HASH } from '../store.ts';
import { assertTotal } from '../totals.ts';
import { openEnvironment, openTables, type Tables } from './environment.ts';

/** Reads the audit entries of a data directory in order, also while a server is running on it. */
export function* readAuditEntries(dataDir: string): Generator<AuditEntry> {
  const env = openEnvironment(dataDir, true);
  try {
    const { audit } = openTables(env);
    for (const { key, value } of audit.getRange()) yield* decodeEntries(key, value);
  } finally {
    void env.close();
  }
}

/** The last entries, of which there have to be this many. */
export function readAuditEnd(
  { audit }: Tables,
  total: number,
  range: RangeOptions = {},
): {
  readonly recentAudit: readonly AuditEntry[];
  readonly auditHead: string;
} {
  let recent: AuditEntry[] = [];
  const [last = 0] = audit.getKeys({ ...range, reverse: true, limit: 1 });
  assertTotal('audit', last, total);
  for (const { key, value } of audit.getRange({ ...range, reverse: true })) {
    recent = [...decodeEntries(key, value), ...recent];
    if (recent.length >= RECENT_AUDIT) break;
  }
  return {
    recentAudit: recent.slice(-RECENT_AUDIT),
    auditHead: recent.at(-1)?.hash ?? GENESIS_HASH,
  };
}

/** The hash of the entry with this number; null when there is none. */
export function readAuditHash({ audit }: Tables, entry: number): string | null {
  for (const { key, value } of audit.getRange({ start: entry, limit: 1 })) {
    return decodeEntries(key, value).at(entry - key - 1)?.hash ?? null;
  }
  return null;
}

/** The lines of the entries after this number, at most this many. */
export function readAuditAfter({ audit }: Tables, entry: number, most: number): readonly string[] {
  const lines: string[] = [];
  for (const { key, value } of audit.getRange({ start: entry + 1 })) {
    lines.push(...linesAfter(entry, key, value));
    if (lines.length >= most) break;
  }
  return lines.slice(0, most);
}
