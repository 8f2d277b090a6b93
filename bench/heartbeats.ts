/** Signed heartbeats: the authority against a bare server that parses and verifies the same bytes. */
import { contest, type Settings } from './contest.ts';
import { enrolledFleet } from './fleet.ts';
import type { Report } from './report.ts';
import { OTHER, startAuthority, startBare, startOther } from './servers.ts';

export async function benchHeartbeats(settings: Settings): Promise<Report> {
  const { nodes = 1000, connections = 64, rate } = settings;
  const plan = { nodes, connections, rate };
  await using na = await startAuthority(settings);
  await using bare = await startBare();
  await using other = await startOther(settings);
  const signed = await enrolledFleet(na, plan);
  const informed = await enrolledFleet(na, { ...plan, bulletin: true });
  const inSessions = settings.sessions
    ? await enrolledFleet(na, { ...plan, sessions: true })
    : null;
  const others = other && (await enrolledFleet(other, plan));
  const loop = rate === undefined ? 'closed loop' : `open loop at ${rate} requests/s`;
  const about = `${nodes} nodes on ${connections} connections, ${loop}`;
  return await contest(settings, 'heartbeats', about, [
    { name: 'NA', run: signed.beat, against: { bare: 0.8, [OTHER]: null } },
    // Gets the same bytes, because signing them again would only cost time.
    { name: 'bare', run: (seconds) => signed.sendTo(bare, seconds) },
    { name: 'NA with bulletins', run: informed.beat, against: { NA: 0.95 } },
    others && { name: OTHER, run: others.beat },
    inSessions && {
      name: 'NA with sessions',
      run: inSessions.beat,
      against: { bare: 3, NA: null },
    },
  ]);
}
