/** Data usage: license policies and access intents [service-states-other], [trust-2-15], [trust-4-8], [trust-5-10], [trust-5-11]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { SOURCE } from './support/data-usage.ts';
import type { Fault } from './support/faults.ts';
import { valuesExcept, WRONG_TIMESTAMPS } from './support/hostile.ts';
import { get, operate, outcome, send } from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { checkFaults, checkTable, inEach } from './support/tables.ts';
import { audited, parsed, post, startUnlimited, UUID } from './support/trust.ts';
import {
  created,
  eachOf,
  MISSING,
  mutationsOf,
  outcomeWithCause,
  singlyVerifies,
  without,
} from './support/trust-protocol.ts';

const POLICY = '/admin/data-usage/policy';
const IN_FORCE = '/data-usage/policy';
const INTENT = '/admin/data-usage/intent';

const shared = sharedAuthority();

// Policy

function policyTerms(now: number): Record<string, JsonValue> {
  return {
    licensee_sovereign_id: 'beta',
    allowed_source_ids: ['s-1', 's-2', 's-1'],
    allowed_access_types: ['read', 'derive'],
    max_volume_bytes_per_session: 1000,
    prohibited_classification_tags: ['secret'],
    valid_from: formatInstant(now),
    valid_until: formatInstant(now + HOUR),
  };
}

test('a policy has every member, is signed by us, is audited, and is then in force', async () => {
  const na = await shared();
  const terms = policyTerms(na.clock.now());
  const answer = await operate(na, POLICY, terms, { operator: na.standard });
  const policy = await created(answer);
  const { policy_id, signature } = policy;
  assert.match(String(policy_id), UUID);
  assert.deepEqual(policy, {
    policy_id,
    licensor_sovereign_id: 'alpha',
    ...terms,
    signature: { key_id: na.audience, sig: (signature as JsonObject).sig },
  });
  assert.equal(singlyVerifies(policy, na.audience), true);
  assert.deepEqual(audited(na, 'data_license_policy_created').at(-1), {
    policy_id,
    licensor_sovereign_id: 'alpha',
    licensee_sovereign_id: 'beta',
    allowed_access_types: ['read', 'derive'],
  });
  const read = await get(na, IN_FORCE);
  assert.equal(outcome(read), '200');
  assert.equal(read.text, answer.text);
});

test('members of a policy that may be omitted or empty', async () => {
  const na = await shared();
  const terms = policyTerms(na.clock.now());
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
    const policy = await created(operate(na, POLICY, body));
    const { policy_id, signature, licensor_sovereign_id, ...rest } = policy;
    assert.deepEqual(rest, { ...body, ...expected });
    assert.equal(singlyVerifies(policy, na.audience), true);
    assert.equal((await get(na, IN_FORCE)).body.policy_id, policy_id);
  }
  const { max_volume_bytes_per_session, prohibited_classification_tags, ...body } = terms;
  const policy = await created(operate(na, POLICY, body));
  assert.equal(policy.max_volume_bytes_per_session, null);
  assert.deepEqual(policy.prohibited_classification_tags, []);
});

/** In the order of [trust-5-10]. */
const POLICY_FAULTS: readonly Fault<JsonObject>[] = [
  ['400 missing_policy_fields missing_licensee_sovereign_id', { licensee_sovereign_id: '' }],
  ['400 missing_policy_fields invalid_allowed_source_ids', { allowed_source_ids: 's-1' }],
  ['400 missing_policy_fields invalid_allowed_access_types', { allowed_access_types: null }],
  ['400 invalid_timestamps invalid_valid_from', { valid_from: 7 }],
  ['400 invalid_timestamps invalid_valid_until', { valid_until: 'tomorrow' }],
  ['400 invalid_timestamps timestamp_order', { valid_until: '2020-01-01T00:00:00Z' }],
  ['422 request_validation_failed invalid_licensee_sovereign_id', { licensee_sovereign_id: 7 }],
  ['422 request_validation_failed invalid_allowed_source_ids', { allowed_source_ids: [7] }],
  ['422 request_validation_failed invalid_allowed_access_types', { allowed_access_types: [null] }],
  [
    '422 request_validation_failed invalid_max_volume_bytes_per_session',
    { max_volume_bytes_per_session: -1 },
  ],
  [
    '422 request_validation_failed invalid_prohibited_classification_tags',
    { prohibited_classification_tags: [['secret']] },
  ],
];

