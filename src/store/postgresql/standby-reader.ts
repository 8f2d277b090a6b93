/**
 * Reads the state of a database while another process writes it: first everything, then the changes of each flush. The
 * local copy can be continued only if all later flushes are known without gaps, along with the process that wrote each
 * of them. If the database lost changes or was refilled, everything is read again.
 */
import type { Client } from 'pg';
import { readHash } from '../audit-log.ts';
import { contentsOf, summaryOf } from '../contents.ts';
import { type MetaRows, metaValue, shapesIn } from '../meta-rows.ts';
import { assertNotMoved } from '../move/marks.ts';
import {
  asFoundedIn,
  assertSameNetwork,
  KEY_KIND,
  type NetworkIdentity,
} from '../network-identity.ts';
import type { Shapes } from '../shapes.ts';
import type {
  StandbyReader,
  StatePosition,
  StoreChanges,
  StoredLiveness,
  StoredSubject,
  StoreReading,
  SubjectKey,
} from '../store.ts';
import { decodeAnswers, decodeNonces, livenessReader, subjectReader } from '../table-rows.ts';
import { addressOf } from '../units.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect, readingProblem, STANDBY_SESSION } from './connect.ts';
import { assertSchema } from './schema.ts';
import { beginReading, postgresqlTables, readRows } from './tables.ts';

export interface StandbyReaderOptions {
  readonly address: StoreAddress;
  readonly network: NetworkIdentity | null;
  /** How long the active instance's lease lasts, in milliseconds. */
  readonly leaseMs: number;
}

interface Position extends FlushPosition, StatePosition {
  /** The newest flush of liveness that was read. */
  readonly livenessFlush: number;
}

/** How many lease durations the database may take to answer a statement, which may scan a table of a million rows. */
const STATEMENT_LEASES = 4;
/** Rows fetched per round trip. */
const FETCH_ROWS = 2000;

