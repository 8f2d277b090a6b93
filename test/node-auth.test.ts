import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Signer } from '../src/base/crypto/primitives.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { NODE_PROOF_HEADER, type NodeRequest } from '../src/client/sign-node.ts';
import { judgeNode } from '../src/edge/auth/node.ts';
import type { SignedRequest as JudgedRequest } from '../src/edge/auth/signed-request.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import {
  FORGED_SIGNATURE,
  misspelledKeys,
  respelled,
  timestampSpellings,
  valuesExcept,
  WEAK_KEYS,
  WRONG_TIMESTAMPS,
} from './support/hostile.ts';
import { PROJECT } from './support/project.ts';
import {
  auditEvents,
  freshNonce,
  heartbeat,
  invite,
  joinedNode,
  type NodeCall,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type Received,
  type SignedRequest,
  send,
  sendRaw,
  sendSigned,
  signedByNode,
} from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { nodeProofHeader } from './support/signing.ts';

/** For tests that leave nothing behind that another test would notice. */
const shared = sharedAuthority();

const TOLERANCE = 5 * MINUTE;
const ROUTES = ['/join', '/heartbeat', '/renew'] as const;
type RoutePath = (typeof ROUTES)[number];
const FAILED = '401 node_auth_failed';

/** A caller of the route: its key, its body without the proof, and the nonce scope. */
interface Caller {
  readonly key: Signer;
  readonly body: JsonObject;
  readonly scope: string;
}

async function callerOf(na: TestAuthority, route: RoutePath, key = newKey()): Promise<Caller> {
  if (route === '/join') {
    return { key, body: { invite_token: await invite(na) }, scope: `join:${key.publicKey}` };
  }
  const node = await joinedNode(na);
  const scope = `node:${node.key.publicKey}`;
  return { key: node.key, body: { cert_id: node.certId }, scope };
}

