/** Removal of agents by their nodes, and the proof header [core-3-2], [core-4-6], [core-5-6]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import type { Signer } from '../src/base/crypto/primitives.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { NODE_PROOF_HEADER } from '../src/client/signing.ts';
import {
  countOf,
  describe,
  envelopeOf,
  joinedKey,
  members,
  pathOf,
  register,
  registeredNode,
  remove,
  TAG,
} from './support/agents.ts';
import { sharedAuthority, type TestAuthority } from './support/authority.ts';
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
  joinedNode,
  newKey,
  outcome,
  type Received,
  send,
  sendRaw,
} from './support/requests.ts';
import { nodeProofHeader, signDeleteEnvelope } from './support/signing.ts';
import { checkFaults, checkTable, type Fault, inEach } from './support/tables.ts';
import { audited, keyThat, misspellableKey, signedBy, startUnlimited } from './support/trust.ts';
import { readVectors } from './support/vectors.ts';

/** For tests that leave nothing behind that would affect the others. */
const shared = sharedAuthority();

// Keys in the path

test('a key is found and removed, encoded or raw, with a trailing slash or not', async () => {
  const na = await shared();
  for (const [name, fits] of [
    ['a slash', (key: string) => key.includes('/')],
    ['a double slash', (key: string) => key.includes('//')],
    ['a plus', (key: string) => key.includes('+')],
    ['a slash in front', (key: string) => key.startsWith('/')],
  ] as const) {
    const key = await joinedKey(na, keyThat(fits));
    const encoded = encodeURIComponent(key.publicKey);
    for (const path of [
      encoded,
      encoded.replace(/%../g, (code) => code.toLowerCase()),
      key.publicKey,
      key.publicKey.replace('=', '%3D'),
    ]) {
      for (const trailing of ['', '/']) {
        const given = `/agents/${path}${trailing}`;
        assert.equal(outcome(await register(na, describe(na, key))), '200');
        const found = await sendRaw(na, 'GET', given);
        assert.equal(found.body.node_public_key, key.publicKey, `${name}: ${given}`);
        const removed = await sendWhole(na, 'DELETE', given, jsonText(envelopeOf(na, key)));
        assert.equal(outcome(removed), '200', `${name}: ${given}`);
        assert.equal(outcome(await get(na, pathOf(key))), '404 agent_not_registered');
        na.clock.advance(1);
      }
    }
    await register(na, describe(na, key));
    for (const path of [encodeURIComponent(encoded), `${encoded}//`, `/${encoded}`]) {
      const answer = await sendRaw(na, 'GET', `/agents/${path}`);
      assert.equal(outcome(answer), '404 agent_not_registered', path);
    }
  }
  for (const path of ['%', '%zz', '%ff']) {
    for (const method of ['GET', 'DELETE']) {
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
  const vector = readVectors<JsonObject>('own_wire_core.json').agent_delete_envelope as {
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

test('an envelope may lack its version, and signs its time as it is written, in every spelling', async () => {
  const na = await shared();
  const node = await registeredNode(na);
  const { version: _, ...rest } = envelopeOf(na, node.key);
  assert.equal(outcome(await remove(na, node.key, rest)), '200');
  for (const [name, signedAt] of timestampSpellings(na.clock.now())) {
    na.clock.advance(SECOND);
    await register(na, describe(na, node.key));
    const envelope = signDeleteEnvelope(node.key, signedAt);
    assert.equal(outcome(await remove(na, node.key, envelope)), '200', name);
  }
});

test('an envelope is at most five minutes old or ahead, whatever MESH_CLOCK_TOLERANCE_SECONDS is', async () => {
  for (const MESH_CLOCK_TOLERANCE_SECONDS of ['300', '10', '3600']) {
    await using na = await startUnlimited({ environment: { MESH_CLOCK_TOLERANCE_SECONDS } });
    for (const [age, expected] of [
      [5 * MINUTE, '200'],
      [-5 * MINUTE, '200'],
      [5 * MINUTE + 1, '401 signed_at_outside_window'],
      [-5 * MINUTE - 1, '401 signed_at_outside_window'],
      [5 * MINUTE + 0.001, '401 signed_at_outside_window'],
    ] as const) {
      const node = await registeredNode(na);
      const envelope = signDeleteEnvelope(node.key, formatInstant(na.clock.now() - age));
      assert.equal(outcome(await remove(na, node.key, envelope)), expected, `${age} ms old`);
    }
  }
});

/** What is wrong with an envelope, in the order of the checks [core-4-6]. */
interface Draft {
  readonly signature?: undefined;
  readonly signed_at?: undefined;
  readonly version?: string;
  readonly signedAt?: string;
  readonly isForged?: true;
}

test('of several faults of an envelope the first is reported, for any key, and nothing is removed', async () => {
  const na = await shared();
  const registered = (await registeredNode(na)).key;
  const unregistered = (await joinedNode(na)).key;
  const faults = [
    ['401 delete_signature_required', { signature: undefined }],
    ['401 delete_signature_required', { signed_at: undefined }],
    ['400 invalid_delete_version', { version: 'v2' }],
    ['400 invalid_signed_at', { signedAt: 'yesterday' }],
    ['401 signed_at_outside_window', { signedAt: formatInstant(na.clock.now() - HOUR) }],
    ['401 invalid_signature', { isForged: true }],
  ] as const satisfies readonly Fault<Draft>[];
  for (const key of [registered, unregistered]) {
    await checkFaults<Draft>(faults, async ({ signedAt, isForged, ...members }) => {
      const at = signedAt ?? formatInstant(na.clock.now());
      const envelope = { ...signDeleteEnvelope(isForged ? newKey() : key, at), ...members };
      const body = JSON.stringify(envelope);
      return outcome(await send(na, 'DELETE', pathOf(key), { body }));
    });
  }
  assert.equal(outcome(await get(na, pathOf(registered))), '200');
});

test('an envelope with a member of the wrong type is refused at the check of that member', async () => {
  const na = await shared();
  const { key } = await registeredNode(na);
  const texts = (...values: readonly string[]) => values.map((text) => [text, text] as const);
  await checkTable(
    {
      '401 delete_signature_required': {
        ...inEach('signature', valuesExcept('a string')),
        ...inEach('signed_at', [['null', null], ...texts('')]),
      },
      '400 invalid_signed_at': inEach('signed_at', [
        ...valuesExcept('null', 'an empty string'),
        ...texts(...WRONG_TIMESTAMPS),
      ]),
      '400 invalid_delete_version': inEach('version', [...valuesExcept('null'), ...texts('V1')]),
    },
    async (members) => outcome(await remove(na, key, { ...envelopeOf(na, key), ...members })),
  );
  for (const body of ['', '{}']) {
    const answer = await send(na, 'DELETE', pathOf(key), { body });
    assert.equal(outcome(answer), '401 delete_signature_required');
  }
  assert.equal(outcome(await get(na, pathOf(key))), '200');
});

test('a signature that does not verify under the path key is 401', async () => {
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
    const answer = await send(na, 'DELETE', path, { body: jsonText(body) });
    assert.equal(outcome(answer), '401 invalid_signature', name);
  }
  assert.equal((await get(na, '/agents')).body.count, 2);

  function over(version: string): string {
    return key.sign(`delete-agent|${version}|${key.publicKey}|${signedAt}`);
  }
});

test('an envelope or a proof header for a key that is not registered is 404', async () => {
  const na = await shared();
  for (const key of [newKey(), (await joinedNode(na)).key]) {
    assert.equal(outcome(await remove(na, key, envelopeOf(na, key))), '404 agent_not_registered');
    assert.equal(outcome(await removeByHeader(na, key)), '404 agent_not_registered');
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

test('20 simultaneous removals with one envelope remove once', async () => {
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

test('the proof header removes a registration without an envelope, and no body signature is checked', async () => {
  await using na = await startUnlimited();
  const node = await joinedNode(na);
  for (const [name, bodyText] of [
    ['no body', ''],
    ['an empty object', '{}'],
    ['an envelope that would be refused', '{"version":"v9","signature":"!","signed_at":"never"}'],
  ] as const) {
    na.clock.advance(SECOND);
    await register(na, describe(na, node.key));
    const answer = await removeByHeader(na, node.key, { bodyText });
    assert.equal(outcome(answer), '200', name);
    assert.equal(answer.text, '{"status":"deregistered"}', name);
  }
  assert.equal(audited(na, 'agent_deregistered').length, 3);
});

test('the proof header signs the decoded path', async () => {
  const na = await shared();
  const key = await joinedKey(na, misspellableKey());
  for (const requestPath of [pathOf(key), `/agents/${key.publicKey}`]) {
    na.clock.advance(SECOND);
    await register(na, describe(na, key));
    assert.equal(outcome(await removeByHeader(na, key, { requestPath })), '200');
  }
});

test('a proof header alone decides: a valid envelope does not help', async () => {
  const na = await shared();
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
    const before = audited(na, 'node_auth_failed').length;
    const answer = await removeByHeader(na, node.key, { bodyText, ...call });
    assert.equal(outcome(answer), '401 node_auth_failed', name);
    const failures = audited(na, 'node_auth_failed').slice(before);
    assert.deepEqual(failures, [{ scope, reason, remote_addr: '127.0.0.1' }], name);
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

test('POST /agents also accepts the proof header, which must then be valid', async () => {
  const na = await shared();
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
    const answer = await sendWithHeader(na, node.key, { ...call, ...changes });
    assert.equal(outcome(answer), expected, name);
  }
  const record = members(na, node.key);
  for (const [descriptor, expected] of [
    [{ ...record, signatures: [] }, '401 descriptor_signature_required'],
    [signedBy(record, newKey()), '401 invalid_signature'],
  ] as const) {
    const bodyText = jsonText(descriptor);
    const answer = await sendWithHeader(na, node.key, { ...call, bodyText });
    assert.equal(outcome(answer), expected, 'it never replaces the signature of the descriptor');
  }
});

/** A proof header and its faults; by default it matches the request. */
interface HeaderCall {
  readonly method?: string;
  readonly requestPath?: string;
  readonly bodyText?: string;
  readonly timestamp?: string;
  readonly nonce?: string;
  readonly audience?: string;
  readonly signer?: Signer;
  /** The key that the header names, if it is not the node's. */
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

/** Sends the path exactly as written, which `fetch` does not guarantee. */
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
