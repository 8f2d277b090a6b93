/**
 * Consensus: votes, assembled proofs, and their verification [service-consensus-verification-rules],
 * [trust-2-9] to [trust-2-11], [trust-3-4], [trust-3-5], [trust-4-6], [trust-4-7], [trust-5-8],
 * [trust-5-9], [trust-6-6].
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { TestAuthority } from './support/authority.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import { type Fault, faultsTogether } from './support/faults.ts';
import { misspelledKeys, valuesExcept, WEAK_KEYS } from './support/hostile.ts';
import { newKey, operate, outcome, send } from './support/requests.ts';
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
  AT_THE_OPERATORS_DOOR,
  AT_THE_PUBLIC_DOOR,
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

const VOTE = '/admin/consensus/vote';
const ASSEMBLE = '/admin/consensus/proof';
const VERIFY = '/consensus/verify';

const HEX = /^[0-9a-f]{64}$/;
const LIMITED = '429 rate_limit_exceeded';

const [v1, v2] = [sovereign('val-1'), sovereign('val-2')];
const [v3, v4] = [sovereign('val-3'), sovereign('val-4')];
const COUNCIL = [v1, v2, v3];
const stranger = sovereign('stranger');
/** The assembler in tables that do not vary it. */
const assembler = sovereign('assembler');

// Records, built independently of the program

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

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

/** When the first vote of each table is cast, in milliseconds before now. */
const FIRST_VOTE = 5 * MINUTE;

