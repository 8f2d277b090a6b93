/**
 * Data usage: license policy, access intent, verification [service-states-other], [trust-2-15],
 * [trust-4-8], [trust-5-10], [trust-5-11], [trust-6-7], [trust-6-8].
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { type Fault, faultsTogether } from './support/faults.ts';
import { valuesExcept, WRONG_TIMESTAMPS } from './support/hostile.ts';
import { get, newKey, operate, outcome, send } from './support/requests.ts';
import { stateDigest } from './support/test-stores.ts';
import {
  audited,
  freshId,
  misspellableKey,
  parsed,
  post,
  sovereign,
  startUnlimited,
  UUID,
} from './support/trust.ts';
import {
  created,
  eachOf,
  inner,
  keyListCases,
  MISSING,
  mutationsOf,
  ourselves,
  outcomeWithCause,
  type Party,
  singlySigned,
  singlyVerifies,
  without,
} from './support/trust-protocol.ts';

const POLICY = '/admin/data-usage/policy';
const IN_FORCE = '/data-usage/policy';
const INTENT = '/admin/data-usage/intent';
const VERIFY = '/data-usage/verify';

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
  await using na = await startUnlimited();
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
  assert.deepEqual(audited(na, 'data_license_policy_created'), [
    {
      policy_id,
      licensor_sovereign_id: 'alpha',
      licensee_sovereign_id: 'beta',
      allowed_access_types: ['read', 'derive'],
    },
  ]);
  const read = await get(na, IN_FORCE);
  assert.equal(outcome(read), '200');
  assert.equal(read.text, answer.text);
});

test('members of a policy that may be omitted or empty', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  for (const [name, terms, expected] of [
    ['nothing allowed', { allowed_source_ids: [], allowed_access_types: [] }, {}],
    ['no cap', { max_volume_bytes_per_session: null }, {}],
    ['a cap of zero', { max_volume_bytes_per_session: 0 }, {}],
    [
      'a cap of 1000.0',
      { max_volume_bytes_per_session: new JsonFloat(1000) },
      { max_volume_bytes_per_session: 1000 },
    ],
    ['the largest cap', { max_volume_bytes_per_session: 2 ** 53 - 1 }, {}],
    ...MISSING.map(([value, missing]) => [
      `${value} for tags`,
      { prohibited_classification_tags: missing },
      { prohibited_classification_tags: [] },
    ]),
    ['access of any name', { allowed_access_types: ['delete', '', 'READ'] }, {}],
    ['ourselves as licensee', { licensee_sovereign_id: 'alpha' }, {}],
    [
      'a window that is over',
      { valid_from: '2020-01-01T00:00:00Z', valid_until: '2020-01-02T00:00:00Z' },
      {},
    ],
    [
      'a window in another zone',
      { valid_from: '2026-01-01T02:00:00+02:00', valid_until: '2026-01-01T00:00:00-01:00' },
      { valid_from: '2026-01-01T00:00:00Z', valid_until: '2026-01-01T01:00:00Z' },
    ],
    [
      'a window without offset',
      { valid_from: '2026-01-01T00:00:00', valid_until: '2026-01-01T00:00:00.000001' },
      { valid_from: '2026-01-01T00:00:00Z', valid_until: '2026-01-01T00:00:00.000001Z' },
    ],
  ] as [string, JsonObject, JsonObject][]) {
    await t.test(name, async () => {
      const body = { ...policyTerms(now), ...terms };
      const policy = await created(operate(na, POLICY, body));
      const { policy_id, signature, licensor_sovereign_id, ...rest } = policy;
      assert.deepEqual(rest, { ...body, ...expected });
      assert.equal(singlyVerifies(policy, na.audience), true);
      assert.equal((await get(na, IN_FORCE)).body.policy_id, policy_id);
    });
  }
  await t.test('neither cap nor tags', async () => {
    const { max_volume_bytes_per_session, prohibited_classification_tags, ...body } =
      policyTerms(now);
    const policy = await created(operate(na, POLICY, body));
    assert.equal(policy.max_volume_bytes_per_session, null);
    assert.deepEqual(policy.prohibited_classification_tags, []);
  });
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

test('of several faults of a policy the earliest is reported, and nothing takes effect', async (t) => {
  await using na = await startUnlimited();
  const body = policyTerms(na.clock.now());
  for (const { name, expected, draft } of faultsTogether(POLICY_FAULTS)) {
    await t.test(name, async () => {
      const answer = await operate(na, POLICY, { ...body, ...draft });
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  for (const [name, licensee_sovereign_id] of MISSING) {
    await t.test(`the licensee is ${name}`, async () => {
      const answer = await operate(na, POLICY, { ...body, licensee_sovereign_id });
      const expected = '400 missing_policy_fields missing_licensee_sovereign_id';
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  for (const member of ['allowed_source_ids', 'allowed_access_types']) {
    for (const [name, value] of valuesExcept('a list', 'an empty list')) {
      await t.test(`${member} is ${name}`, async () => {
        const answer = await operate(na, POLICY, { ...body, [member]: value });
        assert.equal(outcomeWithCause(answer), `400 missing_policy_fields invalid_${member}`);
      });
    }
  }
  for (const member of ['valid_from', 'valid_until']) {
    for (const [name, value] of [
      ...valuesExcept(),
      ...WRONG_TIMESTAMPS.map((text) => [text, text] as const),
      ['the end of time in a zone where it is later', '9999-12-31T23:59:59-01:00'] as const,
      ['the beginning of time in a zone where it is earlier', '0001-01-01T00:00:00+01:00'] as const,
    ]) {
      await t.test(`${member} is ${name}`, async () => {
        const answer = await operate(na, POLICY, { ...body, [member]: value });
        assert.equal(outcomeWithCause(answer), `400 invalid_timestamps invalid_${member}`);
      });
    }
  }
  for (const [name, value] of [
    ...valuesExcept('null', 'the integer 7'),
    ['2 to the 53', 2n ** 53n],
    ['1e300', new JsonFloat(1e300)],
    ['-1.0', new JsonFloat(-1)],
    ['"1000"', '1000'],
  ] as [string, JsonValue][]) {
    await t.test(`the cap is ${name}`, async () => {
      const answer = await operate(na, POLICY, { ...body, max_volume_bytes_per_session: value });
      const expected = '422 request_validation_failed invalid_max_volume_bytes_per_session';
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  await t.test('a window that ends when it begins', async () => {
    const answer = await operate(na, POLICY, { ...body, valid_until: body.valid_from ?? null });
    assert.equal(outcomeWithCause(answer), '400 invalid_timestamps timestamp_order');
  });
  for (const [member, expected] of [
    ['licensee_sovereign_id', '400 missing_policy_fields'],
    ['allowed_source_ids', '400 missing_policy_fields'],
    ['allowed_access_types', '400 missing_policy_fields'],
    ['valid_from', '400 invalid_timestamps'],
    ['valid_until', '400 invalid_timestamps'],
  ] as const) {
    await t.test(`without ${member}`, async () => {
      assert.equal(outcome(await operate(na, POLICY, without(body, member))), expected);
    });
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
  await using na = await startUnlimited();
  const terms = policyTerms(na.clock.now());
  await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      created(operate(na, POLICY, { ...terms, licensee_sovereign_id: `licensee-${index}` })),
    ),
  );
  const decided = audited(na, 'data_license_policy_created');
  assert.equal(decided.length, 30);
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
  await using na = await startUnlimited();
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

const SOURCE = {
  source_id: 's-1',
  source_type: 'proprietary',
  owner_sovereign_id: 'beta',
  classification_tags: ['internal', 'internal'],
};
const ACCESS: Readonly<Record<string, JsonValue>> = {
  sources: [SOURCE, { ...SOURCE, source_id: 's-2', source_type: 'database' }, SOURCE],
  access_types: ['read', 'delete', 'read'],
  decision_id: 'decision',
  estimated_volume_bytes: 5000,
};

test('an intent has every member, is signed by us as agent, and is audited', async () => {
  await using na = await startUnlimited();
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
  assert.deepEqual(audited(na, 'data_access_intent_created'), [
    {
      intent_id,
      agent_sovereign_id: 'alpha',
      decision_id: 'decision',
      declared_access_types: ACCESS.access_types,
      source_count: 3,
    },
  ]);
});

test('members of an intent that may be omitted, and members that are dropped', async (t) => {
  await using na = await startUnlimited();
  const { classification_tags: _, ...untagged } = SOURCE;
  for (const [name, changes, expected] of [
    ['no estimate', { estimated_volume_bytes: null }, { estimated_volume_bytes: null }],
    ['an estimate of nothing', { estimated_volume_bytes: 0 }, { estimated_volume_bytes: 0 }],
    [
      'an estimate of 7.0',
      { estimated_volume_bytes: new JsonFloat(7) },
      { estimated_volume_bytes: 7 },
    ],
    [
      'a source without tags',
      { sources: [untagged] },
      { declared_sources: [{ ...untagged, classification_tags: [] }] },
    ],
    [
      'a source with members nobody knows',
      { sources: [{ ...SOURCE, estimated_volume_bytes: 5 }] },
      { declared_sources: [SOURCE] },
    ],
    [
      'a source of no names',
      { sources: [{ source_id: '', source_type: '', owner_sovereign_id: '' }] },
      {
        declared_sources: [
          { source_id: '', source_type: '', owner_sovereign_id: '', classification_tags: [] },
        ],
      },
    ],
    [
      'access of any name',
      { access_types: ['', 'Ünïcode'] },
      { declared_access_types: ['', 'Ünïcode'] },
    ],
    [
      '1024 sources',
      { sources: Array.from({ length: 1024 }, () => SOURCE) },
      { declared_sources: Array.from({ length: 1024 }, () => SOURCE) },
    ],
  ] as [string, JsonObject, JsonObject][]) {
    await t.test(name, async () => {
      const intent = await created(operate(na, INTENT, { ...ACCESS, ...changes }));
      for (const [member, value] of Object.entries(expected)) {
        assert.deepEqual(intent[member], value);
      }
      assert.equal(singlyVerifies(intent, na.audience), true);
    });
  }
  for (const [name, decision_id] of MISSING) {
    await t.test(`${name} for the decision is replaced by a new one`, async () => {
      const intent = await created(operate(na, INTENT, { ...ACCESS, decision_id }));
      assert.match(String(intent.decision_id), UUID);
    });
  }
  await t.test('neither decision nor estimate', async () => {
    const { sources = null, access_types = null } = ACCESS;
    const intent = await created(operate(na, INTENT, { sources, access_types }));
    assert.match(String(intent.decision_id), UUID);
    assert.equal(intent.estimated_volume_bytes, null);
  });
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

test('of several faults of an intent the earliest is reported', async (t) => {
  await using na = await startUnlimited();
  for (const { name, expected, draft } of faultsTogether(INTENT_FAULTS)) {
    await t.test(name, async () => {
      const answer = await operate(na, INTENT, { ...ACCESS, ...draft });
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  for (const member of ['sources', 'access_types']) {
    for (const [name, value] of valuesExcept('a list')) {
      await t.test(`${member} is ${name}`, async () => {
        const answer = await operate(na, INTENT, { ...ACCESS, [member]: value });
        assert.equal(outcomeWithCause(answer), `400 missing_intent_fields missing_${member}`);
      });
    }
    await t.test(`without ${member}`, async () => {
      const answer = await operate(na, INTENT, without(ACCESS, member));
      assert.equal(outcomeWithCause(answer), `400 missing_intent_fields missing_${member}`);
    });
  }
  for (const [name, source] of [
    ...valuesExcept('an object'),
    ...['source_id', 'source_type', 'owner_sovereign_id'].flatMap((member) => [
      [`without ${member}`, without(SOURCE, member)] as const,
      [`with a number as ${member}`, { ...SOURCE, [member]: 7 }] as const,
      [`with null as ${member}`, { ...SOURCE, [member]: null }] as const,
    ]),
    ['with a tag for tags', { ...SOURCE, classification_tags: 'secret' }] as const,
    ['with null for tags', { ...SOURCE, classification_tags: null }] as const,
    ['with a number among its tags', { ...SOURCE, classification_tags: ['a', 7] }] as const,
  ] as [string, JsonValue][]) {
    await t.test(`a source that is ${name}`, async () => {
      const answer = await operate(na, INTENT, { ...ACCESS, sources: [SOURCE, source] });
      assert.equal(outcomeWithCause(answer), '400 invalid_source invalid_source');
    });
  }
  for (const [name, value] of [
    ...valuesExcept('null', 'the integer 7'),
    ['2 to the 53', 2n ** 53n],
    ['"7"', '7'],
  ] as [string, JsonValue][]) {
    await t.test(`the estimate is ${name}`, async () => {
      const answer = await operate(na, INTENT, { ...ACCESS, estimated_volume_bytes: value });
      const expected = '422 intent_create_failed invalid_estimated_volume_bytes';
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  assert.deepEqual(audited(na, 'data_access_intent_created'), []);
});

// Verification

/** Records built independently of the program: an agent's intent, and a policy that allows it. */
function intentBy(agent: Party, now: number, changes: JsonObject = {}): JsonObject {
  const record = {
    intent_id: freshId('intent'),
    agent_sovereign_id: agent.name,
    decision_id: 'decision',
    declared_sources: [SOURCE],
    declared_access_types: ['read'],
    estimated_volume_bytes: 1000,
    declared_at: formatInstant(now - MINUTE),
    expires_at: formatInstant(now + 4 * MINUTE),
    ...changes,
  };
  return singlySigned(record, agent.key, agent.name);
}

