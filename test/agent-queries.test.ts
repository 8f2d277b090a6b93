/**
 * Queries of the agent registry, and what ends a registration [service-states-agent-registration], [core-3-3],
 * [core-4-6].
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Signer } from '../src/base/crypto/primitives.ts';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import {
  countOf,
  describe,
  envelopeOf,
  LIFETIME,
  members,
  pathOf,
  register,
  registeredNode,
  remove,
  revokeCertificate,
  TAG,
} from './support/agents.ts';
import type { TestAuthority } from './support/authority.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import {
  get,
  joinedNode,
  joinedNodes,
  newKey,
  nodeRequest,
  outcome,
  send,
  type TestNode,
} from './support/requests.ts';
import { signedBy, startUnlimited } from './support/trust.ts';

// Discovery

test('an unfiltered query returns only the count', async () => {
  await using na = await startUnlimited();
  for (let n = 0; n < 3; n += 1) await register(na, describe(na, (await joinedNode(na)).key));
  for (const path of ['/agents', '/agents?', '/agents?capability=', '/agents?limit=5']) {
    assert.equal((await get(na, path)).text, '{"count":3,"capability":null}', path);
  }
});

test('a capability matches a tag exactly', async () => {
  await using na = await startUnlimited();
  const tags = [TAG, '%', 'llm:%', 'a b', 'ü', 'a&b=c', '', 'LLM:CHAT'];
  for (const tag of tags) {
    const { key } = await joinedNode(na);
    await register(na, describe(na, key, { agent_id: `of ${tag}`, capabilities: [tag] }));
  }
  for (const [tag, found] of [
    ...tags.filter((tag) => tag !== '').map((tag) => [tag, [`of ${tag}`]] as const),
    ['llm', []],
    ['llm:', []],
    ['llm:chat ', []],
    [' llm:chat', []],
    ['llm:cha_', []],
    ['llm:*', []],
    ['*', []],
    ['_', []],
    ['%%', []],
    ['.*', []],
    ['__proto__', []],
    ['constructor', []],
  ] as const) {
    const { body } = await get(na, `/agents?capability=${encodeURIComponent(tag)}`);
    assert.equal(body.capability, tag);
    assert.equal(body.count, found.length);
    assert.deepEqual(
      body.agents.map(({ agent_id }: { agent_id: string }) => agent_id),
      found,
    );
  }
  const { key } = await joinedNode(na);
  await register(na, describe(na, key, { capabilities: ['a', 'a'] }));
  assert.equal(await countOf(na, 'a'), 1, 'an agent is listed once');
});

test('agents are listed by registered_at, newest first, regardless of when they arrived', async () => {
  await using na = await startUnlimited();
  const ages = [3, 1, 4, 0, 2];
  for (const age of ages) {
    const { key } = await joinedNode(na);
    const registered_at = formatInstant(na.clock.now() - age * SECOND);
    const record = { ...members(na, key), registered_at, agent_id: `${age} s old` };
    await register(na, signedBy(record, key));
  }
  const { body } = await get(na, `/agents?capability=${TAG}`);
  assert.deepEqual(
    body.agents.map(({ agent_id }: { agent_id: string }) => agent_id),
    ['0 s old', '1 s old', '2 s old', '3 s old', '4 s old'],
  );
});

test('an expired registration is evicted before each query, at the instant of its expiry', async () => {
  await using na = await startUnlimited();
  const gone = '404 agent_not_registered';
  for (const [name, query, before, after] of [
    ['the count', async (na: TestAuthority) => (await get(na, '/agents')).body.count, 2, 1],
    ['the list', (na: TestAuthority) => countOf(na, TAG), 2, 1],
    [
      'by key',
      async (na: TestAuthority, key: Signer) => outcome(await get(na, pathOf(key))),
      '200',
      gone,
    ],
    [
      'removal',
      async (na: TestAuthority, key: Signer) => {
        // A removal does not evict other registrations, so a query comes first.
        await get(na, '/agents');
        return outcome(await remove(na, key, envelopeOf(na, key)));
      },
      '200',
      gone,
    ],
  ] as const) {
    for (const [early, expected] of [
      [1, before],
      [0, after],
    ] as const) {
      const [short, long] = [await joinedNode(na), await joinedNode(na)];
      await register(na, describe(na, short.key, { lifetimeSeconds: 60 }));
      await register(na, describe(na, long.key, { lifetimeSeconds: 61 }));
      na.clock.advance(MINUTE - early);
      assert.deepEqual(await query(na, short.key), expected, name);
      na.clock.advance(2 * SECOND);
      assert.equal((await get(na, '/agents')).body.count, 0, 'nothing is left for the next one');
    }
  }
});

test('an expired registration that was requested by its key is evicted for good, even after a restart', async () => {
  await using na = await startUnlimited();
  const { key } = await joinedNode(na);
  await register(na, describe(na, key));
  na.clock.advance(LIFETIME * SECOND);
  assert.equal(outcome(await get(na, pathOf(key))), '404 agent_not_registered');
  await na.flush();
  na.clock.advance(-LIFETIME * SECOND);
  assert.equal(
    (await get(na, '/agents')).body.count,
    0,
    'a clock that is set back changes nothing',
  );
  await using again = await na.restart();
  assert.equal(outcome(await get(again, pathOf(key))), '404 agent_not_registered');
  assert.equal((await get(again, '/agents')).body.count, 0);
});

test('a key that is not registered is 404', async () => {
  await using na = await startUnlimited();
  for (const segment of ['nobody', encodeURIComponent(newKey().publicKey), '__proto__', '%20']) {
    assert.equal(outcome(await get(na, `/agents/${segment}`)), '404 agent_not_registered', segment);
  }
});

// Revocation of the certificate

test("revoking a node's certificate for any reason also evicts its registration", async () => {
  await using na = await startUnlimited();
  const other = await registeredNode(na);
  const gone: TestNode[] = [];
  for (const reason of ['key_compromise', 'cessation_of_operation', 'superseded', 'unspecified']) {
    const node = await registeredNode(na);
    await revokeCertificate(na, node.certId, reason);
    assert.equal(outcome(await get(na, pathOf(node.key))), '404 agent_not_registered', reason);
    assert.equal((await get(na, '/agents')).body.count, 1);
    assert.equal(await countOf(na, TAG), 1);
    gone.push(node);
  }
  await using again = await na.restart();
  for (const node of gone) {
    assert.equal(outcome(await get(again, pathOf(node.key))), '404 agent_not_registered');
  }
  assert.equal(outcome(await get(again, pathOf(other.key))), '200');
});

test('revoking any certificate of the key evicts, and the node can register again with another one', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const renewal = await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
  await register(na, describe(na, node.key));
  await revokeCertificate(na, node.certId, 'superseded');
  assert.equal(outcome(await get(na, pathOf(node.key))), '404 agent_not_registered');
  na.clock.advance(SECOND);
  assert.equal(outcome(await register(na, describe(na, node.key))), '200');
  await revokeCertificate(na, renewal.body.cert_id, 'unspecified');
  assert.equal((await get(na, '/agents')).body.count, 0);
});

test('a revocation that changes nothing evicts nothing', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const renewal = await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
  await revokeCertificate(na, node.certId, 'superseded');
  await register(na, describe(na, node.key));
  await revokeCertificate(na, node.certId, 'superseded');
  assert.equal(outcome(await get(na, pathOf(node.key))), '200');
  assert.equal(renewal.status, 200);
});

test('a revoked node is never offered, regardless of the order of revocation and registration', async () => {
  await using na = await startUnlimited();
  const nodes = await joinedNodes(na, 10);
  await Promise.all(
    nodes.flatMap((node, n) => {
      const calls = [
        () => register(na, describe(na, node.key)),
        () => revokeCertificate(na, node.certId, 'unspecified'),
      ];
      return (n % 2 === 0 ? calls : calls.reverse()).map((call) => call());
    }),
  );
  assert.equal((await get(na, '/agents')).body.count, 0);
});

// Limits and restarts

test('registrations and removals are limited to 30 a minute each, before any other check', async () => {
  const environment = { MESH_RATE_LIMIT_AGENTS: '', MESH_RATE_LIMIT_AGENT_DELETE: '' };
  await using na = await startUnlimited({ environment });
  const call = async (method: string, body = 'no json') => {
    const path = method === 'POST' ? '/agents' : '/agents/key';
    return send(na, method, path, { body });
  };
  for (const [method, untouched] of [
    ['POST', 'DELETE'],
    ['DELETE', null],
  ] as const) {
    for (let n = untouched === null ? 1 : 0; n < 30; n += 1) {
      assert.equal(outcome(await call(method)), '400 invalid_json');
    }
    for (const body of ['no json', '{}', '']) {
      const limited = await call(method, body);
      assert.equal(outcome(limited), '429 rate_limit_exceeded');
      assert.equal(limited.headers.get('retry-after'), '60');
    }
    assert.equal(outcome(await get(na, '/agents')), '200', 'reading is not limited');
    if (untouched !== null) assert.equal(outcome(await call(untouched)), '400 invalid_json');
  }
  na.clock.advance(MINUTE);
  for (const method of ['POST', 'DELETE']) {
    assert.equal(outcome(await call(method)), '400 invalid_json');
  }
});

test('registrations survive a restart, byte for byte and in order, also those of one instant', async () => {
  await using na = await startUnlimited();
  const keys: Signer[] = [];
  for (let n = 0; n < 12; n += 1) {
    const { key } = await joinedNode(na);
    keys.push(key);
    const metadata = parseJson(`{"limit":1.0,"n":${n},"big":18446744073709551616}`) as JsonObject;
    await register(na, describe(na, key, { agent_id: `agent-${n}`, metadata }));
    if (n < 6) na.clock.advance(SECOND);
  }
  const paths = ['/agents', `/agents?capability=${TAG}`, ...keys.map(pathOf)];
  const read = (from: TestAuthority) =>
    Promise.all(paths.map(async (path) => (await get(from, path)).text));
  const before = await read(na);
  await using again = await na.restart();
  assert.deepEqual(await read(again), before);
  again.clock.advance((LIFETIME - 6) * SECOND);
  assert.equal((await get(again, '/agents')).body.count, 11, 'and they expire as before');
});

test('removed, evicted and revoked registrations do not return after a restart', async () => {
  await using na = await startUnlimited();
  const [removed, revoked, expired, kept] = await Promise.all([
    registeredNode(na),
    registeredNode(na),
    registeredNode(na, { lifetimeSeconds: 60 }),
    registeredNode(na),
  ]);
  await remove(na, removed.key, envelopeOf(na, removed.key));
  await revokeCertificate(na, revoked.certId, 'unspecified');
  na.clock.advance(MINUTE);
  await using again = await na.restart();
  assert.equal((await get(again, '/agents')).body.count, 1);
  assert.equal(outcome(await get(again, pathOf(kept.key))), '200');
  for (const { key } of [removed, revoked, expired]) {
    assert.equal(outcome(await get(again, pathOf(key))), '404 agent_not_registered');
  }
});
