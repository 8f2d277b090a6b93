/** One measured round against one server, with the CPU time of both sides. */
import { systemRuntime } from '../src/base/runtime.ts';
import { countCpuOf } from './cpu.ts';
import { openConnection } from './load/connection.ts';
import { drive } from './load/drive.ts';
import { type LatencySummary, newLatencies } from './load/latency.ts';

export interface Target {
  readonly port: number;
  readonly pid: number;
}

export interface RoundPlan {
  readonly target: Target;
  readonly connections: number;
  /** No request is due after this time; the round ends with the last answer. */
  readonly seconds: number;
  /** Requests per second of the open loop; null means the closed loop. */
  readonly rate: number | null;
  /** The status that every answer must have: refusals would distort the result. */
  readonly status?: number;
}

export interface RoundResult {
  readonly answered: number;
  readonly seconds: number;
  readonly latency: LatencySummary;
  /** CPU time of the server and of the load generator during the round. */
  readonly serverCpuSeconds: number;
  /** The share of the server's main thread, which with several threads is the authority's. */
  readonly mainThreadSeconds: number;
  readonly clientCpuSeconds: number;
}

/** The requests in order, built beforehand; `undefined` ends the round. */
export type RequestSource = (index: number) => Buffer | undefined;

/** The length of a round of a fixed number of requests; this only ends a round that hangs. */
export const UNTIL_ALL_ARE_SENT = { seconds: 600, rate: null };
const PATIENCE_SECONDS = 30;

export async function runRound(
  plan: RoundPlan,
  requestAt: RequestSource,
  onBody: (index: number, body: Buffer) => void = () => undefined,
): Promise<RoundResult> {
  const { target, status: expected = 200 } = plan;
  const open = () => openConnection({ port: target.port });
  const connections = await Promise.all(Array.from({ length: plan.connections }, open));
  const latencies = newLatencies();
  const refusals: string[] = [];
  let answered = 0;

  const serverCpu = countCpuOf(target.pid);
  const clientCpu = process.cpuUsage();
  const startedAt = systemRuntime.elapsed();
  await drive(
    { ...plan, patienceMs: (plan.seconds + PATIENCE_SECONDS) * 1000 },
    {
      connections,
      next: requestAt,
      answered({ index, dueAt }, status, body, now) {
        answered += 1;
        latencies.record(now - dueAt);
        if (status !== expected) refusals.push(`${status} ${body}`);
        onBody(index, body);
      },
      unsent: (dueAt, now) => latencies.record(now - dueAt),
    },
  );
  if (refusals.length > 0) {
    const share = `${refusals.length} of ${answered} answers were refusals`;
    throw new Error(`${share}; the first was ${refusals[0]}`);
  }
  if (answered === 0) throw new Error('No request was answered');
  const { user, system } = process.cpuUsage(clientCpu);
  return {
    answered,
    seconds: (systemRuntime.elapsed() - startedAt) / 1000,
    latency: latencies.summary(),
    ...serverCpu(),
    clientCpuSeconds: (user + system) / 1_000_000,
  };
}

/** Two rounds in sequence as one: an answer of the second one completes what the first one began. */
export function inSequence(first: RoundResult, second: RoundResult): RoundResult {
  return {
    answered: second.answered,
    seconds: first.seconds + second.seconds,
    latency: second.latency,
    serverCpuSeconds: first.serverCpuSeconds + second.serverCpuSeconds,
    mainThreadSeconds: first.mainThreadSeconds + second.mainThreadSeconds,
    clientCpuSeconds: first.clientCpuSeconds + second.clientCpuSeconds,
  };
}
