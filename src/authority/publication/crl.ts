/**
 * The signed certificate revocation list (wire rules 5.5) as a sequence of versions. Its entries are the
 * revoked certificates, so a version is stored as its head only; the digest of the entries proves, after
 * a restart, that the document made from them is the very one that was published.
 */
import type { Handler } from '../engine/admission.ts';
import type { Authority } from '../engine/authority.ts';
import type { Run } from '../engine/execute.ts';
import type { UnitOfWork } from '../engine/unit-of-work.ts';

const UPDATE_PERIOD = 24 * 3_600_000;
const CRL_ID = 'certificates';

/** The sequence the next version will carry. */
export function nextCrlSequence(unit: UnitOfWork): number {
  return (unit.current('crl', CRL_ID)?.context.sequence ?? -1) + 1;
}

/**
 * Decides the next version, which is published when it is on disk; `addedEntry` is the canonical text of
 * an entry this same unit revokes. Returns the number of entries.
 */
export function publishCrl(na: Authority, unit: UnitOfWork, addedEntry?: string): number {
  const { digest, length } = na.crlPublisher.content(addedEntry);
  const head = {
    sequence: nextCrlSequence(unit),
    crlId: na.runtime.uuid(),
    issuedAt: unit.at,
    nextUpdate: unit.at + UPDATE_PERIOD,
  };
  unit.send('crl', CRL_ID, { type: 'publish', version: { ...head, digest } });
  unit.whenCommitted(() => na.crlPublisher.publish({ ...head, length }));
  return na.revocations.count() + (addedEntry === undefined ? 0 : 1);
}

/** Lets the answer wait until the newest version that was decided is the one that is served. */
export function awaitCrl(na: Authority, unit: UnitOfWork): void {
  const sequence = nextCrlSequence(unit) - 1;
  unit.whenCommitted(() => na.crlPublisher.shown(sequence));
}

/** Makes the list current: the first, empty version, or a re-issue once `next_update` has passed. */
export const refreshCrl: Handler<'refreshCrl'> = (na, unit) => {
  const emitted = unit.send('crl', CRL_ID, { type: 'lapse', at: unit.at });
  if (emitted.some(({ type }) => type === 'lapsed')) publishCrl(na, unit);
  // Another reader is having it re-issued: answer when that version is on disk.
  else awaitCrl(na, unit);
  return null;
};

/**
 * Publishes the stored version again after a start. When its entries are not those that were signed, the
 * start is refused: signing what is there now could leave a revoked certificate out.
 */
export const restoreCrl: Run<null> = (na, unit) => {
  const stored = unit.current('crl', CRL_ID)?.context;
  if (stored === undefined && na.revocations.count() === 0) return refreshCrl(na, unit, null);
  const { digest, length } = na.crlPublisher.content();
  if (digest !== stored?.digest) {
    throw new Error(
      'The state in the data directory is damaged: its revoked certificates are not those of the published revocation list',
    );
  }
  unit.whenCommitted(() => na.crlPublisher.publish({ ...stored, length }));
  return null;
};

export function currentCrlSequence(na: Authority): number {
  return na.subjects.committed('crl', CRL_ID)?.context.sequence ?? 0;
}
