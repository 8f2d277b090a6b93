/**
 * The certificate revocation list [core-5-5]: a signed list of the revoked certificates, in the order in which they
 * were revoked. This file also tracks the compromised node keys.
 */

import { createHash } from 'node:crypto';
import type { Certificate } from '../../../machines/certificate.ts';
import type { RestoredRevocation } from '../../../machines/one-record.ts';
import type { Crl } from '../../../machines/signed-sequence.ts';
import type { Resting } from '../../../machines/step.ts';
import type { RecordSigner } from '../../base/crypto/primitives.ts';
import { detached } from '../../base/detached.ts';
import { parseJson } from '../../base/json/parse.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { withoutPause } from '../../base/work.ts';
import {
  KEPT_REVISIONS,
  noteEnd,
  type PublishedDocument,
  publishedDocument,
  type RevisionEnds,
} from '../../protocol/contract/documents.ts';
import type { SignatureItem } from '../../protocol/records/record.ts';
import { type Revision, revisionText } from '../../protocol/records/revocation-list-delta.ts';
import { signatureOver, singleKeyOf } from '../../protocol/records/signed-record.ts';
import type { Handler } from '../engine/admission.ts';
import type { Subject } from '../subjects/kinds.ts';
import { type CrlHead, LIST_PERIOD, type ListEntry } from './list-document.ts';
import {
  createSignedList,
  type EntryDigest,
  type ListServices,
  type NumberedEntry,
  type Revocable,
  type SignedList,
} from './signed-list.ts';

export const CRL_ID = 'certificates';

/** The description of a list whose entries are not the signed ones. */
export const CRL_DAMAGE = 'its revoked certificates are not those of the published revocation list';

export type Revocations = ReturnType<typeof createRevocations>;

interface RevocationsOptions extends ListServices {
  readonly issuerOf: IssuerOf;
  /** The key that issues the list now, and those that may issue it next. */
  issuers(): readonly [current: string, ...others: string[]];
  /** The revoked certificate or the restored revocation with this certificate id. */
  revoked(certificateId: string): Parameters<typeof revocationIn>[1] | null;
}

/** A revoked certificate, as stored. */
interface StoredRevocation extends NumberedEntry {
  /** The node's key if the certificate was revoked because of a key compromise. */
  readonly compromisedKey: string | null;
}

/** The key that issued the list with this sequence. */
type IssuerOf = (crlSequence: number) => string;

/** The entry that a subject adds to the list, if any; it keeps the issuer of the list in which it first came. */
export function revocationIn(
  issuerOf: IssuerOf,
  { kind, id, value, context }: Resting & { readonly kind: string; readonly id: string },
): StoredRevocation | null {
  if (value !== 'revoked') return null;
  if (kind === 'certificate') {
    const { nodePublicKey, revokedAt, revocationReason, crlSequence } = context as Certificate;
    const reason = revocationReason ?? 'unspecified';
    const sequence = crlSequence ?? 0;
    return {
      sequence,
      entry: crlEntry(issuerOf(sequence), id, revokedAt ?? 0, reason),
      compromisedKey: reason === 'key_compromise' ? nodePublicKey : null,
    };
  }
  if (kind !== 'restored-revocation') return null;
  const { list, revokedId, revokedAt, reason, crlSequence } = context as RestoredRevocation;
  if (list !== 'crl') return null;
  const sequence = crlSequence ?? 0;
  const entry = crlEntry(issuerOf(sequence), revokedId, revokedAt, reason);
  return { sequence, entry, compromisedKey: null };
}

