import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatInstant } from '../src/base/timestamp.ts';
import { startTestAuthority, type TestAuthority, type TestOperator } from './support/authority.ts';
import { MINUTE } from './support/clock.ts';
import { valuesExcept } from './support/hostile.ts';
import { auditEvents, newKey, operate, outcome, send } from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';

/** For tests that leave nothing behind that another test would notice. */
const shared = sharedAuthority();

test('revoking a key answers with every member, and the audit log names who did it', async () => {
  await using na = await startTestAuthority();
  na.clock.advance(MINUTE);
  const answer = await revoke(na, 'ops-standard', { reason: 'key_compromise' });
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.body, {
    key_id: 'ops-standard',
    revoked: true,
    already_revoked: false,
    revoked_at: formatInstant(na.clock.now()),
    reason: 'key_compromise',
    remaining_active_keys: 1,
  });
  assert.deepEqual(revocationsAudited(na), [
    {
      key_id: 'ops-standard',
      reason: 'key_compromise',
      revoked_by: 'ops-privileged',
      remote_addr: '127.0.0.1',
    },
  ]);
});

test('the reason is any text of up to 1,024 characters, or unspecified', async () => {
  const operators = ['a', 'b', 'c', 'd'].map((keyId) => ({ keyId, key: newKey() }));
  await using na = await startWith(operators);
  for (const [index, reason] of ['', 'Zürich ✓ "left"', 'x'.repeat(1024), undefined].entries()) {
    const body = reason === undefined ? {} : { reason };
    const answer = await revoke(na, operators[index]?.keyId ?? '', body);
    assert.equal(outcome(answer), '200');
    const kept = reason ?? 'unspecified';
    assert.equal(answer.body.reason, kept);
    const audited = String(revocationsAudited(na).at(-1)?.reason);
    // Entries shorten long texts.
    assert.ok(kept === audited || (kept.length === 1024 && kept.startsWith(audited)), audited);
  }
});

test('a reason that is no text is 422, an unknown key 404, and every key stays usable', async () => {
  const na = await shared();
  for (const [name, reason] of valuesExcept('a string', 'an empty string', 'null')) {
    const answer = await revoke(na, 'ops-standard', { reason });
    assert.equal(outcome(answer), '422 request_validation_failed', name);
    assert.deepEqual(answer.body.error.details.errors[0].loc, ['body', 'reason']);
  }
  for (const keyId of ['nobody', 'OPS-STANDARD', 'ops-standard ', '__proto__', 'constructor']) {
    assert.equal(outcome(await revoke(na, keyId)), '404 unknown_operator_key', keyId);
  }
  for (const keyId of ['ops-standard', 'ops-privileged', 'nobody']) {
    const answer = await revoke(na, keyId, {}, na.standard);
    assert.equal(outcome(answer), '403 insufficient_operator_tier', 'not even itself');
  }
  for (const segment of ['%', '%zz', '%ff', '%c3%28']) {
    const answer = await send(na, 'POST', `/admin/operator-keys/${segment}/revoke`);
    assert.equal(outcome(answer), '400 bad_request', segment);
  }
  const used = await operate(na, '/admin/invite', {}, { operator: na.standard });
  assert.equal(outcome(used), '200');
  assert.deepEqual(revocationsAudited(na), []);
});

test('a repeat is 200 with already_revoked, and nothing is revoked or audited again', async () => {
  await using na = await startTestAuthority();
  await revoke(na, 'ops-standard', { reason: 'key_compromise' });
  for (const reason of ['key_compromise', 'another']) {
    const answer = await revoke(na, 'ops-standard', { reason });
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, {
      key_id: 'ops-standard',
      revoked: true,
      already_revoked: true,
    });
  }
  assert.equal(revocationsAudited(na).length, 1);
});

test('the last usable key is kept: 409, and it still works', async () => {
  await using na = await startTestAuthority();
  await revoke(na, 'ops-standard');
  assert.equal(warningsOf(na).length, 0);
  assert.equal(outcome(await revoke(na, 'ops-privileged')), '409 last_active_operator_key');
  assert.equal(outcome(await operate(na, '/admin/invite')), '200');
  assert.equal(revocationsAudited(na).length, 1);
  assert.equal(outcome(await revoke(na, 'nobody')), '404 unknown_operator_key');
  assert.equal(outcome(await revoke(na, 'ops-standard')), '200');
});

test('an operator may revoke its own key, which is unknown on the next request', async () => {
  await using na = await startTestAuthority();
  const answer = await revoke(na, 'ops-privileged');
  assert.equal(answer.body.already_revoked, false);
  assert.equal(answer.body.remaining_active_keys, 1);
  assert.equal(revocationsAudited(na)[0]?.revoked_by, 'ops-privileged');
  assert.equal(warningsOf(na).length, 1, 'no privileged key is left');
  const next = await operate(na, '/admin/invite');
  assert.equal(outcome(next), '401 admin_auth_failed');
  assert.equal(next.body.error.message, 'Unknown admin key');
  const remaining = await operate(na, '/admin/invite', {}, { operator: na.standard });
  assert.equal(outcome(remaining), '200');
});

