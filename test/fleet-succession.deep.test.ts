/** What a change of the authority's key costs a fleet of agents, and that all of them follow [authority-keys-7-3]. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { isSignedByAny } from '../src/protocol/records/signed-record.ts';
import {
  type AgentFleet,
  certificateOf,
  createAgentFleet,
  PATIENT,
} from './support/agent-fleet.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import { get, joinedNode, operate, outcome } from './support/requests.ts';
import { stage, step, succession } from './support/successions.ts';

/** `npm run test:longer -- fleet` runs more. */
const AGENTS = Number(process.env.MESH_TEST_FLEET_AGENTS ?? 30);

/** In minutes. */
const AN_HOUR = 60;
/** Agents join over the average time between two renewals, so that every hour has the same number of renewals. */
const JOINING = 7.5 * AN_HOUR;
const SETTLED = 9 * AN_HOUR;
const USUAL = 7 * AN_HOUR;

interface Adoption {
  readonly active: number;
  readonly informed: number;
  readonly certified: number;
  readonly followed: number;
}

async function adoptionOf(na: TestAuthority): Promise<Adoption> {
  const path = '/admin/authority-keys/adoption';
  return (await operate(na, path, {}, { method: 'GET', operator: na.standard })).body.nodes;
}

/** In a large fleet, some nodes renew while they are counted, and are counted twice. */
function assertAbout(actual: number, expected: number, what: string): void {
  assert.ok(Math.abs(actual - expected) <= AGENTS / 1000, `${what}: ${actual}, not ${expected}`);
}

const sum = (counts: readonly number[]) => counts.reduce((total, each) => total + each, 0);
const mean = (counts: readonly number[]) => sum(counts) / counts.length;

/** The most events to expect in any one of many minutes, given the average per minute. */
const likely = (average: number) => average + 5 * Math.sqrt(average) + 3;

function isSignedBy({ members }: AgentFleet, key: string, from = 0, each = 1): boolean {
  return members
    .filter((_, index) => index % each === from)
    .every(({ files }) => isSignedByAny(certificateOf(files), [key], verifySignature));
}

/**
 * Lets time pass until `count` agents have followed the change or know of it; returns the minutes that took. In a large
 * fleet, a count is reused for twenty times as long as it took to make, which is long when the clock jumps.
 */
async function until(
  { na, fleet }: { readonly na: TestAuthority; readonly fleet: AgentFleet },
  what: 'informed' | 'followed',
  count: number,
  within: number,
): Promise<number> {
  const begun = fleet.minute();
  while ((await adoptionOf(na))[what] < count && fleet.minute() < begun + within) {
    await fleet.pass(10);
  }
  assertAbout((await adoptionOf(na))[what], count, what);
  return fleet.minute() - begun;
}

