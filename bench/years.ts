/**
 * Five years of a fleet that renews weekly, under a manual clock: after the first two months, when
 * retention has reached its steady state, memory, state on disk and start time must not grow. The audit log
 * is never thinned, so it is counted apart.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { systemRuntime } from '../src/runtime.ts';
import { openEnvironment, openTables } from '../src/store/lmdb/environment.ts';
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

const WEEKS = 260;
/** The steady state is reached: certificates that were renewed are removed within the second week. */
const FIRST_MEASURE = 8;
/** Concurrent calls. */
const AT_ONCE = 500;
const TABLES = ['subjects', 'liveness', 'nonces', 'audit'] as const;

type TableBytes = { readonly [Name in (typeof TABLES)[number]]: number };

interface Measure {
  readonly week: number;
  readonly certificates: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
  readonly tables: TableBytes;
  /** CPU time, so that other load on the machine does not count. */
  readonly startSeconds: number;
}

export async function benchYears(_load: Load, settings: Settings): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-years-'));
  try {
    const [first, last] = await fiveYears(folder, settings);
    return {
      benchmark: 'years',
      about: `${settings.nodes} nodes renew weekly for ${WEEKS} weeks`,
      lines: [],
      comparisons: [],
      notes: [lineOf(first), lineOf(last), growthOf(first, last)],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fiveYears(
  folder: string,
  { nodes, progress }: Settings,
): Promise<[Measure, Measure]> {
  const clock = { now: systemRuntime.now(), elapsed: 0 };
  let network = await openSimulatedNetwork(folder, clock);
  let fleet = await enrolled(network, nodes);
  const measures: Measure[] = [];
  for (let week = 1; week <= WEEKS; week += 1) {
    network.advance(WEEK - HOUR);
    await inBatches(fleet, network.beat);
    await network.flush();
    fleet = await inBatches(fleet, network.renew);
    await network.flush();
    await network.sweepAll();
    if (week % 20 === 0) progress(`week ${week} of ${WEEKS}`);
    if (week !== FIRST_MEASURE && week !== WEEKS) continue;
    await network.close();
    const cpu = process.cpuUsage();
    network = await openSimulatedNetwork(folder, clock);
    const { user, system } = process.cpuUsage(cpu);
    measures.push(await measure(network, folder, week, (user + system) / 1_000_000));
  }
  await network.close();
  const [first, last] = measures;
  if (first === undefined || last === undefined) throw new Error('Nothing was measured');
  return [first, last];
}

async function enrolled(network: SimulatedNetwork, count: number): Promise<SimulatedNode[]> {
  const tokens: string[] = [];
  while (tokens.length < count) {
    tokens.push(...(await network.invite(Math.min(1000, count - tokens.length))));
  }
  return inBatches(tokens, network.join);
}

async function inBatches<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (let start = 0; start < all.length; start += AT_ONCE) {
    done.push(...(await Promise.all(all.slice(start, start + AT_ONCE).map(work))));
  }
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

async function tableBytes(folder: string): Promise<TableBytes> {
  const env = openEnvironment(folder, true);
  const databases = openTables(env);
  const bytes = TABLES.map((name) => {
    const stats = databases[name].getStats() as { readonly [figure: string]: number };
    const pages = ['treeBranchPageCount', 'treeLeafPageCount', 'overflowPages'];
    const count = pages.reduce((sum, figure) => sum + (stats[figure] ?? 0), 0);
    return [name, count * (stats.pageSize ?? 0)] as const;
  });
  await env.close();
  return Object.fromEntries(bytes) as TableBytes;
}

function lineOf({ week, certificates, residentBytes, heapBytes, tables, startSeconds }: Measure) {
  const { audit, ...state } = tables;
  return (
    `week ${week}: ${certificates} certificates, ${megabytes(residentBytes)} resident, ` +
    `${megabytes(heapBytes)} of heap, ${megabytes(sum(state))} of state and ${megabytes(audit)} of audit log, ` +
    `started with ${startSeconds.toFixed(2)} s of CPU`
  );
}

function growthOf(first: Measure, last: Measure): string {
  const { audit: _first, ...before } = first.tables;
  const { audit: _last, ...after } = last.tables;
  const share = (a: number, b: number) => `${Math.round((100 * (b - a)) / a)} %`;
  return (
    `growth over the years: certificates ${share(first.certificates, last.certificates)}, ` +
    `heap ${share(first.heapBytes, last.heapBytes)}, state on disk ${share(sum(before), sum(after))}, ` +
    `start ${share(first.startSeconds, last.startSeconds)}`
  );
}

function sum(bytes: { readonly [table: string]: number }): number {
  return Object.values(bytes).reduce((total, one) => total + one, 0);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MB`;
}