for (const route of ROUTES) {
  test(`POST ${route} accepts a body signed by the node`, async () => {
    const na = await shared();
    const { key, body } = await callerOf(na, route);
    assert.equal(outcome(await nodeRequest(na, route, key, body)), '200');
  });

  test(`POST ${route} refuses a body that proves nothing, and audits why`, async () => {
    const na = await shared();
    const { key, body, scope } = await callerOf(na, route);
    const spent = await spendNonce(na, key, route, body);
    // Spending the nonce on /join used the invite, so create another one.
    const unspent = route === '/join' ? { invite_token: await invite(na) } : body;

    for (const [fault, reason, call] of [
      ...['timestamp', 'nonce', 'signature'].flatMap((name) => [
        [`without ${name}`, 'missing_fields', { alter: without(name) }] as const,
        ...valuesExcept('a string').map(
          ([kind, value]) =>
            [`with ${kind} as ${name}`, 'missing_fields', { alter: put(name, value) }] as const,
        ),
      ]),
      ...WRONG_TIMESTAMPS.map(
        (timestamp) => [`signed at ${timestamp}`, 'invalid_timestamp', { timestamp }] as const,
      ),
      ['with blanks around its timestamp', 'invalid_timestamp', spacedTimestamp(na)],
      ['1 ms too old', 'stale_timestamp', aged(na, TOLERANCE + 1)],
      ['1 ms too far ahead', 'stale_timestamp', aged(na, -TOLERANCE - 1)],
      ['1 µs too old', 'stale_timestamp', aged(na, TOLERANCE + 0.001)],
      ['with a nonce used before', 'nonce_replay', { nonce: spent }],
      ['signed by another key', 'invalid_signature', { signedBy: newKey() }],
      ['with a signature that is no base64', 'invalid_signature', { alter: put('signature', '!') }],
      ['with a signature of 63 bytes', 'invalid_signature', { alter: put('signature', zeros(63)) }],
      [
        'with 64 zero bytes as signature',
        'invalid_signature',
        { alter: put('signature', zeros(64)) },
      ],
      ['with its signature in a second spelling', 'invalid_signature', { alter: respell }],
      ['with another nonce than it signed', 'invalid_signature', { alter: put('nonce', 'other') }],
      ['with a member added after signing', 'invalid_signature', { alter: put('extra', 1) }],
      ['with null added after signing', 'invalid_signature', { alter: put('extra', null) }],
      ['with claimed roles added after signing', 'invalid_signature', { alter: put('roles', []) }],
    ] as [string, string, NodeCall][]) {
      const answer = await nodeRequest(na, route, key, unspent, call);
      assertFailed(na, answer, { scope, reason }, fault);
    }
    const long = await nodeRequest(na, route, key, unspent, { nonce: 'n'.repeat(129) });
    assert.equal(outcome(long), FAILED);
    const valid = await nodeRequest(na, route, key, unspent);
    assert.equal(outcome(valid), '200', 'none of this keeps the node from a valid request');
  });

  test(`POST ${route} accepts what was signed 300 s ago or ahead, and any signed member`, async () => {
    const na = await shared();
    for (const [members, call] of [
      [{}, aged(na, TOLERANCE)],
      [{}, aged(na, -TOLERANCE)],
      [{}, { nonce: 'n'.repeat(128) }],
      [{}, { nonce: 'Zürich ✓ "\\' }],
      // Unknown members, a float and digits where an integer will do, and numbers beyond a double.
      [{ extra: { deep: [null, true] }, 'é\uE000': 'ü' }, {}],
      [{ validity_hours: new JsonFloat(2) }, {}],
      [{ validity_hours: '2' }, {}],
      [{ extra: [2n ** 70n, new JsonFloat(1e-7)] }, {}],
    ] as [JsonObject, NodeCall][]) {
      const { key, body } = await callerOf(na, route);
      const answer = await nodeRequest(na, route, key, { ...body, ...members }, call);
      assert.equal(outcome(answer), '200', JSON.stringify(call));
    }
  });

  test(`POST ${route} accepts X-Mesh-Node-Proof in place of a signed body`, async () => {
    const na = await shared();
    const caller = await callerOf(na, route);
    assert.equal(outcome(await sendSigned(na, await proven(na, route, caller))), '200');
  });

  test(`POST ${route} refuses a header that proves nothing, and audits why`, async () => {
    const na = await shared();
    const caller = await callerOf(na, route);
    const { key, body, scope } = caller;
    const spent = await spendNonce(na, key, route, body);
    const unspent = route === '/join' ? { invite_token: await invite(na) } : body;
    const renewed = { ...caller, body: unspent };

    for (const [fault, reason, change, alter] of [
      ...['v', 'key', 'ts', 'nonce', 'sig'].flatMap((name) => [
        [`without ${name}`, 'missing_fields', {}, partless(name)] as const,
        [`with an empty ${name}`, 'missing_fields', {}, emptied(name)] as const,
        [`with ${name} twice`, 'missing_fields', {}, doubled(name)] as const,
      ]),
      ['with a sixth part', 'missing_fields', {}, appended('; x=1')],
      ['with a part that has no =', 'missing_fields', {}, appended('; x')],
      ['with nothing behind its last semicolon', 'missing_fields', {}, appended(';')],
      ['with commas for semicolons', 'missing_fields', {}, swapped(/;/g, ',')],
      ['with its names in capitals', 'missing_fields', {}, swapped(/nonce=/, 'Nonce=')],
      ['of version 2', 'missing_fields', {}, swapped(/v=1/, 'v=2')],
      ['of version 01', 'missing_fields', {}, swapped(/v=1/, 'v=01')],
      ['longer than 1024 characters', 'missing_fields', {}, swapped(/; /, `; ${' '.repeat(1000)}`)],
      ['that is one word', 'missing_fields', {}, () => 'proof'],
      ['with a nonce of 129 characters', 'missing_fields', { nonce: 'n'.repeat(129) }],
      ['with a blank in its nonce', 'missing_fields', { nonce: 'a b' }],
      ['with a slash in its nonce', 'missing_fields', { nonce: 'a/b' }],
      ['with an = in its nonce', 'missing_fields', { nonce: 'a=b' }],
      ...WRONG_TIMESTAMPS.map(
        (timestamp) => [`signed at ${timestamp}`, 'invalid_timestamp', { timestamp }] as const,
      ),
      ['1 ms too old', 'stale_timestamp', aged(na, TOLERANCE + 1)],
      ['1 ms too far ahead', 'stale_timestamp', aged(na, -TOLERANCE - 1)],
      ['with a nonce used before', 'nonce_replay', { nonce: spent }],
      ['for another method', 'invalid_signature', { method: 'PUT' }],
      ['for another path', 'invalid_signature', { path: '/agents' }],
      ['for another query', 'invalid_signature', { query: { a: ['1'] } }],
      ['for another authority', 'invalid_signature', { audience: newKey().publicKey }],
      ['for another body', 'invalid_signature', { bodyText: '{}' }],
      ['for the body in another spelling', 'invalid_signature', { bodyText: 'spaced' }],
      ['with its signature in a second spelling', 'invalid_signature', {}, respelledProof],
      [
        'with 64 zero bytes as signature',
        'invalid_signature',
        {},
        swapped(/sig=.*/, `sig=${zeros(64)}`),
      ],
    ] as [string, string, Partial<NodeRequest>, ((header: string) => string)?][]) {
      const request = await proven(na, route, renewed, change, alter);
      assertFailed(na, await sendSigned(na, request), { scope, reason }, fault);
    }
    // Under another key than the body names.
    const foreign = await proven(na, route, renewed, {}, undefined, newKey());
    assert.equal(outcome(await sendSigned(na, foreign)), FAILED);
    const valid = await sendSigned(na, await proven(na, route, renewed));
    assert.equal(outcome(valid), '200', 'none of this keeps the node from a valid request');
  });

  test(`POST ${route} reads the parts of the header in any order, with any blanks`, async () => {
    const na = await shared();
    for (const [change, alter] of [
      [{}, (header: string) => header.split('; ').reverse().join('; ')],
      [{}, swapped(/ /g, '')],
      [{}, (header: string) => ` ${header.replaceAll(';', '  ;  ')} `],
      [{ nonce: 'AZaz09._:-' }],
      [{ nonce: 'n'.repeat(128) }],
    ] as [Partial<NodeRequest>, ((header: string) => string)?][]) {
      const request = await proven(na, route, await callerOf(na, route), change, alter);
      const answer = await sendSigned(na, request);
      assert.equal(outcome(answer), '200', request.init.headers[NODE_PROOF_HEADER]);
    }
  });

  test(`POST ${route}: the header binds the query that was sent`, async () => {
    const na = await shared();
    const caller = await callerOf(na, route);
    const request = await proven(na, route, caller, { query: { a: ['x y', ''] } });
    assert.equal(outcome(await sendSigned(na, { ...request, path: `${route}?a=x` })), FAILED);
    assert.equal(outcome(await sendSigned(na, { ...request, path: `${route}?a=x+y&a` })), '200');
  });

  test(`POST ${route}: the header alone decides, whatever the body contains`, async () => {
    const na = await shared();
    const caller = await callerOf(na, route);
    const signedBody = signedByNode(na, route, caller.key, caller.body);
    for (const proof of ['v=1', `v=1; key=${caller.key.publicKey}; ts=x; nonce=n; sig=s`]) {
      const headers = { [NODE_PROOF_HEADER]: proof };
      const answer = await sendSigned(na, { ...signedBody, init: { ...signedBody.init, headers } });
      assert.equal(outcome(answer), FAILED, 'a good body does not mend a bad header');
    }
    const badly = { ...caller.body, timestamp: 'never', nonce: 5, signature: 'bad' };
    const request = await proven(na, route, { ...caller, body: badly });
    assert.equal(
      outcome(await sendSigned(na, request)),
      '200',
      'nor does a bad body spoil a good one',
    );
  });

  test(`POST ${route}: an empty proof header counts as absent, so the signed body decides`, async () => {
    const na = await shared();
    const { key, body } = await callerOf(na, route);
    const { init } = signedByNode(na, route, key, body);
    const headers = { [NODE_PROOF_HEADER]: '' };
    const answer = await sendRaw(na, 'POST', route, { headers, pieces: [init.body ?? ''] });
    assert.equal(outcome(answer), '200');
  });

  test(`POST ${route}: a body signature is not a valid header signature, and vice versa`, async () => {
    const na = await shared();
    const caller = await callerOf(na, route);
    const stamp = { timestamp: formatInstant(na.clock.now()), nonce: freshNonce() };
    const { init } = signedByNode(na, route, caller.key, caller.body, stamp);
    const ofBody = JSON.parse(init.body ?? '').signature as string;
    const fromBody = swapped(/sig=.*/, `sig=${ofBody}`);
    const asHeader = await proven(na, route, caller, stamp, fromBody);
    assert.equal(outcome(await sendSigned(na, asHeader)), FAILED);
    const good = await proven(na, route, caller, stamp);
    const ofHeader = good.init.headers[NODE_PROOF_HEADER]?.split('sig=')[1];
    const asBody = { ...stamp, alter: put('signature', ofHeader) };
    assert.equal(outcome(await nodeRequest(na, route, caller.key, caller.body, asBody)), FAILED);
  });

  test(`POST ${route}: a failed signature does not spend the nonce, in either form`, async () => {
    const na = await shared();
    const caller = await callerOf(na, route);
    const nonce = freshNonce();
    const failed = { nonce, signedBy: newKey() };
    assert.equal(outcome(await nodeRequest(na, route, caller.key, caller.body, failed)), FAILED);
    const wrong = await proven(na, route, caller, { nonce, path: '/' });
    assert.equal(outcome(await sendSigned(na, wrong)), FAILED);
    assert.equal(outcome(await nodeRequest(na, route, caller.key, caller.body, { nonce })), '200');
  });

  test(`POST ${route}: of several faults the first is audited`, async () => {
    const na = await shared();
    const { key, body, scope } = await callerOf(na, route);
    const spent = await spendNonce(na, key, route, body);
    const unspent = route === '/join' ? { invite_token: await invite(na) } : body;
    const stale = aged(na, TOLERANCE + 1);
    for (const [faults, reason, call] of [
      [
        'no signature, no time',
        'missing_fields',
        { timestamp: 'never', alter: without('signature') },
      ],
      ['no time, replayed', 'invalid_timestamp', { timestamp: 'never', nonce: spent }],
      ['no time, wrongly signed', 'invalid_timestamp', { timestamp: 'never', signedBy: newKey() }],
      ['stale, replayed', 'stale_timestamp', { ...stale, nonce: spent }],
      ['stale, wrongly signed', 'stale_timestamp', { ...stale, signedBy: newKey() }],
      ['replayed, wrongly signed', 'nonce_replay', { nonce: spent, signedBy: newKey() }],
    ] as [string, string, NodeCall][]) {
      const answer = await nodeRequest(na, route, key, unspent, call);
      assertFailed(na, answer, { scope, reason }, faults);
    }
  });

  test(`POST ${route}: of 20 concurrent copies of one request exactly one is accepted`, async () => {
    const na = await shared();
    const { key, body } = await callerOf(na, route);
    const request = signedByNode(na, route, key, body);
    const answers = await Promise.all(Array.from({ length: 20 }, () => sendSigned(na, request)));
    assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  });
}

