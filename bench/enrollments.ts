/**
 * Durable enrollments: an invite and a join for each node, with each answer sent after its commit is on disk, and
 * renewals. The bare server parses, verifies, signs and stores the same as an enrollment.
 */
import { join } from 'node:path';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { contest, type Measured, type Settings } from './contest.ts';
import { enrolledFleet } from './enrolled-fleet.ts';
import type { Network } from './fleet.ts';
import { type Load, startLoad } from './load.ts';
import { busyClientNotes, compare, lineOf, type Report } from './report.ts';
import type { RoundResult, Target } from './round.ts';
import { OTHER, startAuthority, startBare, startOther } from './servers.ts';

const CONNECTIONS = 32;
/** Rounds have a fixed number of requests; this only ends a round that hangs. */
const LONGEST_SECONDS = 600;
const WARM_UP = 2000;
/** Nodes that renew in each round. */
const RENEWING = 2000;
const HIGHEST_COUNT = 100_000;
const LEAST_OF_BARE = 0.55;

export async function benchEnrollments(load: Load, settings: Settings): Promise<Report> {
  const connections = settings.connections ?? CONNECTIONS;
  const { cpuProf, threads } = settings;
  const profiles = cpuProf === null ? null : join(cpuProf, 'enrollments');
  await using na = await startAuthority(profiles, threads);
  await using other = await startOther(settings, threads);
  const { network } = na;
  const operatorKey = signerFromSeed(Buffer.from(network.operatorSeed, 'base64')).publicKey;
  const folder = scratchFolder('mesh-na-bare-').path;
  await using bare = await startBare({
    network: { folder, operatorKey, audience: network.audience },
  });
  await using renewing = startLoad();
  await enrolledFleet(renewing, na, { nodes: RENEWING, connections });
  const ours = enrollmentsAt(na, load, connections);
  const bares = enrollmentsAt({ ...bare, network }, load, connections);
  const theirs = other && enrollmentsAt(other, load, connections);
  const renewals = { target: na, connections, seconds: LONGEST_SECONDS, rate: null };
  // All do the same work, so that none has more state than another.
  const [ofPairs, ofJoins, barePairs, bareJoins, ofRenewals, ...further] = (await contest(
    [
      { name: 'pairs', run: ours.pairs },
      { name: 'joins alone', run: ours.joins },
      { name: 'pairs, bare', run: bares.pairs },
      { name: 'joins alone, bare', run: bares.joins },
      { name: 'renewals', run: () => renewing.ask('renew', { plan: renewals }) },
      ...(theirs
        ? [
            { name: `pairs, ${OTHER}`, run: theirs.pairs },
            { name: `joins alone, ${OTHER}`, run: theirs.joins },
          ]
        : []),
    ],
    settings,
  )) as [Measured, Measured, Measured, Measured, Measured, ...Measured[]];
  const { phases } = ours;

  const standings = [
    ofPairs,
    { name: 'pairs: invites', rounds: phases.invites },
    { name: 'pairs: joins', rounds: phases.joins },
    ofJoins,
    barePairs,
    bareJoins,
    ofRenewals,
    ...further,
  ];
  return {
    benchmark: 'enrollments',
    about: `${connections} connections, every answer after its commit`,
    lines: standings.map(lineOf),
    comparisons: [
      compare(ofPairs, barePairs, LEAST_OF_BARE),
      compare(ofJoins, bareJoins, LEAST_OF_BARE),
      ...further.map((each, index) => compare(index === 0 ? ofPairs : ofJoins, each, null)),
    ],
    notes: [
      'a pair is one invite request and one join; joins alone use invites made by the thousand',
      'rate limits ADMIN and JOIN are off',
      ...busyClientNotes(standings.slice(1)),
    ],
  };
}

/**
 * The contestants of one authority; the number of prepared requests follows the rate of the previous round.
 */
export function enrollmentsAt(
  target: Target & { readonly network: Network },
  load: Load,
  connections: number,
) {
  const { network } = target;
  const plan = { target, connections, seconds: LONGEST_SECONDS, rate: null };
  const phases = { invites: [] as RoundResult[], joins: [] as RoundResult[] };
  let pairsPerSecond = 0;
  let joinsPerSecond = 0;
  return {
    phases,
    async pairs(seconds: number): Promise<RoundResult> {
      const count = countFor(seconds, pairsPerSecond);
      const { invites, joins } = await load.ask('pairs', { plan, network, count });
      const both = inSequence(invites, joins);
      // The warm-up only determines how many pairs a round needs.
      if (pairsPerSecond > 0) {
        phases.invites.push(invites);
        phases.joins.push(joins);
      }
      pairsPerSecond = count / both.seconds;
      return both;
    },
    async joins(seconds: number): Promise<RoundResult> {
      const count = countFor(seconds, joinsPerSecond);
      const result = await load.ask('joins', { plan, network, count });
      joinsPerSecond = count / result.seconds;
      return result;
    },
  };
}

function countFor(seconds: number, perSecond: number): number {
  if (perSecond === 0) return WARM_UP;
  return Math.min(HIGHEST_COUNT, Math.ceil(seconds * perSecond));
}

/** Combines the results of two phases: the sum of their time and CPU, counted per pair. */
function inSequence(first: RoundResult, second: RoundResult): RoundResult {
  return {
    answered: second.answered,
    seconds: first.seconds + second.seconds,
    latency: null,
    serverCpuSeconds: first.serverCpuSeconds + second.serverCpuSeconds,
    mainThreadSeconds: first.mainThreadSeconds + second.mainThreadSeconds,
    clientCpuSeconds: first.clientCpuSeconds + second.clientCpuSeconds,
    refusals: second.refusals,
    firstRefusal: second.firstRefusal,
  };
}