test('of several faults of a policy the earliest is reported, and nothing takes effect', async () => {
  await using na = await startUnlimited();
  const body = policyTerms(na.clock.now());
  const ask = async (changes: JsonObject) =>
    outcomeWithCause(await operate(na, POLICY, { ...body, ...changes }));
  await checkFaults(POLICY_FAULTS, ask);
  const wrongInstants = [
    ...valuesExcept(),
    ...WRONG_TIMESTAMPS.map((text) => [text, text] as const),
    ['the end of time in a zone where it is later', '9999-12-31T23:59:59-01:00'] as const,
    ['the beginning of time in a zone where it is earlier', '0001-01-01T00:00:00+01:00'] as const,
  ];
  const table: Record<string, Readonly<Record<string, JsonObject>>> = {
    '400 missing_policy_fields missing_licensee_sovereign_id': inEach(
      'licensee_sovereign_id',
      MISSING,
    ),
    '422 request_validation_failed invalid_max_volume_bytes_per_session': inEach(
      'max_volume_bytes_per_session',
      [
        ...valuesExcept('null', 'the integer 7'),
        ['2 to the 53', 2n ** 53n],
        ['1e300', new JsonFloat(1e300)],
        ['-1.0', new JsonFloat(-1)],
        ['"1000"', '1000'],
      ],
    ),
    '400 invalid_timestamps timestamp_order': {
      'a window that ends when it begins': { valid_until: body.valid_from ?? null },
    },
  };
  for (const member of ['allowed_source_ids', 'allowed_access_types']) {
    const lists = valuesExcept('a list', 'an empty list');
    table[`400 missing_policy_fields invalid_${member}`] = inEach(member, lists);
  }
  for (const member of ['valid_from', 'valid_until']) {
    table[`400 invalid_timestamps invalid_${member}`] = inEach(member, wrongInstants);
  }
  await checkTable(table, ask);
  for (const [member, expected] of [
    ['licensee_sovereign_id', '400 missing_policy_fields'],
    ['allowed_source_ids', '400 missing_policy_fields'],
    ['allowed_access_types', '400 missing_policy_fields'],
    ['valid_from', '400 invalid_timestamps'],
    ['valid_until', '400 invalid_timestamps'],
  ] as const) {
    assert.equal(outcome(await operate(na, POLICY, without(body, member))), expected, member);
  }
  assert.equal(outcome(await get(na, IN_FORCE)), '404 no_policy');
  assert.deepEqual(audited(na, 'data_license_policy_created'), []);
});

// The policy in force

