/**
 * Moves a state from one database to another beside whoever serves it. The new place follows the old one until it is
 * less than a second behind; then the old one is asked for the state, the rest follows while nobody serves it, and the
 * new place may be served from.
 *
 * The old place is marked as moved before the new one is let go of, so there is no moment in which both can be served
 * from. A move that dies before that mark leaves the old place as it was; one that dies after it has nothing left to
 * copy, and is ended by another with `resumes`.
 */
import { soundTables } from '../backup/sound-state.ts';
import type { VerifySignature } from '../crypto/primitives.ts';
import type { Runtime } from '../runtime.ts';
import { differingTables, type TableSummaries } from '../store/stream/manifest.ts';
import type { StateFacts, StateSource } from '../store/stream/ports.ts';
import type { HeldState, StateReceiver, StateTrail, TrailReading } from '../store/trail/ports.ts';
import { lastEntry } from './last-entry.ts';
import type { Asked, Place } from './ports.ts';

export interface MoveOrder {
  readonly from: Place;
  readonly to: Place;
  readonly verify: VerifySignature;
  readonly runtime: Runtime;
  /** Goes on with a move that was interrupted. */
  readonly resumes: boolean;
  /** A check of everything that took longer, milliseconds, is not repeated while nobody serves the state. */
  readonly quickCheckMs: number;
  told(step: MoveStep): void;
}

/** What a move has done; times in milliseconds. */
export type MoveStep =
  | { readonly name: 'copied' | 'followed'; readonly rows: number; readonly took: number }
  | { readonly name: 'awaited'; readonly instances: number }
  | { readonly name: 'checked'; readonly revision: number; readonly took: number }
  | ({ readonly name: 'asked' } & Asked)
  | { readonly name: 'handed-over'; readonly pause: number };

export interface Moved {
  readonly facts: StateFacts;
  readonly tables: TableSummaries;
  /** How long nobody could serve the state, milliseconds; null where it was not this move that ended it. */
  readonly pause: number | null;
}

/** Further behind than this, the new place is not ready for the hand-over. */
const BEHIND_MS = 1000;
/** So long may those who wait to serve from the new place take to read what was copied. */
const READY_MS = 120_000;
const READY_LOOK_MS = 250;
/**
 * Whoever takes over has the machine for itself for so long, before both places are read once more. Clients wait then,
 * and the comparison does not.
 */
const TAKE_OVER_MS = 5000;
/**
 * Between two looks at the old place until nobody serves it: little, so that the pause is short, and a share of the time
 * that was waited, because each look is a connection to the database or a lock that is tried.
 */
const LOOK_MS = 20;
const LOOK_SHARE = 0.05;

/** What a move would copy; nothing is written. Rejects when the state is not sound. */
export async function checkMove(
  from: Pick<Place, 'openSource'>,
  verify: VerifySignature,
): Promise<Moved> {
  const source = await from.openSource();
  try {
    return { facts: source.facts, tables: await soundTables(source, verify), pause: null };
  } finally {
    await source.close();
  }
}

/** Rejects with one sentence when anything is off. Until the old place is marked as moved, it stays as it was. */
export async function moveState(order: MoveOrder): Promise<Moved> {
  const { from, to, resumes } = order;
  const successor = await from.movedTo();
  if (successor !== null && !(resumes && (await hasArrived(from, to)))) {
    throw new Error(`The state in ${from.shown} was moved to ${successor}, and goes on there`);
  }
  if (successor !== null && (await to.isServable())) return checkMove(from, order.verify);
  const receiver = await to.receive();
  try {
    if (receiver.arrival !== null && !resumes) {
      throw new Error(
        `${to.shown} holds what an interrupted move has left; repeat this one with --resume, or remove that with --abandon`,
      );
    }
    return successor === null ? await moveBeside(order, receiver) : await endMove(order, receiver);
  } catch (cause) {
    await receiver.leave();
    throw cause;
  }
}

