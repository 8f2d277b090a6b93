/**
 * What a fleet, its operators and webhooks [events-5] receive from several instances, as real processes on one PostgreSQL
 * server: bulletins, deltas, events and posts, while the active instance is stopped and the next one killed.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import type { AgentRecord } from '../src/client/agent-storage.ts';
import { EventChainError, type LoggedEvent, nextEvent } from '../src/client/events.ts';
import { createNodeAgent } from '../src/client/node-agent.ts';
import { createVerifier } from '../src/client/offline.ts';
import { createOperatorClient } from '../src/client/operator-client.ts';
import type { Fetch } from '../src/client/options.ts';
import { pause } from '../src/client/waiting.ts';
import type { Bulletin } from '../src/protocol/records/bulletin.ts';
import { loadConfig } from '../src/server/config/load.ts';
import type { TestAuthority } from './support/authority.ts';
import {
  type ChildEnvironment,
  type ChildServer,
  NO_LIMITS,
  startChildServer,
} from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { networkFolder } from './support/folders.ts';
import { placeOf, type TestInstances, testInstances } from './support/instances.ts';
import { indexesOf, numbers } from './support/logged-events.ts';
import { startCluster } from './support/postgresql.ts';
import {
  get,
  invite,
  joinedNode,
  nodeRequest,
  operate,
  operatorRequest,
  outcome,
} from './support/requests.ts';
import { asKey } from './support/signing.ts';
import { until } from './support/until.ts';
import { startReceiver } from './support/webhook-receiver.ts';

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

/** A bulletin changes at most once per second [core-5-14]; the rest allows for the resolution of the clocks. */
const PERIOD_MS = 1000 + 20;

test('bulletins and deltas of every instance match what was acknowledged, while the active instance changes', async (t) => {
  await using instances = await testInstances(cluster);
  await using house = await openHouse(instances);
  const { na } = house.at(0);
  const network: string = (await get(na, '/genesis')).body.network_name;
  const policies: string[] = [(await get(na, '/policy')).body.policy_id];
  const changes: Change[] = [];
  const seen: Seen[] = [];
  const agents = await Promise.all([0, 1, 2, 3].map((place) => roamingAgent(house, place)));
  for (const { run } of agents) house.inBackground(run(house.over).then(() => undefined));
  for (const place of [0, 1, 2]) house.inBackground(readBulletins(house, place, seen));
  house.inBackground(changeOverAndOver(house, changes));

  /** Resolves when some acknowledged changes have had enough time to reach every bulletin. */
  async function makeProgress(): Promise<void> {
    const enough = changes.length + 5;
    await house.until(() => changes.length >= enough);
    const at = changes[enough - 1]?.at ?? 0;
    await house.until(() => seen.some(({ sentAt }) => sentAt > at + PERIOD_MS));
  }
  await makeProgress();
  await house.endActive('SIGTERM');
  await house.add();
  await makeProgress();
  await house.endActive('SIGKILL');
  await makeProgress();
  const { sequence } = changes.at(-1) ?? assert.fail();
  await house.until(() => agents.every((agent) => (agent.sequences.at(-1) ?? 0) >= sequence));
  await house.close();

  policies.push(...changes.map(({ policyId }) => policyId));
  for (const { sentAt, bulletin } of seen) {
    const known = changes.filter(({ at }) => at + PERIOD_MS < sentAt).at(-1);
    if (known === undefined) continue;
    assert.ok(bulletin.crl_sequence >= known.sequence, 'an earlier list');
    const place = policies.indexOf(bulletin.policy_id ?? '');
    // A policy whose acknowledgment was lost is not in `policies`.
    assert.ok(place < 0 || place >= policies.indexOf(known.policyId), 'an earlier policy');
  }
  assertNoneOlder(seen);
  const verifier = createVerifier({ verify: verifySignature });
  const distinct = new Map(seen.map(({ bulletin }) => [bulletin.signature.sig, bulletin]));
  for (const bulletin of distinct.values()) {
    assert.equal(verifier.bulletin(bulletin, network, na.audience), 'valid');
  }
  for (const { refusals, sequences, wholeLists } of agents) {
    assert.deepEqual(refusals, []);
    assert.deepEqual(
      sequences,
      sequences.toSorted((a, b) => a - b),
    );
    assert.ok(sequences.length > 2, 'it has heard of revocations');
    assert.equal(wholeLists(), 1, 'all others were deltas');
  }
  t.diagnostic(`${changes.length} changes, ${seen.length} answers, ${distinct.size} bulletins`);
});

