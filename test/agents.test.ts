/** The agent registry [service-states-agent-registration], [core-3-2], [core-3-3], [core-4-6], [core-5-6]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createAgentIndex } from '../src/authority/agents.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import {
  countOf,
  describe,
  envelopeOf,
  joinedKey,
  LIFETIME,
  members,
  pathOf,
  register,
  registeredNode,
  remove,
  revokeCertificate,
  TAG,
} from './support/agents.ts';
import { sharedAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { FORGED_SIGNATURE, misspelledKeys, respelled, valuesExcept } from './support/hostile.ts';
import { get, invite, joinedNode, newKey, nodeRequest, outcome, send } from './support/requests.ts';
import { type Cases, checkFaults, checkTable, type Fault, inEach } from './support/tables.ts';
import {
  audited,
  misspellableKey,
  parsed,
  signedBy,
  startUnlimited,
  verifies,
} from './support/trust.ts';
import { without } from './support/trust-protocol.ts';

/** For tests that leave nothing behind that would affect the others. */
const shared = sharedAuthority();

// Registration

test('a registered agent is returned with its expiry, counted, and found by its key and its tag', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const descriptor = describe(na, node.key);
  const answer = await register(na, descriptor);
  assert.equal(answer.status, 200);
  assert.equal(answer.text, jsonText({ status: 'registered', expires_at: expiryOf(na) }));
  assert.equal((await get(na, '/agents')).text, '{"count":1,"capability":null}');
  const byKey = await get(na, pathOf(node.key));
  assert.deepEqual(byKey.body, descriptor);
  const { body } = await get(na, `/agents?capability=${TAG}`);
  assert.deepEqual(body, { count: 1, capability: TAG, agents: [descriptor] });
  assert.deepEqual(audited(na, 'agent_registered'), [
    { agent_id: 'agent-1', node_public_key: node.key.publicKey, remote_addr: '127.0.0.1' },
  ]);
});

test('the normalized descriptor is served, and others can verify it', async () => {
  const na = await shared();
  const node = await joinedNode(na);
  const draft: JsonObject = {
    ...members(na, node.key),
    registered_at: formatInstant(na.clock.now()).replace('Z', '+00:00'),
    expires_at: formatInstant(na.clock.now() + HOUR).replace('T', ' '),
    metadata: parseJson(
      '{"limit":1.0,"n":10,"tiny":1e-7,"big":1000000000000000000000000000000,"at":"2026-01-01T00:00:00+00:00","name":"Z\\u00fcrich \\u2713","deep":{"b":[1.50],"a":null}}',
    ),
  };
  const normalized = {
    ...draft,
    registered_at: formatInstant(na.clock.now()),
    expires_at: formatInstant(na.clock.now() + HOUR),
  };
  const { signatures } = signedBy(normalized, node.key) as { signatures: readonly JsonObject[] };
  const answer = await register(na, {
    ...draft,
    unknown: { x: 1 },
    endpoint: { host: '127.0.0.1', port: new JsonFloat(7448), scheme: 'ws', path: '/unknown' },
    signatures: signatures.map((item) => ({ ...item, algorithm: 'ed25519' })),
  });
  assert.equal(outcome(answer), '200', answer.text);
  const served = await get(na, pathOf(node.key));
  assert.deepEqual(parsed(served), { ...normalized, signatures });
  assert.ok(verifies(parsed(served), node.key.publicKey));
  assert.match(served.text, /"limit":1\.0,/);
  assert.match(served.text, /"big":1000000000000000000000000000000,/);
  assert.match(served.text, /"tiny":1e-07/);
  assert.match(served.text, /"b":\[1\.5\]/);
  assert.match(served.text, /"port":7448,/);
  const listed = await get(na, `/agents?capability=${TAG}`);
  assert.ok(listed.text.includes(served.text), 'the list holds the very same text');
});

