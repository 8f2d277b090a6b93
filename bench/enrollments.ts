/**
 * Durable enrollments: an invite and a join for each node, with each answer sent after its commit is on disk, and
 * renewals. The bare server parses, verifies, signs and stores the same as an enrollment.
 */
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { contest, type Settings } from './contest.ts';
import { enrolledFleet } from './fleet.ts';
import { commandSigner, joinAll, type Network, newTokens, sendAll } from './network.ts';
import { type Report, rateOf } from './report.ts';
import {
  inSequence,
  type RoundPlan,
  type RoundResult,
  type Target,
  UNTIL_ALL_ARE_SENT,
} from './rounds.ts';
import { OTHER, startAuthority, startBare, startOther } from './servers.ts';

const WARM_UP = 2000;
const RENEWING = 2000;
const HIGHEST_COUNT = 100_000;
const LEAST_OF_BARE = 0.55;

export async function benchEnrollments(settings: Settings): Promise<Report> {
  const { connections = 32 } = settings;
  await using na = await startAuthority(settings);
  await using other = await startOther(settings);
  const { network } = na;
  const operatorKey = signerFromSeed(Buffer.from(network.operatorSeed, 'base64')).publicKey;
  const { path: folder } = scratchFolder('mesh-na-bare-');
  await using bare = await startBare({
    network: { folder, operatorKey, audience: network.audience },
  });
  const { renew } = await enrolledFleet(na, { nodes: RENEWING, connections });
  const at = (target: Target, enroll: Enroll, of = network) =>
    sized((count) => enroll({ target, connections, ...UNTIL_ALL_ARE_SENT }, of, count));
  const about = `${connections} connections, every answer after its commit`;
  // All do the same work, so that none has more state than another.
  const report = await contest(settings, 'enrollments', about, [
    {
      name: 'pairs',
      run: at(na, pairs),
      against: { 'pairs, bare': LEAST_OF_BARE, [`pairs, ${OTHER}`]: null },
    },
    {
      name: 'joins',
      run: at(na, joins),
      against: { 'joins, bare': LEAST_OF_BARE, [`joins, ${OTHER}`]: null },
    },
    { name: 'pairs, bare', run: at(bare, pairs) },
    { name: 'joins, bare', run: at(bare, joins) },
    { name: 'renewals', run: renew },
    other && { name: `pairs, ${OTHER}`, run: at(other, pairs, other.network) },
    other && { name: `joins, ${OTHER}`, run: at(other, joins, other.network) },
  ]);
  const notes = [
    'a pair is one invite request and one join, whose latency is shown; joins use invites made by the thousand',
  ];
  return { ...report, notes };
}

type Enroll = (plan: RoundPlan, network: Network, count: number) => Promise<RoundResult>;

/** One invite request for each node, then the joins. */
async function pairs(plan: RoundPlan, network: Network, count: number): Promise<RoundResult> {
  const invite = commandSigner(network, '/admin/invite');
  const requests = Array.from({ length: count }, () => invite({}));
  const invites = await sendAll(plan, requests);
  const tokens = invites.answers.map(({ token_id }) => String(token_id));
  return inSequence(invites.result, (await joinAll(plan, tokens)).result);
}

/** Joins only, with invites created by the thousand before the round. */
async function joins(plan: RoundPlan, network: Network, count: number): Promise<RoundResult> {
  return (await joinAll(plan, await newTokens(plan, network, count))).result;
}

/** The number of prepared requests follows the rate of the previous round. */
function sized(
  run: (count: number) => Promise<RoundResult>,
): (seconds: number) => Promise<RoundResult> {
  let perSecond: number | null = null;
  return async (seconds) => {
    const count = perSecond === null ? WARM_UP : Math.ceil(seconds * perSecond);
    const result = await run(Math.min(HIGHEST_COUNT, count));
    perSecond = rateOf(result);
    return result;
  };
}
