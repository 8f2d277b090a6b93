/** What an authority and its signer say to each other by HTTP, and the texts that show that a signer signs [signer-2]. */
import { statSync } from 'node:fs';

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

/** Where a signer listens: a socket on this machine that not every user may open [signer-1]. */

const ADDRESS = /^unix:(\/.+)$/;
/** The longest socket path that the system accepts, without the terminating zero. */
const LONGEST_PATH = 107;
const OTHERS = 0o007;

/** The path in `unix:/path`; null if the text does not have this form. */
export function socketPath(address: string): string | null {
  const path = ADDRESS.exec(address)?.[1];
  return path !== undefined && Buffer.byteLength(path) <= LONGEST_PATH ? path : null;
}

export interface SocketProblem {
  readonly sentence: string;
  /** Whether someone has to fix the problem; an absent socket may still appear. */
  readonly isLasting: boolean;
}

/** Null when there is a socket that not every user of the machine can use. */
export function problemOf(path: string): SocketProblem | null {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return { sentence: `there is no ${path}`, isLasting: false };
  if (!found.isSocket()) return { sentence: `${path} is not a socket`, isLasting: true };
  if ((found.mode & OTHERS) === 0) return null;
  const sentence = `every user of this machine can use ${path}; run chmod o= ${path}`;
  return { sentence, isLasting: true };
}