test('a revoked key is refused on the next request, on every route and in both versions', async () => {
  await using na = await startTestAuthority();
  const operator = na.standard;
  assert.equal(outcome(await operate(na, '/admin/invite', {}, { operator })), '200');
  await revoke(na, 'ops-standard');
  for (const version of [1, 2] as const) {
    for (const [method, path] of [
      ['POST', '/admin/invite'],
      ['POST', '/admin/revoke'],
      ['POST', '/admin/operator-keys/ops-standard/revoke'],
      ['GET', '/nodes'],
    ] as const) {
      const answer = await operate(na, path, {}, { operator, version, method });
      assert.equal(outcome(answer), '401 admin_auth_failed', `${path} version ${version}`);
      assert.equal(answer.body.error.message, 'Unknown admin key');
    }
  }
  const reasons = auditEvents(na).filter(({ type }) => type === 'admin_auth_failed');
  assert.deepEqual(new Set(reasons.map(({ details }) => details.reason)), new Set(['revoked_key']));
});

test('a revocation survives restarts', async () => {
  await using na = await startTestAuthority();
  await revoke(na, 'ops-standard', { reason: 'key_compromise' });
  await using again = await na.restart();
  const refused = await operate(again, '/admin/invite', {}, { operator: na.standard });
  assert.equal(outcome(refused), '401 admin_auth_failed');
  assert.deepEqual((await revoke(again, 'ops-standard')).body, {
    key_id: 'ops-standard',
    revoked: true,
    already_revoked: true,
  });
  assert.equal(outcome(await revoke(again, 'ops-privileged')), '409 last_active_operator_key');
  await using third = await again.restart();
  const stillRefused = await operate(third, '/admin/invite', {}, { operator: na.standard });
  assert.equal(outcome(stillRefused), '401 admin_auth_failed');
});

test('a key id is given percent-encoded, and decoded once', async () => {
  const ids = ['ops 2', 'ops/2', 'ops%2F2', 'öps ✓', 'ops?x#y', 'ops+2', 'ops&2', '100%'];
  await using na = await startWith(ids.map((keyId) => ({ keyId, key: newKey() })));
  for (const [index, keyId] of ids.entries()) {
    const { body } = await revoke(na, keyId);
    assert.deepEqual([body.key_id, body.remaining_active_keys], [keyId, ids.length + 1 - index]);
    assert.equal(revocationsAudited(na).at(-1)?.key_id, keyId);
  }
});

test('two privileged operators who revoke each other at once cannot leave none', async () => {
  const rival = { keyId: 'rival', key: newKey() };
  await using na = await startWith([rival], 'privileged');
  await revoke(na, 'ops-standard');
  const answers = await Promise.all([
    revoke(na, 'rival'),
    revoke(na, 'ops-privileged', {}, rival),
    revoke(na, 'ops-privileged'),
    revoke(na, 'rival', {}, rival),
  ]);
  // A second revocation of the same key is also acknowledged.
  assert.equal(answers.filter(({ body }) => body.already_revoked === false).length, 1);
  const invites = [];
  for (const operator of [na.privileged, rival]) {
    invites.push((await operate(na, '/admin/invite', {}, { operator })).status);
  }
  assert.deepEqual(invites.sort(), [200, 401]);
});

function revoke(
  na: TestAuthority,
  keyId: string,
  body: Parameters<typeof operate>[2] = {},
  operator: TestOperator = na.privileged,
) {
  const path = `/admin/operator-keys/${encodeURIComponent(keyId)}/revoke`;
  return operate(na, path, body, { operator });
}

/** An authority that knows these operators in addition to its own two. */
function startWith(operators: readonly TestOperator[], tier = 'standard'): Promise<TestAuthority> {
  const keys = operators.map(({ keyId, key }) => [keyId, key.publicKey]);
  const tiers = operators.map(({ keyId }) => [keyId, tier]);
  return startTestAuthority({
    environment: {
      OPERATOR_PUBLIC_KEYS_JSON: JSON.stringify(Object.fromEntries(keys)),
      OPERATOR_KEY_TIERS_JSON: JSON.stringify(Object.fromEntries(tiers)),
    },
  });
}

function revocationsAudited(na: TestAuthority): Record<string, unknown>[] {
  return auditEvents(na)
    .filter(({ type }) => type === 'operator_key_revoked')
    .map(({ details }) => details);
}

function warningsOf(na: TestAuthority): string[] {
  return na.logLines.filter((line) => line.includes(' WARNING ') && line.includes('privileged'));
}
