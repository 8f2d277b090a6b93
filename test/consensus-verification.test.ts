/**
 * Why a proof does not show consensus [service-consensus-verification-rules], [trust-4-7], [trust-6-6];
 * `verifications.test.ts` has what all verifications share.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyConsensus } from '../src/protocol/api/verifications.ts';
import { MINUTE } from './support/clock.ts';
import {
  assembler,
  COUNCIL,
  checkProofs,
  keysOf,
  namesOf,
  proofBy,
  sha256,
  stranger,
  v1,
  v2,
  v3,
  v4,
  verification,
  voteOf,
  votesOf,
} from './support/consensus.ts';
import { misspelledKeys, valuesExcept, WEAK_KEYS } from './support/hostile.ts';
import { newKey } from './support/requests.ts';
import { checkFaults, type Fault, inEach } from './support/tables.ts';
import { misspellableKey, sovereign } from './support/trust.ts';
import { inner, type Party, singlySigned, without } from './support/trust-protocol.ts';
import { checkVerdicts, eachAs, NOW, resultOf, us } from './support/verifications.ts';

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

function spoiledVerification(draft: VerifyDraft): JsonObject {
  const same = draft.alike ? { context_digest: sha256('shared') } : {};
  const votes = [...COUNCIL, v4].map((voter, index) =>
    voteOf(voter, NOW, { after: 60 * index, ...same }),
  );
  if (draft.undigested) votes[3] = voteOf(v4, NOW, { after: 180, context_digest: null });
  if (draft.foreignVote) votes.push(voteOf(v1, NOW, { after: 240, proof_id: 'another' }));
  if (draft.unsignedVote) votes.push({ ...voteOf(v1, NOW, { after: 240 }), signature: null });
  if (draft.outsider) votes.push(voteOf(stranger, NOW, { after: 240 }));
  const proof = proofBy(assembler, NOW, {
    votes,
    required_threshold: draft.threshold ?? 2,
    validator_sovereign_ids: namesOf([...COUNCIL, v4]),
    ...(draft.over && { expires_at: formatInstant(NOW) }),
  });
  return {
    proof: draft.unsigned ? { ...proof, signature: null } : proof,
    validator_public_keys: keysOf([...COUNCIL, v4]),
    assembler_public_keys: draft.assembler ?? [assembler.key.publicKey],
  };
}

test('the first reason why there is no consensus is reported', async () => {
  const reasonOf = (draft: VerifyDraft) => resultOf(verifyConsensus, spoiledVerification(draft));
  assert.equal(await reasonOf({}), 'valid');
  await checkFaults(VERIFY_FAULTS, reasonOf);
});

const [first = {}, second = {}, third = {}] = votesOf(NOW);

/** Two votes that are enough, and others. */
function afterTwo(...others: readonly JsonObject[]): JsonObject {
  return { votes: [first, second, ...others] };
}

