/** Commitments and proofs of disclosure, computed independently of the program. */
import { createHash } from 'node:crypto';
import type { JsonObject } from '../../src/base/json/value.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { MINUTE } from './clock.ts';
import { freshId } from './trust.ts';
import { type Party, singlySigned } from './trust-protocol.ts';

export const VERIFY = '/disclosure/verify';

/** The hash of the empty text: the padding of the tree, and the leaf of the empty text. */
export const PADDING = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

export function hashOf(...parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
}

/** UTF-8 bytes sort in the same order as code points. */
export function leavesOf(capabilities: readonly string[]): string[] {
  const sorted = capabilities.map((text) => Buffer.from(text)).sort(Buffer.compare);
  const leaves = sorted.map((text) => hashOf(text));
  while (!Number.isInteger(Math.log2(leaves.length))) leaves.push(PADDING);
  return leaves;
}

export function parentOf(left: string, right: string): string {
  return hashOf(Buffer.from(left, 'hex'), Buffer.from(right, 'hex'));
}

export function rootOf(level: readonly string[]): string {
  const [left = '', ...rest] = level;
  if (rest.length === 0) return left;
  const half = level.length / 2;
  return parentOf(rootOf(level.slice(0, half)), rootOf(level.slice(half)));
}

/** The path from the leaf at the index upward: the root of each half that does not contain the leaf. */
export function pathOf(level: readonly string[], index: number): JsonObject[] {
  if (level.length === 1) return [];
  const half = level.length / 2;
  const [left, right] = [level.slice(0, half), level.slice(half)];
  const isLeft = index >= half;
  const sibling = { sibling_hash: rootOf(isLeft ? left : right), is_left: isLeft };
  return [...pathOf(isLeft ? right : left, isLeft ? index - half : index), sibling];
}

export const SET = ['read', 'write', 'audit'];

export function commitmentBy(
  issuer: Party,
  now: number,
  capabilities: readonly string[],
  changes: JsonObject = {},
): JsonObject {
  const record = {
    commitment_id: freshId('commitment'),
    merkle_root: rootOf(leavesOf(capabilities)),
    capability_count: capabilities.length,
    agreement_id: freshId('agreement'),
    committed_at: formatInstant(now),
    issuer_sovereign_id: issuer.key.publicKey,
    ...changes,
  };
  return singlySigned(record, issuer.key);
}

export function proofOf(
  capabilities: readonly string[],
  capability: string,
  changes: JsonObject = {},
): JsonObject {
  const leaves = leavesOf(capabilities);
  const leaf = hashOf(capability);
  return {
    proof_id: freshId('proof'),
    commitment_id: 'commitment',
    revealed_capability: capability,
    leaf_hash: leaf,
    merkle_path: pathOf(leaves, leaves.indexOf(leaf)),
    prover_sovereign_id: 'beta',
    proved_at: '2026-01-15T12:00:00Z',
    ...changes,
  };
}

/** A request to verify that the issuer committed to `write` a minute ago. */
export function verification(
  issuer: Party,
  now: number,
): Record<'commitment' | 'proof', JsonObject> {
  const changes = { commitment_id: 'commitment' };
  const commitment = commitmentBy(issuer, now - MINUTE, SET, changes);
  return { commitment, proof: proofOf(SET, 'write') };
}

export function repeated(length: number, item = 'read'): string[] {
  return Array.from({ length }, () => item);
}
