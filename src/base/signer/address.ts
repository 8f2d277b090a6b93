/** Where a signer listens: a socket on this machine that not every user may open [signer-1]. */
import { statSync } from 'node:fs';

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