/** Removes what an interrupted move has left in the new place; the old one goes on as it was. */
export async function abandonMove(from: Place, to: Place): Promise<void> {
  const successor = await from.movedTo();
  if (successor !== null) {
    throw new Error(
      `The state in ${from.shown} was moved to ${successor}; end that by --resume if nobody can serve it there`,
    );
  }
  const receiver = await to.receive();
  await receiver.abandon();
}

/** Whether the new place has what the old one, which is marked as moved, had at its end. */
async function hasArrived(from: Place, to: Place): Promise<boolean> {
  const former = await from.openSource();
  try {
    const arrived = await to.openSource().catch(() => null);
    if (arrived === null) return false;
    await arrived.close();
    return isContinuedBy(former.facts, arrived.facts);
  } finally {
    await former.close();
  }
}

function isContinuedBy(former: StateFacts, present: StateFacts): boolean {
  if (former.network.authority_public_key !== present.network.authority_public_key) return false;
  if (present.revision > former.revision) return present.auditLength >= former.auditLength;
  return present.revision === former.revision && present.auditHead === former.auditHead;
}

async function moveBeside(order: MoveOrder, receiver: StateReceiver): Promise<Moved> {
  const { from } = order;
  const trail = await from.openTrail();
  let held: HeldState | null = null;
  try {
    const follower = createFollowing(order, trail, receiver);
    await follower.copy();
    const checkTook = await follower.check(await follower.catchUp());
    await awaitReaders(order, receiver, follower);
    await follower.catchUp();
    const handedOver = await handOver(order, follower);
    held = handedOver.held;
    const last = await follower.step();
    const isSmall = checkTook <= order.quickCheckMs;
    if (isSmall) await follower.check(last);
    return await giveUp(order, { receiver, trail, last, isSmall, ...handedOver });
  } finally {
    await trail.close();
    await held?.release();
  }
}

interface Following {
  copy(): Promise<void>;
  /** Brings the new place to what the old one has now. */
  step(): Promise<TrailReading>;
  /** Until that takes less than a second. */
  catchUp(): Promise<TrailReading>;
  /** Compares both places as of the last reading; returns how long it took. */
  check(last: TrailReading): Promise<number>;
}

function createFollowing(
  { from, verify, runtime, told }: MoveOrder,
  trail: StateTrail,
  receiver: StateReceiver,
): Following {
  async function take(name: 'copied' | 'followed', reading: TrailReading, began: number) {
    const rows = await receiver.take(reading);
    const took = runtime.elapsed() - began;
    told({ name, rows, took });
    return took;
  }

  async function timedStep() {
    const began = runtime.elapsed();
    const reading = await trail.next();
    return { reading, took: await take('followed', reading, began) };
  }

  return {
    async copy() {
      const began = runtime.elapsed();
      const reading = await trail.next();
      const { network } = reading.source.facts;
      await receiver.begin({ from: from.shown, network });
      await take('copied', reading, began);
    },
    step: async () => (await timedStep()).reading,
    async catchUp() {
      for (;;) {
        const { reading, took } = await timedStep();
        if (took < BEHIND_MS) return reading;
      }
    },
    async check({ source }) {
      const began = runtime.elapsed();
      const arrived = await receiver.openSource();
      try {
        await assertSame(source, arrived, verify);
      } finally {
        await arrived.close();
      }
      const took = runtime.elapsed() - began;
      told({ name: 'checked', revision: source.facts.revision, took });
      return took;
    },
  };
}

/** An instance that had not read the state yet would leave clients without an answer until it has. */
async function awaitReaders(
  { runtime, told }: MoveOrder,
  receiver: StateReceiver,
  follower: Following,
): Promise<void> {
  const began = runtime.elapsed();
  let known = 0;
  for (;;) {
    const instances = await receiver.unready();
    if (instances === 0 || runtime.elapsed() - began >= READY_MS) return;
    if (instances !== known) told({ name: 'awaited', instances });
    known = instances;
    await runtime.pause(READY_LOOK_MS);
    await follower.step();
  }
}