test('there is no policy until one is created; then the latest one is in force', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  assert.equal(outcome(await get(na, IN_FORCE)), '404 no_policy');
  const first = await created(operate(na, POLICY, policyTerms(now)));
  assert.deepEqual(parsed(await get(na, IN_FORCE)), first);
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

const ACCESS: Readonly<Record<string, JsonValue>> = {
  sources: [SOURCE, { ...SOURCE, source_id: 's-2', source_type: 'database' }, SOURCE],
  access_types: ['read', 'delete', 'read'],
  decision_id: 'decision',
  estimated_volume_bytes: 5000,
};

test('an intent has every member, is signed by us as agent, and is audited', async () => {
  const na = await shared();
  const now = na.clock.now();
  const intent = await created(operate(na, INTENT, ACCESS, { operator: na.standard }));
  const { intent_id, signature } = intent;
  assert.match(String(intent_id), UUID);
  assert.deepEqual(intent, {
    intent_id,
    agent_sovereign_id: 'alpha',
    decision_id: 'decision',
    declared_sources: ACCESS.sources,
    declared_access_types: ACCESS.access_types,
    estimated_volume_bytes: 5000,
    declared_at: formatInstant(now),
    expires_at: formatInstant(now + 300 * SECOND),
    signature: { key_id: 'alpha', sig: (signature as JsonObject).sig },
  });
  assert.equal(singlyVerifies(intent, na.audience), true);
  assert.deepEqual(audited(na, 'data_access_intent_created').at(-1), {
    intent_id,
    agent_sovereign_id: 'alpha',
    decision_id: 'decision',
    declared_access_types: ACCESS.access_types,
    source_count: 3,
  });
});

test('members of an intent that may be omitted, and members that are dropped', async () => {
  const na = await shared();
  const declare = async (changes: JsonObject) => {
    const intent = await created(operate(na, INTENT, { ...ACCESS, ...changes }));
    assert.equal(singlyVerifies(intent, na.audience), true);
    return intent;
  };
  const { classification_tags: _, ...untagged } = SOURCE;
  const nameless = { source_id: '', source_type: '', owner_sovereign_id: '' };
  const many = Array.from({ length: 1024 }, () => SOURCE);
  for (const [changes, member, expected] of [
    [{ estimated_volume_bytes: null }, 'estimated_volume_bytes', null],
    [{ estimated_volume_bytes: 0 }, 'estimated_volume_bytes', 0],
    [{ estimated_volume_bytes: new JsonFloat(7) }, 'estimated_volume_bytes', 7],
    [{ access_types: ['', 'Ünïcode'] }, 'declared_access_types', ['', 'Ünïcode']],
    [{ sources: many }, 'declared_sources', many],
    [{ sources: [{ ...SOURCE, unknown: 5 }] }, 'declared_sources', [SOURCE]],
    [{ sources: [untagged] }, 'declared_sources', [{ ...untagged, classification_tags: [] }]],
    [{ sources: [nameless] }, 'declared_sources', [{ ...nameless, classification_tags: [] }]],
  ] as [JsonObject, string, JsonValue][]) {
    assert.deepEqual((await declare(changes))[member], expected);
  }
  for (const [name, decision_id] of MISSING) {
    assert.match(String((await declare({ decision_id })).decision_id), UUID, name);
  }
  const { sources = null, access_types = null } = ACCESS;
  const intent = await created(operate(na, INTENT, { sources, access_types }));
  assert.match(String(intent.decision_id), UUID);
  assert.equal(intent.estimated_volume_bytes, null);
});

/** In the order of [trust-5-11]. */
const INTENT_FAULTS: readonly Fault<JsonObject>[] = [
  ['400 missing_intent_fields missing_sources', { sources: [] }],
  ['400 missing_intent_fields missing_access_types', { access_types: 'read' }],
  ['400 invalid_source too_many_sources', { sources: Array.from({ length: 1025 }, () => SOURCE) }],
  ['400 invalid_source invalid_source', { sources: [SOURCE, { source_id: 's-2' }] }],
  ['422 intent_create_failed invalid_access_types', { access_types: ['read', 7] }],
  ['422 intent_create_failed invalid_decision_id', { decision_id: 7 }],
  ['422 intent_create_failed invalid_estimated_volume_bytes', { estimated_volume_bytes: -1 }],
];

test('of several faults of an intent the earliest is reported', async () => {
  const na = await shared();
  const before = audited(na, 'data_access_intent_created').length;
  const ask = async (changes: JsonObject) =>
    outcomeWithCause(await operate(na, INTENT, { ...ACCESS, ...changes }));
  await checkFaults(INTENT_FAULTS, ask);
  const wrongSources = [
    ...valuesExcept('an object').map(([, value]) => value),
    ...['source_id', 'source_type', 'owner_sovereign_id'].flatMap((member) => [
      without(SOURCE, member),
      { ...SOURCE, [member]: 7 },
      { ...SOURCE, [member]: null },
    ]),
    { ...SOURCE, classification_tags: 'secret' },
    { ...SOURCE, classification_tags: null },
    { ...SOURCE, classification_tags: ['a', 7] },
  ];
  await checkTable(
    {
      '400 missing_intent_fields missing_sources': inEach('sources', valuesExcept('a list')),
      '400 missing_intent_fields missing_access_types': inEach(
        'access_types',
        valuesExcept('a list'),
      ),
      '400 invalid_source invalid_source': inEach(
        'sources',
        wrongSources.map((source) => [JSON.stringify(source), [SOURCE, source]] as const),
      ),
      '422 intent_create_failed invalid_estimated_volume_bytes': inEach('estimated_volume_bytes', [
        ...valuesExcept('null', 'the integer 7'),
        ['2 to the 53', 2n ** 53n],
        ['"7"', '7'],
      ]),
    },
    ask,
  );
  for (const member of ['sources', 'access_types']) {
    const answer = await operate(na, INTENT, without(ACCESS, member));
    assert.equal(outcomeWithCause(answer), `400 missing_intent_fields missing_${member}`);
  }
  assert.equal(audited(na, 'data_access_intent_created').length, before);
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

test('no altered member of an operator request causes an internal error', async () => {
  const na = await shared();
  const policyRefusals = ['400 missing_policy_fields', '400 invalid_timestamps'];
  const intentRefusals = ['400 missing_intent_fields', '400 invalid_source'];
  for (const [path, body, refused] of [
    [POLICY, policyTerms(na.clock.now()), [...policyRefusals, '422 request_validation_failed']],
    [INTENT, ACCESS, [...intentRefusals, '422 intent_create_failed']],
  ] as [string, JsonObject, string[]][]) {
    const outcomes = new Set(['201', ...refused]);
    await eachOf(mutationsOf(body), async ({ name, record }) => {
      const answer = await operate(na, path, record);
      assert.ok(outcomes.has(outcome(answer)), `${path} ${name}: ${outcome(answer)}`);
    });
  }
});
