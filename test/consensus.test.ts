/**
 * Consensus: votes and assembled proofs [service-consensus-verification-rules], [trust-2-9] to [trust-2-11],
 * [trust-3-4], [trust-3-5], [trust-4-6], [trust-4-7], [trust-5-8], [trust-5-9]. `trust-commands.test.ts` has what all
 * commands share.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import {
  assembly,
  COUNCIL,
  justification,
  keysOf,
  namesOf,
  reasonOf,
  sha256,
  stranger,
  v1,
  v2,
  v3,
  v4,
  voteOf,
  votesOf,
} from './support/consensus.ts';
import { operate } from './support/requests.ts';
import { checkTable } from './support/tables.ts';
import { startUnlimited, UUID } from './support/trust.ts';
import { outcomeOf, outcomesOf, recordOf } from './support/trust-commands.ts';
import { created, inner, type Party, singlySigned, without } from './support/trust-protocol.ts';
import { NOW, us } from './support/verifications.ts';

const VOTE = '/admin/consensus/vote';
const ASSEMBLE = '/admin/consensus/proof';

const HEX = /^[0-9a-f]{64}$/;

// Vote

test('a vote says what was said, and has a digest of its own', () => {
  const digests = new Set<JsonValue | undefined>();
  const given = [
    { vote: true, reason: 'fits' },
    { vote: false, reason: '' },
    { vote: true, reason: null },
    { vote: false },
  ];
  for (const body of given) {
    const record = recordOf('castVote', { justification_proof: justification(NOW), ...body });
    const { vote, reason, context_digest } = record;
    assert.deepEqual({ vote, reason }, { reason: null, ...body });
    assert.match(String(context_digest), HEX);
    digests.add(context_digest);
  }
  assert.equal(digests.size, given.length);
});

test('valid subjects of a vote', async () => {
  const full = justification(NOW);
  const trace = inner(full, 'trace');
  const [entry = {}] = trace.entries as readonly JsonObject[];
  const tracing = (changes: JsonObject) => ({ trace: { ...trace, ...changes } });
  const entering = (changes: JsonObject) => tracing({ entries: [{ ...entry, ...changes }] });
  await checkTable<JsonObject>(
    {
      201: {
        'a justification of somebody else': {},
        unsigned: { signature: null },
        'with a signature that is none': { signature: { key_id: '', sig: '' } },
        'that contradicts its trace': { decision_id: 'another' },
        'of a denial': tracing({ final_authorized: false, short_circuited_at: 'g' }),
        'without entries': tracing({ entries: [] }),
        'with any inputs': entering({ inputs: { a: [new JsonFloat(1)] } }),
        'with members nobody knows': { extra: 1 },
      },
      '400 invalid_justification invalid_justification': {
        'whose signature is text': { signature: 'sig' },
        'without trace': { trace: null },
        'whose id is a number': { proof_id: 1 },
        'with a naive time': { proof_issued_at: '2026-01-01T00:00:00' },
        'whose flag is text': tracing({ final_authorized: 'true' }),
        'whose entry is text': tracing({ entries: ['entry'] }),
        'whose entry has no time': tracing({ entries: [without(entry, 'evaluated_at')] }),
        'whose inputs are a list': entering({ inputs: [] }),
      },
    },
    (changes) =>
      outcomeOf('castVote', { justification_proof: { ...full, ...changes }, vote: true }),
  );
  const subject = (proof: JsonObject) => {
    const { proof_id, decision_id } = recordOf('castVote', {
      justification_proof: proof,
      vote: true,
    });
    return [proof_id, decision_id];
  };
  assert.deepEqual(subject({ ...full, decision_id: 'another' }), ['justification', 'another']);
  // Without an id, each vote gets one of its own.
  const [[one], [other]] = [subject(without(full, 'proof_id')), subject(without(full, 'proof_id'))];
  assert.match(String(one), UUID);
  assert.notEqual(one, other);
});

// Assembly

test('a proof carries all votes as they were given, but for members nobody knows', () => {
  const [first = {}, second = {}, third = {}] = votesOf(NOW);
  const votes = [
    voteOf(stranger, NOW, { vote: false, reason: 'against' }),
    first,
    { ...third, signature: null },
    voteOf(v1, NOW, { after: 240 }),
    second,
    voteOf(stranger, NOW, { proof_id: 'another' }),
  ];
  const sent = votes.with(4, { ...second, unknown: 'dropped' });
  const proof = recordOf('assembleConsensus', { ...assembly(NOW), votes: sent });
  assert.deepEqual(proof.votes, votes);
  assert.match(String(proof.cascade_assessment_digest), HEX);
});

test('the cascade assessment is logged in full, and the proof carries its digest', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const digest = sha256('shared');
  const votes = [
    voteOf(v1, now, { context_digest: digest }),
    voteOf(v2, now, { after: 60, context_digest: digest }),
    voteOf(v3, now, { after: 120 }),
    voteOf(v4, now, { after: 180 }),
    // Neither a second vote nor a vote against changes the score.
    voteOf(v1, now, { after: 200 }),
    voteOf(v4, now, { after: 201, vote: false }),
  ];
  const validator_sovereign_ids = namesOf([...COUNCIL, v4]);
  const body = { ...assembly(now), votes, validator_sovereign_ids };
  const proof = await created(operate(na, ASSEMBLE, body));
  const name = ' consensus_cascade_assessed ';
  const lines = na.logLines.filter((line) => line.includes(name));
  assert.equal(lines.length, 1);
  const [, text = ''] = lines[0]?.split(name) ?? [];
  const assessment = parseJson(text.trim()) as JsonObject;
  const { assessment_id } = assessment;
  assert.match(String(assessment_id), UUID);
  assert.deepEqual(assessment, {
    assessment_id,
    consensus_id: proof.consensus_id,
    cascade_score: new JsonFloat(0.7 / 3),
    context_divergence_score: new JsonFloat(1 / 3),
    temporal_clustering_score: new JsonFloat(0),
    modal_context_digest: digest,
    approve_vote_count: 4,
    unique_context_count: 3,
    assessed_at: formatInstant(now),
    blocked: false,
    threshold_used: new JsonFloat(0.4),
  });
  assert.equal(sha256(canonicalJson(assessment)), proof.cascade_assessment_digest);
});

test('votes that can form a proof', () => {
  const now = NOW;
  const [first = {}, second = {}, third = {}] = votesOf(now);
  const digest = sha256('shared');
  const bearing = (voter: Party, context_digest: string | null, after = 0) =>
    voteOf(voter, now, { after, context_digest });
  const copies = [bearing(v1, digest), bearing(v2, digest, 60), bearing(v3, digest, 120)];
  const others = Array.from({ length: 256 }, (_, index) => `other-${index}`);
  const crowd = Array.from({ length: 256 }, () => first);
  const unsigned = (vote: JsonObject) => ({ ...vote, signature: null });
  const votes = (...given: readonly JsonValue[]) => ({ votes: given });
  const ofTwo = (changes: JsonObject) => votes(first, voteOf(v2, now, changes));
  const needing = (required_threshold: JsonValue, changes = {}) => ({
    required_threshold,
    ...changes,
  });
  const named = (...validator_sovereign_ids: readonly JsonValue[]) => ({ validator_sovereign_ids });
  return checkTable<JsonObject>(
    {
      201: {
        'all for it': needing(3),
        'as many as are needed': votes(first, second),
        'one of one': needing(1, { ...votes(first), ...named('val-1') }),
        'a threshold of 2.0': needing(new JsonFloat(2)),
        'a signature that is none': votes(first, { ...second, signature: { key_id: '', sig: '' } }),
        'enough, and one against it': votes(first, second, voteOf(v3, now, { vote: false })),
        'enough, and an unsigned one': votes(unsigned(third), first, second),
        'enough, and an outsider': votes(voteOf(v4, now), first, second),
        'enough, one of which is unsigned the first time': votes(unsigned(first), first, second),
        'no digest on one of three': votes(bearing(v1, null), second, third),
        'all at one moment, with digests of their own': votes(
          ...COUNCIL.map((voter) => voteOf(voter, now)),
        ),
        '256 votes': votes(...crowd.slice(2), second, third),
        '256 validators': named(...namesOf(COUNCIL), ...others.slice(3)),
      },
      '422 proof_assembly_failed threshold_out_of_range': {
        'a threshold of 0': needing(0),
        'a threshold of 0.0': needing(new JsonFloat(0)),
        'a threshold below zero': needing(-1),
        'a threshold far below zero': needing(-(2 ** 53 - 1)),
        'a threshold above the set': needing(4),
        'a set that repeats a name to reach the threshold': named('val-1', 'val-1'),
        'an empty set': named(),
      },
      '422 proof_assembly_failed threshold_not_met': {
        'no votes': votes(),
        'one vote too few': needing(3, votes(first, second)),
        'a vote given twice': votes(first, first),
        'two votes of one validator': votes(first, voteOf(v1, now, { after: 60 })),
        'one against it': ofTwo({ vote: false }),
        'one unsigned': votes(first, unsigned(second)),
        'one without signature member': votes(first, without(second, 'signature')),
        'one on another proof': ofTwo({ proof_id: 'x' }),
        'one on another decision': ofTwo({ decision_id: 'x' }),
        'one of an outsider': votes(first, voteOf(v4, now, { after: 60 })),
        'all of outsiders': named('a', 'b', 'c'),
        'names in capitals': named('VAL-1', 'VAL-2'),
      },
      '422 proof_assembly_failed cascade_detected': {
        'one digest in all': votes(...copies),
        'one digest in all, though one more is against it': votes(
          ...copies,
          voteOf(v4, now, { vote: false }),
        ),
        'one digest, diluted by later votes with others': votes(
          ...copies,
          ...COUNCIL.map((voter) => voteOf(voter, now, { after: 200 })),
        ),
        'one digest, diluted by unsigned votes': votes(
          ...copies.slice(0, 2),
          unsigned(voteOf(v3, now, { after: 120 })),
        ),
        'no digest at all': votes(...COUNCIL.map((voter, i) => bearing(voter, null, 60 * i))),
        'no digest on the one vote': needing(1, votes(bearing(v1, null))),
      },
      '400 missing_proof_fields invalid_votes': { '257 votes': votes(...crowd, second) },
      '400 missing_proof_fields invalid_validator_sovereign_ids': {
        '257 validators': named(...others, 'val-1'),
      },
      '400 missing_proof_fields invalid_vote': {
        'a vote that is null': votes(first, second, null),
        'a vote whose voice is text': votes(first, second, { ...third, vote: 'true' }),
        'a vote with a naive time': votes(first, second, {
          ...third,
          voted_at: '2026-01-01T00:00:00',
        }),
      },
      '422 proof_assembly_failed invalid_validator_sovereign_ids': {
        'a name that is null': named('val-1', 'val-2', null),
      },
    },
    outcomesOf('assembleConsensus', assembly(NOW)),
  );
});

test('a proof over a justification in our own name needs our signature on it', () => {
  const ours = justification(NOW, { issuer_sovereign_id: 'alpha' });
  const signed = singlySigned(ours, us.key);
  const of = (justification_proof: JsonObject) => ({ justification_proof });
  return checkTable<JsonObject>(
    {
      201: {
        'signed by us': of(signed),
        'signed by us, with another label': of(singlySigned(ours, us.key, 'x')),
        'of somebody else, unsigned': of({ ...justification(NOW), signature: null }),
      },
      '422 proof_assembly_failed justification_not_signed_here': {
        'signed by somebody else': of(ours),
        unsigned: of({ ...ours, signature: null }),
        'changed after we signed it': of({ ...signed, proof_issued_at: formatInstant(0) }),
      },
    },
    outcomesOf('assembleConsensus', assembly(NOW)),
  );
});

test('from vote to verdict over HTTP: our vote, two others, our proof', async () => {
  await using na = await startUnlimited();
  const start = na.clock.now();
  const justification_proof = justification(start);
  const ours = await created(operate(na, VOTE, { justification_proof, vote: true }));
  na.clock.advance(5 * MINUTE);
  const now = na.clock.now();
  const votes = [ours, voteOf(v1, now, { after: 60 }), voteOf(v2, now, { after: 120 })];
  const validator_sovereign_ids = ['alpha', 'val-1', 'val-2'];
  const proof = await created(
    operate(na, ASSEMBLE, {
      justification_proof,
      votes,
      validator_sovereign_ids,
      required_threshold: 3,
    }),
  );
  const validator_public_keys = { alpha: na.audience, ...keysOf([v1, v2]) };
  assert.equal(await reasonOf(na, { proof, validator_public_keys }), 'valid');
  na.clock.advance(300 * SECOND - 1);
  assert.equal(await reasonOf(na, { proof, validator_public_keys }), 'valid');
  na.clock.advance(1);
  assert.equal(await reasonOf(na, { proof, validator_public_keys }), 'expired');
  const keys = without(validator_public_keys, 'alpha');
  assert.equal(await reasonOf(na, { proof, validator_public_keys: keys }), 'unknown_validator_key');
});
