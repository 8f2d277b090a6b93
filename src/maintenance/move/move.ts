/**
 * Moves a state from one database to another while it is being served. Differences between the two places are copied
 * repeatedly until little is left. Then the serving process is asked to release the state, the last difference is
 * copied while nobody serves it, and the new place may be served from.
 *
 * The old place is marked as moved before the new one is released, so at no time can both be served from. A move that
 * dies before that mark leaves the old place unchanged; one that dies after it has nothing left to copy, and a second
 * move with `resumes` completes it.
 */

import { createAuditChain } from '../../authority/subjects/audit.ts';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { messageOf } from '../../base/error-message.ts';
import type { Runtime } from '../../base/runtime.ts';
import { auditLine, encodeEntries } from '../../store/audit-log.ts';
import { metaValue } from '../../store/meta-rows.ts';
import { differingTables, type TableSummaries } from '../../store/stream/manifest.ts';
import type {
  HeldState,
  LastEntry,
  StateFacts,
  StateReader,
  StateReading,
  StateReceiver,
  StateSource,
} from '../../store/stream/ports.ts';
import { soundTables } from '../backup/check-state.ts';

/** One of the two places of a move, whatever database it is. */
export interface Place {
  /** As messages and the audit log name it, without a password. */
  readonly shown: string;
  /** Reads the whole state as of now, also one that has arrived without being let go of. */
  openSource(): Promise<StateSource>;
  /** Whether it has a state that is not on its way. */
  isServable(): Promise<boolean>;
  /** Where its state goes on; null when it goes on here, or when there is none. */
  movedTo(): Promise<string | null>;
  /** Reads the state again and again while it is served. */
  openReader(): Promise<StateReader>;
  /** Asks the process that serves the state to stop; any number of times. */
  ask(): Promise<Asked>;
  /** Null while another process has the state. */
  hold(): Promise<HeldState | null>;
  /** Receives a state; throws one clear sentence when there is one, or when the place is in use. */
  receive(): Promise<StateReceiver>;
}

export interface Asked {
  /** The name of the process that serves the state; null when that is not known. */
  readonly holder: string | null;
  /** False when somebody else has to stop it. */
  readonly isAsked: boolean;
}

export interface MoveOrder {
  readonly from: Place;
  readonly to: Place;
  readonly verify: VerifySignature;
  readonly runtime: Runtime;
  /** Continues an interrupted move. */
  readonly resumes: boolean;
  /** If the full check took longer than this, in milliseconds, it is not repeated while nobody serves the state. */
  readonly quickCheckMs: number;
  onStep(step: MoveStep): void;
}

/** A completed step of a move; times in milliseconds. */
export type MoveStep =
  | { readonly name: 'copied' | 'compared'; readonly rows: number; readonly took: number }
  | { readonly name: 'awaited'; readonly instances: number }
  | { readonly name: 'checked'; readonly revision: number; readonly took: number }
  | ({ readonly name: 'asked' } & Asked)
  | { readonly name: 'handed-over'; readonly pause: number };

export interface Moved {
  readonly facts: StateFacts;
  readonly tables: TableSummaries;
  /** How long nobody could serve the state, in milliseconds; null if this run did not perform the hand-over. */
  readonly pause: number | null;
}

/** A difference that is copied in less time is small enough for clients to wait for the next one. */
const LITTLE_MS = 1000;
/**
 * If a step takes at least this fraction of the previous step's time, the difference will not shrink further, because
 * reading both places dominates.
 */
const SAME_SHARE = 0.8;
/** How long instances waiting at the new place may take to read the copied state. */
const READY_MS = 120_000;
const READY_LOOK_MS = 250;
/**
 * How long the new server has the machine to itself before both places are read once more. Clients are waiting then,
 * and the comparison can wait.
 */
const TAKE_OVER_MS = 5000;
/**
 * The interval at which the old place is polled until nobody serves it: short, to keep the pause short, but growing
 * with the time waited, because each poll opens a connection or tries a lock.
 */
const LOOK_MS = 20;
const LOOK_SHARE = 0.05;

/** Reports what a move would copy, without writing anything. Rejects if the state is not sound. */
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

