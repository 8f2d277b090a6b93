/** What a node's proof covers: the members of a body, the grammar of the header, and the scopes of nonces. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import type { Signer } from '../src/base/crypto/primitives.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { NODE_PROOF_HEADER } from '../src/client/signing.ts';
import { judgeNode } from '../src/edge/auth/node.ts';
import type { SignedRequest as JudgedRequest } from '../src/edge/auth/signed-request.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import {
  FORGED_SIGNATURE,
  misspelledKeys,
  respelled,
  valuesExcept,
  WEAK_KEYS,
  WRONG_TIMESTAMPS,
} from './support/hostile.ts';
import {
  auditEvents,
  freshNonce,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
  provenByNode,
  type Received,
  send,
  sendRaw,
  sendSigned,
  signedByNode,
} from './support/requests.ts';
import { nodeProofHeader, signNodeBody } from './support/signing.ts';
import { readVectors } from './support/vectors.ts';

/** For tests that leave nothing behind that another test would notice. */
const shared = sharedAuthority();

const TOLERANCE = 5 * MINUTE;
const ROUTES = ['/join', '/heartbeat', '/renew'] as const;
type RoutePath = (typeof ROUTES)[number];
const FAILED = '401 node_auth_failed';
/** The time of the vectors. */
const NOW = Date.parse('2026-01-01T00:00:00Z');

/** A caller of the route: its key, its body without the proof, and the nonce scope. */
interface Caller {
  readonly key: Signer;
  readonly body: JsonObject;
  readonly scope: string;
}

async function callerOf(na: TestAuthority, route: RoutePath): Promise<Caller> {
  if (route === '/join') {
    const key = newKey();
    return { key, body: { invite_token: await invite(na) }, scope: `join:${key.publicKey}` };
  }
  const { key, certId } = await joinedNode(na);
  return { key, body: { cert_id: certId }, scope: `node:${key.publicKey}` };
}

test('a signed body may have any members, and its nonce any characters', async () => {
  const na = await shared();
  for (const route of ROUTES) {
    for (const [members, call] of [
      [{}, { nonce: 'Zürich ✓ "\\' }],
      // Unknown members, a float and digits where an integer will do, and numbers beyond a double.
      [{ extra: { deep: [null, true] }, 'é\uE000': 'ü' }, {}],
      [{ validity_hours: new JsonFloat(2) }, {}],
      [{ validity_hours: '2' }, {}],
      [{ extra: [2n ** 70n, new JsonFloat(1e-7)] }, {}],
    ] as const) {
      const { key, body } = await callerOf(na, route);
      const answer = await nodeRequest(na, route, key, { ...body, ...members }, call);
      assert.equal(outcome(answer), '200', `${route} ${Object.keys(members)}`);
    }
  }
});

test('the header binds the query, and decides alone, whatever the body contains', async () => {
  const na = await shared();
  for (const route of ROUTES) {
    const { key, body } = await callerOf(na, route);
    const headers = (proof: string) => ({ [NODE_PROOF_HEADER]: proof });
    const { init } = signedByNode(na, route, key, body);
    for (const proof of ['v=1', `v=1; key=${key.publicKey}; ts=x; nonce=n; sig=s`]) {
      const answer = await send(na, 'POST', route, { ...init, headers: headers(proof) });
      assert.equal(outcome(answer), FAILED, 'a good body does not mend a bad header');
    }
    const badly = { ...body, timestamp: 'never', nonce: 5, signature: 'bad' };
    const proven = await provenByNode(na, route, key, badly, { query: { a: ['x y', ''] } });
    assert.equal(outcome(await sendSigned(na, { ...proven, path: `${route}?a=x` })), FAILED);
    const answer = await sendSigned(na, { ...proven, path: `${route}?a=x+y&a` });
    assert.equal(outcome(answer), '200', 'nor does a bad body spoil a good header');

    const other = await callerOf(na, route);
    const signed = signedByNode(na, route, other.key, other.body).init.body ?? '';
    const absent = await sendRaw(na, 'POST', route, { headers: headers(''), pieces: [signed] });
    assert.equal(outcome(absent), '200', 'an empty header counts as absent');
  }
});

