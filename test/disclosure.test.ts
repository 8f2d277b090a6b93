/**
 * Selective disclosure: commit, prove, nullify [trust-2-12] to [trust-2-14], [trust-3-3], [trust-4-5], [trust-5-6],
 * [trust-5-7], [trust-6-4]. `trust-commands.test.ts` has what all commands share.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyMembership } from '../src/protocol/api/verifications.ts';
import { sharedAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE } from './support/clock.ts';
import {
  commitmentBy,
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
import { respelled } from './support/hostile.ts';
import { newKey, operate, outcome } from './support/requests.ts';
import { checkFaults, checkTable, type Fault, inEach } from './support/tables.ts';
import { stateDigest } from './support/test-stores.ts';
import { audited, parsed, post, sovereign, startUnlimited, UUID } from './support/trust.ts';
import { type Decider, outcomeOf, recordOf } from './support/trust-commands.ts';
import {
  agreedTerms,
  agreementBetween,
  created,
  eachOf,
  inner,
  MISSING,
  mutationsOf,
  ourselves,
  outcomeWithCause,
  singlySigned,
  singlyVerifies,
  without,
} from './support/trust-protocol.ts';
import { checkVerdicts, eachAs, NOW, resultOf, us, verdictOf } from './support/verifications.ts';

const shared = sharedAuthority();

const NULLIFY = '/admin/disclosure/nullifier';
const PROVE = '/disclosure/prove';
const beta = sovereign('beta');

function agreedWith(capabilities: readonly string[]): JsonObject {
  const agreed_terms = agreedTerms(NOW, { capabilities });
  return agreementBetween(us, beta, NOW, { agreed_terms });
}

// Commit

test('each capability committed to can be proven separately, and verifies', async () => {
  const na = await shared();
  for (const capabilities of [
    ['read'],
    // Repeats, text beyond U+FFFF, which sorts behind U+FF5E, and one text in two normal forms.
    [...'babab'],
    ['\u{1f680}', '\uff5e', '\ue000', 'z', '\u00e9', 'e\u0301'],
    [' ', '\u0000', 'a b', '\n', '\u2028'],
    // Names that every object has, prefixes, and as long and as many as there may be.
    ['__proto__', 'constructor', 'toString', 'read', 'read:all', 'rea'],
    ['x'.repeat(50_000), 'y'],
    Array.from({ length: 4096 }, (_, index) => `capability:${index}`),
  ]) {
    const agreement = agreedWith(capabilities);
    const commitment = recordOf('commitCapabilities', { capabilities, agreement });
    const leaves = leavesOf(capabilities);
    assert.equal(commitment.merkle_root, rootOf(leaves));
    assert.equal(commitment.capability_count, capabilities.length);
    assert.equal(commitment.agreement_id, agreement.agreement_id);
    for (const capability of capabilities.slice(0, 6)) {
      const request = { capability, capabilities, commitment, prover_sovereign_id: 'beta' };
      const proof = parsed(await post(na, PROVE, request));
      assert.equal(proof.leaf_hash, hashOf(capability));
      assert.deepEqual(proof.merkle_path, pathOf(leaves, leaves.indexOf(hashOf(capability))));
      assert.equal(await resultOf(verifyMembership, { proof, commitment }), 'valid');
    }
  }
});

function withTerms(agreement: JsonObject, changes: JsonObject): JsonObject {
  return { ...agreement, agreed_terms: { ...inner(agreement, 'agreed_terms'), ...changes } };
}

/** What is committed to, and the agreement, if it is not the usual one. */
type Commitment = readonly [capabilities: JsonValue, agreement?: JsonObject];

function commitmentTo(usual: JsonObject, decider: Decider = {}) {
  return ([capabilities, agreement = usual]: Commitment) =>
    outcomeOf('commitCapabilities', { capabilities, agreement }, decider);
}

