/** A node agent against a real authority, on a clock that the test sets. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import { folderStorage } from '../src/cli/node/run.ts';
import type { AgentRecord, AgentStorage } from '../src/client/agent-storage.ts';
import { keyFromSeed, type SigningKey } from '../src/client/keys.ts';
import {
  type AgentEvent,
  createNodeAgent,
  type NodeAgent,
  type NodeAgentOptions,
} from '../src/client/node-agent.ts';
import type { Fetch } from '../src/client/options.ts';
import { renewalOf } from '../src/protocol/records/renewal-window.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND, testClock } from './support/clock.ts';
import { networkFolder, scratchFolder } from './support/folders.ts';
import { auditEvents, get, invite, operate } from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { sharedCluster } from './support/shared-cluster.ts';
import { until } from './support/until.ts';

const cluster = await sharedCluster();
const shared = sharedAuthority();

const DAY = 24 * HOUR;

/** A month takes minutes. */
const DAYS = Number(process.env.MESH_TEST_FLEET_DAYS ?? 9);
const NODES = DAYS < 30 ? 2 : 8;

interface Harness {
  readonly agent: NodeAgent;
  readonly files: Map<AgentRecord, string>;
  readonly events: AgentEvent[];
  /** Restarts it with what it has stored. */
  again(): Promise<Harness>;
}

interface FleetMember {
  readonly harness: Harness;
  /** When its next turn is due. */
  at: number;
  /** At which fractions of their lifetime it has renewed its certificates. */
  readonly places: number[];
}

type Responder = (path: string) => Promise<Response | null> | Response | null;

interface Surroundings {
  readonly fetch?: Fetch;
  readonly key?: SigningKey;
  readonly files?: Map<AgentRecord, string>;
  /** Replaces the storage in `files`. */
  readonly storage?: AgentStorage;
  readonly terms?: object;
  readonly skewMs?: number;
  readonly rootKey?: string;
  readonly token?: string;
}

/** A native key, because hundreds of agents sign and verify in this process. */
function newKey(): SigningKey {
  const { publicKey, sign } = signerFromSeed(randomBytes(32));
  return { publicKey, sign: (bytes) => Buffer.from(sign(bytes), 'base64') };
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
  surroundings: Surroundings = {},
): Promise<Harness> {
  const { key = newKey(), files = new Map(), terms = {}, skewMs = 0 } = surroundings;
  const { storage = storageIn(files, () => false) } = surroundings;
  const { na } = current;
  const token =
    surroundings.token ?? (files.has('certificate') ? null : await invite(na, { ...terms }));
  const rootKey = surroundings.rootKey ?? (await get(na, '/genesis')).body.root_public_key;
  const events: AgentEvent[] = [];
  const agent = await createNodeAgent({
    url: 'http://authority.invalid',
    fetch: (url, init) =>
      (surroundings.fetch ?? fetch)(url.replace('http://authority.invalid', current.na.url), init),
    key,
    rootKey,
    storage,
    verify: verifySignature,
    token: () => token,
    now: () => current.na.clock.now() + skewMs,
    random,
    wait: () => Promise.resolve(),
    onEvent: (event) => events.push(event),
  });
  return { agent, files, events, again: () => agentOf(current, { ...surroundings, key, files }) };
}

function refusals({ events }: Harness): string[] {
  return events.flatMap((event) =>
    event.type === 'refused' ? [`${event.what}: ${event.problem}`] : [],
  );
}