test('omitted members are served with their defaults, and unknown ones may not be signed', async () => {
  const na = await shared();
  const node = await joinedNode(na);
  const full = { ...members(na, node.key), capabilities: [] };
  const { signatures } = signedBy(full, node.key);
  const { capabilities: _, metadata: __, ...rest } = full as JsonObject & Record<string, JsonValue>;
  const endpoint = { host: '127.0.0.1', port: 7448 };
  const answer = await register(na, { ...rest, endpoint, signatures: signatures ?? [] });
  assert.equal(outcome(answer), '200');
  const { body } = await get(na, pathOf(node.key));
  assert.deepEqual(body.capabilities, []);
  assert.deepEqual(body.metadata, {});
  assert.equal(body.endpoint.scheme, 'ws');
  const extended = signedBy({ ...members(na, node.key), extra: 1 }, node.key);
  assert.equal(outcome(await register(na, extended)), '401 invalid_signature');
});

test('a refreshed registration replaces the previous one', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  await register(na, describe(na, node.key, { capabilities: ['old', 'both'] }));
  na.clock.advance(MINUTE);
  const refreshed = describe(na, node.key, { capabilities: ['new', 'both'], agent_id: 'agent-2' });
  const answer = await register(na, refreshed);
  assert.equal(answer.body.expires_at, expiryOf(na));
  assert.equal((await get(na, '/agents')).body.count, 1);
  assert.equal(await countOf(na, 'old'), 0);
  for (const tag of ['new', 'both']) assert.equal(await countOf(na, tag), 1);
  assert.deepEqual((await get(na, pathOf(node.key))).body, refreshed);
  assert.equal(audited(na, 'agent_registered').length, 2);
});

test('what a descriptor may contain at its limits', async () => {
  const na = await shared();
  const tags = Array.from({ length: 129 }, (_, index) => `tag:${index}`);
  const expires_at = '9999-12-31T23:59:59.999999Z';
  for (const [change, expected] of [
    [{ capabilities: tags.slice(1) }, '200'],
    [{ capabilities: tags }, '400 invalid_agent_descriptor'],
    [{ endpoint: { host: 'h', port: 1, scheme: '' } }, '200'],
    [{ endpoint: { host: 'h', port: 65_535, scheme: '' } }, '200'],
    [{ expires_at }, '200'],
  ] as [JsonObject, string][]) {
    const { key } = await joinedNode(na);
    const answer = await register(na, signedBy({ ...members(na, key), ...change }, key));
    assert.equal(outcome(answer), expected);
    if ('expires_at' in change) assert.equal(answer.body.expires_at, expires_at);
  }
});

test('a refresh may shorten the registration', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  await register(na, describe(na, node.key, { lifetimeSeconds: 600 }));
  na.clock.advance(SECOND);
  await register(na, describe(na, node.key, { lifetimeSeconds: 60 }));
  na.clock.advance(MINUTE);
  assert.equal((await get(na, '/agents')).body.count, 0);
  await register(na, describe(na, node.key, { lifetimeSeconds: 60 }));
  na.clock.advance(10 * MINUTE - MINUTE);
  assert.equal((await get(na, '/agents')).body.count, 0);
});

test('one valid signature is enough, in any position', async () => {
  const na = await shared();
  const node = await joinedNode(na);
  const strangers = Array.from({ length: 15 }, newKey);
  for (const keys of [
    [node.key, newKey()],
    [newKey(), node.key],
    [...strangers, node.key],
  ]) {
    na.clock.advance(SECOND);
    const descriptor = signedBy(members(na, node.key), ...keys);
    assert.equal(outcome(await register(na, descriptor)), '200');
  }
  const late = signedBy(members(na, node.key), ...strangers, newKey(), node.key);
  assert.equal(outcome(await register(na, late)), '401 invalid_signature', 'the 17th is not tried');
});

