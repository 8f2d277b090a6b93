/** The steps of a history, and how fast-check draws them. */
import fc from 'fast-check';
import type { OfferFlaw } from './model/authority-keys.ts';
import type { Flaw } from './requests.ts';
import type { BeatFlaw } from './session-beats.ts';

/**
 * Numbers select existing items, counted from the newest, so that a history keeps its meaning when earlier steps are
 * omitted.
 */
export interface OperatorStep {
  readonly operator: number;
  readonly flaw: Flaw;
  readonly isWellFormed: boolean;
}

export interface NodeStep {
  readonly node: number;
  readonly flaw: Flaw;
  /** Milliseconds that the request waits between the edge and the authority. */
  readonly late: number;
}

export type Request =
  | ({ readonly do: 'invite'; readonly hours: number; readonly bound: number } & OperatorStep)
  | ({ readonly do: 'join'; readonly invite: number; readonly hours: number } & NodeStep)
  /** Signed, and requests a session. */
  | ({ readonly do: 'heartbeat'; readonly certificate: number } & NodeStep)
  /** Sent in a session. */
  | {
      readonly do: 'beat';
      readonly session: number;
      readonly instant: 'now' | 'earlier' | 'old' | 'stale' | 'ahead' | 'from_the_future';
      readonly flaw: BeatFlaw;
      readonly late: number;
    }
  | ({
      readonly do: 'renew';
      readonly certificate: number;
      readonly hours: number;
      readonly roles: 'none' | 'same' | 'other';
    } & NodeStep)
  | ({
      readonly do: 'revoke';
      readonly certificate: number;
      readonly compromised: boolean;
    } & OperatorStep)
  | ({ readonly do: 'revokeKey'; readonly target: number } & OperatorStep)
  | ({ readonly do: 'publishPolicy'; readonly policy: number } & OperatorStep)
  | ({ readonly do: 'rollBackPolicy'; readonly policy: number } & OperatorStep)
  | { readonly do: 'readPolicy' }
  | { readonly do: 'readCrl' }
  /** For an issuer that has never revoked anything. */
  | { readonly do: 'readEmptyFeed' }
  | {
      readonly do: 'registerAgent';
      readonly node: number;
      readonly isForged: boolean;
      readonly signedAgo: number;
      readonly seconds: number;
      readonly capability: number;
    }
  | {
      readonly do: 'removeAgent';
      readonly node: number;
      readonly form: 'envelope' | 'proof';
      readonly isForged: boolean;
    }
  | ({
      readonly do: 'attest';
      readonly issuer: 'own' | 'foreign';
      readonly subject: number;
    } & OperatorStep)
  | ({ readonly do: 'revokeAttestation'; readonly attestation: number } & OperatorStep)
  | ({ readonly do: 'treaty'; readonly peer: number; readonly hours: number } & OperatorStep)
  | ({
      readonly do: 'revokeTreaty';
      readonly treaty: number;
      readonly reason: number;
    } & OperatorStep)
  | ({ readonly do: 'recognize'; readonly policy: number } & OperatorStep)
  | ({
      readonly do: 'importFeed';
      readonly peer: number;
      readonly sequence: number;
      readonly ids: readonly number[];
      readonly keys: 'given' | 'treaty' | 'wrong';
      readonly isSigned: boolean;
    } & OperatorStep)
  | ({ readonly do: 'nullify'; readonly proof: number } & OperatorStep)
  | ({ readonly do: 'license'; readonly policy: number } & OperatorStep)
  | ({
      readonly do: 'stage';
      /** Which earlier succession to send again; a new one if negative. */
      readonly again: number;
      readonly kind: 'planned' | 'compromise';
      readonly key: 'new' | 'first' | 'root' | 'operator' | 'node';
      /** Whether the authority has the private key. */
      readonly hasKey: boolean;
      readonly activatesIn: number;
      readonly overlap: number;
      readonly altered: OfferFlaw;
    } & OperatorStep)
  | ({ readonly do: 'cancel' } & OperatorStep)
  | ({ readonly do: 'activate' } & OperatorStep)
  | ({ readonly do: 'rollBack' } & OperatorStep)
  | ({ readonly do: 'finish'; readonly despite: number | 'reported' } & OperatorStep)
  | ({ readonly do: 'readRoster' } & OperatorStep)
  | ({ readonly do: 'readPolicies' } & OperatorStep)
  /** Sends the exact bytes of an earlier request again. */
  | { readonly do: 'replay'; readonly request: number; readonly late: number };

export type Event =
  | { readonly do: 'wait'; readonly ms: number }
  /** Sets the wall clock. */
  | { readonly do: 'setClock'; readonly ms: number }
  /** Flushes and answers everything in flight. */
  | { readonly do: 'settle' }
  /** Some of what is in flight reaches the disk; nothing is answered yet. */
  | { readonly do: 'persist'; readonly count: number }
  | { readonly do: 'flushLiveness' }
  | { readonly do: 'renewLists' }
  /** Performs the key change that is due. */
  | { readonly do: 'keepKeys' }
  /** The authority receives the private key of the next key. */
  | { readonly do: 'bringKey' }
  | { readonly do: 'sweep' }
  | { readonly do: 'crash'; readonly persisted: number; readonly again: boolean }
  | { readonly do: 'failFlush' }
  | { readonly do: 'restart' };