test('sets that can be committed to under an agreement', () => {
  const now = NOW;
  const agreement = agreedWith(['read', 'write']);
  const over = { valid_from: formatInstant(now - 2 * MINUTE), valid_until: formatInstant(now - 1) };
  const scope = { ...inner(inner(agreement, 'agreed_terms'), 'scope'), ratio: 1 };
  const signedBy = (...signers: (typeof us.key)[]) => agreementBetween(us, beta, now, {}, signers);
  const ofOthers = agreementBetween(beta, sovereign('gamma'), now, {}, [us.key]);
  const unsignedMembers = { agreement_id: 'another', expires_at: '2020-01-01T00:00:00Z' };
  return checkTable<Commitment>(
    {
      201: {
        'all of them': [['read', 'write']],
        'some of them': [['write']],
        'one of them, more often than it is agreed': [repeated(3)],
        'under an agreement signed by us alone': [['read'], signedBy(us.key)],
        'under one that we signed first': [['read'], signedBy(us.key, beta.key)],
        'under one whose time is over': [
          ['read'],
          agreementBetween(us, beta, now, { agreed_terms: agreedTerms(now, over) }),
        ],
        'under one with another id and end, which nobody signs': [
          ['read'],
          { ...agreement, ...unsignedMembers },
        ],
      },
      '422 commit_failed capability_not_agreed': {
        'one that is not agreed': [['read', 'delete']],
        'one in capitals': [['READ']],
        'one with a blank': [['read ']],
        'a wildcard': [['*']],
        'any of an agreement about nothing': [['read'], agreedWith([])],
      },
      '422 commit_failed empty_capability': {
        'the empty text': [['read', '']],
        'the empty text, although it is agreed': [[''], agreedWith([''])],
      },
      '422 commit_failed not_a_party': {
        'under one between others that we signed': [['read'], ofOthers],
      },
      '422 commit_failed agreement_not_signed_here': {
        'under an unsigned one': [['read'], { ...agreement, signatures: [] }],
        'under one that our partner alone signed': [['read'], signedBy(beta.key)],
        'under one that a stranger signed in our name': [
          ['read'],
          agreementBetween({ ...us, key: newKey() }, beta, now),
        ],
        'under one with a capability added after it was signed': [
          ['delete'],
          withTerms(agreement, { capabilities: ['read', 'write', 'delete'] }),
        ],
        'under one whose scope was changed from 1.0 to 1': [
          ['read'],
          withTerms(agreement, { scope }),
        ],
      },
    },
    commitmentTo(agreement),
  );
});

test('without the subset rule, any named capability can be committed to', async () => {
  const byPeer = agreementBetween(us, beta, NOW, {}, [beta.key]);
  await checkTable<Commitment>(
    {
      201: {
        'one that is not agreed': [['delete']],
        'agreed and others': [['read', 'delete', 'delete']],
      },
      '422 commit_failed empty_capability': { 'the empty text': [['delete', '']] },
      '422 commit_failed invalid_capabilities': { 'no text': [[7]] },
      '400 missing_commit_fields invalid_capabilities': { none: [[]] },
      '422 commit_failed agreement_not_signed_here': {
        'under an agreement that we did not sign': [['delete'], byPeer],
      },
    },
    commitmentTo(agreedWith(['read']), { commitWithinAgreement: false }),
  );
  await using na = await startUnlimited({ environment: { MESH_COMMIT_SUBSET: 'off' } });
  const agreement = agreementBetween(ourselves(na), beta, na.clock.now());
  const body = { capabilities: ['delete'], agreement };
  assert.equal(outcome(await operate(na, '/admin/disclosure/commit', body)), '201');
});

// Nullifier

test('a proof id is spent once, regardless of the rest of the proof', async () => {
  await using na = await startUnlimited();
  const proof = proofOf(SET, 'write');
  const [right, wrong] = [proof.leaf_hash as string, hashOf('read')];
  const spend = (changes: JsonObject) =>
    operate(na, NULLIFY, { proof: { ...proof, ...changes } }).then(outcomeWithCause);
  const empty = { revealed_capability: '', leaf_hash: PADDING };
  const mismatch = '422 nullifier_failed leaf_hash_mismatch';
  for (const leaf_hash of [wrong, right.toUpperCase(), '', `${right} `]) {
    assert.equal(await spend({ leaf_hash }), mismatch, leaf_hash);
  }
  assert.equal(await spend(empty), mismatch);
  assert.equal(await spend({}), '201');
  const again = {
    'the same proof': {},
    'another path': { merkle_path: [] },
    'another commitment': { commitment_id: 'another' },
    'another prover and time': { prover_sovereign_id: 'x', proved_at: '2026-01-01T00:00:00Z' },
    'another capability': { ...proofOf(SET, 'read'), proof_id: proof.proof_id ?? null },
    'a leaf of another capability': { leaf_hash: wrong },
    'the empty capability': empty,
  };
  const spent = '422 nullifier_failed already_issued';
  await checkTable<JsonObject>({ [spent]: again }, spend);
  // Long after the nullifier has expired.
  na.clock.advance(100 * MINUTE);
  assert.equal(await spend({}), spent);
  assert.equal(audited(na, 'capability_nullifier_issued').length, 1);
});

