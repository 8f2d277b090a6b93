/**
 * Heartbeats that a standby forwards to the active instance: what they cost the active one, compared to those that it
 * gets itself, and to those of an instance that has no others.
 */
import { join } from 'node:path';
import { contest, type Measured, type Settings } from './contest.ts';
import { countCpuOf } from './cpu.ts';
import { isFollowing, startInstances } from './instances.ts';
import { type Load, startLoad } from './load.ts';
import { busyClientNotes, compare, lineOf, type Report } from './report.ts';
import { assertAccepted, type RoundResult } from './round.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';

/** A forwarded heartbeat may cost the active instance 1.1 times as much as one of its own. */
const TARGET = 1 / 1.1;
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
  await using loadOfActive = startLoad();
  await using loadAlone = startLoad();
  await isFollowing(standby);
  await enroll(load, standby, nodes);
  await enroll(loadOfActive, active, nodes);
  await enroll(loadAlone, alone, nodes);

  const ofStandby: RoundResult[] = [];
  const beat = (from: Load, target: AuthorityProcess, seconds: number) =>
    from.ask('heartbeats', { target, connections, rate, seconds });
  const loads = [load, loadOfActive, loadAlone];
  const standings = (await contest(
    [
      {
        name: 'forwarded',
        async run(seconds) {
          const used = countCpuOf(active.pid);
          const result = await beat(load, standby, seconds);
          const { all, mainThread } = used();
          ofStandby.push(result);
          return { ...result, serverCpuSeconds: all, mainThreadSeconds: mainThread };
        },
      },
      { name: 'its own', run: (seconds) => beat(loadOfActive, active, seconds) },
      { name: 'one instance', run: (seconds) => beat(loadAlone, alone, seconds) },
    ],
    settings,
    ({ seconds, fastest }) => {
      const count = Math.ceil(seconds * (rate ?? fastest * HEADROOM));
      return Promise.all(loads.map((each) => each.ask('sign', { count })));
    },
  )) as [Measured, Measured, Measured];

  const [forwarded, own, single] = standings;
  // The first round is the warm-up.
  const standbyLine = lineOf({ name: 'the standby', rounds: ofStandby.slice(1) });
  return {
    benchmark: 'forwarding',
    about: `${nodes} nodes on ${connections} connections, ${threads} threads for HTTP in each instance`,
    lines: [...standings.map(lineOf), standbyLine],
    comparisons: [compare(forwarded, own, TARGET), compare(own, single, null)],
    notes: busyClientNotes(standings),
  };
}

async function enroll(load: Load, target: AuthorityProcess, nodes: number): Promise<void> {
  const plan = { target, ...ENROLLING };
  const { network } = target;
  assertAccepted('joins', await load.ask('enroll', { plan, network, nodes }));
}