test('each vote is checked in turn: signed, by a known key, genuine', async () => {
  const unsigned = (vote: JsonObject) => ({ ...vote, signature: null });
  const forged = (vote: JsonObject) => singlySigned(vote, newKey(), 'val-3');
  const of3 = (changes: JsonObject) => voteOf(v3, NOW, changes);
  const against = of3({ after: 120, vote: false });
  const outside = voteOf(stranger, NOW, { after: 180 });
  const outsideAgainst = voteOf(stranger, NOW, { vote: false });
  const extra = without(singlySigned({ ...third, extra: 1 }, v3.key), 'extra');
  await checkProofs({
    valid: {
      'all signed, with keys': {},
      'one with any key id': afterTwo(singlySigned(third, v3.key, 'somebody')),
      'one with the key id of another': afterTwo(singlySigned(third, v3.key, 'val-1')),
      'one against it': afterTwo(against),
      'one against it, on another proof': afterTwo(of3({ vote: false, proof_id: 'x' })),
      'an outsider against it': afterTwo(outsideAgainst),
      'an outsider against it, unsigned': afterTwo(unsigned(outsideAgainst)),
      'an outsider against it, forged': afterTwo(forged(outsideAgainst)),
    },
    // [service-consensus-verification-2]: the proof is rejected rather than the vote skipped, although two others are
    // enough.
    invalid_vote_signature: {
      'one unsigned': afterTwo(unsigned(third)),
      'a second vote of one validator, unsigned': afterTwo(unsigned(voteOf(v1, NOW))),
      'one forged': afterTwo(forged(third)),
      'one changed after it was signed': afterTwo({ ...third, reason: 'r' }),
      'one signed by another validator': afterTwo(singlySigned(third, v1.key, 'val-3')),
      'one with a signature that is none': afterTwo({
        ...third,
        signature: { key_id: '', sig: '' },
      }),
      'a signed member that nobody knows': afterTwo(extra),
      'one against it, unsigned': afterTwo(unsigned(against)),
      'one against it, forged': afterTwo(forged(against)),
      'an outsider, then an unsigned vote': { votes: [outside, first, unsigned(second)] },
    },
    vote_not_in_validator_set: {
      'an outsider for it': afterTwo(outside),
      'an outsider for it, unsigned': afterTwo(unsigned(outside)),
      'an outsider for it, forged': afterTwo(forged(outside)),
      'an outsider for another proof': afterTwo(voteOf(stranger, NOW, { proof_id: 'x' })),
      'a name in capitals': afterTwo(voteOf({ ...v3, name: 'VAL-3' }, NOW)),
    },
    proof_id_mismatch: {
      'one for another proof': afterTwo(of3({ proof_id: 'x' })),
      'one for another decision': afterTwo(of3({ decision_id: 'x' })),
      'one for the proof in capitals': afterTwo(of3({ proof_id: 'JUSTIFICATION' })),
      'all for another proof than the whole': { proof_id: 'another' },
      'all for another decision than the whole': { decision_id: 'another' },
      'an unsigned one for another proof, last': {
        votes: [unsigned(first), second, of3({ proof_id: 'x' })],
      },
    },
  });
  // Votes against, cast by named validators, need no key, but they do need a signature.
  await checkProofs(
    {
      unknown_validator_key: { 'one without key': {} },
      invalid_vote_signature: {
        'one unsigned and without key': afterTwo(unsigned(third)),
        'one against it, unsigned, without key': afterTwo(unsigned(against)),
      },
      valid: {
        'one against it, without key': afterTwo(against),
        'one against it, forged, without key': afterTwo(forged(against)),
      },
    },
    keysOf([v1, v2]),
  );
  // The first faulty vote determines the reason.
  await checkProofs(
    {
      unknown_validator_key: {
        'without key, then unsigned': afterTwo(unsigned(third)),
        'without key, then forged': afterTwo(forged(third)),
      },
      invalid_vote_signature: {
        'unsigned, then without key': { votes: [unsigned(third), second, first] },
        'forged, then without key': { votes: [forged(third), second, first] },
      },
    },
    keysOf([v2, v3]),
  );
  await checkProofs(
    {
      vote_not_in_validator_set: {
        'an outsider for it, with key': afterTwo(outside),
        'an outsider for it, unsigned, with key': afterTwo(unsigned(outside)),
      },
      invalid_vote_signature: {
        'an outsider for it, forged, with key': afterTwo(forged(outside)),
        'an outsider against it, forged, with key': afterTwo(forged(outsideAgainst)),
      },
      valid: { 'an outsider against it, unsigned, with key': afterTwo(unsigned(outsideAgainst)) },
    },
    keysOf([...COUNCIL, stranger]),
  );
});

test('the threshold counts distinct approving validators', () => {
  const again = [60, 120, 180].map((after) => voteOf(v1, NOW, { after }));
  const against = (voter: Party) => voteOf(voter, NOW, { after: 200, vote: false });
  const ofTwo = { validator_sovereign_ids: ['val-1', 'val-2'] };
  return checkProofs({
    valid: {
      'three of three': { required_threshold: 3 },
      'two, where two are needed': afterTwo(),
      'one, where one is needed': { votes: [first], required_threshold: 1 },
      'one validator four times and another': { votes: [first, ...again, second] },
      'one that is for and against it': afterTwo(against(v1)),
      'one that is against it and then for it': { votes: [against(v1), first, second] },
    },
    threshold_not_met: {
      'three, where four are needed': { required_threshold: 4 },
      'two, where three are needed': { ...afterTwo(), required_threshold: 3 },
      none: { votes: [] },
      'none, where none is needed': { votes: [], required_threshold: 0 },
      'three, where none is needed': { required_threshold: 0 },
      'three, where less than none is needed': { required_threshold: -1 },
      'three, where the largest number is needed': { required_threshold: 2 ** 53 - 1 },
      'one validator four times': { votes: [first, ...again] },
      'the same vote twice': { votes: [first, first] },
      'a set that repeats a name': { votes: [first], validator_sovereign_ids: ['val-1', 'val-1'] },
      'two against it': { votes: [first, against(v2), against(v3)] },
      'all against it': { votes: COUNCIL.map(against), required_threshold: 1 },
      'an empty set': { votes: [], validator_sovereign_ids: [] },
    },
    vote_not_in_validator_set: {
      'a third vote left out of the set': { ...afterTwo(third), ...ofTwo },
    },
  });
});

