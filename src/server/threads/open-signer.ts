/** The authority key for a thread or process: from a seed that it receives, or through a signer process. */
import { signerFromSeed } from '../../base/crypto/ed25519.ts';
import { systemRuntime } from '../../base/runtime.ts';
import {
  type AuthoritySigner,
  createAuthoritySigner,
  heldHere,
  type KeySource,
  type LabeledKey,
} from '../../base/signer/authority-signer.ts';
import { type SignerNotes, startSignerThread } from './signer-thread.ts';

/** Resolves when the signer is available; rejects with a one-sentence error. */
export async function openSigner(
  source: KeySource,
  key: LabeledKey,
  notes = NO_NOTES,
): Promise<AuthoritySigner> {
  const holder =
    source.kind === 'signer'
      ? await startSignerThread(source.address, notes)
      : heldHere([signerFromSeed(Buffer.from(source.seed))]);
  return createAuthoritySigner(holder, key);
}

/** The caller reports missing signatures, and a failed signer thread ends the thread that uses it. */
const NO_NOTES: SignerNotes = {
  available: () => undefined,
  unavailable: () => undefined,
  refused: () => undefined,
  asked: () => undefined,
  failed(cause) {
    throw cause;
  },
  elapsed: systemRuntime.elapsed,
};
