/** Whether a capability was committed to [trust-6-5]; `verifications.test.ts` has what all verifications share. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { verifyMembership } from '../src/protocol/api/verifications.ts';
import {
  hashOf,
  leavesOf,
  PADDING,
  parentOf,
  pathOf,
  proofOf,
  rootOf,
  SET,
  verification,
} from './support/disclosure.ts';
import type { Fault } from './support/faults.ts';
import { respelled } from './support/hostile.ts';
import { newKey } from './support/requests.ts';
import { checkFaults, checkTable } from './support/tables.ts';
import { sovereign } from './support/trust.ts';
import { inner, singlySigned, without } from './support/trust-protocol.ts';
import { checkVerdicts, eachAs, NOW, resultOf, verdictOf } from './support/verifications.ts';

/** The root computed from a leaf and its path. */
function climb(leaf: string, path: readonly JsonObject[]): string {
  return path.reduce((current, { sibling_hash, is_left }) => {
    const sibling = String(sibling_hash);
    return is_left ? parentOf(sibling, current) : parentOf(current, sibling);
  }, leaf);
}

const beta = sovereign('beta');
const { commitment, proof } = verification(beta, NOW);
const issuer_public_keys = [beta.key.publicKey];

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

test('the first reason why a capability was not committed to is reported', () =>
  checkFaults(VERIFY_FAULTS, ({ unsigned, keys, commitmentId, proof: changes }) =>
    resultOf(verifyMembership, {
      commitment: unsigned ? { ...commitment, signature: null } : commitment,
      proof: { ...proof, ...changes, commitment_id: commitmentId ?? proof.commitment_id ?? null },
      issuer_public_keys: keys ?? issuer_public_keys,
    }),
  ));

test('a verdict names the commitment, not the one that the proof names', async () => {
  const elsewhere = { ...proof, commitment_id: 'another' };
  const body = { commitment, proof: elsewhere, issuer_public_keys };
  const verdict = { valid: false, reason: 'root_mismatch', commitment_id: 'commitment' };
  assert.deepEqual(await verdictOf(verifyMembership, body), verdict);
});

/** Changes of the two records; the commitment is signed afterwards, so that only what the case names is wrong. */
interface Presented {
  readonly commitment?: JsonObject;
  readonly proof?: JsonObject;
}

const PATH = pathOf(leavesOf(SET), 2);
const [NEXT = {}, TOP = {}] = PATH;

