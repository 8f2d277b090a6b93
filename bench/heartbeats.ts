/** Signed heartbeats: the authority against a bare server that parses and verifies the same bytes. */
import { join } from 'node:path';
import { contest, type Measured, type Settings } from './contest.ts';
import { enrolledFleet } from './enrolled-fleet.ts';
import { type Load, startLoad } from './load.ts';
import { busyClientNotes, compare, lineOf, type Report, starvedNotes } from './report.ts';
import { OTHER, startAuthority, startBare, startOther } from './servers.ts';

const TARGET = 0.8;
/** The target for heartbeats that request the bulletin, compared to those that do not. */
const BULLETIN_TARGET = 0.95;
/** The target for heartbeats in sessions, compared to the bare server that verifies signatures. */
const SESSION_TARGET = 3;
const CONNECTIONS = 64;

export async function benchHeartbeats(load: Load, settings: Settings): Promise<Report> {
  const { nodes, rate, cpuProf, threads } = settings;
  const connections = settings.connections ?? CONNECTIONS;
  const plan = { nodes, rate, connections };
  const profiles = cpuProf === null ? null : join(cpuProf, 'heartbeats');
  await using na = await startAuthority(profiles, threads);
  await using bare = await startBare();
  await using other = await startOther(settings, threads);
  await using otherLoad = other && startLoad();
  await using bulletinLoad = startLoad();
  await using sessionLoad = settings.sessions ? startLoad() : null;

  const signed = await enrolledFleet(load, na, plan);
  const informed = await enrolledFleet(bulletinLoad, na, { ...plan, bulletin: true });
  const inSessions = sessionLoad && (await enrolledFleet(sessionLoad, na, plan));
  await sessionLoad?.ask('sessions', { target: na, connections });
  const others = other && otherLoad && (await enrolledFleet(otherLoad, other, plan));
  const standings = await contest(
    [
      { name: 'NA', run: signed.beat },
      // Gets the same bytes, because signing them again would only cost time.
      { name: 'bare', run: (seconds) => signed.repeatAt(bare, seconds) },
      { name: 'NA with bulletins', run: informed.beat },
      ...(others ? [{ name: OTHER, run: others.beat }] : []),
      ...(inSessions ? [{ name: 'NA with sessions', run: inSessions.beat }] : []),
    ],
    settings,
  );
  const [ours, theirs, bulletins] = standings as [Measured, Measured, Measured];
  const loop = rate === null ? 'closed loop' : `open loop at ${rate} requests/s`;
  return {
    benchmark: 'heartbeats',
    about: `${nodes} nodes on ${connections} connections, ${loop}`,
    lines: standings.map(lineOf),
    comparisons: [
      compare(ours, theirs, TARGET),
      compare(bulletins, ours, BULLETIN_TARGET),
      ...standings
        .slice(3)
        .flatMap((further) =>
          further.name === OTHER
            ? [compare(ours, further, null)]
            : [compare(further, theirs, SESSION_TARGET), compare(further, ours, null)],
        ),
    ],
    // The open loop spins to keep its pace, so its CPU share is meaningless.
    notes: rate === null ? [...busyClientNotes(standings), ...starvedNotes(standings)] : [],
  };
}
