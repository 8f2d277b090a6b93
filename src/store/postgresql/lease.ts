/**
 * The right to write, which one process has at a time: a row in the database with a number that grows with every
 * holder. Every commit contains its holder's number and fails if there is a later one, so safety does not depend on
 * clocks. Time only determines when another process may take over, and when a holder that gets no answers gives up.
 * Each process uses its own monotonic clock: the holder counts from before it sent a renewal, a waiting process from
 * after it first saw that renewal. So the holder gives up before another process takes over, even if the clock of the
 * database is set.
 *
 * A lock of the session that makes the commits (`pg_advisory_lock`) would be simpler, and free within 10 ms of a kill.
 * It was tried, and does not say enough. After a standby was promoted, the session on the former primary still had the
 * lock and answered reads, so that each read would need a durable commit of its own. A paused holder whose statement
 * waits for another session kept the lock for as long as that wait, because `idle_session_timeout` does not end it.
 */
import { messageOf } from '../../base/error-message.ts';
import type { PreviousOwner } from '../store.ts';
import type { LeaseClock } from './clocks.ts';
import { NotReplicated } from './commit.ts';
import { createConfirmations } from './confirmations.ts';
import { isTimeout } from './connect.ts';
import { type Holding, type LeaseTable, type SeenLease, Unstorable } from './lease-table.ts';

export interface LeaseHolder {
  /** New at each start. */
  readonly id: string;
  /** Its name for other processes, such as `pid 12 on host`. */
  readonly name: string;
}

/** Digests by setting name. They must be the same for all instances that may replace each other. */
export type Configuration = Readonly<Record<string, string>>;

/** One of several instances, which waits for its turn while another is the holder. */
export interface Standby {
  readonly configuration: Configuration;
  /** Where it accepts calls from other instances while it is the holder; null if it accepts none. */
  readonly link: string | null;
  /** Called after each look at the lease while waiting; null if nobody is the holder. */
  seen(holder: SeenTerm | null): void;
  /** Called if the database prevented an attempt to get the lease. */
  missed(): void;
  /** Called if the lease is available, but the database accepts no changes; once until somebody holds it. */
  cannotWrite(problem: string): void;
  /** Called once, when another process is seen to renew the lease; `holder` is the name of that process. */
  waiting(holder: string): void;
  /** Ends the waiting. */
  readonly signal: AbortSignal;
}

/** The holder, as needed to call it from another instance. */
export interface SeenTerm {
  readonly term: number;
  /** As `host:port`; null if it accepts no calls. */
  readonly link: string | null;
  /** Whether a state is being moved into the database, so that no standby gets a turn. */
  readonly isMoving: boolean;
}

export interface LeaseOptions {
  readonly holder: LeaseHolder;
  /** Null for a process that fails instead of waiting while another is the holder. */
  readonly standby: Standby | null;
  readonly clock: LeaseClock;
  /** How long the lease lasts without renewal, in milliseconds. */
  readonly ttl: number;
  /** Opens a separate connection, because other work must not delay a renewal. */
  connect(): Promise<LeaseTable>;
  /** Called with the milliseconds that the database took to confirm whether this process is still the holder. */
  confirmed(milliseconds: number): void;
  /** Called once, when the lease is lost for good, so that another process might write: this one must stop answering. */
  lost(problem: string): void;
}

/** A lease that was acquired; every commit contains the holding. */
export type Lease = ReturnType<typeof keepLease>;

const TAKEN = 'Another process has taken over the database';
/**
 * How many renewals are sent within the duration of the lease. A stalled disk may thus delay one answer by seven
 * tenths of that time, or each of several in a row by nearly half of it, before the holder has to stop.
 */
const RENEWALS = 5;
/** The fraction of that time by which clocks may drift apart. */
const MARGIN = 0.1;
/** How often a waiting process looks at the lease without being notified, in milliseconds. */
const LOOK_MS = 100;
/** The delay before retrying a database that accepts no changes, because each attempt uses up space that is left. */
const AGAIN_MS = 1000;
/** How long startup tolerates a database that answers too slowly for a renewal. */
const START_MS = 10_000;

interface Acquired {
  readonly term: number;
  readonly previousOwner: PreviousOwner;
  /** When the lease was requested. */
  readonly sentAt: number;
}

/**
 * Resolves once this process is the holder. If the holder has died, waits until its lease has expired. While another
 * process renews the lease, a standby waits for its turn; any other process gets a one-sentence error.
 */