test('votes that look like copies of each other make no consensus', async () => {
  const [digest, other] = [sha256('shared'), sha256('another')];
  const crowd = Array.from({ length: 8 }, (_, index) => sovereign(`crowd-${index}`));
  /** The first `alike` votes carry the shared digest; consecutive votes are `gap` seconds apart. */
  const ofCrowd = (alike: number, of: number, gap: number, rest = {}) => ({
    validator_sovereign_ids: namesOf(crowd),
    votes: crowd.slice(0, of).map((voter, index) => {
      const changes = index < alike ? { context_digest: digest } : rest;
      return voteOf(voter, NOW, { after: gap * index, ...changes });
    }),
  });
  await checkProofs(
    {
      valid: {
        '5 of 8, spread out: the score is 0.4': ofCrowd(5, 8, 30),
        '2 of 8, at one moment: the score is 0.4': ofCrowd(2, 8, 0),
        'two digests in two pairs': ofCrowd(2, 4, 60, { context_digest: other }),
      },
      cascade_detected: {
        '6 of 8, spread out': ofCrowd(6, 8, 30),
        '3 of 8, at one moment': ofCrowd(3, 8, 0),
        '5 of 8, a little closer in time': ofCrowd(5, 8, 12),
      },
    },
    keysOf(crowd),
  );

  const own = (voter: Party, after: number) => voteOf(voter, NOW, { after });
  const bearing = (voter: Party, context_digest: string | null, after = 0) =>
    voteOf(voter, NOW, { after, context_digest });
  const shared = (voter: Party, after: number) => bearing(voter, digest, after);
  const castAt = (voted_at: string, changes = {}) =>
    COUNCIL.map((voter) => voteOf(voter, NOW, { voted_at, ...changes }));
  const alike = { context_digest: digest };
  const copies = [shared(v1, 0), shared(v2, 60), shared(v3, 120)];
  const dilution = [130, 140, 150].flatMap((after) => COUNCIL.map((voter) => own(voter, after)));
  const against = voteOf(v3, NOW, { after: 61, vote: false, context_digest: digest });
  const undigested = voteOf(v3, NOW, { vote: false, context_digest: null });
  await checkProofs({
    valid: {
      'digests of their own, spread out': {},
      'digests of their own, at one moment': { votes: COUNCIL.map((voter) => own(voter, 0)) },
      'one digest in two of three': { votes: [shared(v1, 0), shared(v2, 60), own(v3, 120)] },
      'a single vote with any digest': { votes: [shared(v1, 0)], required_threshold: 1 },
      'digests that differ in case': {
        votes: [shared(v1, 0), bearing(v2, digest.toUpperCase(), 60)],
      },
      'an empty text for a digest': { votes: [bearing(v1, ''), own(v2, 60)] },
      'a vote against it with the digest of another': {
        votes: [shared(v1, 0), own(v2, 60), against],
      },
      'copies that come second in the same moment': {
        votes: [own(v1, 0), own(v2, 60), own(v3, 120), ...copies],
      },
      'copies that are cast later than the first votes': {
        votes: [...COUNCIL.map((voter) => shared(voter, 200)), ...votesOf(NOW)],
      },
      'one against it without digest': { votes: [own(v1, 0), own(v2, 60), undigested] },
    },
    cascade_detected: {
      'one digest in all': { votes: copies },
      'one digest in two of three, at one moment': {
        votes: [shared(v1, 0), shared(v2, 0), own(v3, 0)],
      },
      'one digest in two of two': { votes: [shared(v1, 0), shared(v2, 60)] },
      'two empty texts for digests': { votes: [bearing(v1, ''), bearing(v2, '', 60)] },
      // Only a validator's first vote counts, whatever it casts later.
      'copies, diluted by later votes': { votes: [...copies, ...dilution] },
      'copies, diluted by later votes that come first': {
        votes: [...COUNCIL.map((voter) => own(voter, 200)), ...copies],
      },
      'copies, diluted by a vote of the same moment': {
        votes: [...copies, own(v1, 0), own(v2, 60), own(v3, 120)],
      },
      'copies cast before by a microsecond': {
        votes: [
          ...castAt('2026-01-15T12:00:00.000002Z'),
          ...castAt('2026-01-15T12:00:00.000001Z', alike),
        ],
      },
      'copies cast before, in another zone': {
        votes: [...castAt('2026-01-15T12:00:00Z'), ...castAt('2026-01-15T13:59:59+02:00', alike)],
      },
    },
    // Every counted vote needs a digest, even if it is not the validator's first.
    missing_context_digest: {
      'one without digest': { votes: [own(v1, 0), own(v2, 60), bearing(v3, null, 120)] },
      'all without digest': { votes: [bearing(v1, null), bearing(v2, null, 60)] },
      'a later one without digest': { votes: [own(v1, 0), own(v2, 60), bearing(v1, null, 120)] },
      'one without digest among copies': {
        votes: [shared(v1, 0), shared(v2, 60), bearing(v3, null, 120)],
      },
    },
  });
});