/** Rejects with a one-sentence error if anything is wrong. The old place is unchanged until it is marked as moved. */
export async function moveState(order: MoveOrder): Promise<Moved> {
  const { from, to, resumes } = order;
  const successor = await from.movedTo();
  if (successor !== null && !(resumes && (await hasArrived(from, to)))) {
    throw new Error(`The state in ${from.shown} was moved to ${successor} and continues there`);
  }
  if (successor !== null && (await to.isServable())) return checkMove(from, order.verify);
  const receiver = await to.receive();
  try {
    if (receiver.arrival !== null && !resumes) {
      throw new Error(
        `${to.shown} contains the remains of an interrupted move; continue it with --resume, or remove them with --abandon`,
      );
    }
    return successor === null ? await moveBeside(order, receiver) : await endMove(order, receiver);
  } catch (cause) {
    await receiver.leave();
    throw cause;
  }
}

/** Removes the remains of an interrupted move from the new place; the old one continues unchanged. */
export async function abandonMove(from: Place, to: Place): Promise<void> {
  const successor = await from.movedTo();
  if (successor !== null) {
    throw new Error(
      `The state in ${from.shown} was moved to ${successor}; complete the move with --resume if nobody can serve it there`,
    );
  }
  const receiver = await to.receive();
  await receiver.abandon();
}

/** Whether the new place has the final state of the old one, which is marked as moved. */
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
  const { from, to } = order;
  const reader = await from.openReader();
  let held: HeldState | null = null;
  try {
    const copying = createCopying(order, reader, receiver);
    await copying.begin();
    await copying.catchUp();
    const checkTook = await copying.check();
    await awaitReaders(order, receiver);
    await copying.catchUp();
    const handedOver = await handOver(order, copying);
    held = handedOver.held;
    const last = await copying.step();
    const isSmall = checkTook <= order.quickCheckMs;
    if (isSmall) await copying.check();
    const entry = lastEntry(last, { from: from.shown, to: to.shown }, order.runtime);
    await receiver.complete(entry, held.wasClosed);
    const arrived = await to.openSource();
    await reader.close();
    await held.retire(entry, to.shown);
    const { since } = handedOver;
    return await letGo(order, receiver, { arrived, isClosed: held.wasClosed, since, isSmall });
  } finally {
    await reader.close();
    await held?.release();
  }
}

interface Copying {
  /** Copies everything. */
  begin(): Promise<void>;
  /** Brings the new place up to date with the old one. */
  step(): Promise<StateReading>;
  /** Repeats `step` until the difference is small. */
  catchUp(): Promise<void>;
  /** Compares both places as of the last step; returns how long it took. */
  check(): Promise<number>;
}

function createCopying(
  { from, to, verify, runtime, onStep }: MoveOrder,
  reader: StateReader,
  receiver: StateReceiver,
): Copying {
  let last: StateReading;
  let lastTook = Number.POSITIVE_INFINITY;

  async function copy(name: 'copied' | 'compared'): Promise<void> {
    const began = runtime.elapsed();
    last = await reader.next();
    if (name === 'copied') {
      await receiver.begin({ from: from.shown, network: last.facts.network });
    }
    const rows = await receiver.take(last);
    lastTook = runtime.elapsed() - began;
    onStep({ name, rows, took: lastTook });
  }

  return {
    begin: () => copy('copied'),
    async step() {
      await copy('compared');
      return last;
    },
    async catchUp() {
      for (;;) {
        const before = lastTook;
        await copy('compared');
        if (lastTook < LITTLE_MS || lastTook >= before * SAME_SHARE) return;
      }
    },
    async check() {
      const began = runtime.elapsed();
      const arrived = await to.openSource();
      try {
        await assertSame(last, arrived, verify);
      } finally {
        await arrived.close();
      }
      const took = runtime.elapsed() - began;
      onStep({ name: 'checked', revision: last.facts.revision, took });
      return took;
    },
  };
}

/** Waits for instances at the new place: one that has not read the state yet could not answer clients. */
async function awaitReaders(
  { runtime, onStep }: MoveOrder,
  receiver: StateReceiver,
): Promise<void> {
  const began = runtime.elapsed();
  let known = 0;
  for (;;) {
    const instances = await receiver.unready();
    if (instances === 0 || runtime.elapsed() - began >= READY_MS) return;
    if (instances !== known) onStep({ name: 'awaited', instances });
    known = instances;
    await runtime.pause(READY_LOOK_MS);
  }
}

