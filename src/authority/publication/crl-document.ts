/**
 * The bytes of a certificate revocation list (wire rules 5.5), put together by hand in canonical order:
 * to serialise a long list again for each revocation would be the whole cost of it.
 */

import type { PublishedDocument } from '../../contract/documents.ts';
import { sha256Hex } from '../../crypto/digest.ts';
import type { Signer } from '../../crypto/ed25519.ts';
import { canonicalJson } from '../../json/write.ts';
import { formatInstant } from '../../timestamp.ts';

/** Instants are milliseconds since the epoch. */
export interface CrlHead {
  readonly sequence: number;
  readonly crlId: string;
  readonly issuedAt: number;
  readonly nextUpdate: number;
}

export interface CrlIssuer extends Signer {
  /** Label of the key in the signature. */
  readonly keyId: string;
}

/** Shared memory of at least so many bytes for one document. */
export type AllocateBytes = (length: number) => Buffer;

const SIGNATURE_OF_NOTHING = 'A'.repeat(88);

/** `entries` is the canonical text of the entries, joined with commas. */
export function crlDocument(
  issuer: CrlIssuer,
  head: CrlHead,
  entries: Uint8Array,
  buffer: AllocateBytes = allocateShared,
): PublishedDocument {
  const before = textBefore(issuer, head);
  const after = `],"sequence":${head.sequence}`;
  const signedLength = before.length + entries.length + after.length + 1;
  const length = signedLength - 1 + closing(issuer, SIGNATURE_OF_NOTHING).length;
  const bytes = buffer(length).subarray(0, length);
  bytes.write(before, 0, 'latin1');
  bytes.set(entries, before.length);
  bytes.write(`${after}}`, before.length + entries.length, 'latin1');
  // The signed text is the document without its signatures: signed where it stands, then continued.
  const end = closing(issuer, issuer.sign(bytes.subarray(0, signedLength)));
  bytes.write(end, signedLength - 1, 'latin1');
  return { bytes, etag: etagOf(end), freshUntil: head.nextUpdate };
}

/** All of it is ASCII, as canonical JSON is: a character is a byte. */
function textBefore({ publicKey }: CrlIssuer, { crlId, issuedAt, nextUpdate }: CrlHead): string {
  return (
    `{"crl_id":${canonicalJson(crlId)}` +
    `,"issued_at":${canonicalJson(formatInstant(issuedAt))}` +
    `,"issuer":${canonicalJson(publicKey)}` +
    `,"next_update":${canonicalJson(formatInstant(nextUpdate))}` +
    ',"revoked_certificates":['
  );
}

function closing({ keyId }: CrlIssuer, signature: string): string {
  return `,"signatures":[${canonicalJson({ key_id: keyId, sig: signature })}]}`;
}

/** The signature already stands for every byte before it. */
function etagOf(end: string): string {
  return `"${sha256Hex(end).slice(0, 32)}"`;
}

function allocateShared(length: number): Buffer {
  return Buffer.from(new SharedArrayBuffer(length));
}
