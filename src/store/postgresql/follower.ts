/**
 * Reads the state of a database while another process writes it: everything once, and then what each flush has
 * changed. What was read stands only while the flushes after it are known without a gap, each with the process that
 * made it: a database that has lost changes, or was filled again, does not go on from there.
 */
import type { Client } from 'pg';
import { assertNotMoved } from '../moved.ts';
import { assertSameNetwork, type NetworkIdentity } from '../network-identity.ts';
import { decodeRow } from '../rows.ts';
import { createShapes, type Shapes } from '../shapes.ts';
import type {
  KeptAnswer,
  SpentNonce,
  StateFollower,
  StatePosition,
  StoreChanges,
  StoredLiveness,
  StoredSubject,
  StoreReading,
} from '../store.ts';
import type { MetaRows } from '../stored-rows.ts';
import {
  decodeAnswers,
  decodeEpoch,
  decodeNonces,
  decodeShapes,
  decodeTimes,
  livenessReader,
  subjectReader,
} from '../table-rows.ts';
import { totalsIn } from '../totals.ts';
import { addressOf } from '../units.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import {
  AUDIT_ROW,
  type AuditRow,
  beginReading,
  contentsAsOf,
  fetched,
  hashIn,
  readAuditEnd,
} from './contents.ts';
import {
  changedSubjects,
  FLUSHES,
  type Flush,
  type FlushPosition,
  flushesAfter,
  HOLDER,
  NONCES,
  SUBJECTS,
} from './flushes.ts';
import { assertSchema } from './schema.ts';
import { followerSession } from './session-name.ts';

export interface FollowerOptions {
  readonly address: StoreAddress;
  readonly network: NetworkIdentity | null;
  /** What the follower calls itself. */
  readonly name: string;
  /** How long the lease of the instance that writes lasts, in milliseconds. */
  readonly leaseMs: number;
}

interface Position extends FlushPosition, StatePosition {
  /** The newest flush of liveness that was read. */
  readonly livenessFlush: number;
}

/** The database may take as many leases to answer one statement: it may look through a table of a million rows. */
const STATEMENT_LEASES = 4;
/** Subjects that one round trip brings. */
const SUBJECTS_AT_ONCE = 2000;

export function openPostgresqlFollower(options: FollowerOptions): StateFollower {
  let client: Client | null = null;
  let position: Position | null = null;
  let seen = 0;
  let newest: StatePosition | null = null;
  /** The database has lost its end, and has gone on without it: what is read now is not after what was read before. */
  let lacksNewest = false;
  /** The revision in the name of the session. */
  let named: number | null = null;
  let isClosed = false;

  async function connected(): Promise<Client> {
    if (isClosed) throw new Error('The reading of the state was ended');
    if (client !== null) return client;
    const connection = await connectToPrimary(options.address, {
      timeout: STATEMENT_LEASES * options.leaseMs,
      connectMs: options.leaseMs / 3,
      name: followerSession({ name: options.name, revision: null }),
    });
    client = connection.client;
    named = null;
    await assertSchema(client, connection.shown);
    return client;
  }

  /** After a failure the connection may be in any state. */
  async function leave(): Promise<void> {
    const left = client;
    client = null;
    // Contacts are known by a number only, which a server that has lost some of them gives again.
    if (position !== null) position = { ...position, livenessFlush: 0 };
    if (left !== null) await disconnect(left);
  }

  async function reading<T>(work: (current: Client, meta: MetaRows) => Promise<T>): Promise<T> {
    try {
      const current = await connected();
      const meta = await beginReading(current);
      assertOwn(meta);
      seen = totalsIn(meta).revision;
      return await work(current, meta);
    } catch (cause) {
      void leave();
      throw cause;
    }
  }

  function assertOwn(meta: MetaRows): void {
    assertNotMoved(meta.get('moved'), 'the database');
    const row = meta.get('network');
    if (options.network === null || row === undefined) return;
    const owner = decodeRow('meta', 'network', row) as NetworkIdentity;
    assertSameNetwork(owner, options.network, 'the database');
  }

  async function end(current: Client, reached: Position): Promise<void> {
    const { revision } = reached;
    // In one round trip, a few times a second at most.
    await current.query(revision === named ? 'commit' : `commit; ${rename(current, revision)}`);
    named = revision;
    position = reached;
    const { epoch, auditLength, auditHead } = reached;
    if (!lacksNewest && isAfter(reached, newest))
      newest = { epoch, revision, auditLength, auditHead };
  }

  function rename(current: Client, revision: number): string {
    const sessionName = followerSession({ name: options.name, revision });
    return `set application_name = ${current.escapeLiteral(sessionName)}`;
  }

  function load(): Promise<StoreReading> {
    position = null;
    return reading(async (current, meta) => {
      const shapes = shapesIn(meta);
      lacksNewest = !(await hasSeen(current, decodeEpoch(meta.get('epoch')), newest));
      const contents = await contentsAsOf(current, meta, shapes);
      const { rows } = await current.query<{ holder: string | null }>(HOLDER, [contents.revision]);
      const contacts = livenessSince(current, null);
      return {
        ...contents,
        liveness: contacts.liveness,
        end: () =>
          end(current, {
            revision: contents.revision,
            holder: rows[0]?.holder ?? null,
            epoch: decodeEpoch(meta.get('epoch')),
            auditLength: contents.auditLength,
            auditHead: contents.auditHead,
            livenessFlush: contacts.newest(),
          }),
      };
    });
  }

  async function changes(withLiveness: boolean): Promise<StoreChanges | null> {
    const from = position;
    if (from === null) return null;
    return reading(async (current, meta) => {
      const { revision, auditEntries } = totalsIn(meta);
      const { rows } = await current.query<Flush>(FLUSHES, [from.revision]);
      const flushes = flushesAfter(from, revision, rows);
      if (flushes === null || decodeEpoch(meta.get('epoch')) !== from.epoch) {
        await current.query('rollback');
        position = null;
        return null;
      }
      const audit = await readAuditSince(current, auditEntries, from);
      const subjects = readSubjects(current, shapesIn(meta), flushes);
      const nonces = await readNonces(current, flushes);
      const { liveness, newest } = withLiveness
        ? livenessSince(current, from.livenessFlush)
        : { liveness: inOneBatch<StoredLiveness>([]), newest: () => from.livenessFlush };
      return {
        revision,
        ...subjects,
        ...nonces,
        forgottenTimes: decodeTimes('forgotten_times', meta.get('forgotten_times')),
        unstoredTimes: decodeTimes('unstored_times', meta.get('unstored_times')),
        liveness,
        auditLength: auditEntries,
        ...audit,
        end: () =>
          end(current, {
            ...from,
            revision,
            holder: flushes.at(-1)?.holder ?? from.holder,
            auditLength: auditEntries,
            auditHead: audit.auditHead,
            livenessFlush: newest(),
          }),
      };
    });
  }

  return {
    load,
    changes,
    seenRevision: () => seen,
    newest: () => newest,
    leave,
    async close() {
      isClosed = true;
      await leave();
    },
  };
}

