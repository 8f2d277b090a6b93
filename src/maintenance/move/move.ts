/**
 * Moves a state from one database to another while nobody serves it: the old place is held, everything is copied and
 * compared, the old place is marked as moved, and the new one is published.
 *
 * The old place is marked before the new one is published, so at no time can both be served from. A move that dies
 * before the mark leaves the old place unchanged, and the next one begins anew. One that dies after it has copied
 * everything, and the next one publishes that. Only the new place shows which of the two it is: a name in the mark may
 * mean another folder on another machine.
 */

import { createAuditChain } from '../../authority/audit/audit.ts';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import type { Runtime } from '../../base/runtime.ts';
import { auditLine, encodeEntries } from '../../store/audit-log.ts';
import { metaValue } from '../../store/meta-rows.ts';
import { movedElsewhere } from '../../store/move/marks.ts';
import { differingTables, type TableSummaries } from '../../store/stream/manifest.ts';
import type {
  HeldState,
  LastEntry,
  StateFacts,
  StateReading,
  StateReceiver,
  StateSource,
} from '../../store/stream/ports.ts';
import { soundTables } from '../backup/check-state.ts';

/** One of the two places of a move, whatever database it is. */
export interface Place {
  /** As messages and the audit log name it, without a password. */
  readonly shown: string;
  /** Reads the whole state as of now. */
  openSource(): Promise<StateSource>;
  /** Whether it has a state that is not on its way. */
  isServable(): Promise<boolean>;
  /** Keeps everybody else from its state; throws one clear sentence if another process has it. */
  hold(): Promise<HeldState>;
  /** Receives a state; throws one clear sentence when there is one, or when the place is in use. */
  receive(): Promise<StateReceiver>;
}

export interface MoveOrder {
  readonly from: Place;
  readonly to: Place;
  readonly verify: VerifySignature;
  readonly runtime: Runtime;
  onStep(step: MoveStep): void;
}

/** A completed step of a move; times in milliseconds. */
export interface MoveStep {
  readonly name: 'copied' | 'compared' | 'published';
  readonly took: number;
}

export interface Moved {
  readonly facts: StateFacts;
  readonly tables: TableSummaries;
}

export interface Estimate extends Moved {
  /** How long nobody could serve the state, in milliseconds. */
  readonly expectedMs: number;
}

/**
 * How much longer a move takes than reading and checking the old place, measured with 100,000 rows: it also writes what
 * it has read, and reads and checks both places. Reading a data folder is faster than writing to a database.
 */
const TIMES_AS_LONG = { folder: 7, database: 3 } as const;

/** Reports what a move would copy, without writing anything. Rejects if the state is not sound. */
export async function checkMove(
  from: Pick<Place, 'openSource'>,
  verify: VerifySignature,
  runtime: Runtime,
): Promise<Estimate> {
  const source = await from.openSource();
  try {
    const began = runtime.elapsed();
    const tables = await soundTables(source, verify);
    const took = runtime.elapsed() - began;
    const { folder, database } = TIMES_AS_LONG;
    const times = source.database.backend === 'lmdb' ? folder : database;
    return { facts: source.facts, tables, expectedMs: times * took };
  } finally {
    await source.close();
  }
}

/**
 * Finishes what an earlier move to the same place has begun. Rejects with a one-sentence error if anything is wrong.
 * The old place is unchanged until it is marked as moved.
 */
export async function moveState(order: MoveOrder): Promise<Moved> {
  const { from, to } = order;
  const held = await from.hold();
  try {
    const isPublished = held.movedTo !== null && (await to.isServable());
    return isPublished ? await finishedMove(order, held) : await moveHeld(order, held);
  } finally {
    await held.release();
  }
}

/** What an earlier move has moved and published. */
async function finishedMove({ from, to, verify }: MoveOrder, held: HeldState): Promise<Moved> {
  const former = await from.openSource();
  try {
    const present = await to.openSource();
    await present.close();
    if (!isContinuedBy(former.facts, present.facts)) throw movedElsewhere(from.shown, held.movedTo);
    return { facts: former.facts, tables: await soundTables(former, verify) };
  } finally {
    await former.close();
  }
}

function isContinuedBy(former: StateFacts, present: StateFacts): boolean {
  if (former.network.authority_public_key !== present.network.authority_public_key) return false;
  if (present.revision > former.revision) return present.auditLength >= former.auditLength;
  return present.revision === former.revision && present.auditHead === former.auditHead;
}

async function moveHeld(order: MoveOrder, held: HeldState): Promise<Moved> {
  const { runtime, onStep } = order;
  const receiver = await order.to.receive();
  try {
    const moved =
      held.movedTo === null
        ? await copyAndRetire(order, held, receiver)
        : await takenBefore(order, held, receiver);
    const began = runtime.elapsed();
    await receiver.publish(held.wasClosed);
    onStep({ name: 'published', took: runtime.elapsed() - began });
    return moved;
  } catch (cause) {
    await receiver.leave();
    throw cause;
  }
}

async function copyAndRetire(
  order: MoveOrder,
  held: HeldState,
  receiver: StateReceiver,
): Promise<Moved> {
  const { from, to, runtime, onStep } = order;
  const source = await from.openSource();
  try {
    const began = runtime.elapsed();
    await receiver.take(source);
    onStep({ name: 'copied', took: runtime.elapsed() - began });
    const tables = await comparedWith(source, order, receiver);
    const entry = lastEntry(source, { from: from.shown, to: to.shown }, runtime);
    await receiver.complete(entry, held.wasClosed);
    await source.close();
    await held.retire(entry, to.shown);
    return { facts: source.facts, tables };
  } finally {
    await source.close();
  }
}

/** The old place is marked already: what the earlier move has copied must be its state. */
async function takenBefore(
  order: MoveOrder,
  held: HeldState,
  receiver: StateReceiver,
): Promise<Moved> {
  const former = await order.from.openSource();
  try {
    const taken = await receiver.taken().catch(() => null);
    await taken?.close();
    if (taken?.facts.auditHead !== former.facts.auditHead)
      throw movedElsewhere(order.from.shown, held.movedTo);
    return { facts: former.facts, tables: await comparedWith(former, order, receiver) };
  } finally {
    await former.close();
  }
}

/** Returns the digests, which are the same for both. */
async function comparedWith(
  former: StateReading,
  { verify, runtime, onStep }: MoveOrder,
  receiver: StateReceiver,
): Promise<TableSummaries> {
  const began = runtime.elapsed();
  const taken = await receiver.taken();
  try {
    const [tables, found] = await Promise.all([
      soundTables(former, verify),
      soundTables(taken, verify),
    ]);
    const differing = differingTables(tables, found);
    if (former.facts.revision !== taken.facts.revision || differing.length > 0) {
      throw new Error(`The state that arrived differs: ${differing.join(', ') || 'revision'}`);
    }
    onStep({ name: 'compared', took: runtime.elapsed() - began });
    return tables;
  } finally {
    await taken.close();
  }
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
