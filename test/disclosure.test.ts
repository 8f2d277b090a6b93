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
  verification,
} from './support/disclosure.ts';
import { type Fault, faultsTogether } from './support/faults.ts';
import { valuesExcept } from './support/hostile.ts';
import { newKey, operate, outcome } from './support/requests.ts';
import { stateDigest } from './support/test-stores.ts';
import { audited, parsed, post, sovereign, startUnlimited, UUID } from './support/trust.ts';
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
  recognized,
  singlyVerifies,
  without,
} from './support/trust-protocol.ts';

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
  await using na = await startUnlimited();
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
  assert.deepEqual(audited(na, 'capability_commitment_created'), [
    { commitment_id, agreement_id: agreement.agreement_id, capability_count: 3 },
  ]);
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

test('each capability committed to can be proven separately, and verifies', async (t) => {
  await using na = await startUnlimited();
  const many = Array.from({ length: 4096 }, (_, index) => `capability:${index}`);
  for (const [name, capabilities] of [
    ['one capability', ['read']],
    ['two', ['write', 'read']],
    ['three', SET],
    ['four', ['d', 'c', 'b', 'a']],
    ['five', ['e', 'd', 'c', 'b', 'a']],
    ['eight', [...'hgfedcba']],
    ['nine', [...'ihgfedcba']],
    ['one capability twice', ['read', 'read']],
    ['repeats among others', ['b', 'a', 'b', 'a', 'b']],
    ['text beyond U+FFFF, which sorts behind U+FF5E', ['\u{1f680}', '\uff5e', '\ue000', 'z', 'é']],
    ['one text in two normal forms', ['\u00e9', 'e\u0301']],
    ['blanks and control characters', [' ', '\u0000', 'a b', '\n', '\u2028']],
    ['names that every object has', ['__proto__', 'constructor', 'toString']],
    ['a prefix of another', ['read', 'read:all', 'rea']],
    ['long text', ['x'.repeat(50_000), 'y']],
    ['as many as there may be', many],
  ] as [string, string[]][]) {
    await t.test(name, async () => {
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
    });
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

test('of several faults of a commitment the earliest is reported', async (t) => {
  await using na = await startUnlimited();
  const body = { capabilities: ['read'], agreement: agreedWith(na, SET) };
  for (const { name, expected, draft } of faultsTogether(commitFaults(na))) {
    await t.test(name, async () => {
      const answer = await operate(na, COMMIT, { ...body, ...draft });
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  assert.deepEqual(audited(na, 'capability_commitment_created'), []);
});

test('invalid capability lists and agreements count as missing', async (t) => {
  await using na = await startUnlimited();
  const body = { capabilities: ['read'], agreement: agreedWith(na, SET) };
  const noList = '400 missing_commit_fields invalid_capabilities';
  for (const [name, value] of valuesExcept('a list')) {
    await t.test(`capabilities: ${name}`, async () => {
      const answer = await operate(na, COMMIT, { ...body, capabilities: value });
      assert.equal(outcomeWithCause(answer), noList);
    });
  }
  for (const [name, value] of MISSING) {
    await t.test(`agreement: ${name}`, async () => {
      const answer = await operate(na, COMMIT, { ...body, agreement: value });
      assert.equal(outcomeWithCause(answer), '400 missing_commit_fields missing_agreement');
    });
  }
  for (const [name, value] of [
    ...valuesExcept('null', 'false', 'an empty string', 'an empty list', 'an empty object'),
    ['17 signatures', { ...body.agreement, signatures: tooManySignatures(body.agreement) }],
    ['a negative commitment', withTerms(body.agreement, { freshness_commitment: -1 })],
    ['4097 agreed capabilities', withTerms(body.agreement, { capabilities: repeated(4097) })],
    ['a window without offset', withTerms(body.agreement, { valid_from: '2026-01-01T00:00:00' })],
  ] as [string, JsonValue][]) {
    await t.test(`agreement: ${name}`, async () => {
      const answer = await operate(na, COMMIT, { ...body, agreement: value });
      assert.equal(outcomeWithCause(answer), '400 missing_commit_fields invalid_agreement');
    });
  }
  for (const member of ['capabilities', 'agreement']) {
    await t.test(`without ${member}`, async () => {
      const answer = await operate(na, COMMIT, without(body, member));
      assert.equal(outcome(answer), '400 missing_commit_fields');
    });
  }
});

function tooManySignatures({ signatures }: JsonObject): JsonValue {
  const [first = null] = signatures as readonly JsonObject[];
  return Array.from({ length: 17 }, () => first);
}

function withTerms(agreement: JsonObject, changes: JsonObject): JsonObject {
  return { ...agreement, agreed_terms: { ...inner(agreement, 'agreed_terms'), ...changes } };
}

test('sets that can be committed to under an agreement', async (t) => {
  await using na = await startUnlimited();
  const [us, beta, now] = [ourselves(na), sovereign('beta'), na.clock.now()];
  const agreement = agreedWith(na, ['read', 'write']);
  const over = { valid_from: formatInstant(now - 2 * MINUTE), valid_until: formatInstant(now - 1) };
  const notAgreed = '422 commit_failed capability_not_agreed';
  const notOurs = '422 commit_failed agreement_not_signed_here';
  for (const [name, capabilities, given, expected] of [
    ['all of them', ['read', 'write'], agreement, '201'],
    ['some of them', ['write'], agreement, '201'],
    ['one of them, more often than it is agreed', repeated(3), agreement, '201'],
    ['one of them, as often as a list may hold', repeated(4096), agreement, '201'],
    [
      'more than a list may hold',
      repeated(4097),
      agreement,
      '400 missing_commit_fields invalid_capabilities',
    ],
    ['one that is not agreed', ['read', 'delete'], agreement, notAgreed],
    ['one in capitals', ['READ'], agreement, notAgreed],
    ['one with a blank', ['read '], agreement, notAgreed],
    ['a wildcard', ['*'], agreement, notAgreed],
    ['the empty text', ['read', ''], agreement, '422 commit_failed empty_capability'],
    [
      'the empty text, although it is agreed',
      [''],
      agreedWith(na, ['']),
      '422 commit_failed empty_capability',
    ],
    ['any of an agreement about nothing', ['read'], agreedWith(na, []), notAgreed],
    ['a list in the list', [['read']], agreement, '422 commit_failed invalid_capabilities'],
    ['null in the list', ['read', null], agreement, '422 commit_failed invalid_capabilities'],
    [
      'under an agreement signed by us alone',
      ['read'],
      agreementBetween(us, beta, now, {}, [us.key]),
      '201',
    ],
    [
      'under one that we signed first',
      ['read'],
      agreementBetween(us, beta, now, {}, [us.key, beta.key]),
      '201',
    ],
    [
      'under one between others that we signed',
      ['read'],
      agreementBetween(beta, sovereign('gamma'), now, {}, [us.key]),
      '422 commit_failed not_a_party',
    ],
    [
      'under one whose time is over',
      ['read'],
      agreementBetween(us, beta, now, { agreed_terms: agreedTerms(now, over) }),
      '201',
    ],
    [
      'under one with another id and end, which nobody signs',
      ['read'],
      { ...agreement, agreement_id: 'another', expires_at: '2020-01-01T00:00:00Z' },
      '201',
    ],
    ['under an unsigned one', ['read'], { ...agreement, signatures: [] }, notOurs],
    [
      'under one that our partner alone signed',
      ['read'],
      agreementBetween(us, beta, now, {}, [beta.key]),
      notOurs,
    ],
    [
      'under one that a stranger signed in our name',
      ['read'],
      agreementBetween({ ...us, key: newKey() }, beta, now),
      notOurs,
    ],
    [
      'under one with a capability added after it was signed',
      ['delete'],
      withTerms(agreement, { capabilities: ['read', 'write', 'delete'] }),
      notOurs,
    ],
    [
      'under one whose scope was changed from 1.0 to 1',
      ['read'],
      withTerms(agreement, {
        scope: { ...inner(inner(agreement, 'agreed_terms'), 'scope'), ratio: 1 },
      }),
      notOurs,
    ],
  ] as [string, JsonValue, JsonObject, string][]) {
    await t.test(`${name}: ${expected}`, async () => {
      const answer = await operate(na, COMMIT, { capabilities, agreement: given });
      assert.equal(outcomeWithCause(answer), expected);
      if (expected !== '201') return;
      assert.equal(answer.body.agreement_id, given.agreement_id);
      assert.equal(answer.body.capability_count, (capabilities as string[]).length);
    });
  }
});

test('without the subset rule, any named capability can be committed to', async (t) => {
  await using na = await startUnlimited({ environment: { MESH_COMMIT_SUBSET: 'off' } });
  const agreement = agreedWith(na, ['read']);
  const beta = sovereign('beta');
  const byPeer = agreementBetween(ourselves(na), beta, na.clock.now(), {}, [beta.key]);
  for (const [name, capabilities, given, expected] of [
    ['one that is not agreed', ['delete'], agreement, '201'],
    ['agreed and others', ['read', 'delete', 'delete'], agreement, '201'],
    ['the empty text', ['delete', ''], agreement, '422 commit_failed empty_capability'],
    ['no text', [7], agreement, '422 commit_failed invalid_capabilities'],
    ['none', [], agreement, '400 missing_commit_fields invalid_capabilities'],
    [
      'under an agreement that we did not sign',
      ['delete'],
      byPeer,
      '422 commit_failed agreement_not_signed_here',
    ],
  ] as [string, JsonValue, JsonObject, string][]) {
    await t.test(`${name}: ${expected}`, async () => {
      const answer = await operate(na, COMMIT, { capabilities, agreement: given });
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
});

test('from offer to use: agreed, committed to, proven, verified and spent over HTTP', async () => {
  await using na = await startUnlimited();
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
  await using na = await startUnlimited();
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
  assert.deepEqual(audited(na, 'capability_nullifier_issued'), [
    { nullifier_id, proof_id: proof.proof_id, commitment_id: 'commitment' },
  ]);
  const other = await created(operate(na, NULLIFY, { proof: proofOf(SET, 'write') }));
  assert.notEqual(other.nonce, nonce);
});

test('invalid proofs cannot be spent', async (t) => {
  await using na = await startUnlimited();
  for (const [name, value] of MISSING) {
    await t.test(name, async () => {
      const answer = await operate(na, NULLIFY, { proof: value });
      assert.equal(outcomeWithCause(answer), '400 missing_proof missing_proof');
    });
  }
  await t.test('nothing at all', async () => {
    const answer = await operate(na, NULLIFY, {});
    assert.equal(outcomeWithCause(answer), '400 missing_proof missing_proof');
  });
  const node = { sibling_hash: PADDING, is_left: true };
  for (const [name, proof] of [
    ...valuesExcept('null', 'false', 'an empty string', 'an empty list', 'an empty object'),
    ['an id that is a number', proofOf(SET, 'read', { proof_id: 7 })],
    ['an id that is null', proofOf(SET, 'read', { proof_id: null })],
    [
      '65 path nodes',
      proofOf(SET, 'read', { merkle_path: Array.from({ length: 65 }, () => node) }),
    ],
    ['a side that is a number', proofOf(SET, 'read', { merkle_path: [{ ...node, is_left: 1 }] })],
    ['a naive time', proofOf(SET, 'read', { proved_at: '2026-01-15T12:00:00' })],
    ['no path', without(proofOf(SET, 'read'), 'merkle_path')],
  ] as [string, JsonValue][]) {
    await t.test(name, async () => {
      const answer = await operate(na, NULLIFY, { proof });
      assert.equal(outcomeWithCause(answer), '400 missing_proof invalid_proof');
    });
  }
  assert.deepEqual(audited(na, 'capability_nullifier_issued'), []);
});

test('a proof id is spent once, regardless of the rest of the proof', async (t) => {
  await using na = await startUnlimited();
  const proof = proofOf(SET, 'write');
  const [right, wrong] = [proof.leaf_hash as string, hashOf('read')];
  for (const [name, changes, expected] of [
    ['a leaf of another capability', { leaf_hash: wrong }, 'leaf_hash_mismatch'],
    ['a leaf in capitals', { leaf_hash: right.toUpperCase() }, 'leaf_hash_mismatch'],
    ['no leaf', { leaf_hash: '' }, 'leaf_hash_mismatch'],
    ['a leaf with a blank', { leaf_hash: `${right} ` }, 'leaf_hash_mismatch'],
    [
      'the empty capability with its leaf',
      { revealed_capability: '', leaf_hash: PADDING },
      'leaf_hash_mismatch',
    ],
    ['the right leaf, at last', {}, null],
    ['the same proof', {}, 'already_issued'],
    ['another path', { merkle_path: [] }, 'already_issued'],
    ['another commitment', { commitment_id: 'another' }, 'already_issued'],
    [
      'another prover and time',
      { prover_sovereign_id: 'x', proved_at: '2026-01-01T00:00:00Z' },
      'already_issued',
    ],
    ['another capability', { ...proofOf(SET, 'read'), proof_id: proof.proof_id }, 'already_issued'],
    ['a leaf of another capability again', { leaf_hash: wrong }, 'already_issued'],
    [
      'the empty capability again',
      { revealed_capability: '', leaf_hash: PADDING },
      'already_issued',
    ],
  ] as [string, JsonObject, string | null][]) {
    await t.test(`${name}: ${expected ?? 'issued'}`, async () => {
      const answer = await operate(na, NULLIFY, { proof: { ...proof, ...changes } });
      assert.equal(
        outcomeWithCause(answer),
        expected === null ? '201' : `422 nullifier_failed ${expected}`,
      );
    });
  }
  await t.test('the same proof, long after the nullifier has expired', async () => {
    na.clock.advance(100 * MINUTE);
    const answer = await operate(na, NULLIFY, { proof });
    assert.equal(outcomeWithCause(answer), '422 nullifier_failed already_issued');
  });
  assert.equal(audited(na, 'capability_nullifier_issued').length, 1);
});

test('ids of any text name distinct proofs', async (t) => {
  await using na = await startUnlimited();
  const long = 'p'.repeat(100_000);
  const ids: readonly [string, string][] = [
    ['the empty text', ''],
    ['a blank', ' '],
    ['a word', 'proof'],
    ['the word with a blank', 'proof '],
    ['the word in capitals', 'PROOF'],
    ['the word and a NUL', 'proof\u0000'],
    ['text with a path', '../../state/data.mdb'],
    ['text like a subject', 'capability-nullifier proof'],
    ['__proto__', '__proto__'],
    ['constructor', 'constructor'],
    ['an accent in one character', '\u00e9'],
    ['an accent in two', 'e\u0301'],
    ['text beyond U+FFFF', '\u{1f680}'],
    ['a line break', 'a\nb'],
    ['the digest of the word', hashOf('proof')],
    ['100000 characters', long],
    ['100000 characters with another end', `${long.slice(1)}q`],
    ['80000 characters, not Latin', '\u6f22'.repeat(80_000)],
  ];
  for (const [name, proof_id] of ids) {
    await t.test(`${name} is issued`, async () => {
      const proof = proofOf(SET, 'read', { proof_id });
      const nullifier = await created(operate(na, NULLIFY, { proof }));
      assert.equal(nullifier.proof_id, proof_id);
      assert.equal(singlyVerifies(nullifier, na.audience), true);
    });
  }
  for (const [name, proof_id] of ids) {
    await t.test(`${name} is spent`, async () => {
      const answer = await operate(na, NULLIFY, { proof: proofOf(SET, 'write', { proof_id }) });
      assert.equal(outcomeWithCause(answer), '422 nullifier_failed already_issued');
    });
  }
  await t.test('a proof without an id gets a new one each time', async () => {
    const proof = without(proofOf(SET, 'read'), 'proof_id');
    const [one, two] = [
      await created(operate(na, NULLIFY, { proof })),
      await created(operate(na, NULLIFY, { proof })),
    ];
    assert.match(String(one.proof_id), UUID);
    assert.notEqual(one.proof_id, two.proof_id);
  });
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

test('of several faults of a proof request the earliest is reported', async (t) => {
  await using na = await startUnlimited();
  const body = proveBody(na);
  for (const { name, expected, draft } of faultsTogether(PROVE_FAULTS)) {
    await t.test(name, async () => {
      const answer = await post(na, PROVE, { ...body, ...draft });
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
  for (const member of Object.keys(body)) {
    await t.test(`without ${member}`, async () => {
      const answer = await post(na, PROVE, without(body, member));
      assert.equal(outcome(answer), '400 missing_prove_fields');
    });
  }
  for (const [name, value] of MISSING) {
    for (const member of ['capability', 'commitment', 'prover_sovereign_id']) {
      await t.test(`${member} is ${name}`, async () => {
        const answer = await post(na, PROVE, { ...body, [member]: value });
        assert.equal(outcomeWithCause(answer), `400 missing_prove_fields missing_${member}`);
      });
    }
  }
});

test('lists from which a proof can be built', async (t) => {
  await using na = await startUnlimited();
  const body = proveBody(na);
  const commitment = body.commitment as JsonObject;
  for (const [name, changes, expected] of [
    [
      'an empty list, which is there',
      { capabilities: [] },
      '422 prove_failed capability_not_in_list',
    ],
    [
      'the capability in capitals',
      { capability: 'READ' },
      '422 prove_failed capability_not_in_list',
    ],
    ['4096 capabilities', { capabilities: repeated(4096) }, '200'],
    [
      '4097 capabilities',
      { capabilities: repeated(4097) },
      '400 missing_prove_fields invalid_capabilities',
    ],
    ['another list than was committed to', { capabilities: ['read', 'x'] }, '200'],
    ['the empty text among others', { capabilities: ['read', ''] }, '200'],
    ['an unsigned commitment', { commitment: { ...commitment, signature: null } }, '200'],
    ['a commitment of any root', { commitment: { ...commitment, merkle_root: '?' } }, '200'],
    ['a commitment of no leaf', { commitment: { ...commitment, capability_count: -1 } }, '200'],
    [
      'a commitment with a count that is no integer',
      { commitment: { ...commitment, capability_count: new JsonFloat(1.5) } },
      '400 invalid_commitment invalid_commitment',
    ],
    [
      'a commitment without root',
      { commitment: without(commitment, 'merkle_root') },
      '400 invalid_commitment invalid_commitment',
    ],
  ] as [string, JsonObject, string][]) {
    await t.test(`${name}: ${expected}`, async () => {
      const answer = await post(na, PROVE, { ...body, ...changes });
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
});

test('a proof of a list other than the committed one does not verify', async (t) => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const commitment = commitmentBy(beta, na.clock.now(), SET);
  for (const [capabilities, expected] of [
    [['write', 'audit', 'read'], 'valid'],
    [['read', 'write', 'x'], 'root_mismatch'],
    [['read', 'write', 'audit', 'x'], 'root_mismatch'],
    [['read', 'write'], 'path_length_inconsistent'],
    [['read'], 'path_length_inconsistent'],
    [['read', 'write', 'audit', 'x', 'y'], 'path_length_inconsistent'],
  ] as [string[], string][]) {
    await t.test(`${capabilities.join(', ')}: ${expected}`, async () => {
      const request = { capability: 'read', capabilities, commitment, prover_sovereign_id: 'x' };
      const proof = parsed(await post(na, PROVE, request));
      const issuer_public_keys = [beta.key.publicKey];
      const { body } = await post(na, VERIFY, { proof, commitment, issuer_public_keys });
      assert.deepEqual(body, {
        valid: expected === 'valid',
        reason: expected,
        commitment_id: commitment.commitment_id,
      });
    });
  }
});

// Hostile bodies

/** Members of a genuine verification request that neither a signature nor a hash covers. */
const UNCOVERED = ['proof.proof_id', 'proof.prover_sovereign_id', 'proof.proved_at'];
const LABEL = 'commitment.signature.key_id';

test('no altered member of a verification request causes an internal error or passes as genuine', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const body = { ...verification(beta, na.clock.now()), issuer_public_keys: [beta.key.publicKey] };
  const before = await stateDigest(na);
  const outcomes = new Set(['200', '400 missing_verify_fields', '400 invalid_input']);
  await eachOf(mutationsOf(body), async ({ name, path, record }) => {
    const answer = await post(na, VERIFY, record);
    assert.ok(outcomes.has(outcome(answer)), `${name}: ${outcome(answer)}`);
    if (answer.body.valid === true) assert.ok([...UNCOVERED, LABEL].includes(path), name);
  });
  assert.equal(await stateDigest(na), before);
});

test('no altered member of a proof request causes an internal error', async () => {
  await using na = await startUnlimited();
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
  await using na = await startUnlimited();
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
