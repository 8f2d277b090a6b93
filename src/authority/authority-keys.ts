/**
 * The keys of the authority as one chain [authority-keys-8], including decisions that are not committed yet. There are
 * at most a few hundred, so everything is derived again after each change.
 */
import type { AuthorityKey as StoredKey } from '../../machines/authority-key.ts';
import type { SigningTerm } from '../base/signer/authority-signer.ts';
import { type AuthorityKey, firstKey, keysAt } from '../protocol/records/authority-chain.ts';
import type { AuthoritySuccession } from '../protocol/records/authority-succession.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import { instantOf } from '../protocol/records/record.ts';
import type { StoredSubject } from '../store/store.ts';
import type { Subject } from './subjects/kinds.ts';
import { type Subjects, toSubject } from './subjects/subjects.ts';

type KeySubject = Subject<'authority-key'>;

export interface CurrentKey {
  readonly publicKey: string;
  /** The genesis block that names it. */
  readonly genesis: GenesisBlock;
  /** When it took over, in milliseconds since the epoch; null for the first key. */
  readonly since: number | null;
}

/** A key that signs together with the current one. */
export interface PreviousKey {
  readonly publicKey: string;
  /** Milliseconds since the epoch. */
  readonly overlapUntil: number;
}

export interface StagedKey {
  readonly publicKey: string;
  readonly statement: AuthoritySuccession;
  /** Milliseconds since the epoch. */
  readonly activatesAt: number;
}

/** The first revocation list of a period in which a key issued it. */
interface IssuingPeriod {
  readonly from: number;
  readonly publicKey: string;
}

export type KeyChain = ReturnType<typeof keyChain>;

export type AuthorityKeys = ReturnType<typeof createAuthorityKeys>;

export function createAuthorityKeys() {
  const keys = new Map<string, KeySubject>();
  let derived: KeyChain | null = null;

  return {
    put(publicKey: string, key: KeySubject) {
      keys.set(publicKey, key);
      derived = null;
    },
    remove(publicKey: string) {
      keys.delete(publicKey);
      derived = null;
    },
    chain(): KeyChain {
      derived ??= keyChain(keys);
      return derived;
    },
  };
}

const STATES: { readonly [value: string]: AuthorityKey['state'] } = {
  staged: 'next',
  current: 'current',
  previous: 'previous',
  distrusted: 'distrusted',
  retired: 'retired',
};

/** The public keys whose signatures count in the state of this network. */
export function trustedKeys(
  { trusted }: KeyChain,
  { authority_public_key }: { readonly authority_public_key: string },
): readonly string[] {
  return trusted.length === 0 ? [authority_public_key] : trusted;
}

/** The chain of the keys in a store. */
export function storedChain(stored: readonly StoredSubject[]): KeyChain {
  return keyChain(stored.map((subject) => [subject.id, toSubject(subject) as KeySubject]));
}

/** The chain of the committed keys. */
export function committedChain({ subjects }: { readonly subjects: Subjects }): KeyChain {
  return keyChain(subjects.allCommitted('authority-key'));
}

function keyChain(subjects: Iterable<readonly [string, KeySubject]>) {
  const states = new Map(subjects);
  const held = [...states];
  const inForce = held
    .filter(([, { value }]) => value !== 'staged')
    .flatMap(([, { context }]) => statementsOf(context))
    .sort((a, b) => a.sequence - b.sequence);
  const stagedKey = held.find(([, { value }]) => value === 'staged');
  const staged = stagedKey && stagedOf(...stagedKey);
  const published = staged ? [...inForce, staged.statement] : inForce;
  const last = inForce.at(-1);
  const current = currentOf(last, states);
  const previous = previousOf(held, last);
  const firstKey = held.find(([, { context }]) => context.statement === null);
  const periods = held.flatMap(periodsOf).sort((a, b) => b.from - a.from);
  const keys = keysOf(published, inForce.length, states, current);
  const newestFirst = keys.toReversed();
  return {
    /** The genesis block of the first key; null while no succession was ever staged. */
    first: firstKey?.[1].context.genesis ?? null,
    /** Which keys sign from when on; empty while no succession was ever staged. */
    terms: firstKey && current ? termsOf(states, inForce, firstKey[0], current, previous) : [],
    /** Null while no succession was ever staged: then only the configuration names the key. */
    current,
    previous,
    staged: staged ?? null,
    /** The statements in force and then the staged one. */
    published: published as readonly AuthoritySuccession[],
    /** The statements in force, in order. */
    inForce: inForce as readonly AuthoritySuccession[],
    /** All keys with their states, oldest first. */
    keys,
    /** The keys whose signatures count, the current one first, and then the newest: never one that was stolen. */
    trusted: ['current', 'previous', 'retired'].flatMap((wanted) =>
      newestFirst.flatMap(({ public_key, state }) => (state === wanted ? public_key : [])),
    ),
    has: (publicKey: string) => states.has(publicKey),
    /** The key that issued the revocation list with this sequence; null while no succession was ever staged. */
    issuerOf: (sequence: number) =>
      periods.find(({ from }) => from <= sequence)?.publicKey ?? firstKey?.[0] ?? null,
  };
}

