/**
 * Agents and clients of a real authority whose key is replaced [authority-keys-7], also those that pinned its key and know
 * nothing of successions [authority-keys-10].
 */
import assert from 'node:assert/strict';
import { createHash, createPublicKey, verify } from 'node:crypto';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { createNetworkTrust } from '../src/client/followed-keys.ts';
import { createVerifier } from '../src/client/offline.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { fetchAgain } from './support/agent-fleet.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
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
import {
  auditEvents,
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type TestNode,
} from './support/requests.ts';
import { activated, DAY, type Draft, stage, step, succession } from './support/successions.ts';
import { attest, issued, recognize, revokeAttestation } from './support/trust.ts';

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

// Clients that pinned the authority's key and know nothing of successions can read everything during the overlap
// [authority-keys-10].

type Json = { readonly [name: string]: unknown };

/** The readers of a network, and what they have received so far. */
interface Readers {
  readonly client: EarlierClient;
  readonly nodes: TestNode[];
  readonly attestations: string[];
  readonly treaties: string[];
  /** Records as they were received. */
  readonly kept: [string, EarlierRecord, Json][];
}

/** What fails for the readers at this time; every request is addressed to the pinned key. */
async function failuresAt(na: TestAuthority, at: string, readers: Readers): Promise<string[]> {
  const { client, nodes, attestations, treaties, kept } = readers;
  const found: string[] = [];
  const body = async (path: string) => {
    const answer = await get(na, path);
    check(path, problemOf(outcome(answer)));
    return answer.body;
  };
  const check = (what: string, problem: string | null) => {
    if (problem !== null) found.push(`${what}: ${problem}`);
  };
  const verify = (what: string, record: EarlierRecord, received: Json) =>
    check(what, client.verifies(record, received) ? null : 'it is not signed');
  const keep = (record: EarlierRecord, received: Json) => {
    kept.push([`${record} of ${at}`, record, received]);
    verify(`new ${record}`, record, received);
  };
  const { sequence } = await body('/crl');
  check('crl', client.takeList(await body('/crl'), na.clock.now()));

  const key = newKey();
  const joined = await nodeRequest(na, '/join', key, { invite_token: await invite(na) });
  keep('certificate', joined.body);
  const renewed = await nodeRequest(na, '/renew', key, { cert_id: joined.body.cert_id });
  keep('certificate', renewed.body);
  nodes.push({ key, certId: renewed.body.cert_id });
  for (const node of nodes) check('heartbeat', problemOf(outcome(await heartbeat(na, node))));

  const attestation = await issued(attest(na, { validity_hours: 2000 }));
  const treaty = await issued(recognize(na, { validity_hours: 2000 }));
  keep('attestation', attestation);
  keep('treaty', treaty);
  attestations.push(String(attestation.attestation_id));
  treaties.push(String(treaty.treaty_id));
  for (const id of attestations) {
    verify(`attestation ${id}`, 'attestation', (await body(`/attestations/${id}`)).attestation);
  }
  for (const id of treaties) {
    verify(`treaty ${id}`, 'treaty', (await body(`/recognition-treaties/${id}`)).treaty);
  }
  const license = await operate(na, '/admin/data-usage/policy', {
    licensee_sovereign_id: 'beta',
    allowed_source_ids: ['s-1'],
    allowed_access_types: ['read'],
    max_volume_bytes_per_session: 1000,
    valid_from: formatInstant(na.clock.now()),
    valid_until: formatInstant(na.clock.now() + HOUR),
  });
  keep('license', license.body);

  const revoked = await joinedNode(na);
  await operate(na, '/admin/revoke', { cert_id: revoked.certId });
  await revokeAttestation(na, (await issued(attest(na))).attestation_id);
  na.clock.advance(2 * SECOND);
  check('delta', client.continueList(await body(`/crl?since=${sequence}`), na.clock.now()));
  check('bulletin', client.takeBulletin(await body('/bulletin')));
  verify('policy', 'policy', await body('/policy'));
  verify('license', 'license', await body('/data-usage/policy'));
  verify('feed', 'feed', await body('/sovereign-revocation-feed'));
  for (const [what, record, received] of kept) verify(`kept ${what}`, record, received);
  return found;
}

const problemOf = (answer: string) => (answer === '200' ? null : answer);

async function readersOf(na: TestAuthority): Promise<Readers> {
  const { network_name } = (await get(na, '/genesis')).body;
  const client = createEarlierClient(network_name, na.audience);
  return { client, nodes: [], attestations: [], treaties: [], kept: [] };
}