test("a node's timestamp is read in every spelling, and signed as it was sent", async () => {
  const na = await shared();
  const caller = await callerOf(na, '/heartbeat');
  na.clock.advance(SECOND);
  for (const [spelling, timestamp] of timestampSpellings(na.clock.now())) {
    const { key, body } = caller;
    const answer = await nodeRequest(na, '/heartbeat', key, body, { timestamp });
    assert.equal(outcome(answer), '200', spelling);
    const request = await proven(na, '/heartbeat', caller, { timestamp });
    assert.equal(outcome(await sendSigned(na, request)), '200', spelling);
  }
});

test('the nonce of a join can be used again for the node’s own requests, and only there', async () => {
  const na = await shared();
  const key = newKey();
  const nonce = freshNonce();
  const first = { invite_token: await invite(na) };
  const { body } = await nodeRequest(na, '/join', key, first, { nonce });
  const alive = { cert_id: body.cert_id };
  assert.equal(outcome(await nodeRequest(na, '/heartbeat', key, alive, { nonce })), '200');
  const second = { invite_token: await invite(na) };
  assertFailed(na, await nodeRequest(na, '/join', key, second, { nonce }), {
    scope: `join:${key.publicKey}`,
    reason: 'nonce_replay',
  });
  assert.equal(outcome(await nodeRequest(na, '/join', key, second)), '200', 'the token is unspent');
});

