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
import { get, joinedNode, newKey, nodeRequest, outcome, send } from './support/requests.ts';
import { signedBy, startUnlimited } from './support/trust.ts';

// Discovery

test('an unfiltered query returns only the count', async () => {
  await using na = await startUnlimited();
  for (let n = 0; n < 3; n += 1) await register(na, describe(na, (await joinedNode(na)).key));
  for (const path of ['/agents', '/agents?', '/agents?capability=', '/agents?limit=5']) {
    assert.equal((await get(na, path)).text, '{"count":3,"capability":null}', path);
  }
});

test('a capability matches a tag exactly', async (t) => {
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
    await t.test(JSON.stringify(tag), async () => {
      const { body } = await get(na, `/agents?capability=${encodeURIComponent(tag)}`);
      assert.equal(body.capability, tag);
      assert.equal(body.count, found.length);
      assert.deepEqual(
        body.agents.map(({ agent_id }: { agent_id: string }) => agent_id),
        found,
      );
    });
  }
});

test('several capability parameters are refused, because no agent was asked for by only one of them', async () => {
  await using na = await startUnlimited();
  for (const query of ['capability=a&capability=b', 'capability=b&capability=a']) {
    const answer = await get(na, `/agents?${query}`);
    assert.equal(outcome(answer), '400 repeated_parameter');
    assert.deepEqual(answer.body.error?.details, { parameter: 'capability' });
  }
});

test('an agent whose descriptor repeats a tag is listed once', async () => {
  await using na = await startUnlimited();
  const { key } = await joinedNode(na);
  await register(na, describe(na, key, { capabilities: ['a', 'a'] }));
  assert.equal(await countOf(na, 'a'), 1);
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

test('an expired registration is evicted before each query, at the instant of its expiry', async (t) => {
  const queries: [
    string,
    (na: TestAuthority, key: Signer) => Promise<unknown>,
    unknown,
    unknown,
  ][] = [
    ['the count', async (na) => (await get(na, '/agents')).body.count, 2, 1],
    ['the list', (na) => countOf(na, TAG), 2, 1],
    [
      'by key',
      async (na, key) => outcome(await get(na, pathOf(key))),
      '200',
      '404 agent_not_registered',
    ],
    [
      'removal',
      async (na, key) => outcome(await remove(na, key, envelopeOf(na, key))),
      '200',
      '404 agent_not_registered',
    ],
  ];
  for (const [name, query, before, after] of queries) {
    await t.test(name, async () => {
      for (const [early, expected] of [
        [1, before],
        [0, after],
      ] as const) {
        await using na = await startUnlimited();
        const short = await joinedNode(na);
        const long = await joinedNode(na);
        await register(na, describe(na, short.key, { lifetimeSeconds: 60 }));
        await register(na, describe(na, long.key, { lifetimeSeconds: 61 }));
        na.clock.advance(MINUTE - early);
        // A removal does not evict other registrations, so a query comes first.
        if (name === 'removal') await get(na, '/agents');
        assert.deepEqual(await query(na, short.key), expected);
      }
    });
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
  await using again = await na.restart();
  assert.equal(outcome(await get(again, pathOf(key))), '404 agent_not_registered');
  assert.equal((await get(again, '/agents')).body.count, 0);
});

test('setting the clock back does not bring an expired registration back', async () => {
  await using na = await startUnlimited();
  const { key } = await joinedNode(na);
  await register(na, describe(na, key));
  na.clock.advance(LIFETIME * SECOND);
  assert.equal((await get(na, '/agents')).body.count, 0);
  na.clock.advance(-LIFETIME * SECOND);
  assert.equal((await get(na, '/agents')).body.count, 0);
});

test('a key that is not registered is 404', async () => {
  await using na = await startUnlimited();
  for (const segment of ['nobody', encodeURIComponent(newKey().publicKey), '__proto__', '%20']) {
    assert.equal(outcome(await get(na, `/agents/${segment}`)), '404 agent_not_registered', segment);
  }
});

// Revocation of the certificate

for (const reason of ['key_compromise', 'cessation_of_operation', 'superseded', 'unspecified']) {
  test(`revoking a node's certificate as ${reason} also evicts its registration`, async () => {
    await using na = await startUnlimited();
    const node = await registeredNode(na);
    const other = await registeredNode(na);
    await revokeCertificate(na, node.certId, reason);
    assert.equal(outcome(await get(na, pathOf(node.key))), '404 agent_not_registered');
    assert.equal((await get(na, '/agents')).body.count, 1);
    assert.equal(await countOf(na, TAG), 1);
    await using again = await na.restart();
    assert.equal(outcome(await get(again, pathOf(node.key))), '404 agent_not_registered');
    assert.equal(outcome(await get(again, pathOf(other.key))), '200');
  });
}

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
  const nodes = await Promise.all(Array.from({ length: 10 }, () => joinedNode(na)));
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

for (const [bucket, method] of [
  ['AGENTS', 'POST'],
  ['AGENT_DELETE', 'DELETE'],
] as const) {
  test(`${method} is limited to 30 a minute, before any other check`, async () => {
    await using na = await startUnlimited({ environment: { [`MESH_RATE_LIMIT_${bucket}`]: '' } });
    const path = method === 'POST' ? '/agents' : '/agents/key';
    const call = (body = 'no json') => send(na, method, path, { body });
    for (let n = 0; n < 30; n += 1) assert.equal(outcome(await call()), '400 invalid_json');
    for (const body of ['no json', '{}', '']) {
      const limited = await call(body);
      assert.equal(outcome(limited), '429 rate_limit_exceeded');
      assert.equal(limited.headers.get('retry-after'), '60');
    }
    assert.equal(outcome(await get(na, '/agents')), '200', 'reading is not limited');
    const otherPath = method === 'POST' ? '/agents/key' : '/agents';
    const otherMethod = method === 'POST' ? 'DELETE' : 'POST';
    const other = await send(na, otherMethod, otherPath, { body: 'no json' });
    assert.equal(outcome(other), '400 invalid_json', 'the other bucket is its own');
    na.clock.advance(MINUTE);
    assert.equal(outcome(await call()), '400 invalid_json');
  });
}

test('registrations survive a restart, byte for byte and in order', async () => {
  await using na = await startUnlimited();
  const keys: Signer[] = [];
  for (let n = 0; n < 6; n += 1) {
    const { key } = await joinedNode(na);
    keys.push(key);
    const metadata = parseJson(`{"limit":1.0,"n":${n},"big":18446744073709551616}`) as JsonObject;
    await register(na, describe(na, key, { agent_id: `agent-${n}`, metadata }));
    na.clock.advance(SECOND);
  }
  const paths = ['/agents', `/agents?capability=${TAG}`, ...keys.map(pathOf)];
  const before = await Promise.all(paths.map(async (path) => (await get(na, path)).text));
  await using again = await na.restart();
  const after = await Promise.all(paths.map(async (path) => (await get(again, path)).text));
  assert.deepEqual(after, before);
  again.clock.advance((LIFETIME - 6) * SECOND);
  assert.equal((await get(again, '/agents')).body.count, 5, 'and they expire as before');
});

test('registrations of the same instant keep their order across a restart', async () => {
  await using na = await startUnlimited();
  for (let n = 0; n < 12; n += 1) await registeredNode(na);
  const keysOf = async (from: TestAuthority): Promise<string[]> => {
    const { body } = await get(from, `/agents?capability=${TAG}`);
    return body.agents.map(({ node_public_key }: JsonObject) => node_public_key);
  };
  const before = await keysOf(na);
  await using again = await na.restart();
  assert.deepEqual(await keysOf(again), before);
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
