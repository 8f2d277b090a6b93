/** Verification of boundary decisions [trust-6-2]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { HOUR } from './support/clock.ts';
import { FORGED_SIGNATURE, WEAK_KEYS } from './support/hostile.ts';
import { stateDigest } from './support/test-stores.ts';
import { audited, misspellableKey, post, sovereign, startUnlimited } from './support/trust.ts';
import {
  decisionBy,
  eachOf,
  freshnessProof,
  inner,
  keyListCases,
  MISSING,
  mutationsOf,
  ourselves,
  outcomeWithCause,
  type Party,
  resigned,
  signaturesOf,
  singlySigned,
  without,
} from './support/trust-protocol.ts';

const VERIFY = '/boundary/verify';

const EXPIRED = { decision_valid_until: '2020-01-01T00:00:00Z' };
/** In bound members, numbers keep their kind, and text that looks like a datetime keeps its spelling. */
const BOUND = {
  policy_binding: {
    policy_id: 'policy-7',
    weight: new JsonFloat(1),
    bound_at: '2026-01-15T12:00:00+00:00',
  },
  attestation_binding: {
    attestation_id: 'attestation-7',
    subject_id: 'agent-7',
    issuer_sovereign_id: 'gamma',
    attestation_digest: 'ab'.repeat(32),
    revocation_seq_checked: 4,
  },
};

const BINDINGS = ['policy_binding', 'attestation_binding'] as const;

type Make = (operator: Party, now: number) => JsonObject;

