/** Verification of disclosed capabilities [trust-6-4], [trust-6-5]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import {
  hashOf,
  leavesOf,
  PADDING,
  parentOf,
  pathOf,
  proofOf,
  repeated,
  rootOf,
  SET,
  VERIFY,
  verification,
} from './support/disclosure.ts';
import { type Fault, faultsTogether } from './support/faults.ts';
import { respelled } from './support/hostile.ts';
import { newKey, outcome } from './support/requests.ts';
import { stateDigest } from './support/test-stores.ts';
import { audited, misspellableKey, post, sovereign, startUnlimited } from './support/trust.ts';
import {
  inner,
  keyListCases,
  MISSING,
  ourselves,
  outcomeWithCause,
  singlySigned,
  without,
} from './support/trust-protocol.ts';

/** The root computed from a leaf and its path. */
function climb(leaf: string, path: readonly JsonObject[]): string {
  return path.reduce((current, { sibling_hash, is_left }) => {
    const sibling = String(sibling_hash);
    return is_left ? parentOf(sibling, current) : parentOf(current, sibling);
  }, leaf);
}

interface VerifyDraft {
  readonly unsigned?: true;
  readonly keys?: readonly string[];
  readonly proof?: JsonObject;
  readonly commitmentId?: string;
}

/** In the order of [trust-6-5]. */
const VERIFY_FAULTS: readonly Fault<VerifyDraft>[] = [
  ['commitment_not_signed', { unsigned: true }],
  ['commitment_invalid_signature', { keys: [] }],
  ['path_length_inconsistent', { proof: { merkle_path: [], leaf_hash: PADDING } }],
  ['leaf_hash_mismatch', { proof: { leaf_hash: PADDING } }],
  ['root_mismatch', { commitmentId: 'another' }],
];

test('the first reason why a capability was not committed to is reported and logged', async (t) => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const before = await stateDigest(na);
  for (const { name, expected, draft } of faultsTogether(VERIFY_FAULTS)) {
    await t.test(name, async () => {
      const { commitment, proof } = verification(beta, na.clock.now());
      const signed = draft.unsigned ? { ...commitment, signature: null } : commitment;
      const { commitmentId = proof.commitment_id ?? null } = draft;
      const answer = await post(na, VERIFY, {
        commitment: signed,
        proof: { ...proof, ...draft.proof, commitment_id: commitmentId },
        issuer_public_keys: draft.keys ?? [beta.key.publicKey],
      });
      assert.equal(answer.status, 200);
      const verdict = { valid: false, reason: expected, commitment_id: 'commitment' };
      assert.deepEqual(answer.body, verdict);
      assert.deepEqual(audited(na, 'capability_proof_verified').at(-1), {
        commitment_id: 'commitment',
        valid: false,
      });
    });
  }
  assert.equal(await stateDigest(na), before);
});

/** Signed by the issuer, so that only what the case names is wrong. */
interface Presented {
  readonly commitment?: JsonObject;
  readonly proof?: JsonObject;
}

const PATH = pathOf(leavesOf(SET), 2);
const [NEXT = {}, TOP = {}] = PATH;
const READ = proofOf(SET, 'read').merkle_path as JsonObject[];