function policyBy(licensor: Party, now: number, changes: JsonObject = {}): JsonObject {
  const record = {
    policy_id: freshId('policy'),
    licensor_sovereign_id: licensor.name,
    licensee_sovereign_id: 'somebody',
    allowed_source_ids: ['s-1', 's-2'],
    allowed_access_types: ['read', 'derive'],
    max_volume_bytes_per_session: 1000,
    prohibited_classification_tags: ['secret', 'health'],
    valid_from: formatInstant(now - HOUR),
    valid_until: formatInstant(now + HOUR),
    ...changes,
  };
  return singlySigned(record, licensor.key);
}

const [agent, licensor] = [sovereign('agent'), sovereign('licensor')];

/** The violation types in the order of the answer, which must be complete violations. */
async function violationsOf(na: TestAuthority, body: JsonObject): Promise<string[]> {
  const answer = await post(na, VERIFY, body);
  assert.equal(outcome(answer), '200', answer.text);
  const { violations, ...verdict } = answer.body;
  const types = violations.map(({ violation_type }: JsonObject) => violation_type);
  assert.deepEqual(verdict, {
    valid: types.length === 0,
    violation_reason: types[0] ?? null,
    violation_count: types.length,
  });
  const { intent_id, agent_sovereign_id } = inner(body, 'intent');
  for (const { violation_id, detail, ...violation } of violations) {
    assert.match(violation_id, UUID);
    assert.equal(typeof detail, 'string');
    assert.notEqual(detail, '');
    assert.deepEqual(violation, {
      intent_id,
      record_id: null,
      agent_sovereign_id,
      violation_type: violation.violation_type,
      detected_at: formatInstant(na.clock.now()),
    });
  }
  const ids = new Set(violations.map(({ violation_id }: JsonObject) => violation_id));
  assert.equal(ids.size, violations.length);
  return types;
}

