import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatInstant } from '../src/base/timestamp.ts';
import { startTestAuthority, type TestAuthority, type TestOperator } from './support/authority.ts';
import { MINUTE } from './support/clock.ts';
import { valuesExcept } from './support/hostile.ts';
import { auditEvents, newKey, operate, outcome } from './support/requests.ts';
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

test('a revocation without a reason is unspecified', async () => {
  await using na = await startTestAuthority();
  assert.equal((await revoke(na, 'ops-standard')).body.reason, 'unspecified');
  assert.equal(revocationsAudited(na)[0]?.reason, 'unspecified');
});

test('any text is accepted as a reason, even an empty one or one of 1,024 characters', async () => {
  const operators = ['a', 'b', 'c'].map((keyId) => ({ keyId, key: newKey() }));
  await using na = await startWith(operators);
  for (const [index, reason] of ['', 'Zürich ✓ "left"', 'x'.repeat(1024)].entries()) {
    const answer = await revoke(na, operators[index]?.keyId ?? '', { reason });
    assert.equal(outcome(answer), '200');
    assert.equal(answer.body.reason, reason);
  }
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

for (const keyId of ['nobody', 'OPS-STANDARD', 'ops-standard ', '__proto__', 'constructor']) {
  test(`the key id ${JSON.stringify(keyId)} is unknown: 404`, async () => {
    const na = await shared();
    assert.equal(outcome(await revoke(na, keyId)), '404 unknown_operator_key');
    assert.deepEqual(revocationsAudited(na), []);
  });
}

test('the last usable key is kept: 409, and it still works', async () => {
  await using na = await startTestAuthority();
  await revoke(na, 'ops-standard');
  assert.equal(outcome(await revoke(na, 'ops-privileged')), '409 last_active_operator_key');
  assert.equal(outcome(await operate(na, '/admin/invite')), '200');
  assert.equal(revocationsAudited(na).length, 1);
});

test('with one key left, unknown is still 404 and already revoked still 200', async () => {
  await using na = await startTestAuthority();
  await revoke(na, 'ops-standard');
  assert.equal(outcome(await revoke(na, 'nobody')), '404 unknown_operator_key');
  assert.equal(outcome(await revoke(na, 'ops-standard')), '200');
});

test('an operator may revoke its own key, which is unknown on the next request', async () => {
  await using na = await startTestAuthority();
  const answer = await revoke(na, 'ops-privileged');
  assert.equal(answer.body.already_revoked, false);
  assert.equal(answer.body.remaining_active_keys, 1);
  assert.equal(revocationsAudited(na)[0]?.revoked_by, 'ops-privileged');
  const next = await operate(na, '/admin/invite');
  assert.equal(outcome(next), '401 admin_auth_failed');
  assert.equal(next.body.error.message, 'Unknown admin key');
  const remaining = await operate(na, '/admin/invite', {}, { operator: na.standard });
  assert.equal(outcome(remaining), '200');
});

test('keys of any tier count as usable, and losing the last privileged one causes a warning', async () => {
  await using na = await startTestAuthority();
  await revoke(na, 'ops-standard');
  assert.equal(warningsOf(na).length, 0);
  await using other = await startTestAuthority();
  await revoke(other, 'ops-privileged');
  assert.equal(warningsOf(other).length, 1);
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

for (const [name, reason] of valuesExcept('a string', 'an empty string', 'null')) {
  test(`${name} as reason is 422, and the key stays usable`, async () => {
    const na = await shared();
    const answer = await revoke(na, 'ops-standard', { reason });
    assert.equal(outcome(answer), '422 request_validation_failed');
    assert.deepEqual(answer.body.error.details.errors[0].loc, ['body', 'reason']);
    const used = await operate(na, '/admin/invite', {}, { operator: na.standard });
    assert.equal(outcome(used), '200');
  });
}

test('a standard key cannot revoke, not even itself', async () => {
  await using na = await startTestAuthority();
  for (const keyId of ['ops-standard', 'ops-privileged', 'nobody']) {
    const answer = await revoke(na, keyId, {}, na.standard);
    assert.equal(outcome(answer), '403 insufficient_operator_tier');
  }
  assert.deepEqual(revocationsAudited(na), []);
});

for (const keyId of ['ops 2', 'ops/2', 'ops%2F2', 'öps ✓', 'ops?x#y', 'ops+2', 'ops&2', '100%']) {
  test(`the key id ${JSON.stringify(keyId)} can be given percent-encoded, decoded once`, async () => {
    await using na = await startWith([{ keyId, key: newKey() }]);
    const answer = await revoke(na, keyId);
    assert.equal(outcome(answer), '200');
    assert.equal(answer.body.key_id, keyId);
    assert.equal(answer.body.remaining_active_keys, 2);
    assert.equal(revocationsAudited(na)[0]?.key_id, keyId);
  });
}

test('a key id that cannot be decoded is 400 bad_request', async () => {
  await using na = await startTestAuthority();
  for (const segment of ['%', '%zz', '%ff', '%c3%28']) {
    const response = await fetch(`${na.url}/admin/operator-keys/${segment}/revoke`, {
      method: 'POST',
    });
    const { error } = (await response.json()) as { error: { code: string } };
    assert.equal(`${response.status} ${error.code}`, '400 bad_request', segment);
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