test('faults of a single proof', async (t) => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const long = Array.from({ length: 53 }, (_, index) => ({
    sibling_hash: hashOf(`${index}`),
    is_left: index % 2 === 0,
  }));
  const [upper, sibling] = [(text: string) => text.toUpperCase(), String(NEXT.sibling_hash)];
  for (const [name, { commitment = {}, proof = {} }, expected] of [
    ['nothing', {}, 'valid'],
    [
      'another id, prover and time, which nobody signs',
      { proof: { proof_id: 'x', prover_sovereign_id: '', proved_at: '2020-01-01T00:00:00+02:00' } },
      'valid',
    ],
    ['a member nobody knows', { proof: { extra: 1 } }, 'valid'],
    [
      'a sibling in capitals, which are hex digits too',
      { proof: { merkle_path: [{ ...NEXT, sibling_hash: upper(sibling) }, TOP] } },
      'valid',
    ],
    ['the count 4, with the same path length', { commitment: { capability_count: 4 } }, 'valid'],
    ['the count 5', { commitment: { capability_count: 5 } }, 'path_length_inconsistent'],
    ['the count 2', { commitment: { capability_count: 2 } }, 'path_length_inconsistent'],
    ['the count 1', { commitment: { capability_count: 1 } }, 'path_length_inconsistent'],
    ['the count 0', { commitment: { capability_count: 0 } }, 'path_length_inconsistent'],
    [
      'the count 0 and no path',
      {
        commitment: { capability_count: 0, merkle_root: hashOf('write') },
        proof: { merkle_path: [] },
      },
      'path_length_inconsistent',
    ],
    [
      'the count 1 and no path',
      {
        commitment: { capability_count: 1, merkle_root: hashOf('write') },
        proof: { merkle_path: [] },
      },
      'valid',
    ],
    ['a negative count', { commitment: { capability_count: -3 } }, 'path_length_inconsistent'],
    [
      'the largest count, with its path of 53 nodes',
      {
        commitment: { capability_count: 2 ** 53 - 1, merkle_root: climb(hashOf('write'), long) },
        proof: { merkle_path: long },
      },
      'valid',
    ],
    [
      '2 to the 31 leaves',
      {
        commitment: {
          capability_count: 2 ** 31,
          merkle_root: climb(hashOf('write'), long.slice(0, 31)),
        },
        proof: { merkle_path: long.slice(0, 31) },
      },
      'valid',
    ],
    [
      'one leaf more than 2 to the 31',
      {
        commitment: {
          capability_count: 2 ** 31 + 1,
          merkle_root: climb(hashOf('write'), long.slice(0, 31)),
        },
        proof: { merkle_path: long.slice(0, 31) },
      },
      'path_length_inconsistent',
    ],
    [
      'a path of 64 nodes',
      { proof: { merkle_path: Array.from({ length: 64 }, () => NEXT) } },
      'path_length_inconsistent',
    ],
    ['a path that is too short', { proof: { merkle_path: [NEXT] } }, 'path_length_inconsistent'],
    ['no path', { proof: { merkle_path: [] } }, 'path_length_inconsistent'],
    [
      'a path that is too long',
      { proof: { merkle_path: [...PATH, TOP] } },
      'path_length_inconsistent',
    ],
    [
      'an inner node for a leaf',
      { proof: { leaf_hash: parentOf(hashOf('write'), PADDING), merkle_path: [TOP] } },
      'path_length_inconsistent',
    ],
    [
      'an inner node for a leaf, with a path of the right length',
      {
        commitment: { capability_count: 2 },
        proof: { leaf_hash: parentOf(hashOf('write'), PADDING), merkle_path: [TOP] },
      },
      'leaf_hash_mismatch',
    ],
    [
      'the leaf of another capability',
      { proof: { leaf_hash: hashOf('read') } },
      'leaf_hash_mismatch',
    ],
    [
      'the leaf in capitals',
      { proof: { leaf_hash: upper(hashOf('write')) } },
      'leaf_hash_mismatch',
    ],
    ['no leaf', { proof: { leaf_hash: '' } }, 'leaf_hash_mismatch'],
    [
      'another capability with its leaf',
      { proof: { revealed_capability: 'delete', leaf_hash: hashOf('delete') } },
      'root_mismatch',
    ],
    [
      'another member of the set on the same path',
      { proof: { revealed_capability: 'read', leaf_hash: hashOf('read') } },
      'root_mismatch',
    ],
    [
      'another member of the set on its own path',
      { proof: { revealed_capability: 'read', leaf_hash: hashOf('read'), merkle_path: READ } },
      'valid',
    ],
    [
      'the padding, as the empty capability',
      {
        proof: {
          revealed_capability: '',
          leaf_hash: PADDING,
          merkle_path: pathOf(leavesOf(SET), 3),
        },
      },
      'leaf_hash_mismatch',
    ],
    [
      'a sibling that is no hash',
      { proof: { merkle_path: [{ ...NEXT, sibling_hash: 'z'.repeat(64) }, TOP] } },
      'root_mismatch',
    ],
    [
      'an empty sibling',
      { proof: { merkle_path: [{ ...NEXT, sibling_hash: '' }, TOP] } },
      'root_mismatch',
    ],
    [
      'a sibling of 63 digits',
      { proof: { merkle_path: [{ ...NEXT, sibling_hash: sibling.slice(1) }, TOP] } },
      'root_mismatch',
    ],
    [
      'a sibling of 66 digits',
      { proof: { merkle_path: [{ ...NEXT, sibling_hash: `${sibling}00` }, TOP] } },
      'root_mismatch',
    ],
    [
      'a sibling before a line break',
      { proof: { merkle_path: [{ ...NEXT, sibling_hash: `${sibling}\n` }, TOP] } },
      'root_mismatch',
    ],
    [
      'a last sibling that is no hash',
      { proof: { merkle_path: [NEXT, { ...TOP, sibling_hash: 'top' }] } },
      'root_mismatch',
    ],
    [
      'another sibling',
      { proof: { merkle_path: [{ ...NEXT, sibling_hash: hashOf('x') }, TOP] } },
      'root_mismatch',
    ],
    [
      'the other side',
      { proof: { merkle_path: [NEXT, { ...TOP, is_left: !TOP.is_left }] } },
      'root_mismatch',
    ],
    ['the path upside down', { proof: { merkle_path: [TOP, NEXT] } }, 'root_mismatch'],
    ['another root', { commitment: { merkle_root: hashOf('x') } }, 'root_mismatch'],
    [
      'the root in capitals',
      { commitment: { merkle_root: upper(rootOf(leavesOf(SET))) } },
      'root_mismatch',
    ],
    ['no root', { commitment: { merkle_root: '' } }, 'root_mismatch'],
    ['the id of another commitment', { proof: { commitment_id: 'another' } }, 'root_mismatch'],
    ['the id in capitals', { proof: { commitment_id: 'COMMITMENT' } }, 'root_mismatch'],
    [
      'another commitment that the proof names',
      { commitment: { commitment_id: 'other' }, proof: { commitment_id: 'other' } },
      'valid',
    ],
  ] as [string, Presented, string][]) {
    await t.test(`${name}: ${expected}`, async () => {
      const base = verification(beta, na.clock.now());
      const record = { ...without(base.commitment, 'signature'), ...commitment };
      const presented = {
        commitment: singlySigned(record, beta.key),
        proof: { ...base.proof, ...proof },
      };
      const issuer_public_keys = [beta.key.publicKey];
      const { body } = await post(na, VERIFY, { ...presented, issuer_public_keys });
      assert.deepEqual(body, {
        valid: expected === 'valid',
        reason: expected,
        commitment_id: record.commitment_id,
      });
    });
  }
});