test(`${AGENTS} agents follow a planned change under load while a third of them is away, without a rush of renewals`, async (t) => {
  const environment = { ...PATIENT, MESH_ACTIVE_NODE_WINDOW_SECONDS: String(12 * 3600) };
  await using started = await startTestAuthority({ environment });
  let na = started;
  // The agents that will be away have certificates that last that long.
  const fleet = await createAgentFleet(na, {
    size: AGENTS,
    validityHours: (member) => (member % 3 === 0 ? 60 : 12),
  });
  const { members } = fleet;
  const roaming = members.filter((_, index) => index % 3 === 0);
  const staying = AGENTS - roaming.length;

  /** Revokes a certificate every few hours, and every agent learns about it. */
  async function load(minute: number): Promise<void> {
    if (minute % (6 * AN_HOUR) !== 0) return;
    const { certId } = await joinedNode(na);
    assert.equal(outcome(await operate(na, '/admin/revoke', { cert_id: certId })), '200');
  }

  let joined = 0;
  await fleet.pass(JOINING, async (minute) => {
    await load(minute);
    for (const upTo = (AGENTS * (minute + 1)) / JOINING; joined < upTo; joined += 1) {
      const member = members[joined];
      if (member !== undefined) await fleet.start(member);
    }
  });
  await fleet.pass(SETTLED - JOINING, load);
  await fleet.pass(USUAL, load);
  const usual = { from: SETTLED, until: fleet.minute() };

  for (const member of roaming) member.agent = null;
  await fleet.pass(AN_HOUR / 2, load);
  const old = na.audience;
  const signed = await succession(na, { activatesIn: 6 * HOUR, overlap: 7.5 * HOUR });
  const { to_key: next } = signed.statement;
  assert.equal(outcome(await stage(na, signed)), '200');
  const changeFrom = fleet.minute();
  const informedAfter = await until({ na, fleet }, 'informed', staying, 6 * AN_HOUR);
  await fleet.pass(6 * AN_HOUR + 1 - informedAfter, load);
  na = { ...na, audience: next };
  assert.equal((await get(na, '/genesis')).body.network_authority.public_key, next);
  const followedAfter = await until({ na, fleet }, 'followed', staying, 440);
  assert.ok(
    isSignedBy(fleet, old) && isSignedBy(fleet, next, 1, 3) && isSignedBy(fleet, next, 2, 3),
  );
  await fleet.pass(Math.max(0, 440 - followedAfter), load);
  // Nodes that are silent by now do not hold up the step, and the operator confirms the number of the others.
  const finished = await step(na, 'finish');
  const despite = finished.body.error?.details?.count ?? null;
  if (despite !== null) assert.equal(outcome(await step(na, 'finish', { despite })), '200');
  else assert.equal(outcome(finished), '200');
  await fleet.pass(AN_HOUR / 2, load);

  for (const [index, member] of roaming.entries()) {
    if (index % Math.ceil(roaming.length / 15) === 0) await fleet.pass(1, load);
    await fleet.start(member);
  }
  const returnedAfter = await until({ na, fleet }, 'followed', AGENTS, 12 * AN_HOUR);
  const change = { from: changeFrom, until: fleet.minute() };
  assert.ok(isSignedBy(fleet, next));
  assert.deepEqual([...fleet.complaints], []);
  assert.equal(sum(fleet.requests(0, fleet.minute(), '/join')), AGENTS, 'none enrolls again');

  const renewals = report(t, fleet, usual, change);
  t.diagnostic(`followed: those that stayed ${followedAfter} min after the activation,`);
  t.diagnostic(`those that were away ${returnedAfter} min after their return`);
  assert.ok(renewals.peak <= likely(2 * renewals.usual), `${renewals.peak} renewals in a minute`);
  if (AGENTS >= 1000) assert.ok(renewals.peak <= 2 * renewals.usualPeak);
});

test(`${AGENTS} agents whose authority's key was stolen renew at once, spread over ten minutes`, async (t) => {
  const environment = { ...PATIENT, MESH_ACTIVE_NODE_WINDOW_SECONDS: '1200' };
  await using na = await startTestAuthority({ environment });
  const fleet = await createAgentFleet(na, { size: AGENTS, validityHours: () => 168 });
  for (const member of fleet.members) await fleet.start(member);
  await fleet.pass(10);
  const usual = { from: 3, until: fleet.minute() };
  const signed = await succession(na, { kind: 'compromise' });
  assert.equal(outcome(await stage(na, signed)), '200');
  na.clock.advance(MINUTE);
  await na.keepKeys();
  const { to_key: next } = signed.statement;
  // Each agent learns about it with its next heartbeat, and renews within ten minutes after that.
  const change = { from: fleet.minute(), until: fleet.minute() + 18 };
  await fleet.pass(change.until - change.from);
  await until({ na: { ...na, audience: next }, fleet }, 'followed', AGENTS, 12 * AN_HOUR);
  assert.ok(isSignedBy(fleet, next));
  assert.deepEqual([...fleet.complaints], []);
  assert.equal(sum(fleet.requests(0, fleet.minute(), '/join')), AGENTS, 'none enrolls again');
  assert.equal(sum(fleet.requests(0, fleet.minute(), '/renew')), AGENTS, 'each renews once');
  const { peak } = report(t, fleet, usual, change);
  assert.ok(peak <= likely(AGENTS / 10), `${peak} renewals in a minute`);
});

interface Span {
  readonly from: number;
  readonly until: number;
}

function report(t: TestContext, fleet: AgentFleet, usual: Span, change: Span) {
  const inSpan = ({ from, until }: Span, path?: string) => fleet.requests(from, until, path);
  const [before, during] = [inSpan(usual, '/renew'), inSpan(change, '/renew')];
  const shown = (counts: readonly number[]) =>
    `${mean(counts).toFixed(2)} a minute, at most ${Math.max(...counts)}`;
  t.diagnostic(`renewals: usually ${shown(before)}; during the change ${shown(during)}`);
  t.diagnostic(
    `requests: usually ${shown(inSpan(usual))}; during the change ${shown(inSpan(change))}`,
  );
  return { usual: mean(before), usualPeak: Math.max(...before), peak: Math.max(...during) };
}
