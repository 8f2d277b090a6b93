/** Rosters of several pieces: sent while they are read, without delaying other requests. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, beforeEach, test } from 'node:test';
import { type Certificate, UNTOUCHED } from '../machines/certificate.ts';
import { createRosters, type RosterWalk } from '../src/authority/certificates/roster.ts';
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
