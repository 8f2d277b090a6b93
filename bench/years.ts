/**
 * Years of a fleet that renews weekly, with a manual clock. After the first two months, when retention has reached its
 * steady state, memory, state on disk and start time must not grow. The audit log is never thinned, so it is counted
 * separately. If a folder is given, an interrupted run ends after the current week, and the next run continues it.
 */
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { systemRuntime } from '../src/base/runtime.ts';
import { openEnvironment, openTables } from '../src/store/lmdb/tables.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import type { Settings } from './contest.ts';
import type { Load } from './load.ts';
import type { Report } from './report.ts';
import {
  HOUR,
  openSimulatedNetwork,
  type SimulatedNetwork,
  type SimulatedNode,
  WEEK,
} from './simulated-network.ts';
import { type Break, keepBreak, type Measure, takeBreak } from './years-break.ts';

/** The steady state is reached by then, because renewed certificates are removed within the second week. */
const FIRST_MEASURE = 8;
/** The interval between measures, in weeks. */
const BETWEEN_MEASURES = 26;
const BETWEEN_PROGRESS = 5;
/** A renewal also counts as a contact, so only one in this many nodes sends a heartbeat before it. */
const NODES_PER_BEAT = 10;
/** Batches in progress at a time: while one of them waits for the disk, others are decided. */
const LANES = 4;
/** Concurrent calls of one lane. */
const BATCH = 500;
const TABLES = ['subjects', 'liveness', 'nonces', 'audit'] as const;

export async function benchYears(_load: Load, settings: Settings): Promise<Report> {
  const { dataDir } = settings;
  // A temporary folder is removed with the process.
  const folder = dataDir ?? join(scratchFolder('mesh-na-years-').path, 'data');
  const { week, fleet, measures } = await livedThrough(folder, settings);
  return {
    benchmark: 'years',
    about: `${fleet.length} nodes renewed weekly for ${week} weeks`,
    lines: [],
    comparisons: [],
    notes: [...measures.map(lineOf), ...growthOver(measures)],
  };
}

async function livedThrough(folder: string, settings: Settings): Promise<Break> {
  const { nodes, weeks, progress, stopping } = settings;
  const earlier = takeBreak(folder);
  const clock = earlier?.clock ?? { now: systemRuntime.now(), elapsed: 0 };
  let network = await openSimulatedNetwork(folder, clock);
  let fleet: readonly SimulatedNode[] = earlier?.fleet ?? (await enrolled(network, nodes));
  const measures = earlier?.measures ?? [];
  let week = earlier?.week ?? 0;
  while (week < weeks && !stopping.aborted) {
    week += 1;
    network.advance(WEEK - HOUR);
    await inLanes(
      fleet.filter((_, number) => number % NODES_PER_BEAT === 0),
      network.beat,
    );
    await network.flush();
    fleet = await inLanes(fleet, network.renew);
    await network.flush();
    await network.sweepAll();
    if (week % BETWEEN_PROGRESS === 0) progress(`${timeOfDay()} week ${week} of ${weeks}`);
    if (!isMeasured(week, weeks)) continue;
    await network.close();
    const cpu = process.cpuUsage();
    network = await openSimulatedNetwork(folder, clock);
    const { user, system } = process.cpuUsage(cpu);
    const found = await measure(network, folder, week, (user + system) / 1_000_000);
    progress(`${timeOfDay()} ${lineOf(found)}`);
    measures.push(found);
  }
  await network.close();
  const run = { week, clock, fleet: [...fleet], measures };
  keepBreak(folder, run);
  return run;
}

function isMeasured(week: number, weeks: number): boolean {
  return week === FIRST_MEASURE || week % BETWEEN_MEASURES === 0 || week === weeks;
}

/** The time by the real clock, because a run takes hours. */
function timeOfDay(): string {
  return new Date().toISOString().slice(11, 19);
}

async function enrolled(network: SimulatedNetwork, count: number): Promise<SimulatedNode[]> {
  const tokens: string[] = [];
  while (tokens.length < count) {
    tokens.push(...(await network.invite(Math.min(1000, count - tokens.length))));
  }
  return inLanes(tokens, network.join);
}

/** Runs the work in lanes; returns the results in no particular order. */
async function inLanes<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  let next = 0;
  async function lane(): Promise<void> {
    while (next < all.length) {
      const batch = all.slice(next, next + BATCH);
      next += BATCH;
      done.push(...(await Promise.all(batch.map(work))));
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane));
  return done;
}

async function measure(
  network: SimulatedNetwork,
  folder: string,
  week: number,
  startSeconds: number,
): Promise<Measure> {
  const { subjects } = await network.readCounts();
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  const { rss, heapUsed } = process.memoryUsage();
  return {
    week,
    certificates: subjects.certificate ?? 0,
    residentBytes: rss,
    heapBytes: heapUsed,
    tables: await tableBytes(folder),
    startSeconds,
  };
}

async function tableBytes(folder: string): Promise<Measure['tables']> {
  const env = openEnvironment(folder, true);
  const databases = openTables(env);
  const bytes = TABLES.map((name) => {
    const stats = databases[name].getStats() as { readonly [figure: string]: number };
    const pages = ['treeBranchPageCount', 'treeLeafPageCount', 'overflowPages'];
    const count = pages.reduce((sum, figure) => sum + (stats[figure] ?? 0), 0);
    return [name, count * (stats.pageSize ?? 0)] as const;
  });
  await env.close();
  return Object.fromEntries(bytes) as Measure['tables'];
}

function lineOf({ week, certificates, residentBytes, heapBytes, tables, startSeconds }: Measure) {
  const { audit, ...state } = tables;
  return (
    `week ${week}: ${certificates} certificates, ${megabytes(residentBytes)} resident, ` +
    `${megabytes(heapBytes)} of heap, ${megabytes(sum(state))} of state and ${megabytes(audit)} of audit log, ` +
    `started with ${startSeconds.toFixed(2)} s of CPU`
  );
}

/** Empty before the second measure. */
function growthOver(measures: readonly Measure[]): string[] {
  const [first, last] = [measures[0], measures.at(-1)];
  if (first === undefined || last === undefined || first === last) return [];
  const { audit: _first, ...before } = first.tables;
  const { audit: _last, ...after } = last.tables;
  const share = (a: number, b: number) => `${Math.round((100 * (b - a)) / a)} %`;
  return [
    `growth from week ${first.week} to ${last.week}: ` +
      `certificates ${share(first.certificates, last.certificates)}, ` +
      `heap ${share(first.heapBytes, last.heapBytes)}, ` +
      `state on disk ${share(sum(before), sum(after))}, ` +
      `start ${share(first.startSeconds, last.startSeconds)}`,
  ];
}

function sum(bytes: { readonly [table: string]: number }): number {
  return Object.values(bytes).reduce((total, one) => total + one, 0);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MB`;
}
