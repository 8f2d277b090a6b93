/**
 * Selective disclosure: a commitment to a set of capabilities, the proof that one is in it, and the
 * nullifier that ends the use of such a proof [trust-2-12] to [trust-2-14], [trust-4-5], [trust-6-4],
 * [trust-6-5].
 */
import Type, { type Static } from 'typebox';
import type { Sha256, VerifySignature } from '../../base/crypto/primitives.ts';
import { canonicalJson, compareCodePoints } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import {
  type AgreementProblem,
  type AgreementRecord,
  agreementProblem,
  type TreatyKeys,
} from './agreement.ts';
import { type BuildFailure, type Issuer, keysOf } from './issuer.ts';
import {
  Datetime,
  FreshDatetime,
  FreshId,
  MAX_PATH_NODES,
  nullable,
  recordReader,
  SignatureItem,
} from './record.ts';
import { isSinglySignedByAny, signSingly } from './signed-record.ts';

/**
 * The Merkle tree over a set of capabilities [trust-3-3]. Only the length of a path distinguishes leaves
 * from inner nodes, so a path whose length does not match the count proves nothing.
 */

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

/** How long a nullifier may be presented, in milliseconds. */
const NULLIFIER_VALIDITY = 60_000;
/** Bytes of the random nonce of a nullifier, which is written in hex. */
export const NULLIFIER_NONCE_BYTES = 16;

export const CapabilityCommitment = Type.Object({
  commitment_id: FreshId,
  merkle_root: Type.String(),
  /** The number of leaves before padding, including duplicates. */
  capability_count: Type.Integer(),
  agreement_id: Type.String(),
  committed_at: FreshDatetime,
  /** The network writes the key id of the issuer here. */
  issuer_sovereign_id: Type.String(),
  signature: nullable(SignatureItem),
});
export type CapabilityCommitment = Static<typeof CapabilityCommitment>;

export const readCapabilityCommitment = recordReader(CapabilityCommitment);

/** Unsigned, so its ids, prover and time prove nothing. */
export const CapabilityMembershipProof = Type.Object({
  proof_id: FreshId,
  commitment_id: Type.String(),
  revealed_capability: Type.String(),
  leaf_hash: Type.String(),
  merkle_path: Type.Array(Type.Object({ sibling_hash: Type.String(), is_left: Type.Boolean() }), {
    maxItems: MAX_PATH_NODES,
  }),
  prover_sovereign_id: Type.String(),
  proved_at: FreshDatetime,
});
export type CapabilityMembershipProof = Static<typeof CapabilityMembershipProof>;

export const readCapabilityMembershipProof = recordReader(CapabilityMembershipProof);

export const CapabilityNullifier = Type.Object({
  nullifier_id: FreshId,
  proof_id: Type.String(),
  nonce: Type.String(),
  issued_at: FreshDatetime,
  expires_at: Datetime,
  /** The network writes the key id of the signer here. */
  prover_sovereign_id: Type.String(),
  signature: nullable(SignatureItem),
});
export type CapabilityNullifier = Static<typeof CapabilityNullifier>;

export type CommitProblem = 'empty_capability' | 'capability_not_agreed' | AgreementProblem;

/** A setting decides whether capabilities may go beyond those of the agreement. */
export function buildCommitment(
  issuer: Issuer,
  agreement: AgreementRecord,
  capabilities: readonly string[],
  withinAgreement: boolean,
  treatyKeys: TreatyKeys,
  verify: VerifySignature,
): CapabilityCommitment | BuildFailure<CommitProblem> {
  if (capabilities.includes('')) return { unbuilt: 'empty_capability' };
  const agreed = new Set(agreement.agreed_terms.capabilities);
  if (withinAgreement && !capabilities.every((capability) => agreed.has(capability))) {
    return { unbuilt: 'capability_not_agreed' };
  }
  const problem = agreementProblem(issuer, agreement, treatyKeys, verify);
  if (problem !== null) return { unbuilt: problem };
  const commitment = {
    commitment_id: issuer.uuid(),
    merkle_root: merkleRoot(capabilities, issuer.sha256),
    capability_count: capabilities.length,
    agreement_id: agreement.agreement_id,
    committed_at: formatInstant(issuer.now),
    issuer_sovereign_id: issuer.keyId,
  };
  return signSingly(commitment, keysOf(issuer));
}

export interface Disclosure {
  readonly commitmentId: string;
  readonly capability: string;
  readonly capabilities: readonly string[];
  readonly prover: string;
}

/** Built only from the given list; verification shows whether that is the committed one. */
export function proveMembership(
  { commitmentId, capability, capabilities, prover }: Disclosure,
  proofId: string,
  now: number,
  sha256: Sha256,
): CapabilityMembershipProof | null {
  const path = merklePath(capabilities, capability, sha256);
  if (path === null) return null;
  return {
    proof_id: proofId,
    commitment_id: commitmentId,
    revealed_capability: capability,
    leaf_hash: leafHash(capability, sha256),
    merkle_path: path.map(({ sibling_hash, is_left }) => ({ sibling_hash, is_left })),
    prover_sovereign_id: prover,
    proved_at: formatInstant(now),
  };
}

export const DISCLOSURE_REASONS = [
  'commitment_not_signed',
  'commitment_invalid_signature',
  'path_length_inconsistent',
  'leaf_hash_mismatch',
  'root_mismatch',
  'valid',
] as const;
export type DisclosureReason = (typeof DISCLOSURE_REASONS)[number];

export function verifyMembership(
  proof: CapabilityMembershipProof,
  commitment: CapabilityCommitment,
  issuerKeys: readonly string[],
  verify: VerifySignature,
  sha256: Sha256,
): DisclosureReason {
  if (commitment.signature === null) return 'commitment_not_signed';
  if (!isSinglySignedByAny(commitment, issuerKeys, verify)) return 'commitment_invalid_signature';
  const { capability_count: count, merkle_root: root } = commitment;
  if (count < 1 || proof.merkle_path.length !== pathLength(count)) {
    return 'path_length_inconsistent';
  }
  if (!revealsItsLeaf(proof, sha256)) return 'leaf_hash_mismatch';
  const isMember =
    proof.commitment_id === commitment.commitment_id &&
    rootOfPath(proof.leaf_hash, proof.merkle_path, sha256) === root;
  return isMember ? 'valid' : 'root_mismatch';
}

/** Padding leaves are leaves of the empty text, which therefore cannot be a capability. */
export function revealsItsLeaf(proof: CapabilityMembershipProof, sha256: Sha256): boolean {
  const { revealed_capability: revealed, leaf_hash } = proof;
  return revealed !== '' && leaf_hash === leafHash(revealed, sha256);
}

/** Hex SHA-256 of the canonical proof, for the audit trail. */
export function membershipProofDigest(proof: CapabilityMembershipProof, sha256: Sha256): string {
  return sha256.hex(canonicalJson(proof));
}

export function buildNullifier(
  issuer: Issuer,
  proof: CapabilityMembershipProof,
  nonce: string,
): CapabilityNullifier {
  const nullifier = {
    nullifier_id: issuer.uuid(),
    proof_id: proof.proof_id,
    nonce,
    issued_at: formatInstant(issuer.now),
    expires_at: formatInstant(issuer.now + NULLIFIER_VALIDITY),
    prover_sovereign_id: issuer.keyId,
  };
  return signSingly(nullifier, keysOf(issuer));
}
