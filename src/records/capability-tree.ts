/**
 * The Merkle tree over a set of capabilities [trust-3-3]. Leaves and inner nodes are distinguished
 * by the length of a path alone, so a path of another length than the count demands proves nothing.
 */
import { sha256, sha256Hex } from '../crypto/digest.ts';
import { compareCodePoints } from '../json/write.ts';

export interface PathNode {
  /** 64 hex digits; ours are lower case. */
  readonly sibling_hash: string;
  readonly is_left: boolean;
}

const PADDING = sha256('');
const HASH = /^[0-9a-f]{64}$/i;

/** Hex hash of a capability as a leaf. */
export function leafHash(capability: string): string {
  return sha256Hex(capability);
}

/** Hex root over at least one capability; repeats are leaves of their own. */
export function merkleRoot(capabilities: readonly string[]): string {
  const [root = PADDING] = levelsOf(sortedByCodePoint(capabilities)).at(-1) ?? [];
  return root.toString('hex');
}

/** The path of a capability's first occurrence up to the root; null when it is not among them. */
export function merklePath(capabilities: readonly string[], capability: string): PathNode[] | null {
  const sorted = sortedByCodePoint(capabilities);
  let index = sorted.indexOf(capability);
  if (index === -1) return null;
  const path: PathNode[] = [];
  for (const level of levelsOf(sorted).slice(0, -1)) {
    const sibling = level[index ^ 1] ?? PADDING;
    path.push({ sibling_hash: sibling.toString('hex'), is_left: index % 2 === 1 });
    index >>= 1;
  }
  return path;
}

/** How long the path of each of `count` capabilities is: the bits of `count - 1`. */
export function pathLength(count: number): number {
  return count <= 1 ? 0 : (count - 1).toString(2).length;
}

/** Hex root that the path leads to from the hex hash of a leaf; null when a sibling is not a hash. */
export function rootOfPath(leaf: string, path: readonly PathNode[]): string | null {
  let current = leaf;
  for (const { sibling_hash, is_left } of path) {
    if (!HASH.test(sibling_hash)) return null;
    const pair = is_left ? sibling_hash + current : current + sibling_hash;
    current = sha256Hex(Buffer.from(pair, 'hex'));
  }
  return current;
}

/** All levels, leaves first, each padded to a power of two. */
function levelsOf(sorted: readonly string[]): Buffer[][] {
  let level = sorted.map((capability) => sha256(capability));
  while (level.length < 2 ** pathLength(sorted.length)) level.push(PADDING);
  const levels = [level];
  while (level.length > 1) {
    level = pairs(level).map(([left, right]) => parent(left, right));
    levels.push(level);
  }
  return levels;
}

function sortedByCodePoint(capabilities: readonly string[]): string[] {
  return [...capabilities].sort(compareCodePoints);
}

function pairs(level: readonly Buffer[]): [Buffer, Buffer][] {
  const found: [Buffer, Buffer][] = [];
  for (let i = 0; i + 1 < level.length; i += 2) {
    found.push([level[i] as Buffer, level[i + 1] as Buffer]);
  }
  return found;
}

function parent(left: Buffer, right: Buffer): Buffer {
  return sha256(Buffer.concat([left, right]));
}