test('events are read once and in order from every instance, and posted only by the active instance, while it changes', async (t) => {
  await using instances = await testInstances(cluster);
  const { publicKey: authorityKey } = loadConfig({ dataDir: instances.folder }, {}, Date.now());
  await using hook = await startReceiver({ authorityKey, now: REAL_TIME.now });
  const webhooks = { MESH_WEBHOOKS: hook.url, MESH_WEBHOOK_PRIVATE: '1' };
  await using house = await openHouse(instances, webhooks);
  const writing = new AbortController();
  const inviting = inviteOverAndOver(house, writing.signal);
  house.inBackground(inviting);
  const readers = [0, 1, 2].flatMap((place) => [
    readLines(house, place, Number.POSITIVE_INFINITY),
    readLines(house, place, 7),
    readSentEvents(house, place, 7),
  ]);

  async function allHave(count: number): Promise<void> {
    const takers = [...readers, hook.events];
    await house.until(() => takers.every(({ length }) => length >= count));
    assert.deepEqual(hook.refused, []);
  }
  await allHave(30);
  assert.equal(hook.posted, hook.events.length, 'one instance posts');
  await assertActivePosts(house);
  await house.endActive('SIGTERM');
  await house.add();
  await allHave(hook.events.length + 30);
  await assertActivePosts(house);
  await house.endActive('SIGKILL');
  await allHave(hook.events.length + 30);
  await assertActivePosts(house);
  writing.abort();
  await inviting;
  const log = await wholeLog(house);
  await allHave(log.length);
  await house.close();

  assert.deepEqual(
    log.map(({ index }) => index),
    log.map((_, place) => place + 1),
  );
  for (const got of [...readers, hook.events]) assert.deepEqual(got, log);
  t.diagnostic(`${log.length} events, ${hook.posted - log.length} posted twice`);
});

