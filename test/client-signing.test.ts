import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonValue } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { decodeBase64, encodeBase64 } from '../src/client/base64.ts';
import { keyFromSeed, newKey, signText, verifyText } from '../src/client/keys.ts';
import {
  nodeProofHeader,
  type OperatorRequest,
  operatorHeaders,
  operatorPayload,
  signAgentDescriptor,
  signDeleteEnvelope,
  signNodeBody,
} from '../src/client/signing.ts';
import {
  type AgentDescriptor,
  readAgentDescriptor,
} from '../src/protocol/records/agent-descriptor.ts';
import { isSignedByAny, signedText } from '../src/protocol/records/signed-record.ts';
import { readVectors } from './support/vectors.ts';

interface OperatorVector {
  readonly id: string;
  readonly input: Omit<OperatorRequest, 'keyId'> & {
    readonly key_id: string;
    readonly public_key_b64: string;
  };
  readonly expected: {
    readonly payload: string;
    readonly signature_b64: string;
    readonly legacy_payload: string;
    readonly legacy_signature_b64: string;
  };
}

interface NodeVectors {
  readonly node_body_signature: {
    readonly body: { readonly [name: string]: string };
    readonly signed_text: string;
  };
  readonly node_proof_header_ours: {
    readonly raw_body: string;
    readonly signed_text: string;
    readonly header: string;
  };
  readonly agent_delete_envelope: { readonly signed_text: string; readonly signature: string };
  readonly records: readonly {
    readonly record: string;
    readonly received: AgentDescriptor;
    readonly canonical: string;
  }[];
}

const seedOf = (first: number) => Uint8Array.from({ length: 32 }, (_, index) => first + index);
const keys = { a: seedOf(0), b: seedOf(32), c: seedOf(64) };
const keyA = keyFromSeed(keys.a);

const operatorVectors = readVectors<OperatorVector[]>('admin_auth.json');
const nodeVectors = readVectors<NodeVectors>('own_wire_core.json');

for (const { id, input, expected } of operatorVectors) {
  const request = { ...input, keyId: input.key_id };

  test(`operator request ${id} is signed`, async () => {
    assert.equal(operatorPayload(request), expected.payload);
    assert.deepEqual(await operatorHeaders(request, signerOf(input.public_key_b64)), {
      'X-Admin-Key-Id': input.key_id,
      'X-Admin-Timestamp': input.timestamp,
      'X-Admin-Nonce': input.nonce,
      'X-Admin-Signature': expected.signature_b64,
    });
  });
}

test('a node body carries timestamp, nonce and the signature over all its other members', async () => {
  const { body, signed_text } = nodeVectors.node_body_signature;
  const { timestamp = '', nonce = '', signature = '', ...members } = body;
  assert.deepEqual(await signNodeBody(members, keyA, { timestamp, nonce }), body);
  assert.equal(verifyText(keyA.publicKey, signed_text, signature), true);
});

test('signing a body again replaces the signature and never covers the old one', async () => {
  const { body } = nodeVectors.node_body_signature;
  const { timestamp = '', nonce = '' } = body;
  assert.deepEqual(await signNodeBody(body, keyA, { timestamp, nonce }), body);
});

test('the node proof header binds method, path, audience and the body bytes', async () => {
  const { raw_body, signed_text, header } = nodeVectors.node_proof_header_ours;
  const request = {
    method: 'POST',
    path: '/heartbeat',
    query: {},
    audience: keyA.publicKey,
    bodyText: raw_body,
    timestamp: '2026-01-01T00:00:00Z',
    nonce: 'n-2',
  };
  assert.equal(await nodeProofHeader(request, keyA), header);
  assert.equal(verifyText(keyA.publicKey, signed_text, header.split('sig=')[1] ?? ''), true);
  for (const change of [{ path: '/renew' }, { bodyText: '{}' }, { audience: 'another' }]) {
    assert.notEqual(await nodeProofHeader({ ...request, ...change }, keyA), header);
  }
});

