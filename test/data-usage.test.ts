/**
 * Data usage: license policies and access intents [service-states-other], [trust-2-15], [trust-4-8], [trust-5-10],
 * [trust-5-11]. `trust-commands.test.ts` has what all commands share.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyIntent } from '../src/protocol/api/verifications.ts';
import { singlySignedText } from '../src/protocol/records/signed-record.ts';
import { sharedAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { ACCESS, intentBy, policyBy, policyTerms, SOURCE } from './support/data-usage.ts';
import { get, newKey, operate, outcome, send } from './support/requests.ts';
import { stage, succession } from './support/successions.ts';
import { checkTable } from './support/tables.ts';
import { audited, parsed, post, sovereign, startUnlimited, UUID } from './support/trust.ts';
import { recordOf } from './support/trust-commands.ts';
import { created, inner, MISSING, singlySigned, without } from './support/trust-protocol.ts';
import { checkVerdicts, eachAs, NOW, resultOf, verdictOf } from './support/verifications.ts';

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

test('the policy in force is signed by the key that took over after a theft', async () => {
  await using na = await startUnlimited();
  const first = await created(operate(na, POLICY, policyTerms(na.clock.now())));
  const signed = await succession(na, { kind: 'compromise' });
  assert.equal(outcome(await stage(na, signed)), '200');
  await na.keepKeys();
  const policy = parsed(await get(na, IN_FORCE));
  assert.equal(singlySignedText(policy), singlySignedText(first));
  const { key_id, sig } = inner(policy, 'signature');
  const { to_key } = signed.statement;
  assert.equal(key_id, to_key);
  assert.ok(verifySignature(to_key, singlySignedText(policy), String(sig)));
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

// How an access intent exceeds a license policy [trust-6-7], [trust-6-8]; `verifications.test.ts` has what all
// verifications share.

const [agent, licensor] = [sovereign('agent'), sovereign('licensor')];
const agent_public_keys = [agent.key.publicKey];
const [genuine, policy] = [intentBy(agent, NOW), policyBy(licensor, NOW)];

const [UNLICENSED, PROHIBITED] = ['source_not_licensed', 'prohibited_classification'];
const [ACCESS_TYPE, VOLUME] = ['access_type_not_permitted', 'volume_cap_exceeded'];

/** Changes of the intent and of the policy. */
type Terms = readonly [intent: JsonObject, policy?: JsonObject];

