/**
 * The embedded store: one LMDB environment in the data directory, held by one process at a time.
 *
 * Units that arrive during a flush are written together in the next one. A flush writes each subject under its key,
 * one row for its audit entries, one for its nonces, and the totals, so its cost depends on the number of rows. Every
 * write is conditional on the owner's row.
 */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { syncFolder } from '../../base/durable-file.ts';
import { messageOf } from '../../base/error-message.ts';
import { createSharedWork } from '../../base/work.ts';
import { createLineReader, encodeEntries, readHash, readHead } from '../audit-log.ts';
import { type Batch, createUnitQueue, type PendingUnit, putTogether, settle } from '../batch.ts';
import { contentsOf, historyIn, subjectsOf } from '../contents.ts';
import { encodeMeta, type MetaValues, metaValue, readMeta, shapesIn } from '../meta-rows.ts';
import type { NetworkIdentity } from '../network-identity.ts';
import type {
  StatePosition,
  Store,
  StoreContents,
  StoredHistory,
  StoredLiveness,
  SubjectKey,
  TimeRange,
} from '../store.ts';
import { encodeHistory, encodeLiveness } from '../table-rows.ts';
import {
  assertKeyLength,
  encodeUnit,
  NOT_STORED,
  nonceBucket,
  nonceRows,
  totalsAfter,
} from '../units.ts';
import { markInUse } from '../usage-mark.ts';
import { lockFolder } from './folder-lock.ts';
import { checkFiles, DATABASE_FILE } from './folder-state.ts';
import { createCommits, whileNobodyCommits } from './openings.ts';
import { assertSchema, ownerRow, takeOwnership } from './ownership.ts';
import { lmdbTables, openEnvironment, openMeta, openTables, subjectKey } from './tables.ts';

/** How many rows of nonces one call removes at most. */
const FORGET_AT_MOST = 20_000;
const UNUSABLE = 'The state in the data directory cannot be used';
const LOST = 'Another process has taken over the data directory';

/**
 * Opens the store below `dataDir`. Throws a one-sentence error if another process holds it, if it is damaged, or if it
 * belongs to another network. Tools that do not serve pass null as the network.
 */
export function openLmdbStore(dataDir: string, network: NetworkIdentity | null = null): Store {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lock = lockFolder(dataDir);
  try {
    checkFiles(dataDir);
    return openLockedStore(dataDir, network, () => lock.release());
  } catch (cause) {
    lock.release();
    throw isSystemError(cause) ? new Error(`${UNUSABLE}: ${cause.message}`, { cause }) : cause;
  }
}

/** Call before creating any table that another layout may not have. */
function assertReadable(env: RootDatabase): void {
  try {
    const meta = openMeta(env);
    assertSchema(meta.get('schema'), !meta.doesExist('owner'));
  } catch (cause) {
    void env.close();
    throw cause;
  }
}

/** Whether a system call failed; the errors of LMDB itself have codes below 0. */
function isSystemError(cause: unknown): cause is Error {
  if (!(cause instanceof Error)) return false;
  return 'syscall' in cause || ('code' in cause && Number(cause.code) > 0);
}