for (const [from, to] of [
  ['/heartbeat', '/renew'],
  ['/renew', '/heartbeat'],
  ['/heartbeat', '/heartbeat'],
  ['/renew', '/renew'],
] as const) {
  test(`a body accepted by ${from} is refused by ${to}: they share a nonce scope`, async () => {
    const na = await shared();
    const { key, body, scope } = await callerOf(na, from);
    const request = signedByNode(na, from, key, body);
    assert.equal(outcome(await sendSigned(na, request)), '200');
    const replayed = await sendSigned(na, { ...request, path: to });
    assertFailed(na, replayed, { scope, reason: 'nonce_replay' });
  });

  test(`a nonce spent in the header of ${from} is spent in the body of ${to}`, async () => {
    const na = await shared();
    const caller = await callerOf(na, from);
    const nonce = freshNonce();
    const proof = await proven(na, from, caller, { nonce });
    assert.equal(outcome(await sendSigned(na, proof)), '200');
    const { key, body, scope } = caller;
    const replayed = await nodeRequest(na, to, key, body, { nonce });
    assertFailed(na, replayed, { scope, reason: 'nonce_replay' });
  });

  test(`a body accepted by ${from} is refused by ${to} after a clean restart`, async () => {
    await using na = await startTestAuthority();
    const { key, body } = await callerOf(na, from);
    na.clock.advance(SECOND);
    const request = signedByNode(na, from, key, body);
    assert.equal(outcome(await sendSigned(na, request)), '200');
    await using again = await na.restart();
    assert.equal(outcome(await sendSigned(again, { ...request, path: to })), FAILED);
    again.clock.advance(SECOND);
    const fresh = await nodeRequest(again, to, key, body);
    assert.equal(outcome(fresh), '200', 'what is signed later passes');
  });

  test(`a body accepted by ${from} is refused by ${to} after a restart exactly 300 s later`, async () => {
    await using na = await startTestAuthority();
    const { key, body } = await callerOf(na, from);
    na.clock.advance(SECOND);
    const request = signedByNode(na, from, key, body);
    assert.equal(outcome(await sendSigned(na, request)), '200');
    na.clock.advance(TOLERANCE);
    await using again = await na.restart();
    assert.equal(outcome(await sendSigned(again, { ...request, path: to })), FAILED);
  });

  test(`a body signed 300 s ahead is refused by ${to} for as long as it is current`, async () => {
    await using na = await startTestAuthority();
    const { key, body } = await callerOf(na, from);
    const request = signedByNode(na, from, key, body, aged(na, -TOLERANCE));
    assert.equal(outcome(await sendSigned(na, request)), '200');
    const staysRefused = async (authority: TestAuthority) => {
      for (let minute = 0; minute < 5; minute += 1) {
        authority.clock.advance(MINUTE);
        await authority.flush();
        assert.equal(outcome(await sendSigned(authority, { ...request, path: to })), FAILED);
      }
    };
    await staysRefused(na);
    await using again = await na.restart();
    await staysRefused(again);
  });
}