test('a descriptor that was read here and is posted again changes nothing', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const first = describe(na, node.key, { agent_id: 'at the old address' });
  assert.equal(outcome(await register(na, first)), '200');
  const served = (await get(na, pathOf(node.key))).body;
  na.clock.advance(MINUTE);
  const second = describe(na, node.key, { agent_id: 'at the new address' });
  assert.equal(outcome(await register(na, second)), '200');
  const refused = await register(na, served);
  assert.equal(outcome(refused), '400 descriptor_superseded');
  assert.match(refused.body.error.message, /already known/);
  assert.deepEqual((await get(na, pathOf(node.key))).body, second);
  await using again = await na.restart();
  assert.equal(outcome(await register(again, served)), '400 descriptor_superseded');
  assert.deepEqual((await get(again, pathOf(node.key))).body, second);
});

test('it does not bring back an agent that its node has removed', async () => {
  await using na = await startUnlimited();
  const node = await registeredNode(na);
  const served = (await get(na, pathOf(node.key))).body;
  na.clock.advance(MINUTE);
  const unsent = describe(na, node.key);
  na.clock.advance(MINUTE);
  assert.equal(outcome(await remove(na, node.key, envelopeOf(na, node.key))), '200');
  await using again = await na.restart();
  for (const descriptor of [served, unsent]) {
    assert.equal(outcome(await register(again, descriptor)), '400 descriptor_superseded');
  }
  assert.equal((await get(again, '/agents')).body.count, 0);
  na.clock.advance(1);
  assert.equal(outcome(await register(again, describe(again, node.key))), '200');
});

test('it does not bring back an agent whose certificate was revoked, even after its node has enrolled again', async () => {
  const na = await shared();
  const node = await registeredNode(na);
  const served = (await get(na, pathOf(node.key))).body;
  na.clock.advance(SECOND);
  await revokeCertificate(na, node.certId, 'superseded');
  await joinedKey(na, node.key);
  assert.equal(outcome(await register(na, served)), '400 descriptor_superseded');
  na.clock.advance(SECOND);
  assert.equal(outcome(await register(na, describe(na, node.key))), '200');
});

test('a long descriptor remains refused after the shorter one that replaced it has expired', async () => {
  await using na = await startUnlimited();
  const node = await registeredNode(na, { lifetimeSeconds: 3600 });
  const served = (await get(na, pathOf(node.key))).body;
  na.clock.advance(SECOND);
  await register(na, describe(na, node.key, { lifetimeSeconds: 60 }));
  na.clock.advance(2 * MINUTE);
  await na.flush();
  assert.equal((await get(na, '/agents')).body.count, 0);
  assert.equal(outcome(await register(na, served)), '400 descriptor_superseded');
});

test('posting the current registration again succeeds and changes nothing', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const descriptor = describe(na, node.key);
  const answers = [await register(na, descriptor), await register(na, descriptor)];
  assert.deepEqual(answers.map(outcome), ['200', '200']);
  assert.equal(answers[1]?.text, answers[0]?.text);
  assert.equal(audited(na, 'agent_registered').length, 1);
});

test('an envelope that found nothing to remove is spent', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const envelope = envelopeOf(na, node.key);
  assert.equal(outcome(await remove(na, node.key, envelope)), '404 agent_not_registered');
  await register(na, describe(na, node.key));
  await using again = await na.restart();
  assert.equal(outcome(await remove(again, node.key, envelope)), '401 invalid_signature');
  assert.equal((await get(again, '/agents')).body.count, 1);
});