/** Whether the stored certificate is valid at this time. */
function isEnrolled({ files }: Harness, at: number): boolean {
  const { issued_at, expires_at } = JSON.parse(files.get('certificate') ?? '{}');
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
    const harness = await agentOf(current, { terms });
    fleet.push({ harness, at: begun + node * MINUTE, places: [] });
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
    const before = due.harness.files.get('certificate');
    const wait = await due.harness.agent.turn();
    assert.equal(typeof wait, 'number', JSON.stringify(wait));
    due.at = clock.now() + Number(wait);
    const after = due.harness.files.get('certificate');
    assert.ok(isEnrolled(due.harness, clock.now()), 'without a valid certificate');
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
  for (const { harness } of fleet) assert.equal(harness.agent.state().policy_id, policy);

  const [doomed, other] = fleet;
  assert.ok(doomed && other);
  await operate(current.na, '/admin/revoke', {
    cert_id: doomed.harness.agent.state().cert_id ?? '',
  });
  clock.advance(2 * SECOND);
  const end = await doomed.harness.agent.turn();
  assert.equal(typeof end === 'number' ? end : end.code, 'certificate_revoked');
  assert.equal(
    JSON.parse(doomed.harness.files.get('agent') ?? '{}').ended.code,
    'certificate_revoked',
  );
  assert.equal(typeof (await other.harness.agent.turn()), 'number');
  assert.equal(other.harness.agent.state().crl_sequence, doomed.harness.agent.state().crl_sequence);
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
    fleet.push(await agentOf(current, { fetch: counted, storage, rootKey, token }));
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
  let respond: Responder | null = null;
  const fetchThrough: Fetch = async (url, init) =>
    (await respond?.(new URL(url).pathname)) ?? fetch(url, init);
  const harness = await agentOf(current, { fetch: fetchThrough });
  const { agent, files, events } = harness;
  await agent.turn();
  const older = await (await fetch(`${na.url}/crl`)).text();
  const olderBulletin = await (await fetch(`${na.url}/bulletin`)).text();
  const victim = await agentOf(current);
  await victim.agent.turn();
  await operate(na, '/admin/revoke', { cert_id: victim.agent.state().cert_id ?? '' });
  na.clock.advance(2 * SECOND);
  await agent.turn();
  const held = new Map(files);
  held.delete('agent');
  // A bulletin from a few seconds ago may be older than a list that was just read.
  na.clock.advance(10 * SECOND);

  const json = (body: string | object) =>
    new Response(typeof body === 'string' ? body : JSON.stringify(body));
  const beat = (bulletin: unknown) => ({
    ack: true,
    server_time: '2026-01-01T00:00:00Z',
    next_heartbeat_seconds: 30,
    renew_after: '2126-01-01T00:00:00Z',
    notices: [],
    bulletin,
  });
  const theirs = JSON.parse(await (await fetch(`${stranger.url}/bulletin`)).text());
  const news = () =>
    fetch(`${na.url}/bulletin`).then(async (answer) => JSON.parse(await answer.text()));
  const offers: [name: string, expected: RegExp, answer: Responder][] = [
    [
      'a bulletin of another network',
      /authority is not that of/,
      (path) => (path === '/heartbeat' ? json(beat(theirs)) : null),
    ],
    [
      'an earlier bulletin',
      /revocation list 0, but the stored one is 1/,
      (path) => (path === '/heartbeat' ? json(beat(JSON.parse(olderBulletin))) : null),
    ],
    ['garbage', /unreadable_answer/, () => new Response('<html>')],
    ['an error', /internal_server_error|unreadable/, () => new Response('{}', { status: 500 })],
    [
      'a claim that it is revoked',
      /signed list does not have/,
      (path) =>
        path === '/heartbeat'
          ? new Response(
              JSON.stringify({
                error: { code: 'certificate_revoked', message: 'm', details: {}, request_id: 'r' },
              }),
              { status: 403 },
            )
          : null,
    ],
  ];
  for (const [name, expected, answer] of offers) {
    events.length = 0;
    respond = answer;
    assert.equal(typeof (await agent.turn()), 'number', name);
    assert.match(JSON.stringify(events), expected, name);
    assert.match(agent.state().problem ?? '', expected, name);
    for (const [file, text] of held) assert.equal(files.get(file), text, `${name}: ${file}`);
  }

  // A new revocation, answered with an earlier list, with one of another key, and not at all.
  const another = await agentOf(current);
  await another.agent.turn();
  await operate(na, '/admin/revoke', { cert_id: another.agent.state().cert_id ?? '' });
  na.clock.advance(2 * SECOND);
  const theirList = await (await fetch(`${stranger.url}/crl`)).text();
  const earlierDelta = await (await fetch(`${na.url}/crl?since=0`)).text();
  const altered = { ...JSON.parse(await (await fetch(`${na.url}/crl?since=1`)).text()), added: [] };
  const theirDelta = await (await fetch(`${stranger.url}/crl?since=0`)).text();
  const lists: [string, RegExp, () => Response | Promise<Response>][] = [
    ['an earlier list', /older than the stored one/, () => json(older)],
    ['a list of another key', /did not sign it/, () => json(theirList)],
    ['no list', /No answer/, () => Promise.reject(new Error('gone'))],
    [
      'a delta of another key',
      /"delta","problem":"the authority .* did not sign/,
      () => json(theirDelta),
    ],
    [
      'a delta of an earlier list',
      /"delta","problem":"it does not continue/,
      () => json(earlierDelta),
    ],
    [
      'an altered delta',
      /"delta","problem":"the resulting list does not match/,
      () => json(altered),
    ],
  ];
  for (const [name, expected, list] of lists) {
    events.length = 0;
    respond = async (path) => {
      if (path === '/heartbeat') return json(beat(await news()));
      return path === '/crl' ? list() : null;
    };
    assert.equal(typeof (await agent.turn()), 'number', name);
    assert.match(JSON.stringify(events), expected, name);
    for (const [file, text] of held) assert.equal(files.get(file), text, `${name}: ${file}`);
  }

  // A new policy, answered with one of another network, and with the previous one.
  const before = await (await fetch(`${na.url}/policy`)).text();
  const theirPolicy = await (await fetch(`${stranger.url}/policy`)).text();
  respond = null;
  await agent.turn();
  for (const [file, text] of files) held.set(file, text);
  held.delete('agent');
  await operate(na, '/admin/policy', {});
  na.clock.advance(2 * SECOND);
  for (const [name, expected, policy] of [
    [
      'a policy of another network',
      /"policy","problem":"the authority .* did not sign/,
      theirPolicy,
    ],
    [
      'an earlier policy',
      /"policy","problem":"it is not the policy that the bulletin names/,
      before,
    ],
  ] as const) {
    events.length = 0;
    respond = (path) => (path === '/policy' ? json(policy) : null);
    assert.equal(typeof (await agent.turn()), 'number', name);
    assert.match(JSON.stringify(events), expected, name);
    for (const [file, text] of held) assert.equal(files.get(file), text, `${name}: ${file}`);
  }
  respond = null;
  events.length = 0;
  await agent.turn();
  assert.deepEqual(refusals(harness), []);
  assert.equal(agent.state().problem, null);
  assert.equal(agent.state().crl_sequence, 2);
});

