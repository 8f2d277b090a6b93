/** What can happen to three instances: requests, and everything that goes wrong meanwhile. */
import fc from 'fast-check';
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

export interface Request {
  readonly at: number;
  readonly what: 'revoke' | 'join' | 'read';
  readonly instance: number;
  readonly invite: number;
}

export interface History {
  /** Of everything that is left to chance: how long messages take. */
  readonly seed: number;
  /** How fast the clock of each machine is. */
  readonly rates: readonly number[];
  readonly faults: readonly DrawnFault[];
  readonly requests: readonly Request[];
}

/** Close together: what goes wrong at different times is mended in between. */
const at = fc
  .tuple(fc.constantFrom(0, 0, 1, 1, 2), fc.integer({ min: 0, max: 500 }))
  .map(([time, later]) => (time * TROUBLE_MS) / 2 + later);
const instance = fc.integer({ min: 0, max: INSTANCES - 1 });

export const histories: fc.Arbitrary<History> = fc.record({
  seed: fc.integer(),
  rates: fc.array(fc.double({ min: 0.97, max: 1.03, noNaN: true }), {
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
      what: fc.constantFrom('revoke', 'revoke', 'join', 'read'),
      instance,
      invite: fc.integer({ min: 0, max: 3 }),
    }),
    { minLength: 5, maxLength: 30 },
  ),
});