interface House extends AsyncDisposable {
  /** One of the running instances, in turn. */
  at(turn: number): ChildServer;
  readonly all: readonly ChildServer[];
  /** Aborted at the end. */
  readonly over: AbortSignal;
  /** Runs work in the background until the end; the test fails if it fails. */
  inBackground(work: Promise<void>): void;
  until(isTrue: () => boolean): Promise<void>;
  /** Starts one more instance; resolves when it answers. */
  add(): Promise<void>;
  /** Ends the active instance; resolves when another instance writes. */
  endActive(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /** Resolves when the background work has ended. */
  close(): Promise<void>;
}

const PATIENCE_MS = 120_000;

/** Starts three instances that serve together. */
async function openHouse(
  instances: TestInstances,
  environment: ChildEnvironment = {},
): Promise<House> {
  const over = new AbortController();
  const working: Promise<void>[] = [];
  let failure: unknown = null;
  const start = () => instances.start({ ...environment, MESH_LINK: '127.0.0.1:0' });
  const all = [await start()];
  all.push(...(await Promise.all([start(), start()])));

  async function isWhole(): Promise<void> {
    await until(async () => {
      const places = await Promise.all(all.map(placeOf));
      const actives = places.filter(({ role }) => role === 'active');
      return places.every(({ ready }) => ready) && actives.length === 1;
    });
  }

  await isWhole();
  return {
    at: (turn) => all[turn % all.length] ?? assert.fail('nobody answers'),
    all,
    over: over.signal,
    inBackground(work) {
      working.push(work);
      work.catch((cause) => {
        failure ??= cause;
      });
    },
    async until(isTrue) {
      const deadline = performance.now() + PATIENCE_MS;
      while (!isTrue()) {
        if (failure !== null) throw failure;
        assert.ok(performance.now() < deadline, 'It does not come to pass');
        await delay(10);
      }
    },
    async add() {
      all.push(await start());
      await isWhole();
    },
    async endActive(signal) {
      const places = await Promise.all(all.map(placeOf));
      const [active] = all.splice(
        places.findIndex(({ role }) => role === 'active'),
        1,
      );
      await active?.end(signal);
      await isWhole();
    },
    async close() {
      over.abort();
      await Promise.all(working);
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      await Promise.allSettled(working);
    },
  };
}

/** Both changes were acknowledged by this time, in monotonic milliseconds. */
interface Change {
  readonly at: number;
  readonly sequence: number;
  readonly policyId: string;
}

/** Repeatedly revokes a node and publishes a policy, each time through the next instance. */
async function changeOverAndOver({ at, over }: House, changes: Change[]): Promise<void> {
  for (let turn = 0; !over.aborted; turn += 1) {
    const change = await changed(at(turn).na).catch(() => null);
    if (change !== null) changes.push(change);
    await delay(50);
  }
}

/** Null if it was not acknowledged. */
async function changed(na: TestAuthority): Promise<Change | null> {
  const { certId } = await joinedNode(na);
  const revoked = await operate(na, '/admin/revoke', { cert_id: certId });
  const policy = await operate(na, '/admin/policy', {});
  if (revoked.status !== 200 || policy.status !== 200) return null;
  const { crl_sequence: sequence } = revoked.body;
  return { at: performance.now(), sequence, policyId: policy.body.policy_id };
}

/** Times are in monotonic milliseconds. */
interface Seen {
  readonly sentAt: number;
  readonly receivedAt: number;
  readonly bulletin: Bulletin;
  readonly isOfHeartbeat: boolean;
}

async function readBulletins({ at, over }: House, place: number, seen: Seen[]): Promise<void> {
  const node = await joinedNode(at(place).na);
  for (let turn = place; !over.aborted; turn += 1) {
    const { na } = at(turn);
    const isOfHeartbeat = turn % 4 !== 0;
    const sentAt = performance.now();
    const asked = isOfHeartbeat
      ? nodeRequest(na, '/heartbeat', node.key, { cert_id: node.certId, bulletin: true })
      : get(na, '/bulletin');
    const answer = await asked.catch(() => null);
    if (answer?.status === 200) {
      const bulletin = isOfHeartbeat ? answer.body.bulletin : answer.body;
      seen.push({ sentAt, receivedAt: performance.now(), bulletin, isOfHeartbeat });
    }
    await delay(40);
  }
}

/**
 * No heartbeat gets an older bulletin than one that was received before the heartbeat was sent. A copy read from one
 * instance may be older than one just read from another [link-4].
 */
function assertNoneOlder(seen: readonly Seen[]): void {
  const received = seen.toSorted((a, b) => a.receivedAt - b.receivedAt);
  let next = 0;
  let [sequence, logSize] = [0, 0];
  for (const { sentAt, bulletin, isOfHeartbeat } of seen.toSorted((a, b) => a.sentAt - b.sentAt)) {
    for (; (received[next]?.receivedAt ?? sentAt) < sentAt; next += 1) {
      sequence = Math.max(sequence, received[next]?.bulletin.crl_sequence ?? 0);
      logSize = Math.max(logSize, received[next]?.bulletin.log_size ?? 0);
    }
    if (!isOfHeartbeat) continue;
    assert.ok(bulletin.crl_sequence >= sequence, `${bulletin.crl_sequence} after ${sequence}`);
    assert.ok(bulletin.log_size >= logSize, `${bulletin.log_size} entries after ${logSize}`);
  }
}

const NOWHERE = 'http://authority.invalid';
/** The bulletin requests no shorter heartbeat interval. */
const TURN_MS = 1000;

/** An agent that sends each request to a different instance than the one before. */
async function roamingAgent({ at }: House, place: number) {
  const { na } = at(place);
  const rootKey: string = (await get(na, '/genesis')).body.root_public_key;
  const token = await invite(na);
  const files = new Map<AgentRecord, string>();
  const sequences: number[] = [];
  const refusals: string[] = [];
  let wholeLists = 0;
  let turn = place;
  const roaming: Fetch = async (url, init) => {
    turn += 1;
    const answer = await fetch(url.replace(NOWHERE, at(turn).na.url), init);
    if (answer.ok && url.endsWith('/crl')) wholeLists += 1;
    return answer;
  };
  const { run } = await createNodeAgent({
    url: NOWHERE,
    fetch: roaming,
    key: asKey(signerFromSeed(randomBytes(32))),
    rootKey,
    storage: {
      read: (name) => files.get(name) ?? null,
      write(name, text) {
        files.set(name, text);
        if (name === 'crl') sequences.push(JSON.parse(text).sequence);
      },
    },
    verify: verifySignature,
    token: () => token,
    wait: (_, signal) => pause(TURN_MS, signal),
    onEvent(event) {
      if (event.type === 'refused') refusals.push(`${event.what}: ${event.problem}`);
    },
  });
  return { run, sequences, refusals, wholeLists: () => wholeLists };
}

async function inviteOverAndOver({ at, over }: House, stop: AbortSignal): Promise<void> {
  for (let turn = 0; !stop.aborted && !over.aborted; turn += 1) {
    await operate(at(turn).na, '/admin/invite').catch(() => null);
    await delay(40);
  }
}

function clientAt(at: House['at'], turn: () => number) {
  const { na } = at(turn());
  return createOperatorClient({
    url: NOWHERE,
    audience: na.audience,
    keyId: na.standard.keyId,
    key: asKey(na.standard.key),
    fetch: (url, init) => fetch(url.replace(NOWHERE, at(turn()).na.url), init),
  });
}

/**
 * The events of a reader that disconnects after every `most` events, and continues after the last one at the next
 * instance.
 */
function readLines({ at, over, inBackground }: House, place: number, most: number): LoggedEvent[] {
  const got: LoggedEvent[] = [];
  let turn = place;
  const client = clientAt(at, () => turn);
  async function read(): Promise<void> {
    for (; !over.aborted; turn += 1) {
      let taken = 0;
      for await (const event of client.events({ after: got.at(-1) ?? 0, signal: over })) {
        got.push(event);
        taken += 1;
        if (taken >= most) break;
      }
    }
  }
  inBackground(read());
  return got;
}

/** The same with server-sent events and `Last-Event-ID`. */
function readSentEvents(
  { at, over, inBackground }: House,
  place: number,
  most: number,
): LoggedEvent[] {
  const got: LoggedEvent[] = [];
  let turn = place;

  async function readSome(): Promise<void> {
    const { na } = at(turn);
    const { init } = operatorRequest(na, '/events', {}, { method: 'GET', operator: na.standard });
    const last = String(got.at(-1)?.index ?? 0);
    const headers = { ...init.headers, accept: 'text/event-stream', 'last-event-id': last };
    const { body } = await fetch(`${na.url}/events`, { headers, signal: over });
    const decoder = new TextDecoder();
    let rest = '';
    let taken = 0;
    for await (const piece of body ?? []) {
      const parts = (rest + decoder.decode(piece as Uint8Array, { stream: true })).split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        const [, id, line] = /^id: (\d+)\ndata: (.*)$/s.exec(part) ?? [];
        if (line === undefined) continue;
        got.push(nextEvent(line, got.at(-1) ?? { index: 0, hash: null }));
        assert.equal(Number(id), got.at(-1)?.index);
        taken += 1;
        if (taken >= most) return;
      }
    }
  }

