/**
 * The right to write, which one process has at a time: a row in the database with a number that grows with
 * every holder. Every commit names its holder's number and fails under a later one, so nothing depends on
 * clocks. Time decides only when another may take over, and when a holder that hears nothing gives up: it
 * counts on its own monotonic clock, from before it sent the renewal, and so gives up before another begins.
 */
import type { Client } from 'pg';
import type { PreviousOwner } from '../store.ts';
import { disconnect } from './connect.ts';

/** The clock of the holder; not that of the service, which tests may set. */
export interface LeaseClock {
  /** Monotonic milliseconds. */
  elapsed(): number;
  /** Calls back once after this many milliseconds; returns what prevents it. */
  after(milliseconds: number, work: () => void): () => void;
}

export interface LeaseHolder {
  /** New at each start. */
  readonly id: string;
  /** What other processes call it, such as `pid 12 on host`. */
  readonly name: string;
}

export interface LeaseOptions {
  readonly holder: LeaseHolder;
  readonly clock: LeaseClock;
  /** How long it lasts without a renewal, in milliseconds. */
  readonly ttl: number;
  /** Makes a connection of its own: work on the others must not delay a renewal. */
  connect(): Promise<Client>;
  /** Called once, when the lease is lost for good. */
  lost(problem: string): void;
}

export interface Lease {
  /** Names this holding in every commit. */
  readonly epoch: number;
  readonly previousOwner: PreviousOwner;
  /** Whether nobody else can hold it at this moment. */
  isHeld(): boolean;
  /** False once it is known to be lost. */
  isOwned(): boolean;
  /** Null while renewals succeed; otherwise why they do not. */
  problem(): string | null;
  /** Gives it up: as one who has stored everything, or as if this process had died. */
  end(how: 'released' | 'abandoned'): Promise<void>;
}

const TAKEN = 'Another process has taken over the database';
/** Renewals are sent this often within the time that the lease lasts. */
const RENEWALS = 3;
/** The part of that time by which clocks may run apart. */
const MARGIN = 0.1;
/** How often one who waits for the end of a lease looks, in milliseconds. */
const LOOK_MS = 250;

const ACQUIRE = `
  update mesh_na.writer_lease as l
  set epoch = l.epoch + 1, holder = $1, holder_name = $2, released = false,
    expires_at = clock_timestamp() + make_interval(secs => $3::float8 / 1000)
  from (select epoch, released from mesh_na.writer_lease for update) as former
  where former.released or l.expires_at < clock_timestamp()
  returning l.epoch, former.released
`;
const LOOK = `
  select epoch, holder_name, expires_at::text as until,
    extract(epoch from expires_at - clock_timestamp())::float8 * 1000 as remaining
  from mesh_na.writer_lease
`;
const RENEW = `
  update mesh_na.writer_lease
  set expires_at = clock_timestamp() + make_interval(secs => $2::float8 / 1000)
  where epoch = $1 and not released
`;
const END = `
  update mesh_na.writer_lease set expires_at = clock_timestamp(), released = $2 where epoch = $1
`;

interface Acquired {
  readonly epoch: number;
  readonly previousOwner: PreviousOwner;
  /** When it was asked for. */
  readonly sentAt: number;
}

interface SeenLease {
  readonly epoch: string;
  readonly holder_name: string;
  readonly until: string;
  readonly remaining: number;
}

/**
 * Resolves once this process is the holder. Waits for the lease of a holder that has died to run out; throws
 * one clear sentence when it is seen to be renewed.
 */
export async function acquireLease(options: LeaseOptions): Promise<Lease> {
  const client = await options.connect();
  try {
    return keepLease(options, client, await takeWhenFree(client, options));
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
}

async function takeWhenFree(client: Client, options: LeaseOptions): Promise<Acquired> {
  const { holder, clock, ttl } = options;
  let before: SeenLease | undefined;
  for (;;) {
    const sentAt = clock.elapsed();
    const { rows } = await client.query<{ epoch: string; released: boolean }>(ACQUIRE, [
      holder.id,
      holder.name,
      ttl,
    ]);
    if (rows[0] !== undefined) {
      const epoch = Number(rows[0].epoch);
      return { epoch, previousOwner: endOf(epoch - 1, rows[0].released), sentAt };
    }
    const seen = (await client.query<SeenLease>(LOOK)).rows[0];
    if (seen === undefined) throw new Error('The database has no lease; its table was emptied');
    if (before !== undefined && before.until !== seen.until) throw inUse(seen);
    before = seen;
    await pause(clock, Math.min(LOOK_MS, Math.max(1, seen.remaining + 1)));
  }
}

function inUse({ holder_name, until }: SeenLease): Error {
  return new Error(
    `The database is in use by another process (${holder_name}), which has renewed its lease until ${until}; stop that one, or name another database by --store`,
  );
}

function pause(clock: LeaseClock, milliseconds: number): Promise<void> {
  return new Promise((resolve) => void clock.after(milliseconds, resolve));
}

function endOf(former: number, released: boolean): PreviousOwner {
  if (former === 0) return 'none';
  return released ? 'closed' : 'lost';
}

function keepLease(options: LeaseOptions, first: Client, acquired: Acquired): Lease {
  const { clock, ttl } = options;
  const { epoch, previousOwner } = acquired;
  const lasts = ttl * (1 - MARGIN);
  let client: Client | null = first;
  let heldUntil = acquired.sentAt + lasts;
  let unanswered: string | null = null;
  let loss: string | null = null;
  let ended = false;
  let underWay: Promise<void> = Promise.resolve();
  let cancel = scheduleRenewal();

  function scheduleRenewal(): () => void {
    return clock.after(ttl / RENEWALS, () => {
      underWay = renew().then(() => {
        if (!ended && loss === null) cancel = scheduleRenewal();
      });
    });
  }

  async function renew(): Promise<void> {
    const sentAt = clock.elapsed();
    try {
      client ??= await options.connect();
      const { rowCount } = await client.query(RENEW, [epoch, ttl]);
      if (rowCount === 0) return lose(TAKEN);
      // Also after the time has run out, as for a process that was suspended: nobody else was the holder.
      heldUntil = sentAt + lasts;
      unanswered = null;
    } catch (cause) {
      unanswered = `The database does not answer: ${messageOf(cause)}`;
      leave();
      if (clock.elapsed() >= heldUntil) lose(unanswered);
    }
  }

  /** A connection that has failed once may hang: the next attempt makes another. */
  function leave(): void {
    if (client !== null) void disconnect(client);
    client = null;
  }

  async function sendEnd(how: 'released' | 'abandoned'): Promise<void> {
    client ??= await options.connect();
    await client.query(END, [epoch, how === 'released']);
  }

  function lose(problem: string): void {
    if (ended || loss !== null) return;
    loss = problem;
    options.lost(problem);
  }

  return {
    epoch,
    previousOwner,
    isHeld: () => loss === null && !ended && clock.elapsed() < heldUntil,
    isOwned: () => loss === null,
    problem: () => loss ?? unanswered,
    async end(how) {
      ended = true;
      cancel();
      await underWay;
      try {
        if (loss !== null) return;
        // The connection may have been lost since the last renewal.
        await sendEnd(how).catch(() => {
          leave();
          return sendEnd(how);
        });
      } finally {
        if (client !== null) await disconnect(client);
      }
    },
  };
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
