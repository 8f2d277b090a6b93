/** Revocations in three linked instances, compared to a single instance: the time until they are acknowledged. */
import { contest, type Measured, type Settings } from './contest.ts';
import { revocations } from './crl.ts';
import { type Instances, isFollowing, startInstances } from './instances.ts';
import type { Load } from './load.ts';
import { lineOf, median, type Report } from './report.ts';
import { type RoundResult, runRound } from './round.ts';
import { seed } from './seed.ts';
import { storeIn } from './seeded-database.ts';
import type { AuthorityProcess } from './servers.ts';

/** The entries of the list at the start, and the certificates that the run can revoke. */
const REVOKED = 1000;
const SPARE = 20_000;
const IN_A_ROUND = 200;
/** Rounds have a fixed number of requests; this only ends a round that hangs. */
const LONGEST_SECONDS = 600;

export async function benchRevocations(_load: Load, settings: Settings): Promise<Report> {
  const threads = Math.max(2, settings.threads);
  const connections = settings.connections ?? 1;
  settings.progress(`writing two networks with ${REVOKED} revoked certificates`);
  await using one = await startInstances(fill);
  const alone = await one.start(threads);
  await using three = await startInstances(fill);
  const active = await three.start(threads);
  const standby = await three.start(threads);
  const other = await three.start(threads);
  for (const instance of [standby, other]) await isFollowing(instance);
  const [ofOne, ofThree] = [await certificatesIn(one), await certificatesIn(three)];

  function revoke(na: AuthorityProcess, certificates: string[]): () => Promise<RoundResult> {
    const next = revocations(na, certificates);
    const plan = { target: na, connections, seconds: LONGEST_SECONDS, rate: settings.rate };
    return () => runRound(plan, (index) => (index < IN_A_ROUND ? next(index) : undefined));
  }
  const standings = (await contest(
    [
      { name: 'one instance', run: revoke(alone, ofOne) },
      { name: 'three, at the active instance', run: revoke(active, ofThree) },
      { name: 'three, at a standby', run: revoke(standby, ofThree) },
    ],
    settings,
  )) as [Measured, Measured, Measured];
  const [single, ...linked] = standings;
  return {
    benchmark: 'revocations',
    about: `${IN_A_ROUND} in a round on ${connections} connection(s), a list of ${REVOKED} and more, ${threads} threads`,
    lines: standings.map(lineOf),
    comparisons: [],
    notes: [...linked.map((measured) => latencyRatios(measured, single))],
  };
}

function fill(dataDir: string, url: string): Promise<void> {
  const counts = { nodes: REVOKED + SPARE, revoked: REVOKED, invites: 0, agents: 0 };
  return seed(dataDir, counts, undefined, (folder) => storeIn(url, folder));
}

/** Only certificates that are not revoked have liveness. */
async function certificatesIn({ cluster, database }: Instances): Promise<string[]> {
  const ids = `select convert_from(id, 'UTF8') as id from mesh_na.liveness`;
  return (await cluster.query(database, ids)).map(({ id }) => String(id));
}

/** Compares rounds that saw the same load on the machine. */
function latencyRatios(of: Measured, against: Measured): string {
  const at = (percentile: 'p50' | 'p99') =>
    of.rounds.map(
      ({ latency }, index) =>
        (latency?.[percentile] ?? Number.NaN) /
        (against.rounds[index]?.latency?.[percentile] ?? Number.NaN),
    );
  const text = (ratios: readonly number[]) =>
    `${median(ratios).toFixed(2)} [${Math.min(...ratios).toFixed(2)}..${Math.max(...ratios).toFixed(2)}]`;
  return `${of.name} / ${against.name}: p50 ${text(at('p50'))}, p99 ${text(at('p99'))}`;
}
