import type { Sha256, Signer } from '../crypto/primitives.ts';

/** Who makes and signs a record, and when: all that a builder takes from outside its input. */
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

/** What a builder says instead of a record: why the input allows none. */
export interface Unbuilt<Cause extends string> {
  readonly unbuilt: Cause;
}
