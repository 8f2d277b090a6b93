/**
 * The Merkle tree over a set of capabilities [trust-3-3]. Only the length of a path distinguishes leaves
 * from inner nodes, so a path whose length does not match the count proves nothing.
 */
import type { Sha256 } from '../../base/crypto/primitives.ts';
import { compareCodePoints } from '../../base/json/write.ts';

export interface PathNode {
  /** 64 hex digits; lower case in proofs made here. */
  readonly sibling_hash: string;
  readonly is_left: boolean;
}

const HASH = /^[0-9a-f]{64}$/i;

/** Hex hash of a capability as a leaf. */
export function leafHash(capability: string, sha256: Sha256): string {
  return sha256.hex(capability);
}

/** The hex root over at least one capability; duplicates get separate leaves. */
export function merkleRoot(capabilities: readonly string[], sha256: Sha256): string {
  const [root = padding(sha256)] = levelsOf(sortedByCodePoint(capabilities), sha256).at(-1) ?? [];
  return toHex(root);
}

/** The path from a capability's first occurrence to the root; null if it is absent. */
export function merklePath(
  capabilities: readonly string[],
  capability: string,
  sha256: Sha256,
): PathNode[] | null {
  const sorted = sortedByCodePoint(capabilities);
  let index = sorted.indexOf(capability);
  if (index === -1) return null;
  const path: PathNode[] = [];
  for (const level of levelsOf(sorted, sha256).slice(0, -1)) {
    const sibling = level[index ^ 1] ?? padding(sha256);
    path.push({ sibling_hash: toHex(sibling), is_left: index % 2 === 1 });
    index >>= 1;
  }
  return path;
}

/** The length of each path in a tree of `count` capabilities: the number of bits of `count - 1`. */
export function pathLength(count: number): number {
  return count <= 1 ? 0 : (count - 1).toString(2).length;
}

/** The hex root that the path leads to from a leaf's hex hash; null if a sibling is not a hash. */
export function rootOfPath(leaf: string, path: readonly PathNode[], sha256: Sha256): string | null {
  let current = leaf;
  for (const { sibling_hash, is_left } of path) {
    if (!HASH.test(sibling_hash)) return null;
    const pair = is_left ? sibling_hash + current : current + sibling_hash;
    current = sha256.hex(fromHex(pair));
  }
  return current;
}

/** All levels, leaves first, each padded to a power of two. */
function levelsOf(sorted: readonly string[], sha256: Sha256): Uint8Array[][] {
  let level = sorted.map((capability) => sha256.bytes(capability));
  const filler = padding(sha256);
  while (level.length < 2 ** pathLength(sorted.length)) level.push(filler);
  const levels = [level];
  while (level.length > 1) {
    level = pairs(level).map(([left, right]) => parent(left, right, sha256));
    levels.push(level);
  }
  return levels;
}

function sortedByCodePoint(capabilities: readonly string[]): string[] {
  return [...capabilities].sort(compareCodePoints);
}

function pairs(level: readonly Uint8Array[]): [Uint8Array, Uint8Array][] {
  const found: [Uint8Array, Uint8Array][] = [];
  for (let i = 0; i + 1 < level.length; i += 2) {
    found.push([level[i] as Uint8Array, level[i + 1] as Uint8Array]);
  }
  return found;
}

function parent(left: Uint8Array, right: Uint8Array, sha256: Sha256): Uint8Array {
  const pair = new Uint8Array(left.length + right.length);
  pair.set(left);
  pair.set(right, left.length);
  return sha256.bytes(pair);
}

/** The leaf of the empty text. */
function padding(sha256: Sha256): Uint8Array {
  return sha256.bytes('');
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Decodes digits that were already checked. A number parser would take seven times as long for the path of a proof. */
function fromHex(hex: string): Uint8Array {
  const bytes = new Uint8Array(hex.length / 2);
  for (let i = 0; i < bytes.length; i += 1) {
    bytes[i] = digitOf(hex.charCodeAt(2 * i)) * 16 + digitOf(hex.charCodeAt(2 * i + 1));
  }
  return bytes;
}

/** The low bits of letters start at one, and letters of both cases have a bit that digits lack. */
function digitOf(code: number): number {
  return (code & 0xf) + (code >> 6) * 9;
}
