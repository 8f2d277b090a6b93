/** A node agent against a real authority, on a clock that the test sets. */
import assert from 'node:assert/strict';
import { linkSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { folderStorage } from '../src/cli/node/run.ts';
import type { AgentRecord } from '../src/client/agent-storage.ts';
import { keyFromSeed } from '../src/client/keys.ts';
import type { Fetch } from '../src/client/options.ts';
import { renewalOf } from '../src/protocol/records/renewal-window.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND, testClock } from './support/clock.ts';
import { networkFolder, scratchFolder } from './support/folders.ts';
import {
  type Files,
  type Member,
  type MemberOptions,
  newAgentKey,
  refusals,
  startMember,
  storageIn,
  stored,
} from './support/members.ts';
import { auditEvents, get, invite, joinedNode, operate } from './support/requests.ts';
import { sharedCluster } from './support/shared-cluster.ts';
import { until } from './support/until.ts';

const cluster = await sharedCluster();
const shared = sharedAuthority();

const DAY = 24 * HOUR;

/** A month takes minutes. */
const DAYS = Number(process.env.MESH_TEST_FLEET_DAYS ?? 9);
const NODES = DAYS < 30 ? 2 : 8;

interface FleetMember {
  readonly member: Member;
  /** When its next turn is due. */
  at: number;
  /** At which fractions of their lifetime it has renewed its certificates. */
  readonly places: number[];
}

type Responder = (path: string) => Promise<Response | null> | Response | null;

interface Surroundings extends Partial<MemberOptions> {
  readonly files?: Files;
  readonly terms?: object;
  readonly skewMs?: number;
}

const random = (() => {
  let seed = 7;
  return () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
})();

async function agentOf(
  current: { na: TestAuthority },
  { files = new Map(), terms = {}, skewMs = 0, ...further }: Surroundings = {},
): Promise<Member> {
  const { na } = current;
  const token = further.token || files.has('certificate') ? null : await invite(na, { ...terms });
  const options = {
    url: 'http://authority.invalid',
    rootKey: (await get(na, '/genesis')).body.root_public_key,
    token: () => token,
    now: () => current.na.clock.now() + skewMs,
    random,
    wait: () => Promise.resolve(),
    ...further,
    fetch: (url, init) =>
      (further.fetch ?? fetch)(url.replace('http://authority.invalid', current.na.url), init),
  } satisfies MemberOptions;
  return startMember(options, files);
}

async function joined(na: TestAuthority, surroundings: Surroundings = {}): Promise<Member> {
  const member = await agentOf({ na }, surroundings);
  await member.agent.turn();
  return member;
}

/** Whether the stored certificate is valid at this time. */
function isEnrolled({ files }: Member, at: number): boolean {
  const { issued_at, expires_at } = stored(files, 'certificate');
  return Date.parse(issued_at) <= at && at < Date.parse(expires_at);
}

/** Where a fleet finds its authority, which may be replaced or down. */
interface Place extends AsyncDisposable {
  /** The instance that serves. */
  na: TestAuthority;
  /** Stops the instance, and restarts it or lets another one take its place. */
  replace(): Promise<void>;
  /** No instance serves until `start`. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** The longest window, because each heartbeat after a clock jump is stored before it is answered. */
const environment = { MESH_ACTIVE_NODE_WINDOW_SECONDS: String(24 * 3600) };

async function oneInstance(): Promise<Place> {
  const place: Place = {
    na: await startTestAuthority({ environment }),
    replace: () => place.start(),
    stop: () => place.na.stop(),
    async start() {
      place.na = await place.na.restart();
    },
    [Symbol.asyncDispose]: () => place.na[Symbol.asyncDispose](),
  };
  return place;
}

/** An instance that writes, and one that takes over from it. */
async function twoInstances(t: TestContext): Promise<Place> {
  const folder = networkFolder('alpha');
  t.after(() => folder[Symbol.asyncDispose]());
  const clock = testClock();
  const flags = { store: await cluster.createStore() };
  const begin = () => startTestAuthority({ dataDir: folder.path, clock, flags, environment });
  let next: TestAuthority;
  const place: Place = {
    na: await begin(),
    async replace() {
      await place.na.stop();
      place.na = next;
      await isReady(next);
      next = await begin();
    },
    async stop() {
      await Promise.all([next.stop(), place.na.stop()]);
    },
    async start() {
      place.na = await begin();
      await isReady(place.na);
      next = await begin();
    },
    [Symbol.asyncDispose]: () => place.stop(),
  };
  next = await begin();
  return place;
}

function isReady(na: TestAuthority): Promise<void> {
  return until(async () => (await get(na, '/readyz')).status === 200);
}

for (const [what, open] of [
  ['one that restarts', oneInstance],
  ['one that fails over to another', twoInstances],
] as const) {
  test(`a fleet stays enrolled for weeks, whatever happens to its authority, ${what}`, async (t) => {
    await using place = await open(t);
    await keepEnrolled(place);
  });
}

async function keepEnrolled(current: Place): Promise<void> {
  const { clock } = current.na;
  const begun = clock.now();
  const fleet: FleetMember[] = [];
  for (let node = 0; node < NODES; node += 1) {
    const terms = { max_validity_hours: 100, token_expiry_hours: 48 };
    const member = await agentOf(current, { terms });
    fleet.push({ member, at: begun + node * MINUTE, places: [] });
  }
  const outages: [from: number, to: number][] = [[4 * DAY, 5 * DAY]];
  const plan = [
    { day: 2, act: current.replace },
    { day: 4, act: current.stop },
    { day: 5, act: current.start },
    { day: 6, act: async () => void (await operate(current.na, '/admin/policy', {})) },
    ...[8, 15, 22, 27].map((day) => ({ day, act: current.replace })),
  ];
  for (;;) {
    fleet.sort((a, b) => a.at - b.at);
    const [due]: (FleetMember | undefined)[] = fleet;
    assert.ok(due);
    const [next] = plan;
    if (next !== undefined && begun + next.day * DAY <= due.at) {
      clock.advance(Math.max(0, begun + next.day * DAY - clock.now()));
      await next.act();
      plan.shift();
      continue;
    }
    if (due.at > begun + DAYS * DAY) break;
    clock.advance(Math.max(0, due.at - clock.now()));
    const before = due.member.files.get('certificate');
    const wait = await due.member.agent.turn();
    assert.equal(typeof wait, 'number', JSON.stringify(wait));
    due.at = clock.now() + Number(wait);
    const after = due.member.files.get('certificate');
    assert.ok(isEnrolled(due.member, clock.now()), 'without a valid certificate');
    if (before !== undefined && after !== undefined && after !== before) {
      const { cert_id, issued_at, expires_at } = JSON.parse(before);
      const life = { issuedAt: Date.parse(issued_at), expiresAt: Date.parse(expires_at) };
      const since = clock.now() - begun;
      const isLate = outages.some(([from, to]) => since >= from && since < to + DAY / 2);
      if (!isLate) assert.ok(clock.now() - renewalOf(cert_id, life) < MINUTE, 'later than advised');
      due.places.push((clock.now() - life.issuedAt) / (life.expiresAt - life.issuedAt));
    }
  }
  assertSpread(fleet.flatMap((one) => one.places));
  const policy = (await get(current.na, '/policy')).body.policy_id;
  for (const { member } of fleet) assert.equal(member.agent.state().policy_id, policy);

  const [doomed, other] = fleet;
  assert.ok(doomed && other);
  await operate(current.na, '/admin/revoke', {
    cert_id: doomed.member.agent.state().cert_id ?? '',
  });
  clock.advance(2 * SECOND);
  const end = await doomed.member.agent.turn();
  assert.equal(typeof end === 'number' ? end : end.code, 'certificate_revoked');
  assert.equal(stored(doomed.member.files, 'agent').ended.code, 'certificate_revoked');
  assert.equal(typeof (await other.member.agent.turn()), 'number');
  assert.equal(other.member.agent.state().crl_sequence, doomed.member.agent.state().crl_sequence);
}

/** Checks how renewals are spread over the lifetime of certificates; a month has enough of them to judge. */
function assertSpread(places: readonly number[]): void {
  assert.ok(places.length >= 2 * NODES, `${places.length} renewals`);
  if (DAYS < 30) return;
  const bins = new Array<number>(5).fill(0);
  for (const place of places) {
    const bin = Math.min(4, Math.floor((place - 0.5) / 0.05));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  const expected = places.length / 5;
  const chiSquared = bins.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  assert.ok(chiSquared < 18.5, `${chiSquared} of ${bins}: unlikely in one of a thousand runs`);
}

/** 10,000 agents take minutes. */
const AGENTS = Number(process.env.MESH_TEST_FLEET_AGENTS ?? 50);

test(`${AGENTS} agents have a revocation in their folders with their next heartbeat, and one further request each`, async () => {
  await using na = await startTestAuthority();
  await using scratch = scratchFolder();
  const folderOf = (agent: number) => join(scratch.path, String(agent));
  const current = { na };
  let requests = 0;
  const counted: Fetch = (url, init) => {
    requests += 1;
    return fetch(url, init);
  };
  const first = await agentOf(current, { fetch: counted, storage: folderStorage(folderOf(0)) });
  await first.agent.turn();
  const fleet = [first];
  const rootKey: string = (await get(na, '/genesis')).body.root_public_key;
  const tokens: { token_id: string }[] = [];
  while (tokens.length < AGENTS - 1) {
    const count = Math.min(1000, AGENTS - 1 - tokens.length);
    tokens.push(...(await operate(na, '/admin/invite', { count })).body.tokens);
  }
  for (const { token_id: token } of tokens) {
    const folder = folderOf(fleet.length);
    const storage = folderStorage(folder);
    // All of them know the network; each has its own key and joins by itself. Files can be shared, because they are
    // replaced and never modified.
    for (const file of ['genesis.json', 'crl.json', 'policy.json']) {
      linkSync(join(folderOf(0), file), join(folder, file));
    }
    fleet.push(await agentOf(current, { fetch: counted, storage, rootKey, token: () => token }));
  }
  for (let from = 1; from < fleet.length; from += 100) {
    await Promise.all(fleet.slice(from, from + 100).map(({ agent }) => agent.turn()));
  }
  const victim = fleet[AGENTS / 2]?.agent.state().cert_id ?? '';
  const revoked = await operate(na, '/admin/revoke', { cert_id: victim });
  na.clock.advance(2 * SECOND);
  requests = 0;
  let ended = 0;
  for (let from = 0; from < fleet.length; from += 100) {
    const ends = await Promise.all(fleet.slice(from, from + 100).map(({ agent }) => agent.turn()));
    ended += ends.filter((end) => typeof end !== 'number').length;
  }
  assert.equal(ended, 1);
  for (const agent of fleet.keys()) {
    const { sequence } = JSON.parse(readFileSync(join(folderOf(agent), 'crl.json'), 'utf8'));
    assert.equal(sequence, revoked.body.crl_sequence);
  }
  assert.ok(requests <= 2 * fleet.length + 1, `${requests} requests`);
});

test('an agent keeps what it has, and says why, whatever it is offered', async () => {
  await using na = await startTestAuthority();
  await using stranger = await startTestAuthority();
  const current = { na };
  let respond: Responder = () => null;
  const member = await agentOf(current, {
    fetch: async (url, init) => (await respond(new URL(url).pathname)) ?? fetch(url, init),
  });
  const { agent, files, events } = member;
  const served = async ({ url }: TestAuthority, path: string) => (await fetch(url + path)).text();

  /** Revokes the certificate of another node, which the next bulletin says. */
  async function revokeAnother(): Promise<void> {
    const { cert_id } = (await joined(na)).agent.state();
    await operate(na, '/admin/revoke', { cert_id });
    na.clock.advance(2 * SECOND);
  }

  /** Answers with what is offered: the agent complains about it, and keeps its files. */
  async function assertKept(offers: readonly [string, RegExp, Responder][]): Promise<void> {
    const held = new Map(files);
    held.delete('agent');
    for (const [name, expected, answer] of offers) {
      events.length = 0;
      respond = answer;
      assert.equal(typeof (await agent.turn()), 'number', name);
      assert.match(JSON.stringify(events), expected, name);
      for (const [file, text] of held) assert.equal(files.get(file), text, `${name}: ${file}`);
    }
    respond = () => null;
  }

  await agent.turn();
  const older = await served(na, '/crl');
  const olderBulletin = await served(na, '/bulletin');
  await revokeAnother();
  await agent.turn();
  // A bulletin from a few seconds ago may be older than a list that was just read.
  na.clock.advance(10 * SECOND);
  const beat = (bulletin: string) =>
    Response.json({
      ack: true,
      server_time: '2026-01-01T00:00:00Z',
      next_heartbeat_seconds: 30,
      renew_after: '2126-01-01T00:00:00Z',
      notices: [],
      bulletin: JSON.parse(bulletin),
    });
  const at =
    (route: string, answer: () => ReturnType<Responder>): Responder =>
    (path) =>
      path === route ? answer() : null;
  const claimed = { code: 'certificate_revoked', message: 'm', details: {}, request_id: 'r' };
  const theirBulletin = await served(stranger, '/bulletin');
  const faults: readonly [string, RegExp, Responder][] = [
    [
      'a bulletin of another network',
      /authority is not that of/,
      at('/heartbeat', () => beat(theirBulletin)),
    ],
    [
      'an earlier bulletin',
      /revocation list 0, but the stored one is 1/,
      at('/heartbeat', () => beat(olderBulletin)),
    ],
    ['garbage', /unreadable_answer/, () => new Response('<html>')],
    ['an error', /internal_server_error|unreadable/, () => new Response('{}', { status: 500 })],
    [
      'a claim that it is revoked',
      /signed list does not have/,
      at('/heartbeat', () => Response.json({ error: claimed }, { status: 403 })),
    ],
  ];
  for (const fault of faults) {
    await assertKept([fault]);
    assert.match(agent.state().problem ?? '', fault[1], fault[0]);
  }

  // A new revocation, answered with an earlier list, with one of another key, and not at all.
  await revokeAnother();
  const theirList = await served(stranger, '/crl');
  const earlierDelta = await served(na, '/crl?since=0');
  const altered = JSON.stringify({ ...JSON.parse(await served(na, '/crl?since=1')), added: [] });
  const theirDelta = await served(stranger, '/crl?since=0');
  const answered =
    (list: () => ReturnType<Responder>): Responder =>
    async (path) => {
      if (path === '/heartbeat') return beat(await served(na, '/bulletin'));
      return path === '/crl' ? list() : null;
    };
  const of = (text: string) => answered(() => new Response(text));
  await assertKept([
    ['an earlier list', /older than the stored one/, of(older)],
    ['a list of another key', /did not sign it/, of(theirList)],
    ['no list', /No answer/, answered(() => Promise.reject(new Error('gone')))],
    ['a delta of another key', /"delta","problem":"the authority .* did not sign/, of(theirDelta)],
    ['a delta of an earlier list', /"delta","problem":"it does not continue/, of(earlierDelta)],
    ['an altered delta', /"delta","problem":"the resulting list does not match/, of(altered)],
  ]);

  // A new policy, answered with one of another network, and with the previous one.
  const before = await served(na, '/policy');
  const theirPolicy = await served(stranger, '/policy');
  await agent.turn();
  await operate(na, '/admin/policy', {});
  na.clock.advance(2 * SECOND);
  await assertKept([
    [
      'a policy of another network',
      /"policy","problem":"the authority .* did not sign/,
      at('/policy', () => new Response(theirPolicy)),
    ],
    [
      'an earlier policy',
      /"policy","problem":"it is not the policy that the bulletin names/,
      at('/policy', () => new Response(before)),
    ],
  ]);
  events.length = 0;
  await agent.turn();
  assert.deepEqual(refusals(member), []);
  assert.equal(agent.state().problem, null);
  assert.equal(agent.state().crl_sequence, 2);
});

test('an agent accepts a bulletin that is a second old, and a newer list and policy', async () => {
  await using na = await startTestAuthority();
  const other = await joined(na);
  await operate(na, '/admin/revoke', { cert_id: other.agent.state().cert_id });
  let respond: Responder | null = null;
  const member = await agentOf(
    { na },
    {
      fetch: async (url, init) => (await respond?.(new URL(url).pathname)) ?? fetch(url, init),
    },
  );
  const { agent } = member;
  await agent.turn();
  assert.equal(agent.state().crl_sequence, 1);
  assert.deepEqual(refusals(member), []);

  na.clock.advance(2 * SECOND);
  await operate(na, '/admin/policy', {});
  await get(na, '/bulletin');
  na.clock.advance(SECOND / 2);
  const { policy_id: newest } = (await operate(na, '/admin/policy', {})).body;
  assert.notEqual((await get(na, '/bulletin')).body.policy_id, newest);
  await agent.turn();
  assert.equal(agent.state().policy_id, newest);
  assert.deepEqual(refusals(member), []);

  // The previous policy, from an instance that does not know the next one yet.
  na.clock.advance(2 * SECOND);
  const before = await (await fetch(`${na.url}/policy`)).text();
  const { policy_id: next } = (await operate(na, '/admin/policy', {})).body;
  respond = (path: string) => (path === '/policy' ? new Response(before) : null);
  await agent.turn();
  assert.equal(agent.state().policy_id, newest);
  assert.deepEqual(refusals(member), []);
  respond = null;
  await agent.turn();
  assert.equal(agent.state().policy_id, next);
});

/** Forwards requests, but loses the next `answers` answers for this path. */
function losing(lost: { path: string; answers: number }): Fetch {
  return async (url, init) => {
    const answer = await fetch(url, init);
    if (new URL(url).pathname !== lost.path || lost.answers === 0) return answer;
    lost.answers -= 1;
    throw new Error('the connection broke');
  };
}

test('an agent whose answers are lost for minutes joins once, renews once, and continues with what it got', async () => {
  await using na = await startTestAuthority();
  const lost = { path: '/join', answers: 3 };
  const terms = { max_validity_hours: 100 };
  const { agent } = await agentOf({ na }, { fetch: losing(lost), terms });
  async function untilFound(): Promise<void> {
    while (lost.answers > 0) {
      const wait = await agent.turn();
      assert.equal(typeof wait, 'number', JSON.stringify(wait));
      na.clock.advance(Number(wait));
    }
    await agent.turn();
    assert.equal(agent.state().problem, null);
  }
  await untilFound();
  const { cert_id: first } = agent.state();

  na.clock.advance(80 * HOUR);
  Object.assign(lost, { path: '/renew', answers: 4 });
  await untilFound();
  const { cert_id: second } = agent.state();
  const changes = auditEvents(na).filter(({ type }) =>
    /^certificate_(?:issued|renewed)$/.test(type),
  );
  assert.deepEqual(
    changes.map(({ details }) => details.new_cert_id ?? details.cert_id),
    [first, second],
  );
});

test('an agent that never learns the outcome of its renewal requests another while its certificate is accepted', async () => {
  await using na = await startTestAuthority();
  const lost = { path: '/renew', answers: 1 };
  const { agent } = await agentOf(
    { na },
    { fetch: losing(lost), terms: { max_validity_hours: 100 } },
  );
  await agent.turn();
  const { cert_id: first } = agent.state();
  na.clock.advance(80 * HOUR);
  await agent.turn();
  assert.equal(agent.state().cert_id, first);
  na.clock.advance(6 * MINUTE);
  await agent.turn();
  assert.equal(agent.state().problem, null);
  const renewals = auditEvents(na).filter(({ type }) => type === 'certificate_renewed');
  assert.deepEqual(
    renewals.map(({ details }) => details.old_cert_id),
    [first, first],
  );
  assert.equal(agent.state().cert_id, renewals[1]?.details.new_cert_id);
});

for (const [path, age, outage] of [
  ['/join', 0, 4.5 * MINUTE],
  ['/renew', 80 * HOUR, 14 * MINUTE],
] as const) {
  test(`an agent that loses the answer to ${path} has its certificate after an outage of ${outage / MINUTE} minutes`, async () => {
    const na = await shared();
    let downSince: number | null = null;
    const { agent } = await agentOf(
      { na },
      {
        terms: { max_validity_hours: 100 },
        random: () => 1,
        fetch: async (url, init) => {
          if (na.clock.now() < (downSince ?? 0) + outage) throw new Error('down');
          const answer = await fetch(url, init);
          if (!url.endsWith(path) || downSince !== null) return answer;
          downSince = na.clock.now();
          throw new Error('down');
        },
      },
    );
    if (age > 0) await agent.turn();
    na.clock.advance(age);
    const { cert_id: before } = agent.state();
    while (agent.state().cert_id === before) {
      const wait = await agent.turn();
      assert.equal(typeof wait, 'number', JSON.stringify(wait));
      na.clock.advance(Number(wait));
    }
    assert.equal(agent.state().problem, null);
  });
}

async function unsigned(): Promise<Response> {
  return Response.json({ error: { code: 'signer_unavailable', message: 'm' } }, { status: 503 });
}

for (const [what, problem, answer] of [
  ['is refused', /\(signer_unavailable\)/, unsigned],
  [
    'is answered with a certificate of another key',
    /certificate .* is rejected: no signature verifies/,
    async (files: Files) =>
      Response.json({ ...stored(files, 'certificate'), roles: ['role:other'] }),
  ],
] as const) {
  test(`an agent whose renewal ${what} sends heartbeats as before, and tries again less and less often`, async () => {
    const na = await shared();
    const files: Files = new Map();
    let renewals = 0;
    let isSpoiled = true;
    const { agent } = await joined(na, {
      files,
      terms: { max_validity_hours: 100 },
      fetch: (url, init) => {
        if (!isSpoiled || !url.endsWith('/renew')) return fetch(url, init);
        renewals += 1;
        return answer(files);
      },
    });
    na.clock.advance(80 * HOUR);
    const { cert_id: first } = agent.state();
    for (const end = na.clock.now() + HOUR; na.clock.now() < end; ) {
      const wait = Math.round(Number(await agent.turn()));
      assert.equal(Date.parse(agent.state().last_heartbeat ?? ''), na.clock.now());
      assert.match(agent.state().problem ?? '', problem);
      assert.ok(wait > 10 * SECOND && wait < 2 * MINUTE, `${wait}`);
      na.clock.advance(wait);
    }
    assert.ok(renewals > 4 && renewals < 15, `${renewals} attempts`);
    isSpoiled = false;
    na.clock.advance(15 * MINUTE);
    await agent.turn();
    assert.notEqual(agent.state().cert_id, first);
    assert.equal(agent.state().problem, null);
  });
}

for (const [what, problem, fail] of [
  ['is refused', /\(signer_unavailable\)/, unsigned],
  ['does not arrive', /down/, () => Promise.reject(new Error('down'))],
] as const) {
  test(`an agent whose fetch of the revocation list ${what} sends heartbeats as before, and fetches it when it can`, async () => {
    const na = await shared();
    let isSpoiled = true;
    const { agent } = await joined(na, {
      terms: { max_validity_hours: 1000 },
      fetch: (url, init) => (isSpoiled && /\/crl\b/.test(url) ? fail() : fetch(url, init)),
    });
    assert.equal(agent.state().cert_id, null, 'it does not join without it');
    isSpoiled = false;
    await agent.turn();
    const { crl_sequence: known } = agent.state();
    isSpoiled = true;
    na.clock.advance(13 * HOUR);
    await operate(na, '/admin/revoke', { cert_id: (await joinedNode(na)).certId });
    for (const end = na.clock.now() + HOUR; na.clock.now() < end; ) {
      const wait = Math.round(Number(await agent.turn()));
      assert.equal(Date.parse(agent.state().last_heartbeat ?? ''), na.clock.now());
      assert.match(agent.state().problem ?? '', problem);
      assert.ok(wait > SECOND && wait < 2 * MINUTE, `${wait}`);
      na.clock.advance(wait);
    }
    assert.equal(agent.state().crl_sequence, known);
    isSpoiled = false;
    await agent.turn();
    assert.ok(Number(agent.state().crl_sequence) > Number(known));
    assert.equal(agent.state().problem, null);
  });
}

test('an agent sends heartbeats while nothing is signed for it, and asks for its renewal less and less often', async () => {
  const na = await shared();
  let isSpoiled = false;
  let renewals = 0;
  const { agent } = await joined(na, {
    terms: { max_validity_hours: 100 },
    fetch: (url, init) => {
      if (!isSpoiled || !/\/(?:renew|crl)\b/.test(url)) return fetch(url, init);
      if (url.endsWith('/renew')) renewals += 1;
      return unsigned();
    },
  });
  na.clock.advance(80 * HOUR);
  isSpoiled = true;
  for (const end = na.clock.now() + HOUR; na.clock.now() < end; ) {
    const wait = Math.round(Number(await agent.turn()));
    assert.equal(Date.parse(agent.state().last_heartbeat ?? ''), na.clock.now());
    na.clock.advance(wait);
  }
  assert.ok(renewals > 4 && renewals < 15, `${renewals} attempts`);
});

test('an agent whose clock jumps a year in both directions keeps its certificate, and ends when it has expired', async () => {
  const na = await shared();
  const key = newAgentKey();
  const { files } = await joined(na, { key });
  let ahead = 0;
  const now = () => na.clock.now() + ahead;
  const { agent, events } = await agentOf({ na }, { key, files, now });
  for (ahead of [366 * DAY, -366 * DAY]) {
    assert.equal(typeof (await agent.turn()), 'number');
    assert.match(JSON.stringify(events.splice(0)), /timestamp is too old, or too far ahead/);
  }
  ahead = 0;
  assert.equal(typeof (await agent.turn()), 'number');
  assert.equal(agent.state().problem, null);
  na.clock.advance(8 * DAY);
  const end = await agent.turn();
  assert.equal(typeof end === 'number' ? end : end.code, 'certificate_expired');
});

test('an agent waits when it is asked for a negative pause', async () => {
  const na = await shared();
  const answer = () => new Response('{}', { status: 503, headers: { 'retry-after': '-1000' } });
  const { agent } = await agentOf({ na }, { fetch: () => Promise.resolve(answer()) });
  assert.ok(Number(await agent.turn()) > SECOND);
});

test('an agent whose clock is off by ten minutes keeps what it has, and says why', async () => {
  const na = await shared();
  const key = newAgentKey();
  const { files } = await joined(na, { key });
  const late = await agentOf({ na }, { key, files, skewMs: 10 * MINUTE });
  assert.equal(typeof (await late.agent.turn()), 'number');
  assert.match(late.agent.state().problem ?? '', /timestamp is too old, or too far ahead/);
});

test('an agent does not start with damaged files, or those of another network or node', async () => {
  const na = await shared();
  const key = newAgentKey();
  const { files } = await joined(na, { key });
  const start = (changed: Partial<Record<AgentRecord, string>>, further: Surroundings = {}) =>
    agentOf(
      { na },
      {
        key,
        files: new Map([...files, ...(Object.entries(changed) as [AgentRecord, string][])]),
        ...further,
      },
    );
  await assert.rejects(start({ genesis: '{"network_name"' }), /stored genesis is damaged/);
  await assert.rejects(start({ certificate: '{}' }), /stored certificate is damaged/);
  await assert.rejects(start({}, { key: newAgentKey() }), /stored certificate is for another key/);
  const otherRoot = keyFromSeed(new Uint8Array(32)).publicKey;
  await assert.rejects(start({}, { rootKey: otherRoot }), /stored genesis is signed for root key/);
  await using stranger = await startTestAuthority();
  const theirs = await (await fetch(`${stranger.url}/crl`)).text();
  await assert.rejects(
    start({ crl: theirs }),
    /stored revocation list does not belong to this network/,
  );
  const again = await start({});
  assert.equal(typeof (await again.agent.turn()), 'number');
});

test('an agent fetches damaged lists and policies again', async () => {
  const na = await shared();
  const key = newAgentKey();
  const { files } = await joined(na, { key });
  for (const [record, text] of [
    ['crl', ''],
    ['crl', '{"crl_id"'],
    ['policy', '[]'],
    ['policy', ''],
  ] as const) {
    const before = files.get(record);
    const again = await agentOf({ na }, { key, files: new Map([...files, [record, text]]) });
    assert.equal(typeof (await again.agent.turn()), 'number');
    assert.equal(again.files.get(record), before, text);
    assert.deepEqual(again.events[0], { type: 'damaged', record });
  }
});

test('a copy of a node renews first: the other says what happened to its certificate', async () => {
  const na = await shared();
  const key = newAgentKey();
  const { files, agent } = await joined(na, { key, terms: { max_validity_hours: 10 } });
  const copy = await agentOf({ na }, { key, files: new Map(files) });
  na.clock.advance(8 * HOUR);
  await copy.agent.turn();
  na.clock.advance(16 * MINUTE);
  await agent.turn();
  assert.match(
    agent.state().problem ?? '',
    /\(certificate_superseded\): a copy of what this node /,
  );
});

for (const [what, later, refusal] of [
  ['is superseded', 16 * MINUTE, null],
  ['has expired', 3 * HOUR, null],
  ['is unknown to an authority that was restored', 0, 'certificate_not_found'],
] as const) {
  test(`an agent whose certificate ${what} takes the one that another program has put into its folder`, () =>
    takesStored(later, refusal));
}

async function takesStored(later: number, refusal: string | null): Promise<void> {
  const na = await shared();
  const key = newAgentKey();
  let first: string | null = null;
  const member = await joined(na, {
    key,
    terms: { max_validity_hours: 10 },
    fetch: async (url, init) => {
      const isRefused = refusal !== null && first !== null && init.body?.includes(first);
      if (!isRefused) return fetch(url, init);
      return Response.json({ error: { code: refusal, message: 'm' } }, { status: 403 });
    },
  });
  const { files, agent, events } = member;
  first = agent.state().cert_id;
  const other = await agentOf({ na }, { key, files });
  na.clock.advance(8 * HOUR);
  await other.agent.turn();
  na.clock.advance(later);
  await agent.turn();
  await agent.turn();
  const { cert_id, problem } = agent.state();
  assert.deepEqual([cert_id, problem], [stored(files, 'certificate').cert_id, null]);
  assert.deepEqual(refusals(member), []);
  assert.ok(events.every(({ type }) => type !== 'failed'));
}

test('an agent that cannot store anything continues to send heartbeats, spends no invite, and stores everything later', async () => {
  await using na = await startTestAuthority();
  const files: Files = new Map();
  let isFull = true;
  const storage = storageIn(files, () => isFull);
  const terms = { max_validity_hours: 168 };
  const { agent, events } = await agentOf({ na }, { storage, terms });
  assert.equal(typeof (await agent.turn()), 'number');
  assert.equal(agent.state().problem, 'The invite was not used: no space left');
  isFull = false;
  await agent.turn();
  const { cert_id: first } = agent.state();
  assert.ok(first !== null, 'the invite is still good');
  const before = new Map(files);

  isFull = true;
  await operate(na, '/admin/policy', { allowed_ports: [8443], allowed_services: ['telemetry'] });
  const other = await joined(na);
  await operate(na, '/admin/revoke', { cert_id: other.agent.state().cert_id });
  na.clock.advance(100 * HOUR);
  const next = await agent.turn();
  assert.ok(typeof next === 'number' && next > 10 * SECOND, `${next}`);
  assert.equal(Date.parse(agent.state().last_heartbeat ?? ''), na.clock.now());
  assert.deepEqual([agent.state().cert_id, agent.state().problem], [first, 'no space left']);
  const { crl_sequence: known } = agent.state();
  assert.ok(
    known !== null && known > stored(before, 'crl').sequence,
    'it knows what it cannot store',
  );
  assert.deepEqual(files, before);

  na.clock.advance(30 * HOUR);
  await agent.turn();
  const { cert_id: second } = agent.state();
  assert.notEqual(second, first, 'the window is over: better renewed than expired');
  assert.deepEqual(files, before);
  isFull = false;
  await agent.turn();
  assert.equal(agent.state().problem, null);
  assert.equal(stored(files, 'certificate').cert_id, second);
  assert.equal(stored(files, 'crl').sequence, agent.state().crl_sequence);
  assert.deepEqual(
    events.flatMap((event) => (event.type === 'storage' ? [event.problem] : [])),
    ['no space left', null, 'no space left', null],
  );
});

test('a certificate that cannot be stored is stored in a later turn', async () => {
  const na = await shared();
  const files: Files = new Map();
  let isFull = true;
  const storage = storageIn(files, (name) => isFull && name === 'certificate');
  const { agent } = await agentOf({ na }, { storage });
  await agent.turn();
  assert.match(agent.state().problem ?? '', /no space left/);
  isFull = false;
  await agent.turn();
  assert.equal(stored(files, 'certificate').cert_id, agent.state().cert_id);
});
