/** The agent registry [service-states-agent-registration], [core-3-2], [core-3-3], [core-4-6], [core-5-6]. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAgentIndex } from '../src/authority/derived/agent-index.ts';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import type { Signer } from '../src/base/crypto/primitives.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { Agent } from '../src/client/sign-agent.ts';
import { NODE_PROOF_HEADER } from '../src/client/sign-node.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND, testClock } from './support/clock.ts';
import {
  FORGED_SIGNATURE,
  misspelledKeys,
  respelled,
  timestampSpellings,
  valuesExcept,
  WEAK_KEYS,
  WRONG_TIMESTAMPS,
} from './support/hostile.ts';
import {
  freshNonce,
  get,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type Received,
  send,
  sendRaw,
  type TestNode,
} from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { nodeProofHeader, signAgentDescriptor, signDeleteEnvelope } from './support/signing.ts';
import {
  audited,
  keyThat,
  misspellableKey,
  parsed,
  signedBy,
  startUnlimited,
  vectorsOf,
  verifies,
} from './support/trust.ts';
import { without } from './support/trust-protocol.ts';

/** For tests that leave nothing behind that another of them notices. */
const shared = sharedAuthority();

const TAG = 'llm:chat';
const LIFETIME = 600;

// Registration

test('a registered agent is answered with its expiry, counted and found by its key and its tag', async () => {
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

test('what is served is the normalized descriptor, and others can verify it', async () => {
  await using na = await startUnlimited();
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

test('members that were left out are served with their defaults', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const full = { ...members(na, node.key), capabilities: [] };
  const { signatures } = signedBy(full, node.key);
  const { capabilities: _, metadata: __, ...rest } = full as JsonObject & Record<string, JsonValue>;
  const endpoint = { host: '127.0.0.1', port: 7448 };
  assert.equal(
    outcome(await register(na, { ...rest, endpoint, signatures: signatures ?? [] })),
    '200',
  );
  const { body } = await get(na, pathOf(node.key));
  assert.deepEqual(body.capabilities, []);
  assert.deepEqual(body.metadata, {});
  assert.equal(body.endpoint.scheme, 'ws');
});

test('an unknown member that was signed makes the signature fail', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const descriptor = signedBy({ ...members(na, node.key), extra: 1 }, node.key);
  assert.equal(outcome(await register(na, descriptor)), '401 invalid_signature');
});

test('a refreshed registration replaces the one before it', async () => {
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

test('a refresh may shorten the registration, and the shorter time counts', async () => {
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

test('one of several signatures is enough, in whatever place', async () => {
  await using na = await startUnlimited();
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

test('a descriptor that was read here and is posted again takes nothing back', async () => {
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

test('nor does it bring back an agent that its node has removed', async () => {
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

test('nor one whose certificate was revoked, once its node has enrolled again', async () => {
  await using na = await startUnlimited();
  const node = await registeredNode(na);
  const served = (await get(na, pathOf(node.key))).body;
  na.clock.advance(SECOND);
  await revokeCertificate(na, node.certId, 'superseded');
  await joinedKey(na, node.key);
  assert.equal(outcome(await register(na, served)), '400 descriptor_superseded');
  na.clock.advance(SECOND);
  assert.equal(outcome(await register(na, describe(na, node.key))), '200');
});

test('a long descriptor stays refused after a shorter one that replaced it has expired', async () => {
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

test('the current registration, sent again, is answered and changes nothing', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const descriptor = describe(na, node.key);
  const answers = [await register(na, descriptor), await register(na, descriptor)];
  assert.deepEqual(answers.map(outcome), ['200', '200']);
  assert.equal(answers[1]?.text, answers[0]?.text);
  assert.equal(audited(na, 'agent_registered').length, 1);
});

test('an envelope that found nothing to remove is used up', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const envelope = envelopeOf(na, node.key);
  assert.equal(outcome(await remove(na, node.key, envelope)), '404 agent_not_registered');
  await register(na, describe(na, node.key));
  await using again = await na.restart();
  assert.equal(outcome(await remove(again, node.key, envelope)), '401 invalid_signature');
  assert.equal((await get(again, '/agents')).body.count, 1);
});

test('a descriptor without upper bound on its lifetime is taken', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const expires_at = '9999-12-31T23:59:59.999999Z';
  const descriptor = signedBy({ ...members(na, node.key), expires_at }, node.key);
  assert.equal((await register(na, descriptor)).body.expires_at, expires_at);
});

test('of one second, each descriptor of a node counts once, and the one that came last is served', async () => {
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

test('agents that are refreshed, or leave and come back, for years ahead leave nothing behind in memory', () => {
  const index = createAgentIndex();
  const YEARS = 1000 * 365 * 24 * HOUR;
  const follow = (key: string, value: string, registeredAt: number, expiresAt: number) => {
    const held = { json: '{}', content: '', superseded: [], heldUntil: YEARS };
    const context = { ...held, capabilities: [TAG], registeredAt, expiresAt };
    index.follow('agent-registration', key, { version: 1, value, context });
  };
  for (let at = 0; at < 20_000; at += 1) {
    follow('refreshed', 'registered', at, YEARS + at);
    follow('shortened', 'registered', at, YEARS - at);
    follow('leaving', 'registered', at, YEARS);
    follow('leaving', 'deregistered', at, YEARS);
    assert.ok(index.awaited() <= 1010, `${index.awaited()} expiries after ${at} rounds`);
  }
  assert.equal(index.count(), 2);
  index.expire(YEARS);
  assert.deepEqual(index.takeExpired(YEARS + 19_998), ['shortened']);
  assert.deepEqual(index.takeExpired(YEARS + 19_999), ['refreshed']);
});

test('parallel registrations of one node leave one', async () => {
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

test('a body that is no JSON object has its own 400', async () => {
  await using na = await startUnlimited();
  for (const [body, code] of [
    ['not json', 'invalid_json'],
    ['{"a":1,"a":2}', 'invalid_json'],
    ['[]', 'invalid_json_object'],
    ['"text"', 'invalid_json_object'],
    ['null', 'invalid_json_object'],
    ['', 'invalid_agent_descriptor'],
    ['{}', 'invalid_agent_descriptor'],
  ] as const) {
    assert.equal(outcome(await send(na, 'POST', '/agents', { body })), `400 ${code}`, body);
  }
});

test('a descriptor that is not a valid record is 400, however it is signed', async (t) => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const valid = members(na, node.key);
  const noText = valuesExcept('a string', 'an empty string');
  const noObject = valuesExcept('an object', 'an empty object');
  const endpoint = { host: 'h', port: 1, scheme: 'ws' };
  const cases: [string, JsonObject][] = [
    ...['agent_id', 'node_public_key', 'network_name'].flatMap((name) => [
      ...noText.map(([kind, value]): [string, JsonObject] => [
        `${kind} as ${name}`,
        { [name]: value },
      ]),
    ]),
    ...valuesExcept('a list', 'an empty list').map(([kind, value]): [string, JsonObject] => [
      `${kind} as capabilities`,
      { capabilities: value },
    ]),
    ...noText.map(([kind, value]): [string, JsonObject] => [
      `${kind} as a capability`,
      { capabilities: [value] },
    ]),
    ...valuesExcept().map(([kind, value]): [string, JsonObject] => [
      `${kind} as endpoint`,
      { endpoint: value },
    ]),
    ...noText.map(([kind, value]): [string, JsonObject] => [
      `${kind} as host`,
      { endpoint: { ...endpoint, host: value } },
    ]),
    ...noText.map(([kind, value]): [string, JsonObject] => [
      `${kind} as scheme`,
      { endpoint: { ...endpoint, scheme: value } },
    ]),
    ...[
      ...valuesExcept('the integer 7'),
      ['0', 0] as const,
      ['65536', 65_536] as const,
      ['-1', -1] as const,
      ['2 ** 64', 2n ** 64n] as const,
      ['"443"', '443'] as const,
      ['0.0', new JsonFloat(0)] as const,
    ].map(([kind, port]): [string, JsonObject] => [
      `${kind} as port`,
      { endpoint: { ...endpoint, port } },
    ]),
    ...noObject.map(([kind, value]): [string, JsonObject] => [
      `${kind} as metadata`,
      { metadata: value },
    ]),
    ['1.0 as metadata', { metadata: new JsonFloat(1) }],
    ...['registered_at', 'expires_at'].flatMap((name) =>
      [
        ...valuesExcept(),
        ['a naive datetime', '2026-01-01T00:00:00'] as const,
        ['a numeric text', '1767225600'] as const,
        ['an impossible date', '2026-02-30T00:00:00Z'] as const,
      ].map(([kind, value]): [string, JsonObject] => [`${kind} as ${name}`, { [name]: value }]),
    ),
    ['an expiry at the time of registration', { expires_at: valid.registered_at ?? null }],
    ['an expiry before the registration', { expires_at: formatInstant(na.clock.now() - 1) }],
    ['the same instant in another zone', { expires_at: inZone(na.clock.now()) }],
  ];
  for (const [name, changes] of cases) {
    await t.test(name, async () => {
      const descriptor = signedBy({ ...valid, ...changes }, node.key);
      assert.equal(outcome(await register(na, descriptor)), '400 invalid_agent_descriptor');
    });
  }
  for (const name of [
    'agent_id',
    'node_public_key',
    'network_name',
    'endpoint',
    'registered_at',
    'expires_at',
  ]) {
    await t.test(`without ${name}`, async () => {
      const { [name]: _, ...rest } = valid as Record<string, JsonValue>;
      const answer = await register(na, signedBy(rest, node.key));
      assert.equal(outcome(answer), '400 invalid_agent_descriptor');
    });
  }
  for (const [name, signatures] of [
    ...valuesExcept('a list', 'an empty list'),
    ['a list of text', ['sig']] as const,
    ['an item without sig', [{ key_id: 'k' }]] as const,
    ['an item without key_id', [{ sig: 's' }]] as const,
    ['an item with null', [{ key_id: 'k', sig: null }]] as const,
  ] as [string, JsonValue][]) {
    await t.test(`${name} as signatures`, async () => {
      const answer = await register(na, { ...valid, signatures });
      assert.equal(outcome(answer), '400 invalid_agent_descriptor');
    });
  }
  assert.equal((await get(na, '/agents')).body.count, 0);
  assert.deepEqual(audited(na, 'agent_registered'), []);
});

for (const port of [1, 65_535]) {
  test(`port ${port} is taken`, async () => {
    await using na = await startUnlimited();
    const node = await joinedNode(na);
    const endpoint = { host: 'h', port, scheme: '' };
    const descriptor = signedBy({ ...members(na, node.key), endpoint }, node.key);
    assert.equal(outcome(await register(na, descriptor)), '200');
  });
}

/** What can be wrong with a registration, in the order of the checks [core-4-6]. */
type Fault =
  | 'invalid'
  | 'unsigned'
  | 'expired'
  | 'elsewhere'
  | 'compromised'
  | 'uncertified'
  | 'forged';

const FAULTS: readonly (readonly [Fault, string])[] = [
  ['invalid', '400 invalid_agent_descriptor'],
  ['unsigned', '401 descriptor_signature_required'],
  ['expired', '400 descriptor_expired'],
  ['elsewhere', '400 descriptor_network_mismatch'],
  // A compromise ends every certificate of the key, so it has to be reported first.
  ['compromised', '403 node_key_revoked'],
  ['uncertified', '403 node_has_no_active_certificate'],
  ['forged', '401 invalid_signature'],
];

for (const [index, [fault, expected]] of FAULTS.entries()) {
  const later = FAULTS.slice(index + 1).map(([name]) => name);
  const combinations = [[fault], ...later.map((other) => [fault, other]), [fault, ...later]];
  for (const faults of combinations) {
    test(`a registration that is ${faults.join(' and ')} is ${expected}`, async () => {
      const na = await shared();
      const descriptor = await faulty(na, new Set(faults));
      assert.equal(outcome(await register(na, descriptor)), expected);
      const path = `/agents/${encodeURIComponent(String(descriptor.node_public_key))}`;
      assert.equal((await get(na, path)).status, 404);
    });
  }
}

/** A descriptor with exactly these faults, of a node whose certificates are in that state. */
async function faulty(na: TestAuthority, faults: ReadonlySet<Fault>): Promise<JsonObject> {
  const node = await joinedNode(na);
  if (faults.has('compromised')) {
    await revokeCertificate(na, node.certId, 'key_compromise');
  } else if (faults.has('uncertified')) {
    await revokeCertificate(na, node.certId, 'superseded');
  }
  const changes: Record<string, JsonValue> = {};
  if (faults.has('invalid')) changes.endpoint = { host: 'h', port: 0 };
  if (faults.has('expired')) {
    changes.registered_at = formatInstant(na.clock.now() - HOUR);
    changes.expires_at = formatInstant(na.clock.now() - MINUTE);
  }
  if (faults.has('elsewhere')) changes.network_name = 'beta';
  const record = { ...members(na, node.key), ...changes };
  if (faults.has('unsigned')) return { ...record, signatures: [] };
  return signedBy(record, faults.has('forged') ? newKey() : node.key);
}

test('a descriptor for another network is refused with the name of ours', async () => {
  await using na = await startUnlimited();
  const answer = await register(na, await faulty(na, new Set(['elsewhere'] as const)));
  assert.deepEqual(answer.body.error.details, { expected: 'alpha' });
});

test('a descriptor without the member signatures is unsigned too', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  assert.equal(
    outcome(await register(na, members(na, node.key))),
    '401 descriptor_signature_required',
  );
});

for (const [name, from, to, expected] of [
  ['registered exactly 5 minutes ahead', 5 * MINUTE, HOUR, '200'],
  ['registered 5 minutes and a millisecond ahead', 5 * MINUTE + 1, HOUR, '400 descriptor_expired'],
  [
    'registered 5 minutes and a microsecond ahead',
    5 * MINUTE + 0.001,
    HOUR,
    '400 descriptor_expired',
  ],
  ['registered long ago', -1000 * HOUR, HOUR, '200'],
  ['that expires this very instant', -HOUR, 0, '200'],
  ['that expired a millisecond ago', -HOUR, -1, '400 descriptor_expired'],
  ['that expired a microsecond ago', -HOUR, -0.001, '400 descriptor_expired'],
] as const) {
  test(`a descriptor ${name} is ${expected}`, async () => {
    await using na = await startUnlimited();
    const node = await joinedNode(na);
    const now = na.clock.now();
    const window = {
      registered_at: formatInstant(now + from),
      expires_at: formatInstant(now + to),
    };
    const descriptor = signedBy({ ...members(na, node.key), ...window }, node.key);
    assert.equal(outcome(await register(na, descriptor)), expected);
  });
}

test('a key that never joined has no active certificate', async () => {
  await using na = await startUnlimited();
  const answer = await register(na, describe(na, newKey()));
  assert.equal(outcome(answer), '403 node_has_no_active_certificate');
});

test('a certificate counts until the instant of its expiry', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na, { max_validity_hours: 1 });
  na.clock.advance(HOUR - 1);
  assert.equal(outcome(await register(na, describe(na, node.key))), '200');
  na.clock.advance(1);
  assert.equal(
    outcome(await register(na, describe(na, node.key))),
    '403 node_has_no_active_certificate',
  );
});

test('a certificate that its renewal has superseded does not count, the renewal does', async () => {
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

test('a node revoked for another reason than compromise may enroll and register again', async () => {
  await using na = await startUnlimited();
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

test('a key in another spelling is another key, and has no certificate', async () => {
  await using na = await startUnlimited();
  const key = await joinedKey(na, misspellableKey());
  for (const [name, spelling] of misspelledKeys(key.publicKey)) {
    const record = { ...members(na, key), node_public_key: spelling };
    const answer = await register(na, signedBy(record, key));
    assert.equal(outcome(answer), '403 node_has_no_active_certificate', name);
  }
});

test('a signature that does not verify under the key inside is 401 and registers nothing', async (t) => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const other = await joinedNode(na);
  const valid = describe(na, node.key);
  const [signature] = valid.signatures as readonly { key_id: string; sig: string }[];
  const sig = signature?.sig ?? '';
  for (const [name, descriptor] of [
    ['by another node', signedBy(members(na, node.key), other.key)],
    ['over another descriptor', { ...describe(na, node.key, { agent_id: 'x' }), agent_id: 'y' }],
    ['in a second spelling', withSignature(valid, respelled(sig))],
    ['cut short', withSignature(valid, sig.slice(0, -4))],
    ['that is no base64', withSignature(valid, '!')],
    ['of 64 zero bytes', withSignature(valid, Buffer.alloc(64).toString('base64'))],
    ['forged with a point of small order', withSignature(valid, FORGED_SIGNATURE)],
  ] as [string, JsonObject][]) {
    await t.test(name, async () => {
      assert.equal(outcome(await register(na, descriptor)), '401 invalid_signature');
    });
  }
  assert.equal((await get(na, '/agents')).body.count, 0);
});

test('the key_id of a signature selects nothing', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const { signatures, ...rest } = describe(na, node.key) as Record<string, JsonValue>;
  const [{ sig = '' } = {}] = signatures as readonly Record<string, JsonValue>[];
  const descriptor = { ...rest, signatures: [{ key_id: 'whoever', sig }] };
  assert.equal(outcome(await register(na, descriptor)), '200');
});

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

test('the first of several capability parameters counts', async () => {
  await using na = await startUnlimited();
  const { key } = await joinedNode(na);
  await register(na, describe(na, key, { capabilities: ['a'] }));
  assert.equal((await get(na, '/agents?capability=a&capability=b')).body.count, 1);
  assert.equal((await get(na, '/agents?capability=b&capability=a')).body.count, 0);
});

test('an agent is listed once for a tag it names twice', async () => {
  await using na = await startUnlimited();
  const { key } = await joinedNode(na);
  await register(na, describe(na, key, { capabilities: ['a', 'a'] }));
  assert.equal(await countOf(na, 'a'), 1);
});

test('agents are listed newest registered_at first, whenever they came', async () => {
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
        // A removal evicts no other registration, so a query comes first.
        if (name === 'removal') await get(na, '/agents');
        assert.deepEqual(await query(na, short.key), expected);
      }
    });
  }
});

test('an expired registration that was asked for by its key is evicted for good, also after a restart', async () => {
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

test('an expired registration is not brought back by a clock that is set back', async () => {
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

// Keys in the path

for (const [name, fits] of [
  ['a slash', (key: string) => key.includes('/')],
  ['a double slash', (key: string) => key.includes('//')],
  ['a plus', (key: string) => key.includes('+')],
  ['a slash in front', (key: string) => key.startsWith('/')],
] as const) {
  test(`a key with ${name} is found and removed, encoded or raw, with a trailing slash or not`, async (t) => {
    await using na = await startUnlimited();
    const key = await joinedKey(na, keyThat(fits));
    const encoded = encodeURIComponent(key.publicKey);
    for (const [form, path] of [
      ['encoded', encoded],
      ['encoded in small letters', encoded.replace(/%../g, (code) => code.toLowerCase())],
      ['raw', key.publicKey],
      ['partly encoded', key.publicKey.replace('=', '%3D')],
    ] as const) {
      for (const trailing of ['', '/']) {
        await t.test(`${form}${trailing && ', with a trailing slash'}`, async () => {
          assert.equal(outcome(await register(na, describe(na, key))), '200');
          const found = await sendRaw(na, 'GET', `/agents/${path}${trailing}`);
          assert.equal(outcome(found), '200');
          assert.equal(found.body.node_public_key, key.publicKey);
          const body = jsonText(envelopeOf(na, key));
          const removed = await sendWhole(na, 'DELETE', `/agents/${path}${trailing}`, body);
          assert.equal(outcome(removed), '200');
          assert.equal(outcome(await get(na, pathOf(key))), '404 agent_not_registered');
          na.clock.advance(1);
        });
      }
    }
    await register(na, describe(na, key));
    for (const path of [encodeURIComponent(encoded), `${encoded}//`, `/${encoded}`]) {
      const answer = await sendRaw(na, 'GET', `/agents/${path}`);
      assert.equal(outcome(answer), '404 agent_not_registered', path);
    }
  });
}

test('a key that cannot be decoded is 400 bad_request', async () => {
  await using na = await startUnlimited();
  for (const method of ['GET', 'DELETE']) {
    for (const path of ['%', '%zz', '%ff']) {
      assert.equal(outcome(await sendRaw(na, method, `/agents/${path}`)), '400 bad_request');
    }
  }
});

// Removal

test('a signed envelope removes the registration', async () => {
  await using na = await startUnlimited();
  const node = await registeredNode(na);
  const other = await registeredNode(na);
  const answer = await remove(na, node.key, envelopeOf(na, node.key));
  assert.equal(answer.status, 200);
  assert.equal(answer.text, '{"status":"deregistered"}');
  assert.equal(outcome(await get(na, pathOf(node.key))), '404 agent_not_registered');
  assert.equal(await countOf(na, TAG), 1);
  assert.equal(outcome(await get(na, pathOf(other.key))), '200');
  assert.deepEqual(audited(na, 'agent_deregistered'), [
    { node_public_key: node.key.publicKey, remote_addr: '127.0.0.1' },
  ]);
});

test('the envelope of the vector is what a client signs, and removes the registration of its key', async () => {
  const vector = (vectorsOf('own_wire_core.json') as JsonObject).agent_delete_envelope as {
    signed_text: string;
    signature: string;
    public_key_b64: string;
  };
  const key = signerFromSeed(Buffer.from(Array.from({ length: 32 }, (_, index) => index)));
  const signedAt = '2026-01-01T00:00:00Z';
  const envelope = signDeleteEnvelope(key, signedAt);
  assert.equal(key.publicKey, vector.public_key_b64);
  assert.equal(vector.signed_text, `delete-agent|v1|${key.publicKey}|${signedAt}`);
  assert.equal(envelope.signature, vector.signature);
  await using na = await startUnlimited({ clock: testClock(Date.UTC(2026, 0, 1)) });
  await joinedKey(na, key);
  await register(na, describe(na, key));
  const { signature } = vector;
  const sent = { version: 'v1', signed_at: signedAt, signature };
  assert.equal(outcome(await remove(na, key, sent)), '200');
});

test('the version of an envelope may be left out', async () => {
  await using na = await startUnlimited();
  const node = await registeredNode(na);
  const { version: _, ...rest } = envelopeOf(na, node.key);
  assert.equal(outcome(await remove(na, node.key, rest)), '200');
});

test('signed_at is signed as it is written, in every spelling', async (t) => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  for (const [name, signedAt] of timestampSpellings(na.clock.now())) {
    await t.test(name, async () => {
      na.clock.advance(SECOND);
      await register(na, describe(na, node.key));
      const envelope = signDeleteEnvelope(node.key, signedAt);
      assert.equal(outcome(await remove(na, node.key, envelope)), '200');
    });
  }
});

for (const [name, age, expected] of [
  ['exactly 5 minutes old', 5 * MINUTE, '200'],
  ['exactly 5 minutes ahead', -5 * MINUTE, '200'],
  ['a millisecond too old', 5 * MINUTE + 1, '401 signed_at_outside_window'],
  ['a millisecond too far ahead', -5 * MINUTE - 1, '401 signed_at_outside_window'],
  ['a microsecond too old', 5 * MINUTE + 0.001, '401 signed_at_outside_window'],
] as const) {
  test(`an envelope ${name} is ${expected}`, async () => {
    await using na = await startUnlimited();
    const node = await registeredNode(na);
    const envelope = signDeleteEnvelope(node.key, formatInstant(na.clock.now() - age));
    assert.equal(outcome(await remove(na, node.key, envelope)), expected);
  });
}

for (const [setting, age, expected] of [
  ['10', 5 * MINUTE, '200'],
  ['10', -5 * MINUTE, '200'],
  ['3600', 5 * MINUTE + 1, '401 signed_at_outside_window'],
] as const) {
  test(`an envelope ${age} ms old is ${expected}, although MESH_CLOCK_TOLERANCE_SECONDS is ${setting}`, async () => {
    await using na = await startUnlimited({
      environment: { MESH_CLOCK_TOLERANCE_SECONDS: setting },
    });
    const node = await registeredNode(na);
    const envelope = signDeleteEnvelope(node.key, formatInstant(na.clock.now() - age));
    assert.equal(outcome(await remove(na, node.key, envelope)), expected);
  });
}

test('a delete body that is no JSON object has its own 400', async () => {
  await using na = await startUnlimited();
  const node = await registeredNode(na);
  for (const [body, code] of [
    ['not json', '400 invalid_json'],
    ['[]', '400 invalid_json_object'],
    ['', '401 delete_signature_required'],
    ['{}', '401 delete_signature_required'],
  ] as const) {
    assert.equal(outcome(await send(na, 'DELETE', pathOf(node.key), { body })), code);
  }
  assert.equal(outcome(await get(na, pathOf(node.key))), '200');
});

/** What can be wrong with an envelope, in the order of the checks [core-4-6]. */
type EnvelopeFault = 'unsigned' | 'undated' | 'versioned' | 'unreadable' | 'stale' | 'forged';

const ENVELOPE_FAULTS: readonly (readonly [EnvelopeFault, string])[] = [
  ['unsigned', '401 delete_signature_required'],
  ['undated', '401 delete_signature_required'],
  ['versioned', '400 invalid_delete_version'],
  ['unreadable', '400 invalid_signed_at'],
  ['stale', '401 signed_at_outside_window'],
  ['forged', '401 invalid_signature'],
];

for (const [index, [fault, expected]] of ENVELOPE_FAULTS.entries()) {
  const later = ENVELOPE_FAULTS.slice(index + 1).map(([name]) => name);
  for (const faults of [[fault], ...later.map((other) => [fault, other])]) {
    for (const registered of [true, false]) {
      const of = registered ? '' : ' of a key that is not registered';
      test(`an envelope${of} that is ${faults.join(' and ')} is ${expected}`, async () => {
        const na = await shared();
        const node = await joinedNode(na);
        if (registered) await register(na, describe(na, node.key));
        const envelope = faultyEnvelope(na, node.key, new Set(faults));
        assert.equal(outcome(await remove(na, node.key, envelope)), expected);
        assert.equal((await get(na, pathOf(node.key))).status, registered ? 200 : 404);
        assert.deepEqual(audited(na, 'agent_deregistered'), []);
      });
    }
  }
}

function faultyEnvelope(
  na: TestAuthority,
  key: Signer,
  faults: ReadonlySet<EnvelopeFault>,
): JsonObject {
  const stale = formatInstant(na.clock.now() - HOUR);
  const now = faults.has('stale') ? stale : formatInstant(na.clock.now());
  const signedAt = faults.has('unreadable') ? 'yesterday' : now;
  const envelope: Record<string, JsonValue> = {
    ...signDeleteEnvelope(faults.has('forged') ? newKey() : key, signedAt),
  };
  if (faults.has('unsigned')) delete envelope.signature;
  if (faults.has('undated')) delete envelope.signed_at;
  if (faults.has('versioned')) envelope.version = 'v2';
  return envelope;
}

test('an envelope whose members are of another kind is refused at the check of that member', async (t) => {
  await using na = await startUnlimited();
  const node = await registeredNode(na);
  const noText = valuesExcept('a string');
  const unreadable = valuesExcept('null', 'an empty string');
  for (const [member, values, expected] of [
    ['signature', noText, '401 delete_signature_required'],
    ['signed_at', valuesExcept().slice(0, 1), '401 delete_signature_required'],
    ['signed_at', [['an empty string', '']], '401 delete_signature_required'],
    ['signed_at', unreadable, '400 invalid_signed_at'],
    ['signed_at', WRONG_TIMESTAMPS.map((text) => [text, text]), '400 invalid_signed_at'],
    ['version', valuesExcept('null'), '400 invalid_delete_version'],
    ['version', [['V1', 'V1']], '400 invalid_delete_version'],
  ] as [string, [string, JsonValue][], string][]) {
    for (const [name, value] of values) {
      await t.test(`${name} as ${member}`, async () => {
        const envelope = { ...envelopeOf(na, node.key), [member]: value };
        assert.equal(outcome(await remove(na, node.key, envelope)), expected);
      });
    }
  }
  assert.equal(outcome(await get(na, pathOf(node.key))), '200');
});

test('a signature that does not verify under the path key is 401', async (t) => {
  await using na = await startUnlimited();
  const key = await joinedKey(na, misspellableKey());
  await register(na, describe(na, key));
  const other = await registeredNode(na);
  const envelope = envelopeOf(na, key);
  const signature = String(envelope.signature);
  const signedAt = formatInstant(na.clock.now());
  const zone = formatInstant(na.clock.now()).replace('Z', '+00:00');
  for (const [name, path, body] of [
    ['of another node', pathOf(key), envelopeOf(na, other.key)],
    ['over another key', pathOf(other.key), envelope],
    ['in a second spelling', pathOf(key), { ...envelope, signature: respelled(signature) }],
    ['that is no base64', pathOf(key), { ...envelope, signature: '!' }],
    ['over another spelling of the time', pathOf(key), { ...envelope, signed_at: zone }],
    ['over another version', pathOf(key), { ...envelope, signature: over('v2') }],
    ['over another purpose', pathOf(key), { ...envelope, signature: key.sign(signedAt) }],
    ...misspelledKeys(key.publicKey).map(
      ([name, spelling]) =>
        [`for the key ${name}`, `/agents/${encodeURIComponent(spelling)}`, envelope] as const,
    ),
    ...WEAK_KEYS.map(
      (weak) =>
        [
          `forged for the weak key ${weak.slice(0, 6)}`,
          `/agents/${encodeURIComponent(weak)}`,
          { ...envelope, signature: FORGED_SIGNATURE },
        ] as const,
    ),
  ] as [string, string, JsonObject][]) {
    await t.test(name, async () => {
      const answer = await send(na, 'DELETE', path, { body: jsonText(body) });
      assert.equal(outcome(answer), '401 invalid_signature');
    });
  }
  assert.equal((await get(na, '/agents')).body.count, 2);

  function over(version: string): string {
    return key.sign(`delete-agent|${version}|${key.publicKey}|${signedAt}`);
  }
});

test('a valid envelope for a key that is not registered is 404', async () => {
  await using na = await startUnlimited();
  for (const key of [newKey(), (await joinedNode(na)).key]) {
    assert.equal(outcome(await remove(na, key, envelopeOf(na, key))), '404 agent_not_registered');
  }
});

test('a recorded envelope cannot remove a later registration, also after a restart', async () => {
  await using na = await startUnlimited();
  const node = await registeredNode(na);
  const envelope = envelopeOf(na, node.key);
  assert.equal(outcome(await remove(na, node.key, envelope)), '200');
  assert.equal(outcome(await remove(na, node.key, envelope)), '404 agent_not_registered');
  na.clock.advance(SECOND);
  await register(na, describe(na, node.key));
  assert.equal(outcome(await remove(na, node.key, envelope)), '401 invalid_signature');
  assert.equal(outcome(await get(na, pathOf(node.key))), '200');
  await using again = await na.restart();
  assert.equal(outcome(await remove(again, node.key, envelope)), '401 invalid_signature');
  again.clock.advance(1);
  assert.equal(outcome(await remove(again, node.key, envelopeOf(again, node.key))), '200');
});

for (const seconds of ['300', '10']) {
  test(`an envelope is remembered for as long as it could be replayed, with a tolerance of ${seconds} s`, async () => {
    await using na = await startUnlimited({
      environment: { MESH_CLOCK_TOLERANCE_SECONDS: seconds },
    });
    const node = await registeredNode(na);
    const ahead = signDeleteEnvelope(node.key, formatInstant(na.clock.now() + 5 * MINUTE));
    assert.equal(outcome(await remove(na, node.key, ahead)), '200');
    na.clock.advance(10 * MINUTE);
    await na.flush();
    await register(na, describe(na, node.key));
    assert.equal(outcome(await remove(na, node.key, ahead)), '401 invalid_signature');
  });
}

test('20 removals at once with one envelope remove once', async () => {
  await using na = await startUnlimited();
  const node = await registeredNode(na);
  const envelope = envelopeOf(na, node.key);
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => remove(na, node.key, envelope)),
  );
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  assert.equal(audited(na, 'agent_deregistered').length, 1);
});

// The proof header

test('the proof header removes a registration without an envelope, and no body signature is checked', async (t) => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  for (const [name, bodyText] of [
    ['no body', ''],
    ['an empty object', '{}'],
    ['an envelope that would be refused', '{"version":"v9","signature":"!","signed_at":"never"}'],
  ] as const) {
    await t.test(name, async () => {
      na.clock.advance(SECOND);
      await register(na, describe(na, node.key));
      const answer = await removeByHeader(na, node.key, { bodyText });
      assert.equal(outcome(answer), '200');
      assert.equal(answer.text, '{"status":"deregistered"}');
    });
  }
  assert.equal(audited(na, 'agent_deregistered').length, 3);
});

test('the proof header signs the path as it is decoded', async () => {
  await using na = await startUnlimited();
  const key = await joinedKey(na, misspellableKey());
  for (const requestPath of [pathOf(key), `/agents/${key.publicKey}`]) {
    na.clock.advance(SECOND);
    await register(na, describe(na, key));
    assert.equal(outcome(await removeByHeader(na, key, { requestPath })), '200');
  }
});

test('a proof header for a key that is not registered is 404', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  assert.equal(outcome(await removeByHeader(na, node.key)), '404 agent_not_registered');
});

test('when the proof header is there it decides alone: a valid envelope does not help', async (t) => {
  await using na = await startUnlimited({ environment: { MESH_RATE_LIMIT_NODE_FAILURES: 'off' } });
  const node = await registeredNode(na);
  const other = await joinedNode(na);
  const scope = `node:${node.key.publicKey}`;
  const used = freshNonce();
  assert.equal(outcome(await removeByHeader(na, node.key, { nonce: used })), '200');
  na.clock.advance(SECOND);
  await register(na, describe(na, node.key));
  const bodyText = jsonText(envelopeOf(na, node.key));
  const late = formatInstant(na.clock.now() - 5 * MINUTE - 1);
  for (const [name, reason, call] of [
    ['malformed', 'missing_fields', { header: 'v=1' }],
    ['of another version', 'missing_fields', { alter: (h) => h.replace('v=1', 'v=2') }],
    ['of another key', 'missing_fields', { signer: other.key, named: other.key.publicKey }],
    ['with a time that is none', 'invalid_timestamp', { timestamp: 'yesterday' }],
    ['too old', 'stale_timestamp', { timestamp: late }],
    ['with a nonce used before', 'nonce_replay', { nonce: used }],
    ['signed by another key', 'invalid_signature', { signer: other.key }],
    ['for another path', 'invalid_signature', { signedPath: pathOf(other.key) }],
    ['for another method', 'invalid_signature', { method: 'POST' }],
    ['for another body', 'invalid_signature', { signedBody: '{}' }],
    ['for another authority', 'invalid_signature', { audience: other.key.publicKey }],
    ['for another query', 'invalid_signature', { requestPath: `${pathOf(node.key)}?x=1` }],
  ] as [string, string, HeaderCall][]) {
    await t.test(`${name}: ${reason}`, async () => {
      const before = audited(na, 'node_auth_failed').length;
      const answer = await removeByHeader(na, node.key, { bodyText, ...call });
      assert.equal(outcome(answer), '401 node_auth_failed');
      assert.deepEqual(audited(na, 'node_auth_failed').slice(before), [
        { scope, reason, remote_addr: '127.0.0.1' },
      ]);
    });
  }
  assert.equal(outcome(await get(na, pathOf(node.key))), '200');
});

test('failed proof headers are limited per claimed key', async () => {
  await using na = await startUnlimited({ environment: { MESH_RATE_LIMIT_NODE_FAILURES: '2/60' } });
  const node = await registeredNode(na);
  for (const expected of [
    '401 node_auth_failed',
    '401 node_auth_failed',
    '429 rate_limit_exceeded',
  ]) {
    assert.equal(outcome(await removeByHeader(na, node.key, { signer: newKey() })), expected);
  }
  const other = await registeredNode(na);
  assert.equal(outcome(await removeByHeader(na, other.key)), '200');
});

test('POST /agents takes the proof header in addition, and it must then hold', async (t) => {
  await using na = await startUnlimited({ environment: { MESH_RATE_LIMIT_NODE_FAILURES: 'off' } });
  const node = await joinedNode(na);
  const nonce = freshNonce();
  const bodyText = jsonText(describe(na, node.key));
  const call = { method: 'POST', requestPath: '/agents', bodyText };
  for (const [name, changes, expected] of [
    ['a valid one', { nonce }, '200'],
    ['one with a nonce used before', { nonce }, '401 node_auth_failed'],
    ['one of another key', { signer: newKey() }, '401 node_auth_failed'],
    ['a malformed one', { header: 'x' }, '401 node_auth_failed'],
    ['one over another body', { signedBody: '{}' }, '401 node_auth_failed'],
  ] as [string, HeaderCall, string][]) {
    await t.test(name, async () => {
      const answer = await sendWithHeader(na, node.key, { ...call, ...changes });
      assert.equal(outcome(answer), expected);
    });
  }
});

test('the proof header never replaces the signature of the descriptor', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  const record = members(na, node.key);
  for (const [descriptor, expected] of [
    [{ ...record, signatures: [] }, '401 descriptor_signature_required'],
    [signedBy(record, newKey()), '401 invalid_signature'],
  ] as const) {
    const call = { method: 'POST', requestPath: '/agents', bodyText: jsonText(descriptor) };
    assert.equal(outcome(await sendWithHeader(na, node.key, call)), expected);
  }
});

// Revocation of the certificate

for (const reason of ['key_compromise', 'cessation_of_operation', 'superseded', 'unspecified']) {
  test(`revoking a node's certificate as ${reason} evicts its registration with it`, async () => {
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

test('any certificate of the key evicts, and the other one lets the node register again', async () => {
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

test('whatever order revocation and registration come in, a revoked node is never offered', async () => {
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
  test(`${method} is limited to 30 a minute, before anything else is checked`, async () => {
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

test('registrations are there again after a restart, byte for byte and in order', async () => {
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

test('registrations of the same instant keep their order over a restart', async () => {
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

test('a removed, an evicted and a revoked registration stay away after a restart', async () => {
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

function members(na: TestAuthority, key: Signer): JsonObject {
  const { signatures: _, ...record } = describe(na, key) as Record<string, JsonValue>;
  return record;
}

function describe(na: TestAuthority, key: Signer, changes: Partial<Agent> = {}): JsonObject {
  return signAgentDescriptor(
    {
      agent_id: 'agent-1',
      network_name: 'alpha',
      capabilities: [TAG],
      endpoint: { host: '127.0.0.1', port: 7448 },
      lifetimeSeconds: LIFETIME,
      ...changes,
    },
    key,
    na.clock.now(),
  );
}

function withSignature(descriptor: JsonObject, sig: string): JsonObject {
  return { ...descriptor, signatures: [{ key_id: 'key', sig }] };
}

function register(na: TestAuthority, descriptor: JsonObject): Promise<Received> {
  return send(na, 'POST', '/agents', { body: jsonText(descriptor) });
}

/** The key, once it has joined with an invite of its own. */
async function joinedKey(na: TestAuthority, key: Signer): Promise<Signer> {
  const invite_token = await invite(na);
  assert.equal(outcome(await nodeRequest(na, '/join', key, { invite_token })), '200');
  return key;
}

async function registeredNode(na: TestAuthority, changes: Partial<Agent> = {}): Promise<TestNode> {
  const node = await joinedNode(na);
  assert.equal(outcome(await register(na, describe(na, node.key, changes))), '200');
  return node;
}

function expiryOf(na: TestAuthority): string {
  return formatInstant(na.clock.now() + LIFETIME * SECOND);
}

function pathOf({ publicKey }: Signer): string {
  return `/agents/${encodeURIComponent(publicKey)}`;
}

async function countOf(na: TestAuthority, tag: string): Promise<number> {
  const { body } = await get(na, `/agents?capability=${encodeURIComponent(tag)}`);
  assert.equal(body.agents.length, body.count);
  return body.count;
}

function envelopeOf(na: TestAuthority, key: Signer): JsonObject {
  return signDeleteEnvelope(key, formatInstant(na.clock.now()));
}

function remove(na: TestAuthority, key: Signer, envelope: JsonObject): Promise<Received> {
  return send(na, 'DELETE', pathOf(key), { body: jsonText(envelope) });
}

async function revokeCertificate(na: TestAuthority, cert_id: string, reason: string) {
  const answer = await operate(na, '/admin/revoke', { cert_id, reason });
  assert.equal(outcome(answer), '200');
}

/** A proof header and its faults; by default it fits the request. */
interface HeaderCall {
  readonly method?: string;
  readonly requestPath?: string;
  readonly bodyText?: string;
  readonly timestamp?: string;
  readonly nonce?: string;
  readonly audience?: string;
  readonly signer?: Signer;
  /** The key the header names, when it is not that of the node. */
  readonly named?: string;
  readonly signedPath?: string;
  readonly signedBody?: string;
  readonly header?: string;
  readonly alter?: (header: string) => string;
}

function removeByHeader(na: TestAuthority, key: Signer, call: HeaderCall = {}) {
  return sendWithHeader(na, key, { requestPath: pathOf(key), ...call });
}

async function sendWithHeader(na: TestAuthority, key: Signer, call: HeaderCall): Promise<Received> {
  const { requestPath = '', bodyText = '', signer = key } = call;
  const method = requestPath === '/agents' ? 'POST' : 'DELETE';
  const path = decodeURIComponent((call.signedPath ?? requestPath).split('?')[0] ?? '');
  const made = await nodeProofHeader(
    {
      method: call.method ?? method,
      path,
      query: {},
      audience: call.audience ?? na.audience,
      bodyText: call.signedBody ?? bodyText,
      timestamp: call.timestamp ?? formatInstant(na.clock.now()),
      nonce: call.nonce ?? freshNonce(),
    },
    { publicKey: call.named ?? key.publicKey, sign: signer.sign },
  );
  const header = call.header ?? call.alter?.(made) ?? made;
  return sendWhole(na, method, requestPath, bodyText, { [NODE_PROOF_HEADER]: header });
}

/** The path exactly as written, which `fetch` does not guarantee. */
function sendWhole(
  na: TestAuthority,
  method: string,
  path: string,
  body: string,
  headers: { readonly [name: string]: string } = {},
): Promise<Received> {
  const length = { 'Content-Length': Buffer.byteLength(body) };
  return sendRaw(na, method, path, { headers: { ...headers, ...length }, pieces: [body] });
}

function inZone(instant: number): string {
  return formatInstant(instant + 2 * HOUR).replace('Z', '+02:00');
}
