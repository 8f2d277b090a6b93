/**
 * Selective disclosure: commit, prove, verify, nullify [trust-2-12] to [trust-2-14], [trust-3-3], [trust-4-5],
 * [trust-5-6], [trust-5-7], [trust-6-4], [trust-6-5].
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { TestAuthority } from './support/authority.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import {
  commitmentBy,
  hashOf,
  leavesOf,
  PADDING,
  pathOf,
  proofOf,
  repeated,
  rootOf,
  SET,
  VERIFY,
} from './support/disclosure.ts';
import type { Fault } from './support/faults.ts';
import { valuesExcept } from './support/hostile.ts';
import { newKey, operate, outcome } from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { checkFaults, checkTable, inEach } from './support/tables.ts';
import { stateDigest } from './support/test-stores.ts';
import { audited, parsed, post, sovereign, startUnlimited, UUID } from './support/trust.ts';
import {
  agreedTerms,
  agreementBetween,
  answersTo,
  created,
  eachOf,
  inner,
  MISSING,
  mutationsOf,
  ourselves,
  outcomeWithCause,
  recognized,
  signaturesOf,
  singlyVerifies,
  without,
} from './support/trust-protocol.ts';

const shared = sharedAuthority();

const COMMIT = '/admin/disclosure/commit';
const NULLIFY = '/admin/disclosure/nullifier';
const PROVE = '/disclosure/prove';

function agreedWith(na: TestAuthority, capabilities: readonly string[]): JsonObject {
  const now = na.clock.now();
  const agreed_terms = agreedTerms(now, { capabilities });
  return agreementBetween(ourselves(na), sovereign('beta'), now, { agreed_terms });
}

// Commit

test('a commitment has every member, is signed by us, and is audited', async () => {
  const na = await shared();
  const agreement = agreedWith(na, SET);
  const body = { capabilities: ['write', 'read', 'write'], agreement };
  const commitment = await created(operate(na, COMMIT, body, { operator: na.standard }));
  const { commitment_id, signature } = commitment;
  assert.match(String(commitment_id), UUID);
  assert.deepEqual(commitment, {
    commitment_id,
    merkle_root: rootOf(leavesOf(['read', 'write', 'write'])),
    capability_count: 3,
    agreement_id: agreement.agreement_id,
    committed_at: formatInstant(na.clock.now()),
    issuer_sovereign_id: na.audience,
    signature: { key_id: na.audience, sig: (signature as JsonObject).sig },
  });
  assert.equal(singlyVerifies(commitment, na.audience), true);
  assert.deepEqual(audited(na, 'capability_commitment_created').at(-1), {
    commitment_id,
    agreement_id: agreement.agreement_id,
    capability_count: 3,
  });
  const again = await created(operate(na, COMMIT, body));
  assert.notEqual(again.commitment_id, commitment_id);
  assert.equal(again.merkle_root, commitment.merkle_root);
});

test('a configured label of the key is the issuer of commitments and the prover of nullifiers', async () => {
  await using na = await startUnlimited({ environment: { NA_KEY_ID: 'alpha-na' } });
  const body = { capabilities: SET, agreement: agreedWith(na, SET) };
  const commitment = await created(operate(na, COMMIT, body));
  const nullifier = await created(operate(na, NULLIFY, { proof: proofOf(SET, 'read') }));
  assert.equal(commitment.issuer_sovereign_id, 'alpha-na');
  assert.equal(nullifier.prover_sovereign_id, 'alpha-na');
  for (const record of [commitment, nullifier]) {
    assert.equal(inner(record, 'signature').key_id, 'alpha-na');
    assert.equal(singlyVerifies(record, na.audience), true);
  }
});

test('each capability committed to can be proven separately, and verifies', async () => {
  const na = await shared();
  for (const capabilities of [
    ['read'],
    ['write', 'read'],
    SET,
    [...'dcba'],
    [...'edcba'],
    [...'hgfedcba'],
    [...'ihgfedcba'],
    // Repeats, text beyond U+FFFF, which sorts behind U+FF5E, and one text in two normal forms.
    ['read', 'read'],
    [...'babab'],
    ['\u{1f680}', '\uff5e', '\ue000', 'z', 'é'],
    ['\u00e9', 'e\u0301'],
    [' ', '\u0000', 'a b', '\n', '\u2028'],
    // Names that every object has, prefixes, and as long and as many as there may be.
    ['__proto__', 'constructor', 'toString'],
    ['read', 'read:all', 'rea'],
    ['x'.repeat(50_000), 'y'],
    Array.from({ length: 4096 }, (_, index) => `capability:${index}`),
  ]) {
    const body = { capabilities, agreement: agreedWith(na, capabilities) };
    const commitment = await created(operate(na, COMMIT, body));
    const leaves = leavesOf(capabilities);
    assert.equal(commitment.merkle_root, rootOf(leaves));
    assert.equal(commitment.capability_count, capabilities.length);
    for (const capability of capabilities.slice(0, 9)) {
      const request = { capability, capabilities, commitment, prover_sovereign_id: 'beta' };
      const proof = parsed(await post(na, PROVE, request));
      assert.equal(proof.leaf_hash, hashOf(capability));
      assert.deepEqual(proof.merkle_path, pathOf(leaves, leaves.indexOf(hashOf(capability))));
      const verdict = parsed(await post(na, VERIFY, { proof, commitment }));
      const { commitment_id } = commitment;
      assert.deepEqual(verdict, { valid: true, reason: 'valid', commitment_id });
    }
  }
});

/** In the order of [trust-5-6] and [trust-4-5]. */
function commitFaults(na: TestAuthority): Fault<JsonObject>[] {
  const now = na.clock.now();
  const [us, beta] = [ourselves(na), sovereign('beta')];
  const signedByPeer = agreementBetween(us, beta, now, {}, [beta.key]);
  return [
    ['400 missing_commit_fields invalid_capabilities', { capabilities: [] }],
    ['400 missing_commit_fields missing_agreement', { agreement: null }],
    ['400 missing_commit_fields invalid_agreement', { agreement: { agreement_id: 'a' } }],
    ['422 commit_failed invalid_capabilities', { capabilities: ['read', 7] }],
    ['422 commit_failed empty_capability', { capabilities: ['', 'delete'] }],
    ['422 commit_failed capability_not_agreed', { capabilities: ['delete'] }],
    ['422 commit_failed agreement_not_signed_here', { agreement: signedByPeer }],
  ];
}

