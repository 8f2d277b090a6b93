/**
 * Sends requests over connections. Closed loop: each connection sends its next request when its last one is answered.
 * Open loop: requests are due at a fixed rate, whether or not earlier ones are answered, and their waiting counts from
 * when they were due, so that a stalled server cannot hide it (no coordinated omission). Instead of a rate, each request may
 * have a time of its own.
 */
import { systemRuntime } from '../../src/base/runtime.ts';
import type { Connection } from './connection.ts';

export interface DrivePlan {
  /** No request is due after this time; those that are not sent within a second of it never are. */
  readonly seconds: number;
  /** Requests per second of the open loop; null means the closed loop. */
  readonly rate: number | null;
  /** How long to wait for an answer, in milliseconds. */
  readonly patienceMs: number;
}

export interface Sent {
  readonly index: number;
  /** Times are milliseconds on the monotonic clock. */
  readonly dueAt: number;
  readonly sentAt: number;
  /** How late it was sent although a connection was idle: the generator's fault, not the server's. */
  readonly lateMs: number;
}

export interface Traffic {
  readonly connections: readonly Connection[];
  /** The request with this number, null if it is not signed yet, or undefined if there are no more. */
  next(index: number): Buffer | null | undefined;
  /** When the next request is due, if not at a rate; infinite while it is not known. */
  dueAt?(): number;
  answered(sent: Sent, status: number, body: Buffer, now: number, head: string): void;
  /** Called for each request that was due but not sent by the end, because every connection was busy. */
  unsent?(dueAt: number, now: number): void;
  /** Called for each request whose answer will not arrive. */
  lost?(sent: Sent, cause: 'timeout' | 'connection_lost', now: number): void;
  /** Ends the run early; requests under way are still awaited. */
  readonly stopped?: AbortSignal;
  /** Opens a connection in place of one that failed. Without it, a failure ends everything. */
  replace?(): Promise<Connection>;
}

/** The event loop and its clock; tests simulate them. */
export interface Loop {
  /** Monotonic milliseconds. */
  elapsed(): number;
  /** Calls back after about this time; 0 means in the next turn of the loop. */
  after(milliseconds: number, call: () => void): void;
}

export interface Effort {
  readonly startedAt: number;
  /** How many requests per second this thread could send and receive; null if it did not have to hurry. */
  readonly sendingLimit: number | null;
}

const SYSTEM_LOOP: Loop = {
  elapsed: systemRuntime.elapsed,
  after(milliseconds, call) {
    if (milliseconds === 0) setImmediate(call);
    else setTimeout(call, milliseconds);
  },
};

/** Node's timers are imprecise by about a millisecond, which would show as latency, so the last of a wait is spun. */
const TIMER_ERROR_MS = 2;
const LONGEST_PAUSE_MS = 50;
/** Without it, a short stall at the end would look like an overload. */
const GRACE_MS = 1000;
/** How often to look for requests that have waited too long, and to try again to open a connection. */
const CHECK_MS = 100;
/** Fewer sent requests and answers than these say nothing about a limit. */
const FEW_EVENTS = 200;

/** A connection and its current request. */
interface Slot {
  connection: Connection;
  sent: Sent | null;
}

