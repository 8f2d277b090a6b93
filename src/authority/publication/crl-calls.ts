/** The certificate revocation list as calls use it: decide the next version, wait for it, keep it current. */
import type { Handler } from '../engine/admission.ts';
import type { Authority } from '../engine/authority.ts';
import type { Run } from '../engine/execute.ts';
import { CRL_ID } from '../lists/crl.ts';
import type { ListEntry } from '../lists/list-document.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';

/** The sequence number that the next list will have. */
export function nextCrlSequence(na: Authority, unit: UnitOfWork): number {
  return na.revocations.list.nextNumber(unit);
}

/**
 * Decides the next list, which is published when it is on disk. `added` are the entries that this same unit
 * revokes; several of them are revoked in the order of their ids. Returns the number of entries.
 */
export function publishCrl(na: Authority, unit: UnitOfWork, added: readonly ListEntry[]): number {
  na.revocations.list.issue(unit, added);
  return na.revocations.count() + added.length;
}

/** Makes the answer wait until the newest decided list is served. */
export function awaitCrl(na: Authority, unit: UnitOfWork): void {
  na.revocations.list.awaitShown(unit);
}

/** Makes the list current: issues the first, empty one, or re-issues it at half of its lifetime. */
export const refreshCrl: Handler<'refreshCrl'> = (na, unit) => {
  na.revocations.list.renew(unit);
  return null;
};

/** Publishes the stored list again after a start. */
export const restoreCrl: Run<null> = (na, unit) => {
  na.revocations.list.restore(unit);
  na.revocations.list.renew(unit);
  return null;
};

export function currentCrlSequence(na: Authority): number {
  return na.subjects.committed('crl', CRL_ID)?.context.sequence ?? 0;
}