export async function acquireLease(options: LeaseOptions): Promise<Lease> {
  let table: LeaseTable | null = null;
  const began = options.clock.elapsed();
  let before: SeenLease | undefined;
  /** Since when the row has been unchanged. */
  let unchangedSince = began;
  let cannotWrite = false;
  let isWaiting = false;
  let isListening = false;
  let wasNotified = false;
  /** Ends a pause early. */
  let wake: () => void = () => undefined;

  function pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = options.clock.after(milliseconds, resolve);
      wake = () => {
        cancel();
        resolve();
      };
    });
  }

  async function listen(current: LeaseTable): Promise<void> {
    await current.listen(() => {
      wasNotified = true;
      wake();
    });
    isListening = true;
    // Looks again, because a notification may have been sent before.
    wasNotified = true;
  }

  /** Null if another process is the holder. */
  async function tryOnce(current: LeaseTable): Promise<Acquired | null> {
    const seen = await current.look();
    const isChanged = before?.until !== seen.until || before.term !== seen.term;
    const isRenewed = before !== undefined && isChanged;
    if (isChanged) unchangedSince = options.clock.elapsed();
    before = seen;
    // An earlier statement took it, but its answer came too late, for example because of a slow standby.
    if (seen.holder === options.holder.id && !seen.isReleased) {
      return adopt(current, options, seen);
    }
    const isKeptOut = seen.isMoving && options.standby !== null;
    if (freeIn(seen) <= 0 && !isKeptOut) {
      const acquired = await take(current, options, seen);
      if (isWaiting) options.standby?.seen(null);
      return acquired;
    }
    cannotWrite = false;
    // The process that moves the state may have died. Its mark remains, and standbys wait until the move is
    // continued.
    if (isKeptOut || isRenewed) {
      assertMayWait(seen, options.standby);
      if (!isWaiting) options.standby?.waiting(seen.holderName);
      isWaiting = true;
    }
    if (isWaiting && !isListening) await listen(current);
    if (isWaiting) {
      const { term, link, isMoving } = seen;
      options.standby?.seen({ term, link, isMoving });
    }
    return null;
  }

  /** The milliseconds until the holder has given up. */
  function freeIn({ isReleased, lasts }: SeenLease): number {
    if (isReleased) return 0;
    return unchangedSince + (lasts ?? options.ttl) - options.clock.elapsed();
  }

  function noteUnstorable({ message }: Unstorable): void {
    if (!cannotWrite) options.standby?.cannotWrite(message);
    cannotWrite = true;
    options.standby?.missed();
  }

  try {
    for (;;) {
      if (options.standby?.signal.aborted === true) throw new Error('The waiting was ended');
      try {
        table ??= await options.connect();
        wasNotified = false;
        const acquired = await tryOnce(table);
        if (acquired !== null) return keepLease(options, table, acquired);
      } catch (cause) {
        if (isWaiting && cause instanceof Unstorable) {
          noteUnstorable(cause);
          await pause(AGAIN_MS);
          continue;
        }
        // A waiting process has time: the database may come back, or another server may replace it.
        const isSlow = isTimeout(cause) && options.clock.elapsed() - began < START_MS;
        if (cause instanceof NotWaiting || !(isWaiting || isSlow)) throw cause;
        if (isWaiting) options.standby?.missed();
        void table?.disconnect();
        table = null;
        isListening = false;
        // The next connection looks at the lease anyway, but not before a pause.
        wasNotified = false;
      }
      if (wasNotified) continue;
      const remaining = before === undefined ? 0 : freeIn(before);
      await pause(remaining <= 0 ? LOOK_MS : Math.min(LOOK_MS, remaining + 1));
    }
  } catch (cause) {
    await table?.disconnect();
    throw cause;
  }
}

async function take(
  table: LeaseTable,
  { holder, standby, clock, ttl }: LeaseOptions,
  seen: SeenLease,
): Promise<Acquired | null> {
  const sentAt = clock.elapsed();
  const configuration = standby && JSON.stringify(standby.configuration);
  const link = standby?.link ?? null;
  const taken = await table.take({ ...holder, configuration, link }, ttl, seen);
  if (taken === null) return null;
  const { term, wasReleased } = taken;
  return { term, previousOwner: endOf(term - 1, wasReleased), sentAt };
}

/**
 * Null if another process has taken the lease in the meantime. It is no longer known whether the previous holder
 * released it.
 */
async function adopt(
  table: LeaseTable,
  { holder: { id: holder }, clock, ttl }: LeaseOptions,
  { term }: SeenLease,
): Promise<Acquired | null> {
  const sentAt = clock.elapsed();
  if (!(await table.renew({ term, holder }, ttl))) return null;
  return { term, previousOwner: endOf(term - 1, false), sentAt };
}