/** An approving vote with a digest of its own, cast `after` seconds after the first. */
function voteOf(
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

/** Votes of the council a minute apart: no sign of a cascade. */
function votesOf(now: number, voters: readonly Party[] = COUNCIL): JsonObject[] {
  return voters.map((voter, index) => voteOf(voter, now, { after: 60 * index }));
}

function namesOf(parties: readonly Party[]): string[] {
  return parties.map(({ name }) => name);
}

function keysOf(parties: readonly Party[]): JsonObject {
  return Object.fromEntries(parties.map(({ name, key }) => [name, key.publicKey]));
}

/** A proof of two votes of three, made a minute ago and good for four more. */
function proofBy(by: Party, now: number, changes: JsonObject = {}): JsonObject {
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
function verification(now: number, changes: JsonObject = {}): Record<string, JsonValue> {
  return {
    proof: proofBy(assembler, now, changes),
    validator_public_keys: keysOf(COUNCIL),
    assembler_public_keys: [assembler.key.publicKey],
  };
}

async function reasonOf(na: TestAuthority, body: JsonObject): Promise<string> {
  const answer = await post(na, VERIFY, body);
  assert.equal(outcome(answer), '200', answer.text);
  const { valid, reason, ...rest } = parsed(answer);
  assert.equal(valid, reason === 'valid');
  assert.deepEqual(rest, { consensus_id: inner(body, 'proof').consensus_id });
  return String(reason);
}

// Vote

test('a vote has every member, is signed by us as validator and audited', async () => {
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

test('what can be voted on', async (t) => {
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
  await t.test('one without id: each vote is on an id of its own', async () => {
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

test('a proof has every member, carries the votes as given, is signed by us and audited', async () => {
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

test('the cascade assessment is logged whole, and its digest is what the proof carries', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const digest = sha256('shared');
  const votes = [
    voteOf(v1, now, { context_digest: digest }),
    voteOf(v2, now, { after: 60, context_digest: digest }),
    voteOf(v3, now, { after: 120 }),
    voteOf(v4, now, { after: 180 }),
    // Neither a second vote nor one against changes the score.
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

test('which votes make a proof', async (t) => {
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

// Verification

interface VerifyDraft {
  readonly unsigned?: true;
  readonly assembler?: readonly string[];
  readonly foreignVote?: true;
  readonly unsignedVote?: true;
  readonly outsider?: true;
  readonly threshold?: number;
  readonly undigested?: true;
  readonly alike?: true;
  readonly over?: true;
}

/** In the order of [trust-4-6]. */
const VERIFY_FAULTS: readonly Fault<VerifyDraft>[] = [
  ['missing_signature', { unsigned: true }],
  ['invalid_assembler_signature', { assembler: [] }],
  ['proof_id_mismatch', { foreignVote: true }],
  ['invalid_vote_signature', { unsignedVote: true }],
  ['vote_not_in_validator_set', { outsider: true }],
  ['threshold_not_met', { threshold: 5 }],
  ['missing_context_digest', { undigested: true }],
  ['cascade_detected', { alike: true }],
  ['expired', { over: true }],
];

function spoiledVerification(now: number, draft: VerifyDraft): JsonObject {
  const same = draft.alike ? { context_digest: sha256('shared') } : {};
  const votes = [...COUNCIL, v4].map((voter, index) =>
    voteOf(voter, now, { after: 60 * index, ...same }),
  );
  if (draft.undigested) votes[3] = voteOf(v4, now, { after: 180, context_digest: null });
  if (draft.foreignVote) votes.push(voteOf(v1, now, { after: 240, proof_id: 'another' }));
  if (draft.unsignedVote) votes.push({ ...voteOf(v1, now, { after: 240 }), signature: null });
  if (draft.outsider) votes.push(voteOf(stranger, now, { after: 240 }));
  const proof = proofBy(assembler, now, {
    votes,
    required_threshold: draft.threshold ?? 2,
    validator_sovereign_ids: namesOf([...COUNCIL, v4]),
    ...(draft.over && { expires_at: formatInstant(now) }),
  });
  return {
    proof: draft.unsigned ? { ...proof, signature: null } : proof,
    validator_public_keys: keysOf([...COUNCIL, v4]),
    assembler_public_keys: draft.assembler ?? [assembler.key.publicKey],
  };
}

test('the first reason why there is no consensus is reported and logged', async (t) => {
  await using na = await startUnlimited();
  const before = await stateDigest(na);
  assert.equal(await reasonOf(na, spoiledVerification(na.clock.now(), {})), 'valid');
  for (const { name, expected, draft } of faultsTogether(VERIFY_FAULTS)) {
    await t.test(name, async () => {
      const body = spoiledVerification(na.clock.now(), draft);
      assert.equal(await reasonOf(na, body), expected);
      assert.deepEqual(audited(na, 'consensus_proof_verified').at(-1), {
        consensus_id: 'consensus',
        valid: false,
      });
    });
  }
  assert.equal(await stateDigest(na), before);
});

/** One case: what the proof says, and the keys when they are not those of the council. */
type VerifyCase = readonly [
  name: string,
  proof: JsonObject,
  expected: string,
  validatorKeys?: JsonObject,
];

async function checkCases(na: TestAuthority, cases: readonly VerifyCase[]) {
  const outcomes = new Map<string, string>();
  for (const [name, changes, expected, validator_public_keys] of cases) {
    const body = verification(na.clock.now(), changes);
    const keys = validator_public_keys ?? keysOf(COUNCIL);
    const reason = await reasonOf(na, { ...body, validator_public_keys: keys });
    if (reason !== expected) outcomes.set(name, `${reason}, not ${expected}`);
  }
  assert.deepEqual(outcomes, new Map());
}

test('each vote is checked in turn: signed, with a key, genuine', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [first = {}, second = {}, third = {}] = votesOf(now);
  const unsigned = (vote: JsonObject) => ({ ...vote, signature: null });
  const forged = (vote: JsonObject) => singlySigned(vote, newKey(), 'val-3');
  const against = (voter: Party) => voteOf(voter, now, { after: 120, vote: false });
  const outside = voteOf(stranger, now, { after: 180 });
  const outsideAgainst = voteOf(stranger, now, { vote: false });
  const [noVal1, noVal3, withStranger] = [
    keysOf([v2, v3]),
    keysOf([v1, v2]),
    keysOf([...COUNCIL, stranger]),
  ];
  const [unsignedReason, unknown, named] = [
    'invalid_vote_signature',
    'unknown_validator_key',
    'vote_not_in_validator_set',
  ];
  await checkCases(na, [
    ['all signed, with keys', {}, 'valid'],
    // [service-consensus-verification-2]: rejected, not skipped, although two others are enough.
    ['one unsigned', { votes: [first, second, unsigned(third)] }, unsignedReason],
    ['one without key', {}, unknown, noVal3],
    [
      'one unsigned and without key',
      { votes: [first, second, unsigned(third)] },
      unsignedReason,
      noVal3,
    ],
    [
      'a second vote of one validator, unsigned',
      { votes: [first, second, unsigned(voteOf(v1, now))] },
      unsignedReason,
    ],
    ['one forged', { votes: [first, second, forged(third)] }, unsignedReason],
    [
      'one changed after it was signed',
      { votes: [first, second, { ...third, reason: 'r' }] },
      unsignedReason,
    ],
    [
      'one signed by another validator',
      { votes: [first, second, singlySigned(third, v1.key, 'val-3')] },
      unsignedReason,
    ],
    [
      'one with a signature that is none',
      { votes: [first, second, { ...third, signature: { key_id: '', sig: '' } }] },
      unsignedReason,
    ],
    [
      'one with any key id',
      { votes: [first, second, singlySigned(third, v3.key, 'somebody')] },
      'valid',
    ],
    [
      'one with the key id of another',
      { votes: [first, second, singlySigned(third, v3.key, 'val-1')] },
      'valid',
    ],
    [
      'a signed member that nobody knows',
      { votes: [first, second, without(singlySigned({ ...third, extra: 1 }, v3.key), 'extra')] },
      unsignedReason,
    ],
    // The first faulty vote determines the reason.
    ['without key, then unsigned', { votes: [first, second, unsigned(third)] }, unknown, noVal1],
    [
      'unsigned, then without key',
      { votes: [unsigned(third), second, first] },
      unsignedReason,
      noVal1,
    ],
    ['forged, then without key', { votes: [forged(third), second, first] }, unsignedReason, noVal1],
    ['without key, then forged', { votes: [first, second, forged(third)] }, unknown, noVal1],
    // Rejecting votes of named validators need no key, but a signature.
    ['one against it', { votes: [first, second, against(v3)] }, 'valid'],
    ['one against it, without key', { votes: [first, second, against(v3)] }, 'valid', noVal3],
    ['one against it, unsigned', { votes: [first, second, unsigned(against(v3))] }, unsignedReason],
    [
      'one against it, unsigned, without key',
      { votes: [first, second, unsigned(against(v3))] },
      unsignedReason,
      noVal3,
    ],
    ['one against it, forged', { votes: [first, second, forged(against(v3))] }, unsignedReason],
    [
      'one against it, forged, without key',
      { votes: [first, second, forged(against(v3))] },
      'valid',
      noVal3,
    ],
    [
      'one against it, on another proof',
      { votes: [first, second, voteOf(v3, now, { vote: false, proof_id: 'x' })] },
      'valid',
    ],
    // Outsiders.
    ['an outsider for it', { votes: [first, second, outside] }, named],
    ['an outsider for it, with key', { votes: [first, second, outside] }, named, withStranger],
    ['an outsider for it, unsigned', { votes: [first, second, unsigned(outside)] }, named],
    [
      'an outsider for it, unsigned, with key',
      { votes: [first, second, unsigned(outside)] },
      named,
      withStranger,
    ],
    ['an outsider for it, forged', { votes: [first, second, forged(outside)] }, named],
    [
      'an outsider for it, forged, with key',
      { votes: [first, second, forged(outside)] },
      unsignedReason,
      withStranger,
    ],
    [
      'an outsider for another proof',
      { votes: [first, second, voteOf(stranger, now, { proof_id: 'x' })] },
      named,
    ],
    [
      'an outsider, then an unsigned vote',
      { votes: [outside, first, unsigned(second)] },
      unsignedReason,
    ],
    ['an outsider against it', { votes: [first, second, outsideAgainst] }, 'valid'],
    [
      'an outsider against it, unsigned',
      { votes: [first, second, unsigned(outsideAgainst)] },
      'valid',
    ],
    ['an outsider against it, forged', { votes: [first, second, forged(outsideAgainst)] }, 'valid'],
    [
      'an outsider against it, forged, with key',
      { votes: [first, second, forged(outsideAgainst)] },
      unsignedReason,
      withStranger,
    ],
    [
      'an outsider against it, unsigned, with key',
      { votes: [first, second, unsigned(outsideAgainst)] },
      'valid',
      withStranger,
    ],
    [
      'a name in capitals',
      { votes: [first, second, voteOf({ ...v3, name: 'VAL-3' }, now)] },
      named,
    ],
    // Votes on another matter.
    [
      'one for another proof',
      { votes: [first, second, voteOf(v3, now, { proof_id: 'x' })] },
      'proof_id_mismatch',
    ],
    [
      'one for another decision',
      { votes: [first, second, voteOf(v3, now, { decision_id: 'x' })] },
      'proof_id_mismatch',
    ],
    [
      'one for the proof in capitals',
      { votes: [first, second, voteOf(v3, now, { proof_id: 'JUSTIFICATION' })] },
      'proof_id_mismatch',
    ],
    ['all for another proof than the whole', { proof_id: 'another' }, 'proof_id_mismatch'],
    ['all for another decision than the whole', { decision_id: 'another' }, 'proof_id_mismatch'],
    [
      'an unsigned one for another proof, last',
      { votes: [unsigned(first), second, voteOf(v3, now, { proof_id: 'x' })] },
      'proof_id_mismatch',
    ],
  ]);
});

test('the threshold counts distinct approving validators', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [first = {}, second = {}, third = {}] = votesOf(now);
  const again = [60, 120, 180].map((after) => voteOf(v1, now, { after }));
  const against = (voter: Party) => voteOf(voter, now, { after: 200, vote: false });
  const short = 'threshold_not_met';
  await checkCases(na, [
    ['three of three', { required_threshold: 3 }, 'valid'],
    ['two, where two are needed', { votes: [first, second] }, 'valid'],
    ['one, where one is needed', { votes: [first], required_threshold: 1 }, 'valid'],
    ['three, where four are needed', { required_threshold: 4 }, short],
    ['two, where three are needed', { votes: [first, second], required_threshold: 3 }, short],
    ['none', { votes: [] }, short],
    ['none, where none is needed', { votes: [], required_threshold: 0 }, short],
    ['three, where none is needed', { required_threshold: 0 }, short],
    ['three, where less than none is needed', { required_threshold: -1 }, short],
    ['three, where the largest number is needed', { required_threshold: 2 ** 53 - 1 }, short],
    ['one validator four times', { votes: [first, ...again] }, short],
    ['the same vote twice', { votes: [first, first] }, short],
    ['one validator four times and another', { votes: [first, ...again, second] }, 'valid'],
    [
      'a set that repeats a name',
      { votes: [first], validator_sovereign_ids: ['val-1', 'val-1'] },
      short,
    ],
    ['two against it', { votes: [first, against(v2), against(v3)] }, short],
    ['all against it', { votes: COUNCIL.map(against), required_threshold: 1 }, short],
    ['one that is for and against it', { votes: [first, second, against(v1)] }, 'valid'],
    ['one that is against it and then for it', { votes: [against(v1), first, second] }, 'valid'],
    ['an empty set', { votes: [], validator_sovereign_ids: [] }, short],
    [
      'a third vote left out of the set',
      { votes: [first, second, third], validator_sovereign_ids: ['val-1', 'val-2'] },
      'vote_not_in_validator_set',
    ],
  ]);
});

test('votes that look like copies of each other are no consensus', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [digest, other] = [sha256('shared'), sha256('another')];
  const crowd = Array.from({ length: 8 }, (_, index) => sovereign(`crowd-${index}`));
  const set = { validator_sovereign_ids: namesOf(crowd), required_threshold: 2 };
  const keys = keysOf(crowd);
  /** The first votes carry the shared digest; `gap` seconds lie between one vote and the next. */
  const votes = (alike: number, of: number, gap: number) =>
    crowd.slice(0, of).map((voter, index) =>
      voteOf(voter, now, {
        after: gap * index,
        ...(index < alike && { context_digest: digest }),
      }),
    );
  const own = (voter: Party, after: number) => voteOf(voter, now, { after });
  const shared = (voter: Party, after: number) =>
    voteOf(voter, now, { after, context_digest: digest });
  const none = (voter: Party, after: number) => voteOf(voter, now, { after, context_digest: null });
  const copies = [shared(v1, 0), shared(v2, 60), shared(v3, 120)];
  const [cascade, missing] = ['cascade_detected', 'missing_context_digest'];
  await checkCases(na, [
    ['digests of their own, spread out', {}, 'valid'],
    [
      'digests of their own, at one moment',
      { votes: COUNCIL.map((voter) => own(voter, 0)) },
      'valid',
    ],
    ['one digest in all', { votes: copies }, cascade],
    [
      'one digest in two of three',
      { votes: [shared(v1, 0), shared(v2, 60), own(v3, 120)] },
      'valid',
    ],
    [
      'one digest in two of three, at one moment',
      { votes: [shared(v1, 0), shared(v2, 0), own(v3, 0)] },
      cascade,
    ],
    ['one digest in two of two', { votes: [shared(v1, 0), shared(v2, 60)] }, cascade],
    ['a single vote with any digest', { votes: [shared(v1, 0)], required_threshold: 1 }, 'valid'],
    ['5 of 8, spread out: the score is 0.4', { ...set, votes: votes(5, 8, 30) }, 'valid', keys],
    ['6 of 8, spread out', { ...set, votes: votes(6, 8, 30) }, cascade, keys],
    ['2 of 8, at one moment: the score is 0.4', { ...set, votes: votes(2, 8, 0) }, 'valid', keys],
    ['3 of 8, at one moment', { ...set, votes: votes(3, 8, 0) }, cascade, keys],
    ['5 of 8, a little closer in time', { ...set, votes: votes(5, 8, 12) }, cascade, keys],
    [
      'two digests in two pairs',
      {
        ...set,
        votes: crowd
          .slice(0, 4)
          .map((voter, index) =>
            voteOf(voter, now, { after: 60 * index, context_digest: index < 2 ? digest : other }),
          ),
      },
      'valid',
      keys,
    ],
    [
      'digests that differ in case',
      {
        votes: [
          shared(v1, 0),
          voteOf(v2, now, { after: 60, context_digest: digest.toUpperCase() }),
        ],
      },
      'valid',
    ],
    [
      'an empty text for a digest',
      { votes: [voteOf(v1, now, { context_digest: '' }), own(v2, 60)] },
      'valid',
    ],
    [
      'two empty texts for digests',
      {
        votes: [
          voteOf(v1, now, { context_digest: '' }),
          voteOf(v2, now, { after: 60, context_digest: '' }),
        ],
      },
      cascade,
    ],
    [
      'a vote against it with the digest of another',
      {
        votes: [
          shared(v1, 0),
          own(v2, 60),
          voteOf(v3, now, { after: 61, vote: false, context_digest: digest }),
        ],
      },
      'valid',
    ],
    // One vote per validator, its first, whatever it casts later.
    [
      'copies, diluted by later votes',
      {
        votes: [
          ...copies,
          ...[130, 140, 150].flatMap((after) => COUNCIL.map((voter) => own(voter, after))),
        ],
      },
      cascade,
    ],
    [
      'copies, diluted by later votes that come first',
      { votes: [...COUNCIL.map((voter) => own(voter, 200)), ...copies] },
      cascade,
    ],
    [
      'copies, diluted by a vote of the same moment',
      { votes: [...copies, own(v1, 0), own(v2, 60), own(v3, 120)] },
      cascade,
    ],
    [
      'copies that come second in the same moment',
      { votes: [own(v1, 0), own(v2, 60), own(v3, 120), ...copies] },
      'valid',
    ],
    [
      'copies that are cast later than the first votes',
      { votes: [...COUNCIL.map((voter) => shared(voter, 200)), ...votesOf(now)] },
      'valid',
    ],
    [
      'copies cast before by a microsecond',
      {
        votes: [
          ...COUNCIL.map((voter) =>
            voteOf(voter, now, { voted_at: '2026-01-15T12:00:00.000002Z' }),
          ),
          ...COUNCIL.map((voter) =>
            voteOf(voter, now, { voted_at: '2026-01-15T12:00:00.000001Z', context_digest: digest }),
          ),
        ],
      },
      cascade,
    ],
    [
      'copies cast before, in another zone',
      {
        votes: [
          ...COUNCIL.map((voter) => voteOf(voter, now, { voted_at: '2026-01-15T12:00:00Z' })),
          ...COUNCIL.map((voter) =>
            voteOf(voter, now, { voted_at: '2026-01-15T13:59:59+02:00', context_digest: digest }),
          ),
        ],
      },
      cascade,
    ],
    // Every counted vote needs a digest, also one that is not a validator's first.
    ['one without digest', { votes: [own(v1, 0), own(v2, 60), none(v3, 120)] }, missing],
    ['all without digest', { votes: [none(v1, 0), none(v2, 60)] }, missing],
    ['a later one without digest', { votes: [own(v1, 0), own(v2, 60), none(v1, 120)] }, missing],
    [
      'one without digest among copies',
      { votes: [shared(v1, 0), shared(v2, 60), none(v3, 120)] },
      missing,
    ],
    [
      'one against it without digest',
      { votes: [own(v1, 0), own(v2, 60), voteOf(v3, now, { vote: false, context_digest: null })] },
      'valid',
    ],
  ]);
});

test('a proof is good until its end, which is checked last', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [first = {}] = votesOf(now);
  const at = (instant: number) => ({ expires_at: formatInstant(instant) });
  await checkCases(na, [
    ['a millisecond before its end', at(now + 1), 'valid'],
    ['a microsecond before its end', at(now + 0.001), 'valid'],
    ['at its end', at(now), 'expired'],
    ['after its end', at(now - 1), 'expired'],
    ['long after its end', { expires_at: '0001-01-01T00:00:00Z' }, 'expired'],
    ['long before its end', { expires_at: '9999-12-31T23:59:59.999999Z' }, 'valid'],
    ['before its end in another zone', { expires_at: '9999-12-31T23:59:59-12:00' }, 'valid'],
    ['after its end, with votes too few', { ...at(now), votes: [first] }, 'threshold_not_met'],
    ['made in the future', { reached_at: formatInstant(now + MINUTE) }, 'valid'],
    ['without assessment', { cascade_assessment_digest: null }, 'valid'],
  ]);
});

// Keys

test('which keys an assembler is known by', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const foreign = sovereign('foreign', misspellableKey());
  const outcomes = {
    verifies: 'valid',
    fails: 'invalid_assembler_signature',
    malformed: undefined,
  };
  const validator_public_keys = keysOf(COUNCIL);
  const theirs = { proof: proofBy(foreign, now), validator_public_keys };
  for (const [name, assembler_public_keys, result] of keyListCases(foreign.key)) {
    await t.test(`${name} ${result}`, async () => {
      const answer = await post(na, VERIFY, { ...theirs, assembler_public_keys });
      assert.equal(answer.body.reason, outcomes[result]);
      assert.equal(outcome(answer), result === 'malformed' ? '400 invalid_proof' : '200');
    });
  }
  const ours = { proof: proofBy(ourselves(na), now), validator_public_keys };
  const invalid = 'invalid_assembler_signature';
  for (const [name, body, expected] of [
    ['no list, and ours', ours, 'valid'],
    ['null, and ours', { ...ours, assembler_public_keys: null }, 'valid'],
    ['no list, and not ours', theirs, invalid],
    ['null, and not ours', { ...theirs, assembler_public_keys: null }, invalid],
    ['an empty list, and ours', { ...ours, assembler_public_keys: [] }, invalid],
    [
      'the key of another, and ours',
      { ...ours, assembler_public_keys: [v1.key.publicKey] },
      invalid,
    ],
    ['no list, and signed by a validator', { ...ours, proof: proofBy(v1, now) }, invalid],
  ] as [string, JsonObject, string][]) {
    await t.test(`${name}: ${expected}`, async () => {
      assert.equal(await reasonOf(na, body), expected);
    });
  }
});

test('which keys validators are known by', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const all = keysOf(COUNCIL);
  const oddly = sovereign('val-3', misspellableKey());
  const votes = votesOf(now, [v1, v2, oddly]);
  const [invalid, unknown] = ['invalid_vote_signature', 'unknown_validator_key'];
  const unusable = [
    ...valuesExcept('a string'),
    ...misspelledKeys(oddly.key.publicKey),
    ...WEAK_KEYS.map((key) => [`the weak key ${key}`, key] as const),
    ['the key in a list', [oddly.key.publicKey]] as const,
    ['another key', v1.key.publicKey] as const,
  ];
  await checkCases(na, [
    ['its own', { votes }, 'valid', { ...all, 'val-3': oddly.key.publicKey }],
    ...unusable.map(
      ([name, key]): VerifyCase => [name, { votes }, invalid, { ...all, 'val-3': key }],
    ),
    ['none', { votes }, unknown, keysOf([v1, v2])],
    [
      'its own under a name in capitals',
      { votes },
      unknown,
      { ...keysOf([v1, v2]), 'VAL-3': oddly.key.publicKey },
    ],
    ['keys of others, too', {}, 'valid', { ...all, ...keysOf([v4, stranger]) }],
    ['something else for others', {}, 'valid', { ...all, 'val-4': null, stranger: [7] }],
  ]);
});

test('two validators with one key count as two: that is what the caller says', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const twin = { ...v2, key: v1.key };
  const votes = votesOf(now, [v1, twin]);
  await checkCases(na, [
    ['the key given for both', { votes }, 'valid', keysOf([v1, twin])],
    ['the key given for one', { votes }, 'unknown_validator_key', keysOf([v1])],
    ['another key given for the twin', { votes }, 'invalid_vote_signature', keysOf([v1, v2])],
  ]);
});

test('validators may be called like members that every object has', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', ''];
  const voters = names.map((name) => sovereign(name));
  const proof = {
    votes: voters.map((voter, index) => voteOf(voter, now, { after: 60 * index })),
    validator_sovereign_ids: names,
    required_threshold: names.length,
  };
  await checkCases(na, [
    ['all with their keys', proof, 'valid', keysOf(voters)],
    ...voters.map(
      (voter, index): VerifyCase => [
        `${names[index]} without key`,
        proof,
        'unknown_validator_key',
        keysOf(voters.filter((other) => other !== voter)),
      ],
    ),
    ['none with keys', proof, 'unknown_validator_key', keysOf([v1])],
    [
      'none named',
      { ...proof, validator_sovereign_ids: ['val-1'] },
      'vote_not_in_validator_set',
      keysOf(voters),
    ],
  ]);
});

// What cannot be verified at all

/** In the order of [trust-6-6]. */
const INPUT_FAULTS: readonly Fault<JsonObject>[] = [
  ['400 missing_proof missing_proof', { proof: null }],
  ['400 invalid_proof invalid_proof', { proof: { consensus_id: 'c' } }],
  ['400 invalid_proof invalid_keys', { assembler_public_keys: 'key' }],
  [
    '400 missing_validator_public_keys missing_validator_public_keys',
    { validator_public_keys: null },
  ],
];

test('what cannot be verified at all is refused', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const body = verification(now);
  for (const { name, expected, draft } of faultsTogether(INPUT_FAULTS)) {
    await t.test(name, async () => {
      const answer = await post(na, VERIFY, { ...body, ...draft });
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  for (const [name, proof] of MISSING) {
    await t.test(`the proof is ${name}`, async () => {
      const answer = await post(na, VERIFY, { ...body, proof });
      assert.equal(outcome(answer), '400 missing_proof');
    });
  }
  for (const [name, validator_public_keys] of [
    ...valuesExcept('an object'),
    ['a list of keys', COUNCIL.map(({ key }) => key.publicKey)],
    ['0.0', new JsonFloat(0)],
  ] as [string, JsonValue][]) {
    await t.test(`the keys of validators are ${name}`, async () => {
      const answer = await post(na, VERIFY, { ...body, validator_public_keys });
      assert.equal(outcome(answer), '400 missing_validator_public_keys');
    });
  }
  await t.test('without the keys of validators', async () => {
    const answer = await post(na, VERIFY, without(body, 'validator_public_keys'));
    assert.equal(outcome(answer), '400 missing_validator_public_keys');
  });
  await t.test('unsigned, and without the keys of validators', async () => {
    const proof = { ...inner(body, 'proof'), signature: null };
    const answer = await post(na, VERIFY, { proof });
    assert.equal(outcome(answer), '400 missing_validator_public_keys');
  });
});

test('how much one proof may hold', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const many = (count: number) => Array.from({ length: count }, (_, index) => `other-${index}`);
  const [first = {}, second = {}] = votesOf(now);
  const repeated = (count: number) => [second, ...Array.from({ length: count - 1 }, () => first)];
  const keys = (count: number) =>
    Object.fromEntries([
      ...Object.entries(keysOf(COUNCIL)),
      ...many(count - 3).map((id) => [id, '']),
    ]);
  const named = (count: number) => [...namesOf(COUNCIL), ...many(count - 3)];
  for (const [name, changes, body, expected] of [
    ['256 votes', { votes: repeated(256) }, {}, '200'],
    ['257 votes', { votes: repeated(257) }, {}, '400 invalid_proof invalid_proof'],
    ['256 validators', { validator_sovereign_ids: named(256) }, {}, '200'],
    [
      '257 validators',
      { validator_sovereign_ids: named(257) },
      {},
      '400 invalid_proof invalid_proof',
    ],
    ['256 keys of validators', {}, { validator_public_keys: keys(256) }, '200'],
    [
      '257 keys of validators',
      {},
      { validator_public_keys: keys(257) },
      '400 invalid_proof too_many_validators',
    ],
    [
      '33 keys of assemblers',
      {},
      { assembler_public_keys: many(33) },
      '400 invalid_proof too_many_keys',
    ],
    [
      'a threshold of 1.5',
      { required_threshold: new JsonFloat(1.5) },
      {},
      '400 invalid_proof invalid_proof',
    ],
    [
      'a threshold of 2 to the 53',
      { required_threshold: 2n ** 53n },
      {},
      '400 invalid_proof invalid_proof',
    ],
    ['a threshold in text', { required_threshold: '2' }, {}, '400 invalid_proof invalid_proof'],
    ['a naive end', { expires_at: '2099-01-01T00:00:00' }, {}, '400 invalid_proof invalid_proof'],
    ['a vote that is null', { votes: [null] }, {}, '400 invalid_proof invalid_proof'],
  ] as [string, JsonObject, JsonObject, string][]) {
    await t.test(`${name}: ${expected}`, async () => {
      const answer = await post(na, VERIFY, { ...verification(now, changes), ...body });
      assert.equal(outcomeWithCause(answer), expected);
      if (expected === '200') assert.equal(answer.body.reason, 'valid');
    });
  }
});

test('a proof is verified as it is read, not as it is spelled', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const { proof, ...keys } = verification(now);
  const genuine = proof as JsonObject;
  const votes = genuine.votes as JsonObject[];
  const float = { required_threshold: new JsonFloat(2) };
  const invalid = 'invalid_assembler_signature';
  for (const [name, sent, expected] of [
    ['a threshold that is sent as 2.0', { ...genuine, ...float }, 'valid'],
    [
      'a threshold that was signed as 2.0',
      singlySigned({ ...genuine, ...float }, assembler.key),
      invalid,
    ],
    ['a member nobody knows', { ...genuine, extra: 1 }, 'valid'],
    [
      'votes with a member nobody knows',
      { ...genuine, votes: votes.map((vote) => ({ ...vote, extra: 1 })) },
      'valid',
    ],
    [
      'a signed member that nobody knows',
      singlySigned({ ...genuine, extra: 1 }, assembler.key),
      invalid,
    ],
    ['no signature', without(genuine, 'signature'), 'missing_signature'],
    ['no time of its making', without(genuine, 'reached_at'), invalid],
    ['no votes', without(genuine, 'votes'), invalid],
    ['another order of its votes', { ...genuine, votes: votes.toReversed() }, invalid],
    ['one vote less', { ...genuine, votes: votes.slice(1) }, invalid],
    ['any key id', singlySigned(genuine, assembler.key, 'somebody'), 'valid'],
  ] as [string, JsonObject, string][]) {
    assert.equal(await reasonOf(na, { ...keys, proof: sent }), expected, name);
  }
});

// Hostile bodies

test('no member of a request to verify, spoiled, is an error of ours or passes for genuine', async () => {
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

test('no member of an operator request, spoiled, is an error of ours', async () => {
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

// The front door

test('operators are known before any member of the body is read', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  for (const [path, body] of [
    [VOTE, { justification_proof: justification(now), vote: true }],
    [ASSEMBLE, assembly(now)],
  ] as [string, JsonObject][]) {
    for (const [name, expected, ask] of AT_THE_OPERATORS_DOOR) {
      await t.test(`${path}, ${name}: ${expected}`, async () => {
        assert.equal(outcome(await ask(na, path, body)), expected);
      });
    }
  }
});

test('public requests are JSON objects of a bounded size', async (t) => {
  await using na = await startUnlimited();
  for (const [name, expected, body] of AT_THE_PUBLIC_DOOR) {
    await t.test(`${name}: ${expected}`, async () => {
      assert.equal(outcome(await send(na, 'POST', VERIFY, { body })), expected);
    });
  }
});

test('both operator routes share the admin bucket, the public one has its own', async () => {
  const environment = { MESH_RATE_LIMIT_ADMIN: '2/60', MESH_RATE_LIMIT_VERIFY: '' };
  await using na = await startUnlimited({ environment });
  assert.equal(outcome(await operate(na, VOTE)), '400 missing_vote_fields');
  assert.equal(outcome(await operate(na, ASSEMBLE)), '400 missing_proof_fields');
  for (const path of [VOTE, ASSEMBLE, '/admin/disclosure/commit']) {
    assert.equal(outcome(await operate(na, path)), LIMITED);
  }
  for (let count = 0; count < 60; count += 1) {
    assert.equal(outcome(await post(na, VERIFY, {})), '400 missing_proof');
  }
  assert.equal(outcome(await post(na, VERIFY, {})), LIMITED);
  assert.equal(outcome(await post(na, '/data-usage/verify', {})), '400 missing_verify_fields');
});
