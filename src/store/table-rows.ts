/** What the rows of the tables hold, whatever database they are in. */
import type { NetworkIdentity } from './network-identity.ts';
import { decodeRow, encodeRow } from './rows.ts';
import type { Shape, Shapes, StoredSnapshot } from './shapes.ts';
import { createSharing } from './sharing.ts';
import type { KeptAnswer, SpentNonce, StoredLiveness, StoredSubject, TimeRange } from './store.ts';

/** A row that was read is checked against its key and version. */
export type SubjectReader = (
  kind: string,
  id: string,
  version: number,
  row: Buffer,
) => StoredSubject;

/** Values that recur in the rows of one reader are shared. */
export function subjectReader(shapes: Shapes): SubjectReader {
  const share = createSharing();
  return (kind, id, version, row) => {
    const stored = decodeRow('subjects', [kind, id], row, version) as StoredSnapshot;
    return { kind: share(kind, 0), id, version, snapshot: shapes.build(stored, share) };
  };
}

export type LivenessReader = (id: string, row: Buffer) => StoredLiveness;

export function livenessReader(): LivenessReader {
  const share = createSharing();
  return (id, row) => {
    const [lastSeen, status, remoteAddr, newestSignedAt] = decodeRow('liveness', id, row) as [
      number,
      string,
      string,
      number,
    ];
    return {
      id,
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

/** When the nonces of a row may be forgotten, and the last revision of their flush. */
export type NonceKey = readonly [bucket: number, revision: number];

export function encodeNonces(key: NonceKey, digests: readonly string[]): Buffer {
  return encodeRow('nonces', key, digests);
}

export function decodeNonces(key: NonceKey, row: Buffer): SpentNonce[] {
  const digests = decodeRow('nonces', key, row) as readonly string[];
  return digests.map((digest) => ({ digest, forgetAt: key[0] }));
}

/** The answers that are kept with the nonces of the row with this key. */
export function encodeAnswers(
  key: NonceKey,
  answers: readonly Omit<KeptAnswer, 'forgetAt'>[],
): Buffer {
  const stored = answers.map(({ digest, request, answer }) => [digest, request, answer]);
  return encodeRow('answers', key, stored);
}

export function decodeAnswers(key: NonceKey, row: Buffer): KeptAnswer[] {
  const stored = decodeRow('answers', key, row) as readonly [string, string, string][];
  return stored.map(([digest, request, answer]) => ({
    digest,
    forgetAt: key[0],
    request,
    answer,
  }));
}

/** Keys of rows that hold signing times. */
export type TimesKey = 'forgotten_times' | 'unstored_times';

export function encodeTimes(key: TimesKey, times: readonly TimeRange[]): Buffer {
  return encodeRow('meta', key, times);
}

export function decodeTimes(key: TimesKey, row: Buffer | undefined): readonly TimeRange[] {
  return row === undefined ? [] : (decodeRow('meta', key, row) as readonly TimeRange[]);
}

/** The epoch of a state that was never restored. */
const FIRST_EPOCH = 1;

export function encodeEpoch(epoch: number): Buffer {
  return encodeRow('meta', 'epoch', epoch);
}

/** The row is written by a restore. */
export function decodeEpoch(row: Buffer | undefined): number {
  return row === undefined ? FIRST_EPOCH : (decodeRow('meta', 'epoch', row) as number);
}

export function encodeNetwork(network: NetworkIdentity): Buffer {
  return encodeRow('meta', 'network', network);
}

/** Null when there is no such row: the state is new. */
export function decodeNetwork(row: Buffer | undefined): NetworkIdentity | null {
  return row === undefined ? null : (decodeRow('meta', 'network', row) as NetworkIdentity);
}

export function encodeShapes(table: readonly Shape[]): Buffer {
  return encodeRow('meta', 'shapes', table);
}

export function decodeShapes(row: Buffer | undefined): readonly Shape[] {
  return row === undefined ? [] : (decodeRow('meta', 'shapes', row) as readonly Shape[]);
}
