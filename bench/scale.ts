/** A large network: time to ready, memory, and heartbeats, compared to an authority without other nodes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemRuntime } from '../src/base/runtime.ts';
import { contest, type Measured, type Settings } from './contest.ts';
import { fillWithLargeNetwork } from './large-network.ts';
import { type Load, startLoad } from './load.ts';
import { busyClientNotes, compare, lineOf, type Report, starvedNotes } from './report.ts';
import { assertAccepted, type Target } from './round.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';

const TARGET = 0.9;
const FLEET = 1000;
const CONNECTIONS = 64;
const ENROLLING = { connections: 32, seconds: 600, rate: null };
/** A margin over the number of requests of the fastest round so far. */
const HEADROOM = 1.3;

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

  const sides = [
    { name: dataDir === null ? `${seeded} nodes` : 'large network', na: large, load },
    { name: `${FLEET} nodes`, na: small, load: otherLoad },
  ];
  for (const side of sides) {
    const plan = { target: targetOf(side.na), ...ENROLLING };
    const { network } = side.na;
    assertAccepted(side.name, await side.load.ask('enroll', { plan, network, nodes: FLEET }));
  }
  const connections = settings.connections ?? CONNECTIONS;
  const standings = (await contest(
    sides.map(({ name, na, load: own }) => ({
      name,
      run: (seconds: number) =>
        own.ask('heartbeats', { target: targetOf(na), connections, rate: null, seconds }),
    })),
    settings,
    ({ seconds, fastest }) => {
      const count = Math.ceil(seconds * fastest * HEADROOM);
      return Promise.all(sides.map((side) => side.load.ask('sign', { count })));
    },
  )) as [Measured, Measured];
  return {
    benchmark: 'scale',
    about: `heartbeats of ${FLEET} nodes on ${connections} connections, alone and in a large network`,
    lines: standings.map(lineOf),
    comparisons: [compare(...standings, TARGET)],
    notes: [
      `${sides[0]?.name}: ready ${readySeconds.toFixed(1)} s after its start`,
      atReady,
      memoryNote(large, 'after the heartbeats'),
      ...busyClientNotes(standings),
      ...starvedNotes(standings),
    ],
  };
}

function targetOf({ pid, port }: AuthorityProcess): Target {
  return { pid, port };
}

function memoryNote({ pid }: Target, when: string): string {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const megabytes = (field: string) =>
    Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? Number.NaN) / 1024);
  const [all, anonymous, file] = ['VmRSS', 'RssAnon', 'RssFile'].map(megabytes);
  return `memory ${when}: ${all} MB resident, ${anonymous} MB of its own and ${file} MB of files`;
}