test('a join is not repeated after a restart: neither its token nor its nonce', async () => {
  await using na = await startTestAuthority();
  const key = newKey();
  const nonce = freshNonce();
  const request = signedByNode(na, '/join', key, { invite_token: await invite(na) }, { nonce });
  assert.equal(outcome(await sendSigned(na, request)), '200');
  await using again = await na.restart();
  assert.equal(outcome(await sendSigned(again, request)), '403 invalid_invite_token');
  const next = { invite_token: await invite(again) };
  assertFailed(again, await nodeRequest(again, '/join', key, next, { nonce }), {
    scope: `join:${key.publicKey}`,
    reason: 'nonce_replay',
  });
});

test('a request refused for the state of its certificate was genuine: its nonce is spent', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na, { max_validity_hours: 1 });
  const body = { cert_id: node.certId };
  na.clock.advance(HOUR);
  for (const [first, second] of [
    ['/heartbeat', '/renew'],
    ['/renew', '/heartbeat'],
  ] as const) {
    const request = signedByNode(na, first, node.key, body);
    assert.equal(outcome(await sendSigned(na, request)), '403 certificate_expired');
    assert.equal(outcome(await sendSigned(na, { ...request, path: second })), FAILED);
  }
});

test('a renewal refused for its roles cannot be replayed as a heartbeat, even after a restart', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  na.clock.advance(SECOND);
  const body = { cert_id: node.certId, roles: ['role:operator'] };
  const request = signedByNode(na, '/renew', node.key, body);
  assert.equal(outcome(await sendSigned(na, request)), '403 renewal_role_change_forbidden');
  assert.equal(outcome(await sendSigned(na, { ...request, path: '/heartbeat' })), FAILED);
  await using again = await na.restart();
  assert.equal(outcome(await sendSigned(again, { ...request, path: '/heartbeat' })), FAILED);
});