export function openStandbyReader(options: StandbyReaderOptions): StandbyReader {
  let client: Client | null = null;
  let position: Position | null = null;
  let seen = 0;
  let newest: StatePosition | null = null;
  /**
   * Set if the database lost its latest changes and continued without them, so that what is read now does not follow
   * what was read before.
   */
  let lacksNewest = false;
  let isClosed = false;

  async function connected(): Promise<Client> {
    if (isClosed) throw new Error('The reading of the state was ended');
    if (client !== null) return client;
    const connection = await connectToPrimary(options.address, {
      timeout: STATEMENT_LEASES * options.leaseMs,
      connectMs: options.leaseMs / 3,
      name: STANDBY_SESSION,
    });
    client = connection.client;
    await assertSchema(client, connection.shown);
    return client;
  }

  /** After a failure, the connection may be in any state. */
  async function leave(): Promise<void> {
    const left = client;
    client = null;
    // Flushes of liveness have only a number, which a server that lost some of them assigns again.
    if (position !== null) position = { ...position, livenessFlush: 0 };
    if (left !== null) await disconnect(left);
  }

  async function reading<T>(work: (current: Client, meta: MetaRows) => Promise<T>): Promise<T> {
    try {
      const current = await connected();
      const meta = await beginReading(current);
      await assertOwn(current, meta);
      seen = metaValue(meta, 'totals').revision;
      return await work(current, meta);
    } catch (cause) {
      void leave();
      throw cause;
    }
  }

  async function assertOwn(current: Client, meta: MetaRows): Promise<void> {
    assertNotMoved(meta, 'the database');
    const owner = metaValue(meta, 'network');
    if (options.network !== null && owner !== null) {
      const network = await asFoundedIn(postgresqlTables(current), owner, options.network);
      assertSameNetwork(owner, network, 'the database');
    }
  }

  async function end(current: Client, reached: Position): Promise<void> {
    const { revision } = reached;
    await current.query('commit');
    position = reached;
    const { epoch, auditLength, auditHead } = reached;
    if (!lacksNewest && isAfter(reached, newest))
      newest = { epoch, revision, auditLength, auditHead };
  }

  function load(): Promise<StoreReading> {
    position = null;
    return reading(async (current, meta) => {
      const shapes = shapesIn(meta);
      lacksNewest = !(await hasSeen(current, metaValue(meta, 'epoch'), newest));
      const contents = await contentsOf(postgresqlTables(current), meta, shapes);
      const { rows } = await current.query<{ holder: string | null }>(HOLDER, [contents.revision]);
      const contacts = livenessSince(current, null);
      return {
        ...contents,
        liveness: contacts.liveness,
        end: () =>
          end(current, {
            revision: contents.revision,
            holder: rows[0]?.holder ?? null,
            epoch: metaValue(meta, 'epoch'),
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
      const { rows } = await current.query<Flush>(FLUSHES, [from.revision]);
      const flushes = flushesAfter(from, metaValue(meta, 'totals').revision, rows);
      if (flushes === null || metaValue(meta, 'epoch') !== from.epoch) {
        await current.query('rollback');
        position = null;
        return null;
      }
      const summary = await summaryOf(postgresqlTables(current), meta, from);
      const subjects = readSubjects(current, shapesIn(meta), flushes);
      const nonces = await readNonces(current, flushes);
      const { liveness, newest } = withLiveness
        ? livenessSince(current, from.livenessFlush)
        : { liveness: inOneBatch<StoredLiveness>([]), newest: () => from.livenessFlush };
      return {
        ...summary,
        ...subjects,
        ...nonces,
        liveness,
        end: () =>
          end(current, {
            ...from,
            revision: summary.revision,
            holder: flushes.at(-1)?.holder ?? from.holder,
            auditLength: summary.auditLength,
            auditHead: summary.auditHead,
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

/**
 * Whether the audit log still has the last entry seen. A state that was restored since then counts as a different one.
 */
async function hasSeen(
  client: Client,
  epoch: number,
  newest: StatePosition | null,
): Promise<boolean> {
  if (newest === null || newest.epoch !== epoch || newest.auditLength === 0) return true;
  return (await readHash(postgresqlTables(client), newest.auditLength)) === newest.auditHead;
}

function isAfter(one: StatePosition, other: StatePosition | null): boolean {
  if (other === null || one.epoch !== other.epoch) return other === null || one.epoch > other.epoch;
  return one.revision >= other.revision;
}

function readSubjects(
  client: Client,
  shapes: Shapes,
  flushes: readonly Flush[],
): Pick<StoreChanges, 'subjects' | 'removals'> {
  const changed = changedSubjects(flushes);
  const read = subjectReader(shapes);

  async function* subjects(): AsyncIterable<readonly StoredSubject[]> {
    const isKey = ({ kind }: SubjectKey) => Number(kind === KEY_KIND);
    // Revoked certificates are read with the key that issued their revocation list.
    const all = [...changed.values()].sort((a, b) => isKey(b) - isKey(a));
    for (let at = 0; at < all.length; at += FETCH_ROWS) {
      const keys = all.slice(at, at + FETCH_ROWS).map(({ kind, id }) => [kind, id] as const);
      const found = await readRows(client, 'subjects', keys, read);
      for (const subject of found) changed.delete(addressOf(subject));
      yield found;
    }
  }

  return {
    subjects: subjects(),
    removals: () => [...changed.values()],
  };
}

async function readNonces(
  client: Client,
  flushes: readonly Flush[],
): Promise<Pick<StoreChanges, 'nonces' | 'answers'>> {
  const keys = flushes.flatMap(({ revision, buckets }) =>
    buckets.map((bucket) => [Number(bucket), Number(revision)] as const),
  );
  const nonces = await readRows(client, 'nonces', keys, decodeNonces);
  const answers = await readRows(client, 'answers', keys, decodeAnswers);
  return { nonces: inOneBatch(nonces.flat()), answers: inOneBatch(answers.flat()) };
}

/** Reads all liveness by id if `after` is null; otherwise only the liveness of later flushes, in any order. */
function livenessSince(client: Client, after: number | null) {
  let newest = after ?? 0;

  async function* liveness(): AsyncIterable<readonly StoredLiveness[]> {
    const read = livenessReader();
    // There is no index by flush, because every heartbeat would have to update it.
    if (after !== null) await client.query('set local enable_seqscan = on');
    const which = after === null ? 'order by id' : `where flush > ${after}`;
    const statement = `select id, contact, flush from mesh_na.liveness ${which}`;
    for await (const rows of fetched<[Buffer, Buffer, string]>(client, statement)) {
      for (const [, , flush] of rows) newest = Math.max(newest, Number(flush));
      yield rows.map(([id, row]) => read({ key: id.toString(), version: 0, row }));
    }
  }

  return { liveness: liveness(), newest: () => newest };
}

async function* inOneBatch<Row>(rows: readonly Row[]): AsyncGenerator<readonly Row[], void> {
  yield rows;
}

/** Fetches the rows of a statement on table `liveness` in batches. */
async function* fetched<Row extends unknown[]>(
  client: Client,
  statement: string,
): AsyncIterable<readonly Row[]> {
  let isOpen = false;
  try {
    await client.query(`declare contacts no scroll cursor for ${statement}`);
    isOpen = true;
    for (;;) {
      const text = `fetch ${FETCH_ROWS} from contacts`;
      const { rows } = await client.query<Row>({ text, rowMode: 'array' });
      if (rows.length > 0) yield rows;
      if (rows.length < FETCH_ROWS) break;
    }
  } catch (cause) {
    isOpen = false;
    throw readingProblem('liveness', cause);
  } finally {
    // This also runs if the reader stops early.
    if (isOpen) await client.query(`close contacts`);
  }
}

interface Flush {
  readonly revision: string;
  readonly follows: string;
  readonly holder: string | null;
  readonly kinds: readonly string[];
  readonly ids: readonly Buffer[];
  readonly buckets: readonly string[];
}

/** Selects the flush with this revision and all later ones. */
const FLUSHES = `select revision, follows, holder, kinds, ids, buckets from mesh_na.changes
  where revision >= $1 order by revision`;
const HOLDER = 'select holder from mesh_na.changes where revision = $1';

/** The position where a read ended. */
interface FlushPosition {
  readonly revision: number;
  /** The process that wrote the flush with that revision; null if the database does not show it. */
  readonly holder: string | null;
}

/** Null if the database does not record all changes from there to this revision. */
function flushesAfter(
  from: FlushPosition,
  revision: number,
  found: readonly Flush[],
): readonly Flush[] | null {
  const isStart = Number(found[0]?.revision) === from.revision;
  if ((isStart ? found[0]?.holder : null) !== from.holder) return null;
  const flushes = isStart ? found.slice(1) : found;
  let reached = from.revision;
  for (const flush of flushes) {
    if (Number(flush.follows) !== reached) return null;
    reached = Number(flush.revision);
  }
  return reached === revision ? flushes : null;
}

/** The changed subjects by address, without duplicates. */
function changedSubjects(flushes: readonly Flush[]): Map<string, SubjectKey> {
  const changed = new Map<string, SubjectKey>();
  for (const { kinds, ids } of flushes) {
    for (const [index, id] of ids.entries()) {
      const subject = { kind: kinds[index] as string, id: id.toString() };
      changed.set(addressOf(subject), subject);
    }
  }
  return changed;
}
