/** Where a signer listens: a socket on this machine, which not everybody may use [signer-1]. */
import { statSync } from 'node:fs';

const ADDRESS = /^unix:(\/.+)$/;
/** What the system takes as the path of a socket, without its end. */
const LONGEST_PATH = 107;
const OTHERS = 0o007;

/** The path in `unix:/path`; null when the text is no such address. */
export function socketPath(address: string): string | null {
  const path = ADDRESS.exec(address)?.[1];
  return path !== undefined && Buffer.byteLength(path) <= LONGEST_PATH ? path : null;
}

export interface SocketProblem {
  readonly sentence: string;
  /** Whether it stays so until somebody mends it, as an absent socket does not. */
  readonly isLasting: boolean;
}

/** Null when there is a socket that not every user of the machine can use. */
export function problemOf(path: string): SocketProblem | null {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return { sentence: `there is no ${path}`, isLasting: false };
  if (!found.isSocket()) return { sentence: `${path} is no socket`, isLasting: true };
  if ((found.mode & OTHERS) === 0) return null;
  const sentence = `every user of this machine can use ${path}; run chmod o= ${path}`;
  return { sentence, isLasting: true };
}