test('a descriptor is signed over all its members, defaults present', async () => {
  const vector = nodeVectors.records.find(({ record }) => record === 'AgentDescriptor');
  assert.ok(vector !== undefined);
  const { agent_id, network_name, capabilities, endpoint, signatures } = vector.received;
  const { host, port } = endpoint;
  const agent = { agent_id, network_name, capabilities, endpoint: { host, port } };
  const descriptor = await signAgentDescriptor(agent, keyA, Date.parse('2026-01-01T00:00:00Z'));
  assert.equal(signedText(descriptor), vector.canonical);
  const [signature] = signatures;
  assert.deepEqual(descriptor.signatures, [{ key_id: keyA.publicKey, sig: signature?.sig }]);
});

test('a descriptor lasts as long as asked, in canonical datetimes', async () => {
  const agent = {
    agent_id: 'a',
    network_name: 'n',
    endpoint: { host: 'h', port: 1, scheme: 'wss' },
  };
  const now = Date.parse('2026-01-01T00:00:00.250Z');
  const descriptor = await signAgentDescriptor({ ...agent, lifetimeSeconds: 90 }, keyA, now);
  assert.equal(descriptor.registered_at, '2026-01-01T00:00:00.250000Z');
  assert.equal(descriptor.expires_at, '2026-01-01T00:01:30.250000Z');
  assert.deepEqual(descriptor.endpoint, agent.endpoint);
});

for (const [what, metadata] of [
  ['floats by token', { load: new JsonFloat(1), size: new JsonFloat(1e22) }],
  ['plain numbers', { tiny: 1e-7, small: 0.00001, half: 0.5, large: 1e21, count: 3 }],
  ['integers of any size', { serial: 2n ** 70n }],
  ['text outside ASCII', { name: 'Zürich ✓', nested: [{ empty: null }] }],
] as const satisfies readonly (readonly [string, { readonly [name: string]: JsonValue }])[]) {
  test(`the authority verifies a descriptor whose metadata contains ${what}`, async () => {
    const agent = { agent_id: 'a', network_name: 'n', endpoint: { host: 'h', port: 1 }, metadata };
    const sent = jsonText(
      await signAgentDescriptor(agent, keyA, Date.parse('2026-01-01T00:00:00Z')),
    );
    const read = readAgentDescriptor(parseJson(sent));
    assert.ok(read !== null);
    assert.equal(isSignedByAny(read, [keyA.publicKey], verifySignature), true);
  });
}

test('the delete envelope is signed over key and time verbatim', async () => {
  const { signed_text, signature } = nodeVectors.agent_delete_envelope;
  const signedAt = '2026-01-01T00:00:00Z';
  const envelope = { version: 'v1', signed_at: signedAt, signature };
  assert.deepEqual(await signDeleteEnvelope(keyA, signedAt), envelope);
  assert.equal(verifyText(keyA.publicKey, signed_text, signature), true);
});

test('the authority verifies what the portable key signs', async () => {
  const key = newKey();
  const signature = await signText(key, 'Zürich ✓');
  assert.equal(verifySignature(key.publicKey, 'Zürich ✓', signature), true);
  assert.equal(verifySignature(key.publicKey, 'Zurich ✓', signature), false);
  assert.notEqual(newKey().publicKey, key.publicKey);
});

for (const [problem, publicKey] of [
  ['missing padding', keyA.publicKey.slice(0, -1)],
  ['a second spelling', keyA.publicKey.replace('g=', 'h=')],
  ['URL alphabet', keyA.publicKey.replaceAll('/', '_')],
  ['31 bytes', encodeBase64(new Uint8Array(31))],
  ['no base64', '*'.repeat(44)],
  ['nothing', ''],
] as const) {
  test(`a public key with ${problem} decodes to nothing and verifies nothing`, async () => {
    assert.equal(decodeBase64(publicKey, 32), null);
    assert.equal(verifyText(publicKey, 'text', await signText(keyA, 'text')), false);
  });
}

function signerOf(publicKey: string) {
  const pairs = Object.values(keys).map(keyFromSeed);
  const pair = pairs.find((candidate) => candidate.publicKey === publicKey);
  assert.ok(pair !== undefined);
  return pair;
}