test('a decision is verified, and the first reason is reported', async (t) => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const now = na.clock.now();
  const unsigned: Make = (...given) => ({ ...decisionBy(...given), signature: null });
  const denied =
    (denial_reason: JsonValue, authorized = false): Make =>
    (operator, at) =>
      decisionBy(operator, at, { authorized, denial_reason });
  for (const [name, make, accepted, reason] of [
    ['authorized', decisionBy, true, 'authorized'],
    [
      'without freshness proof',
      (p, at) => decisionBy(p, at, { freshness_proof: null }),
      true,
      'authorized',
    ],
    [
      'with a freshness proof that nobody signed',
      (p, at) =>
        decisionBy(p, at, { freshness_proof: { ...freshnessProof(p, at), signature: null } }),
      true,
      'authorized',
    ],
    [
      'with a freshness proof of another, long over',
      (p, at) =>
        decisionBy(p, at, { freshness_proof: freshnessProof(sovereign('gamma'), at - 9 * HOUR) }),
      true,
      'authorized',
    ],
    [
      'with another freshness proof than was signed',
      (p, at) => ({ ...decisionBy(p, at), freshness_proof: freshnessProof(p, at) }),
      false,
      'invalid_signature',
    ],
    ['without gates', (p, at) => decisionBy(p, at, { gate_results: [] }), true, 'authorized'],
    [
      'authorized though a reason is given',
      denied('capability out of scope', true),
      true,
      'authorized',
    ],
    ['unsigned', unsigned, false, 'missing_signature'],
    [
      'unsigned, the member left out',
      (...g) => without(decisionBy(...g), 'signature'),
      false,
      'missing_signature',
    ],
    [
      'unsigned and expired',
      (...g) => ({ ...unsigned(...g), ...EXPIRED }),
      false,
      'missing_signature',
    ],
    [
      'valid until now',
      (p, at) => decisionBy(p, at, { decision_valid_until: formatInstant(at) }),
      true,
      'authorized',
    ],
    [
      'valid until a microsecond ago',
      (p, at) => decisionBy(p, at, { decision_valid_until: formatInstant(at - 0.001) }),
      false,
      'decision_expired',
    ],
    ['expired', (p, at) => decisionBy(p, at, EXPIRED), false, 'decision_expired'],
    [
      'expired and denied',
      (p, at) => decisionBy(p, at, { ...EXPIRED, authorized: false }),
      false,
      'decision_expired',
    ],
    [
      'expired and not genuine',
      (p, at) => ({ ...decisionBy(p, at), ...EXPIRED }),
      false,
      'decision_expired',
    ],
    ['made in the future', (p, at) => decisionBy(p, at + 9 * HOUR), true, 'authorized'],
    ['of a stranger', (_, at) => decisionBy(sovereign('beta'), at), false, 'invalid_signature'],
    [
      'denied, then said to be authorized',
      (p, at) => ({ ...decisionBy(p, at, { authorized: false }), authorized: true }),
      false,
      'invalid_signature',
    ],
    [
      'authorized, then said to be denied',
      (p, at) => ({ ...decisionBy(p, at), authorized: false }),
      false,
      'invalid_signature',
    ],
    [
      'of another agreement',
      (p, at) => ({ ...decisionBy(p, at), agreement_id: 'x' }),
      false,
      'invalid_signature',
    ],
    [
      'signed as a list is',
      (p, at) => ({ ...decisionBy(p, at), signature: signatureAsList(p, at) }),
      false,
      'invalid_signature',
    ],
    ['labeled wrong', (p, at) => singlySigned(decisionBy(p, at), p.key, ''), true, 'authorized'],
    [
      'with members nobody knows',
      (p, at) => ({ ...decisionBy(p, at), unknown_member: {} }),
      true,
      'authorized',
    ],
    [
      'with members nobody knows that were signed',
      (p, at) => decisionBy(p, at, { unknown_member: {} }),
      false,
      'invalid_signature',
    ],
    [
      'bound to a policy and an attestation',
      (p, at) => decisionBy(p, at, BOUND),
      true,
      'authorized',
    ],
    ...BINDINGS.flatMap((member): readonly (readonly [string, Make, boolean, string])[] => [
      [
        `with only ${member}`,
        (p, at) => decisionBy(p, at, { [member]: BOUND[member] }),
        true,
        'authorized',
      ],
      [
        `with an empty ${member}`,
        (p, at) => decisionBy(p, at, { [member]: {} }),
        true,
        'authorized',
      ],
      [
        `with ${member} null, which nobody signs`,
        (p, at) => ({ ...decisionBy(p, at), [member]: null }),
        true,
        'authorized',
      ],
      [
        `with ${member} null in the signed text`,
        (p, at) => decisionBy(p, at, { [member]: null }),
        false,
        'invalid_signature',
      ],
      [
        `with ${member} added after it was signed`,
        (p, at) => ({ ...decisionBy(p, at), [member]: BOUND[member] }),
        false,
        'invalid_signature',
      ],
      [
        `with another ${member} than was signed`,
        (p, at) => ({ ...decisionBy(p, at, BOUND), [member]: { ...BOUND[member], more: 1 } }),
        false,
        'invalid_signature',
      ],
      [
        `without the ${member} that was signed`,
        (p, at) => without(decisionBy(p, at, BOUND), member),
        false,
        'invalid_signature',
      ],
    ]),
    [
      'denied for the capability',
      denied('capability out of scope'),
      true,
      'unauthorized_capability_out_of_scope',
    ],
    [
      'denied for the window',
      denied('outside validity window'),
      true,
      'unauthorized_outside_validity_window',
    ],
    [
      'denied for freshness',
      denied('insufficient freshness'),
      true,
      'unauthorized_insufficient_freshness',
    ],
    [
      'denied by a text with validity',
      denied('gate validity: no'),
      true,
      'unauthorized_outside_validity_window',
    ],
    [
      'denied by a text with window',
      denied('the window is shut'),
      true,
      'unauthorized_outside_validity_window',
    ],
    [
      'denied by a text with two words',
      denied('freshness of the window'),
      true,
      'unauthorized_outside_validity_window',
    ],
    [
      'denied by a text with all words',
      denied('freshness, window, capability'),
      true,
      'unauthorized_capability_out_of_scope',
    ],
    ['denied in capitals', denied('CAPABILITY'), true, 'unauthorized_gate_failure'],
    [
      'denied by a gate of its own',
      denied("gate 'quota' failed: used up"),
      true,
      'unauthorized_gate_failure',
    ],
    ['denied without a word', denied(''), true, 'unauthorized_gate_failure'],
    ['denied without a reason', denied(null), true, 'unauthorized_gate_failure'],
    [
      'denied, the reason left out',
      (p, at) => without(denied(null)(p, at), 'denial_reason'),
      true,
      'unauthorized_gate_failure',
    ],
  ] as [string, Make, boolean, string][]) {
    await t.test(`${name}: ${reason}`, async () => {
      const decision = make(beta, now);
      const answer = await post(na, VERIFY, {
        decision,
        operator_public_keys: [beta.key.publicKey],
      });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.body, {
        accepted,
        authorized: reason === 'authorized',
        reason,
        decision_id: decision.decision_id,
      });
    });
  }
});

function signatureAsList(operator: Party, now: number): JsonObject {
  const [signature] = signaturesOf(
    resigned({ ...decisionBy(operator, now), signature: null }, operator.key),
  );
  return signature as JsonObject;
}

test('without keys, a decision is verified with the authority’s own key', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [ours, theirs] = [decisionBy(ourselves(na), now), decisionBy(sovereign('beta'), now)];
  for (const [name, body, reason] of [
    ['ours', { decision: ours }, 'authorized'],
    ['ours, null for keys', { decision: ours, operator_public_keys: null }, 'authorized'],
    ['ours, no key accepted', { decision: ours, operator_public_keys: [] }, 'invalid_signature'],
    ['theirs', { decision: theirs }, 'invalid_signature'],
  ] as [string, JsonObject, string][]) {
    await t.test(name, async () => {
      assert.equal((await post(na, VERIFY, body)).body.reason, reason);
    });
  }
});

