/** The row of the lease. Each operation is a single statement and takes effect atomically. */
import type { Client, QueryResultRow } from 'pg';
import { DamagedState } from '../rows.ts';
import type { StoreAddress } from './address.ts';
import { clockDifference } from './clocks.ts';
import { type NotReplicated, onCanceledWait } from './commit.ts';
import { answerWithin, connectToPrimary, disconnect, NO_TIMEOUT } from './connect.ts';

export interface LeaseTable {
  look(): Promise<SeenLease>;
  /**
   * Null if the row has changed since it was seen, unless it was released, or if another process is faster. `lasts` is
   * in milliseconds. Rejects with `Unstorable` if the database accepts no changes.
   */
  take(claim: LeaseClaim, lasts: number, seen: SeenLease): Promise<TakenLease | null>;
  /** False if another process is the holder. */
  renew(holding: Holding, lasts: number): Promise<boolean>;
  /**
   * Whether the lease of this holder is still valid by the clock of the database; null if another process is the
   * holder. Only a primary can renew a lease, so on a primary that a standby has replaced, the lease expires.
   */
  confirm(holding: Holding): Promise<boolean | null>;
  end(holding: Holding, isReleased: boolean): Promise<void>;
  /** Calls back from now on whenever a process takes or ends the lease. */
  listen(notified: () => void): Promise<void>;
  disconnect(): Promise<void>;
}

/** Identifies a holder. The number alone is not enough, because a database that lost changes may assign it twice. */
export interface Holding {
  readonly term: number;
  /** The id of the holder. */
  readonly holder: string;
}

export interface LeaseClaim {
  readonly id: string;
  readonly name: string;
  /** JSON; null for a process that serves nobody. */
  readonly configuration: string | null;
  readonly link: string | null;
}

export interface SeenLease {
  readonly term: number;
  /** The id of the holder; null if nobody has held the lease yet. */
  readonly holder: string | null;
  readonly link: string | null;
  readonly holderName: string;
  readonly configuration: string | null;
  /** Changes with each renewal. */
  readonly until: string;
  /** How long the lease lasts without renewal, in milliseconds; null if not known. */
  readonly lasts: number | null;
  readonly isReleased: boolean;
  /** Whether a state is being moved into the database, so that no standby can take the lease. */
  readonly isMoving: boolean;
}

export interface TakenLease {
  readonly term: number;
  /** Whether the previous holder released the lease. */
  readonly wasReleased: boolean;
}

/** The database is running, but accepts no changes. */
export class Unstorable extends Error {}

/** SQLSTATEs for a full disk, a disk error and a read-only transaction. */
const REFUSES_CHANGES: ReadonlySet<unknown> = new Set(['53100', '58030', '25006']);

/** The channel that notifies waiting processes when the lease is released or gets a new holder. */
const CHANNEL = 'mesh_na_lease';

/** The condition for a database into which a state is being moved. */
const IS_ARRIVING = `exists (select 1 from mesh_na.meta where key = 'arriving')`;
/**
 * Does not depend on clocks: the row must be the same that the process has seen for as long as the lease lasts. The
 * same statement checks that there is room for a commit, because otherwise the new holder would fail with its first
 * one. A process that serves nobody may take the lease even while a state is being moved.
 */
const TAKE = `
  with taken as (
    update mesh_na.writer_lease as l
    set epoch = l.epoch + 1, holder = $1, holder_name = $2, configuration = $4, link = $5, released = false,
      lasts = make_interval(secs => $3::float8 / 1000),
      expires_at = clock_timestamp() + make_interval(secs => $3::float8 / 1000)
    from (select epoch, released, expires_at from mesh_na.writer_lease for update) as former
    where (former.released or (former.epoch = $6::bigint and former.expires_at::text = $7))
      and ($4::text is null or not ${IS_ARRIVING})
    returning l.epoch, former.released
  )
  select epoch::float8 as term, released as "wasReleased",
    pg_notify('${CHANNEL}', ''), mesh_na.try_room(), mesh_na.commit_durably()
  from taken
`;
/** Milliseconds since the epoch. */
const NOW = 'extract(epoch from clock_timestamp())::float8 * 1000';
/** Takes no lock, so that commits of the holder never wait for it. */
const LOOK = `
  select epoch::float8 as term, holder, link, holder_name as "holderName", configuration, expires_at::text as until,
    extract(epoch from lasts)::float8 * 1000 as lasts,
    released as "isReleased",
    ${IS_ARRIVING} as "isMoving",
    ${NOW} as at
  from mesh_na.writer_lease
`;
/**
 * Waits for the disks and the standby, like every commit. A renewal that exists only in the memory of a primary would
 * still be trusted after a standby has replaced it, and would be lost if the database restarts.
 */
