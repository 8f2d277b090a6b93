/** The authority keys for a thread or process: from seeds that it receives, or through a signer process. */
import { signerFromSeed } from '../../base/crypto/ed25519.ts';
import type { RecordSigner, Signer } from '../../base/crypto/primitives.ts';
import { systemRuntime } from '../../base/runtime.ts';
import {
  heldHere,
  type KeyHolder,
  type KeySource,
  type SigningKeys,
  signerWith,
} from '../../base/signer/authority-signer.ts';
import { type SignerNotes, startSignerThread } from './signer-thread.ts';

export interface OpenSigner {
  readonly signer: RecordSigner;
  close(): Promise<void>;
}

/** Resolves when the signer is available; rejects with a one-sentence error. */
export async function openSigner(
  source: KeySource,
  keys: SigningKeys,
  fromSeed: (seed: Buffer) => Signer = signerFromSeed,
): Promise<OpenSigner> {
  const holder =
    source.kind === 'seeds'
      ? heldHere(() => source.seeds.map((seed) => fromSeed(Buffer.from(seed))))
      : await openSignerProcess(source.path, keys);
  return { signer: signerWith(holder, keys), close: holder.close };
}

function openSignerProcess(path: string, { current, previous }: SigningKeys): Promise<KeyHolder> {
  const publicKeys = [current, ...(previous === null ? [] : [previous])].map(
    ({ publicKey }) => publicKey,
  );
  return startSignerThread({ path, publicKeys }, NO_NOTES);
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
