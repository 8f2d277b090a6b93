/** What can happen to three instances: requests, and every fault that may occur at the same time. */
import fc from 'fast-check';
import { BEATING, type DrawnBeat } from './beats.ts';
import { FAULTS, type FaultName } from './faults.ts';

export const INSTANCES = 3;
/** The period in which requests arrive and faults begin, in milliseconds. */
export const TROUBLE_MS = 2500;
export const LONGEST_FAULT_MS = 2500;

export interface DrawnFault {
  readonly at: number;
  readonly what: FaultName;
  readonly instance: number;
  /** Duration, in milliseconds. */
  readonly lasts: number;
}

export interface DrawnRequest {
  readonly at: number;
  readonly what:
    | 'revoke'
    | 'join'
    | 'read'
    | 'stage'
    | 'activate'
    | 'rollBack'
    | 'finish'
    /** An instance receives the private keys that it lacks. */
    | 'bringKeys'
    | 'beat'
    /** Sends the exact bytes of an earlier heartbeat again. */
    | 'repeatBeat';
  readonly instance: number;
  readonly invite: number;
  readonly succession: DrawnSuccession;
  readonly beat: DrawnBeat;
}

/** A request that does not use what it does not name. */
export function requestOf(
  at: number,
  what: DrawnRequest['what'],
  instance: number,
  drawn: Partial<DrawnRequest> = {},
): DrawnRequest {
  return {
    at,
    what,
    instance,
    invite: 0,
    succession: { kind: 'planned', activatesIn: 0, overlap: 0, holders: [] },
    beat: { node: BEATING.length - 1, instant: 'now', flaw: 'none', again: 0 },
    ...drawn,
  };
}

export interface DrawnSuccession {
  readonly kind: 'planned' | 'compromise';
  /** In milliseconds. */
  readonly activatesIn: number;
  readonly overlap: number;
  /** Which instances have the next key from the beginning. */
  readonly holders: readonly boolean[];
}

export interface History {
  /** Seeds everything else that is random, such as message delays. */
  readonly seed: number;
  /** The clock rate of each machine. */
  readonly rates: readonly number[];
  /** How far each machine's wall clock is ahead, in milliseconds. */
  readonly ahead: readonly number[];
  readonly faults: readonly DrawnFault[];
  readonly requests: readonly DrawnRequest[];
}

/** Events are clustered, because faults at different times are over before they can interact. */
const at = fc
  .tuple(fc.constantFrom(0, 0, 1, 1, 2), fc.integer({ min: 0, max: 500 }))
  .map(([time, later]) => (time * TROUBLE_MS) / 2 + later);
const instance = fc.integer({ min: 0, max: INSTANCES - 1 });

const WHAT = [
  ...(['revoke', 'revoke', 'revoke', 'join', 'join', 'read', 'read'] as const),
  ...(['stage', 'stage', 'activate', 'activate', 'rollBack', 'finish', 'bringKeys'] as const),
  ...(['beat', 'beat', 'beat', 'beat', 'beat', 'repeatBeat', 'repeatBeat', 'repeatBeat'] as const),
] as const;

/** Most are genuine or the first of their node, which is signed. */
export const beat: fc.Arbitrary<DrawnBeat> = fc.record({
  node: fc.nat(BEATING.length - 1),
  instant: fc.constantFrom('now', 'now', 'now', 'earlier', 'ahead', 'far_ahead', 'stale'),
  flaw: fc.oneof(
    { weight: 8, arbitrary: fc.constant('none' as const) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('certificate', 'node', 'end', 'instant', 'body', 'key'),
    },
  ),
  again: fc.nat(5),
});

export const succession: fc.Arbitrary<DrawnSuccession> = fc.record({
  kind: fc.constantFrom('planned', 'planned', 'compromise'),
  activatesIn: fc.constantFrom(0, 0, 0, 300, 1500),
  overlap: fc.constantFrom(500, 2000, 3_600_000),
  holders: fc.oneof(
    fc.constant(Array.from({ length: INSTANCES }, () => true)),
    fc.array(fc.boolean(), { minLength: INSTANCES, maxLength: INSTANCES }),
  ),
});

export const histories: fc.Arbitrary<History> = fc.record({
  seed: fc.integer(),
  rates: fc.array(fc.double({ min: 0.97, max: 1.03, noNaN: true }), {
    minLength: INSTANCES,
    maxLength: INSTANCES,
  }),
  ahead: fc.array(fc.constantFrom(0, 0, 0, -900, 900), {
    minLength: INSTANCES,
    maxLength: INSTANCES,
  }),
  faults: fc.array(
    fc.record({
      at,
      what: fc.constantFrom(...(Object.keys(FAULTS) as FaultName[])),
      instance,
      lasts: fc.integer({ min: 5, max: LONGEST_FAULT_MS }),
    }),
    { maxLength: 6 },
  ),
  requests: fc.array(
    fc.record({
      at,
      what: fc.constantFrom(...WHAT),
      instance,
      invite: fc.integer({ min: 0, max: 3 }),
      succession,
      beat,
    }),
    { minLength: 5, maxLength: 40 },
  ),
});
