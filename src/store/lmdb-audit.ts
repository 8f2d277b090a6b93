/** The audit log in LMDB: one row per flush, keyed by the number of its last entry. */
import { parseJson } from '../json/parse.ts';
import { openEnvironment, openTables, type Tables } from './lmdb-environment.ts';
import { DamagedState, decodeText } from './lmdb-rows.ts';
import { type AuditEntry, GENESIS_HASH, type SealedEntry } from './store.ts';

/** Audit entries that a start reads back to show recent changes. */
export const RECENT_AUDIT = 1000;

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

/** Canonical text has no line breaks, and preserves numbers of any size. */
export function auditLine({ entry, text }: SealedEntry): string {
  return entry.hash + text;
}

export function readAuditEnd({ audit }: Tables): {
  readonly recentAudit: readonly AuditEntry[];
  readonly auditHead: string;
} {
  let recent: AuditEntry[] = [];
  for (const { key, value } of audit.getRange({ reverse: true })) {
    recent = [...decodeEntries(key, value), ...recent];
    if (recent.length >= RECENT_AUDIT) break;
  }
  return {
    recentAudit: recent.slice(-RECENT_AUDIT),
    auditHead: recent.at(-1)?.hash ?? GENESIS_HASH,
  };
}

function decodeEntries(key: number, row: Buffer): AuditEntry[] {
  return decodeText('audit', key, row).split('\n').map(decodeEntry);
}

function decodeEntry(line: string): AuditEntry {
  const textAt = line.indexOf('{');
  try {
    const entry = parseJson(line.slice(textAt)) as unknown as Omit<AuditEntry, 'hash'>;
    return { ...entry, hash: line.slice(0, textAt) };
  } catch {
    throw new DamagedState('an audit entry is not JSON');
  }
}