test('the ways in which an intent exceeds its policy, in order', async () => {
  const at = (instant: number) => formatInstant(instant);
  const source = (source_id: string, ...classification_tags: string[]) => ({
    ...SOURCE,
    source_id,
    classification_tags,
  });
  const from = (...declared_sources: JsonObject[]) => ({ declared_sources });
  const to = (...declared_access_types: string[]) => ({ declared_access_types });
  const sized = (estimated_volume_bytes: number | null) => ({ estimated_volume_bytes });
  const cap = (max_volume_bytes_per_session: number | null) => ({ max_volume_bytes_per_session });
  const nothingNamed = { allowed_access_types: [] };
  const everything = {
    expires_at: at(NOW - 1),
    ...from(source('s-3', 'secret'), source('s-1', 'health')),
    ...to('train', 'delete'),
    ...sized(5000),
  };
  await checkTable<Terms>(
    {
      valid: {
        nothing: [{}],
        // Both ends are inclusive.
        'at its end': [{ expires_at: at(NOW) }],
        'declared in the future': [{ declared_at: at(NOW + MINUTE) }],
        'at the end of the policy': [{}, { valid_until: at(NOW) }],
        'at the beginning of the policy': [{}, { valid_from: at(NOW) }],
        'no source': [from()],
        'a tag in capitals': [from(source('s-1', 'SECRET'))],
        'a prohibited tag, where none is': [
          from(source('s-1', 'secret')),
          { prohibited_classification_tags: [] },
        ],
        'no access': [to()],
        'to read, where nothing is named': [{}, nothingNamed],
        'as much as there may be': [sized(1000)],
        'no estimate': [sized(null)],
        'no estimate under a cap of nothing': [sized(null), cap(0)],
        'nothing under a cap of nothing': [sized(0), cap(0)],
        'the largest estimate without cap': [sized(2 ** 53 - 1), cap(null)],
        'a negative estimate': [sized(-1)],
      },
      intent_expired: {
        'after its end': [{ expires_at: at(NOW - 1) }],
        'a microsecond after its end': [{ expires_at: at(NOW - 0.001) }],
      },
      policy_expired: {
        'after the end of the policy': [{}, { valid_until: at(NOW - 1) }],
        'before the beginning of the policy': [{}, { valid_from: at(NOW + 1) }],
        'a window that is the wrong way round': [
          {},
          { valid_from: at(NOW + HOUR), valid_until: at(NOW - HOUR) },
        ],
      },
      [UNLICENSED]: {
        'a source that is not licensed': [from(source('s-3'))],
        'a source in capitals': [from(source('S-1'))],
        'a source that every object has': [from(source('constructor'))],
        'a policy of no source': [{}, { allowed_source_ids: [] }],
      },
      [PROHIBITED]: {
        'a prohibited tag': [from(source('s-1', 'internal', 'secret'))],
        'two prohibited tags on one source': [from(source('s-1', 'secret', 'health'))],
      },
      [ACCESS_TYPE]: {
        'another access': [to('train')],
        'to derive, where nothing is named': [to('derive', 'read'), nothingNamed],
        'to read, where it is not named': [{}, { allowed_access_types: ['derive'] }],
      },
      [VOLUME]: {
        'a byte more': [sized(1001)],
        'a byte under a cap of nothing': [sized(1), cap(0)],
      },
      [`${UNLICENSED}, ${UNLICENSED}`]: {
        'one source twice, not licensed': [from(source('s-3'), source('s-3'))],
      },
      [`${PROHIBITED}, ${PROHIBITED}`]: {
        'prohibited tags on two sources': [from(source('s-1', 'secret'), source('s-2', 'secret'))],
      },
      [`${UNLICENSED}, ${PROHIBITED}`]: {
        'not licensed and prohibited': [from(source('s-3', 'secret'))],
      },
      [[PROHIBITED, UNLICENSED, UNLICENSED, PROHIBITED].join(', ')]: {
        'by source first, then by kind': [
          from(source('s-1', 'secret'), source('s-3'), source('s-4', 'health')),
        ],
      },
      [`${ACCESS_TYPE}, ${ACCESS_TYPE}, ${ACCESS_TYPE}`]: {
        'another access twice, among allowed ones': [
          to('train', 'read', 'train', 'derive', 'READ'),
        ],
      },
      [[
        ...['intent_expired', 'policy_expired', UNLICENSED, PROHIBITED, PROHIBITED],
        ...[ACCESS_TYPE, ACCESS_TYPE, VOLUME],
      ].join(', ')]: { everything: [everything, { valid_until: at(NOW - 1) }] },
    },
    ([intent, terms]) =>
      resultOf(verifyIntent, {
        intent: intentBy(agent, NOW, intent),
        policy: policyBy(licensor, NOW, terms),
        agent_public_keys,
      }),
  );
});

test('a verdict counts its violations, and each names the intent, its agent and the time', async () => {
  const terms = { declared_access_types: ['train'], estimated_volume_bytes: 5000 };
  const intent = intentBy(agent, NOW, terms);
  const body = { intent, policy, agent_public_keys };
  const { violations, ...verdict } = await verdictOf(verifyIntent, body);
  assert.deepEqual(verdict, { valid: false, violation_reason: ACCESS_TYPE, violation_count: 2 });
  const rows = violations as readonly JsonObject[];
  for (const { violation_id, detail, violation_type, ...rest } of rows) {
    assert.match(String(violation_id), UUID);
    assert.match(String(detail), /./);
    assert.deepEqual(rest, {
      intent_id: intent.intent_id,
      record_id: null,
      agent_sovereign_id: 'agent',
      detected_at: formatInstant(NOW),
    });
  }
  assert.equal(new Set(rows.map(({ violation_id }) => violation_id)).size, rows.length);
  assert.deepEqual(await verdictOf(verifyIntent, { ...body, intent: genuine }), {
    valid: true,
    violation_reason: null,
    violation_count: 0,
    violations: [],
  });
});

