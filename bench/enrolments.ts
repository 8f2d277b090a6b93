/** Durable enrolments: an invite and a join for each node, every answer after its commit is on disk. */
import { join } from 'node:path';
import { contest, type Settings, type Standing } from './contest.ts';
import type { Load } from './load.ts';
import { busyClientNotes, lineOf, type Report } from './report.ts';
import type { RoundResult } from './round.ts';
import { startAuthority } from './servers.ts';

const CONNECTIONS = 32;
/** Rounds have a fixed number of requests; this only ends one that hangs. */
const LONGEST_SECONDS = 600;
const WARM_UP_PAIRS = 2000;
const HIGHEST_COUNT = 100_000;

export async function benchEnrolments(load: Load, settings: Settings): Promise<Report> {
  const connections = settings.connections ?? CONNECTIONS;
  const { cpuProf, threads } = settings;
  const profiles = cpuProf === null ? null : join(cpuProf, 'enrolments');
  await using na = await startAuthority(profiles, threads);
  const { network } = na;
  const plan = { target: na, connections, seconds: LONGEST_SECONDS, rate: null };
  const phases = { invites: [] as RoundResult[], joins: [] as RoundResult[] };
  let pairsPerSecond = 0;

  async function pairs(seconds: number): Promise<RoundResult> {
    const count = countFor(seconds, pairsPerSecond);
    const { invites, joins } = await load.ask('pairs', { plan, network, count });
    const both = inSequence(invites, joins);
    // The warm-up only tells how many pairs a round needs.
    if (pairsPerSecond > 0) {
      phases.invites.push(invites);
      phases.joins.push(joins);
    }
    pairsPerSecond = count / both.seconds;
    return both;
  }
  const [ofPairs, ofJoins] = (await contest(
    [
      { name: 'pairs', run: pairs },
      {
        name: 'joins alone',
        run: (seconds) =>
          load.ask('joins', { plan, network, count: countFor(seconds, pairsPerSecond) }),
      },
    ],
    settings,
  )) as [Standing, Standing];

  const standings = [
    ofPairs,
    { name: 'pairs: invites', rounds: phases.invites },
    { name: 'pairs: joins', rounds: phases.joins },
    ofJoins,
  ];
  return {
    benchmark: 'enrolments',
    about: `${connections} connections, every answer after its commit`,
    lines: standings.map(lineOf),
    comparisons: [],
    notes: [
      'a pair is one invite request and one join; joins alone use invites made by the thousand',
      'rate limits ADMIN and JOIN are off',
      ...busyClientNotes(standings.slice(1)),
    ],
  };
}

function countFor(seconds: number, perSecond: number): number {
  if (perSecond === 0) return WARM_UP_PAIRS;
  return Math.min(HIGHEST_COUNT, Math.ceil(seconds * perSecond));
}

/** One result of two phases: their time and CPU together, counted by the pair. */
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