test('within one second, each descriptor of a node counts once, and the last one to arrive is served', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const [first, second, third] = ['first', 'second', 'third'].map((agent_id) =>
    describe(na, node.key, { agent_id }),
  ) as [JsonObject, JsonObject, JsonObject];
  assert.equal(outcome(await register(na, first)), '200');
  assert.equal(outcome(await register(na, second)), '200');
  const stranger = (signedBy(without(first, 'signatures'), newKey()).signatures as JsonValue[])[0];
  const disguised = {
    ...first,
    signatures: [...(first.signatures as JsonValue[]), stranger ?? ''],
  };
  for (const replayed of [first, disguised]) {
    assert.equal(outcome(await register(na, replayed)), '400 descriptor_superseded');
  }
  await using again = await na.restart();
  assert.equal(outcome(await register(again, disguised)), '400 descriptor_superseded');
  assert.deepEqual((await get(again, pathOf(node.key))).body, second);
  assert.equal(outcome(await register(again, third)), '200');
  assert.equal(outcome(await remove(again, node.key, envelopeOf(again, node.key))), '200');
  assert.equal(outcome(await register(again, third)), '400 descriptor_superseded', 'removed');
  assert.equal(outcome(await register(again, second)), '400 descriptor_superseded', 'replaced');
  assert.equal(outcome(await register(again, describe(again, node.key))), '200');
});

test("the registered descriptor with a stranger's signature added stays as its node signed it", async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const descriptor = describe(na, node.key);
  await register(na, descriptor);
  const [stranger] = signedBy(without(descriptor, 'signatures'), newKey())
    .signatures as JsonValue[];
  const signatures = [...(descriptor.signatures as JsonValue[]), stranger ?? ''];
  assert.equal(outcome(await register(na, { ...descriptor, signatures })), '200');
  assert.deepEqual((await get(na, pathOf(node.key))).body, descriptor);
  assert.equal(audited(na, 'agent_registered').length, 1);
});

test('agents that are refreshed, or leave and return, for years expire when they should', () => {
  const index = createAgentIndex();
  const YEARS = 1000 * 365 * 24 * HOUR;
  const follow = (key: string, value: string, registeredAt: number, expiresAt: number) => {
    const held = { json: '{}', content: '', superseded: [], heldUntil: YEARS };
    const context = { ...held, capabilities: [TAG], registeredAt, expiresAt };
    index.put(key, { version: 1, value, context });
  };
  for (let at = 0; at < 20_000; at += 1) {
    follow('refreshed', 'registered', at, YEARS + at);
    follow('shortened', 'registered', at, YEARS - at);
    follow('leaving', 'registered', at, YEARS);
    follow('leaving', 'deregistered', at, YEARS);
  }
  assert.equal(index.count(), 2);
  index.expire(YEARS);
  assert.deepEqual(index.takeExpired(YEARS + 19_998), ['shortened']);
  assert.deepEqual(index.takeExpired(YEARS + 19_999), ['refreshed']);
});

test('the registry lists what reading all registrations would find, after any changes', () => {
  const TAGS = ['a', 'b', 'c'];
  const step = fc.record({
    key: fc.constantFrom('n1', 'n2', 'n3', 'n4'),
    value: fc.constantFrom('registered', 'registered', 'removed', 'evicted'),
    capabilities: fc.array(fc.constantFrom(...TAGS), { maxLength: 4 }),
    registeredAt: fc.nat(5),
    expiresAt: fc.nat(30),
    passes: fc.nat(2),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const index = createAgentIndex();
      const model = new Map<string, Omit<(typeof steps)[number], 'key' | 'passes'>>();
      let now = 0;
      for (const { key, passes, ...given } of steps) {
        now += passes;
        const { value, ...registration } = given;
        const context = { json: '', content: '', superseded: [], heldUntil: 0, ...registration };
        index.put(key, { version: 1, value, context });
        model.set(key, given);
        index.expire(now);
        const listed = [...model]
          .filter(([, each]) => each.value === 'registered' && each.expiresAt > now)
          .sort(([a, x], [b, y]) => y.registeredAt - x.registeredAt || (a < b ? -1 : 1));
        assert.equal(index.count(), listed.length);
        for (const tag of TAGS) {
          const tagged = listed.filter(([, { capabilities }]) => capabilities.includes(tag));
          assert.deepEqual(
            index.withCapability(tag).map((agent) => agent.key),
            tagged.map(([id]) => id),
          );
        }
      }
      const due = [...model].filter(
        ([, each]) => each.value === 'registered' && each.expiresAt <= now,
      );
      assert.deepEqual(index.takeExpired(now).sort(), due.map(([key]) => key).sort());
    }),
  );
});

