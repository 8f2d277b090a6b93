/**
 * The certificate revocation list [core-5-5]: a signed sequence whose entries are the revoked certificates,
 * in the order in which they were revoked. It also tracks the compromised node keys.
 */
import { createHash } from 'node:crypto';
import type { Certificate } from '../../../machines/certificate.ts';
import type { Crl } from '../../../machines/crl.ts';
import type { NodeKey } from '../../../machines/node-key.ts';
import type { RestoredRevocation } from '../../../machines/restored-revocation.ts';
import type { Resting } from '../../../machines/step.ts';
import { detached } from '../../base/detached.ts';
import { canonicalJson, compareCodePoints } from '../../base/json/write.ts';
import { withoutPause } from '../../base/slices.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { DocumentPublisher } from '../../protocol/contract/publications.ts';
import type { SubjectFollower } from '../subjects/subjects.ts';
import { LIST_PERIOD, type ListEntry, type ListSigner } from './list-document.ts';
import { createListRenderer, type ListThreads } from './list-renderer.ts';
import { createRevisionLog, type NumberedEntry, revisionDocument } from './list-revisions.ts';
import { createSignedSequence, type EntryDigest, type SignedSequence } from './signed-sequence.ts';

export const CRL_ID = 'certificates';

/** Entries that a slice takes into the list; a millisecond or two. */
const TAKEN_AT_ONCE = 1000;

export interface Revocations {
  readonly followDecided: SubjectFollower;
  readonly followCommitted: SubjectFollower;
  readonly list: SignedSequence;
  /** The version that is served. */
  newestShown(): { readonly sequence: number; readonly digest: string };
  /** The entry of a certificate. */
  entryOf(certificateId: string, revokedAt: number, reason: string): ListEntry;
  /** Entries decided so far. */
  count(): number;
  /** Whether one of them is that of this certificate. */
  isListed(certificateId: string): boolean;
  isCompromised(nodePublicKey: string): boolean;
  /**
   * Takes what was read from the store so far into the list, in slices. Call when a revision is read whole, and as often
   * as wanted.
   */
  takeLoaded(): Generator<void, void>;
  /** Takes what was read last. Call before anything is decided. */
  endLoading(): void;
}

export interface RevocationsOptions {
  readonly signer: ListSigner;
  readonly publisher: DocumentPublisher;
  readonly threads: ListThreads | null;
  uuid(): string;
  /** Throws `signer_unavailable`. */
  assertSigner(): void;
}

/** A revoked certificate as it is stored. */
export interface StoredRevocation extends NumberedEntry {
  /** The node's key, when it is what the certificate was revoked for. */
  readonly compromisedKey: string | null;
}

/** What a subject adds to the list that this key signs, if anything. */
export function revocationIn(
  issuer: string,
  { kind, id, value, context }: Resting & { readonly kind: string; readonly id: string },
): StoredRevocation | null {
  if (value !== 'revoked') return null;
  if (kind === 'certificate') {
    const { nodePublicKey, revokedAt, revocationReason, crlSequence } = context as Certificate;
    const reason = revocationReason ?? 'unspecified';
    return {
      sequence: crlSequence ?? 0,
      entry: crlEntry(issuer, id, revokedAt ?? 0, reason),
      compromisedKey: reason === 'key_compromise' ? nodePublicKey : null,
    };
  }
  if (kind !== 'restored-revocation') return null;
  const { list, revokedId, revokedAt, reason, crlSequence } = context as RestoredRevocation;
  if (list !== 'crl') return null;
  const entry = crlEntry(issuer, revokedId, revokedAt, reason);
  return { sequence: crlSequence ?? 0, entry, compromisedKey: null };
}

export function createRevocations(options: RevocationsOptions): Revocations {
  const { signer, publisher, threads, uuid, assertSigner } = options;
  const listed = new Set<string>();
  const compromised = new Set<string>();
  /** Decided entries that are not on disk yet. */
  const pending = new Map<string, ListEntry>();
  /** Read from the store; null once revocations are decided here. */
  let loaded: StoredRevocation[] | null = [];
  /** What was read before, in the order of the list. */
  let taken: StoredRevocation[] = [];
  let storedSequence = -1;
  let newestShown = { sequence: 0, digest: '' };
  const revisions = createRevisionLog(publisher.revisionEnds);
  const digest = createCrlDigest(signer.publicKey);
  const list = createSignedSequence<Crl>({
    damage: 'its revoked certificates are not those of the published revocation list',
    digest,
    renderer: createListRenderer({
      form: 'crl',
      signer,
      threads,
      show(document, head) {
        if (head.form !== 'crl') throw new Error('The head is not that of a revocation list');
        newestShown = head;
        publisher.publish('crl', document);
        publisher.publish('crl_revision', revisionDocument(document, head, signer));
      },
    }),
    first: () => 0,
    matches: (stored) => stored.digest === digest.value([]),
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
    assertSigner,
  });

  /** Later revisions add to the end of the list alone: what they revoke has later sequences. */
  function* takeLoaded(): Generator<void, void> {
    const numbered = (loaded ?? []).sort(inListOrder);
    loaded = [];
    for (let from = 0; from === 0 || from < numbered.length; from += TAKEN_AT_ONCE) {
      if (from > 0) yield;
      const slice = numbered.slice(from, from + TAKEN_AT_ONCE);
      taken.push(...slice);
      const entries = slice.map(({ entry }) => entry);
      for (const entry of entries) list.decided(entry);
      list.committed(entries);
    }
  }

  const entryOf = (certificateId: string, revokedAt: number, reason: string) =>
    crlEntry(signer.publicKey, certificateId, revokedAt, reason);

  return {
    list,
    newestShown: () => newestShown,
    entryOf,
    followDecided(kind, id, { value, context }) {
      if (kind === 'node-key') compromised.add((context as NodeKey).nodePublicKey);
      const revoked = revocationIn(signer.publicKey, { kind, id, value, context });
      if (revoked === null || listed.has(revoked.entry.id)) return;
      const { entry, compromisedKey } = revoked;
      if (compromisedKey !== null) compromised.add(compromisedKey);
      listed.add(entry.id);
      if (loaded !== null) {
        loaded.push(revoked);
      } else {
        pending.set(entry.id, entry);
        list.decided(entry);
      }
    },
    followCommitted(kind, id, { value, context }) {
      if (kind === 'crl') {
        const { sequence } = context as Crl;
        if (loaded === null) revisions.issued(sequence);
        else storedSequence = sequence;
      }
      // An earlier version of the certificate may be committed while its revocation is pending.
      const isRevoked = kind === 'certificate' && value === 'revoked';
      const entry = isRevoked ? pending.get(id) : undefined;
      if (entry === undefined) return;
      pending.delete(id);
      list.committed([entry]);
      revisions.appended([entry]);
    },
    count: () => listed.size,
    isListed: (certificateId) => listed.has(certificateId),
    isCompromised: (nodePublicKey) => compromised.has(nodePublicKey),
    takeLoaded,
    endLoading() {
      withoutPause(takeLoaded());
      loaded = null;
      revisions.restored(taken, storedSequence);
      taken = [];
    },
  };
}

/** `issuer` is the key that signs the list. */
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
  // It is kept for good, and was put together from some twenty parts.
  return { id: certificateId, text: detached(text) };
}

/** Certificates that one unit revokes are sorted by id. */
export function inListOrder(a: NumberedEntry, b: NumberedEntry): number {
  return a.sequence - b.sequence || compareCodePoints(a.entry.id, b.entry.id);
}

/** Hex SHA-256 over the issuer's key, a line feed and the canonical entries, joined with commas. */
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
