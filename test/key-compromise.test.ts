/** A node key and its certificates: the effect of a compromise, and the limit on live certificates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import {
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
  sendSigned,
  signedByNode,
  type TestNode,
} from './support/requests.ts';
import { audited } from './support/trust.ts';

const NO_GRACE = { RENEWAL_GRACE_SECONDS: 'off' };

async function renewed(na: TestAuthority, { key, certId }: TestNode): Promise<TestNode> {
  const { body } = await nodeRequest(na, '/renew', key, { cert_id: certId });
  return { key, certId: body.cert_id };
}

async function joinedAgain(na: TestAuthority, { key }: TestNode): Promise<TestNode> {
  const { body } = await nodeRequest(na, '/join', key, { invite_token: await invite(na) });
  return { key, certId: body.cert_id };
}

function revoke(na: TestAuthority, { certId }: TestNode, reason: string) {
  return operate(na, '/admin/revoke', { cert_id: certId, reason });
}

function renew(na: TestAuthority, { key, certId }: TestNode) {
  return nodeRequest(na, '/renew', key, { cert_id: certId });
}

async function crlOf(na: TestAuthority): Promise<{ sequence: number; ids: string[] }> {
  const { sequence, revoked_certificates: entries } = (await get(na, '/crl')).body;
  const ids = entries.map(({ certificate_id }: { certificate_id: string }) => certificate_id);
  return { sequence, ids };
}

test('a key compromise ends every certificate of the key, in one version of the list', async () => {
  await using na = await startTestAuthority({ environment: NO_GRACE });
  const other = await joinedNode(na);
  const first = await joinedNode(na);
  const second = await renewed(na, first);
  const third = await joinedAgain(na, first);
  const all = [first, second, third];
  const { body } = await revoke(na, first, 'key_compromise');
  const ids = all.map(({ certId }) => certId).sort();
  assert.deepEqual(body, {
    crl_sequence: 1,
    revoked_count: 3,
    revoked_cert_ids: ids,
  });
  assert.deepEqual(await crlOf(na), { sequence: 1, ids });
  for (const node of all) {
    assert.equal(outcome(await heartbeat(na, node)), '403 certificate_revoked');
    assert.equal(outcome(await renew(na, node)), '403 certificate_revoked');
  }
  const token = await invite(na);
  const join = await nodeRequest(na, '/join', first.key, { invite_token: token });
  assert.equal(outcome(join), '403 node_key_compromised');
  assert.equal(outcome(await heartbeat(na, other)), '200');
  assert.equal((await get(na, '/nodes')).body.count, 1);
  assert.deepEqual(audited(na, 'certificate_revoked').length, 3);
  const next = await revoke(na, other, 'unspecified');
  assert.deepEqual([next.body.crl_sequence, next.body.revoked_count], [2, 4], 'the list goes on');
  await using again = await na.restart();
  assert.deepEqual(await crlOf(again), { sequence: 2, ids: [...ids, other.certId] });
  assert.equal(outcome(await heartbeat(again, third)), '403 certificate_revoked');
});

test('a revocation that names a key ends all its certificates, for any reason', async () => {
  await using na = await startTestAuthority({ environment: NO_GRACE });
  const other = await joinedNode(na);
  const first = await joinedNode(na);
  const second = await renewed(na, first);
  const body = { node_public_key: first.key.publicKey, reason: 'cessation_of_operation' };
  const ids = [first.certId, second.certId].sort();
  const ended = await operate(na, '/admin/revoke', body);
  assert.deepEqual(ended.body, { crl_sequence: 1, revoked_count: 2, revoked_cert_ids: ids });
  assert.deepEqual(await crlOf(na), { sequence: 1, ids });
  for (const node of [first, second]) {
    assert.equal(outcome(await heartbeat(na, node)), '403 certificate_revoked');
  }
  assert.equal(outcome(await heartbeat(na, other)), '200');
  const again = await operate(na, '/admin/revoke', body);
  assert.deepEqual(again.body, { crl_sequence: 1, revoked_count: 2, revoked_cert_ids: [] });
  assert.equal(
    outcome(await nodeRequest(na, '/join', first.key, { invite_token: await invite(na) })),
    '200',
  );
});

test('a compromised key that is named is refused for good, even if all its certificates had ended before', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  await revoke(na, node, 'superseded');
  const body = { node_public_key: node.key.publicKey, reason: 'key_compromise' };
  assert.equal(outcome(await operate(na, '/admin/revoke', body)), '200');
  const join = await nodeRequest(na, '/join', node.key, { invite_token: await invite(na) });
  assert.equal(outcome(join), '403 node_key_compromised');
  assert.equal(audited(na, 'node_key_compromised')[0]?.cert_id, node.certId);
});

test('an invalid key, or one without certificates, is refused; a certificate takes precedence over a key', async () => {
  await using na = await startTestAuthority();
  const [one, two] = [await joinedNode(na), await joinedNode(na)];
  for (const [body, expected] of [
    [{}, '400 missing_cert_id'],
    [{ node_public_key: 'x' }, '400 invalid_key'],
    [{ node_public_key: newKey().publicKey }, '404 certificate_not_found'],
    [{ node_public_key: newKey().publicKey, reason: 'why not' }, '400 invalid_revocation_reason'],
    [{ cert_id: '', node_public_key: two.key.publicKey }, '400 missing_cert_id'],
    [{ cert_id: one.certId, node_public_key: two.key.publicKey }, '200'],
  ] as const) {
    assert.equal(outcome(await operate(na, '/admin/revoke', body)), expected);
  }
  assert.deepEqual((await crlOf(na)).ids, [one.certId]);
});

test('for any other reason the answer says how many certificates of the key are still valid', async () => {
  await using na = await startTestAuthority({ environment: NO_GRACE });
  const first = await joinedNode(na);
  const second = await renewed(na, first);
  const third = await renewed(na, second);
  const { body } = await revoke(na, third, 'superseded');
  assert.deepEqual(body, {
    crl_sequence: 1,
    revoked_count: 1,
    live_certificates_of_key: 2,
  });
  assert.equal(outcome(await heartbeat(na, first)), '200');
  const again = await revoke(na, third, 'superseded');
  assert.deepEqual(again.body, body);
});

test('a compromise reported for a revoked certificate revokes the others', async () => {
  await using na = await startTestAuthority({ environment: NO_GRACE });
  const first = await joinedNode(na);
  const second = await renewed(na, first);
  await revoke(na, first, 'superseded');
  const { body } = await revoke(na, first, 'key_compromise');
  assert.deepEqual(body.revoked_cert_ids, [second.certId]);
  assert.equal(outcome(await heartbeat(na, second)), '403 certificate_revoked');
  const repeated = await revoke(na, first, 'key_compromise');
  assert.deepEqual([repeated.body.crl_sequence, repeated.body.revoked_count], [2, 2]);
});

test('a compromise of a key whose certificates had all been revoked refuses the key from then on', async () => {
  await using na = await startTestAuthority({ environment: NO_GRACE });
  const first = await joinedNode(na);
  await revoke(na, first, 'superseded');
  const list = (await get(na, '/crl')).text;
  const { status, body } = await revoke(na, first, 'key_compromise');
  assert.deepEqual([status, body], [200, { crl_sequence: 1, revoked_count: 1 }]);
  assert.deepEqual((await revoke(na, first, 'key_compromise')).body, body);
  assert.equal(audited(na, 'node_key_compromised').length, 1, 'once');
  const token = await invite(na);
  const isRefused = async (authority: TestAuthority) => {
    const join = await nodeRequest(authority, '/join', first.key, { invite_token: token });
    assert.equal(outcome(join), '403 node_key_compromised');
    assert.equal((await get(authority, '/crl')).text, list, 'the published entry stays as it was');
  };
  await isRefused(na);
  await using again = await na.restart();
  await isRefused(again);
});

test('renewals of an expired certificate are refused as revoked after such a compromise', async () => {
  await using na = await startTestAuthority({ environment: NO_GRACE });
  const old = await joinedNode(na, { max_validity_hours: 1 });
  const current = await joinedAgain(na, old);
  await revoke(na, current, 'superseded');
  na.clock.advance(2 * HOUR);
  assert.equal(outcome(await renew(na, old)), '403 certificate_expired');
  const { body } = await revoke(na, current, 'key_compromise');
  assert.equal(body.revoked_cert_ids, undefined, 'no other certificate is ended or listed');
  assert.equal(outcome(await renew(na, old)), '403 certificate_revoked');
  assert.equal(outcome(await heartbeat(na, old)), '403 certificate_revoked');
});

test('with the 17th live certificate of a key, a join is refused, and a renewal supersedes the oldest', async () => {
  await using na = await startTestAuthority({ environment: NO_GRACE });
  const oldest = await joinedNode(na);
  na.clock.advance(SECOND);
  const second = await joinedAgain(na, oldest);
  na.clock.advance(SECOND);
  let newest = await joinedAgain(na, oldest);
  for (let i = 0; i < 13; i += 1) newest = await renewed(na, newest);
  const token = await invite(na);
  const join = signedByNode(na, '/join', oldest.key, { invite_token: token });
  assert.equal(outcome(await sendSigned(na, join)), '409 too_many_live_certificates');
  assert.equal(outcome(await sendSigned(na, join)), '401 node_auth_failed');
  na.clock.advance(SECOND);
  // The oldest certificate can be renewed, and stays usable, because the answer may be lost.
  const successors = [await renewed(na, oldest), await renewed(na, oldest)];
  assert.equal(outcome(await heartbeat(na, oldest)), '200');
  assert.equal(outcome(await heartbeat(na, second)), '403 certificate_superseded');
  for (const certificate of successors) {
    assert.equal(outcome(await heartbeat(na, certificate)), '200');
  }
  const { superseded_cert_ids } = audited(na, 'certificate_renewed').at(-2) ?? {};
  assert.deepEqual(superseded_cert_ids, [second.certId]);
  const { body: row } = await operate(na, `/admin/certificates/${second.certId}`, undefined, {
    method: 'GET',
  });
  assert.equal(row.status, 'superseded');
  assert.deepEqual((await crlOf(na)).ids, [], 'the revocation list has none of them');
  const { body } = await revoke(na, oldest, 'key_compromise');
  assert.ok(body.revoked_cert_ids.includes(second.certId), 'until the key is compromised');
});

test('a client that renews at each start is never locked out, and the certificates of a key are limited', async () => {
  await using na = await startTestAuthority();
  let certificate = await joinedNode(na);
  const outcomes: string[] = [];
  for (let i = 0; i < 256; i += 1) {
    const answer = await renew(na, certificate);
    outcomes.push(outcome(answer));
    if (answer.status === 200) certificate = { ...certificate, certId: answer.body.cert_id };
  }
  assert.deepEqual(outcomes, [...Array(255).fill('200'), '409 too_many_live_certificates']);
  assert.equal(outcome(await heartbeat(na, certificate)), '200');
  na.clock.advance(15 * MINUTE);
  assert.equal(outcome(await renew(na, certificate)), '200', 'the grace of the others has passed');
});

test('simultaneous compromises and other revocations keep one order of the list', async () => {
  await using na = await startTestAuthority({ environment: NO_GRACE });
  const nodes: TestNode[] = [];
  for (let i = 0; i < 12; i += 1) {
    const node = await joinedNode(na);
    await renewed(na, node);
    nodes.push(await renewed(na, node));
  }
  const lists = new Map<number, string[]>();
  await Promise.all(
    nodes.map(async (node, index) => {
      await revoke(na, node, index % 3 === 0 ? 'unspecified' : 'key_compromise');
      const { sequence, ids } = await crlOf(na);
      lists.set(sequence, ids);
    }),
  );
  const last = await crlOf(na);
  assert.equal(last.ids.length, 4 + 8 * 3);
  for (const ids of lists.values()) assert.deepEqual(ids, last.ids.slice(0, ids.length));
  await using again = await na.restart();
  assert.deepEqual(await crlOf(again), last);
});
