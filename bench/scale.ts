/** A large network: time to ready, memory, and heartbeats, compared to an authority without other nodes. */
import { join } from 'node:path';
import { systemRuntime } from '../src/base/runtime.ts';
import { contest, type Measured, type Settings } from './contest.ts';
import { memoryOf } from './cpu.ts';
import { enrolledFleet } from './enrolled-fleet.ts';
import { fillWithLargeNetwork } from './large-network.ts';
import { type Load, startLoad } from './load.ts';
import { busyClientNotes, compare, lineOf, type Report, starvedNotes } from './report.ts';
import type { Target } from './round.ts';
import { startAuthority } from './servers.ts';

const TARGET = 0.9;
const FLEET = 1000;
const CONNECTIONS = 64;

export async function benchScale(load: Load, settings: Settings): Promise<Report> {
  const { seeded, dataDir, cpuProf, threads } = settings;
  const profiles = cpuProf === null ? null : join(cpuProf, 'scale');
  let filledAt = 0;
  await using large = await startAuthority(profiles, threads, async (folder) => {
    await fillWithLargeNetwork(folder, settings);
    filledAt = systemRuntime.elapsed();
  });
  const readySeconds = (systemRuntime.elapsed() - filledAt) / 1000;
  const atReady = memoryNote(large, 'when it was ready');
  await using small = await startAuthority(null, threads);
  await using otherLoad = startLoad();

  const name = dataDir === null ? `${seeded} nodes` : 'large network';
  const plan = { nodes: FLEET, connections: settings.connections ?? CONNECTIONS };
  const crowded = await enrolledFleet(load, large, plan);
  const alone = await enrolledFleet(otherLoad, small, plan);
  const standings = (await contest(
    [
      { name, run: crowded.beat },
      { name: `${FLEET} nodes`, run: alone.beat },
    ],
    settings,
  )) as [Measured, Measured];
  return {
    benchmark: 'scale',
    about: `heartbeats of ${FLEET} nodes on ${plan.connections} connections, alone and in a large network`,
    lines: standings.map(lineOf),
    comparisons: [compare(...standings, TARGET)],
    notes: [
      `${name}: ready ${readySeconds.toFixed(1)} s after its start`,
      atReady,
      memoryNote(large, 'after the heartbeats'),
      ...busyClientNotes(standings),
      ...starvedNotes(standings),
    ],
  };
}

function memoryNote({ pid }: Target, when: string): string {
  const { resident, anonymous, files } = memoryOf(pid);
  return `memory ${when}: ${resident} MB resident, ${anonymous} MB of its own and ${files} MB of files`;
}