test('an agent accepts a bulletin that is a second old, and a newer list and policy', async () => {
  await using na = await startTestAuthority();
  const current = { na };
  const other = await agentOf(current);
  await other.agent.turn();
  await operate(na, '/admin/revoke', { cert_id: other.agent.state().cert_id ?? '' });
  let respond: Responder | null = null;
  const harness = await agentOf(current, {
    fetch: async (url, init) => (await respond?.(new URL(url).pathname)) ?? fetch(url, init),
  });
  await harness.agent.turn();
  assert.equal(harness.agent.state().crl_sequence, 1);
  assert.deepEqual(refusals(harness), []);

  na.clock.advance(2 * SECOND);
  await operate(na, '/admin/policy', {});
  await get(na, '/bulletin');
  na.clock.advance(SECOND / 2);
  const { policy_id: newest } = (await operate(na, '/admin/policy', {})).body;
  assert.notEqual((await get(na, '/bulletin')).body.policy_id, newest);
  await harness.agent.turn();
  assert.equal(harness.agent.state().policy_id, newest);
  assert.deepEqual(refusals(harness), []);

  // The previous policy, from an instance that does not know the next one yet.
  na.clock.advance(2 * SECOND);
  const before = await (await fetch(`${na.url}/policy`)).text();
  const { policy_id: next } = (await operate(na, '/admin/policy', {})).body;
  respond = (path: string) => (path === '/policy' ? new Response(before) : null);
  await harness.agent.turn();
  assert.equal(harness.agent.state().policy_id, newest);
  assert.deepEqual(refusals(harness), []);
  respond = null;
  await harness.agent.turn();
  assert.equal(harness.agent.state().policy_id, next);
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

test('an agent whose clock is off by ten minutes keeps what it has, and says why', async () => {
  const na = await shared();
  const current = { na };
  const key = newKey();
  const harness = await agentOf(current, { key });
  await harness.agent.turn();
  const late = await agentOf(current, { key, files: harness.files, skewMs: 10 * MINUTE });
  assert.equal(typeof (await late.agent.turn()), 'number');
  assert.match(late.agent.state().problem ?? '', /timestamp is too old, or too far ahead/);
});

test('an agent does not start with damaged files, or those of another network or node', async () => {
  const na = await shared();
  const current = { na };
  const key = newKey();
  const { agent, files } = await agentOf(current, { key });
  await agent.turn();
  const start = (changed: Partial<Record<AgentRecord, string>>, further: Surroundings = {}) =>
    agentOf(current, {
      key,
      files: new Map([...files, ...(Object.entries(changed) as [AgentRecord, string][])]),
      ...further,
    });
  await assert.rejects(start({ genesis: '{"network_name"' }), /stored genesis is damaged/);
  await assert.rejects(start({ certificate: '{}' }), /stored certificate is damaged/);
  await assert.rejects(start({}, { key: newKey() }), /stored certificate is for another key/);
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
  const key = newKey();
  const { agent, files } = await agentOf({ na }, { key });
  await agent.turn();
  for (const [record, text] of [
    ['crl', ''],
    ['crl', '{"crl_id"'],
    ['policy', '[]'],
    ['policy', ''],
  ] as const) {
    const stored = files.get(record);
    const again = await agentOf({ na }, { key, files: new Map([...files, [record, text]]) });
    assert.equal(typeof (await again.agent.turn()), 'number');
    assert.equal(again.files.get(record), stored, text);
    assert.deepEqual(again.events[0], { type: 'damaged', record });
  }
});

test('a copy of a node renews first: the other says what happened to its certificate', async () => {
  const na = await shared();
  const key = newKey();
  const { files, agent } = await agentOf({ na }, { key, terms: { max_validity_hours: 10 } });
  await agent.turn();
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

function storageIn(
  files: Map<AgentRecord, string>,
  isRefused: (name: AgentRecord) => boolean,
): NodeAgentOptions['storage'] {
  return {
    read: (name) => files.get(name) ?? null,
    write(name, text) {
      if (isRefused(name)) throw new Error('no space left');
      files.set(name, text);
    },
  };
}

test('an agent that cannot store anything continues to send heartbeats, spends no invite, and stores everything later', async () => {
  await using na = await startTestAuthority();
  const rootKey = (await get(na, '/genesis')).body.root_public_key;
  const token = await invite(na, { max_validity_hours: 168 });
  const files = new Map<AgentRecord, string>();
  const events: AgentEvent[] = [];
  let isFull = true;
  const agent = await createNodeAgent({
    url: na.url,
    key: newKey(),
    rootKey,
    storage: storageIn(files, () => isFull),
    token: () => token,
    now: na.clock.now,
    random,
    onEvent: (event) => events.push(event),
  });
  assert.equal(typeof (await agent.turn()), 'number');
  assert.equal(agent.state().problem, 'The invite was not used: no space left');
  isFull = false;
  await agent.turn();
  const { cert_id: first } = agent.state();
  assert.ok(first !== null, 'the invite is still good');
  const before = new Map(files);

  isFull = true;
  await operate(na, '/admin/policy', { allowed_ports: [8443], allowed_services: ['telemetry'] });
  const { cert_id: other } = (await joinedOther(na)) as { cert_id: string };
  await operate(na, '/admin/revoke', { cert_id: other });
  na.clock.advance(100 * HOUR);
  const next = await agent.turn();
  assert.ok(typeof next === 'number' && next > 10 * SECOND, `${next}`);
  assert.equal(Date.parse(agent.state().last_heartbeat ?? ''), na.clock.now());
  assert.deepEqual([agent.state().cert_id, agent.state().problem], [first, 'no space left']);
  const { crl_sequence: known } = agent.state();
  const stored = JSON.parse(before.get('crl') ?? '{}').sequence;
  assert.ok(known !== null && known > stored, 'it knows what it cannot store');
  assert.deepEqual(files, before);

  na.clock.advance(30 * HOUR);
  await agent.turn();
  const { cert_id: second } = agent.state();
  assert.notEqual(second, first, 'the window is over: better renewed than expired');
  assert.deepEqual(files, before);
  isFull = false;
  await agent.turn();
  assert.equal(agent.state().problem, null);
  assert.equal(JSON.parse(files.get('certificate') ?? '{}').cert_id, second);
  assert.equal(JSON.parse(files.get('crl') ?? '{}').sequence, agent.state().crl_sequence);
  assert.deepEqual(
    events.flatMap((event) => (event.type === 'storage' ? [event.problem] : [])),
    ['no space left', null, 'no space left', null],
  );
});

/** The state of another node's agent after it has joined. */
async function joinedOther(na: TestAuthority): Promise<unknown> {
  const other = await agentOf({ na });
  await other.agent.turn();
  return other.agent.state();
}

test('a certificate that cannot be stored is stored in a later turn', async () => {
  const na = await shared();
  const token = await invite(na);
  const rootKey = (await get(na, '/genesis')).body.root_public_key;
  const files = new Map<AgentRecord, string>();
  let isFull = true;
  const agent = await createNodeAgent({
    url: na.url,
    key: newKey(),
    rootKey,
    storage: storageIn(files, (name) => isFull && name === 'certificate'),
    token: () => token,
    now: na.clock.now,
    random,
  });
  await agent.turn();
  assert.match(agent.state().problem ?? '', /no space left/);
  isFull = false;
  await agent.turn();
  assert.equal(JSON.parse(files.get('certificate') ?? '{}').cert_id, agent.state().cert_id);
});
