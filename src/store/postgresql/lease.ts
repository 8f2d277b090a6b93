/**
 * The right to write, which one process has at a time: a row in the database with a number that grows with
 * every holder. Every commit names its holder's number and fails under a later one, so nothing depends on
 * clocks. Time decides only when another may take over, and when a holder that hears nothing gives up. Each counts on its
 * own monotonic clock: the holder from before it sent the renewal, and a process that waits from after it has seen that
 * renewal first. So one gives up before another begins, also when the clock of the database is set.
 */
import { messageOf } from '../../base/error-message.ts';
import type { PreviousOwner } from '../store.ts';
import { createConfirmations } from './confirmations.ts';
import { isTimeout } from './connect.ts';
import type { LeaseClock } from './lease-clock.ts';
import { type Holding, type LeaseTable, type SeenLease, Unstorable } from './lease-table.ts';

export interface LeaseHolder {
  /** New at each start. */
  readonly id: string;
  /** What other processes call it, such as `pid 12 on host`. */
  readonly name: string;
}

/** Digests by the name of the setting: what all instances that take turns have to agree on. */
export type Configuration = Readonly<Record<string, string>>;

/** One of several instances: it waits for its turn while another is the holder. */
export interface Candidate {
  readonly configuration: Configuration;
  /** Where it takes the calls of others while it is the holder; null when it takes none. */
  readonly link: string | null;
  /** Called with each look at the lease after that; null when nobody is the holder. */
  seen(holder: SeenHolder | null): void;
  /** Called when the database could not be asked for the lease. */
  missed(): void;
  /** Called when the lease could be taken, but for a database that takes no changes; once until somebody holds it. */
  cannotWrite(problem: string): void;
  /** Called once, when another is seen to renew the lease; `holder` is what that one calls itself. */
  waiting(holder: string): void;
  /** Ends the waiting. */
  readonly signal: AbortSignal;
}

/** The holder as another instance can call it. */
export interface SeenHolder {
  readonly epoch: number;
  /** As `host:port`; null when it takes no calls. */
  readonly link: string | null;
  /** Whether a state is being moved into the database, or out of it: no candidate gets a turn meanwhile. */
  readonly isMoving: boolean;
}

export interface LeaseOptions {
  readonly holder: LeaseHolder;
  /** Null for a process that is refused while another is the holder. */
  readonly candidate: Candidate | null;
  readonly clock: LeaseClock;
  /** How long it lasts without a renewal, in milliseconds. */
  readonly ttl: number;
  /** Makes a connection of its own: work on the others must not delay a renewal. */
  connect(): Promise<LeaseTable>;
  /** The database has said after this many milliseconds whether this process is still the holder. */
  confirmed(milliseconds: number): void;
  /** Called once, when somebody asks this holder to end, who then takes its place. */
  stopRequested(): void;
  /** Called once, when the lease is lost for good. */
  lost(problem: string): void;
}

/** Every commit names the holding. */
export interface Lease extends Holding {
  readonly previousOwner: PreviousOwner;
  /** Whether nobody else can hold it at this moment. */
  isHeld(): boolean;
  /** Milliseconds for which nobody else can hold it, by this machine's count. */
  remaining(): number;
  /** See `Confirmations.since`. */
  heldSince(time: number): Promise<boolean> | null;
  /** See `Confirmations.note`. */
  noteHeld(sentAt: number): void;
  /** False once it is known to be lost. */
  isOwned(): boolean;
  /** Null while renewals succeed; otherwise why they do not. */
  problem(): string | null;
  /** Gives it up: as one who has stored everything, or as if this process had died. */
  end(how: 'released' | 'abandoned'): Promise<void>;
}

const TAKEN = 'Another process has taken over the database';
/**
 * Renewals are sent this often within the time that the lease lasts. So a disk that stalls may delay one answer by seven
 * tenths of that time, or each of several in a row by nearly half of it, before the holder has to stop.
 */
const RENEWALS = 5;
/** The part of that time by which clocks may run apart. */
const MARGIN = 0.1;
/** How often one who waits for the end of a lease looks if nobody notifies it, in milliseconds. */
const LOOK_MS = 100;
/** Before a database is tried again that takes no changes: each time it fills what is left. */
const AGAIN_MS = 1000;
/** How long a start bears a database that answers later than a renewal may take. */
const START_MS = 10_000;