export function createRevocations(options: RevocationsOptions) {
  const { signer, issuerOf, issuers, publisher, uuid } = options;
  const compromised = new Set<string>();
  const revisions = createRevisionLog(publisher.revisionEnds);
  let newestShown = { sequence: 0, digest: '' };

  function entryOf(id: string): ListEntry {
    const subject = options.revoked(id);
    const revocation = subject && revocationIn(issuerOf, subject);
    if (!revocation) throw new Error(`The certificate ${id} is listed, but not revoked`);
    return revocation.entry;
  }

  const digests = createCrlDigests({ issuers, entryOf, ids: () => list.ids() });
  const list: SignedList = createSignedList<Crl>({
    ...options,
    form: 'crl',
    damage: CRL_DAMAGE,
    digest: digests,
    first: () => 0,
    current: (unit) => unit.current('crl', CRL_ID)?.context,
    send: (unit, event) => unit.send('crl', CRL_ID, event),
    next: ({ at }, sequence, digest) => ({
      sequence,
      crlId: uuid(),
      issuedAt: at,
      nextUpdate: at + LIST_PERIOD,
      digest,
    }),
    headOf: (version) => ({ form: 'crl', ...version }),
    appended: revisions.appended,
    publish(document, head) {
      if (head.form !== 'crl') throw new Error('The head is not that of a revocation list');
      newestShown = head;
      revisions.issued(head.sequence);
      publisher.publish('crl', document);
      publisher.publish('crl_revision', revisionDocument(document, head, signer));
    },
    withdraw: () => publisher.withdraw('crl'),
  });

  return {
    list,
    /** The version being served. */
    newestShown: (): { readonly sequence: number; readonly digest: string } => newestShown,
    /** Computes, in slices, the digests that the keys need that may issue the list next. */
    prepareDigests: digests.prepare,
    /** The entry in the next list for a certificate. */
    entryOf: (certificateId: string, revokedAt: number, reason: string) =>
      crlEntry(issuers()[0], certificateId, revokedAt, reason),
    /** Follows a decided change of a certificate or a restored revocation. */
    decided(kind: Revocable<'certificate'>, id: string, { value, context }: Resting) {
      const revoked = revocationIn(issuerOf, { kind, id, value, context });
      if (revoked === null) return;
      if (revoked.compromisedKey !== null) compromised.add(revoked.compromisedKey);
      list.decided(revoked);
    },
    committed(id: string, { value }: Subject<'certificate'>) {
      // An earlier version of the certificate may be committed while its revocation is pending.
      if (value === 'revoked') list.committed(id);
    },
    compromise(_id: string, { context }: Subject<'node-key'>) {
      compromised.add(context.nodePublicKey);
    },
    isCompromised: (nodePublicKey: string) => compromised.has(nodePublicKey),
  };
}

/** Builds the entry for a certificate; `issuer` is the key that signs the list. */
export function crlEntry(
  issuer: string,
  certificateId: string,
  revokedAt: number,
  reason: string,
): ListEntry {
  const text = canonicalJson({
    certificate_id: certificateId,
    revoked_at: formatInstant(revokedAt),
    reason,
    issuer,
  });
  // The text is kept forever, so release the roughly twenty pieces it was concatenated from.
  return { id: certificateId, text: detached(text) };
}

/** Records where each version of the list ends, to serve what one version added to another [core-5-5-1]. */
export function createRevisionLog(ends: RevisionEnds) {
  let newest = -1;
  let end = 0;

  /** The versions before this one end here. */
  function endBefore(sequence: number): void {
    for (
      let version = Math.max(newest + 1, sequence - KEPT_REVISIONS);
      version < sequence;
      version += 1
    ) {
      noteEnd(ends, version, end);
    }
    newest = Math.max(newest, sequence - 1);
  }

  return {
    /** Notes entries appended to the list, in its order; the versions that contain them are issued afterward. */
    appended(entries: readonly NumberedEntry[]) {
      for (const { sequence, entry } of entries) {
        endBefore(sequence);
        // Canonical JSON is ASCII, and a comma precedes every entry except the first.
        end += end === 0 ? entry.text.length : 1 + entry.text.length;
      }
    },
    /** Notes that this version is about to be published. */
    issued: (sequence: number) => endBefore(sequence + 1),
  };
}

