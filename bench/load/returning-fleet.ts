/**
 * A fleet that returns all at once after its authority was away. Each node sends its heartbeat when it is due, not
 * when an earlier one is answered. After a while, it gives up, closes the connection, and returns later with a new
 * request, as it does if it is turned away.
 */
import TinyQueue from 'tinyqueue';
import { systemRuntime } from '../../src/base/runtime.ts';
import { type Connection, errorCode, openConnection, retryAfterIn } from './connection.ts';
import { drive } from './drive.ts';
import { type LatencySummary, newLatencies } from './latency.ts';
import { bytesOf, type FleetNode, heartbeatRequest, type Place } from './requests.ts';

export interface ReturnPlan extends Place {
  /** The most connections at a time: file descriptors are limited. */
  readonly connections: number;
  /** All nodes return within this time. */
  readonly withinMs: number;
  /** How long a node waits for its answer. */
  readonly patienceMs: number;
  /** The round ends after this time, even if not all heartbeats were accepted. */
  readonly longestMs: number;
}

export interface ReturnResult {
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
}

/** A node that got no answer waits this long, or up to twice as long. */
const BACK_OFF_SECONDS = 1;
const OPENED_AT_ONCE = 200;

interface Due {
  readonly node: number;
  /** Milliseconds on the monotonic clock. */
  readonly at: number;
}

/** Opens the connections and signs the first heartbeats; the returned function lets the fleet return. */
export async function prepareReturn(
  fleet: readonly FleetNode[],
  { target, site, withinMs, patienceMs, longestMs, ...plan }: ReturnPlan,
): Promise<() => Promise<ReturnResult>> {
  const connect = () => openConnection(target);
  const connections: Connection[] = [];
  while (connections.length < plan.connections) {
    const some = Math.min(OPENED_AT_ONCE, plan.connections - connections.length);
    connections.push(...(await Promise.all(Array.from({ length: some }, connect))));
  }
  const first = new Map(fleet.map((node, index) => [index, signed(node)]));

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
    /** The node of each request. */
    const underWay = new Map<number, number>();
    const counts = { beaten: 0, sent: 0, shed: 0, givenUp: 0 };
    const refused: { [code: string]: number } = {};
    const away = newLatencies();
    const settled = new AbortController();
    let left = fleet.length;
    let endedAt = began + longestMs;

    function requestOf(node: number): Buffer | undefined {
      const sender = fleet[node];
      const request = first.get(node) ?? (sender && signed(sender));
      first.delete(node);
      return request;
    }

    function ended(index: number): number {
      const node = underWay.get(index) ?? 0;
      underWay.delete(index);
      return node;
    }

    function comeBack(node: number, seconds: number): void {
      due.push({ node, at: systemRuntime.elapsed() + seconds * 1000 * (1 + random()) });
    }

    function settle(now: number): void {
      left -= 1;
      if (left > 0) return;
      endedAt = now;
      settled.abort();
    }

    await drive(
      { seconds: longestMs / 1000, rate: null, patienceMs },
      {
        connections,
        dueAt: () => due.peek()?.at ?? Number.POSITIVE_INFINITY,
        next(index) {
          const { node = 0 } = due.pop() ?? {};
          underWay.set(index, node);
          counts.sent += 1;
          return requestOf(node);
        },
        answered({ index }, status, body, now, head) {
          const node = ended(index);
          if (status === 503 || status === 429) {
            counts.shed += 1;
            comeBack(node, retryAfterIn(head) ?? BACK_OFF_SECONDS);
            return;
          }
          if (status === 200) {
            counts.beaten += 1;
            away.record(now - (dueFirst[node] ?? began));
          } else {
            const code = errorCode(status, body);
            refused[code] = (refused[code] ?? 0) + 1;
          }
          settle(now);
        },
        lost({ index }) {
          counts.givenUp += 1;
          comeBack(ended(index), BACK_OFF_SECONDS);
        },
        replace: connect,
        stopped: settled.signal,
      },
    );
    return { ...counts, refused, seconds: (endedAt - began) / 1000, away: away.summary() };
  };
}

function random(): number {
  return systemRuntime.randomBytes(4).readUInt32LE() / 2 ** 32;
}
