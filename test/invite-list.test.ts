/** Invites as operators read and withdraw them [core-4-18]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import {
  auditEvents,
  invite,
  newKey,
  nodeRequest,
  operate,
  operatorRequest,
  outcome,
  type Received,
  sendSigned,
} from './support/requests.ts';

interface Row {
  readonly token_fingerprint: string;
  readonly status: string;
}

function list(na: TestAuthority, query = ''): Promise<Received> {
  return operate(na, `/admin/invites${query}`, {}, { method: 'GET', operator: na.standard });
}

function withdraw(na: TestAuthority, fingerprint: string): Promise<Received> {
  const call = { operator: na.standard };
  return operate(na, `/admin/invites/${fingerprint}/withdraw`, {}, call);
}

function join(na: TestAuthority, token: string, key = newKey()): Promise<Received> {
  return nodeRequest(na, '/join', key, { invite_token: token });
}

function fingerprintOf(token: string): string {
  return sha256Hex(token).slice(0, 16);
}

async function statuses(na: TestAuthority, query = '') {
  const { invites, count } = (await list(na, query)).body;
  assert.equal(count, invites.length);
  return invites.map((row: Row) => [row.token_fingerprint, row.status]);
}

test('invites are listed by fingerprint with their current state, also after a restart', async () => {
  await using na = await startTestAuthority();
  const expired = await invite(na, { token_expiry_hours: 1 });
  na.clock.advance(2 * HOUR);
  const consumed = await invite(na);
  const key = newKey();
  await join(na, consumed, key);
  const recipient = newKey().publicKey;
  const unused = await invite(na, { roles: ['role:anchor'], recipient_public_key: recipient });
  const createdAt = na.clock.now();
  const withdrawn = await invite(na);
  na.clock.advance(MINUTE);
  await withdraw(na, fingerprintOf(withdrawn));
  const expected = Object.entries({ expired, consumed, unused, withdrawn })
    .map(([status, token]) => [fingerprintOf(token), status])
    .sort();
  await using again = await na.restart();
  assert.deepEqual(await statuses(again), expected);
  for (const [fingerprint, status] of expected) {
    assert.deepEqual(await statuses(again, `?status=${status}`), [[fingerprint, status]]);
  }
  const { text, body } = await list(again);
  for (const token of [expired, consumed, unused, withdrawn]) {
    assert.equal(text.includes(token), false);
  }
  const rowOf = (token: string) =>
    body.invites.find((row: Row) => row.token_fingerprint === fingerprintOf(token));
  assert.deepEqual(rowOf(unused), {
    token_fingerprint: fingerprintOf(unused),
    status: 'unused',
    batch: null,
    roles: ['role:anchor'],
    max_validity_hours: 168,
    recipient_public_key: recipient,
    created_at: formatInstant(createdAt),
    expires_at: formatInstant(createdAt + 24 * HOUR),
    used_at: null,
    used_by: null,
    withdrawn_at: null,
    withdrawn_by: null,
  });
  assert.equal(rowOf(consumed).used_by, key.publicKey);
  assert.equal(rowOf(withdrawn).withdrawn_by, 'ops-standard');
  assert.equal(rowOf(withdrawn).withdrawn_at, formatInstant(createdAt + MINUTE));
});

test('pages contain each invite once, even if invites are created, used and withdrawn in between', async () => {
  await using na = await startTestAuthority();
  const tokens: string[] = [];
  for (let i = 0; i < 20; i += 1) tokens.push(await invite(na));
  const listed: string[] = [];
  for (let cursor: string | undefined = '', turn = 0; cursor !== undefined; turn += 1) {
    const from: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const { body } = await list(na, `?limit=3${from}`);
    listed.push(...body.invites.map((row: Row) => row.token_fingerprint));
    cursor = body.next_cursor;
    await invite(na);
    await join(na, tokens[2 * turn] as string);
    await withdraw(na, fingerprintOf(tokens[2 * turn + 1] as string));
  }
  assert.deepEqual(listed, [...new Set(listed)].sort(), 'in order, and none twice');
  for (const token of tokens) assert.ok(listed.includes(fingerprintOf(token)));
});

test('a withdrawn invite admits no one, and a second withdrawal changes nothing', async () => {
  await using na = await startTestAuthority();
  const token = await invite(na);
  const fingerprint = fingerprintOf(token);
  const answer = { token_fingerprint: fingerprint, status: 'withdrawn' };
  const first = await withdraw(na, fingerprint);
  assert.deepEqual(first.body, { ...answer, already_withdrawn: false });
  assert.equal(outcome(await join(na, token)), '403 invalid_invite_token');
  const second = await withdraw(na, fingerprint);
  assert.deepEqual(second.body, { ...answer, already_withdrawn: true });
  const audited = auditEvents(na).filter(({ type }) => type === 'invite_withdrawn');
  assert.deepEqual(
    audited.map(({ details }) => details),
    [{ token_fingerprint: fingerprint, remote_addr: '127.0.0.1' }],
  );
  await using again = await na.restart();
  assert.equal(outcome(await join(again, token)), '403 invalid_invite_token');
});

test('a repeated withdrawal gets its first answer', async () => {
  await using na = await startTestAuthority();
  const token = await invite(na);
  const path = `/admin/invites/${fingerprintOf(token)}/withdraw`;
  const request = operatorRequest(na, path);
  const first = await sendSigned(na, request);
  const headers = { ...request.init.headers, 'X-Mesh-Retry': '1' };
  const again = await sendSigned(na, { ...request, init: { ...request.init, headers } });
  assert.deepEqual([again.status, again.body], [200, first.body]);
  assert.equal(again.body.already_withdrawn, false);
  assert.equal(again.headers.get('x-mesh-replayed'), 'true');
  assert.equal(outcome(await sendSigned(na, request)), '401 admin_auth_failed');
});

test('a used or unknown invite cannot be withdrawn', async () => {
  await using na = await startTestAuthority();
  const token = await invite(na);
  await join(na, token);
  assert.equal(outcome(await withdraw(na, fingerprintOf(token))), '409 invite_consumed');
  const unused = await invite(na);
  for (const unknown of [
    'nobody',
    sha256Hex(unused),
    fingerprintOf(unused).slice(0, 15),
    'f'.repeat(16),
  ]) {
    assert.equal(outcome(await withdraw(na, unknown)), '404 invite_not_found');
  }
  assert.equal(outcome(await join(na, unused)), '200');
  assert.equal(outcome(await list(na, '?status=revoked')), '400 invalid_status');
});