export type Step =
  /** Requests are answered before the next step, unless they are held: then they overlap with it. */
  (Request & { readonly isHeld: boolean }) | Event;

/** Waits and clock steps that cross the relevant limits: tolerance, windows, validities, half days. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const small = fc.nat({ max: 7 });

/** One of the values, by weights. */
function weighted<Value>(
  ...choices: readonly (readonly [weight: number, ...values: Value[]])[]
): fc.Arbitrary<Value> {
  const drawn = choices.map(([weight, ...values]) => {
    return { weight, arbitrary: fc.constantFrom(...values) };
  });
  return fc.oneof(...drawn);
}

const flaw = weighted<Flaw>(
  [14, 'none'],
  [3, 'ahead', 'old'],
  [2, 'forged', 'stale', 'from_the_future'],
);

const byOperator = {
  // 0 and 1 are privileged, 2 is standard, 3 is a stranger.
  operator: weighted([8, 0, 1], [1, 2, 3]),
  flaw,
  isWellFormed: weighted([15, true], [1, false]),
};

const late = weighted([12, 0], [1, 30 * SECOND, 6 * MINUTE, 12 * MINUTE]);

const byNode = { node: fc.nat({ max: 2 }), flaw, late };

const isForged = weighted([9, false], [1, true]);

type Draw<T> = { readonly weight: number; readonly arbitrary: fc.Arbitrary<T> };

function request<Name extends Request['do']>(
  name: Name,
  weight: number,
  members: {
    [Member in Exclude<keyof Extract<Request, { do: Name }>, 'do'>]: fc.Arbitrary<
      Extract<Request, { do: Name }>[Member]
    >;
  },
): Draw<Step> {
  const isHeld = weighted([3, false], [1, true]);
  const drawn = fc.record({ do: fc.constant(name), ...members, isHeld });
  return { weight, arbitrary: drawn as unknown as fc.Arbitrary<Step> };
}

function event(weight: number, arbitrary: fc.Arbitrary<Event>): Draw<Step> {
  return { weight, arbitrary };
}

const requests: readonly Draw<Step>[] = [
  request('invite', 5, {
    ...byOperator,
    hours: fc.constantFrom(1, 3, 24),
    bound: fc.constantFrom(-1, -1, 0, 1),
  }),
  request('join', 8, { ...byNode, invite: small, hours: fc.constantFrom(1, 2, 100) }),
  request('heartbeat', 8, { ...byNode, certificate: small }),
  request('beat', 12, {
    session: small,
    instant: weighted<'now' | 'earlier' | 'old' | 'stale' | 'ahead' | 'from_the_future'>(
      [8, 'now'],
      [3, 'earlier', 'old', 'ahead'],
      [1, 'stale', 'from_the_future'],
    ),
    flaw: weighted<BeatFlaw>(
      [8, 'none'],
      [1, 'certificate', 'node', 'end', 'instant', 'body', 'key'],
    ),
    late,
  }),
  request('renew', 6, {
    ...byNode,
    certificate: small,
    hours: fc.constantFrom(1, 2, 100),
    roles: fc.constantFrom('none', 'same', 'same', 'other'),
  }),
  request('revoke', 5, { ...byOperator, certificate: small, compromised: fc.boolean() }),
  request('revokeKey', 1, { ...byOperator, target: fc.nat({ max: 3 }) }),
  request('publishPolicy', 2, { ...byOperator, policy: fc.nat({ max: 2 }) }),
  request('rollBackPolicy', 2, { ...byOperator, policy: fc.nat({ max: 2 }) }),
  request('readPolicy', 1, {}),
  request('readCrl', 2, {}),
  request('registerAgent', 4, {
    node: fc.nat({ max: 2 }),
    isForged,
    signedAgo: fc.constantFrom(0, 0, MINUTE, 10 * MINUTE),
    seconds: fc.constantFrom(600, 7200),
    capability: fc.nat({ max: 1 }),
  }),
  request('removeAgent', 2, {
    node: fc.nat({ max: 2 }),
    form: fc.constantFrom('envelope', 'proof'),
    isForged,
  }),
  request('attest', 3, {
    ...byOperator,
    issuer: fc.constantFrom('own', 'own', 'foreign'),
    subject: small,
  }),
  request('revokeAttestation', 3, { ...byOperator, attestation: small }),
  request('treaty', 2, { ...byOperator, peer: fc.nat({ max: 1 }), hours: fc.constantFrom(1, 48) }),
  request('revokeTreaty', 2, { ...byOperator, treaty: small, reason: fc.nat({ max: 1 }) }),
  request('recognize', 1, { ...byOperator, policy: fc.nat({ max: 1 }) }),
  request('importFeed', 4, {
    ...byOperator,
    peer: fc.nat({ max: 1 }),
    sequence: fc.nat({ max: 5 }),
    ids: fc.array(small, { maxLength: 3 }),
    keys: fc.constantFrom('given', 'given', 'treaty', 'treaty', 'wrong'),
    isSigned: weighted([9, true], [1, false]),
  }),
  request('nullify', 2, { ...byOperator, proof: fc.nat({ max: 2 }) }),
  request('license', 1, { ...byOperator, policy: fc.nat({ max: 2 }) }),
  request('readRoster', 1, byOperator),
  request('readPolicies', 1, byOperator),
  request('replay', 9, { request: fc.oneof(fc.nat({ max: 4 }), fc.nat({ max: 40 })), late }),
];