test('the ways in which an intent exceeds its policy, in order', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const at = (instant: number) => formatInstant(instant);
  const source = (source_id: string, ...classification_tags: string[]) => ({
    ...SOURCE,
    source_id,
    classification_tags,
  });
  const [unlicensed, prohibited] = ['source_not_licensed', 'prohibited_classification'];
  const [access, volume] = ['access_type_not_permitted', 'volume_cap_exceeded'];
  const before = await stateDigest(na);
  for (const [name, intent, policy, expected] of [
    ['nothing', {}, {}, []],
    // Time: both ends are inclusive.
    ['at its end', { expires_at: at(now) }, {}, []],
    ['after its end', { expires_at: at(now - 1) }, {}, ['intent_expired']],
    ['a microsecond after its end', { expires_at: at(now - 0.001) }, {}, ['intent_expired']],
    ['declared in the future', { declared_at: at(now + MINUTE) }, {}, []],
    ['at the end of the policy', {}, { valid_until: at(now) }, []],
    ['after the end of the policy', {}, { valid_until: at(now - 1) }, ['policy_expired']],
    ['at the beginning of the policy', {}, { valid_from: at(now) }, []],
    ['before the beginning of the policy', {}, { valid_from: at(now + 1) }, ['policy_expired']],
    [
      'a window that is the wrong way round',
      {},
      { valid_from: at(now + HOUR), valid_until: at(now - HOUR) },
      ['policy_expired'],
    ],
    // Sources.
    ['a source that is not licensed', { declared_sources: [source('s-3')] }, {}, [unlicensed]],
    ['a source in capitals', { declared_sources: [source('S-1')] }, {}, [unlicensed]],
    [
      'a source that every object has',
      { declared_sources: [source('constructor')] },
      {},
      [unlicensed],
    ],
    ['no source', { declared_sources: [] }, {}, []],
    ['a policy of no source', {}, { allowed_source_ids: [] }, [unlicensed]],
    [
      'one source twice, not licensed',
      { declared_sources: [source('s-3'), source('s-3')] },
      {},
      [unlicensed, unlicensed],
    ],
    [
      'a prohibited tag',
      { declared_sources: [source('s-1', 'internal', 'secret')] },
      {},
      [prohibited],
    ],
    [
      'two prohibited tags on one source',
      { declared_sources: [source('s-1', 'secret', 'health')] },
      {},
      [prohibited],
    ],
    [
      'prohibited tags on two sources',
      { declared_sources: [source('s-1', 'secret'), source('s-2', 'secret')] },
      {},
      [prohibited, prohibited],
    ],
    ['a tag in capitals', { declared_sources: [source('s-1', 'SECRET')] }, {}, []],
    [
      'a prohibited tag, where none is',
      { declared_sources: [source('s-1', 'secret')] },
      { prohibited_classification_tags: [] },
      [],
    ],
    [
      'not licensed and prohibited',
      { declared_sources: [source('s-3', 'secret')] },
      {},
      [unlicensed, prohibited],
    ],
    [
      'by source first, then by kind',
      { declared_sources: [source('s-1', 'secret'), source('s-3'), source('s-4', 'health')] },
      {},
      [prohibited, unlicensed, unlicensed, prohibited],
    ],
    // Access.
    ['another access', { declared_access_types: ['train'] }, {}, [access]],
    [
      'another access twice, among allowed ones',
      { declared_access_types: ['train', 'read', 'train', 'derive', 'READ'] },
      {},
      [access, access, access],
    ],
    ['no access', { declared_access_types: [] }, {}, []],
    ['to read, where nothing is named', {}, { allowed_access_types: [] }, []],
    [
      'to derive, where nothing is named',
      { declared_access_types: ['derive', 'read'] },
      { allowed_access_types: [] },
      [access],
    ],
    ['to read, where it is not named', {}, { allowed_access_types: ['derive'] }, [access]],
    // Volume.
    ['as much as there may be', { estimated_volume_bytes: 1000 }, {}, []],
    ['a byte more', { estimated_volume_bytes: 1001 }, {}, [volume]],
    ['no estimate', { estimated_volume_bytes: null }, {}, []],
    [
      'no estimate under a cap of nothing',
      { estimated_volume_bytes: null },
      { max_volume_bytes_per_session: 0 },
      [],
    ],
    [
      'a byte under a cap of nothing',
      { estimated_volume_bytes: 1 },
      { max_volume_bytes_per_session: 0 },
      [volume],
    ],
    [
      'nothing under a cap of nothing',
      { estimated_volume_bytes: 0 },
      { max_volume_bytes_per_session: 0 },
      [],
    ],
    [
      'the largest estimate without cap',
      { estimated_volume_bytes: 2 ** 53 - 1 },
      { max_volume_bytes_per_session: null },
      [],
    ],
    ['a negative estimate', { estimated_volume_bytes: -1 }, {}, []],
    // All at once.
    [
      'everything',
      {
        expires_at: at(now - 1),
        declared_sources: [source('s-3', 'secret'), source('s-1', 'health')],
        declared_access_types: ['train', 'delete'],
        estimated_volume_bytes: 5000,
      },
      { valid_until: at(now - 1) },
      [
        'intent_expired',
        'policy_expired',
        unlicensed,
        prohibited,
        prohibited,
        access,
        access,
        volume,
      ],
    ],
  ] as [string, JsonObject, JsonObject, string[]][]) {
    await t.test(`${name}: ${expected.join(', ') || 'valid'}`, async () => {
      const body = {
        intent: intentBy(agent, now, intent),
        policy: policyBy(licensor, now, policy),
        agent_public_keys: [agent.key.publicKey],
      };
      assert.deepEqual(await violationsOf(na, body), expected);
      assert.deepEqual(audited(na, 'data_access_intent_verified').at(-1), {
        intent_id: body.intent.intent_id,
        valid: expected.length === 0,
        violation_count: expected.length,
      });
    });
  }
  assert.equal(await stateDigest(na), before);
});

