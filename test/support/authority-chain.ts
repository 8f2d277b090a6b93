/** Chains of authority keys, built from numbered keys [authority-keys-2]. */
import { SHA256 } from '../../src/base/crypto/digest.ts';
import { signerFromSeed, verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import {
  type AuthoritySuccession,
  proveSuccession,
  type SuccessionKind,
  type SuccessionTerms,
  signAsFromKey,
  signAsRoot,
  successionDigest,
} from '../../src/protocol/records/authority-succession.ts';

export const NETWORK = 'alpha';
export const GENESIS_DIGEST = 'ab'.repeat(32);
export const TOOLS = { verify: verifySignature, sha256: SHA256 };
export const HOUR = 3_600_000;
export const START = Date.parse('2026-01-01T00:00:00Z');

const made = new Map<number, Signer>();

/**
 * The key whose seed contains the 32 byte values from 32 times the number on, as in the vectors. From 8 on, the seed
 * repeats the number.
 */
export function countedKey(number: number): Signer {
  const seed = () =>
    number < 8
      ? Buffer.from(Array.from({ length: 32 }, (_, index) => 32 * number + index))
      : Buffer.alloc(32, number);
  const key = made.get(number) ?? signerFromSeed(seed());
  made.set(number, key);
  return key;
}

export const ROOT = countedKey(0);
export const FIRST = countedKey(1);

/** Times are in hours from the start. */
export interface Step {
  readonly kind: SuccessionKind;
  readonly at: number;
  /** Only for a planned step. */
  readonly overlap?: number;
}

/** The terms of a step that follows these statements. */
export function termsOf(
  { kind, at, overlap = 10 }: Step,
  before: readonly AuthoritySuccession[],
  genesisDigest = GENESIS_DIGEST,
): SuccessionTerms {
  const previous = before.at(-1);
  const isCompromise = kind === 'compromise';
  const activates_at = formatInstant(START + at * HOUR);
  const number = before.length + 1;
  return {
    succession_id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
    network_name: NETWORK,
    root_public_key: ROOT.publicKey,
    sequence: number,
    previous_digest: previous === undefined ? genesisDigest : successionDigest(previous, SHA256),
    kind,
    from_key: previous?.to_key ?? FIRST.publicKey,
    to_key: kind === 'roll_back' ? (previous?.from_key ?? '') : countedKey(number + 1).publicKey,
    issued_at: formatInstant(START + (at - 5) * HOUR),
    activates_at,
    overlap_until: isCompromise ? activates_at : formatInstant(START + (at + overlap) * HOUR),
    distrusted_from: isCompromise ? formatInstant(START + (at - 1) * HOUR) : null,
  };
}

const KEYS = Array.from({ length: 40 }, (_, number) => countedKey(number));

export function signerOf(publicKey: string): Signer {
  const found = KEYS.find((key) => key.publicKey === publicKey);
  if (found === undefined) throw new Error(`No counted key is ${publicKey}`);
  return found;
}

/** Signs the statement with everything that its kind requires; other keys can be given instead of the right ones. */
export function signedStatement(
  terms: SuccessionTerms,
  {
    root = ROOT,
    from = signerOf(terms.from_key),
    to = signerOf(terms.to_key),
  }: { readonly root?: Signer; readonly from?: Signer; readonly to?: Signer } = {},
): AuthoritySuccession {
  const proven = proveSuccession(terms, to, SHA256);
  return signAsRoot(terms.kind === 'compromise' ? proven : signAsFromKey(proven, from), root);
}

export function chainOf(
  steps: readonly Step[],
  genesisDigest = GENESIS_DIGEST,
): AuthoritySuccession[] {
  const chain: AuthoritySuccession[] = [];
  for (const step of steps) chain.push(signedStatement(termsOf(step, chain, genesisDigest)));
  return chain;
}

/** A chain of another network; the times of its steps are in hours from `start`. */
export function chainAt(
  start: number,
  network_name: string,
  steps: readonly Step[],
): AuthoritySuccession[] {
  const chain: AuthoritySuccession[] = [];
  const moved = (time: string) => formatInstant(Date.parse(time) - START + start);
  for (const step of steps) {
    const { issued_at, activates_at, overlap_until, distrusted_from, ...terms } = termsOf(
      step,
      chain,
    );
    const times = {
      issued_at: moved(issued_at),
      activates_at: moved(activates_at),
      overlap_until: moved(overlap_until),
      distrusted_from: distrusted_from === null ? null : moved(distrusted_from),
    };
    chain.push(signedStatement({ ...terms, ...times, network_name }));
  }
  return chain;
}
