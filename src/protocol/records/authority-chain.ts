/**
 * The chain of successions [authority-keys-2], from a key that a reader trusts to the current authority key. The number
 * of statements is bounded, and checks that need no signature come first, so a hostile chain costs little.
 */
import Type, { type Static } from 'typebox';
import type { Sha256, VerifySignature } from '../../base/crypto/primitives.ts';
import type { JsonValue } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import {
  AuthoritySuccession,
  hasOrderedTimes,
  judgeSignatures,
  MAX_SUCCESSIONS,
  readAuthoritySuccession,
  type SignatureVerdict,
  successionDigest,
} from './authority-succession.ts';
import { instantOf, recordReader } from './record.ts';

export const KEY_STATES = ['next', 'current', 'previous', 'distrusted', 'retired'] as const;
export type KeyState = (typeof KEY_STATES)[number];

export const AuthorityKey = Type.Object({
  public_key: Type.String(),
  state: Type.Enum([...KEY_STATES]),
  since: Type.Union([Type.String(), Type.Null()], {
    description: 'When it became, or will become, the authority key; null for the first one',
  }),
  signs_until: Type.Union([Type.String(), Type.Null()], {
    description:
      'From when on signatures by this key alone are not accepted; null while no end is known',
  }),
});

export type AuthorityKey = Static<typeof AuthorityKey>;

/** The chain as a document. `keys` is not signed; a reader derives the keys from the statements. */
export const AuthorityKeys = Type.Object({
  network_name: Type.String(),
  root_public_key: Type.String(),
  keys: Type.Array(AuthorityKey),
  successions: Type.Array(AuthoritySuccession, { maxItems: MAX_SUCCESSIONS }),
});

export type AuthorityKeys = Static<typeof AuthorityKeys>;

/** Only this much of a document is read here; `followChain` reads the statements. */
const ChainEnvelope = Type.Object({
  successions: Type.Array(Type.Unknown()),
  keys: Type.Optional(Type.Array(Type.Object({ public_key: Type.String(), state: Type.String() }))),
});

export interface ReceivedChain {
  readonly successions: readonly unknown[];
  /** As the authority describes them; not signed. */
  readonly keys?: readonly { readonly public_key: string; readonly state: string }[];
}

export const NO_CHAIN: ReceivedChain = { successions: [] };

/** The chain in a document, as received; null if it has none. */
export const receivedChain: (document: unknown) => ReceivedChain | null =
  recordReader(ChainEnvelope);

/**
 * Hex SHA-256 of the statements as published, as in bulletins [core-5-14] and heartbeats [core-4-4]. It covers the
 * signatures too.
 */
export function authorityKeysDigest(successions: readonly JsonValue[], sha256: Sha256): string {
  return sha256.hex(canonicalJson({ successions }));
}

/** What a reader knows about the network before it follows the chain. */
export interface ChainPin {
  readonly networkName: string;
  readonly trusted:
    | { readonly rootKey: string }
    /** Any current or former authority key, if all later changes were planned. */
    | { readonly authorityKey: string };
  /** The statements in force that were followed before; the chain only grows. */
  readonly known?: readonly AuthoritySuccession[];
  /** Digest of the genesis block before the first succession, if the reader has it [core-5-14]. */
  readonly genesisDigest?: string;
}

export interface ChainTools {
  readonly verify: VerifySignature;
  readonly sha256: Sha256;
}

export type ChainReason =
  | 'too_long'
  | 'malformed'
  | 'wrong_network'
  | 'wrong_root_key'
  | 'gap'
  | 'broken_link'
  | 'wrong_from_key'
  | 'wrong_roll_back'
  | 'unknown_key'
  | 'root_key_needed'
  | 'fork'
  | 'shorter'
  | 'wrong_times'
  | 'key_used_before'
  | Exclude<SignatureVerdict, 'valid'>;

export interface ChainRefusal {
  readonly reason: ChainReason;
  /** The refused statement, counted from 1; null if the whole chain is refused. */
  readonly sequence: number | null;
  /** One sentence that says what is wrong and what to do. */
  readonly message: string;
}

