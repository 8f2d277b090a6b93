import type { Sha256, Signer } from '../../base/crypto/primitives.ts';

/** The signer and time of a record: everything that a builder needs in addition to its input. */
export interface Issuer {
  readonly sovereignId: string;
  /** Label of the signing key. */
  readonly keyId: string;
  readonly signer: Signer;
  readonly sha256: Sha256;
  /** Milliseconds since the epoch. */
  readonly now: number;
  uuid(): string;
}

/** The result of a builder if no record can be built from the input: the reason. */
export interface BuildFailure<Cause extends string> {
  readonly unbuilt: Cause;
}
