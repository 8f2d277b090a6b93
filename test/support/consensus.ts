/** Votes and proofs of a council, built independently of the program. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { JsonObject, JsonValue } from '../../src/base/json/value.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { verifyConsensus } from '../../src/protocol/api/verifications.ts';
import type { TestAuthority } from './authority.ts';
import { MINUTE, SECOND } from './clock.ts';
import { newKey, outcome } from './requests.ts';
import { checkTable, type Table } from './tables.ts';
import { freshId, parsed, post, sovereign } from './trust.ts';
import { inner, type Party, singlySigned } from './trust-protocol.ts';
import { NOW, resultOf } from './verifications.ts';

const VERIFY = '/consensus/verify';

export const [v1, v2] = [sovereign('val-1'), sovereign('val-2')];
export const [v3, v4] = [sovereign('val-3'), sovereign('val-4')];
export const COUNCIL = [v1, v2, v3];
export const stranger = sovereign('stranger');
/** The assembler, where a table does not vary it. */
export const assembler = sovereign('assembler');

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** When the first vote of each table is cast, in milliseconds before now. */
const FIRST_VOTE = 5 * MINUTE;

/** An approving vote with a unique digest, cast `after` seconds after the first. */
export function voteOf(
  validator: Party,
  now: number,
  { after = 0, ...changes }: JsonObject = {},
): JsonObject {
  const record = {
    vote_id: freshId('vote'),
    proof_id: 'justification',
    decision_id: 'decision',
    validator_sovereign_id: validator.name,
    vote: true,
    reason: 'fits',
    voted_at: formatInstant(now - FIRST_VOTE + Number(after) * SECOND),
    context_digest: sha256(freshId('context')),
    ...changes,
  };
  return singlySigned(record, validator.key, validator.name);
}

/** Votes of the council a minute apart, which are no sign of a cascade. */
export function votesOf(now: number, voters: readonly Party[] = COUNCIL): JsonObject[] {
  return voters.map((voter, index) => voteOf(voter, now, { after: 60 * index }));
}

export function namesOf(parties: readonly Party[]): string[] {
  return parties.map(({ name }) => name);
}

export function keysOf(parties: readonly Party[]): JsonObject {
  return Object.fromEntries(parties.map(({ name, key }) => [name, key.publicKey]));
}

/** The justification of a decision of `beta`, signed by somebody. */
export function justification(now: number, changes: JsonObject = {}): JsonObject {
  const at = formatInstant(now);
  const record = {
    proof_id: 'justification',
    decision_id: 'decision',
    trace: {
      trace_id: 'trace',
      decision_id: 'decision',
      agreement_id: 'agreement',
      operator_sovereign_id: 'beta',
      traced_at: at,
      entries: [
        {
          gate_name: 'capability_check',
          gate_type: 'CapabilityGate',
          evaluated_at: at,
          inputs: { requested_capability: 'read' },
          result: true,
          reason: 'agreed',
          metadata: {},
        },
      ],
      short_circuited_at: null,
      final_authorized: true,
    },
    proof_issued_at: at,
    issuer_sovereign_id: 'beta',
    ...changes,
  };
  return singlySigned(record, newKey());
}

/** A request to assemble the votes of the council, of which two are needed. */
export function assembly(now: number): Record<string, JsonValue> {
  return {
    justification_proof: justification(now),
    votes: votesOf(now),
    required_threshold: 2,
    validator_sovereign_ids: namesOf(COUNCIL),
  };
}

/** A proof that requires two of three votes, reached a minute ago and valid for four more minutes. */
export function proofBy(by: Party, now: number, changes: JsonObject = {}): JsonObject {
  const record = {
    consensus_id: 'consensus',
    proof_id: 'justification',
    decision_id: 'decision',
    required_threshold: 2,
    validator_sovereign_ids: namesOf(COUNCIL),
    votes: votesOf(now),
    reached_at: formatInstant(now - MINUTE),
    expires_at: formatInstant(now + 4 * MINUTE),
    cascade_assessment_digest: 'cd'.repeat(32),
    ...changes,
  };
  return singlySigned(record, by.key);
}

/** A request to verify a proof of the assembler. */
export function verification(now: number, changes: JsonObject = {}): Record<string, JsonValue> {
  return {
    proof: proofBy(assembler, now, changes),
    validator_public_keys: keysOf(COUNCIL),
    assembler_public_keys: [assembler.key.publicKey],
  };
}

export async function reasonOf(na: TestAuthority, body: JsonObject): Promise<string> {
  const answer = await post(na, VERIFY, body);
  assert.equal(outcome(answer), '200', answer.text);
  const { valid, reason, ...rest } = parsed(answer);
  assert.equal(valid, reason === 'valid');
  assert.deepEqual(rest, { consensus_id: inner(body, 'proof').consensus_id });
  return String(reason);
}

/** Checks proofs of the assembler with these changes, under the keys of the council unless others are given. */
export function checkProofs(table: Table, keys: JsonObject = keysOf(COUNCIL)): Promise<void> {
  return checkTable(table, (changes) =>
    resultOf(verifyConsensus, { ...verification(NOW, changes), validator_public_keys: keys }),
  );
}