test('two nodes may use the same nonce', async () => {
  const na = await shared();
  for (const node of [await joinedNode(na), await joinedNode(na)]) {
    assert.equal(outcome(await heartbeat(na, node, { nonce: 'shared' })), '200');
  }
});

test('500 heartbeats of one node are all accepted, and none of them twice', async () => {
  await using na = await startTestAuthority();
  const { key, body } = await callerOf(na, '/heartbeat');
  const sent: SignedRequest[] = [];
  for (let index = 0; index < 500; index += 1) {
    na.clock.advance(100);
    const request = signedByNode(na, '/heartbeat', key, body);
    assert.equal(outcome(await sendSigned(na, request)), '200');
    sent.push(request);
  }
  for (const request of sent) assert.equal(outcome(await sendSigned(na, request)), FAILED);
});

test('heartbeats that arrive out of order by a few seconds are all accepted', async () => {
  await using na = await startTestAuthority();
  const { key, body } = await callerOf(na, '/heartbeat');
  na.clock.advance(MINUTE);
  for (const age of [0, 5, 1, 30, 2, 0, 30]) {
    const answer = await nodeRequest(na, '/heartbeat', key, body, aged(na, age * SECOND));
    assert.equal(outcome(answer), '200');
  }
});

for (const route of ['/heartbeat', '/renew'] as const) {
  for (const [fault, change, expected] of [
    ['an unknown certificate', { cert_id: 'nobody' }, '403 certificate_not_found'],
    ['the certificate of another node', { other: true }, '403 certificate_key_mismatch'],
    ['a revoked certificate', { revoked: true }, '403 certificate_revoked'],
  ] as const) {
    test(`POST ${route} with ${fault} is refused before the proof is checked`, async () => {
      const na = await shared();
      const before = proofFailures(na).length;
      const node = await joinedNode(na);
      const other = await joinedNode(na);
      if ('revoked' in change) await operate(na, '/admin/revoke', { cert_id: node.certId });
      const certId = 'other' in change ? other.certId : node.certId;
      const body = { cert_id: 'cert_id' in change ? change.cert_id : certId };
      const call = { signedBy: newKey() };
      assert.equal(outcome(await nodeRequest(na, route, node.key, body, call)), expected);
      assert.equal(outcome(await nodeRequest(na, route, node.key, body)), expected);
      assert.equal(proofFailures(na).length, before);
    });
  }
}

test('POST /join with an invalid token is refused before the proof is checked', async () => {
  const na = await shared();
  const before = proofFailures(na).length;
  const call = { signedBy: newKey() };
  const answer = await nodeRequest(na, '/join', newKey(), { invite_token: 'none' }, call);
  assert.equal(outcome(answer), '403 invalid_invite_token');
  assert.equal(proofFailures(na).length, before);
});

