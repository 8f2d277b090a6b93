/** The steps of a history, and how fast-check draws them. */
import fc from 'fast-check';
import type { JsonObject } from '../../src/base/json/value.ts';
import { type CallName, type CallOf, call, DEFAULT_POLICY } from './authority-calls.ts';
import type { Sent } from './decisions.ts';
import {
  anyOf,
  type Drawn,
  event,
  HOUR,
  type Kind,
  late,
  MINUTE,
  pick,
  request,
  SECOND,
} from './kinds.ts';
import { readPolicy } from './model/enrollment.ts';
import { answered } from './model/state.ts';
import { AGENT_STEPS, NODE_STEPS } from './node-steps.ts';
import {
  INVITE_STEPS,
  RECOGNITION_STEPS,
  REVOCATION_STEPS,
  SUCCESSION_STEPS,
} from './operator-steps.ts';
import { keyOfAuthority } from './successions.ts';
import { compareAll } from './views.ts';
import type { World } from './world.ts';

const REQUESTS = {
  ...INVITE_STEPS,
  ...NODE_STEPS,
  ...REVOCATION_STEPS,
  readPolicy: request(1, {}, () => ({
    ...asking('ensurePolicy', null),
    predict: (moment) => [readPolicy(moment, DEFAULT_POLICY)],
  })),
  readCrl: request(2, {}, () => asking('refreshCrl', null)),
  ...AGENT_STEPS,
  ...RECOGNITION_STEPS,
  /** Sends the exact bytes of an earlier request again. */
  replay: request(
    9,
    { request: fc.oneof(fc.nat({ max: 4 }), fc.nat({ max: 40 })), late },
    ({ request }, { sent }) => {
      const earlier = pick(sent, request);
      return earlier && { ...earlier, isSigned: false };
    },
  ),
};

const SUCCESSIONS = {
  ...SUCCESSION_STEPS,
  /** Performs the key change that is due. */
  keepKeys: event(2, {}, (_, world) => world.keepKeys()),
  /** The authority receives the private key of the next key. */
  bringKey: event(1, {}, (_, { shown, process }) => {
    const { staged } = shown.authority;
    if (staged !== null) process.folder.put(keyOfAuthority(staged.statement.to));
  }),
  /** Of an issuer that has never revoked anything. */
  readEmptyFeed: request(1, {}, (_, { documents }) => ({
    ...asking('refreshForeignFeed', { issuer: 'nobody' }),
    learn: (feed) => documents.assertOneContent('the empty feed', feed as JsonObject),
  })),
};

/** Waits and clock steps cross the relevant limits: tolerance, windows, validities, half days. */
const EVENTS = {
  wait: event(
    8,
    {
      ms: anyOf(
        ...[SECOND, 30 * SECOND, 4 * MINUTE, 6 * MINUTE, 12 * MINUTE, 16 * MINUTE],
        ...[2 * HOUR, 13 * HOUR, 25 * HOUR],
      ),
    },
    ({ ms }, { runtime }) => runtime.advance(ms),
  ),
  /** Flushes and answers everything in flight. */
  settle: event(3, {}, (_, world) => world.settle()),
  /** Some of what is in flight reaches the disk; nothing is answered yet. */
  persist: event(2, { count: fc.nat({ max: 3 }) }, ({ count }, { process }) =>
    process.store.persist(count),
  ),
  flushLiveness: event(3, {}, (_, world) => world.flushLiveness()),
  renewLists: event(1, {}, (_, world) => world.begin(({ renewLists }) => renewLists())),
  sweep: event(2, {}, (_, world) => world.begin(({ sweep }) => sweep())),
  crash: event(
    3,
    { persisted: fc.nat({ max: 3 }), again: fc.boolean() },
    async ({ persisted, again }, world) => {
      await world.crash(persisted, again);
      await compareAll(world);
    },
  ),
  failFlush: event(1, {}, async (_, world) => {
    await world.failFlush();
    await compareAll(world);
  }),
  restart: event(2, {}, async (_, world) => {
    await world.restart();
    await compareAll(world);
  }),
};

const CLOCKS = {
  /** Sets the wall clock. */
  setClock: event(3, { ms: anyOf(-MINUTE, MINUTE, -4 * MINUTE, -12 * MINUTE) }, ({ ms }, world) =>
    world.runtime.setWallClock(ms),
  ),
};

const KINDS = { ...REQUESTS, ...SUCCESSIONS, ...EVENTS, ...CLOCKS };

/** A request of anybody, which succeeds. */
function asking<Name extends CallName>(name: Name, given: CallOf<Name>): Sent {
  return {
    label: `the call ${name}`,
    isSigned: false,
    judge: () => (authority) => call(authority, name, given),
    predict: () => [answered()],
  };
}

export type Step = {
  [Do in keyof typeof KINDS]: { readonly do: Do } & Drawn<(typeof KINDS)[Do]['members']>;
}[keyof typeof KINDS];

export async function perform(step: Step, world: World): Promise<void> {
  const kind: Kind = KINDS[step.do];
  await kind.perform(step, world);
}

export interface History {
  /** How many nodes are enrolled before the first step. */
  readonly enrolled: number;
  readonly steps: readonly Step[];
}

/** Whether the clocks of nodes and of the authority are right, or wrong within the tolerance and set at times. */
export type Clocks = 'right' | 'wrong';

const MAX_STEPS = 60;

/** `successions` multiplies how often the authority's key is replaced. Shrinking omits whole steps. */
export function history(clocks: Clocks, successions: number): fc.Arbitrary<History> {
  const drawn = [
    ...drawnFrom(REQUESTS, 1),
    ...drawnFrom(SUCCESSIONS, successions),
    ...drawnFrom(EVENTS, 1),
    ...drawnFrom(CLOCKS, clocks === 'wrong' ? 1 : 0),
  ];
  const step = fc
    .noShrink(fc.oneof(...drawn))
    .map((one) => (clocks === 'wrong' ? one : onTime(one)));
  return fc.record({
    enrolled: anyOf(0, 3, 3, 2),
    steps: fc.array(step, { minLength: 1, maxLength: MAX_STEPS, size: 'max' }),
  });
}

function drawnFrom(kinds: Readonly<Record<string, Kind>>, times: number) {
  return Object.entries(kinds).map(([name, { weight, members }]) => {
    const step =
      Object.keys(members).length === 0
        ? fc.constant({ do: name })
        : fc.record({ do: fc.constant(name), ...members });
    return { weight: weight * times, arbitrary: step as fc.Arbitrary<object> };
  }) as { readonly weight: number; readonly arbitrary: fc.Arbitrary<Step> }[];
}

function onTime(step: Step): Step {
  return 'node' in step && 'flaw' in step && step.flaw === 'ahead'
    ? { ...step, flaw: 'none' }
    : step;
}
