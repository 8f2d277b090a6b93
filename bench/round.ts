/**
 * One measured round against one server. Closed loop: every connection sends its next request when its last one is
 * answered. Open loop: requests are due at a fixed rate, and latency is measured from when a request was due, so that
 * a stalled server cannot hide it (no coordinated omission).
 */
import { build } from 'hdr-histogram-js';
import { systemRuntime } from '../src/base/runtime.ts';
import { type Connection, openConnection } from './connection.ts';
import { cpuSecondsOf, mainThreadSecondsOf } from './cpu.ts';

export type Target = { readonly port: number; readonly pid: number };

export type RoundPlan = {
  readonly target: Target;
  readonly connections: number;
  /** No request is due after this time; the round ends with the last answer. */
  readonly seconds: number;
  /** Requests per second of the open loop; null means the closed loop. */
  readonly rate: number | null;
  /** Seconds at the start of the round whose latencies do not count. */
  readonly settling?: number;
};

/** Latencies in milliseconds. */
export type Latency = { readonly p50: number; readonly p99: number; readonly p999: number };

export type RoundResult = {
  readonly answered: number;
  readonly seconds: number;
  readonly latency: Latency | null;
  /** CPU time of the server and of the load generator during the round. */
  readonly serverCpuSeconds: number;
  /** The share of the server's main thread. */
  readonly mainThreadSeconds: number;
  readonly clientCpuSeconds: number;
  /** Answers other than 2xx by status, and the body of the first of them. */
  readonly refusals: { readonly [status: string]: number };
  readonly firstRefusal: string | null;
};

/** The requests in order, built beforehand; `undefined` ends the round. */
export type RequestSource = (index: number) => Buffer | undefined;
export type BodySink = (index: number, body: Buffer) => void;

const PATIENCE_SECONDS = 30;
const LONGEST_LATENCY_MICROS = 60_000_000;

export async function runRound(
  plan: RoundPlan,
  requestAt: RequestSource,
  onBody: BodySink = () => undefined,
): Promise<RoundResult> {
  const { port, pid } = plan.target;
  const opening = Array.from({ length: plan.connections }, () => openConnection(port));
  const connections = await Promise.all(opening);
  const micros = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: LONGEST_LATENCY_MICROS,
    numberOfSignificantValueDigits: 3,
  });
  const refusals: { [status: string]: number } = {};
  let firstRefusal: string | null = null;
  let answered = 0;

  const serverCpu = cpuSecondsOf(pid);
  const mainThread = mainThreadSecondsOf(pid);
  const clientCpu = process.cpuUsage();
  const startedAt = systemRuntime.elapsed();
  const countsFrom = startedAt + (plan.settling ?? 0) * 1000;
  try {
    await drive(plan, connections, requestAt, ({ index, dueAt }, status, body, now) => {
      answered += 1;
      if (dueAt >= countsFrom)
        micros.recordValue(Math.min(LONGEST_LATENCY_MICROS, Math.round((now - dueAt) * 1000)));
      if (status < 200 || status > 299) {
        refusals[status] = (refusals[status] ?? 0) + 1;
        firstRefusal ??= body.toString();
      }
      onBody(index, body);
    });
  } finally {
    for (const connection of connections) connection.close();
  }
  const { user, system } = process.cpuUsage(clientCpu);
  return {
    answered,
    seconds: (systemRuntime.elapsed() - startedAt) / 1000,
    latency: {
      p50: micros.getValueAtPercentile(50) / 1000,
      p99: micros.getValueAtPercentile(99) / 1000,
      p999: micros.getValueAtPercentile(99.9) / 1000,
    },
    serverCpuSeconds: cpuSecondsOf(pid) - serverCpu,
    mainThreadSeconds: mainThreadSecondsOf(pid) - mainThread,
    clientCpuSeconds: (user + system) / 1_000_000,
    refusals,
    firstRefusal,
  };
}

/** A connection and its current request. */
interface Slot {
  readonly connection: Connection;
  index: number;
  dueAt: number;
}

type AnswerSink = (slot: Slot, status: number, body: Buffer, now: number) => void;

function drive(
  { seconds, rate }: RoundPlan,
  connections: readonly Connection[],
  requestAt: RequestSource,
  onAnswer: AnswerSink,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const idle = connections.map((connection): Slot => ({ connection, index: -1, dueAt: 0 }));
    const startedAt = systemRuntime.elapsed();
    const endsAt = startedAt + seconds * 1000;
    let next = 0;
    let exhausted = false;

    function sendWhatIsDue(now: number): void {
      while (!exhausted && idle.length > 0) {
        const dueAt = rate === null ? now : startedAt + (next * 1000) / rate;
        if (dueAt > now) return;
        const request = dueAt < endsAt ? requestAt(next) : undefined;
        const slot = request === undefined ? undefined : idle.pop();
        if (request === undefined || slot === undefined) exhausted = true;
        else {
          slot.index = next;
          slot.dueAt = dueAt;
          next += 1;
          slot.connection.send(request);
        }
      }
      if (exhausted && idle.length === connections.length) finish(null);
    }

    /**
     * Node's timers have a resolution of a millisecond, which would show as latency, so the open loop
     * spins.
     */
    function keepPace(): void {
      sendWhatIsDue(systemRuntime.elapsed());
      if (!exhausted) setImmediate(keepPace);
    }

    function finish(cause: Error | null): void {
      clearTimeout(watchdog);
      exhausted = true;
      if (cause === null) resolve();
      else reject(cause);
    }

    for (const slot of idle.slice()) {
      slot.connection.failed = finish;
      slot.connection.answered = (status, body) => {
        const now = systemRuntime.elapsed();
        onAnswer(slot, status, body, now);
        idle.push(slot);
        sendWhatIsDue(now);
      };
    }
    const watchdog = setTimeout(
      () => finish(new Error('The server did not answer all requests in time')),
      (seconds + PATIENCE_SECONDS) * 1000,
    );
    if (rate === null) sendWhatIsDue(startedAt);
    else keepPace();
  });
}

/** Refusals would distort the result, so a single answer other than 2xx ends the run. */
export function assertAccepted(what: string, result: RoundResult): RoundResult {
  const counts = Object.entries(result.refusals).map(([status, count]) => `${count} × ${status}`);
  if (counts.length === 0 && result.answered > 0) return result;
  if (counts.length === 0) throw new Error(`${what}: no request was answered`);
  const share = `${counts.join(', ')} of ${result.answered} answers were not 2xx`;
  throw new Error(`${what}: ${share}; the first was ${result.firstRefusal}`);
}
