/**
 * Measures the authority and a bare server side by side, in one run on one machine. Linux only, because CPU time is
 * read from /proc.
 */
import { cpus } from 'node:os';
import { resolve } from 'node:path';
import { Argument, Command, Option } from 'commander';
import { JSON_OPTION } from '../src/cli/kernel/command.ts';
import { wholeNumber } from '../src/cli/kernel/options.ts';
import { printResult } from '../src/cli/kernel/output.ts';
import { benchBackup } from './backup.ts';
import type { Settings } from './contest.ts';
import { benchCrl } from './crl.ts';
import { benchDocuments } from './documents.ts';
import { benchEnrollments } from './enrollments.ts';
import { benchEvents } from './events.ts';
import { benchForwarding } from './forwarding.ts';
import { benchHeartbeats } from './heartbeats.ts';
import { type Load, startLoad } from './load.ts';
import { benchMemory } from './memory.ts';
import { benchOverload } from './overload.ts';
import { type Report, textOf } from './report.ts';
import { benchRevocations } from './revocations.ts';
import { benchScale } from './scale.ts';
import { dataFileSystem } from './servers.ts';
import { benchStarts } from './starts.ts';
import { benchStoreMove } from './store-move.ts';
import { benchTakeOver } from './take-over.ts';
import { benchVerifications } from './verifications.ts';
import { benchViewers } from './viewers.ts';

const BENCHMARKS: {
  readonly [name: string]: (load: Load, settings: Settings) => Promise<Report | Report[]>;
} = {
  heartbeats: benchHeartbeats,
  enrollments: benchEnrollments,
  documents: benchDocuments,
  verifications: benchVerifications,
  crl: benchCrl,
  scale: benchScale,
  overload: benchOverload,
  viewers: benchViewers,
  events: benchEvents,
  starts: benchStarts,
  forwarding: benchForwarding,
  revocations: benchRevocations,
  'take-over': benchTakeOver,
  backup: benchBackup,
  'store-move': benchStoreMove,
  memory: benchMemory,
};

interface BenchOptions {
  readonly seconds: number;
  readonly rounds: number;
  readonly connections?: number;
  readonly rate?: number;
  readonly nodes?: number;
  readonly readers: number;
  readonly minutes: number;
  readonly dataDir?: string;
  readonly threads: number;
  readonly cpuProf?: string;
  readonly against?: string;
  readonly sessions?: boolean;
  readonly json?: boolean;
}

const program = new Command('bench')
  .description('measures the authority side by side with a bare uWebSockets.js server')
  .addArgument(
    new Argument('[benchmark]', 'what to measure')
      .choices([...Object.keys(BENCHMARKS), 'all'])
      .default('all'),
  )
  .addOption(seconds())
  .option('--rounds <count>', 'rounds of each contestant', wholeNumber(100), 5)
  .option('--connections <count>', 'keep-alive connections', wholeNumber(20_000))
  .option(
    '--rate <count>',
    'heartbeats, forwarding, revocations: open loop at this many requests/s; memory: requests/s (300); take-over, backup: heartbeats/s meanwhile (4000, 10000)',
    wholeNumber(100_000),
  )
  .option(
    '--nodes <count>',
    'heartbeats, forwarding, memory: nodes of the fleet (1000); backup, scale, store-move, take-over: nodes of the network (1000000)',
    wholeNumber(10_000_000),
  )
  .option(
    '--readers <count>',
    'events: readers during the heartbeats',
    wholeNumber(100_000),
    10_000,
  )
  .option('--minutes <count>', 'memory: length of the run', wholeNumber(10_000), 20)
  .option(
    '--data-dir <folder>',
    'backup, scale: a folder made by `bench/seed.ts`; it will be changed; store-move: the same, copied',
  )
  .option('--threads <count>', 'threads of the authority that serve HTTP', wholeNumber(64), 1)
  .option('--cpu-prof <folder>', 'write CPU profiles of the authority below this folder')
  .option(
    '--against <folder>',
    'heartbeats, enrollments, documents, verifications, overload, viewers: also measure the build in another checkout',
  )
  .option('--sessions', 'heartbeats: also measure those of nodes in sessions')
  .addOption(JSON_OPTION)
  .action(run);

// Folders and children are removed when the process exits.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
try {
  await program.parseAsync();
} catch (cause) {
  process.stderr.write(`bench: ${cause instanceof Error ? cause.message : String(cause)}\n`);
  process.exitCode = 1;
}

/** Signed heartbeats must still be fresh when the last round with them ends. */
function seconds(): Option {
  return new Option('--seconds <count>', 'length of a round').argParser(wholeNumber(60)).default(5);
}

async function run(benchmark: string, options: BenchOptions): Promise<void> {
  const settings: Settings = {
    seconds: options.seconds,
    rounds: options.rounds,
    connections: options.connections ?? null,
    rate: options.rate ?? null,
    sessions: options.sessions === true,
    nodes: options.nodes ?? 1000,
    readers: options.readers,
    minutes: options.minutes,
    seeded: options.nodes ?? 1_000_000,
    dataDir: options.dataDir ?? null,
    threads: options.threads,
    cpuProf: options.cpuProf ?? null,
    against: options.against === undefined ? null : resolve(options.against),
    progress: (line) => process.stderr.write(`  ${line}\n`),
  };
  const reports: Report[] = [];
  await using load = startLoad();
  for (const [name, measure] of Object.entries(BENCHMARKS)) {
    if (benchmark !== 'all' && benchmark !== name) continue;
    process.stderr.write(`${name}\n`);
    reports.push(...[await measure(load, settings)].flat());
  }
  const machine = machineFacts();
  const { rounds, seconds } = options;
  printResult(options, { machine, rounds, seconds, reports }, [
    `${machine.cores} × ${machine.cpu}, Node ${machine.node}, data on ${machine.data_file_system}`,
    `Medians of ${rounds} interleaved rounds of ${seconds} s; the NA logs at INFO to a file`,
    ...(options.cpuProf === undefined ? [] : ['The NA was profiled, which slows it down']),
    '',
    ...reports.flatMap(textOf),
  ]);
}

function machineFacts() {
  const [first] = cpus();
  return {
    cores: cpus().length,
    cpu: first?.model.trim() ?? 'unknown CPU',
    node: process.versions.node,
    data_file_system: dataFileSystem(),
  };
}
