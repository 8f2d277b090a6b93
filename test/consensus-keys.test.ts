/** Which keys of validators count for a proof of consensus, and which requests cannot be verified [trust-6-6]. */
import { test } from 'node:test';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { verifyConsensus } from '../src/protocol/api/verifications.ts';
import {
  assembler,
  COUNCIL,
  checkProofs,
  keysOf,
  namesOf,
  proofBy,
  stranger,
  v1,
  v2,
  v4,
  verification,
  votesOf,
} from './support/consensus.ts';
import { misspelledKeys, valuesExcept, WEAK_KEYS } from './support/hostile.ts';
import { inEach } from './support/tables.ts';
import { misspellableKey, sovereign } from './support/trust.ts';
import { inner, singlySigned, without } from './support/trust-protocol.ts';
import { checkVerdicts, eachAs, NOW, us } from './support/verifications.ts';

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
