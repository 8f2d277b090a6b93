import type { LabeledSigner, RecordSigner, Sha256, Signer } from '../../base/crypto/primitives.ts';

/** The signer and time of a record: everything that a builder needs in addition to its input. */
export interface Issuer {
  readonly sovereignId: string;
  /** Label of the signing key. */
  readonly keyId: string;
  readonly signer: Signer;
  /** The key before this one, if it signs as well. */
  readonly previous?: LabeledSigner | null;
  /** Whether that key is the younger one. */
  readonly isRolledBack?: boolean;
  /** All keys of the issuer whose signatures count; by default those that sign. */
  readonly trusted?: readonly string[];
  readonly sha256: Sha256;
  /** Milliseconds since the epoch. */
  readonly now: number;
  uuid(): string;
}

/** The keys with which the issuer signs records. */
export function keysOf(issuer: Issuer): RecordSigner {
  const { signer, keyId, previous = null, isRolledBack = false } = issuer;
  const sign = (text: string | Uint8Array) => signer.sign(text);
  return { publicKey: signer.publicKey, keyId, sign, previous, isRolledBack };
}

/** The keys under which records of this issuer verify. */
export function publicKeysOf({ signer, previous, trusted }: Issuer): readonly string[] {
  if (trusted !== undefined) return trusted;
  return previous ? [signer.publicKey, previous.publicKey] : [signer.publicKey];
}

/** The result of a builder if no record can be built from the input: the reason. */
export interface BuildFailure<Cause extends string> {
  readonly unbuilt: Cause;
}