test('a key that is not canonical base64 of 32 bytes fails the proof of its own signature', async () => {
  const na = await shared();
  const key = keyWithSlash();
  const token = await invite(na);
  for (const [spelling, publicKey] of misspelledKeys(key.publicKey)) {
    const caller = { key: { ...key, publicKey }, body: { invite_token: token }, scope: '' };
    const answer = await nodeRequest(na, '/join', caller.key, caller.body);
    const failure = { scope: `join:${publicKey}`, reason: 'invalid_signature' };
    assertFailed(na, answer, failure, spelling);
    if (publicKey.includes('\n')) continue;
    const byHeader = await sendSigned(na, await proven(na, '/join', caller));
    assert.equal(outcome(byHeader), FAILED, spelling);
  }
  const right = await nodeRequest(na, '/join', key, { invite_token: token });
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
      const proof = await proven(na, '/join', { key: forger, body, scope: '' });
      assert.equal(outcome(await sendSigned(na, proof)), FAILED, what);
    }
  }
});

for (const route of ROUTES) {
  const code = route === '/join' ? 'missing_node_public_key' : 'missing_certificate_identity';
  test(`POST ${route} without a key as text is 400 ${code}, before any proof`, async () => {
    const na = await shared();
    const before = proofFailures(na).length;
    const { key, body } = await callerOf(na, route);
    for (const [name, value] of [['nothing', undefined], ...valuesExcept('a string')] as const) {
      const call = { alter: put('node_public_key', value) };
      assert.equal(outcome(await nodeRequest(na, route, key, body, call)), `400 ${code}`, name);
    }
    assert.equal(proofFailures(na).length, before);
  });
}

test('a proof header on a public route is ignored', async () => {
  const na = await shared();
  const answer = await send(na, 'GET', '/crl', { headers: { [NODE_PROOF_HEADER]: 'v=1' } });
  assert.equal(outcome(answer), '200');
});

test('the vector of a signed body verifies, and its signature verifies no other body', () => {
  const { body, public_key_b64: publicKey } = vectors().node_body_signature;
  const now = Date.parse('2026-01-01T00:00:00Z');
  assert.equal(judgeBody(publicKey, body, now), 'valid');
  for (const change of [{ status: 'ill' }, { roles: [] }, { cert_id: 'c-2' }, { nonce: 'n-2' }]) {
    assert.equal(judgeBody(publicKey, { ...body, ...change }, now), 'invalid_signature');
  }
  assert.equal(judgeBody(publicKey, body, now + TOLERANCE + 1), 'stale_timestamp');
});

test('the vector of a proof header verifies, and for no other request', () => {
  const { raw_body, header, signed_text } = vectors().node_proof_header_ours;
  const { audience, key } = parseJson(signed_text) as { audience: string; key: string };
  const request = {
    method: 'POST',
    path: '/heartbeat',
    query: {},
    body: {},
    rawBody: Buffer.from(raw_body),
  };
  assert.equal(judgeHeader(key, header, request, audience), 'valid');
  for (const change of [
    { path: '/renew' },
    { method: 'DELETE' },
    { query: { a: [''] } },
    { rawBody: Buffer.from(`${raw_body} `) },
    { rawBody: new Uint8Array() },
  ]) {
    const verdict = judgeHeader(key, header, { ...request, ...change }, audience);
    assert.equal(verdict, 'invalid_signature');
  }
  const elsewhere = newKey().publicKey;
  assert.equal(judgeHeader(key, header, request, elsewhere), 'invalid_signature');
});

/** A request with its proof in the header; `change` replaces parts of the signed text. */
async function proven(
  na: TestAuthority,
  route: RoutePath,
  { key, body }: Caller,
  change: Partial<NodeRequest> = {},
  alter: (header: string) => string = (header) => header,
  signer: Signer = key,
): Promise<SignedRequest> {
  const bodyText = jsonText({ node_public_key: key.publicKey, ...body });
  const request = {
    method: 'POST',
    path: route,
    query: {},
    audience: na.audience,
    bodyText,
    timestamp: formatInstant(na.clock.now()),
    nonce: freshNonce(),
    ...change,
  };
  const header = alter(await nodeProofHeader(request, signer));
  return {
    method: 'POST',
    path: route,
    init: { headers: { [NODE_PROOF_HEADER]: header }, body: bodyText },
  };
}