test('the nonce of a join can be used again for the node’s own requests, and only there', async () => {
  await using na = await startTestAuthority();
  const key = newKey();
  const nonce = freshNonce();
  const first = signedByNode(na, '/join', key, { invite_token: await invite(na) }, { nonce });
  const { body } = await sendSigned(na, first);
  const alive = { cert_id: body.cert_id };
  assert.equal(outcome(await nodeRequest(na, '/heartbeat', key, alive, { nonce })), '200');
  const second = { invite_token: await invite(na) };
  const assertSpent = async (at: TestAuthority) =>
    assertFailed(at, await nodeRequest(at, '/join', key, second, { nonce }), {
      scope: `join:${key.publicKey}`,
      reason: 'nonce_replay',
    });
  await assertSpent(na);
  await using again = await na.restart();
  assert.equal(outcome(await sendSigned(again, first)), '403 invalid_invite_token');
  await assertSpent(again);
  assert.equal(outcome(await nodeRequest(again, '/join', key, second)), '200', 'it is unspent');
});

test('a nonce spent in the header is spent in the body, of heartbeats and renewals alike', async () => {
  const na = await shared();
  for (const from of ['/heartbeat', '/renew'] as const) {
    for (const to of ['/heartbeat', '/renew'] as const) {
      const { key, body, scope } = await callerOf(na, from);
      const nonce = freshNonce();
      const proof = await provenByNode(na, from, key, body, { nonce });
      assert.equal(outcome(await sendSigned(na, proof)), '200');
      const replayed = await nodeRequest(na, to, key, body, { nonce });
      assertFailed(na, replayed, { scope, reason: 'nonce_replay' });
    }
  }
});

test('a request refused for the state of its certificate, or its roles, was genuine: its nonce is spent', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na, { max_validity_hours: 1 });
  const other = await joinedNode(na, { max_validity_hours: 2 });
  na.clock.advance(HOUR);
  const roles = { roles: ['role:operator'] };
  const spent = [];
  for (const [path, { key, certId }, members, expected] of [
    ['/heartbeat', node, {}, '403 certificate_expired'],
    ['/renew', node, {}, '403 certificate_expired'],
    ['/renew', other, roles, '403 renewal_role_change_forbidden'],
  ] as const) {
    const request = signedByNode(na, path, key, { cert_id: certId, ...members });
    assert.equal(outcome(await sendSigned(na, request)), expected);
    spent.push({ ...request, path: path === '/renew' ? '/heartbeat' : '/renew' });
  }
  for (const request of spent) assert.equal(outcome(await sendSigned(na, request)), FAILED);
  await using again = await na.restart();
  const [, , ofRoles] = spent;
  assert.ok(ofRoles !== undefined);
  assert.equal(outcome(await sendSigned(again, ofRoles)), FAILED);
});

test('heartbeats that arrive out of order by a few seconds are all accepted', async () => {
  const na = await shared();
  const { key, body } = await callerOf(na, '/heartbeat');
  na.clock.advance(MINUTE);
  for (const age of [0, 5, 1, 30, 2, 0, 30]) {
    const timestamp = formatInstant(na.clock.now() - age * SECOND);
    assert.equal(outcome(await nodeRequest(na, '/heartbeat', key, body, { timestamp })), '200');
  }
});

test('what a request names is checked before its proof', async () => {
  const na = await shared();
  const before = proofFailures(na).length;
  const [node, other, revoked] = [await joinedNode(na), await joinedNode(na), await joinedNode(na)];
  await operate(na, '/admin/revoke', { cert_id: revoked.certId });
  const ofCertificates = (['/heartbeat', '/renew'] as const).flatMap(
    (route) =>
      [
        [route, node.key, { cert_id: 'nobody' }, '403 certificate_not_found'],
        [route, node.key, { cert_id: other.certId }, '403 certificate_key_mismatch'],
        [route, revoked.key, { cert_id: revoked.certId }, '403 certificate_revoked'],
      ] as const,
  );
  for (const [route, key, body, expected] of [
    ...ofCertificates,
    ['/join', newKey(), { invite_token: 'none' }, '403 invalid_invite_token'] as const,
  ]) {
    for (const call of [{ signedBy: newKey() }, {}]) {
      assert.equal(outcome(await nodeRequest(na, route, key, body, call)), expected, route);
    }
  }
  for (const route of ROUTES) {
    const code = route === '/join' ? 'missing_node_public_key' : 'missing_certificate_identity';
    const { key, body } = await callerOf(na, route);
    for (const [name, value] of [['nothing', undefined], ...valuesExcept('a string')] as const) {
      const call = { alter: put('node_public_key', value) };
      assert.equal(outcome(await nodeRequest(na, route, key, body, call)), `400 ${code}`, name);
    }
  }
  assert.equal(proofFailures(na).length, before);
});

