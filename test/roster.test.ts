/** Rosters of several pieces, and counts of large fleets: without delaying other requests. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, beforeEach, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Certificate, UNTOUCHED } from '../machines/certificate.ts';
import { createCensus } from '../src/authority/census.ts';
import { createCertificateIndex } from '../src/authority/certificates/certificate-index.ts';
import { createKnownChains } from '../src/authority/certificates/known-chains.ts';
import { createLiveness } from '../src/authority/certificates/last-contact.ts';
import { createRosters, type RosterWalk } from '../src/authority/certificates/roster.ts';
import { createCertificateNumbers } from '../src/authority/subjects/numbering.ts';
import { createSubjects } from '../src/authority/subjects/subjects.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, SECOND, testClock } from './support/clock.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { get, heartbeat, joinedNode, operate, operatorRequest } from './support/requests.ts';
import { openStoreOf } from './support/test-stores.ts';

/** Their roster is longer than what a connection buffers for a client that does not read. */
const NODES = 2600;
const PORTION = 1000;
/** Reaches that length with as few values as possible, because only the sending matters. */
const MANY_ROLES = Array.from({ length: 8 }, (_, index) => `role:${index}-${'anchor'.repeat(130)}`);

const clock = testClock();
let na: TestAuthority;

before(async () => {
  const { folder } = makeNetworkFolder();
  const subjects = Array.from({ length: NODES }, (_, index) => ({
    kind: 'certificate',
    id: certId(index),
    version: 1,
    replaces: 0,
    snapshot: { value: 'issued', context: certificate(index) },
  }));
  const store = await openStoreOf({ dataDir: folder });
  try {
    // Commits of the service are no longer than this, and a database has only seconds for each.
    for (let at = 0; at < NODES; at += PORTION) {
      const portion = subjects.slice(at, at + PORTION);
      await store.commit({ subjects: portion, removals: [], nonces: [], audit: [] });
    }
  } finally {
    await store.close();
  }
  na = await startTestAuthority({ dataDir: folder, clock });
});

after(async () => {
  await na.stop();
  rmSync(na.dataDir, { recursive: true, force: true });
});

beforeEach(() => clock.advance(SECOND));

function certId(index: number): string {
  return `certificate-${index}`;
}

function certificate(index: number): Certificate {
  return {
    nodePublicKey: Buffer.alloc(32, `${index}`).toString('base64'),
    roles: index % 2 === 0 ? ['role:client'] : MANY_ROLES,
    issuedAt: clock.now() - index,
    expiresAt: clock.now() + HOUR,
    maxValidityHours: 720,
    remoteAddr: `2001:db8::${index.toString(16)}`,
    ...UNTOUCHED,
  };
}

interface Roster {
  readonly count: number;
  readonly nodes: { readonly [certId: string]: { readonly last_heartbeat: string } };
}

/**
 * A roster whose answer has begun; no more of it is read until requested. Each one has its own connection, because the
 * kernel buffers more for a connection that was used before.
 */
async function openRoster(method = 'GET') {
  const { path, init } = operatorRequest(na, '/nodes', {}, { method: 'GET' });
  const id = randomBytes(8).toString('hex');
  const headers = { ...init.headers, 'X-Request-ID': id };
  const request = httpRequest(na.url + path, { method, headers, agent: false }).end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return {
    id,
    response,
    leave: () => request.destroy(),
    rest: async () => JSON.parse(await text(response)) as Roster,
  };
}