test('of several faults of a commitment the earliest is reported', async () => {
  const na = await shared();
  const before = audited(na, 'capability_commitment_created').length;
  const agreement = agreedWith(na, SET);
  const body = { capabilities: ['read'], agreement };
  const ask = answersTo(na, COMMIT, body);
  await checkFaults(commitFaults(na), ask);
  const given = valuesExcept(
    'null',
    'false',
    'an empty string',
    'an empty list',
    'an empty object',
  );
  const terms = (changes: JsonObject) => withTerms(agreement, changes);
  await checkTable(
    {
      '400 missing_commit_fields invalid_capabilities': inEach(
        'capabilities',
        valuesExcept('a list'),
      ),
      '400 missing_commit_fields missing_agreement': inEach('agreement', MISSING),
      '400 missing_commit_fields invalid_agreement': inEach('agreement', [
        ...given,
        ['17 signatures', { ...agreement, signatures: Array(17).fill(signaturesOf(agreement)[0]) }],
        ['a negative commitment', terms({ freshness_commitment: -1 })],
        ['4097 agreed capabilities', terms({ capabilities: repeated(4097) })],
        ['a window without offset', terms({ valid_from: '2026-01-01T00:00:00' })],
      ]),
    },
    ask,
  );
  for (const member of ['capabilities', 'agreement']) {
    const answer = await operate(na, COMMIT, without(body, member));
    assert.equal(outcome(answer), '400 missing_commit_fields', member);
  }
  assert.equal(audited(na, 'capability_commitment_created').length, before);
});

function withTerms(agreement: JsonObject, changes: JsonObject): JsonObject {
  return { ...agreement, agreed_terms: { ...inner(agreement, 'agreed_terms'), ...changes } };
}

/** What is committed to, and the agreement, if it is not the usual one. */
type Commitment = readonly [capabilities: JsonValue, agreement?: JsonObject];