for (const [end, isRolledBack] of [
  ['its end', false],
  ['it is rolled back', true],
] as const) {
  test(`clients of an earlier build verify everything through a planned change until ${end}`, async () => {
    await using started = await startTestAuthority();
    let na = started;
    const readers = await readersOf(na);
    const reads = async (at: string) =>
      assert.deepEqual(await failuresAt(na, at, readers), [], `${at}`);
    const passUntil = (instant: number) => na.clock.advance(instant - na.clock.now());

    await reads('before');
    const signed = await succession(na, { activatesIn: HOUR, overlap: 2 * DAY });
    const [activatesAt, overlapUntil] = [
      signed.statement.activates_at,
      signed.statement.overlap_until,
    ].map(Date.parse) as [number, number];
    assert.equal(outcome(await stage(na, signed)), '200');
    await reads('staged');
    passUntil(activatesAt - 10 * SECOND);
    await reads('a moment before the activation');
    passUntil(activatesAt);
    await activated(na);
    await reads('activated');
    // Keeps the audience, although the restarted authority would use the new key.
    na = { ...(await na.restart()), audience: na.audience };
    await using _ = { [Symbol.asyncDispose]: () => na[Symbol.asyncDispose]() };
    na.clock.advance(DAY);
    await reads('within the overlap');
    if (isRolledBack) {
      assert.equal(outcome(await step(na, 'roll-back')), '200');
      await reads('rolled back');
    }
    passUntil(overlapUntil - 10 * SECOND);
    await reads('a moment before the end of the overlap');
    passUntil(overlapUntil);
    await na.keepKeys();
    if (isRolledBack) {
      await reads('after the overlap');
      return;
    }

    // What they have remains valid; new records no longer verify.
    for (const [what, record, received] of readers.kept) {
      assert.ok(readers.client.verifies(record, received), what);
    }
    const { body: crl } = await get(na, '/crl');
    assert.equal(readers.client.takeList(crl, na.clock.now()), 'it is not signed');
    na.clock.advance(2 * SECOND);
    const { body: bulletin } = await get(na, '/bulletin');
    assert.equal(readers.client.takeBulletin(bulletin), 'it is not signed');
  });
}

// A client from before there were successions, written from the contract alone: it has pinned the authority's key, verifies
// with Node's own cryptography, and drops members that it does not know [core-1-4].

/** The signed members of each record, in the version of the contract that this client was written for. */
const MEMBERS = {
  certificate: 'cert_id node_public_key network_name roles issued_at expires_at issued_by',
  crl: 'crl_id sequence issued_at next_update issuer revoked_certificates',
  delta: 'crl_id sequence issued_at next_update issuer list_signatures entries_digest',
  policy: 'policy_id issued_by min_client_version issued_at allowed_ports allowed_services routing',
  bulletin:
    'version network_name issued_at crl_sequence crl_digest policy_id genesis_digest log_size',
  attestation:
    'attestation_id issuer_sovereign_id subject_id issued_by subject_public_key roles status issued_at valid_from expires_at claims',
  treaty:
    'treaty_id issuer_sovereign_id subject_sovereign_id issued_by subject_public_keys scope status issued_at valid_from expires_at metadata',
  feed: 'feed_id issuer_sovereign_id issued_by sequence issued_at revoked_attestation_ids revocation_reasons',
  license:
    'policy_id licensor_sovereign_id licensee_sovereign_id allowed_source_ids allowed_access_types max_volume_bytes_per_session prohibited_classification_tags valid_from valid_until',
} as const;

type EarlierRecord = keyof typeof MEMBERS;

interface EarlierClient {
  /** Whether any signature verifies under the pinned key. */
  verifies(record: EarlierRecord, received: Json): boolean;
  /** Accepts a whole list, and then a delta; returns what is wrong, or null [core-5-5] [core-5-5-1]. */
  takeList(crl: Json, now: number): string | null;
  continueList(delta: Json, now: number): string | null;
  /** What is wrong with a bulletin by the four checks of [core-5-14], or null. */
  takeBulletin(bulletin: Json): string | null;
}

function createEarlierClient(networkName: string, pinnedKey: string): EarlierClient {
  const raw = Buffer.from(pinnedKey, 'base64');
  const prefix = Buffer.from('302a300506032b6570032100', 'hex');
  const key = createPublicKey({ key: Buffer.concat([prefix, raw]), format: 'der', type: 'spki' });
  let entries: readonly unknown[] = [];
  let sequence = -1;
  let digest = '';
  let logSize = 0;

  function verifies(record: EarlierRecord, received: Json): boolean {
    const members = MEMBERS[record].split(' ').map((name) => [name, received[name]]);
    const text = Buffer.from(canonical(Object.fromEntries(members)));
    const signatures = received.signatures ?? [received.signature];
    return (signatures as { sig: string }[]).some(({ sig }) =>
      verify(null, text, key, Buffer.from(sig, 'base64')),
    );
  }

  function take(list: Json, all: readonly unknown[], now: number): string | null {
    if (Number(list.sequence) < sequence) return 'its sequence is lower';
    if (canonical(all.slice(0, entries.length)) !== canonical(entries)) return 'it lacks entries';
    if (Date.parse(String(list.next_update)) < now) return 'it is stale';
    entries = all;
    sequence = Number(list.sequence);
    digest = createHash('sha256')
      .update(`${list.issuer}\n${all.map(canonical).join(',')}`)
      .digest('hex');
    return null;
  }

  return {
    verifies,
    takeList(crl, now) {
      if (!verifies('crl', crl)) return 'it is not signed';
      return take(crl, crl.revoked_certificates as unknown[], now);
    },
    continueList(delta, now) {
      if (!verifies('delta', delta)) return 'it is not signed';
      if (delta.base_sequence !== sequence) return 'it continues another list';
      const problem = take(delta, [...entries, ...(delta.added as unknown[])], now);
      return problem ?? (digest === delta.entries_digest ? null : 'its digest is another one');
    },
    takeBulletin(bulletin) {
      if (!verifies('bulletin', bulletin)) return 'it is not signed';
      if (bulletin.network_name !== networkName) return 'it is of another network';
      if (Number(bulletin.crl_sequence) < sequence) return 'it is older than the list';
      if (bulletin.crl_sequence === sequence) {
        if (bulletin.crl_digest !== digest) return 'it names another list';
        if (Number(bulletin.log_size) < logSize) return 'it is older than another one';
      }
      logSize = Number(bulletin.log_size);
      return null;
    },
  };
}

/** Canonical JSON [core-1-1] of values without floats, and of ASCII text. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, each]) => `${JSON.stringify(name)}:${canonical(each)}`).join(',')}}`;
}