/** Spends a nonce in the scope of the route; on /join, this also uses an invite. */
async function spendNonce(
  na: TestAuthority,
  key: Signer,
  route: RoutePath,
  body: JsonObject,
): Promise<string> {
  const nonce = freshNonce();
  const answer = await nodeRequest(na, route, key, body, { nonce });
  assert.equal(outcome(answer), '200');
  return nonce;
}

/** The message of each failed check [core-3-1]. */
const MESSAGES: { readonly [reason: string]: RegExp } = {
  missing_fields: /is missing$/,
  invalid_timestamp: /timestamp is not valid$/,
  stale_timestamp: /timestamp is too old, or too far ahead$/,
  nonce_replay: /nonce was used before$/,
  invalid_signature: /signature is not valid$/,
};

function assertFailed(
  na: TestAuthority,
  answer: Received,
  { scope, reason }: { readonly scope: string; readonly reason: string },
  message = reason,
): void {
  assert.equal(outcome(answer), FAILED, message);
  assert.deepEqual(answer.body.error.details, {});
  assert.match(answer.body.error.message, MESSAGES[reason] ?? /^$/);
  const failure = proofFailures(na).at(-1);
  assert.deepEqual(failure, { scope, reason, remote_addr: '127.0.0.1' }, message);
}

function proofFailures(na: TestAuthority): Record<string, unknown>[] {
  return auditEvents(na)
    .filter(({ type }) => type === 'node_auth_failed')
    .map(({ details }) => details);
}

function aged(na: TestAuthority, milliseconds: number): { readonly timestamp: string } {
  return { timestamp: formatInstant(na.clock.now() - milliseconds) };
}

function spacedTimestamp(na: TestAuthority): { readonly timestamp: string } {
  return { timestamp: ` ${formatInstant(na.clock.now())} ` };
}

function put(name: string, value: unknown): (body: Record<string, unknown>) => void {
  return (body) => {
    if (value === undefined) delete body[name];
    else body[name] = value;
  };
}

function without(name: string): (body: Record<string, unknown>) => void {
  return put(name, undefined);
}

function respell(body: Record<string, unknown>): void {
  body.signature = respelled(String(body.signature));
}

function swapped(pattern: RegExp, replacement: string): (header: string) => string {
  return (header) => header.replace(pattern, replacement);
}

function appended(text: string): (header: string) => string {
  return (header) => header + text;
}

function partless(name: string): (header: string) => string {
  return (header) =>
    header
      .split('; ')
      .filter((part) => !part.startsWith(`${name}=`))
      .join('; ');
}

function emptied(name: string): (header: string) => string {
  return (header) =>
    header
      .split('; ')
      .map((part) => (part.startsWith(`${name}=`) ? `${name}=` : part))
      .join('; ');
}

function doubled(name: string): (header: string) => string {
  return (header) => {
    const part = header.split('; ').find((candidate) => candidate.startsWith(`${name}=`));
    return `${header}; ${part}`;
  };
}

function respelledProof(header: string): string {
  const [head = '', signature = ''] = header.split('sig=');
  return `${head}sig=${respelled(signature)}`;
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

function vectors(): NodeVectors {
  const source = readFileSync(new URL('test/vectors/own_wire_core.json', PROJECT), 'utf8');
  return (parseJson(source) as unknown as { vectors: NodeVectors }).vectors;
}

function judgeBody(publicKey: string, body: JsonObject, now: number): string {
  const request = {
    method: 'POST',
    path: '/heartbeat',
    query: {},
    body,
    remoteAddr: '192.0.2.1',
    now,
  };
  const settings = { authorityKeys: { audiences: [] }, toleranceMs: TOLERANCE };
  return judgeNode(publicKey, '', request, null, Buffer.from(jsonText(body)), settings).verdict;
}

function judgeHeader(
  publicKey: string,
  header: string,
  { rawBody, ...request }: JudgedRequest & { readonly rawBody: Uint8Array },
  audience: string,
): string {
  const now = Date.parse('2026-01-01T00:00:00Z');
  const settings = { authorityKeys: { audiences: [audience] }, toleranceMs: TOLERANCE };
  const received = { ...request, remoteAddr: '192.0.2.1', now };
  return judgeNode(publicKey, header, received, null, rawBody, settings).verdict;
}
