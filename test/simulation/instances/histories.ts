/** What can happen to three instances: requests, and everything that goes wrong meanwhile. */
import fc from 'fast-check';
import { BEATING, type DrawnBeat } from './beats.ts';
import { FAULTS, type FaultName } from './faults.ts';

export const INSTANCES = 3;
/** How long requests come and faults begin, milliseconds. */
export const TROUBLE_MS = 2500;
export const LONGEST_FAULT_MS = 2500;

export interface DrawnFault {
  readonly at: number;
  readonly what: FaultName;
  readonly instance: number;
  /** Until it is over, milliseconds. */
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
    /** The private keys that an instance lacks come. */
    | 'bringKeys'
    | 'beat'
    /** The very bytes of an earlier heartbeat. */
    | 'repeatBeat';
  readonly instance: number;
  readonly invite: number;
  readonly succession: DrawnSuccession;
  readonly beat: DrawnBeat;
}

export interface DrawnSuccession {
  readonly kind: 'planned' | 'compromise';
  /** Milliseconds. */
  readonly activatesIn: number;
  readonly overlap: number;
  /** Which instances have the next key from the beginning. */
  readonly holders: readonly boolean[];
}

export interface History {
  /** Of everything that is left to chance: how long messages take. */
  readonly seed: number;
  /** How fast the clock of each machine is. */
  readonly rates: readonly number[];
  /** By how much its wall clock is ahead, milliseconds. */
  readonly ahead: readonly number[];
  readonly faults: readonly DrawnFault[];
  readonly requests: readonly DrawnRequest[];
}

/** Close together: what goes wrong at different times is mended in between. */
const at = fc
  .tuple(fc.constantFrom(0, 0, 1, 1, 2), fc.integer({ min: 0, max: 500 }))
  .map(([time, later]) => (time * TROUBLE_MS) / 2 + later);
const instance = fc.integer({ min: 0, max: INSTANCES - 1 });

const WHAT = [
  ...(['revoke', 'revoke', 'revoke', 'join', 'join', 'read', 'read'] as const),
  ...(['stage', 'stage', 'activate', 'activate', 'rollBack', 'finish', 'bringKeys'] as const),
  ...(['beat', 'beat', 'beat', 'beat', 'beat', 'repeatBeat', 'repeatBeat', 'repeatBeat'] as const),
] as const;

/** Most are the first of their node, which are signed, or genuine. */
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
