/**
 * The signed certificate revocation list (wire rules 5.5). Its entries are the revoked certificates, so
 * a version is stored as its head only; the digest of the signed text proves, after a restart, that the
 * rebuilt document is the one that was published.
 */
import type { Crl } from '../../machines/crl.ts';
import { sha256Hex } from '../crypto/digest.ts';
import { canonicalJson } from '../json/write.ts';
import { formatInstant } from '../timestamp.ts';
import type { Authority, Handler } from './authority.ts';
import { publishedDocument } from './documents.ts';
import type { UnitOfWork } from './unit-of-work.ts';

const UPDATE_PERIOD = 24 * 3_600_000;
const CRL_ID = 'certificates';

/** The sequence the next version will carry. */
export function nextCrlSequence(unit: UnitOfWork): number {
  return (unit.current('crl', CRL_ID)?.context.sequence ?? -1) + 1;
}

/**
 * Publishes the next version; `addedEntry` is the canonical text of an entry this same unit revokes.
 * Returns the number of entries.
 */
export function publishCrl(na: Authority, unit: UnitOfWork, addedEntry?: string): number {
  const known = na.revocations.entriesText();
  const entries = addedEntry === undefined ? known : joinEntries(known, addedEntry);
  const head = {
    sequence: nextCrlSequence(unit),
    crlId: na.runtime.uuid(),
    issuedAt: unit.at,
    nextUpdate: unit.at + UPDATE_PERIOD,
  };
  const text = signedTextOf(na, head, entries);
  unit.send('crl', CRL_ID, { type: 'publish', version: { ...head, digest: sha256Hex(text) } });
  const document = sign(na, text, head.nextUpdate);
  unit.whenCommitted(() => na.board.publish('crl', document));
  return na.revocations.count() + (addedEntry === undefined ? 0 : 1);
}

/** Makes the list current: the first, empty version, or a re-issue once `next_update` has passed. */
export const refreshCrl: Handler<null> = (na, unit) => {
  const emitted = unit.send('crl', CRL_ID, { type: 'lapse', at: unit.at });
  if (emitted.some(({ type }) => type === 'lapsed')) publishCrl(na, unit);
  // Another reader is having it re-issued: answer when that version is on disk.
  else unit.awaitEarlierCommits();
  return '{}';
};

/** Publishes the stored version again after a start; a new version when it cannot be rebuilt. */
export const restoreCrl: Handler<null> = (na, unit) => {
  const stored = unit.current('crl', CRL_ID)?.context;
  if (stored === undefined) return refreshCrl(na, unit, null);
  const text = signedTextOf(na, stored, na.revocations.entriesText());
  if (sha256Hex(text) === stored.digest) na.board.publish('crl', sign(na, text, stored.nextUpdate));
  else publishCrl(na, unit);
  return '{}';
};

export function currentCrlSequence(na: Authority): number {
  return na.subjects.committed('crl', CRL_ID)?.context.sequence ?? 0;
}

function joinEntries(known: string, added: string): string {
  return known === '' ? added : `${known},${added}`;
}

/** Assembled by hand in canonical order: serialising a long list again for each revocation is the cost. */
function signedTextOf(
  na: Authority,
  head: Pick<Crl, 'sequence' | 'crlId' | 'issuedAt' | 'nextUpdate'>,
  entries: string,
): string {
  return (
    `{"crl_id":${canonicalJson(head.crlId)}` +
    `,"issued_at":${canonicalJson(formatInstant(head.issuedAt))}` +
    `,"issuer":${canonicalJson(na.signer.publicKey)}` +
    `,"next_update":${canonicalJson(formatInstant(head.nextUpdate))}` +
    `,"revoked_certificates":[${entries}]` +
    `,"sequence":${head.sequence}}`
  );
}

function sign(na: Authority, text: string, freshUntil: number) {
  const signature = canonicalJson({ key_id: na.settings.keyId, sig: na.signer.sign(text) });
  return publishedDocument(`${text.slice(0, -1)},"signatures":[${signature}]}`, freshUntil);
}