test('an intent that its agent did not sign has one violation, regardless of what else it declares', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const worst = {
    expires_at: '2020-01-01T00:00:00Z',
    declared_sources: [{ ...SOURCE, source_id: 's-3', classification_tags: ['secret'] }],
    declared_access_types: ['train'],
    estimated_volume_bytes: 5000,
  };
  const over = policyBy(licensor, now, { valid_until: formatInstant(now - 1) });
  for (const [name, intent] of [
    ['unsigned', { ...intentBy(agent, now), signature: null }],
    ['without signature member', without(intentBy(agent, now), 'signature')],
    ['signed by another', singlySigned(intentBy(agent, now), newKey(), 'agent')],
    ['changed after it was signed', { ...intentBy(agent, now), declared_access_types: ['derive'] }],
    [
      'with a signature that is none',
      { ...intentBy(agent, now), signature: { key_id: '', sig: '' } },
    ],
    ['unsigned and beyond everything', { ...intentBy(agent, now, worst), signature: null }],
  ] as [string, JsonObject][]) {
    await t.test(name, async () => {
      const agent_public_keys = [agent.key.publicKey];
      const body = { intent, policy: over, agent_public_keys };
      assert.deepEqual(await violationsOf(na, body), ['intent_exceeds_license']);
    });
  }
});