/** Most succeed, so that there are many keys. */
const successions: readonly Draw<Step>[] = [
  request('stage', 3, {
    ...byOperator,
    again: fc.oneof(
      { weight: 6, arbitrary: fc.constant(-1) },
      { weight: 1, arbitrary: fc.nat({ max: 3 }) },
    ),
    kind: fc.constantFrom('planned', 'planned', 'compromise'),
    key: weighted<'new' | 'first' | 'root' | 'operator' | 'node'>(
      [12, 'new'],
      [1, 'first', 'root', 'operator', 'node'],
    ),
    hasKey: weighted([5, true], [1, false]),
    activatesIn: fc.constantFrom(0, 0, 0, 0, 4 * MINUTE, 2 * HOUR, 13 * HOUR, -2 * HOUR),
    overlap: fc.constantFrom(0, MINUTE, HOUR, HOUR, 12 * HOUR, 30 * HOUR),
    altered: weighted<OfferFlaw>(
      [14, 'none'],
      [1, 'number', 'link', 'network', 'root', 'no_root'],
      [1, 'proof', 'from', 'times', 'no_way_back'],
    ),
  }),
  request('activate', 3, byOperator),
  request('cancel', 1, byOperator),
  request('rollBack', 1, byOperator),
  request('finish', 2, {
    ...byOperator,
    despite: fc.constantFrom<number | 'reported'>(0, 'reported', 'reported', 1),
  }),
  event(2, fc.constant({ do: 'keepKeys' as const })),
  event(1, fc.constant({ do: 'bringKey' as const })),
  request('readEmptyFeed', 1, {}),
];

const events: readonly Draw<Step>[] = [
  event(
    8,
    fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(
        SECOND,
        30 * SECOND,
        4 * MINUTE,
        6 * MINUTE,
        12 * MINUTE,
        16 * MINUTE,
        2 * HOUR,
        13 * HOUR,
        25 * HOUR,
      ),
    }),
  ),
  event(3, fc.constant({ do: 'settle' as const })),
  event(2, fc.record({ do: fc.constant('persist' as const), count: fc.nat({ max: 3 }) })),
  event(3, fc.constant({ do: 'flushLiveness' as const })),
  event(1, fc.constant({ do: 'renewLists' as const })),
  event(2, fc.constant({ do: 'sweep' as const })),
  event(
    3,
    fc.record({
      do: fc.constant('crash' as const),
      persisted: fc.nat({ max: 3 }),
      again: fc.boolean(),
    }),
  ),
  event(1, fc.constant({ do: 'failFlush' as const })),
  event(2, fc.constant({ do: 'restart' as const })),
];

const clockSteps: readonly Draw<Step>[] = [
  event(
    3,
    fc.record({
      do: fc.constant('setClock' as const),
      ms: fc.constantFrom(-MINUTE, MINUTE, -4 * MINUTE, -12 * MINUTE),
    }),
  ),
];

/** Whether the clocks of nodes and of the authority are right, or wrong within the tolerance and set at times. */
export type Clocks = 'right' | 'wrong';

function onTime(step: Step): Step {
  return 'node' in step && 'flaw' in step && step.flaw === 'ahead'
    ? { ...step, flaw: 'none' }
    : step;
}

export interface History {
  /** How many nodes are enrolled before the first step. */
  readonly enrolled: number;
  readonly steps: readonly Step[];
}

export interface Kinds {
  readonly clocks: Clocks;
  /** A multiplier for how often the authority's key is replaced. */
  readonly successions: number;
}

/** Shrinking omits steps; each remaining step stays as it was drawn. */
export function history(maxSteps: number, kinds: Kinds): fc.Arbitrary<History> {
  const { clocks } = kinds;
  const replacing = successions.map(({ weight, arbitrary }) => ({
    weight: weight * kinds.successions,
    arbitrary,
  }));
  const drawn = [...requests, ...replacing, ...events, ...(clocks === 'wrong' ? clockSteps : [])];
  const step = fc
    .noShrink(fc.oneof(...drawn))
    .map((one) => (clocks === 'wrong' ? one : onTime(one)));
  return fc.record({
    enrolled: fc.constantFrom(0, 3, 3, 2),
    steps: fc.array(step, { minLength: 1, maxLength: maxSteps, size: 'max' }),
  });
}