function openLockedStore(
  dataDir: string,
  network: NetworkIdentity | null,
  unlock: () => void,
): Store {
  let env = openEnvironment(dataDir, false);
  assertReadable(env);
  const opened = whileNobodyCommits(dataDir, () => {
    const tables = openTables(env);
    return { tables, ownership: takeOwnership(env, tables, network) };
  });
  const { ownership } = opened;
  let { tables } = opened;
  // LMDB syncs what its files contain, but not that there are any.
  syncFolder(dirname(join(dataDir, DATABASE_FILE)));
  if (network !== null) markInUse(dataDir, network);
  const shapes = shapesIn(tables.meta);
  let storedShapes = shapes.table.length;

  let totals = metaValue(tables.meta, 'totals');
  let failure: string | null = null;
  let failedBy: unknown = null;
  const queue = createUnitQueue({
    failure: () => failure,
    encode: (unit) => encodeUnit(unit, shapes),
    flush,
  });
  const forgetting = createSharedWork();
  const commits = createCommits(dataDir);
  const readLines = createLineReader();

  async function load(): Promise<StoreContents> {
    await queue.settled();
    const reader = lmdbTables(tables);
    const contents = await contentsOf(reader, await readMeta(reader), shapes);
    return { ...contents, previousOwner: ownership.previousOwner, dispose };
  }

  async function position(): Promise<StatePosition> {
    await queue.settled();
    return {
      epoch: metaValue(tables.meta, 'epoch'),
      revision: totals.revision,
      auditLength: totals.auditEntries,
      auditHead: await readHead(lmdbTables(tables), totals.auditEntries),
    };
  }

  /** Reopens the file: the pages that were read stay mapped and count as memory of this process until it is closed. */
  async function dispose(): Promise<void> {
    await env.close();
    env = openEnvironment(dataDir, false);
    tables = openTables(env);
  }

  async function flush(waiting: PendingUnit[]): Promise<void> {
    const pending = waiting.splice(0);
    const before = totals.revision;
    try {
      const batch = putTogether(pending, before, storedVersion);
      // After a failed flush, every later unit is rejected, because the audit chain on disk would have a gap.
      if (batch.accepted.length > 0) await writeAsOwner(writesOf(batch));
      settle(batch, before);
    } catch (cause) {
      failWith(cause);
      for (const { reject } of pending) reject(cause);
    }
  }

  function storedVersion({ kind, id }: SubjectKey): number {
    return tables.subjects.getEntry(subjectKey([kind, id]))?.version ?? NOT_STORED;
  }

  /**
   * Encodes everything that a flush writes, because nothing may throw between the first and the last row of a batch.
   */
  function writesOf({ accepted, changes, removedIds }: Batch): readonly Write[] {
    const units = accepted.map(({ unit }) => unit);
    const nonces = nonceRows(units, totals.revision + units.length);
    totals = totalsAfter(totals, units, nonces.length);
    return [
      ...shapesWrite(),
      ...changes.map(
        ({ kind, id, version, row }) =>
          () =>
            row === null
              ? tables.subjects.remove(subjectKey([kind, id]))
              : tables.subjects.put(subjectKey([kind, id]), row, version),
      ),
      ...removedIds.map((id) => () => tables.liveness.remove(id)),
      ...nonces.map(({ key, row, answers }) => () => {
        tables.nonces.put(key, row);
        if (answers !== null) tables.answers.put(key, answers);
      }),
      ...auditWrite(
        totals.auditEntries,
        units.flatMap((unit) => unit.audit),
      ),
      metaWrite('totals', totals),
    ];
  }

  /** New shapes are written together with the first snapshots that use them. */
  function shapesWrite(): readonly Write[] {
    if (shapes.table.length === storedShapes) return [];
    storedShapes = shapes.table.length;
    return [metaWrite('shapes', shapes.table)];
  }

  function auditWrite(last: number, lines: readonly string[]): readonly Write[] {
    if (lines.length === 0) return [];
    const row = encodeEntries(last, lines);
    return [() => tables.audit.put(last, row)];
  }

  function metaWrite<Key extends keyof MetaValues>(key: Key, value: MetaValues[Key]): Write {
    const row = encodeMeta(key, value);
    return () => tables.meta.put(key, row);
  }

  /**
   * After a failed write, any further call may make LMDB kill the process with a signal, so later writes fail at once,
   * for the same reason.
   */
  function failWith(cause: unknown): void {
    failedBy ??= cause;
    failure ??= messageOf(cause);
  }

  async function writeAsOwner(writes: readonly Write[]): Promise<void> {
    if (failure !== null) throw failedBy;
    try {
      const written = await commits.run(() =>
        tables.meta.ifVersion('owner', ownership.number, () => {
          for (const write of writes) write();
        }),
      );
      if (!written) throw new Error(LOST);
    } catch (cause) {
      failWith(cause);
      throw cause;
    }
  }

  async function touchMany(
    rows: readonly StoredLiveness[],
    unstoredTimes: readonly TimeRange[] | null,
  ): Promise<void> {
    await writeAsOwner([
      ...rows.map((contact) => {
        assertKeyLength(contact.id);
        const row = encodeLiveness(contact);
        return () => tables.liveness.put(contact.id, row);
      }),
      ...(unstoredTimes === null ? [] : [metaWrite('unstored_times', unstoredTimes)]),
    ]);
  }

  async function putHistory(rows: readonly StoredHistory[]): Promise<void> {
    await writeAsOwner(
      rows.map((each) => {
        const row = encodeHistory(each);
        return () => tables.history.put([each.seconds, each.slot], row);
      }),
    );
  }

  function forgetNonces(now: number, times: readonly TimeRange[]): Promise<void> {
    return forgetting.share(() => forgetPast(now, times));
  }

  async function forgetPast(now: number, times: readonly TimeRange[]): Promise<void> {
    if (failure !== null) throw failedBy;
    const past = [...tables.nonces.getKeys({ end: [nonceBucket(now)], limit: FORGET_AT_MOST })];
    if (past.length === 0) return;
    totals = { ...totals, nonceRows: totals.nonceRows - past.length };
    await writeAsOwner([
      metaWrite('forgotten_times', times),
      ...past.map((key) => () => {
        tables.nonces.remove(key);
        tables.answers.remove(key);
      }),
      metaWrite('totals', totals),
    ]);
  }

  function isOwner(): boolean {
    return failure !== null || tables.meta.doesExist('owner', ownership.number);
  }

  function health(): string | null {
    if (failure !== null) return failure;
    try {
      return isOwner() ? null : LOST;
    } catch {
      return 'the database cannot be read';
    }
  }

  async function close(): Promise<void> {
    await queue.settled();
    if (failure === null) {
      const row = ownerRow('closed', ownership.number);
      await writeAsOwner([() => tables.meta.put('owner', row, ownership.number)]);
    }
    await release();
  }

  async function abandon(): Promise<void> {
    await queue.settled();
    await release();
  }

  async function release(): Promise<void> {
    await env.close();
    commits.close();
    unlock();
  }

  return {
    position,
    auditHashAt: (entry) => readHash(lmdbTables(tables), entry),
    auditAfter: (entry, most) => readLines(lmdbTables(tables), entry, most),
    subjectsOf: (kind) => subjectsOf(lmdbTables(tables), shapes, kind),
    load,
    commit: queue.commit,
    touchMany,
    forgetNonces,
    putHistory,
    history: () => historyIn(lmdbTables(tables)),
    health,
    isOwner,
    close,
    abandon,
  };
}

/** Writes or removes one row. */
type Write = () => unknown;
