/** Opens the store in a PostgreSQL database. One process at a time writes to it: the holder of the lease. */
import type { Client } from 'pg';
import { encodeMeta, type MetaRows, metaValue } from '../meta-rows.ts';
import { assertArrived, assertNotMoved } from '../move/marks.ts';
import { asFoundedIn, assertSameNetwork, type NetworkIdentity } from '../network-identity.ts';
import type { Store } from '../store.ts';
import { assertNeverUsed, markInUse } from '../usage-mark.ts';
import type { StoreAddress } from './address.ts';
import { clockDifference, clockSentence, MOST_CLOCK_DIFFERENCE_MS, pauseOn } from './clocks.ts';
import {
  type Connection,
  connectToPrimary,
  disconnect,
  isTimeout,
  onPrimary,
  SESSION_NAME,
} from './connect.ts';
import { heldStore } from './held-store.ts';
import { acquireLease, type Lease, type LeaseOptions } from './lease.ts';
import { connectToLease, type LeaseTableOptions } from './lease-table.ts';
import { assertSchema } from './schema.ts';
import { type Durability, readDurability } from './status.ts';
import { postgresqlTables, readMetaOf } from './tables.ts';
import { createWriting, type Writing } from './writing.ts';

export interface PostgresqlOptions
  extends LeaseTableOptions,
    Omit<LeaseOptions, 'ttl' | 'connect'> {
  readonly address: StoreAddress;
  /** Null for tools that do not serve. */
  readonly network: NetworkIdentity | null;
  /** The folder of the network's keys, which is marked as in use. */
  readonly dataDir: string;
  /** See `WritingOptions.delayed`. */
  delayed(reason: string): void;
}

export interface PostgresqlStore extends Store {
  /** What the database guarantees when it acknowledges a commit. */
  readonly durability: Durability;
  readonly lease: OwnLease;
}

/** The right to write, as its holder sees it. */
export type OwnLease = Pick<Lease, 'term' | 'previousOwner' | 'isHeld' | 'remaining' | 'heldSince'>;

/**
 * Throws a one-sentence error if the database cannot be used; nothing is written to it in that case. A standby may
 * wait here for as long as another instance is active.
 */
export async function openPostgresqlStore(options: PostgresqlOptions): Promise<PostgresqlStore> {
  const { address, leaseMs, standby } = options;
  const shown = await onPrimary(address, async (client, place) => {
    await inspect({ client, shown: place }, options).catch((cause) => {
      throw explained(cause, place);
    });
    return place;
  });
  const lease = await acquireLease({
    ...options,
    standby: standby && {
      ...standby,
      waiting(holder) {
        // If the database is emptied, for example because a move is abandoned, no new network may start in it.
        if (options.network !== null) markInUse(options.dataDir, options.network);
        standby.waiting(holder);
      },
    },
    ttl: leaseMs,
    connect: () => connectToLease(address, options),
  }).catch((cause) => {
    throw explained(cause, shown);
  });
  try {
    // Another server may have become the primary while this process waited.
    const connection = await connectWhileOwned(options, lease);
    return await openHeldStore(options, connection, lease).catch(async (cause) => {
      await disconnect(connection.client);
      throw explained(cause, connection.shown);
    });
  } catch (cause) {
    await lease.end('abandoned').catch(() => undefined);
    throw cause;
  }
}

/** The delay between attempts to connect, in milliseconds. */
const RECONNECT_MS = 100;

/**
 * Opens a connection for changes. None is in flight, so waiting for the database is safe as long as nobody else may
 * write.
 */
async function connectWhileOwned(
  { address, leaseMs, clock }: PostgresqlOptions,
  { isOwned }: Lease,
): Promise<Connection> {
  const until = clock.elapsed() + leaseMs;
  for (;;) {
    try {
      return await connectToPrimary(address, { connectMs: leaseMs / 3 });
    } catch (cause) {
      if (!isOwned() || clock.elapsed() >= until) throw cause;
      await pauseOn(clock, RECONNECT_MS);
    }
  }
}

/** Checks everything that does not depend on which instance is active. */
async function inspect({ client, shown }: Connection, options: PostgresqlOptions): Promise<void> {
  await assertSchema(client, shown);
  if (options.standby !== null) await assertClock(client, options.now);
  const meta = await readMetaOf(client);
  const network = await foundedNetwork(client, meta, options.network);
  assertOwnState(meta, { ...options, network });
}

