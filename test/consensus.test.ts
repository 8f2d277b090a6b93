/**
 * Consensus: votes and assembled proofs [service-consensus-verification-rules], [trust-2-9] to [trust-2-11],
 * [trust-3-4], [trust-3-5], [trust-4-6], [trust-4-7], [trust-5-8], [trust-5-9].
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import {
  COUNCIL,
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
import type { Fault } from './support/faults.ts';
import { valuesExcept } from './support/hostile.ts';
import { newKey, operate, outcome } from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { checkFaults, checkTable, inEach } from './support/tables.ts';
import { audited, startUnlimited, UUID } from './support/trust.ts';
import {
  answersTo,
  created,
  eachOf,
  inner,
  MISSING,
  mutationsOf,
  ourselves,
  outcomeWithCause,
  type Party,
  singlySigned,
  singlyVerifies,
  without,
} from './support/trust-protocol.ts';

const shared = sharedAuthority();

const VOTE = '/admin/consensus/vote';
const ASSEMBLE = '/admin/consensus/proof';

const HEX = /^[0-9a-f]{64}$/;

function justification(now: number, changes: JsonObject = {}): JsonObject {
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

// Vote

test('a vote has every member, is signed by us as validator, and is audited', async () => {
  const na = await shared();
  const now = na.clock.now();
  const justification_proof = justification(now);
  const expected = (vote: boolean, reason: string | null) => ({
    proof_id: 'justification',
    decision_id: 'decision',
    validator_sovereign_id: 'alpha',
    vote,
    reason,
    voted_at: formatInstant(now),
  });
  const votes: JsonObject[] = [];
  for (const [body, made] of [
    [{ vote: true, reason: 'fits' }, expected(true, 'fits')],
    [{ vote: false, reason: '' }, expected(false, '')],
    [{ vote: true, reason: null }, expected(true, null)],
    [{ vote: false }, expected(false, null)],
  ] as const) {
    const request = { justification_proof, ...body };
    const vote = await created(operate(na, VOTE, request, { operator: na.standard }));
    const { vote_id, context_digest, signature, ...rest } = vote;
    assert.match(String(vote_id), UUID);
    assert.match(String(context_digest), HEX);
    assert.deepEqual(rest, made);
    assert.equal((signature as JsonObject).key_id, 'alpha');
    assert.equal(singlyVerifies(vote, na.audience), true);
    votes.push(vote);
  }
  assert.equal(new Set(votes.map(({ context_digest }) => context_digest)).size, votes.length);
  assert.deepEqual(
    audited(na, 'validator_vote_cast').slice(-votes.length),
    votes.map(({ vote_id, vote }) => ({
      vote_id,
      proof_id: 'justification',
      decision_id: 'decision',
      vote,
    })),
  );
});

/** In the order of [trust-5-8]. */
const VOTE_FAULTS: readonly Fault<JsonObject>[] = [
  ['400 missing_vote_fields missing_justification_proof', { justification_proof: {} }],
  ['400 missing_vote_fields invalid_vote', { vote: 1 }],
  ['400 invalid_justification invalid_justification', { justification_proof: { proof_id: 'p' } }],
  ['422 vote_failed invalid_reason', { reason: 7 }],
];

test('of several faults of a vote the earliest is reported', async () => {
  const na = await shared();
  const before = audited(na, 'validator_vote_cast').length;
  const body = { justification_proof: justification(na.clock.now()), vote: true, reason: 'r' };
  const ask = answersTo(na, VOTE, body);
  await checkFaults(VOTE_FAULTS, ask);
  await checkTable(
    {
      '400 missing_vote_fields missing_justification_proof': inEach('justification_proof', MISSING),
      '400 missing_vote_fields invalid_vote': inEach('vote', [
        ...valuesExcept('true', 'false'),
        ['"true"', 'true'],
      ]),
      '422 vote_failed invalid_reason': inEach(
        'reason',
        valuesExcept('null', 'a string', 'an empty string'),
      ),
    },
    ask,
  );
  for (const member of ['justification_proof', 'vote']) {
    const answer = await operate(na, VOTE, without(body, member));
    assert.equal(outcome(answer), '400 missing_vote_fields', member);
  }
  assert.equal(audited(na, 'validator_vote_cast').length, before);
});