/** The reason why a process does not wait for its turn. */
export class NotWaiting extends Error {
  readonly holderName: string;

  constructor(holderName: string, message: string) {
    super(message);
    this.holderName = holderName;
  }
}

function assertMayWait(
  { holderName, until, configuration }: SeenLease,
  standby: Standby | null,
): void {
  if (standby === null) {
    throw new NotWaiting(
      holderName,
      `The database is in use by another process (${holderName}), which has renewed its lease until ${until}; stop that one, or name another database by --store`,
    );
  }
  // A command that holds the lease for a while serves nobody, and has no settings.
  if (configuration === null) return;
  const held = JSON.parse(configuration) as Configuration;
  const names = new Set([...Object.keys(standby.configuration), ...Object.keys(held)]);
  const different = [...names].filter((name) => standby.configuration[name] !== held[name]);
  if (different.length === 0) return;
  throw new NotWaiting(
    holderName,
    `The instance that writes (${holderName}) has other settings than this one: ${different.join(', ')}; all instances on one database need the same`,
  );
}

function endOf(former: number, released: boolean): PreviousOwner {
  if (former === 0) return 'none';
  return released ? 'closed' : 'lost';
}

function keepLease(options: LeaseOptions, first: LeaseTable, acquired: Acquired) {
  const { clock, ttl } = options;
  const { term, previousOwner } = acquired;
  const holding: Holding = { term, holder: options.holder.id };
  const lasts = ttl * (1 - MARGIN);
  let table: LeaseTable | null = first;
  let heldUntil = acquired.sentAt + lasts;
  let unanswered: string | null = null;
  let loss: string | null = null;
  let ended = false;
  let underWay: Promise<void> = Promise.resolve();
  const confirmations = createConfirmations({
    clock,
    connect: options.connect,
    ask: (reading) => reading.confirm(holding),
    lost: () => lose(TAKEN),
    answered: options.confirmed,
  });
  let cancel = scheduleRenewal(acquired.sentAt);

  /** The interval begins when the previous renewal was sent, so a late answer uses up part of it. */
  function scheduleRenewal(lastSentAt: number): () => void {
    const wait = Math.max(0, lastSentAt + ttl / RENEWALS - clock.elapsed());
    return clock.after(wait, () => {
      const sentAt = clock.elapsed();
      underWay = renew(sentAt).then(() => {
        if (!ended && loss === null) cancel = scheduleRenewal(sentAt);
      });
    });
  }

  async function renew(sentAt: number): Promise<void> {
    try {
      table ??= await options.connect();
      const isRenewed = await table.renew(holding, ttl);
      if (!isRenewed) return lose(TAKEN);
      // True even if the time has run out, as for a process that was suspended: nobody else became the holder.
      heldUntil = sentAt + lasts;
      unanswered = null;
      confirmations.note(sentAt);
    } catch (cause) {
      unanswered = `The database does not answer: ${messageOf(cause)}`;
      leave();
      // A renewal that only the primary has would confirm this holder even after a standby has replaced that primary.
      if (cause instanceof NotReplicated) lose(cause.message);
      else if (clock.elapsed() >= heldUntil) lose(unanswered);
    }
  }

  /** A connection that failed once may hang, so the next attempt opens a new one. */
  function leave(): void {
    void table?.disconnect();
    table = null;
  }

  async function sendEnd(how: 'released' | 'abandoned'): Promise<void> {
    table ??= await options.connect();
    await table.end(holding, how === 'released');
  }

  function lose(problem: string): void {
    if (ended || loss !== null) return;
    loss = problem;
    confirmations.end();
    options.lost(problem);
  }

  return {
    ...holding,
    previousOwner,
    /** Whether nobody else can hold the lease at this moment. */
    isHeld: () => loss === null && !ended && clock.elapsed() < heldUntil,
    /** For how many milliseconds nobody else can hold the lease, by this machine's clock. */
    remaining: () => (loss === null && !ended ? Math.max(0, heldUntil - clock.elapsed()) : 0),
    heldSince: confirmations.since,
    noteHeld: confirmations.note,
    /** False once the lease is known to be lost. */
    isOwned: () => loss === null,
    /** Null while renewals succeed; otherwise the reason why they fail. */
    problem: (): string | null => loss ?? unanswered,
    /** Ends the lease: `released` means that everything is stored, `abandoned` acts as if this process had died. */
    async end(how: 'released' | 'abandoned'): Promise<void> {
      // Another end must not overwrite how the first one left the state.
      if (ended) return;
      ended = true;
      confirmations.end();
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
        await table?.disconnect();
      }
    },
  };
}
