/**
 * The cryptography that records need, as types only. Callers pass the implementation: libsodium and OpenSSL in the
 * server, portable code where native code cannot be loaded.
 */

/** Whether the base64 signature over the UTF-8 text, or over bytes, verifies under the base64 public key. */
export type VerifySignature = (
  publicKey: string,
  text: string | Uint8Array,
  signature: string,
) => boolean;

export interface Signer {
  /** Base64 of the 32-byte public key. */
  readonly publicKey: string;
  /** Base64 of the 64-byte signature over the UTF-8 text, or over bytes. */
  sign(text: string | Uint8Array): string;
}

/** A key, and the label of its signatures. */
export interface LabeledSigner extends Signer {
  readonly keyId: string;
}

/** The keys that sign the records of a sovereign: the key that they name as their issuer, and maybe one more. */
export interface RecordSigner extends LabeledSigner {
  /** The key before this one, which signs as well until everyone who knows only that key has followed. */
  readonly previous: LabeledSigner | null;
  /** Whether the previous key is the younger one: it had taken over, and was rolled back. */
  readonly isRolledBack?: boolean;
}

/** SHA-256 of bytes, or of a text as UTF-8. */
export interface Sha256 {
  bytes(data: string | Uint8Array): Uint8Array;
  /** In lower-case hex. */
  hex(data: string | Uint8Array): string;
}