test('valid subjects of a vote', async () => {
  const na = await shared();
  const full = justification(na.clock.now());
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
      '400 invalid_justification': {
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
    async (changes) => {
      const subject: JsonObject = { ...full, ...changes };
      const answer = await operate(na, VOTE, { justification_proof: subject, vote: true });
      if (answer.status === 201) {
        const { proof_id, decision_id } = answer.body;
        assert.deepEqual([proof_id, decision_id], [subject.proof_id, subject.decision_id]);
      }
      return outcome(answer);
    },
  );
  // Without an id, each vote gets one of its own.
  const body = { justification_proof: without(full, 'proof_id'), vote: true };
  const [one, two] = [
    await created(operate(na, VOTE, body)),
    await created(operate(na, VOTE, body)),
  ];
  assert.match(String(one.proof_id), UUID);
  assert.notEqual(one.proof_id, two.proof_id);
});

// Assembly

function assembly(now: number): Record<string, JsonValue> {
  return {
    justification_proof: justification(now),
    votes: votesOf(now),
    required_threshold: 2,
    validator_sovereign_ids: namesOf(COUNCIL),
  };
}

test('a proof has every member, carries the votes as given, is signed by us, and is audited', async () => {
  const na = await shared();
  const now = na.clock.now();
  const [first = {}, second = {}, third = {}] = votesOf(now);
  const votes = [
    voteOf(stranger, now, { vote: false, reason: 'against' }),
    first,
    { ...third, signature: null },
    voteOf(v1, now, { after: 240 }),
    { ...second, unknown: 'dropped' },
    voteOf(stranger, now, { proof_id: 'another' }),
  ];
  const body = { ...assembly(now), votes };
  const proof = await created(operate(na, ASSEMBLE, body, { operator: na.standard }));
  const { consensus_id, cascade_assessment_digest, signature } = proof;
  assert.match(String(consensus_id), UUID);
  assert.match(String(cascade_assessment_digest), HEX);
  assert.deepEqual(proof, {
    consensus_id,
    proof_id: 'justification',
    decision_id: 'decision',
    required_threshold: 2,
    validator_sovereign_ids: namesOf(COUNCIL),
    votes: [votes[0], first, votes[2], votes[3], second, votes[5]],
    reached_at: formatInstant(now),
    expires_at: formatInstant(now + 300 * SECOND),
    cascade_assessment_digest,
    signature: { key_id: na.audience, sig: (signature as JsonObject).sig },
  });
  assert.equal(singlyVerifies(proof, na.audience), true);
  assert.deepEqual(audited(na, 'consensus_proof_assembled').at(-1), {
    consensus_id,
    proof_id: 'justification',
    vote_count: 6,
    required_threshold: 2,
  });
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

/** In the order of [trust-5-9] and [trust-4-7]. */
const ASSEMBLY_FAULTS: readonly Fault<JsonObject>[] = [
  ['400 missing_proof_fields missing_justification_proof', { justification_proof: null }],
  ['400 missing_proof_fields invalid_votes', { votes: {} }],
  ['400 missing_proof_fields invalid_validator_sovereign_ids', { validator_sovereign_ids: 'v' }],
  ['400 missing_proof_fields invalid_required_threshold', { required_threshold: '2' }],
  ['400 missing_proof_fields invalid_justification', { justification_proof: { proof_id: 'p' } }],
  ['400 missing_proof_fields invalid_vote', { votes: [{ vote_id: 'v' }] }],
  ['422 proof_assembly_failed invalid_validator_sovereign_ids', { validator_sovereign_ids: [7] }],
  [
    '422 proof_assembly_failed justification_not_signed_here',
    { justification_proof: justification(0, { issuer_sovereign_id: 'alpha' }) },
  ],
  ['422 proof_assembly_failed threshold_out_of_range', { required_threshold: 0 }],
  ['422 proof_assembly_failed threshold_not_met', { votes: [] }],
];

test('of several faults of an assembly the earliest is reported', async () => {
  const na = await shared();
  const before = audited(na, 'consensus_proof_assembled').length;
  const body = assembly(na.clock.now());
  const ask = answersTo(na, ASSEMBLE, body);
  await checkFaults(ASSEMBLY_FAULTS, ask);
  const noList = valuesExcept('a list', 'an empty list');
  const members = ['votes', 'validator_sovereign_ids', 'required_threshold'];
  await checkTable(
    {
      '400 missing_proof_fields missing_justification_proof': inEach(
        'justification_proof',
        MISSING,
      ),
      '400 missing_proof_fields invalid_votes': inEach('votes', noList),
      '400 missing_proof_fields invalid_validator_sovereign_ids': inEach(
        'validator_sovereign_ids',
        noList,
      ),
      '400 missing_proof_fields invalid_required_threshold': inEach('required_threshold', [
        ...valuesExcept('the integer 7'),
        ['"2"', '2'],
        ['2 to the 53', 2n ** 53n],
        ['1e300', new JsonFloat(1e300)],
      ]),
    },
    ask,
  );
  for (const member of ['justification_proof', ...members]) {
    const answer = await operate(na, ASSEMBLE, without(body, member));
    assert.equal(outcome(answer), '400 missing_proof_fields', member);
  }
  assert.equal(audited(na, 'consensus_proof_assembled').length, before);
});

test('votes that can form a proof', async () => {
  const na = await shared();
  const now = na.clock.now();
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
  await checkTable(
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
    answersTo(na, ASSEMBLE, assembly(now)),
  );
});

test('a proof over a justification in our own name needs our signature on it', async () => {
  const na = await shared();
  const now = na.clock.now();
  const ours = justification(now, { issuer_sovereign_id: 'alpha' });
  const signed = singlySigned(ours, ourselves(na).key);
  const refused = '422 proof_assembly_failed justification_not_signed_here';
  for (const [name, proof, expected] of [
    ['signed by us', signed, '201'],
    ['signed by us, with another label', singlySigned(ours, ourselves(na).key, 'x'), '201'],
    ['signed by somebody else', ours, refused],
    ['unsigned', { ...ours, signature: null }, refused],
    ['signed by an operator', singlySigned(ours, na.privileged.key), refused],
    ['changed after we signed it', { ...signed, proof_issued_at: formatInstant(0) }, refused],
    ['of somebody else, unsigned', { ...justification(now), signature: null }, '201'],
  ] as [string, JsonObject, string][]) {
    const body = { ...assembly(now), justification_proof: proof };
    assert.equal(outcomeWithCause(await operate(na, ASSEMBLE, body)), expected, name);
  }
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

test('no altered member of an operator request causes an internal error', async () => {
  const na = await shared();
  const now = na.clock.now();
  const vote = { justification_proof: justification(now), vote: true, reason: 'r' };
  for (const [path, body, refused] of [
    [VOTE, vote, ['400 missing_vote_fields', '400 invalid_justification', '422 vote_failed']],
    [ASSEMBLE, assembly(now), ['400 missing_proof_fields', '422 proof_assembly_failed']],
  ] as [string, JsonObject, string[]][]) {
    const outcomes = new Set(['201', ...refused]);
    await eachOf(mutationsOf(body), async ({ name, record }) => {
      const answer = await operate(na, path, record);
      assert.ok(outcomes.has(outcome(answer)), `${path} ${name}: ${outcome(answer)}`);
    });
  }
});