export function drive(
  { seconds, rate, patienceMs }: DrivePlan,
  traffic: Traffic,
  loop: Loop = SYSTEM_LOOP,
): Promise<Effort> {
  return new Promise((resolve, reject) => {
    const slots = traffic.connections.map((connection): Slot => ({ connection, sent: null }));
    const idle = [...slots];
    const startedAt = loop.elapsed();
    const endsAt = startedAt + seconds * 1000;
    let underWay = 0;
    let next = 0;
    let isOver = false;
    let hasEnded = false;
    /** When a connection last became idle after all had been busy. */
    let idleSince = startedAt;
    let awaitsSignature = false;
    let checkedAt = startedAt;
    const work = { events: 0, turnBegan: startedAt, isSpinning: false, busyMs: 0, busyEvents: 0 };

    function dueTime(index: number, now: number): number {
      if (traffic.dueAt !== undefined) return traffic.dueAt();
      return rate === null ? now : startedAt + (index * 1000) / rate;
    }

    function sendWhatIsDue(now: number): void {
      awaitsSignature = false;
      while (!isOver && idle.length > 0) {
        const dueAt = dueTime(next, now);
        if (dueAt > now) break;
        const request = dueAt < endsAt ? traffic.next(next) : undefined;
        if (request === null) {
          awaitsSignature = true;
          break;
        }
        const slot = request === undefined ? undefined : idle.pop();
        if (request === undefined || slot === undefined) {
          isOver = true;
          break;
        }
        const lateMs = now - Math.max(dueAt, idleSince);
        slot.sent = { index: next, dueAt, sentAt: now, lateMs };
        next += 1;
        underWay += 1;
        work.events += 1;
        slot.connection.send(request);
      }
      if (isOver && underWay === 0) finish(null);
    }

    function stopSending(now: number): void {
      if (isOver) return;
      isOver = true;
      for (; rate !== null && dueTime(next, now) < Math.min(endsAt, now); next += 1) {
        traffic.unsent?.(dueTime(next, now), now);
      }
      if (underWay === 0) finish(null);
    }

    function take(slot: Slot): Sent | null {
      const { sent } = slot;
      slot.sent = null;
      if (sent !== null) underWay -= 1;
      return sent;
    }

    function makeIdle(slot: Slot, now: number): void {
      if (idle.length === 0) idleSince = now;
      idle.push(slot);
      sendWhatIsDue(now);
    }

    function attach(slot: Slot): void {
      const { connection } = slot;
      connection.answered = (status, body, head) => {
        const now = loop.elapsed();
        const sent = take(slot);
        if (sent === null) return;
        work.events += 1;
        traffic.answered(sent, status, body, now, head);
        makeIdle(slot, now);
      };
      connection.failed = (cause) => lose(slot, 'connection_lost', cause);
    }

    function lose(slot: Slot, cause: 'timeout' | 'connection_lost', error: Error): void {
      if (hasEnded) return;
      if (traffic.replace === undefined) {
        finish(error);
        return;
      }
      const { connection } = slot;
      connection.answered = () => undefined;
      connection.failed = () => undefined;
      connection.close();
      const place = idle.indexOf(slot);
      if (place >= 0) idle.splice(place, 1);
      const sent = take(slot);
      if (sent !== null) traffic.lost?.(sent, cause, loop.elapsed());
      reopen(slot, traffic.replace);
      if (isOver && underWay === 0) finish(null);
    }

    function reopen(slot: Slot, replace: () => Promise<Connection>): void {
      replace().then(
        (connection) => {
          if (hasEnded) {
            connection.close();
            return;
          }
          slot.connection = connection;
          attach(slot);
          makeIdle(slot, loop.elapsed());
        },
        () => {
          if (!hasEnded) loop.after(CHECK_MS, () => reopen(slot, replace));
        },
      );
    }

    function dropLate(now: number): void {
      checkedAt = now;
      for (const slot of slots) {
        if (slot.sent === null || now - slot.sent.sentAt < patienceMs) continue;
        lose(slot, 'timeout', new Error('The server did not answer all requests in time'));
      }
    }

    function turn(): void {
      if (hasEnded) return;
      const now = loop.elapsed();
      if (work.isSpinning && work.events > 0) {
        work.busyMs += now - work.turnBegan;
        work.busyEvents += work.events;
      }
      work.events = 0;
      work.turnBegan = now;
      if (now >= endsAt + GRACE_MS || traffic.stopped?.aborted) stopSending(now);
      if (now - checkedAt >= Math.min(CHECK_MS, patienceMs)) dropLate(now);
      sendWhatIsDue(now);
      const pause = pauseFrom(now);
      work.isSpinning = pause === 0;
      loop.after(pause, turn);
    }

    function pauseFrom(now: number): number {
      if (isOver || (rate === null && !traffic.dueAt)) return LONGEST_PAUSE_MS;
      if (idle.length === 0 || awaitsSignature) return 1;
      const left = dueTime(next, now) - now - TIMER_ERROR_MS;
      return left < 1 ? 0 : Math.min(left, LONGEST_PAUSE_MS);
    }

    function finish(cause: Error | null): void {
      if (hasEnded) return;
      hasEnded = true;
      for (const { connection } of slots) connection.close();
      const { busyMs, busyEvents } = work;
      // A request is two events: it is sent, and its answer is received.
      const sendingLimit = busyEvents < FEW_EVENTS ? null : (busyEvents / 2 / busyMs) * 1000;
      if (cause === null) resolve({ startedAt, sendingLimit });
      else reject(cause);
    }

    for (const slot of slots) attach(slot);
    turn();
  });
}
