/**
 * A fleet that returns all at once after its authority was away. Each node sends its heartbeat when it is due, not
 * when an earlier one is answered. After a while, it gives up, closes the connection, and returns later with a new
 * request, as it does if it is turned away.
 */
import TinyQueue from 'tinyqueue';
import { systemRuntime } from '../src/base/runtime.ts';
import { type Connection, openConnection } from './connection.ts';
import { cpuSecondsOf } from './cpu.ts';
import { type FleetNode, heartbeatRequest } from './fleet.ts';
import type { Target } from './round.ts';

export type ReturnPlan = {
  readonly target: Target;
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
  readonly shed: number;
  readonly givenUp: number;
  readonly serverCpuSeconds: number;
};

/**
 * A node whose request failed waits this long, or up to twice as long, as the authority asks it to in this benchmark.
 */
const BACK_OFF_MS = 1000;
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

export async function returnOf(
  fleet: readonly FleetNode[],
  { target, connections, withinMs, patienceMs, longestMs }: ReturnPlan,
): Promise<ReturnResult> {
  const idle = await opened(target.port, connections);
  const first = fleet.map((node): Buffer | null => heartbeatRequest(node, systemRuntime.now()));
  const cpuBefore = cpuSecondsOf(target.pid);
  const began = systemRuntime.elapsed();
  const due = new TinyQueue<Due>(
    fleet.map((_, node) => ({ node, at: began + Math.random() * withinMs })),
    (a, b) => a.at - b.at,
  );
  /** In the order of sending. */
  const underWay = new Set<Attempt>();
  const all = new Set(idle);
  const counts = { beaten: 0, sent: 0, shed: 0, givenUp: 0 };

  function requestOf(node: number): Buffer {
    const prepared = first[node] ?? null;
    first[node] = null;
    if (prepared !== null) return prepared;
    const sender = fleet[node];
    if (sender === undefined) throw new Error('There is no such node');
    return heartbeatRequest(sender, systemRuntime.now());
  }

  function send(node: number, connection: Connection, now: number): void {
    const attempt = { node, connection, sentAt: now };
    connection.answered = (status, body) => answered(attempt, status, body);
    underWay.add(attempt);
    counts.sent += 1;
    connection.send(requestOf(node));
  }

  function answered(attempt: Attempt, status: number, body: Buffer): void {
    if (!underWay.delete(attempt)) return;
    idle.push(attempt.connection);
    if (status === 200) {
      counts.beaten += 1;
    } else if (status === 503) {
      counts.shed += 1;
      comeBack(attempt.node);
    } else {
      throw new Error(`A heartbeat was answered ${status}: ${body}`);
    }
  }

  function comeBack(node: number): void {
    due.push({ node, at: systemRuntime.elapsed() + BACK_OFF_MS * (1 + Math.random()) });
  }

  function giveUp(attempt: Attempt): void {
    underWay.delete(attempt);
    counts.givenUp += 1;
    attempt.connection.close();
    all.delete(attempt.connection);
    comeBack(attempt.node);
    void openConnection(target.port).then((connection) => {
      all.add(connection);
      idle.push(connection);
    });
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

  while (counts.beaten < fleet.length && systemRuntime.elapsed() - began < longestMs) {
    tick(systemRuntime.elapsed());
    await systemRuntime.pause(TICK_MS);
  }
  const seconds = (systemRuntime.elapsed() - began) / 1000;
  for (const connection of all) connection.close();
  return { ...counts, seconds, serverCpuSeconds: cpuSecondsOf(target.pid) - cpuBefore };
}

async function opened(port: number, count: number): Promise<Connection[]> {
  const connections: Connection[] = [];
  while (connections.length < count) {
    const some = Math.min(OPENED_AT_ONCE, count - connections.length);
    const opening = Array.from({ length: some }, () => openConnection(port));
    connections.push(...(await Promise.all(opening)));
  }
  return connections;
}
