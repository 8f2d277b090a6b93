/** The key of the authority for a thread or a process: from a seed that it is given, or from a signer that it asks. */
import { signerFromSeed } from '../../base/crypto/ed25519.ts';
import { systemRuntime } from '../../base/runtime.ts';
import {
  type AuthoritySigner,
  heldHere,
  type KeySource,
} from '../../base/signer/authority-signer.ts';
import { type SignerNotes, startSignerThread } from './signer-thread.ts';

/** Resolves when signatures can be had; rejects with one sentence. */
export async function openSigner(source: KeySource, notes = NO_NOTES): Promise<AuthoritySigner> {
  if (source.kind === 'signer') return startSignerThread(source.address, notes);
  return heldHere(signerFromSeed(Buffer.from(source.seed)));
}

/** A signature that cannot be had is reported by the caller, and a thread that fails ends the one that asks it. */
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