test('agents that expired during an outage are evicted a few at a time, and listed no more at once', () => {
  const index = createAgentIndex();
  for (let n = 0; n < 600; n += 1) {
    const held = { json: '{}', content: '', superseded: [], heldUntil: n };
    const context = { ...held, capabilities: [TAG], registeredAt: 0, expiresAt: n };
    index.put(`agent-${n}`, { version: 1, value: 'registered', context });
  }
  assert.deepEqual(
    [HOUR, HOUR, HOUR, HOUR].map((at) => index.takeExpired(at).length),
    [250, 250, 100, 0],
  );
  assert.equal(index.count(), 0);
  assert.equal(index.withCapability(TAG).length, 0);
});

test('concurrent registrations of one node leave one', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const descriptors = Array.from({ length: 20 }, (_, n) =>
    describe(na, node.key, { capabilities: [`tag-${n}`] }),
  );
  const answers = await Promise.all(descriptors.map((descriptor) => register(na, descriptor)));
  assert.deepEqual(answers.map(outcome), Array(20).fill('200'));
  assert.equal((await get(na, '/agents')).body.count, 1);
  const counts = await Promise.all(descriptors.map((_, n) => countOf(na, `tag-${n}`)));
  assert.equal(counts.filter((count) => count === 1).length, 1);
});

// The order of checks

test('a descriptor that is not a valid record is 400, regardless of its signatures', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const valid = members(na, node.key);
  const noText = valuesExcept('a string', 'an empty string');
  const noList = valuesExcept('a list', 'an empty list');
  const texts = (...values: readonly string[]) => values.map((value) => [value, value] as const);
  const endpoint = { host: 'h', port: 1, scheme: 'ws' };
  const wrongTimes = [
    ...valuesExcept(),
    ...texts('2026-01-01T00:00:00', '1767225600', '2026-02-30T00:00:00Z'),
  ];
  const { registered_at = '' } = valid;
  const wrong: Cases<JsonObject> = {
    ...inEach('agent_id', noText),
    ...inEach('node_public_key', noText),
    ...inEach('network_name', noText),
    ...inEach('capabilities', [
      ...noList,
      ...noText.map(([name, value]) => [`[${name}]`, [value]] as const),
    ]),
    ...inEach('endpoint', [
      ...valuesExcept(),
      ...noText.map(([name, host]) => [`host ${name}`, { ...endpoint, host }] as const),
      ...noText.map(([name, scheme]) => [`scheme ${name}`, { ...endpoint, scheme }] as const),
      ...(
        [
          ...valuesExcept('the integer 7'),
          ['0', 0],
          ['65536', 65_536],
          ['-1', -1],
          ['2 ** 64', 2n ** 64n],
          ['"443"', '443'],
          ['0.0', new JsonFloat(0)],
        ] as const
      ).map(([name, port]) => [`port ${name}`, { ...endpoint, port }] as const),
    ]),
    ...inEach('metadata', [
      ...valuesExcept('an object', 'an empty object'),
      ['1.0', new JsonFloat(1)],
    ]),
    ...inEach('registered_at', wrongTimes),
    ...inEach('expires_at', [
      ...wrongTimes,
      ['the time of registration', registered_at],
      ['before the registration', formatInstant(na.clock.now() - 1)],
      ['the same instant in another zone', inZone(na.clock.now())],
    ]),
  };
  const required = ['agent_id', 'node_public_key', 'network_name', 'endpoint', 'registered_at'];
  const descriptors: Record<string, JsonObject> = {
    nothing: {},
    ...Object.fromEntries(
      Object.entries(wrong).map(([name, change]) => [
        name,
        signedBy({ ...valid, ...change }, node.key),
      ]),
    ),
    ...Object.fromEntries(
      [...required, 'expires_at'].map((name) => [
        `without ${name}`,
        signedBy(without(valid, name), node.key),
      ]),
    ),
    ...Object.fromEntries(
      Object.entries(
        inEach('signatures', [
          ...noList,
          ['a list of text', ['sig']],
          ['an item without sig', [{ key_id: 'k' }]],
          ['an item without key_id', [{ sig: 's' }]],
          ['an item with null', [{ key_id: 'k', sig: null }]],
        ]),
      ).map(([name, signatures]) => [name, { ...valid, ...signatures }]),
    ),
  };
  await checkTable({ '400 invalid_agent_descriptor': descriptors }, async (descriptor) =>
    outcome(await register(na, descriptor)),
  );
  assert.equal(outcome(await send(na, 'POST', '/agents')), '400 invalid_agent_descriptor');
  assert.equal((await get(na, '/agents')).body.count, 0);
  assert.deepEqual(audited(na, 'agent_registered'), []);
});

