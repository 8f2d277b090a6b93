/**
 * The authority's keys according to the state table of the contract [authority-keys-8], and why a succession is invalid
 * [authority-keys-2], [authority-keys-5], [authority-keys-9-1].
 */
import { formatInstant } from '../../../src/base/timestamp.ts';
import { isCompromised, publishNext } from './enrollment.ts';
import {
  alsoAudited,
  type Change,
  type Moment,
  type Outcome,
  refused,
  type State,
  stored,
} from './state.ts';

export interface Statement {
  readonly id: string;
  readonly sequence: number;
  readonly kind: 'planned' | 'compromise' | 'roll_back';
  readonly from: string;
  readonly to: string;
  readonly activatesAt: number;
  readonly overlapUntil: number;
  /** When the replaced key stops counting; null unless it was stolen. */
  readonly distrustedFrom: number | null;
}

/** What is wrong with the succession itself, if anything. */
export type OfferFlaw =
  | 'none'
  | 'number'
  | 'link'
  | 'network'
  | 'root'
  | 'no_root'
  | 'proof'
  | 'from'
  | 'times'
  | 'no_way_back';

/** A succession as it was created at some point. */
export interface Offer {
  readonly statement: Statement;
  readonly rollBack: Statement | null;
  /** The id of the preceding statement; `first` if there is none. */
  readonly previous: string;
  readonly flaw: OfferFlaw;
}

export type KeyState = 'next' | 'current' | 'previous' | 'retired' | 'distrusted';

/** Which keys sign from a given time. */
export interface Term {
  readonly from: number;
  readonly current: string;
  readonly previous: string | null;
}

/** Never mutated. */
export interface AuthorityKeys {
  readonly rootKey: string;
  /** Oldest first. */
  readonly states: ReadonlyMap<string, KeyState>;
  readonly inForce: readonly Statement[];
  readonly staged: Offer | null;
  /** The statement that rolls back to the preceding key, available until the overlap ends. */
  readonly wayBack: Statement | null;
  /** The last term says which keys sign now. */
  readonly terms: readonly [Term, ...Term[]];
}

export function firstKeys(rootKey: string, key: string): AuthorityKeys {
  return {
    rootKey,
    states: new Map([[key, 'current']]),
    inForce: [],
    staged: null,
    wayBack: null,
    terms: [{ from: -Infinity, current: key, previous: null }],
  };
}

export function signingNow({ terms }: AuthorityKeys): Term {
  return terms.at(-1) ?? terms[0];
}

/** The statements in force, followed by the staged one. */
export function publishedIds({ inForce, staged }: AuthorityKeys): readonly string[] {
  const last = staged === null ? [] : [staged.statement];
  return [...inForce, ...last].map(({ id }) => id);
}

/** The keys that signed when the certificate was issued and still sign; if there are none, the keys that sign now. */
export function signingSince({ terms }: AuthorityKeys, issuedAt: number): readonly string[] {
  const now = keysOf(terms.at(-1) ?? terms[0]);
  const then = keysOf(terms.findLast(({ from }) => from <= issuedAt) ?? terms[0]);
  const left = then.filter((key) => now.includes(key));
  return left.length === 0 ? now : left;
}

export function keysOf({ current, previous }: Term): readonly string[] {
  return previous === null ? [current] : [current, previous];
}

/** Of the keys that sign now, the one that became an authority key first. */
export function oldestSigning({ states, terms }: AuthorityKeys): string {
  const now = keysOf(terms.at(-1) ?? terms[0]);
  return [...states.keys()].find((key) => now.includes(key)) ?? '';
}

/** The keys that a request may be addressed to: the current key, the one that it replaced, and the next one. */
export function audiencesOf({ inForce, staged, terms }: AuthorityKeys): readonly string[] {
  const { current } = terms.at(-1) ?? terms[0];
  const replaced = inForce.findLast(({ to }) => to === current)?.from;
  return [current, replaced, staged?.statement.to].filter((key) => key !== undefined);
}