export interface FollowedChain {
  readonly refusal: null;
  /** Null if only an authority key is pinned and no statement names a root key. */
  readonly rootKey: string | null;
  /** The current authority key; null if the chain is empty, so that only the genesis block names it. */
  readonly currentKey: string | null;
  readonly keys: readonly AuthorityKey[];
  readonly successions: readonly AuthoritySuccession[];
  /**
   * The statements in force, to be passed as `known` next time. A statement that is not in force yet may be withdrawn.
   */
  readonly inForce: readonly AuthoritySuccession[];
}

export type ChainVerdict = FollowedChain | { readonly refusal: ChainRefusal };

/** `now` is in milliseconds since the epoch. */
export function followChain(
  pin: ChainPin,
  { successions, keys = [] }: ReceivedChain,
  now: number,
  tools: ChainTools,
): ChainVerdict {
  const { length } = successions;
  if (length > MAX_SUCCESSIONS) return refused('too_long', null, String(length));
  const chain: AuthoritySuccession[] = [];
  for (const [index, each] of successions.entries()) {
    const statement = readAuthoritySuccession(each);
    if (statement === null) return refused('malformed', index + 1);
    const problem = linkProblem(statement, chain, pin, tools);
    if (problem !== null) return refused(problem.reason, index + 1, problem.found);
    chain.push(statement);
  }
  const problem =
    trustProblem(chain, pin.trusted, tools) ?? retreatProblem(chain, pin.known ?? [], tools);
  if (problem !== null) return problem;
  const last = chain.at(-1)?.to_key;
  const isWaiting = keys.some(({ public_key, state }) => public_key === last && state === 'next');
  return followed(chain, pin, { now, most: isWaiting ? length - 1 : length });
}

/** `most` is how many statements may be in force, whatever their times say. */
function followed(
  chain: readonly AuthoritySuccession[],
  { trusted, known = [] }: ChainPin,
  { now, most }: { readonly now: number; readonly most: number },
): FollowedChain {
  // What was known to be in force stays so, even if the clock was set back.
  const count = Math.max(Math.min(inForceAt(chain, now).length, most), known.length);
  const inForce = chain.slice(0, count);
  const pinnedRoot = 'rootKey' in trusted ? trusted.rootKey : null;
  const pinnedKey = 'rootKey' in trusted ? null : trusted.authorityKey;
  const keys =
    chain.length === 0 && pinnedKey !== null
      ? [firstKey(pinnedKey)]
      : keysAt(chain, now, inForce.length);
  return {
    refusal: null,
    rootKey: chain[0]?.root_public_key ?? pinnedRoot,
    currentKey: keys.find(({ state }) => state === 'current')?.public_key ?? null,
    keys,
    successions: chain,
    inForce,
  };
}

/** The statements in force at the given time. */
export function inForceAt(
  chain: readonly AuthoritySuccession[],
  now: number,
): readonly AuthoritySuccession[] {
  return chain.filter(({ activates_at }) => instantOf(activates_at) <= now);
}

interface Problem {
  readonly reason: ChainReason;
  readonly found?: string;
}

/** Why a statement does not follow the ones before it; null if it does. Signatures are checked later. */
function linkProblem(
  statement: AuthoritySuccession,
  before: readonly AuthoritySuccession[],
  pin: ChainPin,
  tools: ChainTools,
): Problem | null {
  const previous = before.at(-1);
  const { network_name, root_public_key, sequence, from_key } = statement;
  if (network_name !== pin.networkName) return { reason: 'wrong_network', found: network_name };
  const rootKey =
    'rootKey' in pin.trusted ? pin.trusted.rootKey : (previous?.root_public_key ?? root_public_key);
  if (root_public_key !== rootKey) return { reason: 'wrong_root_key', found: root_public_key };
  if (sequence !== before.length + 1) {
    const isFork = previous !== undefined && isForkOf(previous, statement, tools);
    return { reason: isFork ? 'fork' : 'gap', found: String(sequence) };
  }
  const expected =
    previous === undefined ? pin.genesisDigest : successionDigest(previous, tools.sha256);
  if (statement.previous_digest !== (expected ?? statement.previous_digest)) {
    return { reason: 'broken_link' };
  }
  if (from_key !== (previous?.to_key ?? from_key)) return { reason: 'wrong_from_key' };
  if (!hasOrderedTimes(statement)) return { reason: 'wrong_times' };
  return placeProblem(statement, before);
}

