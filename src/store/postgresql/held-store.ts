/**
 * The store in a PostgreSQL database, for as long as this process holds the lease.
 *
 * Units that arrive during a transaction are written together in the next one, by a single statement. Its cost is a
 * round trip, a flush of the database and the rows.
 */
import type { Client } from 'pg';
import { createSharedWork } from '../../base/work.ts';
import { createLineReader, encodeEntries, readHash, readHead } from '../audit-log.ts';
import {
  type Batch,
  createUnitQueue,
  type PendingUnit,
  putTogether,
  type StoredVersion,
  settle,
} from '../batch.ts';
import { contentsOf, historyIn, subjectsOf } from '../contents.ts';
import { encodeMeta, type MetaRows, metaValue, shapesIn } from '../meta-rows.ts';
import type {
  StatePosition,
  Store,
  StoreContents,
  StoredHistory,
  StoredLiveness,
  TimeRange,
} from '../store.ts';
import { encodeHistory, encodeLiveness } from '../table-rows.ts';
import {
  addressOf,
  assertKeyLength,
  type EncodedUnit,
  encodeUnit,
  NOT_STORED,
  nonceBucket,
  nonceRows,
  totalsAfter,
} from '../units.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import type { Lease } from './lease.ts';
import { beginReading, postgresqlTables, tableReader } from './tables.ts';
import { ChangedSubject, createReading, type Session, type Writing } from './writing.ts';

/** The limits of one transaction, so that none is too large for the protocol or takes too long. */
const MOST_UNITS = 2000;
const MOST_BYTES = 8 * 1024 ** 2;
const FORGET_AT_MOST = 20_000;

