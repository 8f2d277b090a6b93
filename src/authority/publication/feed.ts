/**
 * The signed feed of attestations revoked here (wire rules 4.14). A version is stored as its head; the
 * entries are the revoked attestations, and a digest proves that a rebuilt feed is the published one.
 */
import type { SovereignFeed } from '../../../machines/sovereign-feed.ts';
import { publishedDocument } from '../../contract/documents.ts';
import { sha256Hex } from '../../crypto/digest.ts';
import type { Signer } from '../../crypto/ed25519.ts';
import type { JsonObject } from '../../json/value.ts';
import { canonicalJson, JsonText } from '../../json/write.ts';
import { sortedSet } from '../../records/recognition-policy.ts';
import { signedText, signRecord } from '../../records/signed-record.ts';
import { formatInstant } from '../../timestamp.ts';
import type { Handler } from '../engine/admission.ts';
import type { Authority } from '../engine/authority.ts';
import type { Run } from '../engine/execute.ts';
import type { UnitOfWork } from '../engine/unit-of-work.ts';
import { assertOwnIssuer } from '../recognition/own-issuer.ts';

interface RevokedEntry {
  readonly attestationId: string;
  readonly reason: string;
}

type Head = Pick<SovereignFeed, 'issuer' | 'sequence' | 'feedId' | 'issuedAt'>;

/** Publishes the issuer's next feed; `added` is what this same unit revokes. */
export function publishFeed(
  na: Authority,
  unit: UnitOfWork,
  issuer: string,
  added?: RevokedEntry,
): void {
  const id = subjectId(issuer);
  const sequence = (unit.current('sovereign-feed', id)?.context.sequence ?? 0) + 1;
  const head = { issuer, sequence, feedId: na.runtime.uuid(), issuedAt: unit.at };
  const entries = new Map(na.attestationLog.revokedBy(issuer));
  if (added !== undefined) entries.set(added.attestationId, added.reason);
  const record = feedRecord(na.signer, head, entries);
  const version = { ...head, digest: sha256Hex(signedText(record)) };
  unit.send('sovereign-feed', id, { type: 'publish', version });
  if (issuer === na.settings.networkName) {
    const document = publishedDocument(canonicalJson(signFeed(record, na.signer)));
    unit.whenCommitted(() => na.publisher.publish('sovereign_revocation_feed', document));
  }
}

/** Publishes our own stored feed again after a start, which is refused when its entries have changed. */
export const restoreFeed: Run<null> = (na) => {
  const issuer = na.settings.networkName;
  const record = currentRecord(na, issuer);
  const stored = na.subjects.committed('sovereign-feed', subjectId(issuer))?.context;
  const isWhole =
    stored === undefined
      ? na.attestationLog.committedBy(issuer).size === 0
      : stored.digest === sha256Hex(signedText(record));
  if (!isWhole) {
    throw new Error(
      'The state in the data directory is damaged: its revoked attestations are not those of the published feed',
    );
  }
  na.publisher.publish(
    'sovereign_revocation_feed',
    publishedDocument(canonicalJson(signFeed(record, na.signer))),
  );
  return null;
};

/** The feed of attestations issued here under another sovereign's name. */
export const readForeignFeed: Handler<'readForeignFeed'> = (na, { issuer }) => {
  assertOwnIssuer(na, issuer, 'feed_issuer_mismatch');
  return new JsonText(canonicalJson(signFeed(currentRecord(na, issuer), na.signer)));
};

function currentRecord(na: Authority, issuer: string): JsonObject {
  const stored = na.subjects.committed('sovereign-feed', subjectId(issuer))?.context;
  if (stored === undefined) return feedRecord(na.signer, emptyHead(na, issuer), new Map());
  return feedRecord(na.signer, stored, na.attestationLog.committedBy(issuer));
}

/** While nothing is revoked the feed follows from its name alone, so that it is always the same. */
function emptyHead(na: Authority, issuer: string): Head {
  const digest = sha256Hex(`empty-revocation-feed\n${issuer}`);
  const feedId = digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-5$3-8$4-$5');
  return { issuer, sequence: 0, feedId, issuedAt: na.settings.foundedAt };
}

/** A feed without its signature. */
export function feedRecord(
  { publicKey }: Signer,
  { issuer, sequence, feedId, issuedAt }: Head,
  entries: ReadonlyMap<string, string>,
) {
  return {
    feed_id: feedId,
    issuer_sovereign_id: issuer,
    sequence,
    issued_at: formatInstant(issuedAt),
    revoked_attestation_ids: sortedSet([...entries.keys()]),
    revocation_reasons: Object.fromEntries(entries),
    issued_by: publicKey,
  };
}

/** The feed's signature is labelled with the key itself, whatever the key's configured label. */
export function signFeed<T extends JsonObject>(record: T, signer: Signer) {
  return signRecord(record, signer, signer.publicKey);
}

/** Names of sovereigns are free text; keys of the store are not. */
function subjectId(issuer: string): string {
  return sha256Hex(issuer);
}
