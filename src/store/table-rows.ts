/** Encodes and decodes the rows of all tables except `meta` and the audit log, for any database. */
import { decodeRow, encodeRow } from './rows.ts';
import { createSharing, type Shapes, type StoredSnapshot } from './shapes.ts';
import type {
  KeptAnswer,
  SpentNonce,
  StoredHistory,
  StoredLiveness,
  StoredSubject,
} from './store.ts';
import type { StoredRow } from './tables.ts';

/** Checks each row against its key and version. Values that recur in the rows of one reader are shared. */
export function subjectReader(shapes: Shapes): (stored: StoredRow) => StoredSubject {
  const share = createSharing();
  return ({ key, version, row }) => {
    const values = decodeRow('subjects', key, row, version) as StoredSnapshot;
    const [kind, id] = key as readonly [string, string];
    return { kind: share(kind, 0), id, version, snapshot: shapes.build(values, share) };
  };
}

export function livenessReader(): (stored: StoredRow) => StoredLiveness {
  const share = createSharing();
  return ({ key, row }) => {
    const values = decodeRow('liveness', key, row) as [number, string, string, number];
    const [lastSeen, status, remoteAddr, newestSignedAt] = values;
    return {
      id: key as string,
      lastSeen,
      status: share(status, 0),
      remoteAddr: share(remoteAddr, 1),
      newestSignedAt,
    };
  };
}

export function encodeLiveness(contact: StoredLiveness): Buffer {
  const { id, lastSeen, status, remoteAddr, newestSignedAt } = contact;
  return encodeRow('liveness', id, [lastSeen, status, remoteAddr, newestSignedAt]);
}

export type HistoryKey = readonly [seconds: number, slot: number];

export function historyKey({ seconds, slot }: StoredHistory): HistoryKey {
  return [seconds, slot];
}

export function encodeHistory(row: StoredHistory): Buffer {
  return encodeRow('history', historyKey(row), row.values);
}

export function decodeHistory({ key, row }: StoredRow): StoredHistory {
  const [seconds, slot] = key as HistoryKey;
  return { seconds, slot, values: decodeRow('history', key, row) as readonly number[] };
}

/** When the nonces of a row may be forgotten, and the last revision of their flush. */
export type NonceKey = readonly [bucket: number, revision: number];

export function encodeNonces(key: NonceKey, digests: readonly string[]): Buffer {
  return encodeRow('nonces', key, digests);
}

export function decodeDigests({ key, row }: StoredRow): readonly string[] {
  return decodeRow('nonces', key, row) as readonly string[];
}

export function decodeNonces(stored: StoredRow): SpentNonce[] {
  const [forgetAt] = stored.key as NonceKey;
  return decodeDigests(stored).map((digest) => ({ digest, forgetAt }));
}

export type StoredAnswer = readonly [digest: string, request: string, answer: string];

/** Encodes the answers that are kept with the nonces under the same key. */
export function encodeAnswers(key: NonceKey, answers: readonly StoredAnswer[]): Buffer {
  return encodeRow('answers', key, answers);
}

export function decodeStoredAnswers({ key, row }: StoredRow): readonly StoredAnswer[] {
  return decodeRow('answers', key, row) as readonly StoredAnswer[];
}

export function decodeAnswers(stored: StoredRow): KeptAnswer[] {
  const [forgetAt] = stored.key as NonceKey;
  return decodeStoredAnswers(stored).map(([digest, request, answer]) => ({
    digest,
    forgetAt,
    request,
    answer,
  }));
}
