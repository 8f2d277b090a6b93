/**
 * The versions of the revocation list as edges need them to serve what one version added to another
 * [core-5-5-1]: where each ends, and what is signed of the newest.
 */

import { parseJson } from '../../base/json/parse.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { type PublishedDocument, publishedDocument } from '../../protocol/contract/documents.ts';
import {
  KEPT_REVISIONS,
  noteEnd,
  type RevisionEnds,
} from '../../protocol/contract/revision-ends.ts';
import type { SignatureItem } from '../../protocol/records/record.ts';
import { type Revision, revisionText } from '../../protocol/records/revocation-list-delta.ts';
import { signatureOver } from '../../protocol/records/signed-record.ts';
import type { CrlHead, ListEntry, ListSigner } from './list-document.ts';

/** An entry, with the first version that has it. */
export interface NumberedEntry {
  readonly sequence: number;
  readonly entry: ListEntry;
}

export interface RevisionLog {
  /** Entries were appended to the list; the versions that have them follow. */
  appended(entries: readonly ListEntry[]): void;
  /** The version with everything appended so far. */
  issued(sequence: number): void;
  /** The list as it was stored: all entries in their order, and the newest version. */
  restored(entries: readonly NumberedEntry[], newest: number): void;
}

export function createRevisionLog(ends: RevisionEnds): RevisionLog {
  let end = 0;

  function append({ text }: ListEntry): void {
    // Canonical JSON is ASCII, and a comma precedes all entries but the first.
    end += end === 0 ? text.length : 1 + text.length;
  }

  return {
    appended: (entries) => entries.forEach(append),
    issued: (sequence) => noteEnd(ends, sequence, end),
    restored(entries, newest) {
      let next = 0;
      for (let sequence = Math.max(0, newest - KEPT_REVISIONS); sequence <= newest; sequence += 1) {
        for (; (entries[next]?.sequence ?? Infinity) <= sequence; next += 1) {
          append((entries[next] as NumberedEntry).entry);
        }
        noteEnd(ends, sequence, end);
      }
    },
  };
}

const SIGNATURES = ',"signatures":';

/** What edges add to the entries: the signed members of a version and their signature, as canonical JSON. */
export function revisionDocument(
  { bytes, freshUntil }: PublishedDocument,
  { crlId, sequence, issuedAt, nextUpdate, digest }: CrlHead,
  signer: ListSigner,
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
  const signature = signatureOver(revisionText(revision), signer, signer.keyId);
  return publishedDocument(canonicalJson({ ...revision, signature }), freshUntil);
}