/** `meta` contains the metadata of the state when the lease begins. */
export function heldStore(
  { address, leaseMs }: { readonly address: StoreAddress; readonly leaseMs: number },
  meta: MetaRows,
  lease: Lease,
  writing: Writing,
): Store {
  const shapes = shapesIn(meta);
  let storedShapes = shapes.table.length;
  let totals = metaValue(meta, 'totals');
  /** The stored row, which each change of the totals names as the one that it replaces. */
  let totalsRow = meta.get('totals') ?? Buffer.alloc(0);
  const queue = createUnitQueue({
    failure: writing.failure,
    encode: (unit) => encodeUnit(unit, shapes),
    flush: (waiting) => writing.inTurn((session) => flushSome(session, waiting)),
  });
  const forgetting = createSharedWork();
  /** For each `touchMany` in progress, the ids whose liveness was removed in the meantime. */
  const removedMeanwhile = new Set<Set<string>>();
  const readers = new Set<Client>();
  /** Before the state is served. Commits can run between two of its statements. */
  const tables = tableReader((question, values) =>
    writing.inTurn(({ read }) => read(question, values)),
  );

  const reading = createReading(async () => {
    const limits = { timeout: 2 * leaseMs, lockMs: leaseMs, connectMs: leaseMs };
    return (await connectToPrimary(address, limits)).client;
  });
  const servedTables = tableReader(reading.read);
  const readLines = createLineReader();

  async function load(): Promise<StoreContents> {
    await writing.idle();
    // The transaction of this connection stays open until the last row is read.
    const { client } = await connectToPrimary(address);
    readers.add(client);
    async function dispose(): Promise<void> {
      if (readers.delete(client)) await disconnect(client);
    }
    try {
      const contents = await contentsOf(
        postgresqlTables(client),
        await beginReading(client),
        shapes,
      );
      return { ...contents, previousOwner: lease.previousOwner, dispose };
    } catch (cause) {
      await dispose();
      throw cause;
    }
  }

  async function flushSome(session: Session, waiting: PendingUnit[]): Promise<void> {
    const pending = waiting.splice(0, countForOne(waiting));
    try {
      await flush(session, pending);
    } catch (cause) {
      writing.fail(cause);
      for (const { reject } of pending) reject(cause);
    }
  }

  async function flush(session: Session, pending: readonly PendingUnit[]): Promise<void> {
    const before = totals.revision;
    let batch = putTogether(pending, before, null);
    if (!(batch.isChecked && (await isStored(session, batch)))) {
      batch = putTogether(pending, before, await readVersions(session, pending));
      if (!(await isStored(session, batch))) throw new Error('The database was changed by others');
    }
    settle(batch, before);
  }

  /** Stores the batch; returns false, with nothing stored, if a subject has a version other than the assumed one. */
  async function isStored({ change }: Session, batch: Batch): Promise<boolean> {
    if (batch.accepted.length === 0) return true;
    const { values, next } = valuesOf(batch);
    const shapesToStore = shapes.table.length;
    const row = encodeMeta('totals', next);
    const withShapes = shapesToStore === storedShapes ? null : encodeMeta('shapes', shapes.table);
    try {
      await change(COMMIT, [lease.term, totalsRow, row, withShapes, ...values, lease.holder]);
    } catch (cause) {
      if (cause instanceof ChangedSubject) return false;
      throw cause;
    }
    totals = next;
    totalsRow = row;
    storedShapes = shapesToStore;
    for (const removed of removedMeanwhile) for (const id of batch.removedIds) removed.add(id);
    return true;
  }

  /** The parameters of a commit, except for the lease, the totals and the shapes. */
  function valuesOf({ accepted, changes, removedIds }: Batch) {
    const units = accepted.map(({ unit }) => unit);
    const written = changes.filter(({ row }) => row !== null);
    const removed = changes.filter(({ row }) => row === null);
    const nonces = nonceRows(units, totals.revision + units.length);
    const audit = units.flatMap((unit) => unit.audit);
    const next = totalsAfter(totals, units, nonces.length);
    const values = [
      written.map(({ kind }) => kind),
      written.map(({ id }) => Buffer.from(id)),
      written.map(({ replaced }) => replaced),
      written.map(({ version }) => version),
      written.map((change) => change.revision),
      written.map(({ row }) => row),
      removed.map(({ kind }) => kind),
      removed.map(({ id }) => Buffer.from(id)),
      removed.map(({ replaced }) => replaced),
      removedIds.map((id) => Buffer.from(id)),
      nonces.map(({ key }) => key[0]),
      next.revision,
      nonces.map(({ row }) => row),
      nonces.map(({ answers }) => answers),
      next.auditEntries,
      audit.length === 0 ? null : encodeEntries(next.auditEntries, audit),
      totals.revision,
    ];
    return { values, next };
  }

  async function touchMany(
    rows: readonly StoredLiveness[],
    unstoredTimes: readonly TimeRange[] | null,
  ): Promise<void> {
    for (const { id } of rows) assertKeyLength(id);
    const latest = [...new Map(rows.map((contact) => [contact.id, contact])).values()];
    const times = unstoredTimes === null ? null : encodeMeta('unstored_times', unstoredTimes);
    const removed = new Set<string>();
    removedMeanwhile.add(removed);
    try {
      await writing.inTurn(({ change }) => {
        const kept = latest.filter(({ id }) => !removed.has(id));
        const ids = kept.map(({ id }) => Buffer.from(id));
        return change(TOUCH, [lease.term, ids, kept.map(encodeLiveness), times, lease.holder]);
      });
    } finally {
      removedMeanwhile.delete(removed);
    }
  }

  function forgetNonces(now: number, times: readonly TimeRange[]): Promise<void> {
    return forgetting.share(() => writing.inTurn((session) => forgetPast(session, now, times)));
  }

  async function forgetPast(
    { read, change }: Session,
    now: number,
    times: readonly TimeRange[],
  ): Promise<void> {
    const rows = await read<{ bucket: string; revision: string }>(PAST_NONCES, [
      nonceBucket(now),
      FORGET_AT_MOST,
    ]);
    const last = rows.at(-1);
    if (last === undefined) return;
    const next = { ...totals, nonceRows: totals.nonceRows - rows.length };
    const row = encodeMeta('totals', next);
    await change(FORGET, [
      lease.term,
      totalsRow,
      row,
      encodeMeta('forgotten_times', times),
      last.bucket,
      last.revision,
      rows.length,
      lease.holder,
    ]);
    totals = next;
    totalsRow = row;
  }

  async function putHistory(rows: readonly StoredHistory[]): Promise<void> {
    const lengths = rows.map(({ seconds }) => seconds);
    const slots = rows.map(({ slot }) => slot);
    const values = rows.map(encodeHistory);
    await writing.inTurn(({ change }) =>
      change(HISTORY, [lease.term, lengths, slots, values, lease.holder]),
    );
  }

  async function release(how: 'released' | 'abandoned'): Promise<void> {
    await queue.settled();
    await writing.idle();
    await Promise.all([reading.end(), ...Array.from(readers, disconnect)]);
    await lease.end(writing.failure() === null ? how : 'abandoned');
    await writing.end();
  }

  async function position(): Promise<StatePosition> {
    await writing.idle();
    const { auditEntries: auditLength, revision } = totals;
    const auditHead = await readHead(tables, auditLength);
    return { epoch: metaValue(meta, 'epoch'), revision, auditLength, auditHead };
  }

  return {
    position,
    auditHashAt: (entry) => readHash(tables, entry),
    auditAfter: (entry, most) => readLines(servedTables, entry, most),
    subjectsOf: (kind) => subjectsOf(tables, shapes, kind),
    load,
    commit: queue.commit,
    touchMany,
    forgetNonces,
    putHistory,
    history: () => historyIn(tables),
    health: () => writing.failure() ?? lease.problem(),
    isOwner: lease.isOwned,
    close: () => release('released'),
    abandon: () => release('abandoned'),
  };
}