test('neither the signature of the policy nor its parties are checked', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const policy = policyBy(licensor, now);
  for (const [name, given] of [
    ['an unsigned policy', { ...policy, signature: null }],
    ['a policy without signature member', without(policy, 'signature')],
    ['a policy signed by another', singlySigned(policy, newKey())],
    ['a policy with a signature that is none', { ...policy, signature: { key_id: '', sig: '' } }],
    ['a policy changed after it was signed', { ...policy, allowed_access_types: ['read'] }],
    ['a policy for another agent', policyBy(licensor, now, { licensee_sovereign_id: 'x' })],
    ['a policy of the agent itself', policyBy(agent, now)],
    ['a policy without id', without(policy, 'policy_id')],
    [
      'a policy with no cap and no tags',
      without(without(policy, 'max_volume_bytes_per_session'), 'prohibited_classification_tags'),
    ],
  ] as [string, JsonObject][]) {
    await t.test(name, async () => {
      const intent = intentBy(agent, now);
      const agent_public_keys = [agent.key.publicKey];
      assert.deepEqual(await violationsOf(na, { intent, policy: given, agent_public_keys }), []);
    });
  }
});

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

test('keys that an agent is known by', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const other = sovereign('other', misspellableKey());
  const policy = policyBy(licensor, now);
  const theirs = { intent: intentBy(other, now), policy };
  const exceeds = ['intent_exceeds_license'];
  for (const [name, agent_public_keys, result] of keyListCases(other.key)) {
    await t.test(`${name} ${result}`, async () => {
      const body = { ...theirs, agent_public_keys };
      if (result === 'malformed') {
        assert.equal(outcome(await post(na, VERIFY, body)), '400 invalid_input');
      } else {
        assert.deepEqual(await violationsOf(na, body), result === 'verifies' ? [] : exceeds);
      }
    });
  }
  const ours = { intent: intentBy(ourselves(na), now), policy };
  for (const [name, body, expected] of [
    ['no list, and ours', ours, []],
    ['null, and ours', { ...ours, agent_public_keys: null }, []],
    ['an empty list, and ours', { ...ours, agent_public_keys: [] }, exceeds],
    ['no list, and not ours', theirs, exceeds],
  ] as [string, JsonObject, string[]][]) {
    await t.test(name, async () => assert.deepEqual(await violationsOf(na, body), expected));
  }
});