test('an intent that its agent did not sign has one violation, regardless of what else it declares', () => {
  const worst = {
    expires_at: '2020-01-01T00:00:00Z',
    declared_sources: [{ ...SOURCE, source_id: 's-3', classification_tags: ['secret'] }],
    declared_access_types: ['train'],
    estimated_volume_bytes: 5000,
  };
  const over = policyBy(licensor, NOW, { valid_until: formatInstant(NOW - 1) });
  const intents = {
    unsigned: { ...genuine, signature: null },
    'without signature member': without(genuine, 'signature'),
    'signed by another': singlySigned(genuine, newKey(), 'agent'),
    'changed after it was signed': { ...genuine, declared_access_types: ['derive'] },
    'with a signature that is none': { ...genuine, signature: { key_id: '', sig: '' } },
    'unsigned and beyond everything': { ...intentBy(agent, NOW, worst), signature: null },
  };
  const table = { intent_exceeds_license: eachAs('intent', intents) };
  return checkVerdicts(verifyIntent, table, { policy: over, agent_public_keys });
});

test('neither the signature of the policy nor its parties are checked', () => {
  const free = ['max_volume_bytes_per_session', 'prohibited_classification_tags'];
  const policies = {
    unsigned: { ...policy, signature: null },
    'without signature member': without(policy, 'signature'),
    'signed by another': singlySigned(policy, newKey()),
    'with a signature that is none': { ...policy, signature: { key_id: '', sig: '' } },
    'changed after it was signed': { ...policy, allowed_access_types: ['read'] },
    'for another agent': policyBy(licensor, NOW, { licensee_sovereign_id: 'x' }),
    'of the agent itself': policyBy(agent, NOW),
    'without id': without(policy, 'policy_id'),
    'with no cap and no tags': free.reduce(without, policy),
  };
  const table = { valid: eachAs('policy', policies) };
  return checkVerdicts(verifyIntent, table, { intent: genuine, agent_public_keys });
});

test('an intent is verified by what it means, not by how it is spelled', async () => {
  const float = { estimated_volume_bytes: new JsonFloat(1000) };
  const tagged = { declared_sources: [{ ...SOURCE, estimated_volume_bytes: 5 }] };
  const many = (count: number) => Array.from({ length: count }, () => SOURCE);
  const altered = (changes: JsonObject) => ({ ...genuine, ...changes });
  await checkVerdicts(
    verifyIntent,
    {
      valid: eachAs('intent', {
        'an estimate that is sent as 1000.0': altered(float),
        'a member nobody knows': altered({ extra: 1 }),
        'a member of a source that nobody knows': altered(tagged),
        'any key id': singlySigned(genuine, agent.key, 'somebody'),
        '1024 sources': intentBy(agent, NOW, { declared_sources: many(1024) }),
      }),
      intent_exceeds_license: eachAs('intent', {
        'an estimate that was signed as 1000.0': intentBy(agent, NOW, float),
        'a signed member of a source that nobody knows': intentBy(agent, NOW, tagged),
        'no id': without(genuine, 'intent_id'),
      }),
      '400 invalid_input invalid_intent': eachAs('intent', {
        '1025 sources': altered({ declared_sources: many(1025) }),
        'a naive end': altered({ expires_at: '2099-01-01T00:00:00' }),
        'an estimate of 1.5': altered({ estimated_volume_bytes: new JsonFloat(1.5) }),
        'an estimate of 2 to the 53': altered({ estimated_volume_bytes: 2n ** 53n }),
      }),
      '400 invalid_input invalid_policy': eachAs('policy', {
        'a cap in text': { ...policy, max_volume_bytes_per_session: '7' },
        'null for tags': { ...policy, prohibited_classification_tags: null },
      }),
      '400 invalid_input too_many_violations': eachAs('intent', {
        'an id too long to be repeated in the violations': intentBy(agent, NOW, {
          intent_id: 'i'.repeat(50_000),
          declared_sources: Array(1024).fill({ ...SOURCE, source_id: 's-3' }),
        }),
      }),
    },
    { intent: genuine, policy, agent_public_keys },
  );
});
