/** What a standby costs that forwards heartbeats to the active instance, and how soon it takes over. */
import { systemRuntime } from '../src/base/runtime.ts';
import { contest, type Settings } from './contest.ts';
import { countCpuOf } from './cpu.ts';
import { enrolledFleet } from './fleet.ts';
import { openLane } from './load/connection.ts';
import { bytesOf, commandSigner } from './network.ts';
import { lineOf, median, type Report } from './report.ts';
import type { RoundResult } from './rounds.ts';
import { largeNetwork, MANY_NODES, seed } from './seed.ts';
import {
  type AuthorityProcess,
  type Instances,
  isReadyAs,
  startAuthority,
  startInstances,
  storeIn,
} from './servers.ts';

const CONNECTIONS = 64;
/** A forwarded heartbeat may cost the active instance 1.1 times as much as one of its own. */
const TARGET = 1 / 1.1;

/** The cost for the active instance, compared to heartbeats that it gets itself, and to an instance without others. */
export async function benchForwarding(settings: Settings): Promise<Report> {
  const { nodes = 1000, connections = CONNECTIONS, rate } = settings;
  const plan = { nodes, connections, rate };
  const threads = Math.max(2, settings.threads);
  await using instances = await startInstances(settings);
  const active = await instances.start();
  const standby = await instances.start();
  await using alone = await startAuthority({ ...settings, threads });
  await isReadyAs('standby', standby);
  const ofStandby = await enrolledFleet(standby, plan);
  const ofActive = await enrolledFleet(active, plan);
  const ofAlone = await enrolledFleet(alone, plan);

  const atStandby: RoundResult[] = [];
  const about = `${nodes} nodes on ${connections} connections, ${threads} threads in each instance`;
  const report = await contest(settings, 'forwarding', about, [
    {
      name: 'forwarded',
      async run(seconds) {
        const used = countCpuOf(active.pid);
        const result = await ofStandby.beat(seconds);
        atStandby.push(result);
        return { ...result, ...used() };
      },
      against: { 'its own': TARGET },
    },
    { name: 'its own', run: ofActive.beat, against: { 'one instance': null } },
    { name: 'one instance', run: ofAlone.beat },
  ]);
  // The first round is the warm-up.
  const line = lineOf({ name: 'the standby', rounds: atStandby.slice(1) });
  return { ...report, lines: [...report.lines, line] };
}

const TAKE_OVER_TARGET_MS = 500;
const FLEET = 20_000;
const HEARTBEATS_PER_SECOND = 4000;
/** Longer than the interval between two looks at liveness, so that there are as many contacts as possible. */
const BEATING_SECONDS = 8;
/** The time of heartbeats before the active instance is killed. */
const UNTIL_LOSS_MS = 6000;
/** Few, because each one creates a thousand invites, and the active instance must not be busy for as long as its lease lasts. */
const JOINING = 4;
/** Holds a request until another instance writes, however long that takes. The measurement begins when the lease ends. */
const PATIENT = { MESH_HOLD_MS: '60000' };

/** A standby takes over a large network from an active instance that was killed, while nodes send heartbeats. */
export async function benchTakeOver(settings: Settings): Promise<Report> {
  const { nodes = MANY_NODES, rounds, rate = HEARTBEATS_PER_SECOND, progress } = settings;
  progress(`writing a network of ${nodes} nodes`);
  await using instances = await startInstances(settings, (dataDir, url) =>
    seed(dataDir, largeNetwork(nodes), (folder) => storeIn(url, folder)),
  );
  // Otherwise, the database would clean up the rows written a minute ago during the measurement.
  for (const work of ['vacuum analyze', 'checkpoint']) await instances.query(work);
  let active = await instances.start(PATIENT);
  const fleet = await enrolledFleet(active, {
    nodes: FLEET,
    connections: CONNECTIONS,
    rate,
    joining: JOINING,
  });
  const took: number[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const standby = await instances.start(PATIENT);
    await isReadyAs('standby', standby);
    fleet.sign(BEATING_SECONDS);
    // Requests in flight are refused, and so are heartbeats that were signed earlier.
    const beating = fleet.sendTo(standby, BEATING_SECONDS).catch(() => undefined);
    await systemRuntime.pause(UNTIL_LOSS_MS);
    took.push(await takeOver(instances, active, standby));
    await beating;
    progress(`take-over ${round} of ${rounds}: ${took.at(-1)?.toFixed(0)} ms`);
    active = standby;
  }
  const all = `median ${median(took).toFixed(0)} ms, longest ${Math.max(...took).toFixed(0)} ms`;
  return {
    benchmark: 'take-over',
    about: `a standby of ${nodes} nodes takes over from an active instance that is killed, during ${rate} heartbeats/s of ${FLEET} nodes`,
    lines: [],
    comparisons: [],
    notes: [
      `from the end of the lease to the first command that is acknowledged: ${all}, of ${took.length} (target ${TAKE_OVER_TARGET_MS} ms)`,
    ],
  };
}

/** Milliseconds from the end of the lease to the answer to a command that the standby held. */
async function takeOver(
  { query }: Instances,
  active: AuthorityProcess,
  standby: AuthorityProcess,
): Promise<number> {
  await active.kill();
  const [lease] = await query(
    'select extract(epoch from expires_at)::float8 * 1000 as until from mesh_na.writer_lease',
  );
  const { ask, close } = await openLane(standby);
  const invite = commandSigner(standby.network, '/admin/invite')({});
  const { status } = await ask(bytesOf(invite));
  // The database uses the same clock.
  const answeredAt = systemRuntime.now();
  close();
  if (status !== 200) throw new Error(`A command during a take-over was answered ${status}`);
  await isReadyAs('active', standby);
  return answeredAt - Number(lease?.until);
}