/** A forged statement is not a fork: both statements must be genuine. */
function isForkOf(
  known: AuthoritySuccession,
  other: AuthoritySuccession,
  { verify, sha256 }: ChainTools,
): boolean {
  return (
    known.sequence === other.sequence &&
    successionDigest(known, sha256) !== successionDigest(other, sha256) &&
    [known, other].every((each) => judgeSignatures(each, verify, sha256) === 'valid')
  );
}

/** Checks a statement's key and time against the statements before it. */
function placeProblem(
  statement: AuthoritySuccession,
  before: readonly AuthoritySuccession[],
): Problem | null {
  const previous = before.at(-1);
  if (statement.kind === 'roll_back') {
    return isRollBackOf(statement, previous) ? null : { reason: 'wrong_roll_back' };
  }
  const begins = instantOf(statement.activates_at);
  if (previous !== undefined && begins <= instantOf(previous.activates_at)) {
    return { reason: 'wrong_times' };
  }
  const { to_key, from_key, root_public_key } = statement;
  const isUsed =
    to_key === root_public_key ||
    to_key === from_key ||
    before.some((each) => each.from_key === to_key || each.to_key === to_key);
  return isUsed ? { reason: 'key_used_before' } : null;
}

/** Whether the statement returns to the previous key, as prepared together with the planned change. */
function isRollBackOf(
  statement: AuthoritySuccession,
  previous: AuthoritySuccession | undefined,
): boolean {
  return (
    previous?.kind === 'planned' &&
    statement.to_key === previous.from_key &&
    instantOf(statement.activates_at) === instantOf(previous.activates_at) &&
    instantOf(statement.overlap_until) === instantOf(previous.overlap_until)
  );
}

/** Checks that the pinned key vouches for the whole chain. */
function trustProblem(
  chain: readonly AuthoritySuccession[],
  trusted: ChainPin['trusted'],
  { verify, sha256 }: ChainTools,
): { readonly refusal: ChainRefusal } | null {
  let first = 0;
  if ('authorityKey' in trusted && chain.length > 0) {
    const key = trusted.authorityKey;
    // By its proof of possession, a key vouches for everything that led to it.
    first = chain.findLastIndex(({ to_key }) => to_key === key);
    if (first === -1 && chain[0]?.from_key !== key) return refused('unknown_key', null, key);
    const broken = chain.findIndex(({ kind }, index) => index > first && kind === 'compromise');
    if (broken !== -1) return refused('root_key_needed', broken + 1);
  }
  for (const [index, statement] of chain.entries()) {
    if (index < first) continue;
    const reason = judgeSignatures(statement, verify, sha256);
    if (reason !== 'valid') return refused(reason, index + 1);
  }
  return null;
}

/** The chain never gets shorter, and a sequence never identifies two statements. */
function retreatProblem(
  chain: readonly AuthoritySuccession[],
  known: readonly AuthoritySuccession[],
  { sha256 }: ChainTools,
): { readonly refusal: ChainRefusal } | null {
  for (const [index, held] of known.entries()) {
    const offered = chain[index];
    if (offered === undefined)
      return refused('shorter', null, `${chain.length} of ${known.length}`);
    if (successionDigest(offered, sha256) !== successionDigest(held, sha256)) {
      return refused('fork', index + 1);
    }
  }
  return null;
}

/** The key of a network whose key was never replaced. */
export function firstKey(public_key: string): AuthorityKey {
  return { public_key, state: 'current', since: null, signs_until: null };
}

/** Like `keysAt`, for statements that came into force before, which stay in force even if the clock is set back. */
export function keysInForce(chain: readonly AuthoritySuccession[], now: number): AuthorityKey[] {
  const last = chain.at(-1);
  return last === undefined ? [] : keysAt(chain, Math.max(now, instantOf(last.activates_at)));
}

/**
 * Every key of the chain, oldest first, with its state at the given time [authority-keys-3]. `inForce` is the number of
 * statements in force.
 */
