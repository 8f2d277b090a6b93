/** What an authority and its signer say to each other by HTTP, and the texts that show that a signer signs [signer-2]. */

/** Names the key that is to sign, in base64. */
export const KEY_HEADER = 'x-mesh-key';

/** The longest text, in bytes: a revocation list of a million entries. */
export const MOST_BYTES = 256 * 1024 ** 2;
/** The longest answer with keys, a signature or a reason. */
export const MOST_ANSWER_BYTES = 4096;

/** No record begins with this text, so the signature is useless elsewhere. */
const LABEL = 'mesh-na signer 1';

export const CHALLENGE_BYTES = 32;

/** The text a signer signs to prove that it holds the key; `nonce` has 32 bytes. */
export function challengeText(nonce: Uint8Array): string {
  return `${LABEL}\n${Buffer.from(nonce).toString('hex')}`;
}

/** A text without meaning that an authority has signed to check that the signer is alive. */
export const PROBE = `${LABEL}\nprobe`;