test('a verification uses only the key list that it is given', async (t) => {
  await using na = await startUnlimited();
  const beta = sovereign('beta', misspellableKey());
  const decision = decisionBy(beta, na.clock.now());
  for (const [name, keys, result] of keyListCases(beta.key)) {
    await t.test(name, async () => {
      const answer = await post(na, VERIFY, { decision, operator_public_keys: keys });
      if (result === 'malformed') {
        assert.match(outcomeWithCause(answer), /^400 invalid_decision (invalid|too_many)_keys$/);
      } else {
        const isGood = result === 'verifies';
        assert.deepEqual(
          [answer.body.accepted, answer.body.authorized, answer.body.reason],
          [isGood, isGood, isGood ? 'authorized' : 'invalid_signature'],
        );
      }
    });
  }
  const forged = { ...decision, signature: { key_id: 'w', sig: FORGED_SIGNATURE } };
  for (const weak of WEAK_KEYS) {
    const { body } = await post(na, VERIFY, { decision: forged, operator_public_keys: [weak] });
    assert.equal(body.reason, 'invalid_signature');
  }
});

test('invalid decisions are refused', async (t) => {
  await using na = await startUnlimited();
  const decision = decisionBy(sovereign('beta'), na.clock.now());
  const MISSES = '400 missing_decision missing_decision';
  const INVALID = '400 invalid_decision invalid_decision';
  for (const [name, body, expected] of [
    ['nothing', {}, MISSES],
    ...MISSING.map(([missing, value]) => [missing, { decision: value }, MISSES] as const),
    ['nothing, and a wrong key list', { operator_public_keys: 5 }, MISSES],
    ['text', { decision: 'text' }, INVALID],
    ['a list', { decision: [decision] }, INVALID],
    ['true', { decision: true }, INVALID],
    [
      'of one member, and a wrong key list',
      { decision: { a: 1 }, operator_public_keys: 5 },
      INVALID,
    ],
    ...[
      'context_id',
      'agreement_id',
      'authorized',
      'decision_valid_until',
      'operator_sovereign_id',
    ].map(
      (member) => [`without ${member}`, { decision: without(decision, member) }, INVALID] as const,
    ),
    ['text for a flag', { decision: { ...decision, authorized: 'true' } }, INVALID],
    ['1 for a flag', { decision: { ...decision, authorized: 1 } }, INVALID],
    ['null for a list', { decision: { ...decision, gate_results: null } }, INVALID],
    ...BINDINGS.flatMap((member) => [
      [`a list for ${member}`, { decision: { ...decision, [member]: [] } }, INVALID] as const,
      [`text for ${member}`, { decision: { ...decision, [member]: 'x' } }, INVALID] as const,
    ]),
    ['null for a datetime', { decision: { ...decision, decision_made_at: null } }, INVALID],
    [
      'a datetime without offset',
      { decision: { ...decision, decision_valid_until: '2090-01-01T00:00:00' } },
      INVALID,
    ],
    [
      'a datetime as a number',
      { decision: { ...decision, decision_valid_until: 4_000_000_000 } },
      INVALID,
    ],
    [
      'a gate without detail',
      { decision: { ...decision, gate_results: [{ gate_name: 'g', passed: true }] } },
      INVALID,
    ],
    [
      'a list of signatures',
      { decision: { ...decision, signature: [decision.signature] } },
      INVALID,
    ],
    [
      'a freshness proof with a negative sequence',
      {
        decision: {
          ...decision,
          freshness_proof: { ...inner(decision, 'freshness_proof'), feed_sequence: -1 },
        },
      },
      INVALID,
    ],
  ] as [string, JsonObject, string][]) {
    await t.test(name, async () => {
      assert.equal(outcomeWithCause(await post(na, VERIFY, body)), expected);
    });
  }
});

test('no member of a decision can be changed unnoticed', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const decision = decisionBy(beta, na.clock.now());
  const keys = { operator_public_keys: [beta.key.publicKey] };
  await eachOf(mutationsOf(decision), async ({ name, path, record }) => {
    const answer = await post(na, VERIFY, { decision: record, ...keys });
    if (answer.status === 200) {
      const isUnsigned = path === 'signature.key_id';
      const isDefault = name === 'denial_reason left out';
      assert.equal(answer.body.accepted, isUnsigned || isDefault, name);
      assert.equal(answer.body.authorized, answer.body.accepted, name);
    } else {
      assert.equal(outcomeWithCause(answer), '400 invalid_decision invalid_decision', name);
    }
  });
});

test('verifying writes only to the log', async () => {
  await using na = await startUnlimited();
  const decision = decisionBy(ourselves(na), na.clock.now());
  await na.flush();
  const before = await stateDigest(na);
  await post(na, VERIFY, { decision });
  await post(na, VERIFY, { decision, operator_public_keys: [] });
  await post(na, VERIFY, { decision: 'text' });
  await na.flush();
  assert.equal(await stateDigest(na), before);
  assert.deepEqual(
    audited(na, 'boundary_decision_verified').map(({ decision_id, accepted }) => [
      decision_id,
      accepted,
    ]),
    [
      [decision.decision_id, true],
      [decision.decision_id, false],
    ],
  );
});