const RENEW = `
  update mesh_na.writer_lease
  set expires_at = clock_timestamp() + make_interval(secs => $2::float8 / 1000)
  where epoch = $1 and holder = $3 and not released
  returning ${NOW} as at, mesh_na.commit_durably()
`;
/** Waits for no lock, disk or standby. */
const CONFIRM = `
  select expires_at > clock_timestamp() as lasts from mesh_na.writer_lease
  where epoch = $1 and holder = $2 and not released
`;
const END = `
  with ended as (
    update mesh_na.writer_lease
    set expires_at = clock_timestamp(), lasts = '0', released = $2
    where epoch = $1 and holder = $3
    returning epoch
  )
  select pg_notify('${CHANNEL}', ''), mesh_na.commit_durably() from ended
`;

export interface LeaseTableOptions {
  /** How long the lease lasts, in milliseconds. An answer that takes longer is useless. */
  readonly leaseMs: number;
  /** The wall clock of the machine, milliseconds since the epoch. */
  now(): number;
  /**
   * Called after each look and renewal with the milliseconds by which this machine's clock is ahead of the database;
   * negative if behind.
   */
  clockCompared(aheadMs: number): void;
}

/** The row is created with the tables and never removed, so a page was lost or somebody emptied the table. */
export function leaseIsMissing(): DamagedState {
  return new DamagedState('the row of table writer_lease is missing');
}

/**
 * The fraction of the lease that a statement may wait for a lock. Without a limit, a statement whose sender has given
 * up would take effect when the other transaction ends.
 */
const LOCK_PART = 0.5;

/** Opens a separate connection, because other work must not delay a renewal. */
export async function connectToLease(
  address: StoreAddress,
  options: LeaseTableOptions,
): Promise<LeaseTable> {
  const { leaseMs } = options;
  const lockMs = Math.ceil(leaseMs * LOCK_PART);
  const { client } = await connectToPrimary(address, { timeout: leaseMs, lockMs });
  return leaseTable(client, options);
}

function leaseTable(client: Client, options: LeaseTableOptions): LeaseTable {
  const { leaseMs, now, clockCompared } = options;
  let canceled = null as NotReplicated | null;
  onCanceledWait(client, (problem) => {
    canceled = problem;
  });

  /** Returns the first row of the answer. The database prepares a statement with a name only once. */
  async function ask<Row extends QueryResultRow>(
    text: string,
    values: unknown[] = [],
    name?: string,
  ) {
    const statement = { text, values, name, query_timeout: NO_TIMEOUT };
    const { rows } = await answerWithin(leaseMs, client.query<Row>(statement));
    if (canceled !== null) throw canceled;
    return rows[0];
  }

  async function compared<Row extends QueryResultRow>(text: string, values?: unknown[]) {
    const sentAt = now();
    const row = await ask<Row & { readonly at: number }>(text, values);
    if (row !== undefined) clockCompared(clockDifference(row.at, { sentAt, answeredAt: now() }));
    return row;
  }

  return {
    async look() {
      const seen = await compared<SeenLease>(LOOK);
      if (seen === undefined) throw leaseIsMissing();
      return seen;
    },
    async take({ id, name, configuration, link }, lasts, seen) {
      const values = [id, name, lasts, configuration, link, seen.term, seen.until];
      const taken = await ask<TakenLease>(TAKE, values).catch((cause) => {
        throw REFUSES_CHANGES.has(cause.code)
          ? new Unstorable(`The database takes no changes (${cause.message})`)
          : cause;
      });
      return taken ?? null;
    },
    async renew({ term, holder }, lasts) {
      return (await compared(RENEW, [term, lasts, holder])) !== undefined;
    },
    async confirm({ term, holder }) {
      const row = await ask<{ lasts: boolean }>(CONFIRM, [term, holder], 'confirm');
      return row === undefined ? null : row.lasts;
    },
    async end({ term, holder }, isReleased) {
      await ask(END, [term, isReleased, holder]);
    },
    async listen(notified) {
      client.on('notification', notified);
      await ask(`listen ${CHANNEL}`);
    },
    disconnect: () => disconnect(client),
  };
}
