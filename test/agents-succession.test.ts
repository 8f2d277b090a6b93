/** Agents and clients of a real authority whose key is replaced [authority-keys-7] [authority-keys-10]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { createNetworkTrust } from '../src/client/followed-keys.ts';
import { createVerifier } from '../src/client/offline.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { fetchAgain } from './support/agent-fleet.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import {
  complaints,
  type Files,
  followed,
  type Member,
  type MemberOptions,
  newAgentKey,
  signersOf,
  startMember,
} from './support/members.ts';
import { auditEvents, get, invite, operate } from './support/requests.ts';
import { activated, DAY, type Draft, stage, step, succession } from './support/successions.ts';

interface Enrolled extends Member {
  again(): Promise<Enrolled>;
}

/** Where agents find the authority, which may be restarted. */
interface Place {
  na: TestAuthority;
}

async function memberOf(
  place: Place,
  further: Partial<MemberOptions> = {},
  files: Files = new Map(),
): Promise<Enrolled> {
  const { na } = place;
  const token = files.has('certificate') ? null : await invite(na, { max_validity_hours: 168 });
  const key = further.key ?? newAgentKey();
  const options: MemberOptions = {
    url: 'http://authority.invalid',
    fetch: (url, init) => fetchAgain(url.replace('http://authority.invalid', place.na.url), init),
    rootKey: (await get(na, '/genesis')).body.root_public_key,
    token: () => token,
    now: na.clock.now,
    random: () => 0.5,
    ...further,
    key,
  };
  const member = await startMember(options, files);
  return { ...member, again: () => memberOf(place, { ...further, key }, files) };
}

/** Lets time pass, running the members' turns when they are due, and at least every hour. */
async function pass(place: Place, ms: number, members: readonly Member[]) {
  const { clock } = place.na;
  const end = clock.now() + ms;
  while (clock.now() < end) {
    let next = Math.min(HOUR, end - clock.now());
    for (const { agent } of members) {
      const due = await agent.turn();
      assert.equal(typeof due, 'number', JSON.stringify(due));
      next = Math.min(next, Math.max(Number(due), MINUTE));
    }
    clock.advance(next);
  }
  for (const { agent } of members) await agent.turn();
}

async function staged(place: Place, draft: Draft): Promise<string> {
  const signed = await succession(place.na, draft);
  const { status, text } = await stage(place.na, signed);
  assert.equal(status, 200, text);
  return signed.statement.to_key;
}

async function done(place: Place, name: string, body = {}): Promise<void> {
  const { status, text } = await step(place.na, name, body);
  assert.equal(status, 200, text);
}

const count = ({ na }: Place, type: string) =>
  auditEvents(na).filter((event) => event.type === type).length;

const environment = { MESH_ACTIVE_NODE_WINDOW_SECONDS: String(24 * 3600) };

test('agents follow a planned change and its end, and clients that pinned the old key notice nothing until then', async () => {
  await using na = await startTestAuthority({ environment });
  const place: Place = { na };
  const old = na.audience;
  const members = [await memberOf(place), await memberOf(place, { proof: 'header' })];
  const client = createPublicClient({ url: na.url });
  const verifier = createVerifier({ verify: verifySignature, now: na.clock.now });
  const { network_name, root_public_key: rootKey } = await client.readGenesis();
  const trust = createNetworkTrust({
    networkName: network_name,
    authorityKey: old,
    verify: verifySignature,
    now: na.clock.now,
  });
  const reasons = async (by: string | typeof trust) => {
    const sequence = (await client.crl()).sequence;
    return new Set([
      verifier.bulletin(await client.readBulletin(), network_name, by),
      verifier.revocationList(await client.crl(), by),
      verifier.revocationListDelta(await client.crlSince(sequence), await client.crl(), by).reason,
      verifier.policy(await client.readPolicy(), by),
    ]);
  };
  await pass(place, HOUR, members);

  const next = await staged(place, { activatesIn: 6 * HOUR, overlap: DAY });
  await pass(place, 2 * HOUR, members);
  for (const member of members) assert.deepEqual(followed(member), ['planned announced']);
  assert.deepEqual(await reasons(old), new Set(['valid']));

  na.clock.advance(5 * HOUR);
  await activated(na);
  assert.equal(trust.follow(await client.authorityKeys()).refusal, null);
  for (const hours of [3, 6, 12]) {
    await pass(place, hours * HOUR, members);
    assert.deepEqual(await reasons(old), new Set(['valid']));
    assert.deepEqual(await reasons(trust), new Set(['valid']));
  }
  for (const member of members) {
    assert.deepEqual(followed(member), ['planned announced', 'planned in force']);
    assert.equal(member.agent.state().authority_key, next);
    assert.equal(signersOf(member, 'certificate')[0], next);
    assert.equal(signersOf(member, 'certificate').length, 2);
    assert.deepEqual(complaints(member), []);
  }
  assert.equal(count(place, 'certificate_issued'), 2);
  const renewals = count(place, 'certificate_renewed');
  assert.equal(renewals, 2);

  await done(place, 'finish');
  await pass(place, DAY / 4, members);
  assert.deepEqual(await reasons(trust), new Set(['valid']));
  assert.deepEqual(await reasons(old), new Set(['invalid_signature']));
  for (const member of members) assert.deepEqual(complaints(member), []);
  assert.equal((await client.readGenesis()).root_public_key, rootKey);
});