test('records are verified by what they mean, not by how they are spelled', async (t) => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const { commitment, proof } = verification(beta, na.clock.now());
  const float = { capability_count: new JsonFloat(3) };
  const invalid = 'commitment_invalid_signature';
  for (const [name, presented, expected] of [
    ['a count that is sent as 3.0', { commitment: { ...commitment, ...float } }, 'valid'],
    [
      'a count that was signed as 3.0',
      { commitment: singlySigned({ ...commitment, ...float }, beta.key) },
      invalid,
    ],
    ['a member nobody knows', { commitment: { ...commitment, extra: 1 } }, 'valid'],
    [
      'a signed member that nobody knows',
      { commitment: singlySigned({ ...commitment, extra: 1 }, beta.key) },
      invalid,
    ],
    ['no signature', { commitment: without(commitment, 'signature') }, 'commitment_not_signed'],
    ['a commitment without id', { commitment: without(commitment, 'commitment_id') }, invalid],
    ['a commitment without time', { commitment: without(commitment, 'committed_at') }, invalid],
    ['a proof without id', { proof: without(proof, 'proof_id') }, 'valid'],
    ['a proof without time', { proof: without(proof, 'proved_at') }, 'valid'],
    [
      'a key id of somebody else',
      { commitment: singlySigned(commitment, beta.key, 'somebody') },
      'valid',
    ],
    ['a signature by another key', { commitment: singlySigned(commitment, newKey()) }, invalid],
    [
      'a signature with other unused bits',
      { commitment: withSignature(commitment, (sig) => respelled(sig)) },
      invalid,
    ],
    ['an empty signature', { commitment: withSignature(commitment, () => '') }, invalid],
  ] as [string, JsonObject, string][]) {
    await t.test(`${name}: ${expected}`, async () => {
      const issuer_public_keys = [beta.key.publicKey];
      const body = { commitment, proof, issuer_public_keys, ...presented };
      assert.equal((await post(na, VERIFY, body)).body.reason, expected);
    });
  }
});

