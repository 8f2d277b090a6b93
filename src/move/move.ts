/**
 * Moves a state from one database to another while nobody serves it. The old one is marked as moved only once
 * the new one holds every row, so that a move that is interrupted can be done again.
 */
import { createAuditChain } from '../authority/engine/audit.ts';
import { soundTables } from '../backup/sound-state.ts';
import type { VerifySignature } from '../crypto/primitives.ts';
import type { Runtime } from '../runtime.ts';
import type { Store } from '../store/store.ts';
import { batchesOf, fill } from '../store/stream/copy.ts';
import { differingTables, type TableSummaries } from '../store/stream/manifest.ts';
import type { StateFacts, StateSource, StateTarget } from '../store/stream/ports.ts';

/** One database, as a move uses it. */
export interface Place {
  /** As messages and the audit log name it, without a password. */
  readonly shown: string;
  openSource(): Promise<StateSource>;
  openTarget(): Promise<StateTarget>;
}

export interface MoveOrder {
  readonly from: Place;
  readonly to: Place;
  /** The old state, which nobody else can open while it is held. */
  readonly held: Store;
  readonly verify: VerifySignature;
  readonly runtime: Runtime;
  /** Goes on with a move that was interrupted once the rows were copied. */
  readonly resumes: boolean;
}

export interface Moved {
  readonly facts: StateFacts;
  readonly tables: TableSummaries;
}

/** What a move would copy; nothing is written. Rejects when the state is not sound. */
export async function checkMove(from: Place, verify: VerifySignature): Promise<Moved> {
  const source = await from.openSource();
  try {
    return { facts: source.facts, tables: await soundTables(source, verify) };
  } finally {
    await source.close();
  }
}

/** Rejects with one sentence when anything differs; the old state stays in use then. */
export async function moveState(order: MoveOrder): Promise<Moved> {
  const { from, to, held, verify, resumes } = order;
  const wasClosed = await wasClosedCleanly(held);
  try {
    await checkMove(from, verify);
    if (!resumes) await recordMove(order);
    const moved = await copyState(order, wasClosed);
    await held.retire(to.shown);
    return moved;
  } catch (cause) {
    await (wasClosed ? held.close() : held.abandon());
    throw cause;
  }
}

async function wasClosedCleanly(held: Store): Promise<boolean> {
  const { previousOwner, dispose } = await held.load();
  await dispose();
  return previousOwner !== 'lost';
}

async function copyState(
  { from, to, verify, resumes }: MoveOrder,
  isClosed: boolean,
): Promise<Moved> {
  const source = await from.openSource();
  try {
    const facts = { ...source.facts, isClosed };
    if (!resumes) await fill(await to.openTarget(), batchesOf(source), facts);
    const tables = await soundTables(source, verify);
    await assertArrived(to, tables, facts, verify);
    return { facts, tables };
  } finally {
    await source.close();
  }
}

/** The last entry of the old log, and so a part of the new one. */
async function recordMove({ from, to, held, runtime }: MoveOrder): Promise<void> {
  const { revision, auditHead } = await held.position();
  const details = { from: from.shown, to: to.shown, revision };
  const audit = createAuditChain(auditHead, runtime).extend(
    [{ type: 'store_moved', details, actorKeyId: null }],
    runtime.now(),
  );
  await held.commit({ subjects: [], removals: [], nonces: [], audit });
}

async function assertArrived(
  { shown, openSource }: Place,
  tables: TableSummaries,
  facts: StateFacts,
  verify: VerifySignature,
): Promise<void> {
  const arrived = await openSource();
  try {
    const differing = differingTables(tables, await soundTables(arrived, verify));
    const isSame = arrived.facts.revision === facts.revision && differing.length === 0;
    if (isSame) return;
    throw new Error(`${shown} does not hold the same state: ${differing.join(', ') || 'revision'}`);
  } finally {
    await arrived.close();
  }
}