test('agents follow a rollback, across restarts of both sides', async () => {
  const place: Place = { na: await startTestAuthority({ environment }) };
  await using _ = { [Symbol.asyncDispose]: () => place.na[Symbol.asyncDispose]() };
  const old = place.na.audience;
  let member = await memberOf(place);
  await pass(place, HOUR, [member]);
  const restart = async () => {
    place.na = await place.na.restart();
    member = await member.again();
  };
  const next = await staged(place, { activatesIn: HOUR, overlap: DAY });
  await pass(place, HOUR / 2, [member]);
  await restart();
  place.na.clock.advance(HOUR);
  await activated(place.na);
  await restart();
  await pass(place, 2 * HOUR, [member]);
  assert.equal(member.agent.state().authority_key, next);
  assert.deepEqual(complaints(member), []);
  await done(place, 'roll-back');
  await restart();
  await pass(place, 2 * HOUR, [member]);
  assert.equal(member.agent.state().authority_key, old);
  assert.deepEqual(followed(member), ['roll_back in force']);
  await pass(place, (3 * DAY) / 4, [member]);
  await done(place, 'finish');
  await pass(place, DAY / 2, [member]);
  // It no longer has an invite, so this is the same enrollment.
  assert.deepEqual(complaints(member), []);
});

test('after a compromise, agents renew at once, and still learn about revocations', async () => {
  await using na = await startTestAuthority({ environment });
  const place: Place = { na };
  const members = [await memberOf(place), await memberOf(place, { proof: 'header' })];
  await pass(place, HOUR, members);
  const next = await staged(place, { kind: 'compromise' });
  na.clock.advance(MINUTE);
  await activated(na);
  // Each agent learns about it with its next heartbeat.
  await pass(place, HOUR, members);
  for (const member of members) {
    assert.equal(member.agent.state().authority_key, next);
    for (const record of ['certificate', 'crl', 'policy'] as const) {
      assert.deepEqual(signersOf(member, record), [next]);
    }
    assert.deepEqual(complaints(member), []);
  }
  assert.equal(count(place, 'certificate_renewed'), 2);
  const [revoked, other] = members as [Enrolled, Enrolled];
  await operate(na, '/admin/revoke', { cert_id: revoked.agent.state().cert_id });
  na.clock.advance(2000);
  const end = await revoked.agent.turn();
  assert.equal(typeof end === 'number' ? null : end.code, 'certificate_revoked');
  await other.agent.turn();
  assert.equal(other.agent.state().crl_sequence, (await get(na, '/crl')).body.sequence);
});

for (const proof of ['body', 'header'] as const) {
  test(`an agent that was away during a change, its end and a compromise follows without another invite, with its proof in the ${proof}`, async () => {
    await using na = await startTestAuthority({ environment });
    const place: Place = { na };
    const member = await memberOf(place, { proof });
    await pass(place, HOUR, [member]);
    await staged(place, { overlap: HOUR });
    na.clock.advance(MINUTE);
    await activated(na);
    na.clock.advance(DAY);
    const last = await staged(place, { kind: 'compromise' });
    na.clock.advance(MINUTE);
    await activated(na);
    na.clock.advance(DAY);
    const back = await member.again();
    await pass(place, HOUR, [back]);
    assert.equal(back.agent.state().authority_key, last);
    assert.deepEqual(followed(back), ['compromise in force']);
    assert.deepEqual(signersOf(back, 'certificate'), [last]);
    assert.equal(count(place, 'certificate_issued'), 1);
    assert.equal(count(place, 'certificate_renewed'), 1);
    assert.deepEqual(complaints(back), []);
  });
}