interface HandedOver {
  readonly held: HeldState;
  /** When the serving process was last seen holding the state, by the monotonic clock. */
  readonly since: number;
}

/** Asks for the release of the old place until nobody else holds it. */
async function handOver(
  { from, runtime, onStep }: MoveOrder,
  copying: Copying,
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
      onStep({ name: 'asked', ...asked });
    known = asked;
    // If a person has to stop the server, that may take any time, so copying continues. A server that was asked stops
    // soon, and clients would have to wait for the end of a step.
    if (!asked.isAsked) await copying.step();
    const waited = runtime.elapsed() - began;
    await runtime.pause(Math.max(LOOK_MS, waited * LOOK_SHARE));
  }
}

/** Completes a move whose old place is already marked as moved. */
async function endMove(order: MoveOrder, receiver: StateReceiver): Promise<Moved> {
  const { from, to } = order;
  const former = await from.openSource();
  const { isClosed } = former.facts;
  await former.close();
  const arrived = await to.openSource();
  // Only the interrupted move knew the size of the state.
  return letGo(order, receiver, { arrived, isClosed, since: null, isSmall: true });
}

interface Letting {
  /** The state that arrived, before anybody serves it. */
  readonly arrived: StateSource;
  readonly isClosed: boolean;
  readonly since: number | null;
  readonly isSmall: boolean;
}

/** The comparison after the hand-over reads fixed revisions on both sides, even if the new place is already served. */
async function letGo(
  { from, to, verify, runtime, onStep }: MoveOrder,
  receiver: StateReceiver,
  { arrived, isClosed, since, isSmall }: Letting,
): Promise<Moved> {
  try {
    await receiver.publish(isClosed);
    const pause = since === null ? null : runtime.elapsed() - since;
    if (pause !== null) onStep({ name: 'handed-over', pause });
    if (!isSmall) await runtime.pause(TAKE_OVER_MS);
    try {
      const former = await from.openSource();
      try {
        const tables = await assertSame(former, arrived, verify);
        return { facts: former.facts, tables, pause };
      } finally {
        await former.close();
      }
    } catch (cause) {
      throw new Error(
        cause instanceof Difference
          ? `${cause.message}. ${to.shown} has been ready to serve since the hand-over: stop its server, and restore a backup`
          : `The state was moved to ${to.shown} and continues there, but it could not be compared once more (${messageOf(cause)}): check it with mesh-na store verify`,
      );
    }
  } finally {
    await arrived.close();
  }
}

/** The two places do not have the same state. */
class Difference extends Error {}

/** Returns the digests, which are the same for both. */
async function assertSame(
  former: StateReading,
  arrived: StateReading,
  verify: VerifySignature,
): Promise<TableSummaries> {
  const [tables, found] = await Promise.all([
    soundTables(former, verify),
    soundTables(arrived, verify),
  ]);
  const differing = differingTables(tables, found);
  const isSame = former.facts.revision === arrived.facts.revision && differing.length === 0;
  if (isSame) return tables;
  throw new Difference(`The state that arrived differs: ${differing.join(', ') || 'revision'}`);
}

/** The last entry of the old log, and therefore part of the new one. */
function lastEntry(
  { meta, facts }: Pick<StateReading, 'meta' | 'facts'>,
  details: { readonly from: string; readonly to: string },
  runtime: Runtime,
): LastEntry {
  const { revision, auditHead } = facts;
  const drafts = [
    { type: 'store_moved', details: { ...details, revision }, actorKeyId: null },
  ] as const;
  const [entry] = createAuditChain(auditHead, runtime).extend(drafts, runtime.now());
  if (entry === undefined) throw new Error('The audit log was not extended');
  const totals = metaValue(meta, 'totals');
  const number = totals.auditEntries + 1;
  return {
    number,
    row: encodeEntries(number, [auditLine(entry)]),
    totals: { ...totals, revision: revision + 1, auditEntries: number },
  };
}