test('a key that is not canonical base64 of 32 bytes fails the proof of its own signature', async () => {
  const na = await shared();
  const key = keyWithSlash();
  const body = { invite_token: await invite(na) };
  for (const [spelling, publicKey] of misspelledKeys(key.publicKey)) {
    const misspelled = { ...key, publicKey };
    const answer = await nodeRequest(na, '/join', misspelled, body);
    const failure = { scope: `join:${publicKey}`, reason: 'invalid_signature' };
    assertFailed(na, answer, failure, spelling);
    if (publicKey.includes('\n')) continue;
    const byHeader = await sendSigned(na, await provenByNode(na, '/join', misspelled, body));
    assert.equal(outcome(byHeader), FAILED, spelling);
  }
  const right = await nodeRequest(na, '/join', key, body);
  assert.equal(outcome(right), '200', 'the token stays usable');
});

test('keys of small order, and keys that are not on the curve, never prove anything', async () => {
  const na = await shared();
  const body = { invite_token: await invite(na) };
  for (const publicKey of WEAK_KEYS) {
    for (const signature of [FORGED_SIGNATURE, zeros(64), publicKey.slice(0, -1) + publicKey]) {
      const forger = { publicKey, sign: () => signature };
      const what = `${publicKey} with ${signature.slice(0, 12)}…`;
      assert.equal(outcome(await nodeRequest(na, '/join', forger, body)), FAILED, what);
      const proof = await provenByNode(na, '/join', forger, body);
      assert.equal(outcome(await sendSigned(na, proof)), FAILED, what);
    }
  }
});

test('a proof header on a public route is ignored', async () => {
  const na = await shared();
  const answer = await send(na, 'GET', '/crl', { headers: { [NODE_PROOF_HEADER]: 'v=1' } });
  assert.equal(outcome(answer), '200');
});

test('a signed body proves exactly its members, in the form of the vector', () => {
  const { body, public_key_b64: key } = VECTORS.node_body_signature;
  const judged = (change: JsonObject, now = NOW) => judgeBody(key, { ...body, ...change }, now);
  assert.equal(judged({}), 'valid');
  assert.equal(judged({}, NOW + TOLERANCE + 1), 'stale_timestamp');
  for (const change of [
    ...[{ status: 'ill' }, { roles: [] }, { cert_id: 'c-2' }, { nonce: 'n-2' }],
    ...[{ extra: 1 }, { extra: null }],
  ]) {
    assert.equal(judged(change), 'invalid_signature', JSON.stringify(change));
  }
  for (const part of ['timestamp', 'nonce', 'signature']) {
    for (const [kind, value] of valuesExcept('a string')) {
      assert.equal(judged({ [part]: value }), 'missing_fields', `${kind} as ${part}`);
    }
  }
  assert.equal(judged({ nonce: 'n'.repeat(129) }), 'missing_fields');
  for (const timestamp of [...WRONG_TIMESTAMPS, ` ${body.timestamp} `]) {
    assert.equal(judged({ timestamp }), 'invalid_timestamp', timestamp);
  }
});

test('a proof header proves one request, in the form of the vector', () => {
  const { judged, audience, key, header } = headerVector();
  assert.equal(judged(header), 'valid');
  for (const change of [
    { path: '/renew' },
    { method: 'DELETE' },
    { query: { a: [''] } },
    { rawBody: Buffer.from('{ }') },
    { rawBody: new Uint8Array() },
  ]) {
    assert.equal(judged(header, change), 'invalid_signature', JSON.stringify(change));
  }
  assert.equal(judged(header, {}, newKey().publicKey), 'invalid_signature');
  assert.equal(judgeHeader(newKey().publicKey, header, REQUEST, audience), 'missing_fields');
  const stamp = { timestamp: '2026-01-01T00:00:00Z', nonce: 'n-2' };
  const ofBody = signNodeBody({ node_public_key: key }, vectorKey(), stamp);
  const fromBody = header.replace(/sig=.*/, `sig=${ofBody.signature}`);
  assert.equal(judged(fromBody), 'invalid_signature', 'nor does the signature of a body');
  const fromHeader = { ...ofBody, signature: header.split('sig=')[1] ?? '' };
  assert.equal(judgeBody(key, fromHeader, NOW), 'invalid_signature');
});