test('an intent is verified by what it means, not by how it is spelled', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const intent = intentBy(agent, now);
  const exceeds = ['intent_exceeds_license'];
  const float = { estimated_volume_bytes: new JsonFloat(1000) };
  const tagged = { declared_sources: [{ ...SOURCE, estimated_volume_bytes: 5 }] };
  for (const [name, sent, expected] of [
    ['an estimate that is sent as 1000.0', { ...intent, ...float }, []],
    ['an estimate that was signed as 1000.0', intentBy(agent, now, float), exceeds],
    ['a member nobody knows', { ...intent, extra: 1 }, []],
    ['a member of a source that nobody knows', { ...intent, ...tagged }, []],
    ['the same, signed', intentBy(agent, now, tagged), exceeds],
    ['no id', without(intent, 'intent_id'), exceeds],
    ['any key id', singlySigned(intent, agent.key, 'somebody'), []],
  ] as [string, JsonObject, string[]][]) {
    const body = { intent: sent, policy: policyBy(licensor, now) };
    const { body: verdict } = await post(na, VERIFY, {
      ...body,
      agent_public_keys: [agent.key.publicKey],
    });
    const types = verdict.violations.map(({ violation_type }: JsonObject) => violation_type);
    assert.deepEqual(types, expected, name);
  }
});

