/**
 * Backs up a large network during heartbeats: how much that slows them down, and how long it takes to verify the
 * backup and to serve its content in another place.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { systemRuntime } from '../src/base/runtime.ts';
import { FILES } from '../src/server/config/data-folder.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { ROOT } from './children.ts';
import { contest, type Measured, type Settings } from './contest.ts';
import { enrolledFleet } from './enrolled-fleet.ts';
import { fillWithLargeNetwork } from './large-network.ts';
import type { Load } from './load.ts';
import { compare, lineOf, median, type Report } from './report.ts';
import { startAuthority } from './servers.ts';

/** The target for heartbeats during a backup, as a fraction of their rate without one. */
const TARGET = 0.9;
const VERIFY_SECONDS = 60;
const RESTORE_SECONDS = 120;
const HEARTBEATS_PER_SECOND = 10_000;
const FLEET = 1000;
const CONNECTIONS = 64;

export async function benchBackup(load: Load, settings: Settings): Promise<Report> {
  const { threads, progress } = settings;
  const rate = settings.rate ?? HEARTBEATS_PER_SECOND;
  const connections = settings.connections ?? CONNECTIONS;
  const scratch = scratchFolder('mesh-na-bench-');
  const folder = scratch.path;
  try {
    const file = join(folder, 'mesh.backup');
    const took: number[] = [];
    const original = join(folder, 'original');
    const standings = await backUpBeside();
    progress('verifying the backup');
    const verified = await secondsOf(() => runProgram(['backup', 'verify', file]));
    progress('restoring it');
    const restoredFrom = systemRuntime.elapsed();
    await using restored = await startAuthority(null, threads, (dataDir) => restore(file, dataDir));
    const ready = (systemRuntime.elapsed() - restoredFrom) / 1000;
    const { status } = await fetch(`${restored.url}/readyz`);
    if (status !== 200) throw new Error(`What was restored is not ready: ${status}`);
    const megabytes = Math.round(statSync(file).size / 1e6);
    return {
      benchmark: 'backup',
      about: `heartbeats, ${rate}/s in an open loop, in a network of ${settings.seeded} nodes, ${threads} thread(s)`,
      lines: standings.map(lineOf),
      comparisons: [compare(...standings, TARGET)],
      notes: [
        `a backup of ${megabytes} MB took ${median(took).toFixed(1)} s, and was read back within them`,
        `it was verified in ${verified.toFixed(1)} s (target ${VERIFY_SECONDS} s)`,
        `it was served in another place ${ready.toFixed(1)} s after the restore began (target ${RESTORE_SECONDS} s)`,
      ],
    };

    async function backUpBeside(): Promise<[Measured, Measured]> {
      await using na = await startAuthority(null, threads, (dataDir) =>
        fillWithLargeNetwork(dataDir, settings),
      );
      copyKeys(na.dataDir, original);
      const fleet = await enrolledFleet(load, na, { nodes: FLEET, connections, rate });
      async function backUp(): Promise<void> {
        rmSync(file, { force: true });
        const create = ['backup', 'create', '--data-dir', na.dataDir, '--to', file];
        took.push(await secondsOf(() => runProgram(create)));
      }
      return (await contest(
        [
          {
            name: 'during a backup',
            async run(seconds) {
              const [result] = await Promise.all([fleet.beat(seconds), backUp()]);
              return result;
            },
          },
          { name: 'no backup', run: fleet.beat },
        ],
        settings,
      )) as [Measured, Measured];
    }

    async function restore(backup: string, dataDir: string): Promise<void> {
      copyKeys(original, dataDir);
      const loss = 'audit=unknown,certificates=0,attestations=0';
      const into = ['--data-dir', dataDir, '--accept-loss', loss];
      await runProgram(['restore', 'apply', '--backup', backup, ...into]);
    }
  } finally {
    scratch.remove();
  }
}

function copyKeys(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const name of [FILES.keys, FILES.genesis, FILES.config]) {
    cpSync(join(from, name), join(to, name), { recursive: true });
  }
}

async function secondsOf(work: () => Promise<void>): Promise<number> {
  const startedAt = systemRuntime.elapsed();
  await work();
  return (systemRuntime.elapsed() - startedAt) / 1000;
}

async function runProgram(args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, ['dist/src/main.js', ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0)
    throw new Error(`mesh-na ${args.slice(0, 2).join(' ')} ended with ${code}: ${said}`);
}