/** What is wrong with a registration, in the order of the checks [core-4-6]. */
interface Draft {
  readonly members?: JsonObject;
  readonly isUnsigned?: true;
  readonly isExpired?: true;
  /** The reason for which the only certificate of the node is revoked. */
  readonly revoked?: string;
  readonly isForged?: true;
}

test('of several faults of a registration the first is reported, and nothing is registered', async () => {
  const na = await shared();
  const faults = [
    ['400 invalid_agent_descriptor', { members: { endpoint: { host: 'h', port: 0 } } }],
    ['401 descriptor_signature_required', { isUnsigned: true }],
    ['400 descriptor_expired', { isExpired: true }],
    ['400 descriptor_network_mismatch', { members: { network_name: 'beta' } }],
    // A compromise ends every certificate of the key, so it must be reported first.
    ['403 node_key_revoked', { revoked: 'key_compromise' }],
    ['403 node_has_no_active_certificate', { revoked: 'superseded' }],
    ['401 invalid_signature', { isForged: true }],
  ] as const satisfies readonly Fault<Draft>[];
  await checkFaults<Draft>(faults, async (draft) => {
    const { key, certId } = await joinedNode(na);
    if (draft.revoked !== undefined) await revokeCertificate(na, certId, draft.revoked);
    const record = { ...members(na, key), ...draft.members };
    const window = {
      registered_at: formatInstant(na.clock.now() - HOUR),
      expires_at: formatInstant(na.clock.now() - MINUTE),
    };
    const descriptor = { ...record, ...(draft.isExpired && window) };
    const answer = await register(
      na,
      draft.isUnsigned
        ? { ...descriptor, signatures: [] }
        : signedBy(descriptor, draft.isForged ? newKey() : key),
    );
    assert.equal((await get(na, pathOf(key))).status, 404);
    if (outcome(answer) === '400 descriptor_network_mismatch') {
      assert.deepEqual(answer.body.error.details, { expected: 'alpha' });
    }
    return outcome(answer);
  });
  const { key } = await joinedNode(na);
  const memberless = await register(na, members(na, key));
  assert.equal(outcome(memberless), '401 descriptor_signature_required');
});

test('a descriptor may be registered up to five minutes ahead, and counts up to its expiry', async () => {
  const na = await shared();
  for (const [from, to, expected] of [
    [5 * MINUTE, HOUR, '200'],
    [5 * MINUTE + 1, HOUR, '400 descriptor_expired'],
    [5 * MINUTE + 0.001, HOUR, '400 descriptor_expired'],
    [-1000 * HOUR, HOUR, '200'],
    [-HOUR, 0, '200'],
    [-HOUR, -1, '400 descriptor_expired'],
    [-HOUR, -0.001, '400 descriptor_expired'],
  ] as const) {
    const { key } = await joinedNode(na);
    const window = {
      registered_at: formatInstant(na.clock.now() + from),
      expires_at: formatInstant(na.clock.now() + to),
    };
    const answer = await register(na, signedBy({ ...members(na, key), ...window }, key));
    assert.equal(outcome(answer), expected, `from ${from} to ${to}`);
  }
});