interface HandedOver {
  readonly held: HeldState;
  /** When whoever served the state was last seen to have it, by the monotonic clock. */
  readonly since: number;
}

/** Asks for the old place until nobody else has it, and follows it meanwhile. */
async function handOver(
  { from, runtime, told }: MoveOrder,
  follower: Following,
): Promise<HandedOver> {
  const began = runtime.elapsed();
  let known: Asked | null = null;
  let since = began;
  for (;;) {
    const lookedAt = runtime.elapsed();
    const held = await from.hold();
    if (held !== null) return { held, since };
    since = lookedAt;
    const asked = await from.ask();
    if (asked.holder !== known?.holder || asked.isAsked !== known?.isAsked)
      told({ name: 'asked', ...asked });
    known = asked;
    await follower.step();
    const waited = runtime.elapsed() - began;
    await runtime.pause(Math.max(LOOK_MS, waited * LOOK_SHARE));
  }
}

interface LastStep extends HandedOver {
  readonly receiver: StateReceiver;
  readonly trail: StateTrail;
  readonly last: TrailReading;
  /** Whether a check of everything takes no time that matters. */
  readonly isSmall: boolean;
}

async function giveUp(
  order: MoveOrder,
  { receiver, trail, last, isSmall, held, since }: LastStep,
): Promise<Moved> {
  const { from, to, runtime } = order;
  const entry = lastEntry(last, { from: from.shown, to: to.shown }, runtime);
  await receiver.complete(entry);
  const arrived = await receiver.openSource();
  await trail.close();
  await held.retire(entry, to.shown);
  return letGo(order, receiver, { arrived, isClosed: held.wasClosed, since, isSmall });
}

/** The end of a move whose old place is marked as moved already. */
async function endMove(order: MoveOrder, receiver: StateReceiver): Promise<Moved> {
  const former = await order.from.openSource();
  const { isClosed } = former.facts;
  await former.close();
  const arrived = await receiver.openSource();
  // How large it is was known to the move that was interrupted.
  return letGo(order, receiver, { arrived, isClosed, since: null, isSmall: true });
}

interface Letting {
  /** What has arrived, as it is before anybody serves it. */
  readonly arrived: StateSource;
  readonly isClosed: boolean;
  readonly since: number | null;
  readonly isSmall: boolean;
}

/** What is compared after the hand-over stands still on both sides, whoever serves the new place meanwhile. */
async function letGo(
  { from, to, verify, runtime, told }: MoveOrder,
  receiver: StateReceiver,
  { arrived, isClosed, since, isSmall }: Letting,
): Promise<Moved> {
  try {
    await receiver.publish(isClosed);
    const pause = since === null ? null : runtime.elapsed() - since;
    if (pause !== null) told({ name: 'handed-over', pause });
    if (!isSmall) await runtime.pause(TAKE_OVER_MS);
    const former = await from.openSource();
    try {
      const tables = await assertSame(former, arrived, verify);
      return { facts: former.facts, tables, pause };
    } catch (cause) {
      const what = cause instanceof Error ? cause.message : String(cause);
      throw new Error(
        `${what}. ${to.shown} can be served from since the hand-over: stop that, and restore a backup`,
      );
    } finally {
      await former.close();
    }
  } finally {
    await arrived.close();
  }
}

/** Returns the digests, which are those of both. */
async function assertSame(
  former: StateSource,
  arrived: StateSource,
  verify: VerifySignature,
): Promise<TableSummaries> {
  const [tables, found] = await Promise.all([
    soundTables(former, verify),
    soundTables(arrived, verify),
  ]);
  const differing = differingTables(tables, found);
  const isSame = former.facts.revision === arrived.facts.revision && differing.length === 0;
  if (isSame) return tables;
  throw new Error(`What has arrived is not the same state: ${differing.join(', ') || 'revision'}`);
}
