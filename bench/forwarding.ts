/**
 * Heartbeats that a standby forwards to the active instance: their cost on both, compared to the HTTP threads of a single
 * instance.
 */
import { join } from 'node:path';
import { contest, type Measured, type Settings } from './contest.ts';
import { countCpuOf } from './cpu.ts';
import { isFollowing, startInstances } from './instances.ts';
import { type Load, startLoad } from './load.ts';
import { busyClientNotes, compare, lineOf, type Report } from './report.ts';
import { assertAccepted, type RoundResult } from './round.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';

/** A standby may cost 1.15 times as much as an HTTP thread in the authority's own process. */
const TARGET = 1 / 1.15;
const ACTIVE_MICROS = 8;
const CONNECTIONS = 64;
const ENROLLING = { connections: 32, seconds: 600, rate: null };
/** A margin over the number of requests of the fastest round so far. */
const HEADROOM = 1.3;

export async function benchForwarding(load: Load, settings: Settings): Promise<Report> {
  const { nodes, rate, cpuProf } = settings;
  const threads = Math.max(2, settings.threads);
  const connections = settings.connections ?? CONNECTIONS;
  const profiles = (name: string) => cpuProf && join(cpuProf, 'forwarding', name);
  await using instances = await startInstances();
  const active = await instances.start(threads, profiles('active'));
  const standby = await instances.start(threads, profiles('standby'));
  await using alone = await startAuthority(profiles('alone'), threads);
  await using loadAlone = startLoad();
  await isFollowing(standby);
  await enroll(load, standby, nodes);
  await enroll(loadAlone, alone, nodes);

  const ofActive: RoundResult[] = [];
  const beat = (from: Load, target: AuthorityProcess, seconds: number) =>
    from.ask('heartbeats', { target, connections, rate, seconds });
  const [forwarded, served] = (await contest(
    [
      {
        name: 'standby',
        async run(seconds) {
          const used = countCpuOf(active.pid);
          const result = await beat(load, standby, seconds);
          const { all, mainThread } = used();
          ofActive.push({ ...result, serverCpuSeconds: all, mainThreadSeconds: mainThread });
          return result;
        },
      },
      { name: 'one instance', run: (seconds) => beat(loadAlone, alone, seconds) },
    ],
    settings,
    ({ seconds, fastest }) => {
      const count = Math.ceil(seconds * (rate ?? fastest * HEADROOM));
      return Promise.all([load.ask('sign', { count }), loadAlone.ask('sign', { count })]);
    },
  )) as [Measured, Measured];

  // The first round is the warm-up.
  const written = lineOf({ name: 'active', rounds: ofActive.slice(1) });
  const edges = { name: 'its threads for HTTP', rounds: served.rounds.map(withoutMainThread) };
  const standings = [forwarded, served];
  return {
    benchmark: 'forwarding',
    about: `${nodes} nodes on ${connections} connections, ${threads} threads for HTTP in each instance`,
    lines: [lineOf(forwarded), written, lineOf(served), lineOf(edges)],
    comparisons: [compare(forwarded, edges, TARGET)],
    notes: [
      `the thread of the active instance's authority: ${written.main_us_per_request} µs for each heartbeat (target ${ACTIVE_MICROS}); that of one instance, on the same machine: ${lineOf(served).main_us_per_request} µs`,
      'the standby is measured whole, with the thread that forwards and keeps the state ready',
      ...busyClientNotes(standings),
    ],
  };
}

async function enroll(load: Load, target: AuthorityProcess, nodes: number): Promise<void> {
  const plan = { target, ...ENROLLING };
  const { network } = target;
  assertAccepted('joins', await load.ask('enroll', { plan, network, nodes }));
}

function withoutMainThread(round: RoundResult): RoundResult {
  return {
    ...round,
    serverCpuSeconds: round.serverCpuSeconds - round.mainThreadSeconds,
    mainThreadSeconds: 0,
  };
}