test('a node needs a certificate that has not expired, under this very spelling of its key', async () => {
  const na = await shared();
  const node = await joinedNode(na, { max_validity_hours: 1 });
  const none = '403 node_has_no_active_certificate';
  na.clock.advance(HOUR - 1);
  assert.equal(outcome(await register(na, describe(na, node.key))), '200');
  na.clock.advance(1);
  assert.equal(outcome(await register(na, describe(na, node.key))), none);
  assert.equal(outcome(await register(na, describe(na, newKey()))), none);
  const key = await joinedKey(na, misspellableKey());
  for (const [name, node_public_key] of misspelledKeys(key.publicKey)) {
    const record = { ...members(na, key), node_public_key };
    assert.equal(outcome(await register(na, signedBy(record, key))), none, name);
  }
});

test('a certificate that was superseded by its renewal does not count, the renewal does', async () => {
  await using na = await startUnlimited({ environment: { RENEWAL_GRACE_SECONDS: '60' } });
  const node = await joinedNode(na);
  const renewal = await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
  na.clock.advance(2 * MINUTE);
  assert.equal(outcome(await register(na, describe(na, node.key))), '200');
  await revokeCertificate(na, renewal.body.cert_id, 'unspecified');
  assert.equal(
    outcome(await register(na, describe(na, node.key))),
    '403 node_has_no_active_certificate',
  );
});

test('a node that was revoked for a reason other than compromise can enroll and register again', async () => {
  const na = await shared();
  const node = await joinedNode(na);
  await revokeCertificate(na, node.certId, 'cessation_of_operation');
  assert.equal(
    outcome(await register(na, describe(na, node.key))),
    '403 node_has_no_active_certificate',
  );
  const invite_token = await invite(na);
  assert.equal(outcome(await nodeRequest(na, '/join', node.key, { invite_token })), '200');
  assert.equal(outcome(await register(na, describe(na, node.key))), '200');
});

test('a signature that does not verify under the descriptor’s key is 401 and registers nothing', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const other = await joinedNode(na);
  const valid = describe(na, node.key);
  const [signature] = valid.signatures as readonly { key_id: string; sig: string }[];
  const sig = signature?.sig ?? '';
  const forged: Cases<JsonObject> = {
    'by another node': signedBy(members(na, node.key), other.key),
    'over another descriptor': { ...describe(na, node.key, { agent_id: 'x' }), agent_id: 'y' },
    'in a second spelling': withSignature(valid, respelled(sig)),
    'cut short': withSignature(valid, sig.slice(0, -4)),
    'that is no base64': withSignature(valid, '!'),
    'of 64 zero bytes': withSignature(valid, Buffer.alloc(64).toString('base64')),
    'forged with a point of small order': withSignature(valid, FORGED_SIGNATURE),
  };
  await checkTable({ '401 invalid_signature': forged }, async (descriptor) =>
    outcome(await register(na, descriptor)),
  );
  assert.equal((await get(na, '/agents')).body.count, 0);
  const anyId = withSignature(valid, sig);
  assert.equal(outcome(await register(na, anyId)), '200', 'the key_id selects no key');
});

function withSignature(descriptor: JsonObject, sig: string): JsonObject {
  return { ...descriptor, signatures: [{ key_id: 'key', sig }] };
}

function expiryOf(na: TestAuthority): string {
  return formatInstant(na.clock.now() + LIFETIME * SECOND);
}

function inZone(instant: number): string {
  return formatInstant(instant + 2 * HOUR).replace('Z', '+02:00');
}
