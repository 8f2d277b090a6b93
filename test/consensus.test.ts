/**
 * Consensus: votes, assembled proofs, and their verification [service-consensus-verification-rules],
 * [trust-2-9] to [trust-2-11], [trust-3-4], [trust-3-5], [trust-4-6], [trust-4-7], [trust-5-8],
 * [trust-5-9], [trust-6-6].
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
  VERIFY,
  v1,
  v2,
  v3,
  v4,
  verification,
  voteOf,
  votesOf,
} from './support/consensus.ts';
import { type Fault, faultsTogether } from './support/faults.ts';
import { valuesExcept } from './support/hostile.ts';
import { newKey, operate, outcome } from './support/requests.ts';
import { stateDigest } from './support/test-stores.ts';
import { audited, post, startUnlimited, UUID } from './support/trust.ts';
import {
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
  await using na = await startUnlimited();
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
    audited(na, 'validator_vote_cast'),
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

test('of several faults of a vote the earliest is reported', async (t) => {
  await using na = await startUnlimited();
  const body = { justification_proof: justification(na.clock.now()), vote: true, reason: 'r' };
  for (const { name, expected, draft } of faultsTogether(VOTE_FAULTS)) {
    await t.test(name, async () => {
      const answer = await operate(na, VOTE, { ...body, ...draft });
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  for (const [name, justification_proof] of MISSING) {
    await t.test(`the justification is ${name}`, async () => {
      const answer = await operate(na, VOTE, { ...body, justification_proof });
      assert.equal(outcomeWithCause(answer), '400 missing_vote_fields missing_justification_proof');
    });
  }
  for (const [name, vote] of [...valuesExcept('true', 'false'), ['"true"', 'true']] as const) {
    await t.test(`the vote is ${name}`, async () => {
      const answer = await operate(na, VOTE, { ...body, vote });
      assert.equal(outcomeWithCause(answer), '400 missing_vote_fields invalid_vote');
    });
  }
  for (const [name, reason] of valuesExcept('null', 'a string', 'an empty string')) {
    await t.test(`the reason is ${name}`, async () => {
      const answer = await operate(na, VOTE, { ...body, reason });
      assert.equal(outcomeWithCause(answer), '422 vote_failed invalid_reason');
    });
  }
  for (const member of ['justification_proof', 'vote']) {
    await t.test(`without ${member}`, async () => {
      assert.equal(
        outcome(await operate(na, VOTE, without(body, member))),
        '400 missing_vote_fields',
      );
    });
  }
  assert.deepEqual(audited(na, 'validator_vote_cast'), []);
});

test('valid subjects of a vote', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const full = justification(now);
  const trace = inner(full, 'trace');
  const [entry = {}] = trace.entries as readonly JsonObject[];
  const refused = '400 invalid_justification';
  for (const [name, changes, expected] of [
    ['a justification of somebody else', {}, '201'],
    ['an unsigned one', { signature: null }, '201'],
    ['one with a signature that is none', { signature: { key_id: '', sig: '' } }, '201'],
    ['one that contradicts its trace', { decision_id: 'another' }, '201'],
    [
      'one of a denial',
      { trace: { ...trace, final_authorized: false, short_circuited_at: 'g' } },
      '201',
    ],
    ['one without entries', { trace: { ...trace, entries: [] } }, '201'],
    [
      'one with any inputs',
      { trace: { ...trace, entries: [{ ...entry, inputs: { a: [new JsonFloat(1)] } }] } },
      '201',
    ],
    ['one with members nobody knows', { extra: 1 }, '201'],
    ['one whose signature is text', { signature: 'sig' }, refused],
    ['one without trace', { trace: null }, refused],
    ['one whose id is a number', { proof_id: 1 }, refused],
    ['one with a naive time', { proof_issued_at: '2026-01-01T00:00:00' }, refused],
    ['one whose flag is text', { trace: { ...trace, final_authorized: 'true' } }, refused],
    ['one whose entry is text', { trace: { ...trace, entries: ['entry'] } }, refused],
    [
      'one whose entry has no time',
      { trace: { ...trace, entries: [without(entry, 'evaluated_at')] } },
      refused,
    ],
    [
      'one whose inputs are a list',
      { trace: { ...trace, entries: [{ ...entry, inputs: [] }] } },
      refused,
    ],
  ] as [string, JsonObject, string][]) {
    await t.test(`${name}: ${expected}`, async () => {
      const body = { justification_proof: { ...full, ...changes }, vote: true };
      const answer = await operate(na, VOTE, body);
      assert.equal(outcome(answer), expected);
      if (expected !== '201') return;
      const { proof_id, decision_id } = body.justification_proof as JsonObject;
      assert.deepEqual([answer.body.proof_id, answer.body.decision_id], [proof_id, decision_id]);
    });
  }
  await t.test('without an id, each vote gets one of its own', async () => {
    const body = { justification_proof: without(full, 'proof_id'), vote: true };
    const [one, two] = [
      await created(operate(na, VOTE, body)),
      await created(operate(na, VOTE, body)),
    ];
    assert.match(String(one.proof_id), UUID);
    assert.notEqual(one.proof_id, two.proof_id);
  });
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
  await using na = await startUnlimited();
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
  assert.deepEqual(audited(na, 'consensus_proof_assembled'), [
    { consensus_id, proof_id: 'justification', vote_count: 6, required_threshold: 2 },
  ]);
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

test('of several faults of an assembly the earliest is reported', async (t) => {
  await using na = await startUnlimited();
  const body = assembly(na.clock.now());
  for (const { name, expected, draft } of faultsTogether(ASSEMBLY_FAULTS)) {
    await t.test(name, async () => {
      const answer = await operate(na, ASSEMBLE, { ...body, ...draft });
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  for (const [name, justification_proof] of MISSING) {
    await t.test(`the justification is ${name}`, async () => {
      const answer = await operate(na, ASSEMBLE, { ...body, justification_proof });
      const expected = '400 missing_proof_fields missing_justification_proof';
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  for (const member of ['votes', 'validator_sovereign_ids']) {
    for (const [name, value] of valuesExcept('a list', 'an empty list')) {
      await t.test(`${member} is ${name}`, async () => {
        const answer = await operate(na, ASSEMBLE, { ...body, [member]: value });
        assert.equal(outcomeWithCause(answer), `400 missing_proof_fields invalid_${member}`);
      });
    }
  }
  for (const [name, required_threshold] of [
    ...valuesExcept('the integer 7'),
    ['"2"', '2'],
    ['2 to the 53', 2n ** 53n],
    ['1e300', new JsonFloat(1e300)],
  ] as const) {
    await t.test(`the threshold is ${name}`, async () => {
      const answer = await operate(na, ASSEMBLE, { ...body, required_threshold });
      const expected = '400 missing_proof_fields invalid_required_threshold';
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  for (const member of Object.keys(body)) {
    await t.test(`without ${member}`, async () => {
      const answer = await operate(na, ASSEMBLE, without(body, member));
      assert.equal(outcome(answer), '400 missing_proof_fields');
    });
  }
  assert.deepEqual(audited(na, 'consensus_proof_assembled'), []);
});

test('votes that can form a proof', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [first = {}, second = {}, third = {}] = votesOf(now);
  const range = '422 proof_assembly_failed threshold_out_of_range';
  const short = '422 proof_assembly_failed threshold_not_met';
  const cascade = '422 proof_assembly_failed cascade_detected';
  const digest = sha256('shared');
  const alike = (voter: Party, after: number) =>
    voteOf(voter, now, { after, context_digest: digest });
  const copies = [alike(v1, 0), alike(v2, 60), alike(v3, 120)];
  const others = Array.from({ length: 256 }, (_, index) => `other-${index}`);
  const crowd = Array.from({ length: 256 }, () => first);
  for (const [name, changes, expected] of [
    ['all for it', { required_threshold: 3 }, '201'],
    ['as many as are needed', { votes: [first, second] }, '201'],
    [
      'one of one',
      { votes: [first], required_threshold: 1, validator_sovereign_ids: ['val-1'] },
      '201',
    ],
    ['a threshold of 2.0', { required_threshold: new JsonFloat(2) }, '201'],
    ['a threshold of 0', { required_threshold: 0 }, range],
    ['a threshold of 0.0', { required_threshold: new JsonFloat(0) }, range],
    ['a threshold below zero', { required_threshold: -1 }, range],
    ['a threshold far below zero', { required_threshold: -(2 ** 53 - 1) }, range],
    ['a threshold above the set', { required_threshold: 4 }, range],
    [
      'a set that repeats a name to reach the threshold',
      { validator_sovereign_ids: ['val-1', 'val-1'] },
      range,
    ],
    ['an empty set', { validator_sovereign_ids: [] }, range],
    ['no votes', { votes: [] }, short],
    ['one vote too few', { required_threshold: 3, votes: [first, second] }, short],
    ['a vote given twice', { votes: [first, first] }, short],
    ['two votes of one validator', { votes: [first, voteOf(v1, now, { after: 60 })] }, short],
    ['one against it', { votes: [first, voteOf(v2, now, { vote: false })] }, short],
    ['one unsigned', { votes: [first, { ...second, signature: null }] }, short],
    ['one without signature member', { votes: [first, without(second, 'signature')] }, short],
    ['one on another proof', { votes: [first, voteOf(v2, now, { proof_id: 'x' })] }, short],
    ['one on another decision', { votes: [first, voteOf(v2, now, { decision_id: 'x' })] }, short],
    ['one of an outsider', { votes: [first, voteOf(v4, now, { after: 60 })] }, short],
    ['all of outsiders', { validator_sovereign_ids: ['a', 'b', 'c'] }, short],
    ['names in capitals', { validator_sovereign_ids: ['VAL-1', 'VAL-2'] }, short],
    [
      'a signature that is none',
      { votes: [first, { ...second, signature: { key_id: '', sig: '' } }] },
      '201',
    ],
    [
      'enough, and one against it',
      { votes: [first, second, voteOf(v3, now, { vote: false })] },
      '201',
    ],
    [
      'enough, and an unsigned one',
      { votes: [{ ...third, signature: null }, first, second] },
      '201',
    ],
    ['enough, and an outsider', { votes: [voteOf(v4, now), first, second] }, '201'],
    [
      'enough, one of which is unsigned the first time',
      { votes: [{ ...first, signature: null }, first, second] },
      '201',
    ],
    ['one digest in all', { votes: copies }, cascade],
    [
      'one digest in all, though one more is against it',
      { votes: [...copies, voteOf(v4, now, { vote: false })] },
      cascade,
    ],
    [
      'one digest, diluted by later votes with others',
      { votes: [...copies, ...COUNCIL.map((voter) => voteOf(voter, now, { after: 200 }))] },
      cascade,
    ],
    [
      'one digest, diluted by unsigned votes',
      {
        votes: [
          alike(v1, 0),
          alike(v2, 60),
          { ...voteOf(v3, now, { after: 120 }), signature: null },
        ],
      },
      cascade,
    ],
    [
      'no digest at all',
      {
        votes: COUNCIL.map((voter, i) =>
          voteOf(voter, now, { after: 60 * i, context_digest: null }),
        ),
      },
      cascade,
    ],
    [
      'no digest on the one vote',
      { votes: [voteOf(v1, now, { context_digest: null })], required_threshold: 1 },
      cascade,
    ],
    [
      'no digest on one of three',
      { votes: [voteOf(v1, now, { context_digest: null }), second, third] },
      '201',
    ],
    [
      'all at one moment, with digests of their own',
      { votes: COUNCIL.map((voter) => voteOf(voter, now)) },
      '201',
    ],
    ['256 votes', { votes: [...crowd.slice(2), second, third] }, '201'],
    ['257 votes', { votes: [...crowd, second] }, '400 missing_proof_fields invalid_votes'],
    [
      '256 validators',
      { validator_sovereign_ids: [...namesOf(COUNCIL), ...others.slice(3)] },
      '201',
    ],
    [
      '257 validators',
      { validator_sovereign_ids: [...others, 'val-1'] },
      '400 missing_proof_fields invalid_validator_sovereign_ids',
    ],
    [
      'a vote that is null',
      { votes: [first, second, null] },
      '400 missing_proof_fields invalid_vote',
    ],
    [
      'a vote whose voice is text',
      { votes: [first, second, { ...third, vote: 'true' }] },
      '400 missing_proof_fields invalid_vote',
    ],
    [
      'a vote with a naive time',
      { votes: [first, second, { ...third, voted_at: '2026-01-01T00:00:00' }] },
      '400 missing_proof_fields invalid_vote',
    ],
    [
      'a name that is null',
      { validator_sovereign_ids: ['val-1', 'val-2', null] },
      '422 proof_assembly_failed invalid_validator_sovereign_ids',
    ],
  ] as [string, JsonObject, string][]) {
    await t.test(`${name}: ${expected}`, async () => {
      const answer = await operate(na, ASSEMBLE, { ...assembly(now), ...changes });
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
});

test('a proof over a justification in our own name needs our signature on it', async () => {
  await using na = await startUnlimited();
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

// Hostile bodies

test('no altered member of a verification request causes an internal error or passes as genuine', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const body = verification(now, { votes: votesOf(now, [v1, v2]) });
  const before = await stateDigest(na);
  const refused = ['missing_proof', 'invalid_proof', 'missing_validator_public_keys'];
  const outcomes = new Set(['200', ...refused.map((code) => `400 ${code}`)]);
  await eachOf(mutationsOf(body), async ({ name, path, record }) => {
    const answer = await post(na, VERIFY, record);
    assert.ok(outcomes.has(outcome(answer)), `${name}: ${outcome(answer)}`);
    if (answer.body.valid !== true) return;
    assert.ok(['proof.signature.key_id', 'validator_public_keys.val-3'].includes(path), name);
  });
  assert.equal(await stateDigest(na), before);
});

test('no altered member of an operator request causes an internal error', async () => {
  await using na = await startUnlimited();
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
