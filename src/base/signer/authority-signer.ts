/** The key of the authority as the service uses it: held in this process, or by a separate signer process. */
import type { Signer } from '../crypto/primitives.ts';
import type { SignerAddress } from './connection.ts';

/** Where signatures come from; passed to a thread or a separate process so that it can sign on its own. */
export type KeySource =
  | { readonly kind: 'seed'; readonly seed: Uint8Array }
  | { readonly kind: 'signer'; readonly address: SignerAddress };

export interface AuthoritySigner extends Signer {
  /** Base64 of the 64-byte signature; throws `signer_unavailable` if none can be obtained. */
  sign(text: string | Uint8Array): string;
  /** Whether the signer is available, as far as is known without asking it. */
  isAvailable(): boolean;
  /** Asks the signer; throws `signer_unavailable` if it does not sign now. */
  assertAvailable(): void;
  /** Stops signing; resolves when everything is released. */
  close(): Promise<void>;
}

/** A signer with the key in the memory of this process is always available. */
export function heldHere(signer: Signer): AuthoritySigner {
  return {
    ...signer,
    isAvailable: () => true,
    assertAvailable: () => undefined,
    close: () => Promise.resolve(),
  };
}
