/** The key of the authority as the service uses it: held in this process, or by a separate signer process. */
import type { Signer } from '../crypto/primitives.ts';
import type { SignerAddress } from './connection.ts';

/** Where signatures come from; passed to a thread or a separate process so that it can sign by itself. */
export type KeySource =
  | { readonly kind: 'seed'; readonly seed: Uint8Array }
  | { readonly kind: 'signer'; readonly address: SignerAddress };

export interface AuthoritySigner extends Signer {
  /** Base64 of the 64-byte signature; throws `signer_unavailable` when none can be had. */
  sign(text: string | Uint8Array): string;
  /** Whether signatures can be had, as far as is known without asking. */
  isAvailable(): boolean;
  /** Asks; throws `signer_unavailable` when no signature can be had now. */
  assertAvailable(): void;
  /** Signs no more; resolves when nothing of it is left. */
  close(): Promise<void>;
}

/** A key in the memory of this process signs at any time. */
export function heldHere(signer: Signer): AuthoritySigner {
  return {
    ...signer,
    isAvailable: () => true,
    assertAvailable: () => undefined,
    close: () => Promise.resolve(),
  };
}
