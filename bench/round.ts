/** One measured round against one server, with the CPU time of both sides. */
import { systemRuntime } from '../src/base/runtime.ts';
import { cpuSecondsOf, mainThreadSecondsOf } from './cpu.ts';
import { openConnection } from './load/connection.ts';
import { drive } from './load/drive.ts';
import { type LatencySummary, newLatencies } from './load/latency.ts';

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

export type RoundResult = {
  readonly answered: number;
  readonly seconds: number;
  readonly latency: LatencySummary | null;
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

export async function runRound(
  plan: RoundPlan,
  requestAt: RequestSource,
  onBody: BodySink = () => undefined,
): Promise<RoundResult> {
  const { port, pid } = plan.target;
  const opening = Array.from({ length: plan.connections }, () => openConnection({ port }));
  const connections = await Promise.all(opening);
  const latencies = newLatencies();
  const refusals: { [status: string]: number } = {};
  let firstRefusal: string | null = null;
  let answered = 0;

  const serverCpu = cpuSecondsOf(pid);
  const mainThread = mainThreadSecondsOf(pid);
  const clientCpu = process.cpuUsage();
  const startedAt = systemRuntime.elapsed();
  const countsFrom = startedAt + (plan.settling ?? 0) * 1000;
  function record(dueAt: number, now: number): void {
    if (dueAt >= countsFrom) latencies.record(now - dueAt);
  }
  await drive(
    { ...plan, patienceMs: (plan.seconds + PATIENCE_SECONDS) * 1000 },
    {
      connections,
      next: requestAt,
      answered({ index, dueAt }, status, body, now) {
        answered += 1;
        record(dueAt, now);
        if (status < 200 || status > 299) {
          refusals[status] = (refusals[status] ?? 0) + 1;
          firstRefusal ??= body.toString();
        }
        onBody(index, body);
      },
      unsent: record,
    },
  );
  const { user, system } = process.cpuUsage(clientCpu);
  return {
    answered,
    seconds: (systemRuntime.elapsed() - startedAt) / 1000,
    latency: latencies.summary(),
    serverCpuSeconds: cpuSecondsOf(pid) - serverCpu,
    mainThreadSeconds: mainThreadSecondsOf(pid) - mainThread,
    clientCpuSeconds: (user + system) / 1_000_000,
    refusals,
    firstRefusal,
  };
}

/** Refusals would distort the result, so a single answer other than 2xx ends the run. */
export function assertAccepted(what: string, result: RoundResult): RoundResult {
  const counts = Object.entries(result.refusals).map(([status, count]) => `${count} × ${status}`);
  if (counts.length === 0 && result.answered > 0) return result;
  if (counts.length === 0) throw new Error(`${what}: no request was answered`);
  const share = `${counts.join(', ')} of ${result.answered} answers were not 2xx`;
  throw new Error(`${what}: ${share}; the first was ${result.firstRefusal}`);
}