async function assertClock(client: Client, now: () => number): Promise<void> {
  const sentAt = now();
  const { rows } = await client.query<{ at: number }>(
    'select extract(epoch from clock_timestamp())::float8 * 1000 as at',
  );
  const ahead = clockDifference(rows[0]?.at ?? Number.NaN, { sentAt, answeredAt: now() });
  if (Math.abs(ahead) > MOST_CLOCK_DIFFERENCE_MS) throw new Error(clockSentence(ahead));
}

/** Turns an error message of the database into a sentence. */
function explained(cause: unknown, shown: string): unknown {
  const isOfDatabase = cause instanceof Error && ('severity' in cause || isTimeout(cause));
  return isOfDatabase ? new Error(`The database at ${shown} fails: ${cause.message}`) : cause;
}

async function foundedNetwork(
  client: Client,
  meta: MetaRows,
  network: NetworkIdentity | null,
): Promise<NetworkIdentity | null> {
  const owner = metaValue(meta, 'network');
  if (owner === null || network === null) return network;
  return asFoundedIn(postgresqlTables(client), owner, network);
}

/** The state must belong to this network, and must exist if the network's keys were in use before. */
function assertOwnState(meta: MetaRows, { network, dataDir, standby }: PostgresqlOptions): void {
  assertNotMoved(meta, 'the database');
  const arrival = metaValue(meta, 'arriving');
  // A standby waits for the end of the move.
  if (standby === null) assertArrived(arrival !== null, 'the database');
  if (network === null) return;
  if (arrival !== null) {
    assertSameNetwork(arrival.network, network, 'the database');
    return;
  }
  const owner = metaValue(meta, 'network');
  if (owner !== null) {
    assertSameNetwork(owner, network, 'the database');
  } else {
    assertNeverUsed(
      dataDir,
      'the database holds no state; name the store that does by --store, or restore it from a backup',
    );
  }
}

async function openHeldStore(
  options: PostgresqlOptions,
  { client, shown }: Connection,
  lease: Lease,
): Promise<PostgresqlStore> {
  await assertSchema(client, shown);
  const durability = await readDurability(client);
  const meta = await readMetaOf(client);
  const writing = createWriting({
    client,
    clock: options.clock,
    connect: async () => (await connectWhileOwned(options, lease)).client,
    lease,
    leaseMs: options.leaseMs,
    running: (processId) => isRunning(options, processId),
    delayed: options.delayed,
    gaveUp: options.lost,
  });
  const network = await foundedNetwork(client, meta, options.network);
  await takeOver({ ...options, network }, meta, lease, writing);
  const store = heldStore(options, meta, lease, writing);
  return { ...store, durability, lease };
}

async function isRunning({ address, leaseMs }: PostgresqlOptions, processId: number) {
  const { client } = await connectToPrimary(address, { timeout: leaseMs, connectMs: leaseMs });
  try {
    return await runningFor(client, processId);
  } finally {
    await disconnect(client);
  }
}

/** Checks the state again, because another process may have been the holder in the meantime. */
async function takeOver(
  options: PostgresqlOptions,
  meta: MetaRows,
  { term, holder }: Lease,
  writing: Writing,
) {
  assertOwnState(meta, options);
  const { network, dataDir } = options;
  if (network === null) return;
  if (!meta.has('network')) {
    const row = encodeMeta('network', network);
    await writing.inTurn(({ change }) => change(PUT_NETWORK, [term, row, holder]));
  }
  markInUse(dataDir, network);
}

const PUT_NETWORK = {
  name: 'put_network',
  text: `select mesh_na.hold_lease($1, $3), mesh_na.put_meta('network', $2)`,
};

interface Running {
  /** The table whose lock the statement waits for; null if it waits for none. */
  readonly table: string | null;
  readonly blockers: string | null;
}

/** By process id. A pooler's ids mean nothing to the database, so the session must be one of ours. */
const RUNNING = `
  select
    (select l.relation::regclass::text from pg_locks as l
      where l.pid = s.pid and not l.granted limit 1) as table,
    (select string_agg(format('session %s (%s, user %s)', b.pid, b.application_name, b.usename), ', ')
      from pg_stat_activity as b where b.pid = any (pg_blocking_pids(s.pid))) as blockers
  from pg_stat_activity as s
  where s.pid = $1 and s.state = 'active' and s.application_name = '${SESSION_NAME}'
`;

/** What the database does for the session with this process id, as a sentence; null if it does nothing. */
async function runningFor(asked: Client, processId: number): Promise<string | null> {
  const { rows } = await asked.query<Running>(RUNNING, [processId]);
  const running = rows[0];
  if (running === undefined) return null;
  const { table, blockers } = running;
  if (blockers === null) return 'The database is still working on a statement';
  return `A statement waits for the lock on ${table ?? 'rows'} that ${blockers} has; it goes on when that ends`;
}