/** When a statement's genesis block begins; nodes require the one of a rollback to begin later. */
function beginsAt({ kind, activatesAt }: Statement): number {
  return kind === 'roll_back' ? activatesAt + 1000 : activatesAt;
}

export function stage(moment: Moment, offer: Offer): Outcome {
  const { authority } = moment.state;
  const { statement } = offer;
  const state = authority.states.get(statement.to);
  if (state !== undefined && state !== 'next') return rejected('key_used_before');
  if (authority.staged !== null) return refused('succession_staged');
  const problem = problemOf(moment, offer);
  if (problem !== null) return rejected(problem);
  const change = changing((keys) => ({
    ...keys,
    states: new Map(keys.states).set(statement.to, 'next'),
    staged: offer,
  }));
  return stored('authority_succession_staged', change, answerTo(moment, statement, 'staged'));
}

function rejected(cause: string): Outcome {
  return refused(`succession_rejected: ${cause}`);
}

/** Why a succession is invalid; null if it is valid. */
function problemOf(moment: Moment, offer: Offer): string | null {
  const { now, state } = moment;
  const { inForce, terms, rootKey } = state.authority;
  const { statement, rollBack, flaw } = offer;
  const { kind, sequence, from, to, activatesAt, overlapUntil } = statement;
  const last = inForce.at(-1);
  if ((kind === 'planned') !== (rollBack !== null)) return 'wrong_roll_back_file';
  if (flaw === 'root' || (last !== undefined && activatesAt <= beginsAt(last))) {
    return 'wrong_genesis';
  }
  if (flaw === 'network') return 'wrong_network';
  if (sequence !== inForce.length + 1) {
    const isGenuine = !['no_root', 'proof', 'from'].includes(flaw);
    return last?.sequence === sequence && last.id !== statement.id && isGenuine ? 'fork' : 'gap';
  }
  if (flaw === 'link' || offer.previous !== (last?.id ?? 'first')) return 'broken_link';
  if (flaw === 'times') return 'wrong_times';
  if (to === rootKey) return 'key_used_before';
  if (flaw === 'proof') return 'wrong_proof';
  if (flaw === 'no_root') return 'not_signed_by_root';
  if (flaw === 'from') return 'not_signed_by_from_key';
  if (from !== (terms.at(-1) ?? terms[0]).current) return 'wrong_from_key';
  if (kind === 'planned' && overlapUntil <= now) return 'overlap_ended';
  if (moment.isOperator(to)) return 'key_of_operator';
  const isNodes = [...state.certificates.values()].some(({ nodeKey }) => nodeKey === to);
  return isNodes || isCompromised(state, to) ? 'key_of_node' : null;
}

export function cancel(moment: Moment): Outcome {
  const { staged } = moment.state.authority;
  if (staged === null) return refused('succession_not_staged');
  const answer = answerTo(moment, staged.statement, 'absent');
  return stored('authority_succession_canceled', changing(withoutStaged), answer);
}

export function activate(moment: Moment): Outcome {
  const { now, state } = moment;
  const { staged } = state.authority;
  if (staged === null) return refused('succession_not_staged');
  const { statement, rollBack } = staged;
  if (now < statement.activatesAt) return refused('activation_too_early');
  if (!moment.isHeld(statement.to)) return refused('authority_key_not_held');
  const isStolen = statement.kind === 'compromise';
  const change = changingSigners(now, (keys) => {
    const states = new Map(keys.states);
    for (const [key, of] of states) if (of === 'previous') states.set(key, 'retired');
    states.set(statement.from, isStolen ? 'distrusted' : 'previous').set(statement.to, 'current');
    const previous = isStolen ? null : statement.from;
    return {
      ...keys,
      states,
      inForce: [...keys.inForce, statement],
      staged: null,
      wayBack: rollBack,
      terms: [...keys.terms, { from: now, current: statement.to, previous }],
    };
  });
  const answer = answerTo(moment, statement, 'current');
  const outcome = stored('authority_key_activated', change, answer);
  const { previous } = signingNow(state.authority);
  const whole = previous === null ? outcome : alsoAudited(outcome, 'authority_key_retired');
  return { ...whole, changesSigners: true };
}

