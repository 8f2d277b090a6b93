/**
 * A fleet that returns all at once after its authority was away. Each node sends its heartbeat when it is due, not
 * when an earlier one is answered. After a while, it gives up, closes the connection, and returns later with a new
 * request, as it does if it is turned away.
 */
import TinyQueue from 'tinyqueue';
import { systemRuntime } from '../../src/base/runtime.ts';
import {
  type Address,
  type Connection,
  errorCode,
  openConnection,
  retryAfterIn,
} from './connection.ts';
import { type LatencySummary, newLatencies } from './latency.ts';
import { bytesOf, type FleetNode, heartbeatRequest, type Site } from './requests.ts';

export type ReturnPlan = {
  readonly target: Address;
  readonly site: Site;
  /** The most connections at a time: file descriptors are limited. */
  readonly connections: number;
  /** All nodes return within this time. */
  readonly withinMs: number;
  /** How long a node waits for its answer. */
  readonly patienceMs: number;
  /** The round ends after this time, even if not all heartbeats were accepted. */
  readonly longestMs: number;
};

export type ReturnResult = {
  /** The time until all heartbeats were accepted or the round ended. */
  readonly seconds: number;
  readonly beaten: number;
  readonly sent: number;
  /** Turned away with 503 or 429, to come back later. */
  readonly shed: number;
  readonly givenUp: number;
  /** Other answers, which nothing is sent after, by error code. */
  readonly refused: { readonly [code: string]: number };
  /** How long nodes were away: from when they were due until a heartbeat was accepted. */
  readonly away: LatencySummary;
};

/** A node that got no answer waits this long, or up to twice as long. */
const BACK_OFF_SECONDS = 1;
const OPENED_AT_ONCE = 200;
const TICK_MS = 2;

interface Due {
  readonly node: number;
  /** Milliseconds on the monotonic clock. */
  readonly at: number;
}

interface Attempt {
  readonly node: number;
  readonly connection: Connection;
  readonly sentAt: number;
}

/** Opens the connections and signs the first heartbeats; the returned function lets the fleet return. */
export async function prepareReturn(
  fleet: readonly FleetNode[],
  { target, site, connections, withinMs, patienceMs, longestMs }: ReturnPlan,
): Promise<() => Promise<ReturnResult>> {
  const idle = await opened(target, connections);
  const all = new Set(idle);
  const first = fleet.map((node): Buffer | null => signed(node));

  function signed(node: FleetNode): Buffer {
    return bytesOf(heartbeatRequest(node, systemRuntime.now()), site);
  }

  return async () => {
    const began = systemRuntime.elapsed();
    const dueFirst = fleet.map(() => began + random() * withinMs);
    const due = new TinyQueue<Due>(
      dueFirst.map((at, node) => ({ node, at })),
      (a, b) => a.at - b.at,
    );
    /** In the order of sending. */
    const underWay = new Set<Attempt>();
    const counts = { beaten: 0, sent: 0, shed: 0, givenUp: 0 };
    const refused: { [code: string]: number } = {};
    const away = newLatencies();
    let settled = 0;

    function requestOf(node: number): Buffer {
      const prepared = first[node] ?? null;
      first[node] = null;
      if (prepared !== null) return prepared;
      const sender = fleet[node];
      if (sender === undefined) throw new Error('There is no such node');
      return signed(sender);
    }

    function send(node: number, connection: Connection, now: number): void {
      const attempt = { node, connection, sentAt: now };
      connection.answered = (status, body, head) => answered(attempt, status, body, head);
      underWay.add(attempt);
      counts.sent += 1;
      connection.send(requestOf(node));
    }

    function answered(attempt: Attempt, status: number, body: Buffer, head: string): void {
      if (!underWay.delete(attempt)) return;
      idle.push(attempt.connection);
      if (status === 503 || status === 429) {
        counts.shed += 1;
        comeBack(attempt.node, retryAfterIn(head) ?? BACK_OFF_SECONDS);
        return;
      }
      settled += 1;
      if (status === 200) {
        counts.beaten += 1;
        away.record(systemRuntime.elapsed() - (dueFirst[attempt.node] ?? began));
      } else {
        const code = errorCode(status, body);
        refused[code] = (refused[code] ?? 0) + 1;
      }
    }

    function comeBack(node: number, seconds: number): void {
      due.push({ node, at: systemRuntime.elapsed() + seconds * 1000 * (1 + random()) });
    }

    function giveUp(attempt: Attempt): void {
      underWay.delete(attempt);
      counts.givenUp += 1;
      attempt.connection.close();
      all.delete(attempt.connection);
      comeBack(attempt.node, BACK_OFF_SECONDS);
      void replace();
    }

    async function replace(): Promise<void> {
      for (;;) {
        const connection = await openConnection(target).catch(() => null);
        if (connection !== null) {
          all.add(connection);
          idle.push(connection);
          return;
        }
        if (systemRuntime.elapsed() - began >= longestMs) return;
        await systemRuntime.pause(BACK_OFF_SECONDS * 1000);
      }
    }

    function tick(now: number): void {
      for (const attempt of underWay) {
        if (now - attempt.sentAt < patienceMs) break;
        giveUp(attempt);
      }
      for (;;) {
        const next = due.peek();
        if (next === undefined || next.at > now) return;
        const connection = idle.pop();
        if (connection === undefined) return;
        due.pop();
        send(next.node, connection, now);
      }
    }

    while (settled < fleet.length && systemRuntime.elapsed() - began < longestMs) {
      tick(systemRuntime.elapsed());
      await systemRuntime.pause(TICK_MS);
    }
    const seconds = (systemRuntime.elapsed() - began) / 1000;
    for (const connection of all) connection.close();
    return { ...counts, refused, seconds, away: away.summary() };
  };
}

function random(): number {
  return systemRuntime.randomBytes(4).readUInt32LE() / 2 ** 32;
}

async function opened(target: Address, count: number): Promise<Connection[]> {
  const connections: Connection[] = [];
  while (connections.length < count) {
    const some = Math.min(OPENED_AT_ONCE, count - connections.length);
    const opening = Array.from({ length: some }, () => openConnection(target));
    connections.push(...(await Promise.all(opening)));
  }
  return connections;
}