/** Whether the audit log has the entry that was seen last. A state that was restored since is another one. */
async function hasSeen(
  client: Client,
  epoch: number,
  newest: StatePosition | null,
): Promise<boolean> {
  if (newest === null || newest.epoch !== epoch || newest.auditLength === 0) return true;
  const { auditLength, auditHead } = newest;
  const { rows } = await client.query<AuditRow>(AUDIT_ROW.text, [auditLength]);
  return hashIn(rows[0], auditLength) === auditHead;
}

function isAfter(one: StatePosition, other: StatePosition | null): boolean {
  if (other === null || one.epoch !== other.epoch) return other === null || one.epoch > other.epoch;
  return one.revision >= other.revision;
}

function shapesIn(meta: MetaRows): Shapes {
  return createShapes(decodeShapes(meta.get('shapes')));
}

async function readAuditSince(
  client: Client,
  total: number,
  { auditLength, auditHead }: Position,
): Promise<Pick<StoreChanges, 'recentAudit' | 'auditHead'>> {
  if (total === auditLength) return { recentAudit: [], auditHead };
  return readAuditEnd(client, total, auditLength);
}

function readSubjects(
  client: Client,
  shapes: Shapes,
  flushes: readonly Flush[],
): Pick<StoreChanges, 'subjects' | 'removals'> {
  const changed = changedSubjects(flushes);
  const read = subjectReader(shapes);

  async function* subjects(): AsyncIterable<readonly StoredSubject[]> {
    const all = [...changed.values()];
    for (let at = 0; at < all.length; at += SUBJECTS_AT_ONCE) {
      const asked = all.slice(at, at + SUBJECTS_AT_ONCE);
      type Row = { kind: string; id: Buffer; version: string; snapshot: Buffer };
      const { rows } = await client.query<Row>(SUBJECTS, [
        asked.map(({ kind }) => kind),
        asked.map(({ id }) => id),
      ]);
      const found = rows.map(({ kind, id, version, snapshot }) =>
        read(kind, id.toString(), Number(version), snapshot),
      );
      for (const subject of found) changed.delete(addressOf(subject));
      yield found;
    }
  }

  return {
    subjects: subjects(),
    removals: () => Array.from(changed.values(), ({ kind, id }) => ({ kind, id: id.toString() })),
  };
}

async function readNonces(
  client: Client,
  flushes: readonly Flush[],
): Promise<Pick<StoreChanges, 'nonces' | 'answers'>> {
  const keys = flushes.flatMap(({ revision, buckets }) =>
    buckets.map((bucket) => [bucket, revision] as const),
  );
  if (keys.length === 0) return { nonces: inOneBatch([]), answers: inOneBatch([]) };
  type Row = { bucket: string; revision: string; digests: Buffer; answers: Buffer | null };
  const { rows } = await client.query<Row>(NONCES, [
    keys.map(([bucket]) => bucket),
    keys.map(([, revision]) => revision),
  ]);
  const nonces: SpentNonce[] = [];
  const kept: KeptAnswer[] = [];
  for (const { bucket, revision, digests, answers } of rows) {
    const key = [Number(bucket), Number(revision)] as const;
    nonces.push(...decodeNonces(key, digests));
    if (answers !== null) kept.push(...decodeAnswers(key, answers));
  }
  return { nonces: inOneBatch(nonces), answers: inOneBatch(kept) };
}

/** By id when `after` is null, in any order otherwise. */
function livenessSince(client: Client, after: number | null) {
  let newest = after ?? 0;

  async function* liveness(): AsyncIterable<readonly StoredLiveness[]> {
    const read = livenessReader();
    // There is no index by flush, which every heartbeat would have to change.
    if (after !== null) await client.query('set local enable_seqscan = on');
    const which = after === null ? 'order by id' : `where flush > ${after}`;
    const statement = `select id, contact, flush from mesh_na.liveness ${which}`;
    for await (const rows of fetched<[Buffer, Buffer, string]>(client, 'liveness', statement)) {
      for (const [, , flush] of rows) newest = Math.max(newest, Number(flush));
      yield rows.map(([id, row]) => read(id.toString(), row));
    }
  }

  return { liveness: liveness(), newest: () => newest };
}

async function* inOneBatch<Row>(rows: readonly Row[]): AsyncGenerator<readonly Row[], void> {
  yield rows;
}
