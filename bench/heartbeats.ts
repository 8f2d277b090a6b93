/** Signed heartbeats: the authority against a bare server that parses and verifies the same bytes. */
import { join } from 'node:path';
import { contest, type Measured, type Settings } from './contest.ts';
import { type Load, startLoad } from './load.ts';
import { busyClientNotes, compare, lineOf, type Report, starvedNotes } from './report.ts';
import { assertAccepted, type Target } from './round.ts';
import { type AuthorityProcess, OTHER, startAuthority, startBare, startOther } from './servers.ts';

const TARGET = 0.8;
/** The target for heartbeats that request the bulletin, compared to those that do not. */
const BULLETIN_TARGET = 0.95;
/** The target for heartbeats in sessions, compared to the bare server that verifies signatures. */
const SESSION_TARGET = 3;
const CONNECTIONS = 64;
const ENROL_CONNECTIONS = 32;
const ENROL_SECONDS = 600;
/** A margin over the number of requests of the fastest round so far. */
const HEADROOM = 1.3;

export async function benchHeartbeats(load: Load, settings: Settings): Promise<Report> {
  const { nodes, rate, cpuProf, threads, sessions } = settings;
  const connections = settings.connections ?? CONNECTIONS;
  const profiles = cpuProf === null ? null : join(cpuProf, 'heartbeats');
  await using na = await startAuthority(profiles, threads);
  await using bare = await startBare();
  await using other = await startOther(settings, threads);
  // Each fleet is enrolled in only one network.
  await using otherLoad = other && startLoad();
  await using bulletinLoad = startLoad();
  await using sessionLoad = sessions ? startLoad() : null;

  await enroll(load, na, nodes);
  await enroll(bulletinLoad, na, nodes);
  if (other && otherLoad) await enroll(otherLoad, other, nodes);
  if (sessionLoad !== null) {
    await enroll(sessionLoad, na, nodes);
    await sessionLoad.ask('sessions', { target: na, connections: ENROL_CONNECTIONS });
  }

  function beat(from: Load, target: Target) {
    return (seconds: number) => from.ask('heartbeats', { target, connections, rate, seconds });
  }
  const [ours, theirs, informed, ...further] = (await contest(
    [
      { name: 'NA', run: beat(load, na) },
      { name: 'bare', run: beat(load, bare) },
      { name: 'NA with bulletins', run: beat(bulletinLoad, na) },
      ...(sessionLoad ? [{ name: 'NA with sessions', run: beat(sessionLoad, na) }] : []),
      ...(other && otherLoad ? [{ name: OTHER, run: beat(otherLoad, other) }] : []),
    ],
    settings,
    // Both servers get the same bytes, because signing them again for each would only cost time.
    ({ seconds, fastest }) => {
      const count = Math.ceil(seconds * (rate ?? fastest * HEADROOM));
      return Promise.all([
        load.ask('sign', { count }),
        bulletinLoad.ask('sign', { count, bulletin: true }),
        otherLoad?.ask('sign', { count }),
        sessionLoad?.ask('sign', { count }),
      ]);
    },
  )) as [Measured, Measured, Measured, ...Measured[]];

  const all = [ours, theirs, informed, ...further];
  const inSessions = sessionLoad ? further[0] : undefined;
  const others = other ? further.at(-1) : undefined;
  const loop = rate === null ? 'closed loop' : `open loop at ${rate} requests/s`;
  return {
    benchmark: 'heartbeats',
    about: `${nodes} nodes on ${connections} connections, ${loop}`,
    lines: all.map(lineOf),
    comparisons: [
      compare(ours, theirs, TARGET),
      compare(informed, ours, BULLETIN_TARGET),
      ...(inSessions
        ? [compare(inSessions, theirs, SESSION_TARGET), compare(inSessions, ours, null)]
        : []),
      ...(others ? [compare(ours, others, null)] : []),
    ],
    // The open loop spins to keep its pace, so its CPU share is meaningless.
    notes: rate === null ? [...busyClientNotes(all), ...starvedNotes(all)] : [],
  };
}

async function enroll(load: Load, target: AuthorityProcess, nodes: number): Promise<void> {
  const plan = { target, connections: ENROL_CONNECTIONS, seconds: ENROL_SECONDS, rate: null };
  assertAccepted('joins', await load.ask('enroll', { plan, network: target.network, nodes }));
}