test('a proof is valid until its end, which is checked last', () => {
  const at = (instant: number) => ({ expires_at: formatInstant(instant) });
  return checkProofs({
    valid: {
      'a millisecond before its end': at(NOW + 1),
      'a microsecond before its end': at(NOW + 0.001),
      'long before its end': { expires_at: '9999-12-31T23:59:59.999999Z' },
      'before its end in another zone': { expires_at: '9999-12-31T23:59:59-12:00' },
      'made in the future': { reached_at: formatInstant(NOW + MINUTE) },
      'without assessment': { cascade_assessment_digest: null },
    },
    expired: {
      'at its end': at(NOW),
      'after its end': at(NOW - 1),
      'long after its end': { expires_at: '0001-01-01T00:00:00Z' },
    },
    threshold_not_met: { 'after its end, with votes too few': { ...at(NOW), votes: [first] } },
  });
});

// Which keys of validators count, and which requests cannot be verified

test('a validator does not sign for the assembler', async () => {
  const validator_public_keys = keysOf(COUNCIL);
  const ours = { proof: proofBy(us, NOW), validator_public_keys };
  await checkVerdicts(verifyConsensus, {
    invalid_assembler_signature: {
      'the key of another, and ours': { ...ours, assembler_public_keys: [v1.key.publicKey] },
      'no list, and signed by a validator': { ...ours, proof: proofBy(v1, NOW) },
    },
  });
});

test('keys that validators are known by', async () => {
  const all = keysOf(COUNCIL);
  const oddly = sovereign('val-3', misspellableKey());
  const changes = { votes: votesOf(NOW, [v1, v2, oddly]) };
  const valid = (cases: { readonly [name: string]: JsonObject }) => ({ valid: cases });
  await checkProofs(valid({ 'its own': changes }), { ...all, 'val-3': oddly.key.publicKey });
  await checkProofs(valid({ 'keys of others, too': {} }), { ...all, ...keysOf([v4, stranger]) });
  await checkProofs(valid({ 'something else for others': {} }), {
    ...all,
    'val-4': null,
    stranger: [7],
  });
  for (const [name, key] of [
    ...valuesExcept('a string'),
    ...misspelledKeys(oddly.key.publicKey),
    ...WEAK_KEYS.map((weak) => [`the weak key ${weak}`, weak] as const),
    ['the key in a list', [oddly.key.publicKey]] as const,
    ['another key', v1.key.publicKey] as const,
  ]) {
    const table = { invalid_vote_signature: { [name]: changes } };
    await checkProofs(table, { ...all, 'val-3': key });
  }
  const inCapitals = { ...keysOf([v1, v2]), 'VAL-3': oddly.key.publicKey };
  for (const keys of [keysOf([v1, v2]), inCapitals]) {
    await checkProofs({ unknown_validator_key: { 'none of its own': changes } }, keys);
  }
});

test('two validators with one key count as two: that is what the caller specified', async () => {
  const twin = { ...v2, key: v1.key };
  const proof = { votes: votesOf(NOW, [v1, twin]) };
  await checkProofs({ valid: { 'the key given for both': proof } }, keysOf([v1, twin]));
  await checkProofs({ unknown_validator_key: { 'the key given for one': proof } }, keysOf([v1]));
  const another = { invalid_vote_signature: { 'another key given for the twin': proof } };
  await checkProofs(another, keysOf([v1, v2]));
});