test('faults of a single proof', async () => {
  const long = Array.from({ length: 53 }, (_, index) => ({
    sibling_hash: hashOf(`${index}`),
    is_left: index % 2 === 0,
  }));
  const read = proofOf(SET, 'read').merkle_path as JsonObject[];
  const [upper, sibling] = [(text: string) => text.toUpperCase(), String(NEXT.sibling_hash)];
  const inner4 = parentOf(hashOf('write'), PADDING);
  const count = (capability_count: number) => ({ commitment: { capability_count } });
  const path = (...merkle_path: readonly JsonObject[]) => ({ proof: { merkle_path } });
  const next = (sibling_hash: string) => path({ ...NEXT, sibling_hash }, TOP);
  /** A commitment to `write` alone, with this count, and the proof with this path. */
  const climbed = (capability_count: number, steps: readonly JsonObject[]) => ({
    commitment: { capability_count, merkle_root: climb(hashOf('write'), steps) },
    ...path(...steps),
  });
  const revealing = (revealed_capability: string, leaf_hash: string, changes = {}) => ({
    proof: { revealed_capability, leaf_hash, ...changes },
  });
  const unsignedMembers = {
    proof_id: 'x',
    prover_sovereign_id: '',
    proved_at: '2020-01-01T00:00:00+02:00',
  };
  await checkTable<Presented>(
    {
      valid: {
        nothing: {},
        'another id, prover and time, which nobody signs': { proof: unsignedMembers },
        'a member nobody knows': { proof: { extra: 1 } },
        'a sibling in capitals, which are hex digits too': next(upper(sibling)),
        'the count 4, with the same path length': count(4),
        'the count 1 and no path': climbed(1, []),
        'the largest count, with its path of 53 nodes': climbed(2 ** 53 - 1, long),
        '2 to the 31 leaves': climbed(2 ** 31, long.slice(0, 31)),
        'another member of the set on its own path': revealing('read', hashOf('read'), {
          merkle_path: read,
        }),
        'another commitment that the proof names': {
          commitment: { commitment_id: 'other' },
          proof: { commitment_id: 'other' },
        },
      },
      path_length_inconsistent: {
        'the count 5': count(5),
        'the count 2': count(2),
        'the count 1': count(1),
        'the count 0': count(0),
        'the count 0 and no path': climbed(0, []),
        'a negative count': count(-3),
        'one leaf more than 2 to the 31': climbed(2 ** 31 + 1, long.slice(0, 31)),
        'a path of 64 nodes': path(...Array(64).fill(NEXT)),
        'a path that is too short': path(NEXT),
        'no path': path(),
        'a path that is too long': path(...PATH, TOP),
        'an inner node for a leaf': { proof: { leaf_hash: inner4, merkle_path: [TOP] } },
      },
      leaf_hash_mismatch: {
        'an inner node for a leaf, with a path of the right length': {
          ...count(2),
          proof: { leaf_hash: inner4, merkle_path: [TOP] },
        },
        'the leaf of another capability': { proof: { leaf_hash: hashOf('read') } },
        'the leaf in capitals': { proof: { leaf_hash: upper(hashOf('write')) } },
        'no leaf': { proof: { leaf_hash: '' } },
        'the padding, as the empty capability': revealing('', PADDING, {
          merkle_path: pathOf(leavesOf(SET), 3),
        }),
      },
      root_mismatch: {
        'another capability with its leaf': revealing('delete', hashOf('delete')),
        'another member of the set on the same path': revealing('read', hashOf('read')),
        'a sibling that is no hash': next('z'.repeat(64)),
        'an empty sibling': next(''),
        'a sibling of 63 digits': next(sibling.slice(1)),
        'a sibling of 66 digits': next(`${sibling}00`),
        'a sibling before a line break': next(`${sibling}\n`),
        'a last sibling that is no hash': path(NEXT, { ...TOP, sibling_hash: 'top' }),
        'another sibling': next(hashOf('x')),
        'the other side': path(NEXT, { ...TOP, is_left: !TOP.is_left }),
        'the path upside down': path(TOP, NEXT),
        'another root': { commitment: { merkle_root: hashOf('x') } },
        'the root in capitals': { commitment: { merkle_root: upper(rootOf(leavesOf(SET))) } },
        'no root': { commitment: { merkle_root: '' } },
        'the id of another commitment': { proof: { commitment_id: 'another' } },
        'the id in capitals': { proof: { commitment_id: 'COMMITMENT' } },
      },
    },
    (changes) => {
      const record = { ...without(commitment, 'signature'), ...changes.commitment };
      return resultOf(verifyMembership, {
        commitment: singlySigned(record, beta.key),
        proof: { ...proof, ...changes.proof },
        issuer_public_keys,
      });
    },
  );
});

test('records are verified by what they mean, not by how they are spelled', async () => {
  const float = { ...commitment, capability_count: new JsonFloat(3) };
  const signature = inner(commitment, 'signature');
  const withSignature = (sig: string) => ({ ...commitment, signature: { ...signature, sig } });
  await checkVerdicts(
    verifyMembership,
    {
      valid: {
        'a count that is sent as 3.0': { commitment: float },
        'a member nobody knows': { commitment: { ...commitment, extra: 1 } },
        'a proof without id': { proof: without(proof, 'proof_id') },
        'a proof without time': { proof: without(proof, 'proved_at') },
        'a key id of somebody else': { commitment: singlySigned(commitment, beta.key, 'somebody') },
      },
      commitment_not_signed: {
        'no signature': { commitment: without(commitment, 'signature') },
      },
      commitment_invalid_signature: eachAs('commitment', {
        'a count that was signed as 3.0': singlySigned(float, beta.key),
        'a signed member that nobody knows': singlySigned({ ...commitment, extra: 1 }, beta.key),
        'a commitment without id': without(commitment, 'commitment_id'),
        'a commitment without time': without(commitment, 'committed_at'),
        'a signature by another key': singlySigned(commitment, newKey()),
        'a signature with other unused bits': withSignature(respelled(String(signature.sig))),
        'an empty signature': withSignature(''),
      }),
    },
    { commitment, proof, issuer_public_keys },
  );
});

test('a request that cannot be verified at all is refused', async () => {
  const counts = [new JsonFloat(1.5), '3', 2n ** 53n, new JsonFloat(1e300), new JsonFloat(-1e300)];
  const paths = [Array(65).fill(NEXT), [PADDING], [{ sibling_hash: PADDING }]];
  await checkVerdicts(
    verifyMembership,
    {
      '400 invalid_input invalid_commitment': Object.fromEntries(
        counts.map((capability_count, index) => [
          `count ${index}`,
          { commitment: { ...commitment, capability_count } },
        ]),
      ),
      '400 invalid_input invalid_proof': Object.fromEntries(
        paths.map((merkle_path, index) => [`path ${index}`, { proof: { ...proof, merkle_path } }]),
      ),
    },
    { commitment, proof },
  );
});
