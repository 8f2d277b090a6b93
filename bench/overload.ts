/**
 * More heartbeats than the authority can answer at once: many connections that each send their next heartbeat as soon
 * as the last one is answered, compared to just enough connections to keep the authority busy. Throughput must not
 * fall, and a health check must not have to queue.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { contest, type Measured, rateOf, type Settings } from './contest.ts';
import { type Load, startLoad } from './load.ts';
import { latencyText, probeUntil } from './probes.ts';
import { compare, lineOf, type Report } from './report.ts';
import { assertAccepted, type RoundResult } from './round.ts';
import { type AuthorityProcess, OTHER, startAuthority, startOther } from './servers.ts';

const BUSY_CONNECTIONS = 64;
const OVERLOAD_CONNECTIONS = 384;
const NODES = 1000;
const ENROLLING = { connections: 32, seconds: 600, rate: null };
const FIRST_GUESS = 15_000;
const HEADROOM = 1.3;
const TARGET = 0.85;

export async function benchOverload(load: Load, settings: Settings): Promise<Report> {
  const { cpuProf, threads } = settings;
  await using na = await startAuthority(cpuProf && join(cpuProf, 'overload'), threads);
  await using other = await startOther(settings, threads);
  // Each fleet is enrolled in only one network.
  await using otherLoad = other && startLoad();

  const ours = await enrolledSide(load, na);
  const theirs = other && otherLoad && (await enrolledSide(otherLoad, other));
  const [overloaded, busy, others] = (await contest(
    [
      { name: `${OVERLOAD_CONNECTIONS} connections`, run: ours.beat(OVERLOAD_CONNECTIONS) },
      { name: `${BUSY_CONNECTIONS} connections`, run: ours.beat(BUSY_CONNECTIONS) },
      ...(theirs
        ? [
            {
              name: `${OTHER}, ${OVERLOAD_CONNECTIONS}`,
              run: theirs.beat(OVERLOAD_CONNECTIONS),
            },
          ]
        : []),
    ],
    settings,
  )) as [Measured, Measured, Measured | undefined];
  return {
    benchmark: 'overload',
    about: `${NODES} nodes, closed loop, ${threads} threads`,
    lines: [overloaded, busy, ...(others ? [others] : [])].map(lineOf),
    comparisons: [
      compare(overloaded, busy, TARGET),
      ...(others ? [compare(overloaded, others, null)] : []),
    ],
    notes: [
      ...notesOf('', ours.probes, na),
      ...(theirs && other ? notesOf(`${OTHER}: `, theirs.probes, other) : []),
    ],
  };
}

/** An authority with its nodes; collects the latencies of /healthz for each number of connections. */
async function enrolledSide(load: Load, na: AuthorityProcess) {
  const plan = { target: na, ...ENROLLING };
  assertAccepted('NA joins', await load.ask('enroll', { plan, network: na.network, nodes: NODES }));
  const probes = new Map<number, number[]>();
  let fastest = FIRST_GUESS;

  function beat(connections: number) {
    return async (seconds: number): Promise<RoundResult> => {
      // All rounds of a network send to one authority, which accepts each signed request once.
      await load.ask('sign', { count: Math.ceil(seconds * fastest * HEADROOM) });
      const running = load.ask('heartbeats', { target: na, connections, rate: null, seconds });
      const latencies = probes.get(connections) ?? [];
      probes.set(connections, latencies);
      latencies.push(...(await probeUntil(na, running)));
      const result = await running;
      fastest = Math.max(fastest, rateOf(result));
      return result;
    };
  }

  return { probes, beat };
}

function notesOf(
  whose: string,
  probes: ReadonlyMap<number, readonly number[]>,
  { pid }: AuthorityProcess,
): string[] {
  return [
    ...[...probes].map(([count, latencies]) => whose + probeNote(count, latencies)),
    `${whose}resident memory at the end: ${residentMegabytes(pid)} MB`,
  ];
}

function probeNote(connections: number, latencies: readonly number[]): string {
  return `/healthz during ${connections} connections: ${latencyText(latencies)}`;
}

function residentMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}