function commitmentTo(na: TestAuthority, usual: JsonObject) {
  return async ([capabilities, agreement = usual]: Commitment) => {
    const answer = await operate(na, COMMIT, { capabilities, agreement });
    if (answer.status === 201) {
      assert.equal(answer.body.agreement_id, agreement.agreement_id);
      assert.equal(answer.body.capability_count, (capabilities as string[]).length);
    }
    return outcomeWithCause(answer);
  };
}

test('sets that can be committed to under an agreement', async () => {
  const na = await shared();
  const [us, beta, now] = [ourselves(na), sovereign('beta'), na.clock.now()];
  const agreement = agreedWith(na, ['read', 'write']);
  const over = { valid_from: formatInstant(now - 2 * MINUTE), valid_until: formatInstant(now - 1) };
  const scope = { ...inner(inner(agreement, 'agreed_terms'), 'scope'), ratio: 1 };
  const signedBy = (...signers: (typeof us.key)[]) => agreementBetween(us, beta, now, {}, signers);
  const ofOthers = agreementBetween(beta, sovereign('gamma'), now, {}, [us.key]);
  const unsignedMembers = { agreement_id: 'another', expires_at: '2020-01-01T00:00:00Z' };
  await checkTable<Commitment>(
    {
      201: {
        'all of them': [['read', 'write']],
        'some of them': [['write']],
        'one of them, more often than it is agreed': [repeated(3)],
        'one of them, as often as a list may hold': [repeated(4096)],
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
      '400 missing_commit_fields invalid_capabilities': {
        'more than a list may hold': [repeated(4097)],
      },
      '422 commit_failed capability_not_agreed': {
        'one that is not agreed': [['read', 'delete']],
        'one in capitals': [['READ']],
        'one with a blank': [['read ']],
        'a wildcard': [['*']],
        'any of an agreement about nothing': [['read'], agreedWith(na, [])],
      },
      '422 commit_failed empty_capability': {
        'the empty text': [['read', '']],
        'the empty text, although it is agreed': [[''], agreedWith(na, [''])],
      },
      '422 commit_failed invalid_capabilities': {
        'a list in the list': [[['read']]],
        'null in the list': [['read', null]],
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
    commitmentTo(na, agreement),
  );
});

test('without the subset rule, any named capability can be committed to', async () => {
  await using na = await startUnlimited({ environment: { MESH_COMMIT_SUBSET: 'off' } });
  const beta = sovereign('beta');
  const byPeer = agreementBetween(ourselves(na), beta, na.clock.now(), {}, [beta.key]);
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
    commitmentTo(na, agreedWith(na, ['read'])),
  );
});

test('from offer to use: agreed, committed to, proven, verified and spent over HTTP', async () => {
  const na = await shared();
  await recognized(na, sovereign('beta'));
  const now = na.clock.now();
  const offer = await created(
    operate(na, '/admin/agreements/offer', {
      responder_sovereign_id: 'beta',
      capabilities: SET,
      valid_from: formatInstant(now),
      valid_until: formatInstant(now + 10 * MINUTE),
      expires_at: formatInstant(now + MINUTE),
    }),
  );
  const agreement = await created(operate(na, '/admin/agreements/accept', { offer }));
  const commitment = await created(operate(na, COMMIT, { capabilities: SET, agreement }));
  const request = { capability: 'audit', capabilities: SET, commitment };
  const proof = parsed(await post(na, PROVE, { ...request, prover_sovereign_id: 'beta' }));
  assert.equal((await post(na, VERIFY, { proof, commitment })).body.reason, 'valid');
  const nullifier = await created(operate(na, NULLIFY, { proof }));
  assert.equal(nullifier.proof_id, proof.proof_id);
  const again = await operate(na, NULLIFY, { proof });
  assert.equal(outcomeWithCause(again), '422 nullifier_failed already_issued');
  assert.equal((await post(na, VERIFY, { proof, commitment })).body.reason, 'valid');
});

// Nullifier

test('a nullifier has every member, is signed by us, and is audited', async () => {
  const na = await shared();
  const proof = proofOf(SET, 'write');
  const nullifier = await created(operate(na, NULLIFY, { proof }, { operator: na.standard }));
  const { nullifier_id, nonce, signature } = nullifier;
  const now = na.clock.now();
  assert.match(String(nullifier_id), UUID);
  assert.match(String(nonce), /^[0-9a-f]{32}$/);
  assert.deepEqual(nullifier, {
    nullifier_id,
    proof_id: proof.proof_id,
    nonce,
    issued_at: formatInstant(now),
    expires_at: formatInstant(now + 60 * SECOND),
    prover_sovereign_id: na.audience,
    signature: { key_id: na.audience, sig: (signature as JsonObject).sig },
  });
  assert.equal(singlyVerifies(nullifier, na.audience), true);
  assert.deepEqual(audited(na, 'capability_nullifier_issued').at(-1), {
    nullifier_id,
    proof_id: proof.proof_id,
    commitment_id: 'commitment',
  });
  const other = await created(operate(na, NULLIFY, { proof: proofOf(SET, 'write') }));
  assert.notEqual(other.nonce, nonce);
});

test('invalid proofs cannot be spent', async () => {
  const na = await shared();
  const before = audited(na, 'capability_nullifier_issued').length;
  const node = { sibling_hash: PADDING, is_left: true };
  const read = (changes: JsonObject) => proofOf(SET, 'read', changes);
  await checkTable(
    {
      '400 missing_proof missing_proof': { ...inEach('proof', MISSING), 'nothing at all': {} },
      '400 missing_proof invalid_proof': inEach('proof', [
        ...valuesExcept('null', 'false', 'an empty string', 'an empty list', 'an empty object'),
        ['an id that is a number', read({ proof_id: 7 })],
        ['an id that is null', read({ proof_id: null })],
        ['65 path nodes', read({ merkle_path: Array(65).fill(node) })],
        ['a side that is a number', read({ merkle_path: [{ ...node, is_left: 1 }] })],
        ['a naive time', read({ proved_at: '2026-01-15T12:00:00' })],
        ['no path', without(read({}), 'merkle_path')],
      ]),
    },
    answersTo(na, NULLIFY),
  );
  assert.equal(audited(na, 'capability_nullifier_issued').length, before);
});

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
  for (const proof_id of ids) {
    const nullifier = await created(
      operate(na, NULLIFY, { proof: proofOf(SET, 'read', { proof_id }) }),
    );
    assert.equal(nullifier.proof_id, proof_id);
    assert.equal(singlyVerifies(nullifier, na.audience), true);
  }
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
  const requests = Array.from({ length: 40 }, () => proofs).flat();
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
    assert.equal(mine.filter((text) => text === refused).length, 39);
  }
  const issued = audited(na, 'capability_nullifier_issued').map(({ proof_id }) => proof_id);
  assert.deepEqual(issued.toSorted(), proofs.map(({ proof_id }) => proof_id).toSorted());
});

// Prove

test('a proof has every member and depends on the request alone', async () => {
  await using na = await startUnlimited();
  const commitment = commitmentBy(sovereign('beta'), na.clock.now(), SET);
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
  const commitment = commitmentBy(sovereign('beta'), na.clock.now(), SET);
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
  const beta = sovereign('beta');
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

test('no altered member of an operator request causes an internal error', async () => {
  const na = await shared();
  const agreement = agreedWith(na, SET);
  const evidence = { offerer_evidence: { verdict: 'allow' }, responder_evidence: { kept: [] } };
  const slim = { ...agreement, ...evidence };
  for (const [path, body, refused] of [
    [
      COMMIT,
      { capabilities: SET, agreement: slim },
      ['400 missing_commit_fields', '422 commit_failed'],
    ],
    [NULLIFY, { proof: proofOf(SET, 'read') }, ['400 missing_proof', '422 nullifier_failed']],
  ] as [string, JsonObject, string[]][]) {
    const outcomes = new Set(['201', ...refused]);
    await eachOf(mutationsOf(body), async ({ name, record }) => {
      const answer = await operate(na, path, record);
      assert.ok(outcomes.has(outcome(answer)), `${path} ${name}: ${outcome(answer)}`);
    });
  }
});