/** In the order of [trust-6-7]. */
const INPUT_FAULTS: readonly Fault<JsonObject>[] = [
  ['400 missing_verify_fields missing_intent', { intent: null }],
  ['400 missing_verify_fields missing_policy', { policy: {} }],
  ['400 invalid_input invalid_intent', { intent: { intent_id: 'i' } }],
  ['400 invalid_input invalid_policy', { policy: 'policy' }],
  ['400 invalid_input invalid_keys', { agent_public_keys: {} }],
];

test('a request that cannot be verified at all is refused', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const { intent, policy } = { intent: intentBy(agent, now), policy: policyBy(licensor, now) };
  for (const { name, expected, draft } of faultsTogether(INPUT_FAULTS)) {
    await t.test(name, async () => {
      const answer = await post(na, VERIFY, { intent, policy, ...draft });
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  for (const member of ['intent', 'policy']) {
    for (const [name, value] of MISSING) {
      await t.test(`${member} is ${name}`, async () => {
        const answer = await post(na, VERIFY, { intent, policy, [member]: value });
        assert.equal(outcomeWithCause(answer), `400 missing_verify_fields missing_${member}`);
      });
    }
  }
  const many = (count: number) => Array.from({ length: count }, () => SOURCE);
  for (const [name, changes, expected] of [
    ['1024 sources', { intent: { ...intent, declared_sources: many(1024) } }, '200'],
    ['1025 sources', { intent: { ...intent, declared_sources: many(1025) } }, '400 invalid_input'],
    [
      'a naive end',
      { intent: { ...intent, expires_at: '2099-01-01T00:00:00' } },
      '400 invalid_input',
    ],
    [
      'an estimate of 1.5',
      { intent: { ...intent, estimated_volume_bytes: new JsonFloat(1.5) } },
      '400 invalid_input',
    ],
    [
      'an estimate of 2 to the 53',
      { intent: { ...intent, estimated_volume_bytes: 2n ** 53n } },
      '400 invalid_input',
    ],
    [
      'a cap in text',
      { policy: { ...policy, max_volume_bytes_per_session: '7' } },
      '400 invalid_input',
    ],
    [
      'null for tags',
      { policy: { ...policy, prohibited_classification_tags: null } },
      '400 invalid_input',
    ],
    [
      '33 keys',
      { agent_public_keys: Array.from({ length: 33 }, () => na.audience) },
      '400 invalid_input',
    ],
  ] as [string, JsonObject, string][]) {
    await t.test(`${name}: ${expected}`, async () => {
      assert.equal(outcome(await post(na, VERIFY, { intent, policy, ...changes })), expected);
    });
  }
});

// Hostile bodies

test('no altered member of a verification request causes an internal error or passes as genuine', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const body = {
    intent: intentBy(agent, now),
    policy: policyBy(licensor, now),
    agent_public_keys: [agent.key.publicKey],
  };
  const before = await stateDigest(na);
  const outcomes = new Set(['200', '400 missing_verify_fields', '400 invalid_input']);
  await eachOf(mutationsOf(body), async ({ name, path, record }) => {
    const answer = await post(na, VERIFY, record);
    assert.ok(outcomes.has(outcome(answer)), `${name}: ${outcome(answer)}`);
    if (answer.body.valid !== true) return;
    assert.ok(path === 'intent.signature.key_id' || path.startsWith('policy.'), name);
  });
  assert.equal(await stateDigest(na), before);
});

test('an id too long to be repeated in the violations is refused', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const declared_sources = Array.from({ length: 1024 }, () => ({ ...SOURCE, source_id: 's-3' }));
  const answer = await post(na, VERIFY, {
    intent: intentBy(agent, now, { intent_id: 'i'.repeat(50_000), declared_sources }),
    policy: policyBy(licensor, now),
    agent_public_keys: [agent.key.publicKey],
  });
  assert.equal(outcome(answer), '400 invalid_input');
  assert.equal(answer.body.error.details.cause, 'too_many_violations');
});

test('no altered member of an operator request causes an internal error', async () => {
  await using na = await startUnlimited();
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
