/** Which keys count for a proof of consensus, and which requests cannot be verified at all [trust-6-6]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import {
  assembler,
  COUNCIL,
  checkCases,
  keysOf,
  namesOf,
  proofBy,
  reasonOf,
  stranger,
  VERIFY,
  type VerifyCase,
  v1,
  v2,
  v4,
  verification,
  voteOf,
  votesOf,
} from './support/consensus.ts';
import { type Fault, faultsTogether } from './support/faults.ts';
import { misspelledKeys, valuesExcept, WEAK_KEYS } from './support/hostile.ts';
import { outcome } from './support/requests.ts';
import { misspellableKey, post, sovereign, startUnlimited } from './support/trust.ts';
import {
  inner,
  keyListCases,
  MISSING,
  ourselves,
  outcomeWithCause,
  singlySigned,
  without,
} from './support/trust-protocol.ts';

// Keys

test('keys that an assembler is known by', async (t) => {
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

test('keys that validators are known by', async () => {
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

test('two validators with one key count as two: that is what the caller specified', async () => {
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

test('validators can have the names of members that every object has', async () => {
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

// Requests that cannot be verified at all

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

test('a proof that cannot be verified at all is refused', async (t) => {
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

test('the size of one proof', async (t) => {
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

test('a proof is verified by what it means, not by how it is spelled', async () => {
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