test('ids of any text name distinct proofs', async () => {
  const na = await shared();
  const long = 'p'.repeat(100_000);
  const ids = [
    ...['', ' ', 'proof', 'proof ', 'PROOF', 'proof\u0000', 'a\nb', hashOf('proof')],
    ...['../../state/data.mdb', 'capability-nullifier proof', '__proto__', 'constructor'],
    // An accent in one character and in two, text beyond U+FFFF, and long text that differs in its end.
    ...['\u00e9', 'e\u0301', '\u{1f680}', long, `${long.slice(1)}q`, '\u6f22'.repeat(80_000)],
  ];
  const nonces = new Set<JsonValue | undefined>();
  for (const proof_id of ids) {
    const nullifier = await created(
      operate(na, NULLIFY, { proof: proofOf(SET, 'read', { proof_id }) }),
    );
    assert.equal(nullifier.proof_id, proof_id);
    assert.equal(singlyVerifies(nullifier, na.audience), true);
    nonces.add(nullifier.nonce);
  }
  assert.equal(nonces.size, ids.length);
  for (const proof_id of ids) {
    const answer = await operate(na, NULLIFY, { proof: proofOf(SET, 'write', { proof_id }) });
    assert.equal(outcomeWithCause(answer), '422 nullifier_failed already_issued', proof_id);
  }
  // A proof without an id gets a new one each time.
  const proof = without(proofOf(SET, 'read'), 'proof_id');
  const [one, two] = [
    await created(operate(na, NULLIFY, { proof })),
    await created(operate(na, NULLIFY, { proof })),
  ];
  assert.match(String(one.proof_id), UUID);
  assert.notEqual(one.proof_id, two.proof_id);
});

test('of many simultaneous requests for one proof exactly one gets a nullifier', async () => {
  await using na = await startUnlimited();
  const proofs = Array.from({ length: 5 }, () => proofOf(SET, 'read'));
  const requests = Array.from({ length: 8 }, () => proofs).flat();
  const outcomes = await Promise.all(
    requests.map(async (proof, index) => {
      const changes = { prover_sovereign_id: `prover-${index}` };
      const answer = await operate(na, NULLIFY, { proof: { ...proof, ...changes } });
      return `${String(proof.proof_id)} ${outcomeWithCause(answer)}`;
    }),
  );
  for (const { proof_id } of proofs) {
    const mine = outcomes.filter((text) => text.startsWith(`${proof_id} `));
    assert.equal(mine.filter((text) => text === `${proof_id} 201`).length, 1);
    const refused = `${proof_id} 422 nullifier_failed already_issued`;
    assert.equal(mine.filter((text) => text === refused).length, 7);
  }
  const issued = audited(na, 'capability_nullifier_issued').map(({ proof_id }) => proof_id);
  assert.deepEqual(issued.toSorted(), proofs.map(({ proof_id }) => proof_id).toSorted());
});

// Prove

test('a proof has every member and depends on the request alone', async () => {
  await using na = await startUnlimited();
  const commitment = commitmentBy(beta, na.clock.now(), SET);
  const body = { capability: 'read', capabilities: SET, commitment, prover_sovereign_id: 'beta' };
  const before = await stateDigest(na);
  const answer = await post(na, PROVE, body);
  assert.equal(answer.status, 200);
  const proof = parsed(answer);
  assert.match(String(proof.proof_id), UUID);
  assert.deepEqual(proof, {
    proof_id: proof.proof_id,
    commitment_id: commitment.commitment_id,
    revealed_capability: 'read',
    leaf_hash: hashOf('read'),
    merkle_path: pathOf(leavesOf(SET), leavesOf(SET).indexOf(hashOf('read'))),
    prover_sovereign_id: 'beta',
    proved_at: formatInstant(na.clock.now()),
  });
  assert.notEqual((await post(na, PROVE, body)).body.proof_id, proof.proof_id);
  assert.equal(await stateDigest(na), before);
  assert.equal(
    na.logLines.some((line) => line.includes('mesh.audit')),
    false,
  );
});

/** In the order of [trust-6-4]. */
const PROVE_FAULTS: readonly Fault<JsonObject>[] = [
  ['400 missing_prove_fields missing_capability', { capability: '' }],
  ['400 missing_prove_fields missing_commitment', { commitment: {} }],
  ['400 missing_prove_fields missing_prover_sovereign_id', { prover_sovereign_id: null }],
  ['400 missing_prove_fields invalid_capabilities', { capabilities: 'read' }],
  ['400 invalid_commitment invalid_commitment', { commitment: { commitment_id: 'c' } }],
  ['422 prove_failed invalid_capabilities', { capabilities: ['read', 7] }],
  ['422 prove_failed invalid_capability', { capability: 7 }],
  ['422 prove_failed invalid_prover_sovereign_id', { prover_sovereign_id: ['beta'] }],
  ['422 prove_failed capability_not_in_list', { capability: 'delete' }],
];