export function rollBack(moment: Moment): Outcome {
  const { now, state } = moment;
  const { inForce, staged, wayBack, terms } = state.authority;
  const { current, previous } = terms.at(-1) ?? terms[0];
  const last = inForce.at(-1);
  const impossible = (cause: string) => refused(`roll_back_impossible: ${cause}`);
  if (last === undefined) return impossible('no_succession');
  if (last.kind === 'roll_back') return impossible('rolled_back');
  if (last.kind === 'compromise') return impossible('compromise');
  if (wayBack === null || previous === null || wayBack.overlapUntil <= now) {
    return impossible('overlap_ended');
  }
  const change = changingSigners(now, (keys) => ({
    ...withoutStaged(keys),
    states: new Map(withoutStaged(keys).states).set(current, 'previous').set(previous, 'current'),
    inForce: [...keys.inForce, wayBack],
    wayBack: null,
    terms: [...keys.terms, { from: now, current: previous, previous: current }],
  }));
  const answer = answerTo(moment, wayBack, 'current');
  const outcome = stored('authority_key_rolled_back', change, answer);
  const whole = staged === null ? outcome : alsoAudited(outcome, 'authority_succession_canceled');
  return { ...whole, changesSigners: true };
}

/** `despite` is the number of nodes that the operator confirms; within the bounds it may be correct. */
export function finish(moment: Moment, despite: number): readonly Outcome[] {
  const { previous } = signingNow(moment.state.authority);
  if (previous === null) return [refused('no_overlap')];
  const { least, most } = moment.laggards();
  const behind = refused('nodes_have_not_followed');
  if (despite < least || despite > most) return [behind];
  const ended = endOverlap(moment, previous);
  return least === most ? [ended] : [ended, behind];
}

function endOverlap(moment: Moment, previous: string): Outcome {
  const { now, state } = moment;
  const last = state.authority.inForce.at(-1);
  const change = changingSigners(now, (keys) => ({
    ...keys,
    states: new Map(keys.states).set(previous, 'retired'),
    wayBack: null,
    terms: [...keys.terms, { from: now, current: signingNow(keys).current, previous: null }],
  }));
  const answer = () => ({
    ...(last && answerTo(moment, last, 'retired')()),
    public_key: previous,
    key_held: false,
  });
  return { ...stored('authority_key_retired', change, answer), changesSigners: true };
}

/** What the authority must do on its own now; null if nothing is due, or if the necessary key is missing. */
export function dueNow(moment: Moment): Outcome | null {
  const { now, state } = moment;
  const { inForce, staged } = state.authority;
  const { previous } = signingNow(state.authority);
  const last = inForce.at(-1);
  if (staged !== null && staged.statement.activatesAt <= now) {
    const activated = activate(moment);
    if (activated.refusal === null) return activated;
  }
  return previous !== null && last !== undefined && last.overlapUntil <= now
    ? endOverlap(moment, previous)
    : null;
}

function withoutStaged(keys: AuthorityKeys): AuthorityKeys {
  const states = new Map([...keys.states].filter(([, state]) => state !== 'next'));
  return { ...keys, states, staged: null };
}

function changing(change: (keys: AuthorityKeys) => AuthorityKeys): Change {
  return (state) => {
    state.authority = change(state.authority);
  };
}

/** Publishes all lists again in the same step. */
function changingSigners(now: number, change: (keys: AuthorityKeys) => AuthorityKeys): Change {
  return (state: State) => {
    state.authority = change(state.authority);
    for (const name of state.publications.keys()) publishNext(state, name, now);
  };
}

function answerTo(moment: Moment, statement: Statement, state: string) {
  const { to, sequence, kind } = statement;
  const answer = {
    public_key: to,
    state,
    sequence,
    kind,
    activates_at: formatInstant(statement.activatesAt),
    overlap_until: formatInstant(statement.overlapUntil),
    key_held: moment.isHeld(to),
  };
  return () => answer;
}
