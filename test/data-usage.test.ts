/**
 * Data usage: license policies and access intents [service-states-other], [trust-2-15], [trust-4-8], [trust-5-10],
 * [trust-5-11]. `trust-commands.test.ts` has what all commands share.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { ACCESS, policyTerms, SOURCE } from './support/data-usage.ts';
import { get, operate, outcome, send } from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { audited, parsed, post, startUnlimited, UUID } from './support/trust.ts';
import { recordOf } from './support/trust-commands.ts';
import { created, MISSING } from './support/trust-protocol.ts';
import { NOW } from './support/verifications.ts';

const POLICY = '/admin/data-usage/policy';
const IN_FORCE = '/data-usage/policy';
const INTENT = '/admin/data-usage/intent';

const shared = sharedAuthority();

// Policy

test('members of a policy that may be omitted or empty', () => {
  const terms = policyTerms(NOW);
  const policyOf = (body: JsonObject) => recordOf('createLicensePolicy', body);
  for (const [changes, expected] of [
    [{ allowed_source_ids: [], allowed_access_types: [] }, {}],
    [{ max_volume_bytes_per_session: null }, {}],
    [{ max_volume_bytes_per_session: 0 }, {}],
    [{ max_volume_bytes_per_session: new JsonFloat(1000) }, { max_volume_bytes_per_session: 1000 }],
    [{ max_volume_bytes_per_session: 2 ** 53 - 1 }, {}],
    ...MISSING.map(([, missing]) => [
      { prohibited_classification_tags: missing },
      { prohibited_classification_tags: [] },
    ]),
    // Access of any name, and we may license ourselves.
    [{ allowed_access_types: ['delete', '', 'READ'] }, {}],
    [{ licensee_sovereign_id: 'alpha' }, {}],
    // A window that is over, in another zone, and without offset.
    [{ valid_from: '2020-01-01T00:00:00Z', valid_until: '2020-01-02T00:00:00Z' }, {}],
    [
      { valid_from: '2026-01-01T02:00:00+02:00', valid_until: '2026-01-01T00:00:00-01:00' },
      { valid_from: '2026-01-01T00:00:00Z', valid_until: '2026-01-01T01:00:00Z' },
    ],
    [
      { valid_from: '2026-01-01T00:00:00', valid_until: '2026-01-01T00:00:00.000001' },
      { valid_from: '2026-01-01T00:00:00Z', valid_until: '2026-01-01T00:00:00.000001Z' },
    ],
  ] as [JsonObject, JsonObject][]) {
    const body = { ...terms, ...changes };
    const { policy_id, signature, licensor_sovereign_id, ...rest } = policyOf(body);
    assert.deepEqual(rest, { ...body, ...expected });
  }
  const { max_volume_bytes_per_session, prohibited_classification_tags, ...body } = terms;
  const policy = policyOf(body);
  assert.equal(policy.max_volume_bytes_per_session, null);
  assert.deepEqual(policy.prohibited_classification_tags, []);
});

// The policy in force

test('there is no policy until one is created; then the latest one is in force', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  assert.equal(outcome(await get(na, IN_FORCE)), '404 no_policy');
  const answer = await operate(na, POLICY, policyTerms(now));
  const first = await created(answer);
  assert.equal((await get(na, IN_FORCE)).text, answer.text);
  const narrower = { ...policyTerms(now), licensee_sovereign_id: 'gamma', allowed_source_ids: [] };
  const second = await created(operate(na, POLICY, narrower));
  assert.notEqual(second.policy_id, first.policy_id);
  assert.deepEqual(parsed(await get(na, IN_FORCE)), second);
  assert.equal(
    outcome(await operate(na, POLICY, { ...narrower, valid_from: 7 })),
    '400 invalid_timestamps',
  );
  assert.equal(outcome(await post(na, POLICY, narrower)), '401 admin_auth_failed');
  assert.deepEqual(parsed(await get(na, IN_FORCE)), second, 'a refused policy replaces nothing');
  na.clock.advance(2 * HOUR);
  assert.deepEqual(parsed(await get(na, IN_FORCE)), second, 'served after its window');
  const later = {
    ...narrower,
    valid_from: '2090-01-01T00:00:00Z',
    valid_until: '2091-01-01T00:00:00Z',
  };
  const third = await created(operate(na, POLICY, later));
  assert.deepEqual(parsed(await get(na, IN_FORCE)), third, 'served before its window');
});

test('of many simultaneous policies the one decided last is in force', async () => {
  const na = await shared();
  const terms = policyTerms(na.clock.now());
  const before = audited(na, 'data_license_policy_created').length;
  await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      created(operate(na, POLICY, { ...terms, licensee_sovereign_id: `licensee-${index}` })),
    ),
  );
  const decided = audited(na, 'data_license_policy_created');
  assert.equal(decided.length, before + 30);
  assert.equal((await get(na, IN_FORCE)).body.policy_id, decided.at(-1)?.policy_id);
});

test('a policy is kept only in process memory: a restart discards it, and it can be posted again', async () => {
  await using na = await startUnlimited();
  const terms = policyTerms(na.clock.now());
  const first = await created(operate(na, POLICY, terms));
  await using restarted = await na.restart();
  assert.equal(outcome(await get(restarted, IN_FORCE)), '404 no_policy');
  const second = await created(operate(restarted, POLICY, terms));
  assert.notEqual(second.policy_id, first.policy_id);
  assert.deepEqual(parsed(await get(restarted, IN_FORCE)), second);
});

test('the policy in force has an ETag that changes with it', async () => {
  const na = await shared();
  const terms = policyTerms(na.clock.now());
  await created(operate(na, POLICY, terms));
  const first = await get(na, IN_FORCE);
  const tag = first.headers.get('etag') ?? '';
  assert.notEqual(tag, '');
  const known = { headers: { 'If-None-Match': tag } };
  const same = await send(na, 'GET', IN_FORCE, known);
  assert.deepEqual([same.status, same.text, same.headers.get('etag')], [304, '', tag]);
  await created(operate(na, POLICY, terms));
  const changed = await send(na, 'GET', IN_FORCE, known);
  assert.equal(changed.status, 200);
  assert.notEqual(changed.headers.get('etag'), tag);
});

// Intent

test('members of an intent that may be omitted, and members that are dropped', () => {
  const declare = (changes: JsonObject) => recordOf('declareIntent', { ...ACCESS, ...changes });
  const { classification_tags: _, ...untagged } = SOURCE;
  const nameless = { source_id: '', source_type: '', owner_sovereign_id: '' };
  for (const [changes, member, expected] of [
    [{ estimated_volume_bytes: null }, 'estimated_volume_bytes', null],
    [{ estimated_volume_bytes: 0 }, 'estimated_volume_bytes', 0],
    [{ estimated_volume_bytes: new JsonFloat(7) }, 'estimated_volume_bytes', 7],
    [{ access_types: ['', 'Ünïcode'] }, 'declared_access_types', ['', 'Ünïcode']],
    [{ sources: [{ ...SOURCE, unknown: 5 }] }, 'declared_sources', [SOURCE]],
    [{ sources: [untagged] }, 'declared_sources', [{ ...untagged, classification_tags: [] }]],
    [{ sources: [nameless] }, 'declared_sources', [{ ...nameless, classification_tags: [] }]],
  ] as [JsonObject, string, JsonValue][]) {
    assert.deepEqual(declare(changes)[member], expected);
  }
  for (const [name, decision_id] of MISSING) {
    assert.match(String(declare({ decision_id }).decision_id), UUID, name);
  }
  const { sources = null, access_types = null } = ACCESS;
  const intent = recordOf('declareIntent', { sources, access_types });
  assert.match(String(intent.decision_id), UUID);
  assert.equal(intent.estimated_volume_bytes, null);
});

/** The violation types of the verdict over HTTP, in its order. */
async function violationsOf(na: TestAuthority, body: JsonObject): Promise<string[]> {
  const answer = await post(na, '/data-usage/verify', body);
  assert.equal(outcome(answer), '200', answer.text);
  return answer.body.violations.map(({ violation_type }: JsonObject) => violation_type);
}

test('from license to verdict over HTTP: policy for a partner, intent by us', async () => {
  await using na = await startUnlimited();
  const policy = await created(operate(na, POLICY, policyTerms(na.clock.now())));
  const access = { sources: [SOURCE], access_types: ['read'], estimated_volume_bytes: 1000 };
  const intent = await created(operate(na, INTENT, access));
  assert.deepEqual(await violationsOf(na, { intent, policy }), []);
  na.clock.advance(300 * SECOND);
  assert.deepEqual(await violationsOf(na, { intent, policy }), []);
  na.clock.advance(1);
  assert.deepEqual(await violationsOf(na, { intent, policy }), ['intent_expired']);
  na.clock.advance(HOUR);
  const late = await created(operate(na, INTENT, { ...access, estimated_volume_bytes: 1001 }));
  const expected = ['policy_expired', 'volume_cap_exceeded'];
  assert.deepEqual(await violationsOf(na, { intent: late, policy }), expected);
});