interface Acquired {
  readonly epoch: number;
  readonly previousOwner: PreviousOwner;
  /** When it was asked for. */
  readonly sentAt: number;
}

/**
 * Resolves once this process is the holder. Waits for the lease of a holder that has died to run out. While
 * another renews it, a candidate waits for its turn, and anyone else is refused by one clear sentence.
 */
export async function acquireLease(options: LeaseOptions): Promise<Lease> {
  let table: LeaseTable | null = null;
  const began = options.clock.elapsed();
  let before: SeenLease | undefined;
  /** Since when the row is as it was seen last. */
  let unchangedSince = began;
  let cannotWrite = false;
  let isWaiting = false;
  let isListening = false;
  let wasNotified = false;
  let wake: () => void = () => undefined;

  async function listen(current: LeaseTable): Promise<void> {
    await current.listen(() => {
      wasNotified = true;
      wake();
    });
    isListening = true;
    // What was announced before is seen by another look.
    wasNotified = true;
  }

  /** Null when another is the holder. */
  async function tryOnce(current: LeaseTable): Promise<Acquired | null> {
    const seen = await current.look();
    const isChanged = before?.until !== seen.until || before.epoch !== seen.epoch;
    const isRenewed = before !== undefined && isChanged;
    if (isChanged) unchangedSince = options.clock.elapsed();
    before = seen;
    // It was taken by a statement whose answer was given up, as while a standby was waited for.
    if (seen.holder === options.holder.id && !seen.isReleased) {
      return adopt(current, options, seen);
    }
    const isKeptOut = seen.isMoving && options.candidate !== null;
    if (freeIn(seen) <= 0 && !isKeptOut) {
      const acquired = await take(current, options, seen);
      if (isWaiting) options.candidate?.seen(null);
      return acquired;
    }
    cannotWrite = false;
    // Anyone who moves a state may have died: its mark stays, and others wait until the move has gone on.
    if (isKeptOut || isRenewed) {
      assertMayWait(seen, options.candidate);
      if (!isWaiting) options.candidate?.waiting(seen.holderName);
      isWaiting = true;
    }
    if (isWaiting && !isListening) await listen(current);
    if (isWaiting) {
      const { epoch, link, isMoving } = seen;
      options.candidate?.seen({ epoch, link, isMoving });
    }
    return null;
  }

  /** The milliseconds until its holder has given up. */
  function freeIn({ isReleased, lasts }: SeenLease): number {
    if (isReleased) return 0;
    return unchangedSince + (lasts ?? options.ttl) - options.clock.elapsed();
  }

  function noteUnstorable({ message }: Unstorable): void {
    if (!cannotWrite) options.candidate?.cannotWrite(message);
    cannotWrite = true;
    options.candidate?.missed();
  }

  try {
    for (;;) {
      if (options.candidate?.signal.aborted === true) throw new Error('The waiting was ended');
      try {
        table ??= await options.connect();
        wasNotified = false;
        const acquired = await tryOnce(table);
        if (acquired !== null) return keepLease(options, table, acquired);
      } catch (cause) {
        if (isWaiting && cause instanceof Unstorable) {
          noteUnstorable(cause);
          await pause(options.clock, AGAIN_MS, (end) => {
            wake = end;
          });
          continue;
        }
        // Anyone who waits has time: the database may come back, or another server may take its place.
        const isSlow = isTimeout(cause) && options.clock.elapsed() - began < START_MS;
        if (cause instanceof NotWaiting || !(isWaiting || isSlow)) throw cause;
        if (isWaiting) options.candidate?.missed();
        void leave(table);
        table = null;
        isListening = false;
        // The next connection looks anyway, and not before a pause.
        wasNotified = false;
      }
      if (wasNotified) continue;
      const remaining = before === undefined ? 0 : freeIn(before);
      const wait = remaining <= 0 ? LOOK_MS : Math.min(LOOK_MS, remaining + 1);
      await pause(options.clock, wait, (end) => {
        wake = end;
      });
    }
  } catch (cause) {
    await leave(table);
    throw cause;
  }
}

