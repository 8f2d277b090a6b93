/**
 * A standby takes over a large network: the time from the end of the lease of an active instance that was killed, while nodes send
 * heartbeats.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemRuntime } from '../src/base/runtime.ts';
import type { Settings } from './contest.ts';
import { inviteSigner } from './fleet.ts';
import { type Instances, isFollowing, placeOf, startInstances, until } from './instances.ts';
import { largeNetwork } from './large-network.ts';
import { openConnection } from './load/connection.ts';
import type { Load } from './load.ts';
import { median, type Report } from './report.ts';
import { assertAccepted } from './round.ts';
import { seed } from './seed.ts';
import { storeIn } from './seeded-database.ts';
import type { AuthorityProcess } from './servers.ts';

const TARGET_MS = 500;
const FLEET = 20_000;
const CONNECTIONS = 64;
const HEARTBEATS_PER_SECOND = 4000;
/** Longer than the interval between two looks at liveness, so that there are as many contacts as possible. */
const BEATING_SECONDS = 8;
/** The seconds of heartbeats before the active instance is killed. */
const UNTIL_LOSS_SECONDS = 6;
/** Few, because each one creates a thousand invites, and the active instance must not be busy for as long as its lease lasts. */
const ENROLLING = { connections: 4, seconds: 600, rate: null };
/**
 * Holds a request until another instance writes, however long that takes. The measurement begins when the lease ends.
 */
const PATIENT = { MESH_HOLD_MS: '60000' };

export async function benchTakeOver(load: Load, settings: Settings): Promise<Report> {
  const { seeded, rounds, cpuProf, progress } = settings;
  const threads = Math.max(2, settings.threads);
  const rate = settings.rate ?? HEARTBEATS_PER_SECOND;
  progress(`writing a network of ${seeded} nodes`);
  await using instances = await startInstances((dataDir, url) =>
    seed(dataDir, largeNetwork(seeded), undefined, (folder) => storeIn(url, folder)),
  );
  progress('putting the database in order');
  // Otherwise, the database would clean up the rows written a minute ago during the measurement.
  for (const work of ['vacuum analyze', 'checkpoint']) {
    await instances.cluster.query(instances.database, work);
  }
  const start = (name: string) =>
    instances.start(threads, cpuProf && join(cpuProf, 'take-over', name), PATIENT);
  let active = await start('first');
  const plan = { target: active, ...ENROLLING };
  const { network } = active;
  assertAccepted('joins', await load.ask('enroll', { plan, network, nodes: FLEET }));

  const took: number[] = [];
  let unanswered = 0;
  for (let round = 1; round <= rounds; round += 1) {
    const standby = await start(`successor-${round}`);
    await isFollowing(standby);
    await load.ask('sign', { count: rate * BEATING_SECONDS });
    const beating = load.ask('heartbeats', {
      target: standby,
      connections: CONNECTIONS,
      rate,
      seconds: BEATING_SECONDS,
    });
    await sleep(UNTIL_LOSS_SECONDS * 1000);
    took.push(await takeOver(instances, active, standby));
    // Requests in flight are refused, and so are heartbeats that were signed earlier.
    await beating.catch(() => {
      unanswered += 1;
    });
    progress(`take-over ${round} of ${rounds}: ${took.at(-1)?.toFixed(0)} ms`);
    active = standby;
  }
  return {
    benchmark: 'take-over',
    about: `a standby of ${seeded} nodes takes over from an active instance that is killed, during ${rate} heartbeats/s of ${FLEET} nodes`,
    lines: [],
    comparisons: [],
    notes: [
      `from the end of the lease to the first command that is acknowledged: median ${median(took).toFixed(0)} ms, longest ${Math.max(...took).toFixed(0)} ms, of ${took.length} (target ${TARGET_MS} ms)`,
      ...(unanswered === 0
        ? []
        : [`after ${unanswered} of them not all heartbeats were answered within half a minute`]),
    ],
  };
}

/** Milliseconds from the end of the lease to the answer to a command that the standby held. */
async function takeOver(
  { cluster, database }: Instances,
  active: AuthorityProcess,
  standby: AuthorityProcess,
): Promise<number> {
  await active.kill();
  const [lease] = await cluster.query(
    database,
    'select extract(epoch from expires_at)::float8 * 1000 as until from mesh_na.writer_lease',
  );
  const connection = await openConnection(standby);
  const status = await new Promise<number>((resolve, reject) => {
    connection.answered = resolve;
    connection.failed = reject;
    connection.send(inviteSigner(standby.network)({}));
  });
  // The database uses the same clock.
  const answeredAt = systemRuntime.now();
  connection.close();
  if (status !== 200) throw new Error(`A command during a take-over was answered ${status}`);
  await until(async () => {
    const { isReady, role } = await placeOf(standby);
    return isReady && role === 'active';
  });
  return answeredAt - Number(lease?.until);
}