function proveBody(na: TestAuthority): Record<string, JsonValue> {
  const commitment = commitmentBy(beta, na.clock.now(), SET);
  return { capability: 'read', capabilities: SET, commitment, prover_sovereign_id: 'beta' };
}

function asking(na: TestAuthority, body: JsonObject) {
  return async (changes: JsonObject) =>
    outcomeWithCause(await post(na, PROVE, { ...body, ...changes }));
}

test('of several faults of a proof request the earliest is reported', async () => {
  const na = await shared();
  const body = proveBody(na);
  const ask = asking(na, body);
  await checkFaults(PROVE_FAULTS, ask);
  for (const member of Object.keys(body)) {
    const answer = await post(na, PROVE, without(body, member));
    assert.equal(outcome(answer), '400 missing_prove_fields', member);
  }
  for (const member of ['capability', 'commitment', 'prover_sovereign_id']) {
    const expected = `400 missing_prove_fields missing_${member}`;
    await checkTable({ [expected]: inEach(member, MISSING) }, ask);
  }
});

test('lists from which a proof can be built', async () => {
  const na = await shared();
  const body = proveBody(na);
  const given = body.commitment as JsonObject;
  const committed = (changes: JsonObject) => ({ commitment: { ...given, ...changes } });
  await checkTable<JsonObject>(
    {
      200: {
        '4096 capabilities': { capabilities: repeated(4096) },
        'another list than was committed to': { capabilities: ['read', 'x'] },
        'the empty text among others': { capabilities: ['read', ''] },
        'an unsigned commitment': committed({ signature: null }),
        'a commitment of any root': committed({ merkle_root: '?' }),
        'a commitment of no leaf': committed({ capability_count: -1 }),
      },
      '422 prove_failed capability_not_in_list': {
        'an empty list, which is there': { capabilities: [] },
        'the capability in capitals': { capability: 'READ' },
      },
      '400 missing_prove_fields invalid_capabilities': {
        '4097 capabilities': { capabilities: repeated(4097) },
      },
      '400 invalid_commitment invalid_commitment': {
        'a count that is no integer': committed({ capability_count: new JsonFloat(1.5) }),
        'no root': { commitment: without(given, 'merkle_root') },
      },
    },
    asking(na, body),
  );
});

test('a proof of a list other than the committed one does not verify', async () => {
  const na = await shared();
  const commitment = commitmentBy(beta, na.clock.now(), SET);
  for (const [capabilities, expected] of [
    [['write', 'audit', 'read'], 'valid'],
    [['read', 'write', 'x'], 'root_mismatch'],
    [['read', 'write', 'audit', 'x'], 'root_mismatch'],
    [['read', 'write'], 'path_length_inconsistent'],
    [['read'], 'path_length_inconsistent'],
    [['read', 'write', 'audit', 'x', 'y'], 'path_length_inconsistent'],
  ] as const) {
    const request = { capability: 'read', capabilities, commitment, prover_sovereign_id: 'x' };
    const proof = parsed(await post(na, PROVE, request));
    const issuer_public_keys = [beta.key.publicKey];
    const { body } = await post(na, VERIFY, { proof, commitment, issuer_public_keys });
    assert.equal(body.reason, expected, capabilities.join());
  }
});

// Hostile bodies

test('no altered member of a proof request causes an internal error', async () => {
  const na = await shared();
  const body = proveBody(na);
  const before = await stateDigest(na);
  const refused = ['400 missing_prove_fields', '400 invalid_commitment', '422 prove_failed'];
  const outcomes = new Set(['200', ...refused]);
  await eachOf(mutationsOf(body), async ({ name, record }) => {
    const answer = await post(na, PROVE, record);
    assert.ok(outcomes.has(outcome(answer)), `${name}: ${outcome(answer)}`);
  });
  assert.equal(await stateDigest(na), before);
});

// Whether a capability was committed to [trust-6-5]; `verifications.test.ts` has what all verifications share.

/** The root computed from a leaf and its path. */
function climb(leaf: string, path: readonly JsonObject[]): string {
  return path.reduce((current, { sibling_hash, is_left }) => {
    const sibling = String(sibling_hash);
    return is_left ? parentOf(sibling, current) : parentOf(current, sibling);
  }, leaf);
}

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
