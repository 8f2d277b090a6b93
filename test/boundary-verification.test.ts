/** Whether a boundary decision is accepted, and why [trust-6-2]; `verifications.test.ts` has what all verifications share. */
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyDecision } from '../src/protocol/api/verifications.ts';
import { HOUR } from './support/clock.ts';
import { sovereign } from './support/trust.ts';
import {
  decisionBy,
  freshnessProof,
  inner,
  resigned,
  signaturesOf,
  singlySigned,
  without,
} from './support/trust-protocol.ts';
import { checkVerdicts, eachAs, NOW } from './support/verifications.ts';

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

const beta = sovereign('beta');
const genuine = decisionBy(beta, NOW);
const signed = (changes: JsonObject) => decisionBy(beta, NOW, changes);
const altered = (changes: JsonObject) => ({ ...genuine, ...changes });
const denied = (denial_reason: JsonValue) => signed({ authorized: false, denial_reason });

function check(table: {
  readonly [reason: string]: { readonly [name: string]: JsonObject };
}): Promise<void> {
  const bodies = Object.entries(table).map(([reason, decisions]) => [
    reason,
    eachAs('decision', decisions),
  ]);
  const keys = { operator_public_keys: [beta.key.publicKey] };
  return checkVerdicts(verifyDecision, Object.fromEntries(bodies), keys);
}

test('a decision is verified, and the first reason is reported', async () => {
  const proof = freshnessProof(beta, NOW);
  const unsigned = altered({ signature: null });
  const [listSignature] = signaturesOf(resigned(unsigned, beta.key));
  await check({
    authorized: {
      authorized: genuine,
      'without freshness proof': signed({ freshness_proof: null }),
      'with a freshness proof that nobody signed': signed({
        freshness_proof: { ...proof, signature: null },
      }),
      'with a freshness proof of another, long over': signed({
        freshness_proof: freshnessProof(sovereign('gamma'), NOW - 9 * HOUR),
      }),
      'without gates': signed({ gate_results: [] }),
      'authorized though a reason is given': signed({ denial_reason: 'capability out of scope' }),
      'valid until now': signed({ decision_valid_until: formatInstant(NOW) }),
      'made in the future': decisionBy(beta, NOW + 9 * HOUR),
      'labeled wrong': singlySigned(genuine, beta.key, ''),
      'with members nobody knows': altered({ unknown_member: {} }),
    },
    missing_signature: {
      unsigned,
      'unsigned, the member left out': without(genuine, 'signature'),
      'unsigned and expired': { ...unsigned, ...EXPIRED },
    },
    decision_expired: {
      'valid until a microsecond ago': signed({ decision_valid_until: formatInstant(NOW - 0.001) }),
      expired: signed(EXPIRED),
      'expired and denied': signed({ ...EXPIRED, authorized: false }),
      'expired and not genuine': altered(EXPIRED),
    },
    invalid_signature: {
      'with another freshness proof than was signed': altered({ freshness_proof: proof }),
      'of a stranger': decisionBy(sovereign('beta'), NOW),
      'denied, then said to be authorized': { ...signed({ authorized: false }), authorized: true },
      'authorized, then said to be denied': altered({ authorized: false }),
      'of another agreement': altered({ agreement_id: 'x' }),
      'signed as a list is': altered({ signature: listSignature ?? null }),
      'with members nobody knows that were signed': signed({ unknown_member: {} }),
    },
  });
});

test('what a decision is bound to is part of what was signed', async () => {
  await check({ authorized: { 'bound to a policy and an attestation': signed(BOUND) } });
  for (const member of BINDINGS) {
    await check({
      authorized: {
        [`with only ${member}`]: signed({ [member]: BOUND[member] }),
        [`with an empty ${member}`]: signed({ [member]: {} }),
        [`with ${member} null, which nobody signs`]: altered({ [member]: null }),
      },
      invalid_signature: {
        [`with ${member} null in the signed text`]: signed({ [member]: null }),
        [`with ${member} added after it was signed`]: altered({ [member]: BOUND[member] }),
        [`with another ${member} than was signed`]: {
          ...signed(BOUND),
          [member]: { ...BOUND[member], more: 1 },
        },
        [`without the ${member} that was signed`]: without(signed(BOUND), member),
      },
      '400 invalid_decision invalid_decision': {
        [`a list for ${member}`]: altered({ [member]: [] }),
        [`text for ${member}`]: altered({ [member]: 'x' }),
      },
    });
  }
});

test('a denial is classified by the words of its reason', () =>
  check({
    unauthorized_capability_out_of_scope: {
      'for the capability': denied('capability out of scope'),
      'by a text with all words': denied('freshness, window, capability'),
    },
    unauthorized_outside_validity_window: {
      'for the window': denied('outside validity window'),
      'by a text with validity': denied('gate validity: no'),
      'by a text with window': denied('the window is shut'),
      'by a text with two words': denied('freshness of the window'),
    },
    unauthorized_insufficient_freshness: { 'for freshness': denied('insufficient freshness') },
    unauthorized_gate_failure: {
      'in capitals': denied('CAPABILITY'),
      'by a gate of its own': denied("gate 'quota' failed: used up"),
      'without a word': denied(''),
      'without a reason': denied(null),
      'the reason left out': without(denied(null), 'denial_reason'),
    },
  }));

test('invalid decisions are refused', () =>
  check({
    '400 invalid_decision invalid_decision': {
      'without context_id': without(genuine, 'context_id'),
      'without agreement_id': without(genuine, 'agreement_id'),
      'without authorized': without(genuine, 'authorized'),
      'without decision_valid_until': without(genuine, 'decision_valid_until'),
      'without operator_sovereign_id': without(genuine, 'operator_sovereign_id'),
      'text for a flag': altered({ authorized: 'true' }),
      '1 for a flag': altered({ authorized: 1 }),
      'null for a list': altered({ gate_results: null }),
      'null for a datetime': altered({ decision_made_at: null }),
      'a datetime without offset': altered({ decision_valid_until: '2090-01-01T00:00:00' }),
      'a datetime as a number': altered({ decision_valid_until: 4_000_000_000 }),
      'a gate without detail': altered({ gate_results: [{ gate_name: 'g', passed: true }] }),
      'a list of signatures': altered({ signature: [genuine.signature ?? null] }),
      'a freshness proof with a negative sequence': altered({
        freshness_proof: { ...inner(genuine, 'freshness_proof'), feed_sequence: -1 },
      }),
    },
  }));
