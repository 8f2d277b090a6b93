/** Rows of the portable stream, each as one line of JSON that does not depend on the database [backup-3]. */
import Type, { type Static, type TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { parseJson } from '../../base/json/parse.ts';
import { isJsonObject, type JsonObject } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import type { AuditEntry, StoredHistory, StoredLiveness, StoredSubject } from '../store.ts';
import type { StoredAnswer } from '../table-rows.ts';

/** In the order of the stream. */
export const STREAM_TABLES = ['subjects', 'nonces', 'audit', 'liveness', 'history'] as const;

export type StreamTable = (typeof STREAM_TABLES)[number];

/** Nonces that were spent in one flush and may be forgotten in the same minute. */
export interface NonceRow {
  /** When the nonces may be forgotten, in milliseconds since the epoch. */
  readonly bucket: number;
  /** The last revision of the flush. */
  readonly revision: number;
  readonly digests: readonly string[];
  /** The answers that are kept for some of these nonces. */
  readonly answers: readonly StoredAnswer[];
}

export interface StreamRows {
  readonly subjects: StoredSubject;
  readonly nonces: NonceRow;
  readonly audit: AuditEntry;
  readonly liveness: StoredLiveness;
  readonly history: StoredHistory;
}

/** The stream violates its format, or was changed after it was written. The message is a sentence. */
export class DamagedStream extends Error {
  constructor(what: string) {
    super(`The backup is damaged: ${what}`);
  }
}

const Natural = Type.Integer({ minimum: 0 });
const Text = Type.String();

const SubjectLine = Type.Object({
  kind: Text,
  id: Text,
  version: Type.Integer({ minimum: 1 }),
  value: Text,
  context: Type.Object({}),
});
const NonceLine = Type.Object({
  bucket: Natural,
  revision: Natural,
  digests: Type.Array(Text),
  answers: Type.Array(Type.Tuple([Text, Text, Text])),
});
const AuditLine = Type.Object({
  event_id: Text,
  event_type: Text,
  created_at: Text,
  prev_hash: Text,
  hash: Text,
});
const LivenessLine = Type.Object({
  id: Text,
  last_seen: Type.Number(),
  status: Text,
  remote_addr: Text,
  newest_signed_at: Type.Number(),
});

const HistoryLine = Type.Object({
  seconds: Natural,
  slot: Natural,
  values: Type.Array(Type.Number({ minimum: 0 })),
});

/** The line of a row, without its line feed. */
export function lineOf<Table extends StreamTable>(table: Table, row: StreamRows[Table]): string {
  return WRITERS[table](row);
}

export function rowIn<Table extends StreamTable>(table: Table, line: string): StreamRows[Table] {
  try {
    return READERS[table](line);
  } catch (cause) {
    if (cause instanceof DamagedStream) throw cause;
    throw new DamagedStream(`a line of table ${table} is not JSON`);
  }
}

const WRITERS: { readonly [Table in StreamTable]: (row: StreamRows[Table]) => string } = {
  subjects({ kind, id, version, snapshot: { value, context } }) {
    assertJson(context, `${kind} ${id}`);
    return JSON.stringify({ kind, id, version, value, context });
  },
  nonces: ({ bucket, revision, digests, answers }) =>
    JSON.stringify({ bucket, revision, digests, answers }),
  audit: (entry) => canonicalJson({ ...entry }),
  liveness: ({ id, lastSeen, status, remoteAddr, newestSignedAt }) =>
    JSON.stringify({
      id,
      last_seen: lastSeen,
      status,
      remote_addr: remoteAddr,
      newest_signed_at: newestSignedAt,
    }),
  history: ({ seconds, slot, values }) => JSON.stringify({ seconds, slot, values }),
};

const READERS: { readonly [Table in StreamTable]: (line: string) => StreamRows[Table] } = {
  subjects: reader('subjects', SubjectLine, ({ kind, id, version, value, context }) => ({
    kind,
    id,
    version,
    snapshot: { value, context },
  })),
  nonces: reader('nonces', NonceLine, (row) => row),
  audit(line) {
    // Preserves numbers of any size in the details, because the hash covers them.
    const entry = parseJson(line);
    if (!isAuditEntry(entry)) throw unexpected('audit');
    return entry;
  },
  liveness: reader('liveness', LivenessLine, (row) => ({
    id: row.id,
    lastSeen: row.last_seen,
    status: row.status,
    remoteAddr: row.remote_addr,
    newestSignedAt: row.newest_signed_at,
  })),
  history: reader('history', HistoryLine, (row) => row),
};

const auditLine = Compile(AuditLine);

function isAuditEntry(entry: unknown): entry is AuditEntry & JsonObject {
  return auditLine.Check(entry) && isJsonObject((entry as { details?: unknown }).details);
}

function reader<Schema extends TSchema, Row>(
  table: StreamTable,
  schema: Schema,
  rowOf: (line: Static<Schema>) => Row,
): (line: string) => Row {
  const validator = Compile(schema);
  return (line) => {
    const value: unknown = JSON.parse(line);
    if (!validator.Check(value)) throw unexpected(table);
    return rowOf(value as Static<Schema>);
  };
}

function unexpected(table: StreamTable): DamagedStream {
  return new DamagedStream(`a line of table ${table} does not have the expected form`);
}

/**
 * Fails during the backup if JSON would drop or change a value, which otherwise would be noticed only after a restore.
 */
function assertJson(value: unknown, where: string): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return;
  if (typeof value === 'number' && Number.isFinite(value)) return;
  if (typeof value !== 'object') throw new Error(`${where} holds a value that JSON cannot carry`);
  for (const member of Object.values(value)) assertJson(member, where);
}
