/**
 * More heartbeats than the authority can answer at once: many connections that each send their next heartbeat as soon
 * as the last one is answered, compared to just enough connections to keep the authority busy. Throughput must not
 * fall, and a health check must not have to queue.
 */
import { join } from 'node:path';
import { contest, type Measured, type Settings } from './contest.ts';
import { memoryOf } from './cpu.ts';
import { enrolledFleet } from './enrolled-fleet.ts';
import { type Load, startLoad } from './load.ts';
import { latencyText, probeUntil } from './probes.ts';
import { compare, lineOf, type Report } from './report.ts';
import type { RoundResult } from './round.ts';
import { type AuthorityProcess, OTHER, startAuthority, startOther } from './servers.ts';

const BUSY = 64;
const OVERLOADED = 384;
const NODES = 1000;
const TARGET = 0.85;

export async function benchOverload(load: Load, settings: Settings): Promise<Report> {
  const { cpuProf, threads } = settings;
  await using na = await startAuthority(cpuProf && join(cpuProf, 'overload'), threads);
  await using other = await startOther(settings, threads);
  await using otherLoad = other && startLoad();

  const ours = await probedSide(load, na);
  const theirs = other && otherLoad && (await probedSide(otherLoad, other));
  const standings = await contest(
    [
      { name: `${OVERLOADED} connections`, run: ours.beat(OVERLOADED) },
      { name: `${BUSY} connections`, run: ours.beat(BUSY) },
      ...(theirs ? [{ name: `${OTHER}, ${OVERLOADED}`, run: theirs.beat(OVERLOADED) }] : []),
    ],
    settings,
  );
  const [overloaded, ...against] = standings as [Measured, ...Measured[]];
  return {
    benchmark: 'overload',
    about: `${NODES} nodes, closed loop, ${threads} threads`,
    lines: standings.map(lineOf),
    comparisons: against.map((each, index) => compare(overloaded, each, index ? null : TARGET)),
    notes: [...ours.notes(), ...(theirs?.notes() ?? []).map((note) => `${OTHER}: ${note}`)],
  };
}

/** An authority with its nodes; collects the latencies of /healthz for each number of connections. */
async function probedSide(load: Load, na: AuthorityProcess) {
  const fleet = await enrolledFleet(load, na, { nodes: NODES, connections: BUSY });
  const probes = new Map<number, number[]>();

  function beat(connections: number) {
    return async (seconds: number): Promise<RoundResult> => {
      const running = fleet.beat(seconds, connections);
      const latencies = probes.get(connections) ?? [];
      probes.set(connections, latencies);
      latencies.push(...(await probeUntil(na, running)));
      return running;
    };
  }
  function notes(): string[] {
    return [
      ...[...probes].map(
        ([count, latencies]) => `/healthz during ${count} connections: ${latencyText(latencies)}`,
      ),
      `resident memory at the end: ${memoryOf(na.pid).resident} MB`,
    ];
  }
  return { beat, notes };
}