  async function read(): Promise<void> {
    for (; !over.aborted; turn += 1) {
      await readSome().catch((cause) => {
        // Connections are lost when an instance ends.
        if (cause instanceof EventChainError || cause instanceof assert.AssertionError) throw cause;
      });
      await delay(20);
    }
  }
  inBackground(read());
  return got;
}

async function wholeLog({ at }: House): Promise<LoggedEvent[]> {
  const log: LoggedEvent[] = [];
  for await (const event of clientAt(at, () => 0).events({ follow: false })) log.push(event);
  return log;
}

/** Checks what each instance reports about whether it posts. */
async function assertActivePosts({ all }: House): Promise<void> {
  for (const server of all) {
    const { role } = await placeOf(server);
    const { text } = await get(server.na, '/metrics');
    assert.equal(/^mesh_na_webhook_lag_entries\{/m.test(text), role === 'active', role);
  }
}

// Webhooks of real processes that are killed, stopped and replaced by another [events-5]: nothing is omitted.

test('a process that is killed repeatedly while it posts omits nothing', async (t) => {
  await using folder = networkFolder('alpha');
  await using hook = await startReceiver({ authorityKey: keyIn(folder.path), now: REAL_TIME.now });
  const environment = environmentWith(hook.url);
  let logged = 0;
  for (let kills = 0; kills < 3; kills += 1) {
    await using server = await startChildServer(folder.path, { environment });
    await inviteMany(server, 150);
    logged += 150;
    await hook.until(logged - 100);
    await server.end('SIGKILL');
  }
  await using _last = await startChildServer(folder.path, { environment });
  await hook.until(logged);
  assert.deepEqual(indexesOf(hook.events), numbers(1, logged));
  assert.deepEqual(hook.refused, []);
  t.diagnostic(`${logged} events in ${hook.requests} requests, ${hook.posted - logged} twice`);
});

test('the instance that takes over continues where the previous one ended, which was killed or stopped', async (t) => {
  await using instances = await testInstances(cluster);
  const authorityKey = keyIn(instances.folder);
  await using hook = await startReceiver({ authorityKey, now: REAL_TIME.now });
  const environment = environmentWith(hook.url);
  const first = await instances.start(environment);
  const second = await instances.start(environment);
  await inviteMany(first, 150);
  await hook.until(50);
  await first.end('SIGKILL');
  await until(async () => (await placeOf(second)).ready);
  await inviteMany(second, 150);
  const third = await instances.start(environment);
  await hook.until(200);
  assert.equal((await second.end('SIGTERM')).code, 0);
  await until(async () => (await placeOf(third)).ready);
  await inviteMany(third, 10);
  await hook.until(310);
  assert.deepEqual(indexesOf(hook.events), numbers(1, 310));
  assert.deepEqual(hook.refused, []);
  t.diagnostic(`310 events in ${hook.requests} requests, ${hook.posted - 310} twice`);
});

function environmentWith(url: string) {
  return { ...NO_LIMITS, MESH_WEBHOOKS: url, MESH_WEBHOOK_PRIVATE: '1' };
}

function keyIn(dataDir: string): string {
  return loadConfig({ dataDir }, {}, REAL_TIME.now()).publicKey;
}

async function inviteMany({ na }: Awaited<ReturnType<typeof startChildServer>>, count: number) {
  assert.equal(outcome(await operate(na, '/admin/invite', { count })), '200');
}