test('validators can have the names of members that every object has', async () => {
  const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', ''];
  const voters = names.map((name) => sovereign(name));
  const proof = {
    votes: votesOf(NOW, voters),
    validator_sovereign_ids: names,
    required_threshold: names.length,
  };
  const unnamed = { ...proof, validator_sovereign_ids: ['val-1'] };
  const keys = keysOf(voters);
  await checkProofs({ valid: { all: proof }, vote_not_in_validator_set: { none: unnamed } }, keys);
  for (const known of [...voters.map((voter) => voters.filter((other) => other !== voter)), [v1]]) {
    const missing = { unknown_validator_key: { [namesOf(known).join()]: proof } };
    await checkProofs(missing, keysOf(known));
  }
});

test('a proof that cannot be verified at all is refused', async () => {
  const body = verification(NOW);
  const { validator_public_keys: _, ...keyless } = body;
  await checkVerdicts(
    verifyConsensus,
    {
      '400 missing_validator_public_keys missing_validator_public_keys': {
        ...inEach('validator_public_keys', [
          ...valuesExcept('an object'),
          ['a list of keys', COUNCIL.map(({ key }) => key.publicKey)],
          ['0.0', new JsonFloat(0)],
        ]),
        'unsigned, no keys': {
          proof: { ...inner(body, 'proof'), signature: null },
          validator_public_keys: null,
        },
      },
      '400 invalid_proof invalid_proof': {
        'a wrong proof, no keys': { proof: { consensus_id: 'c' }, validator_public_keys: null },
      },
      '400 invalid_proof invalid_keys': {
        'wrong keys, no keys': { assembler_public_keys: 'key', validator_public_keys: null },
      },
    },
    body,
  );
  const missing = '400 missing_validator_public_keys missing_validator_public_keys';
  await checkVerdicts(verifyConsensus, { [missing]: { 'no keys of validators': keyless } });
});

test('the size of one proof', async () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => `other-${index}`);
  const [first = {}, second = {}] = votesOf(NOW);
  const votes = (count: number) => ({ votes: [second, ...Array(count - 1).fill(first)] });
  const keys = (count: number) => ({
    validator_public_keys: {
      ...keysOf(COUNCIL),
      ...Object.fromEntries(many(count - 3).map((id) => [id, ''])),
    },
  });
  const named = (count: number) => ({
    validator_sovereign_ids: [...namesOf(COUNCIL), ...many(count - 3)],
  });
  await checkProofs({
    valid: { '256 votes': votes(256), '256 validators': named(256) },
    '400 invalid_proof invalid_proof': {
      '257 votes': votes(257),
      '257 validators': named(257),
      'a threshold of 1.5': { required_threshold: new JsonFloat(1.5) },
      'a threshold of 2 to the 53': { required_threshold: 2n ** 53n },
      'a threshold in text': { required_threshold: '2' },
      'a naive end': { expires_at: '2099-01-01T00:00:00' },
      'a vote that is null': { votes: [null] },
    },
  });
  await checkVerdicts(
    verifyConsensus,
    {
      valid: { '256 keys of validators': keys(256) },
      '400 invalid_proof too_many_validators': { '257 keys of validators': keys(257) },
      '400 invalid_proof too_many_keys': {
        '33 keys of assemblers': { assembler_public_keys: many(33) },
      },
    },
    verification(NOW),
  );
});

test('a proof is verified by what it means, not by how it is spelled', async () => {
  const { proof, ...keys } = verification(NOW);
  const genuine = proof as JsonObject;
  const votes = genuine.votes as JsonObject[];
  const altered = (changes: JsonObject) => ({ ...genuine, ...changes });
  const signed = (changes: JsonObject) => singlySigned(altered(changes), assembler.key);
  const float = { required_threshold: new JsonFloat(2) };
  await checkVerdicts(
    verifyConsensus,
    {
      valid: eachAs('proof', {
        'a threshold that is sent as 2.0': altered(float),
        'a member nobody knows': altered({ extra: 1 }),
        'votes with a member nobody knows': altered({
          votes: votes.map((vote) => ({ ...vote, extra: 1 })),
        }),
        'any key id': singlySigned(genuine, assembler.key, 'somebody'),
      }),
      invalid_assembler_signature: eachAs('proof', {
        'a threshold that was signed as 2.0': signed(float),
        'a signed member that nobody knows': signed({ extra: 1 }),
        'no time of its making': without(genuine, 'reached_at'),
        'no votes': without(genuine, 'votes'),
        'another order of its votes': altered({ votes: votes.toReversed() }),
        'one vote less': altered({ votes: votes.slice(1) }),
      }),
      missing_signature: eachAs('proof', { 'no signature': without(genuine, 'signature') }),
    },
    keys,
  );
});