function previousOf(
  held: readonly (readonly [string, KeySubject])[],
  last: AuthoritySuccession | undefined,
): PreviousKey | null {
  const found = held.find(([, { value }]) => value === 'previous');
  if (found === undefined || last === undefined) return null;
  return { publicKey: found[0], overlapUntil: instantOf(last.overlap_until) };
}

/**
 * The last term is as the states say; the earlier ones are in the order of their statements, even if a clock was set back
 * between them.
 */
function termsOf(
  states: ReadonlyMap<string, KeySubject>,
  inForce: readonly AuthoritySuccession[],
  first: string,
  current: CurrentKey,
  previous: PreviousKey | null,
): SigningTerm[] {
  const changes = inForce.flatMap(({ kind, from_key, to_key }): SigningTerm[] => {
    const from =
      kind === 'roll_back'
        ? states.get(from_key)?.context.rolledBackAt
        : states.get(to_key)?.context.since;
    if (from == null) return [];
    return [{ from, current: to_key, previous: kind === 'compromise' ? null : from_key }];
  });
  const instants = [...states.values()].flatMap(({ context: { since, rolledBackAt, until } }) =>
    [since, rolledBackAt, until].filter((instant) => instant !== null),
  );
  return [
    { from: -Infinity, current: first, previous: null },
    ...changes,
    {
      from: Math.max(-Infinity, ...instants),
      current: current.publicKey,
      previous: previous?.publicKey ?? null,
    },
  ];
}

/** The published statements of a key: the one that leads to it, and the one by which it was rolled back. */
function statementsOf({ statement, rollBack, rolledBackFrom }: StoredKey): AuthoritySuccession[] {
  const back = rolledBackFrom === null ? null : rollBack?.statement;
  return [statement, back ?? null].filter((each) => each !== null);
}

function stagedOf(publicKey: string, { context }: KeySubject): StagedKey | undefined {
  const { statement } = context;
  if (statement === null) return undefined;
  return { publicKey, statement, activatesAt: instantOf(statement.activates_at) };
}

/** After a rollback, the genesis block is the one that was signed for it. */
function currentOf(
  last: AuthoritySuccession | undefined,
  states: ReadonlyMap<string, KeySubject>,
): CurrentKey | null {
  for (const [publicKey, { value, context }] of states) {
    if (value !== 'current') continue;
    const rolledBack = last?.kind === 'roll_back' ? states.get(last.from_key) : undefined;
    const genesis = rolledBack?.context.rollBack?.genesis ?? context.genesis;
    if (genesis !== null) return { publicKey, genesis, since: context.since };
  }
  return null;
}

function periodsOf([publicKey, { context }]: readonly [string, KeySubject]): IssuingPeriod[] {
  const { statement, crlSequence, rolledBackFrom } = context;
  const own = crlSequence === null ? [] : [{ from: crlSequence, publicKey }];
  if (rolledBackFrom === null || statement === null) return own;
  return [...own, { from: rolledBackFrom, publicKey: statement.from_key }];
}

/** Times come from the statements; the states are those that the authority keeps. */
function keysOf(
  published: readonly AuthoritySuccession[],
  inForce: number,
  states: ReadonlyMap<string, KeySubject>,
  current: CurrentKey | null,
): AuthorityKey[] {
  if (published.length === 0) return current === null ? [] : [firstKey(current.publicKey)];
  return keysAt(published, Number.MAX_SAFE_INTEGER, inForce).map((key) => ({
    ...key,
    state: STATES[states.get(key.public_key)?.value ?? ''] ?? key.state,
  }));
}

/**
 * The genesis block in force. The state is ahead of the configuration after a succession; the configuration is ahead
 * after its block was renewed for the same key.
 */
export function genesisInForce({ current }: KeyChain, configured: GenesisBlock): GenesisBlock {
  if (current === null) return configured;
  const { public_key, valid_from, valid_to } = configured.network_authority;
  const stored = current.genesis.network_authority;
  const isNewer =
    public_key === current.publicKey &&
    instantOf(valid_from) >= instantOf(stored.valid_from) &&
    instantOf(valid_to) >= instantOf(stored.valid_to);
  return isNewer ? configured : current.genesis;
}

/** The keys that sign no more, if only the current one does; null during an overlap, or if there was no succession. */
export function formerKeys({ current, previous, keys }: KeyChain): readonly string[] | null {
  if (current === null || previous !== null) return null;
  return keys
    .filter(({ state }) => state === 'retired' || state === 'distrusted')
    .map(({ public_key }) => public_key);
}

/** When the current key became the authority's, in milliseconds since the epoch. */
export function currentSince({ current }: KeyChain, configured: GenesisBlock): number {
  return current?.since ?? instantOf(configured.network_authority.valid_from);
}