function withSignature(record: JsonObject, change: (sig: string) => string): JsonObject {
  const signature = inner(record, 'signature');
  return { ...record, signature: { ...signature, sig: change(String(signature.sig)) } };
}

test('keys under which a commitment verifies', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const beta = sovereign('beta', misspellableKey());
  const theirs = verification(beta, now);
  const outcomes = {
    verifies: 'valid',
    fails: 'commitment_invalid_signature',
    malformed: undefined,
  };
  for (const [name, issuer_public_keys, outcomeOf] of keyListCases(beta.key)) {
    await t.test(`${name} ${outcomeOf}`, async () => {
      const answer = await post(na, VERIFY, { ...theirs, issuer_public_keys });
      assert.equal(answer.body.reason, outcomes[outcomeOf]);
      assert.equal(outcome(answer), outcomeOf === 'malformed' ? '400 invalid_input' : '200');
    });
  }
  const ours = verification(ourselves(na), now);
  for (const [name, body, expected] of [
    ['no list, and ours', ours, 'valid'],
    ['null, and ours', { ...ours, issuer_public_keys: null }, 'valid'],
    ['no list, and not ours', theirs, 'commitment_invalid_signature'],
    [
      'an empty list, and ours',
      { ...ours, issuer_public_keys: [] },
      'commitment_invalid_signature',
    ],
  ] as [string, JsonObject, string][]) {
    await t.test(`${name}: ${expected}`, async () => {
      assert.equal((await post(na, VERIFY, body)).body.reason, expected);
    });
  }
});

/** In the order of [trust-6-5]. */
const INPUT_FAULTS: readonly Fault<JsonObject>[] = [
  ['400 missing_verify_fields missing_proof', { proof: null }],
  ['400 missing_verify_fields missing_commitment', { commitment: {} }],
  ['400 invalid_input invalid_proof', { proof: { proof_id: 'p' } }],
  ['400 invalid_input invalid_commitment', { commitment: 'commitment' }],
  ['400 invalid_input invalid_keys', { issuer_public_keys: [7] }],
];

test('a request that cannot be verified at all is refused', async (t) => {
  await using na = await startUnlimited();
  const { commitment, proof } = verification(ourselves(na), na.clock.now());
  for (const { name, expected, draft } of faultsTogether(INPUT_FAULTS)) {
    await t.test(name, async () => {
      const answer = await post(na, VERIFY, { proof, commitment, ...draft });
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  for (const member of ['proof', 'commitment']) {
    for (const [name, value] of MISSING) {
      await t.test(`${member} is ${name}`, async () => {
        const answer = await post(na, VERIFY, { proof, commitment, [member]: value });
        assert.equal(outcomeWithCause(answer), `400 missing_verify_fields missing_${member}`);
      });
    }
  }
  const nodes = Array.from({ length: 65 }, () => NEXT);
  for (const [name, body] of [
    ['a count of 1.5', { commitment: { ...commitment, capability_count: new JsonFloat(1.5) } }],
    ['a count in text', { commitment: { ...commitment, capability_count: '3' } }],
    ['a count of 2 to the 53', { commitment: { ...commitment, capability_count: 2n ** 53n } }],
    ['a count of 1e300', { commitment: { ...commitment, capability_count: new JsonFloat(1e300) } }],
    [
      'a count of -1e300',
      { commitment: { ...commitment, capability_count: new JsonFloat(-1e300) } },
    ],
    ['65 path nodes', { proof: { ...proof, merkle_path: nodes } }],
    ['a path node in text', { proof: { ...proof, merkle_path: [PADDING] } }],
    ['a path node without side', { proof: { ...proof, merkle_path: [{ sibling_hash: PADDING }] } }],
    ['33 keys', { issuer_public_keys: repeated(33, na.audience) }],
  ] as [string, JsonObject][]) {
    await t.test(name, async () => {
      const answer = await post(na, VERIFY, { proof, commitment, ...body });
      assert.equal(outcome(answer), '400 invalid_input');
    });
  }
});