test('a proof header has five parts, in any order and with any blanks', async () => {
  const { judged, audience, header } = headerVector();
  const parts = header.split('; ');
  for (const spelled of [
    parts.toReversed().join('; '),
    header.replaceAll(' ', ''),
    ` ${header.replaceAll(';', '  ;  ')} `,
  ]) {
    assert.equal(judged(spelled), 'valid', spelled);
  }
  for (const part of parts) {
    const name = part.slice(0, part.indexOf('=') + 1);
    const others = parts.filter((other) => other !== part);
    assert.equal(judged(others.join('; ')), 'missing_fields', `without ${name}`);
    assert.equal(judged([...others, name].join('; ')), 'missing_fields', `with an empty ${name}`);
    assert.equal(judged(`${header}; ${part}`), 'missing_fields', `with ${name} twice`);
  }
  for (const [fault, spelled] of [
    ['with a sixth part', `${header}; x=1`],
    ['with a part that has no =', `${header}; x`],
    ['with nothing behind its last semicolon', `${header};`],
    ['with commas for semicolons', header.replaceAll(';', ',')],
    ['with its names in capitals', header.replace('nonce=', 'Nonce=')],
    ['of version 2', header.replace('v=1', 'v=2')],
    ['of version 01', header.replace('v=1', 'v=01')],
    ['longer than 1024 characters', header.replace('; ', `; ${' '.repeat(1000)}`)],
    ['that is one word', 'proof'],
  ] as const) {
    assert.equal(judged(spelled), 'missing_fields', fault);
  }
  for (const [nonce, expected] of [
    ['AZaz09._:-', 'valid'],
    ['n'.repeat(128), 'valid'],
    ['n'.repeat(129), 'missing_fields'],
    ...['a b', 'a/b', 'a=b'].map((text) => [text, 'missing_fields'] as const),
  ] as const) {
    const { rawBody, ...request } = REQUEST;
    const signed = { ...request, audience, bodyText: String(rawBody), nonce };
    const timestamp = '2026-01-01T00:00:00Z';
    const made = await nodeProofHeader({ ...signed, timestamp }, vectorKey());
    assert.equal(judged(made), expected, nonce);
  }
  const [start = '', signature = ''] = header.split('sig=');
  assert.equal(judged(`${start}sig=${respelled(signature)}`), 'invalid_signature');
});

function assertFailed(
  na: TestAuthority,
  answer: Received,
  failure: { readonly scope: string; readonly reason: string },
  message = failure.reason,
): void {
  assert.equal(outcome(answer), FAILED, message);
  assert.deepEqual(proofFailures(na).at(-1), { ...failure, remote_addr: '127.0.0.1' }, message);
}

function proofFailures(na: TestAuthority): Record<string, unknown>[] {
  return auditEvents(na)
    .filter(({ type }) => type === 'node_auth_failed')
    .map(({ details }) => details);
}

function put(name: string, value: unknown): (body: Record<string, unknown>) => void {
  return (body) => {
    if (value === undefined) delete body[name];
    else body[name] = value;
  };
}

function zeros(bytes: number): string {
  return Buffer.alloc(bytes).toString('base64');
}

/** A key whose base64 differs in the URL alphabet. */
function keyWithSlash(): Signer {
  for (;;) {
    const key = newKey();
    if (/[+/]/.test(key.publicKey)) return key;
  }
}

interface NodeVectors {
  readonly node_body_signature: {
    readonly body: { readonly [name: string]: string };
    readonly public_key_b64: string;
  };
  readonly node_proof_header_ours: {
    readonly raw_body: string;
    readonly signed_text: string;
    readonly header: string;
  };
}

const VECTORS = readVectors<NodeVectors>('own_wire_core.json');

/** The key that signs the vectors. */
function vectorKey(): Signer {
  return signerFromSeed(Buffer.from(Array.from({ length: 32 }, (_, index) => index)));
}

const REQUEST = {
  method: 'POST',
  path: '/heartbeat',
  query: {},
  body: {},
  rawBody: Buffer.from(VECTORS.node_proof_header_ours.raw_body),
};

function headerVector() {
  const { header, signed_text } = VECTORS.node_proof_header_ours;
  const { audience, key } = parseJson(signed_text) as { audience: string; key: string };
  const judged = (given: string, change: object = {}, named = audience) =>
    judgeHeader(key, given, { ...REQUEST, ...change }, named);
  return { judged, audience, key, header };
}

function judgeBody(publicKey: string, body: JsonObject, now: number): string {
  const request = { ...REQUEST, body, remoteAddr: '192.0.2.1', now };
  const settings = { authorityKeys: { audiences: [] }, toleranceMs: TOLERANCE };
  return judgeNode(publicKey, '', request, null, Buffer.from(jsonText(body)), settings).verdict;
}

function judgeHeader(
  publicKey: string,
  header: string,
  { rawBody, ...request }: JudgedRequest & { readonly rawBody: Uint8Array },
  audience: string,
): string {
  const settings = { authorityKeys: { audiences: [audience] }, toleranceMs: TOLERANCE };
  const received = { ...request, remoteAddr: '192.0.2.1', now: NOW };
  return judgeNode(publicKey, header, received, null, rawBody, settings).verdict;
}
