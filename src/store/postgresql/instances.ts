/**
 * The instances that serve one database, each of which writes a row about itself once a second [link-1]. The table is
 * not logged, so writing to it waits for no disk and no standby.
 */
import type { Client } from 'pg';
import type { StoreAddress } from './address.ts';
import { type LeaseClock, pauseOn } from './clocks.ts';
import { connectToPrimary, disconnect, FAREWELL_MS } from './connect.ts';

/** What an instance says about itself. */
export interface OwnRow {
  readonly isActive: boolean;
  /** The revision that its state has; null while it has none. */
  readonly revision: number | null;
  /** How many revisions its state was behind, at least, since the last time; null while it has none. */
  readonly lag: number | null;
  /** The staged authority key, if it holds that. */
  readonly nextKey: string | null;
}

export interface SeenInstance extends OwnRow {
  readonly id: string;
  /** Such as `pid 12 on host`. */
  readonly name: string;
  /** As `host:port`; null if it takes no forwarded requests. */
  readonly address: string | null;
  /** Seconds since it was seen. */
  readonly silent: number;
}

export interface InstanceRowOptions {
  readonly address: StoreAddress;
  readonly leaseMs: number;
  readonly clock: LeaseClock;
  readonly id: string;
  readonly name: string;
  readonly link: string | null;
  own(): OwnRow;
}

const APART_MS = 1000;
/** An instance that was not seen for this long does not count. */
const COUNTS_SECONDS = 3;
/** For how long it is shown when it was last seen. */
export const KEPT_SECONDS = 60;

const WRITE = `
  insert into mesh_na.instances as i (id, name, address, active, revision, lag, next_key, seen)
  values ($1, $2, $3, $4, $5, $6, $7, clock_timestamp())
  on conflict (id) do update set active = excluded.active, revision = excluded.revision, lag = excluded.lag,
    next_key = excluded.next_key, seen = excluded.seen
`;
/** Instances that have ended without removing their rows, also while the clock of the database was ahead. */
const SWEEP = `delete from mesh_na.instances where seen
  not between clock_timestamp() - make_interval(secs => ${KEPT_SECONDS}) and clock_timestamp()`;
const REMOVE = 'delete from mesh_na.instances where id = $1';
const READ = `
  select id::text, name, address, active as "isActive", revision::float8, lag::float8, next_key as "nextKey",
    extract(epoch from clock_timestamp() - seen)::float8 as silent
  from mesh_na.instances
  where seen > clock_timestamp() - make_interval(secs => $1)
  order by id
`;

/** The instances that were seen within this many seconds. */
export async function readInstances(
  client: Client,
  seconds = COUNTS_SECONDS,
): Promise<SeenInstance[]> {
  const { rows } = await client.query<SeenInstance>(READ, [seconds]);
  return rows;
}

/** Keeps the row of this instance up to date for as long as it serves. */
export function keepInstanceRow(options: InstanceRowOptions) {
  const { address, leaseMs, clock, id, name, link } = options;
  let client: Client | null = null;
  let others: readonly SeenInstance[] = [];
  let isClosed = false;

  async function connected(): Promise<Client> {
    client ??= (await connectToPrimary(address, { timeout: leaseMs })).client;
    return client;
  }

  async function leave(): Promise<void> {
    const left = client;
    client = null;
    if (left !== null) await disconnect(left);
  }

  async function write(): Promise<void> {
    try {
      const current = await connected();
      if (isClosed) return await leave();
      const { isActive, revision, lag, nextKey } = options.own();
      await current.query(WRITE, [id, name, link, isActive, revision, lag, nextKey]);
      await current.query(SWEEP);
      others = (await readInstances(current)).filter((instance) => instance.id !== id);
    } catch {
      // The lease shows whether the database can be reached; what is known of the others gets old.
      await leave();
    }
  }

  async function keepWriting(): Promise<void> {
    while (!isClosed) {
      await write();
      if (!isClosed) await pauseOn(clock, APART_MS);
    }
  }

  void keepWriting();
  return {
    /** The other instances that were seen lately, in the order of their ids. */
    others: (): readonly SeenInstance[] => others,
    /** Removes the row, unless the database does not answer: the end of the process may be waiting. */
    async close(): Promise<void> {
      isClosed = true;
      const current = client;
      if (current === null) return;
      const remove = { text: REMOVE, values: [id], query_timeout: FAREWELL_MS };
      await current.query(remove).catch(() => undefined);
      await leave();
    },
  };
}