const COMMIT = {
  name: 'commit_units',
  text: `select mesh_na.hold_lease($1, $22),
    mesh_na.commit_units($1, $2, $3, $4,
      $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20),
    mesh_na.note_changes($16, $21, $5 || $11, $6 || $12, $15)`,
};
const TOUCH = {
  name: 'store_liveness',
  text: 'select mesh_na.hold_lease($1, $5), mesh_na.store_liveness($1, $2, $3, $4)',
};
const HISTORY = {
  name: 'store_history',
  text: 'select mesh_na.hold_lease($1, $5), mesh_na.store_history($1, $2, $3, $4)',
};
const FORGET = {
  name: 'forget_nonces',
  text: `select mesh_na.hold_lease($1, $8),
    mesh_na.forget_nonces($1, $2, $3, $4, $5, $6, $7)`,
};
const PAST_NONCES = {
  table: 'nonces',
  name: 'past_nonces',
  text: `select bucket, revision from mesh_na.nonces where bucket < $1
    order by bucket, revision limit $2`,
};
const VERSIONS = {
  table: 'subjects',
  name: 'versions',
  text: `select s.kind, s.id, s.version from mesh_na.subjects as s
    join unnest($1::text[], $2::bytea[]) as w (kind, id) on s.kind = w.kind and s.id = w.id`,
};

/** How many of the waiting units fit into one transaction; at least one. */
function countForOne(waiting: readonly PendingUnit[]): number {
  let bytes = 0;
  const end = waiting.findIndex(({ unit }, index) => {
    bytes += sizeOf(unit);
    return index > 0 && (index >= MOST_UNITS || bytes > MOST_BYTES);
  });
  return end === -1 ? waiting.length : end;
}

function sizeOf({ subjects, answers, audit }: EncodedUnit): number {
  const rows = subjects.reduce((sum, { row }) => sum + row.length, 0);
  const kept = answers.reduce((sum, { answer }) => sum + answer.length, rows);
  return audit.reduce((sum, line) => sum + line.length, kept);
}

async function readVersions(
  { read }: Session,
  pending: readonly PendingUnit[],
): Promise<StoredVersion> {
  const named = pending.flatMap(({ unit }) => [...unit.subjects, ...unit.removals]);
  const rows = await read<{ kind: string; id: Buffer; version: string }>(VERSIONS, [
    named.map(({ kind }) => kind),
    named.map(({ id }) => Buffer.from(id)),
  ]);
  const versions = new Map(
    rows.map(({ kind, id, version }) => [addressOf({ kind, id: id.toString() }), Number(version)]),
  );
  return (subject) => versions.get(addressOf(subject)) ?? NOT_STORED;
}