async function leave(table: LeaseTable | null): Promise<void> {
  await table?.disconnect();
}

async function take(
  table: LeaseTable,
  { holder, candidate, clock, ttl }: LeaseOptions,
  seen: SeenLease,
): Promise<Acquired | null> {
  const sentAt = clock.elapsed();
  const configuration = candidate && JSON.stringify(candidate.configuration);
  const link = candidate?.link ?? null;
  const taken = await table.take({ ...holder, configuration, link }, ttl, seen);
  if (taken === null) return null;
  const { epoch, wasReleased } = taken;
  return { epoch, previousOwner: endOf(epoch - 1, wasReleased), sentAt };
}

/** Null when another has taken it meanwhile. Whether the holder before has given it up is not known any more. */
async function adopt(
  table: LeaseTable,
  { holder: { id: holder }, clock, ttl }: LeaseOptions,
  { epoch }: SeenLease,
): Promise<Acquired | null> {
  const sentAt = clock.elapsed();
  const renewed = await table.renew({ epoch, holder }, ttl);
  return renewed && { epoch, previousOwner: endOf(epoch - 1, false), sentAt };
}

/** The reason why a process does not wait for its turn. */
class NotWaiting extends Error {}

function assertMayWait(
  { holderName, until, configuration }: SeenLease,
  candidate: Candidate | null,
): void {
  if (candidate === null) {
    throw new NotWaiting(
      `The database is in use by another process (${holderName}), which has renewed its lease until ${until}; stop that one, or name another database by --store`,
    );
  }
  // A command that holds the lease for a while serves nobody, and has no settings.
  if (configuration === null) return;
  const held = JSON.parse(configuration) as Configuration;
  const names = new Set([...Object.keys(candidate.configuration), ...Object.keys(held)]);
  const different = [...names].filter((name) => candidate.configuration[name] !== held[name]);
  if (different.length === 0) return;
  throw new NotWaiting(
    `The instance that writes (${holderName}) has other settings than this one: ${different.join(', ')}; all instances on one database need the same`,
  );
}

/** `endable` is given what ends the pause early. */
function pause(
  clock: LeaseClock,
  milliseconds: number,
  endable: (end: () => void) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(milliseconds, resolve);
    endable(() => {
      cancel();
      resolve();
    });
  });
}

function endOf(former: number, released: boolean): PreviousOwner {
  if (former === 0) return 'none';
  return released ? 'closed' : 'lost';
}

function keepLease(options: LeaseOptions, first: LeaseTable, acquired: Acquired): Lease {
  const { clock, ttl } = options;
  const { epoch, previousOwner } = acquired;
  const holding: Holding = { epoch, holder: options.holder.id };
  const lasts = ttl * (1 - MARGIN);
  let table: LeaseTable | null = first;
  let heldUntil = acquired.sentAt + lasts;
  let unanswered: string | null = null;
  let loss: string | null = null;
  let isWanted = false;
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

  /** The time counts from when the one before was sent: a late answer has used up a part of it. */
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
      const renewed = await table.renew(holding, ttl);
      if (renewed === null) return lose(TAKEN);
      // Also after the time has run out, as for a process that was suspended: nobody else was the holder.
      heldUntil = sentAt + lasts;
      unanswered = null;
      confirmations.note(sentAt);
      if (renewed.isWanted && !isWanted && !ended) options.stopRequested();
      isWanted = renewed.isWanted;
    } catch (cause) {
      unanswered = `The database does not answer: ${messageOf(cause)}`;
      leave();
      if (clock.elapsed() >= heldUntil) lose(unanswered);
    }
  }

  /** A connection that has failed once may hang: the next attempt makes another. */
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
    isHeld: () => loss === null && !ended && clock.elapsed() < heldUntil,
    remaining: () => (loss === null && !ended ? Math.max(0, heldUntil - clock.elapsed()) : 0),
    heldSince: confirmations.since,
    noteHeld: confirmations.note,
    isOwned: () => loss === null,
    problem: () => loss ?? unanswered,
    async end(how) {
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
