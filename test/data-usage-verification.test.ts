/** How an access intent exceeds a license policy [trust-6-7], [trust-6-8]; `verifications.test.ts` has what all verifications share. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyIntent } from '../src/protocol/api/verifications.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import { intentBy, policyBy, SOURCE } from './support/data-usage.ts';
import { newKey } from './support/requests.ts';
import { checkTable } from './support/tables.ts';
import { sovereign, UUID } from './support/trust.ts';
import { singlySigned, without } from './support/trust-protocol.ts';
import { checkVerdicts, eachAs, NOW, resultOf, verdictOf } from './support/verifications.ts';

const [agent, licensor] = [sovereign('agent'), sovereign('licensor')];
const agent_public_keys = [agent.key.publicKey];
const [genuine, policy] = [intentBy(agent, NOW), policyBy(licensor, NOW)];

const [UNLICENSED, PROHIBITED] = ['source_not_licensed', 'prohibited_classification'];
const [ACCESS, VOLUME] = ['access_type_not_permitted', 'volume_cap_exceeded'];

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
      [ACCESS]: {
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
      [`${ACCESS}, ${ACCESS}, ${ACCESS}`]: {
        'another access twice, among allowed ones': [
          to('train', 'read', 'train', 'derive', 'READ'),
        ],
      },
      [[
        ...['intent_expired', 'policy_expired', UNLICENSED, PROHIBITED, PROHIBITED],
        ...[ACCESS, ACCESS, VOLUME],
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
  assert.deepEqual(verdict, { valid: false, violation_reason: ACCESS, violation_count: 2 });
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
