/** Signed heartbeats: the authority against a bare server that parses and verifies the same bytes. */
import { join } from 'node:path';
import { contest, type Settings, type Standing } from './contest.ts';
import type { Load } from './load.ts';
import { busyClientNotes, compare, lineOf, type Report, starvedNotes } from './report.ts';
import { assertAccepted, type Target } from './round.ts';
import { startAuthority, startBare } from './servers.ts';

const TARGET = 0.8;
const CONNECTIONS = 64;
const ENROL_CONNECTIONS = 32;
const ENROL_SECONDS = 600;
/** Some more requests than the fastest round so far could send. */
const HEADROOM = 1.3;

export async function benchHeartbeats(load: Load, settings: Settings): Promise<Report> {
  const { nodes, rate, cpuProf, threads } = settings;
  const connections = settings.connections ?? CONNECTIONS;
  const profiles = cpuProf === null ? null : join(cpuProf, 'heartbeats');
  await using na = await startAuthority(profiles, threads);
  await using bare = await startBare();

  const enrolling = { connections: ENROL_CONNECTIONS, seconds: ENROL_SECONDS, rate: null };
  const plan = { target: na, ...enrolling };
  assertAccepted('NA joins', await load.ask('enrol', { plan, network: na.network, nodes }));

  function beat(target: Target) {
    return (seconds: number) => load.ask('heartbeats', { target, connections, rate, seconds });
  }
  const [ours, theirs] = (await contest(
    [
      { name: 'NA', run: beat(na) },
      { name: 'bare', run: beat(bare) },
    ],
    settings,
    // Both are sent the same bytes: signing them again for each would only cost time.
    ({ seconds, fastest }) =>
      load.ask('sign', { count: Math.ceil(seconds * (rate ?? fastest * HEADROOM)) }),
  )) as [Standing, Standing];

  const both = [ours, theirs];
  const loop = rate === null ? 'closed loop' : `open loop at ${rate} requests/s`;
  return {
    benchmark: 'heartbeats',
    about: `${nodes} nodes on ${connections} connections, ${loop}`,
    lines: both.map(lineOf),
    comparisons: [compare(ours, theirs, TARGET)],
    // The open loop spins to keep its pace, so its CPU share says nothing.
    notes: rate === null ? [...busyClientNotes(both), ...starvedNotes(both)] : [],
  };
}