async function accessLine(id: string): Promise<string> {
  for (;;) {
    await na.settle();
    const line = na.logLines.find((text) => text.includes(`request_id=${id}`));
    if (line !== undefined) return line;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('a long roster has every active node, each as its certificate says', async () => {
  const { response, rest } = await openRoster();
  assert.equal(response.headers['transfer-encoding'], 'chunked');
  assert.equal(response.headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(response.headers['cache-control'], 'no-store');
  const { count, nodes } = await rest();
  assert.equal(count, (await get(na, '/nodes')).body.count);
  assert.equal(Object.keys(nodes).length, count);
  const started = clock.now() - SECOND;
  for (const index of [0, 1, 249, 250, 251, 999, 1000, 1001, NODES - 1]) {
    const { nodePublicKey, roles, remoteAddr } = certificate(index);
    assert.deepEqual(nodes[certId(index)], {
      node_public_key: nodePublicKey,
      roles,
      status: 'joined',
      last_heartbeat: formatInstant(started - index),
      remote_addr: remoteAddr,
      expires_at: formatInstant(started + HOUR),
    });
  }
});

test('changes during a roster are in the next one, and do not wait for it', async () => {
  const node = await joinedNode(na);
  const joinedAt = formatInstant(clock.now());
  const earlier = await openRoster();
  clock.advance(SECOND);
  assert.equal((await heartbeat(na, node)).status, 200);
  const newcomer = await joinedNode(na);
  const revoked = certId(NODES - 1);
  const revocation = await operate(na, '/admin/revoke', { cert_id: revoked });
  assert.equal(revocation.status, 200);

  const later = await (await openRoster()).rest();
  assert.equal(later.nodes[node.certId]?.last_heartbeat, formatInstant(clock.now()));
  assert.ok(newcomer.certId in later.nodes);
  assert.ok(!(revoked in later.nodes));

  const { count, nodes } = await earlier.rest();
  assert.equal(Object.keys(nodes).length, count);
  assert.equal(count, later.count);
  assert.equal(nodes[node.certId]?.last_heartbeat, joinedAt);
  assert.ok(!(newcomer.certId in nodes));
  assert.ok(revoked in nodes);
});

test('a roster whose client disconnects is dropped, and its request is in the log', async () => {
  const { id, leave } = await openRoster();
  leave();
  assert.match(await accessLine(id), / GET \/nodes 200 /);
  const { count, nodes } = await (await openRoster()).rest();
  assert.equal(Object.keys(nodes).length, count);
});

test('a HEAD request for a long roster is answered without one', async () => {
  const { id, response } = await openRoster('HEAD');
  assert.equal(response.statusCode, 200);
  assert.equal(await text(response), '');
  assert.match(await accessLine(id), / HEAD \/nodes 200 /);
});

test('of nine rosters at once one is cut off, never presented as complete', async () => {
  // Together, because a client that reads nothing for ten seconds is cut off, too.
  const opened = await Promise.all(Array.from({ length: 8 }, () => openRoster()));
  opened.push(await openRoster());
  const outcomes = await Promise.allSettled(opened.map(({ rest }) => rest()));
  const [cut, ...more] = opened.filter((_, index) => outcomes[index]?.status === 'rejected');
  assert.deepEqual(more, []);
  assert.match(
    await accessLine(cut?.id ?? ''),
    /ERROR mesh\.http .* was closed before it was read/,
  );
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') continue;
    assert.equal(Object.keys(outcome.value.nodes).length, outcome.value.count);
  }
});

test('one roster too many closes the one that was not read for longest', () => {
  const rosters = createRosters();
  const ended: number[] = [];
  const walk = (index: number): RosterWalk => ({
    count: 1,
    take: () => [{ id: '', lastSeen: 0, status: '', remoteAddr: '' }],
    keep: () => undefined,
    end: () => ended.push(index),
  });
  const [first = 0, second = 0] = Array.from({ length: 8 }, (_, index) =>
    rosters.open(walk(index)),
  );
  rosters.read(first, 1);
  rosters.open(walk(8));
  assert.deepEqual(ended, [1]);
  assert.equal(rosters.read(second, 1), null);
  assert.equal(rosters.read(first, 1)?.length, 1);
});

// Counting a large fleet without blocking other work.

/** Every node is a client, every fourth is an anchor, and each pair of nodes has its own role, listed twice. */
function rolesOf(n: number): string[] {
  const own = `role:${n >> 1}`;
  return ['role:client', ...(n % 4 === 0 ? ['role:anchor'] : []), own, own];
}

/** A census of `nodes` nodes, all of which sent a heartbeat at 0; `time` is the monotonic clock. */
function censusOf(nodes: number, time: { now: number }) {
  const numbers = createCertificateNumbers();
  const subjects = createSubjects(numbers);
  const certificates = createCertificateIndex({ subjects, numbers, seed: 1 });
  const liveness = createLiveness(HOUR, numbers);
  subjects.follow({ certificate: { decided: certificates.add } });
  for (let n = 0; n < nodes; n += 1) {
    const context: Certificate = {
      nodePublicKey: `key-${n}`,
      roles: rolesOf(n),
      issuedAt: 0,
      expiresAt: 1000 * HOUR,
      maxValidityHours: 168,
      remoteAddr: '',
      ...UNTOUCHED,
    };
    subjects.restore('certificate', `c-${n}`, { version: 1, value: 'issued', context });
    liveness.touch(`c-${n}`, { at: 0, status: 'healthy', remoteAddr: '', chain: 0 });
  }
  const knownChains = createKnownChains();
  const now = () => time.now;
  return createCensus({
    subjects,
    certificates,
    liveness,
    knownChains,
    activeWindow: HOUR,
    now,
    elapsed: now,
  });
}

test('the first count of a large fleet is awaited, and yields to others', async () => {
  const census = censusOf(5_000, { now: 0 });
  const counting = census.take();
  assert.ok(counting instanceof Promise);
  assert.equal(census.take(), counting, 'others who ask meanwhile wait for the same count');
  let turns = 0;
  let isCounted = false;
  void counting.then(() => {
    isCounted = true;
  });
  for (; !isCounted; turns += 1) await nextTurn();
  assert.ok(turns >= 10, `${turns} turns`);
  assert.equal(census.latest()?.fleet.expected, 5_000);
  assert.equal(census.latest()?.fleet.silent, 0);
});

test('later counts run in the background, and readers get the previous one', async () => {
  const time = { now: 0 };
  const census = censusOf(5_000, time);
  void census.take();
  while (census.latest() === null) await nextTurn();
  time.now += 2 * HOUR;
  assert.equal(census.take(), undefined);
  assert.equal(census.latest()?.fleet.silent, 0);
  while (census.latest()?.fleet.silent === 0) await nextTurn();
  assert.equal(census.latest()?.fleet.silent, 5_000);
  assert.equal(census.take(), undefined);
  assert.equal(census.latest()?.fleet.silent, 5_000, 'a young count stands');
});

test('a small fleet is counted at once', () => {
  const time = { now: 0 };
  const census = censusOf(400, time);
  time.now += 2 * HOUR;
  assert.equal(census.take(), undefined);
  assert.deepEqual(census.latest()?.fleet, {
    ...ALL_SILENT,
    silentKnownFrom: HOUR,
    lapsed: 0,
    since: { silent: HOUR, lapsing: null, lapsed: null },
    // The other roles have two nodes each and are sorted by name.
    roles: [
      { role: 'role:client', ...ALL_SILENT },
      { role: 'role:anchor', ...ALL_SILENT, expected: 100, silent: 100 },
      ...['0', '1', '10', '100', '101', '102', '103', '104', '105', '106'].map((n) => ({
        role: `role:${n}`,
        ...ALL_SILENT,
        expected: 2,
        silent: 2,
      })),
    ],
    more_roles: 190,
  });
});

for (const [name, past, lapsing] of [
  ['begins three days before the end, not a tenth of 1,000 hours', 0, 0],
  ['has begun a millisecond later', 1, 4],
] as const) {
  test(`the lapse of a certificate ${name}`, () => {
    const time = { now: 0 };
    const census = censusOf(4, time);
    time.now = (1000 - 72) * HOUR + past;
    census.take();
    assert.equal(census.latest()?.fleet.lapsing, lapsing);
  });
}

test('beyond a thousand roles, further ones are not counted', async () => {
  const census = censusOf(5000, { now: 0 });
  let isCounted = false;
  void census.take()?.then(() => {
    isCounted = true;
  });
  while (!isCounted) await nextTurn();
  assert.equal(census.latest()?.fleet.more_roles, 1000 - 12);
});

const ALL_SILENT = { expected: 400, healthy: 0, silent: 400, unwell: 0, lapsing: 0 };
