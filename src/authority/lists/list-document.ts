/**
 * Builds the bytes of the signed lists: the certificate revocation list [core-5-5] and revocation feeds [core-5-10].
 * The members are written in canonical order by hand, because reserializing a long list would account for most of the
 * cost of a revocation.
 */

import type { Crl, SovereignFeed } from '../../../machines/signed-sequence.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { RecordSigner } from '../../base/crypto/primitives.ts';
import { canonicalJson, compareCodePoints } from '../../base/json/write.ts';
import { insertInOrder } from '../../base/ordered-list.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { type PublishedDocument, withHeadroom } from '../../protocol/contract/documents.ts';
import type { SignatureItem } from '../../protocol/records/record.ts';
import { labeledByKey, signaturesOver } from '../../protocol/records/signed-record.ts';

/** How long a list is valid; it is re-issued after half of this time. */
export const LIST_PERIOD = 24 * 3_600_000;

export type CrlHead = { readonly form: 'crl' } & Crl;
/** Of a feed, the document has no digest. */
export type FeedHead = { readonly form: 'feed' } & Omit<SovereignFeed, 'digest'>;
export type ListHead = CrlHead | FeedHead;
export type ListForm = ListHead['form'];

/** One entry of a list: its id and its canonical text. */
export interface ListEntry {
  readonly id: string;
  readonly text: string;
}

/** Allocates shared memory of at least this many bytes for one document. */
export type AllocateBytes = (length: number) => Buffer;

/** The entries of one list, in serialized form. */
export interface ListContent {
  add(entries: readonly ListEntry[]): void;
  document(head: ListHead, signer: RecordSigner, allocate?: AllocateBytes): PublishedDocument;
}

export function createListContent(form: ListForm): ListContent {
  return form === 'crl' ? createCrlContent() : createFeedContent();
}

/** A certificate revocation list keeps its entries in the order in which they were added. */
function createCrlContent(): ListContent {
  let bytes = Buffer.alloc(0);
  let length = 0;

  function append(text: string): void {
    if (length + text.length > bytes.length) {
      const larger = Buffer.alloc(withHeadroom(length + text.length));
      bytes.copy(larger);
      bytes = larger;
    }
    length += bytes.write(text, length, 'latin1');
  }

  return {
    add(entries) {
      if (entries.length === 0) return;
      const joined = entries.map(({ text }) => text).join(',');
      append(length === 0 ? joined : `,${joined}`);
    },
    document(head, signer, allocate) {
      if (head.form !== 'crl') throw new Error('The head is not that of a revocation list');
      const { crlId, issuedAt, nextUpdate, sequence } = head;
      const before =
        `{"crl_id":${canonicalJson(crlId)}` +
        `,"issued_at":${canonicalJson(formatInstant(issuedAt))}` +
        `,"issuer":${canonicalJson(signer.publicKey)}` +
        `,"next_update":${canonicalJson(formatInstant(nextUpdate))}` +
        ',"revoked_certificates":[';
      const parts = [before, bytes.subarray(0, length), `],"sequence":${sequence}`];
      return signedDocument(parts, signer, freshUntil(head), allocate);
    },
  };
}

/** A revocation feed is sorted by id. */
function createFeedContent(): ListContent {
  let sorted: ListEntry[] = [];
  /** Entries added since the last document. */
  let added: ListEntry[] = [];

  function sortIn(): void {
    const [only] = added;
    if (only !== undefined && added.length === 1) insertInOrder(sorted, only, byId);
    else sorted = [...sorted, ...added].sort(byId);
    added = [];
  }

  return {
    add(entries) {
      for (const entry of entries) added.push(entry);
    },
    document(head, signer, allocate) {
      if (head.form !== 'feed') throw new Error('The head is not that of a feed');
      sortIn();
      const { feedId, issuedAt, issuer, sequence } = head;
      const ids = sorted.map(({ id }) => canonicalJson(id));
      const reasons = sorted.map(({ text }, index) => `${ids[index]}:${text}`);
      const text =
        `{"feed_id":${canonicalJson(feedId)}` +
        `,"issued_at":${canonicalJson(formatInstant(issuedAt))}` +
        `,"issued_by":${canonicalJson(signer.publicKey)}` +
        `,"issuer_sovereign_id":${canonicalJson(issuer)}` +
        `,"revocation_reasons":{${reasons.join(',')}}` +
        `,"revoked_attestation_ids":[${ids.join(',')}],"sequence":${sequence}`;
      // A feed’s signatures are labeled with the keys, regardless of their configured labels.
      return signedDocument([text], labeledByKey(signer), freshUntil(head), allocate);
    },
  };
}

/** The instant at which the list must be re-issued. */
function freshUntil({ issuedAt }: ListHead): number {
  return issuedAt + LIST_PERIOD / 2;
}

function byId(a: ListEntry, b: ListEntry): number {
  return compareCodePoints(a.id, b.id);
}

const SIGNATURE_OF_NOTHING = 'A'.repeat(88);

/**
 * `parts` contain the canonical text of all members except `signatures`, which comes last, and without the closing
 * brace.
 */
function signedDocument(
  parts: readonly (string | Uint8Array)[],
  signer: RecordSigner,
  freshUntil: number,
  allocate: AllocateBytes = allocateShared,
): PublishedDocument {
  const signedLength = parts.reduce((sum, { length }) => sum + length, 0) + 1;
  const length = signedLength - 1 + closing(placeholders(signer)).length;
  const bytes = allocate(length).subarray(0, length);
  let at = 0;
  for (const part of [...parts, '}']) {
    // Canonical JSON is ASCII, so each character is one byte.
    if (typeof part === 'string') bytes.write(part, at, 'latin1');
    else bytes.set(part, at);
    at += part.length;
  }
  // The signed text is the document without its signatures, so sign it in place and then append them.
  const end = closing(signaturesOver(bytes.subarray(0, signedLength), signer));
  bytes.write(end, signedLength - 1, 'latin1');
  return { bytes, etag: etagOf(end), freshUntil };
}

function closing(signatures: readonly SignatureItem[]): string {
  return `,"signatures":${canonicalJson(signatures)}}`;
}

/** Signatures of nothing, which are as long as the real ones. */
function placeholders({ keyId, previous }: RecordSigner): SignatureItem[] {
  const labels = previous === null ? [keyId] : [keyId, previous.keyId];
  return labels.map((label) => ({ key_id: label, sig: SIGNATURE_OF_NOTHING }));
}

/** Hashing the end is enough, because the signature covers all bytes before it. */
function etagOf(end: string): string {
  return `"${sha256Hex(end).slice(0, 32)}"`;
}

function allocateShared(length: number): Buffer {
  return Buffer.from(new SharedArrayBuffer(length));
}
