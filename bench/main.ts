/**
 * Measures the authority and a bare server side by side, in one run on one machine. Linux only, because CPU time is
 * read from /proc.
 */
import { execFileSync } from 'node:child_process';
import { cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Argument, Command } from 'commander';
import { messageOf } from '../src/base/error-message.ts';
import { JSON_OPTION } from '../src/cli/kernel/command.ts';
import { wholeNumber } from '../src/cli/kernel/options.ts';
import { printResult } from '../src/cli/kernel/output.ts';
import type { Settings } from './contest.ts';
import { benchEnrollments } from './enrollments.ts';
import { benchHeartbeats } from './heartbeats.ts';
import { benchScale, benchStoreMove } from './large-network.ts';
import { benchEvents, benchViewers } from './listeners.ts';
import { benchMemory } from './memory.ts';
import { benchDocuments, benchVerifications } from './repeated.ts';
import { type Report, textOf } from './report.ts';
import { benchCrl, benchRevocations } from './revocations.ts';
import { benchForwarding, benchTakeOver } from './standby.ts';
import { benchStarts } from './starts.ts';

const BENCHMARKS: {
  readonly [name: string]: (settings: Settings) => Promise<Report | Report[]>;
} = {
  heartbeats: benchHeartbeats,
  enrollments: benchEnrollments,
  documents: benchDocuments,
  verifications: benchVerifications,
  crl: benchCrl,
  scale: benchScale,
  viewers: benchViewers,
  events: benchEvents,
  starts: benchStarts,
  forwarding: benchForwarding,
  revocations: benchRevocations,
  'take-over': benchTakeOver,
  'store-move': benchStoreMove,
  memory: benchMemory,
};

type Options = Omit<Settings, 'progress'> & { readonly json?: boolean };

const program = new Command('bench')
  .description('measures the authority side by side with a bare uWebSockets.js server')
  .addArgument(
    new Argument('[benchmark]', 'what to measure')
      .choices([...Object.keys(BENCHMARKS), 'all'])
      .default('all'),
  )
  // Signed heartbeats must still be fresh when the last round with them ends.
  .option('--seconds <count>', 'length of a round', wholeNumber(60), 5)
  .option('--rounds <count>', 'rounds of each contestant', wholeNumber(100), 5)
  .option('--connections <count>', 'keep-alive connections', wholeNumber(20_000))
  .option(
    '--rate <count>',
    'heartbeats, forwarding, revocations: open loop at this many requests/s; memory: requests/s (300); take-over: heartbeats/s meanwhile (4000)',
    wholeNumber(100_000),
  )
  .option(
    '--nodes <count>',
    'heartbeats, forwarding, memory: nodes of the fleet (1000); scale, store-move, take-over: nodes of the network (1000000)',
    wholeNumber(10_000_000),
  )
  .option('--readers <count>', 'events: readers during heartbeats', wholeNumber(100_000), 10_000)
  .option('--minutes <count>', 'memory: length of the run', wholeNumber(10_000), 20)
  .option(
    '--data-dir <folder>',
    'scale: a folder made by `bench/seed.ts`; it will be changed; store-move: the same, copied',
  )
  .option('--threads <count>', 'threads of the authority that serve HTTP', wholeNumber(64), 1)
  .option('--cpu-prof <folder>', 'write CPU profiles of the authority below this folder')
  .option(
    '--against <folder>',
    'heartbeats, enrollments, documents, verifications, viewers, events: also measure the build in another checkout',
    (folder) => resolve(folder),
  )
  .option('--sessions', 'heartbeats: also measure those of nodes in sessions')
  .addOption(JSON_OPTION)
  .action(run);

// Folders and children are removed when the process exits.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
try {
  await program.parseAsync();
} catch (cause) {
  process.stderr.write(`bench: ${messageOf(cause)}\n`);
  process.exit(1);
}

async function run(benchmark: string, options: Options): Promise<void> {
  const { rounds, seconds, cpuProf } = options;
  const reports: Report[] = [];
  for (const [name, measure] of Object.entries(BENCHMARKS)) {
    if (benchmark !== 'all' && benchmark !== name) continue;
    const settings: Settings = {
      ...options,
      ...(cpuProf !== undefined && { cpuProf: join(cpuProf, name) }),
      progress: (line) => process.stderr.write(`  ${line}\n`),
    };
    reports.push(...[await measure(settings)].flat());
  }
  const machine = machineFacts();
  printResult(options, { machine, rounds, seconds, reports }, [
    `${machine.cores} × ${machine.cpu}, Node ${machine.node}, data on ${machine.data_file_system}`,
    `Medians of ${rounds} interleaved rounds of ${seconds} s; the NA logs at INFO to a file`,
    'Go by CPU, not by rate, if a client is near 100 % CPU in a closed loop, or nobody is',
    ...(cpuProf === undefined ? [] : ['The NA was profiled, which slows it down']),
    '',
    ...reports.flatMap(textOf),
  ]);
}

function machineFacts() {
  // On a file system in memory, commits cost no flush.
  const fileSystem = execFileSync('stat', ['--file-system', '--format=%T', tmpdir()]);
  return {
    cores: cpus().length,
    cpu: cpus()[0]?.model.trim() ?? 'unknown CPU',
    node: process.versions.node,
    data_file_system: fileSystem.toString().trim(),
  };
}