const SIGNATURES = ',"signatures":';

/** The part that edges add to the entries: the members of a version and their signature, as canonical JSON. */
function revisionDocument(
  { bytes, freshUntil }: PublishedDocument,
  { crlId, sequence, issuedAt, nextUpdate, digest }: CrlHead,
  signer: RecordSigner,
): PublishedDocument {
  const list = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const signatures = list.subarray(list.lastIndexOf(SIGNATURES) + SIGNATURES.length, -1);
  const revision: Revision = {
    crl_id: crlId,
    sequence,
    issued_at: formatInstant(issuedAt),
    next_update: formatInstant(nextUpdate),
    issuer: signer.publicKey,
    entries_digest: digest,
    list_signatures: parseJson(signatures.toString()) as unknown as SignatureItem[],
  };
  const signature = signatureOver(revisionText(revision), singleKeyOf(signer));
  return publishedDocument(canonicalJson({ ...revision, signature }), freshUntil);
}

/** Hex SHA-256 of the issuer's key, a line feed and the canonical entries, joined with commas. */
export function createCrlDigest(issuer: string): EntryDigest {
  const hash = createHash('sha256').update(`${issuer}\n`);
  let isEmpty = true;
  const following = (text: string, isFirst: boolean) => (isFirst ? text : `,${text}`);
  return {
    add({ text }) {
      hash.update(following(text, isEmpty), 'latin1');
      isEmpty = false;
    },
    value(added) {
      const whole = hash.copy();
      for (const [index, { text }] of added.entries()) {
        whole.update(following(text, isEmpty && index === 0), 'latin1');
      }
      return whole.digest('hex');
    },
  };
}

interface CrlDigests extends EntryDigest {
  /** Computes the digests that are missing, in slices, and drops those that are no longer needed. */
  prepare(): Generator<void, void>;
}

interface CrlDigestsOptions {
  /** The key that issues the list now, and those that may issue it next. */
  issuers(): readonly [current: string, ...others: string[]];
  /** The ids of all entries, in the order of the list. */
  ids(): ReadonlySet<string>;
  /** The entry with this id, which was added before. */
  entryOf(id: string): ListEntry;
}

/** How many entries one slice hashes, which takes a millisecond or two. */
const HASHED_AT_ONCE = 250;

/**
 * The digest of the revocation list's entries [core-5-5-1]. It begins with the key that issues the list, so a key that
 * may take over has its own digest, which is computed in slices before it is needed.
 */
function createCrlDigests({ issuers, ids, entryOf }: CrlDigestsOptions): CrlDigests {
  const digests = new Map<string, EntryDigest>();

  /** Entries that are added meanwhile are part of it. */
  function* computed(issuer: string): Generator<void, EntryDigest> {
    const digest = createCrlDigest(issuer);
    let hashed = 0;
    for (const id of ids()) {
      if (hashed > 0 && hashed % HASHED_AT_ONCE === 0) yield;
      digest.add(entryOf(id));
      hashed += 1;
    }
    digests.set(issuer, digest);
    return digest;
  }

  return {
    add(entry) {
      if (ids().size === 0) for (const issuer of issuers()) withoutPause(computed(issuer));
      for (const digest of digests.values()) digest.add(entry);
    },
    value(added, issuer = issuers()[0]) {
      return (digests.get(issuer) ?? withoutPause(computed(issuer))).value(added);
    },
    *prepare() {
      const needed = issuers();
      for (const issuer of digests.keys()) if (!needed.includes(issuer)) digests.delete(issuer);
      for (const issuer of needed) if (!digests.has(issuer)) yield* computed(issuer);
    },
  };
}

/** Keeps the CRL current: issues the first, empty one, and re-issues it after half of its lifetime. */
export const refreshCrl: Handler<'refreshCrl'> = (na, unit) => {
  na.revocations.list.renew(unit);
  return null;
};