export function keysAt(
  chain: readonly AuthoritySuccession[],
  now: number,
  inForce = inForceAt(chain, now).length,
): AuthorityKey[] {
  const [first] = chain;
  if (first === undefined) return [];
  const keys = new Map([[first.from_key, firstKey(first.from_key)]]);
  const keyOf = (public_key: string) => keys.get(public_key) ?? firstKey(public_key);
  const change = (public_key: string, changed: Partial<AuthorityKey>) => {
    keys.set(public_key, { ...keyOf(public_key), ...changed });
  };
  /** Those that were replaced since the last change of the key: all others have ended before. */
  let replaced: string[] = [];
  for (const [index, statement] of chain.entries()) {
    const { kind, from_key, to_key, activates_at, overlap_until, distrusted_from } = statement;
    const signs_until = distrusted_from ?? overlap_until;
    const afterwards = now < instantOf(overlap_until) ? 'previous' : 'retired';
    const isRollBack = kind === 'roll_back';
    if (index >= inForce) {
      change(from_key, { signs_until });
      change(to_key, isRollBack ? { signs_until: null } : { state: 'next', since: activates_at });
    } else if (isRollBack) {
      change(from_key, { state: afterwards, signs_until });
      change(to_key, { state: 'current', signs_until: null });
    } else {
      // At most two keys sign: an overlap ends when the next one begins.
      for (const { public_key, signs_until: end } of replaced.map(keyOf)) {
        if (public_key === from_key || end === null) continue;
        if (instantOf(end) > instantOf(activates_at)) {
          change(public_key, { state: 'retired', signs_until: activates_at });
        }
      }
      change(from_key, { state: kind === 'compromise' ? 'distrusted' : afterwards, signs_until });
      change(to_key, { state: 'current', since: activates_at });
      replaced = [];
    }
    replaced.push(from_key);
  }
  return [...keys.values()];
}

function refused(
  reason: ChainReason,
  sequence: number | null,
  found = '',
): { readonly refusal: ChainRefusal } {
  const which = `Statement ${sequence} of the chain`;
  return { refusal: { reason, sequence, message: MESSAGES[reason](which, found) } };
}

const AGAIN = 'fetch the chain of this network again, from its authority';
const DO_NOT_USE = 'do not use it, and ask the operators of the network';

const MESSAGES: { readonly [reason in ChainReason]: (which: string, found: string) => string } = {
  too_long: (_, count) =>
    `The chain has ${count} statements, more than the ${MAX_SUCCESSIONS} that a network can have; ${AGAIN}.`,
  malformed: (which) => `${which} does not have the form of an AuthoritySuccession; ${AGAIN}.`,
  wrong_network: (which, name) =>
    `${which} belongs to the network ${JSON.stringify(name)}, not to the one being followed; ${AGAIN}.`,
  wrong_root_key: (which, key) =>
    `${which} names the root key ${key}, which is not the one of this network; ${AGAIN}.`,
  gap: (which, sequence) =>
    `${which} has the sequence ${sequence}, so one is missing or repeated; ${AGAIN}.`,
  broken_link: (which) =>
    `${which} does not follow the one before: its previous_digest does not match; ${AGAIN}.`,
  wrong_from_key: (which) =>
    `${which} replaces a key that was not the authority's at that point; ${AGAIN}.`,
  wrong_times: (which) => `${which} has times in an impossible order; prepare and sign it again.`,
  wrong_roll_back: (which) =>
    `${which} does not return to the key before the planned change that it reverts; prepare and sign it again.`,
  key_used_before: (which) =>
    `${which} leads to a key that is the root key or was an authority key before; prepare a new key.`,
  unknown_key: (_, key) =>
    `The chain does not contain the pinned key ${key}; compare it with the key that the network published, or pin the root key.`,
  root_key_needed: (which) =>
    `${which} replaces a compromised key, so earlier keys cannot vouch for anything after it; pin the root key of the network.`,
  wrong_proof: (which) =>
    `${which} has no valid proof of possession of its next key, or was altered; ${DO_NOT_USE}.`,
  not_signed_by_root: (which) => `${which} is not signed by the root key; ${DO_NOT_USE}.`,
  not_signed_by_from_key: (which) =>
    `${which} does not have exactly the signatures of its kind, of the root key and of the key that it replaces; ${DO_NOT_USE}.`,
  fork: (which) => `${which} has the same sequence as another signed statement; ${DO_NOT_USE}.`,
  shorter: (_, count) =>
    `The chain has only ${count} known statements, so it is an old copy; ${AGAIN}.`,
};
