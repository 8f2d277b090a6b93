/**
 * Public verification of attestations and treaties, and the recognition policy [core-4-11] to [core-4-13],
 * [core-1-5].
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import { FORGED_SIGNATURE, misspelledKeys, valuesExcept, WEAK_KEYS } from './support/hostile.ts';
import { type Draft, entryOf, policyOf } from './support/recognition-verification.ts';
import { auditEvents, newKey, outcome, type Received, send } from './support/requests.ts';
import { stateDigest } from './support/test-stores.ts';
import {
  attest,
  audited,
  importFeed,
  issued,
  misspellableKey,
  post,
  recognize,
  revokeAttestation,
  revokeTreaty,
  type Sovereign,
  signedBy,
  sovereign,
  startUnlimited,
} from './support/trust.ts';

const VERIFY = '/attestations/verify';
const VERIFY_WITH_TREATY = '/attestations/verify-with-treaty';
const VERIFY_TREATY = '/recognition-treaties/verify';

const ENDPOINTS = [VERIFY, VERIFY_WITH_TREATY, VERIFY_TREATY] as const;
const SKEW = 5 * MINUTE;

type Spoil = (draft: Draft) => void;

/** Every fault alone, every adjacent pair, and each fault together with all later ones. */
function combinationsOf<Name extends string>(faults: readonly (readonly [Name, Spoil])[]) {
  return faults.flatMap(([name], index) => {
    const later = faults.slice(index + 1).map(([other]) => other);
    const sets: Name[][] = [[name]];
    if (later[0] !== undefined) sets.push([name, later[0]]);
    if (later.length > 1) sets.push([name, ...later]);
    return sets.map((names) => ({ expected: name, names }));
  });
}

function spoiled<Name extends string>(
  draft: Draft,
  faults: readonly (readonly [Name, Spoil])[],
  names: readonly Name[],
): Draft {
  for (const [name, spoil] of faults) if (names.includes(name)) spoil(draft);
  return draft;
}

// Attestations under a policy

const OUTSIDE: JsonObject = {
  expires_at: '2020-01-02T00:00:00Z',
  valid_from: '2020-01-01T00:00:00Z',
  issued_at: '2020-01-01T00:00:00Z',
};

/** In the order of [core-4-11]. A draft determines how attestation and policy are built. */
const ATTESTATION_FAULTS = [
  ['unknown_issuer', (draft) => set(draft, 'entry', { sovereign_id: 'gamma' })],
  ['locally_revoked', (draft) => (draft.revoked = true)],
  ['bad_status', (draft) => set(draft, 'record', { status: 'suspended' })],
  ['outside_validity_window', (draft) => set(draft, 'record', OUTSIDE)],
  ['role_not_allowed', (draft) => set(draft, 'entry', { allowed_roles: ['role:other'] })],
  ['missing_signature', (draft) => (draft.unsigned = true)],
  ['invalid_signature', (draft) => set(draft, 'entry', { public_keys: [newKey().publicKey] })],
] as const satisfies readonly (readonly [string, Spoil])[];

function set(draft: Draft, member: string, changes: JsonObject): void {
  draft[member] = { ...(draft[member] as JsonObject | undefined), ...changes };
}

function policyCase(beta: Sovereign, now: number, draft: Draft): JsonObject {
  const signed = beta.attestation(now, (draft.record ?? {}) as JsonObject);
  const attestation = draft.unsigned ? { ...signed, signatures: [] } : signed;
  const revoked_attestation_ids = draft.revoked ? [attestation.attestation_id ?? ''] : [];
  const entry = { ...entryOf(beta), ...(draft.entry as JsonObject | undefined) };
  return { attestation, recognition_policy: { ...policyOf(entry), revoked_attestation_ids } };
}

test('an attestation is verified under a policy, and the first reason is reported', async (t) => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  await t.test('accepted', async () => {
    const body = policyCase(beta, na.clock.now(), {});
    const answer = await post(na, VERIFY, body);
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, {
      accepted: true,
      reason: 'accepted',
      issuer_sovereign_id: 'beta',
      attestation_id: (body.attestation as JsonObject).attestation_id,
    });
  });
  for (const { expected, names } of combinationsOf(ATTESTATION_FAULTS)) {
    await t.test(`${expected}, of ${names.join(', ')}`, async () => {
      const draft = spoiled({}, ATTESTATION_FAULTS, names);
      const answer = await post(na, VERIFY, policyCase(beta, na.clock.now(), draft));
      assert.equal(answer.status, 200);
      assert.deepEqual([answer.body.accepted, answer.body.reason], [false, expected]);
    });
  }
});

for (const [name, draft, expected] of [
  ['no role at all', { record: { roles: [] } }, 'accepted'],
  ['only some roles allowed', { record: { roles: ['role:client', 'x'] } }, 'role_not_allowed'],
  [
    'any role, because none is named',
    { entry: { allowed_roles: [] }, record: { roles: ['x'] } },
    'accepted',
  ],
  [
    'a role that only begins like an allowed one',
    { record: { roles: ['role:client2'] } },
    'role_not_allowed',
  ],
  ['no accepted status', { entry: { accepted_statuses: [] } }, 'bad_status'],
  [
    'suspended where that is accepted: the window demands active all the same',
    { entry: { accepted_statuses: ['active', 'suspended'] }, record: { status: 'suspended' } },
    'outside_validity_window',
  ],
  [
    'revoked by its own status where that is accepted',
    { entry: { accepted_statuses: ['revoked'] }, record: { status: 'revoked' } },
    'outside_validity_window',
  ],
  [
    'active where only suspended is accepted',
    { entry: { accepted_statuses: ['suspended'] } },
    'bad_status',
  ],
] as [string, Draft, string][]) {
  test(`an attestation with ${name} is ${expected}`, async () => {
    await using na = await startUnlimited();
    const body = policyCase(sovereign('beta'), na.clock.now(), draft);
    assert.equal((await post(na, VERIFY, body)).body.reason, expected);
  });
}

test('of several entries for one issuer the first counts', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const attestation = beta.attestation(na.clock.now());
  const right = entryOf(beta);
  const wrong = { ...right, public_keys: [newKey().publicKey] };
  const other = entryOf(sovereign('gamma'));
  for (const [entries, expected] of [
    [[right, wrong], 'accepted'],
    [[wrong, right], 'invalid_signature'],
    [[other, right], 'accepted'],
    [[], 'unknown_issuer'],
  ] as const) {
    const answer = await post(na, VERIFY, {
      attestation,
      recognition_policy: policyOf(...entries),
    });
    assert.equal(answer.body.reason, expected);
  }
});

test('an attestation that we revoked is locally revoked under any policy', async () => {
  await using na = await startUnlimited();
  const attestation = await issued(attest(na));
  const entry = { ...entryOf(sovereign('alpha')), public_keys: [na.audience] };
  const body = { attestation, recognition_policy: policyOf(entry) };
  assert.equal((await post(na, VERIFY, body)).body.reason, 'accepted');
  await revokeAttestation(na, attestation.attestation_id);
  assert.equal((await post(na, VERIFY, body)).body.reason, 'locally_revoked');
  const unknown = { attestation, recognition_policy: policyOf() };
  assert.equal((await post(na, VERIFY, unknown)).body.reason, 'unknown_issuer');
});

for (const [name, changes, expected] of [
  ['valid from exactly 5 minutes ahead', { valid_from: SKEW }, 'accepted'],
  ['valid from a millisecond further ahead', { valid_from: SKEW + 1 }, 'outside_validity_window'],
  [
    'valid from a microsecond further ahead',
    { valid_from: SKEW + 0.001 },
    'outside_validity_window',
  ],
  ['expired exactly 5 minutes ago', { expires_at: -SKEW }, 'accepted'],
  ['expired a millisecond earlier', { expires_at: -SKEW - 1 }, 'outside_validity_window'],
  ['expired a microsecond earlier', { expires_at: -SKEW - 0.001 }, 'outside_validity_window'],
  ['issued long after now', { issued_at: HOUR / 2 }, 'accepted'],
] as [string, { readonly [member: string]: number }, string][]) {
  test(`attestation, treaty and both together: ${name} is ${expected}`, async () => {
    await using na = await startUnlimited();
    const now = na.clock.now();
    const window = Object.fromEntries(
      Object.entries(changes).map(([member, offset]) => [member, formatInstant(now + offset)]),
    );
    const base = { issued_at: formatInstant(now - HOUR), valid_from: formatInstant(now - HOUR) };
    const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
    const attestation = beta.attestation(now, { ...base, ...window });
    const treaty = gamma.treaty(now, beta, { ...base, ...window });
    const keys = [gamma.key.publicKey];
    const policy = policyOf(entryOf(beta));
    const byPolicy = await post(na, VERIFY, { attestation, recognition_policy: policy });
    assert.equal(byPolicy.body.reason, expected);
    const ofTreaty = await post(na, VERIFY_TREATY, { treaty, issuer_public_keys: keys });
    assert.equal(ofTreaty.body.reason, expected);
    const both = { attestation, treaty, treaty_issuer_public_keys: keys };
    const byTreaty = await post(na, VERIFY_WITH_TREATY, both);
    assert.equal(byTreaty.body.reason, expected === 'accepted' ? expected : `treaty_${expected}`);
    const inTime = { ...both, treaty: gamma.treaty(now, beta, base) };
    const onlyAttestation = await post(na, VERIFY_WITH_TREATY, inTime);
    assert.equal(
      onlyAttestation.body.reason,
      expected === 'accepted' ? expected : `attestation_${expected}`,
    );
  });
}

test('an offset in the validity window is respected', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const inZone = (instant: number) => formatInstant(instant + 2 * HOUR).replace('Z', '+02:00');
  for (const [end, expected] of [
    [inZone(na.clock.now() - SKEW), 'accepted'],
    [inZone(na.clock.now() - SKEW - 1), 'outside_validity_window'],
  ] as const) {
    const record = {
      issued_at: inZone(na.clock.now() - HOUR),
      valid_from: inZone(na.clock.now() - HOUR),
      expires_at: end,
    };
    const body = policyCase(beta, na.clock.now(), { record });
    assert.equal((await post(na, VERIFY, body)).body.reason, expected);
  }
});

// Treaties

/** In the order of [core-4-13]. */
const TREATY_FAULTS = [
  ['wrong_issuer', (draft) => (draft.expected_issuer_sovereign_id = 'someone')],
  ['wrong_subject', (draft) => (draft.expected_subject_sovereign_id = 'someone')],
  ['locally_revoked', (draft) => set(draft, 'record', { treaty_id: 'REVOKED' })],
  ['bad_status', (draft) => set(draft, 'record', { status: 'suspended' })],
  ['outside_validity_window', (draft) => set(draft, 'record', OUTSIDE)],
  ['missing_signature', (draft) => (draft.unsigned = true)],
  ['invalid_signature', (draft) => (draft.issuer_public_keys = [newKey().publicKey])],
] as const satisfies readonly (readonly [string, Spoil])[];

/** A treaty of gamma with beta; `REVOKED` stands for the id of a treaty that is locally revoked. */
function treatyCase(now: number, revokedId: JsonValue, draft: Draft): JsonObject {
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const { record = {}, unsigned, ...rest } = draft;
  const changes = { ...(record as JsonObject) };
  if (changes.treaty_id === 'REVOKED') changes.treaty_id = revokedId;
  const signed = gamma.treaty(now, beta, changes);
  return {
    treaty: unsigned ? { ...signed, signatures: [] } : signed,
    issuer_public_keys: [gamma.key.publicKey],
    expected_issuer_sovereign_id: 'gamma',
    expected_subject_sovereign_id: 'beta',
    ...rest,
  };
}

async function revokedTreatyId(na: TestAuthority): Promise<JsonValue> {
  const { treaty_id = '' } = await issued(recognize(na));
  await revokeTreaty(na, treaty_id);
  return treaty_id;
}

test('a treaty is verified, and the first reason is reported', async (t) => {
  await using na = await startUnlimited();
  const revokedId = await revokedTreatyId(na);
  await t.test('accepted', async () => {
    const body = treatyCase(na.clock.now(), revokedId, {});
    const answer = await post(na, VERIFY_TREATY, body);
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, {
      accepted: true,
      reason: 'accepted',
      treaty_id: (body.treaty as JsonObject).treaty_id,
      issuer_sovereign_id: 'gamma',
      subject_sovereign_id: 'beta',
      trust_basis: 'caller_keys',
    });
  });
  for (const { expected, names } of combinationsOf(TREATY_FAULTS)) {
    await t.test(`${expected}, of ${names.join(', ')}`, async () => {
      const draft = spoiled({}, TREATY_FAULTS, names);
      const answer = await post(na, VERIFY_TREATY, treatyCase(na.clock.now(), revokedId, draft));
      assert.equal(answer.status, 200);
      assert.deepEqual([answer.body.accepted, answer.body.reason], [false, expected]);
    });
  }
});

test('a treaty whose own status is revoked has a bad status', async () => {
  await using na = await startUnlimited();
  const body = treatyCase(na.clock.now(), '', { record: { status: 'revoked' } });
  assert.equal((await post(na, VERIFY_TREATY, body)).body.reason, 'bad_status');
});

test('expectations count only when they are given, and must be text', async (t) => {
  await using na = await startUnlimited();
  for (const member of ['expected_issuer_sovereign_id', 'expected_subject_sovereign_id']) {
    const given = treatyCase(na.clock.now(), '', {}) as Record<string, JsonValue>;
    const { [member]: _, ...absent } = given;
    for (const [name, body, expected] of [
      ['absent', absent, 'accepted'],
      ['null', { ...given, [member]: null }, 'accepted'],
    ] as [string, JsonObject, string][]) {
      await t.test(`${member} ${name}`, async () => {
        assert.equal((await post(na, VERIFY_TREATY, body)).body.reason, expected);
      });
    }
    for (const [name, value] of valuesExcept('null', 'a string', 'an empty string')) {
      await t.test(`${name} as ${member}: 422`, async () => {
        const answer = await post(na, VERIFY_TREATY, { ...given, [member]: value });
        assert.equal(outcome(answer), '422 request_validation_failed');
        assert.deepEqual(answer.body.error.details.errors[0].loc, ['body', member]);
      });
    }
  }
});

test('a treaty that we issued verifies under our own key, and no longer once we revoked it', async () => {
  await using na = await startUnlimited();
  const treaty = await issued(recognize(na));
  assert.equal((await post(na, VERIFY_TREATY, { treaty })).body.reason, 'accepted');
  await revokeTreaty(na, treaty.treaty_id);
  assert.equal((await post(na, VERIFY_TREATY, { treaty })).body.reason, 'locally_revoked');
});

test('an answer about a treaty says on whose word the key of its issuer is trusted', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [alpha, beta, gamma] = [sovereign('alpha'), sovereign('beta'), sovereign('gamma')];
  const own = await issued(recognize(na, keysOf(beta)));
  const forged = alpha.treaty(now, beta);
  const theirs = gamma.treaty(now, beta);
  const attestation = beta.attestation(now);
  const [ours, stranger] = [na.audience, newKey().publicKey];
  const assertBasis = async (
    treaty: JsonObject,
    keys: JsonValue | undefined,
    reason: string,
    basis: string,
  ) => {
    const given = keys === undefined ? {} : { issuer_public_keys: keys };
    const { body } = await post(na, VERIFY_TREATY, { treaty, ...given });
    assert.deepEqual([body.reason, body.trust_basis], [reason, basis]);
    const byTreaty = keys === undefined ? {} : { treaty_issuer_public_keys: keys };
    const both = (await post(na, VERIFY_WITH_TREATY, { treaty, attestation, ...byTreaty })).body;
    const prefixed = reason === 'accepted' ? reason : `treaty_${reason}`;
    assert.deepEqual([both.reason, both.trust_basis], [prefixed, basis]);
  };
  const forger = alpha.key.publicKey;
  for (const keys of [[forger], { alpha: forger }, [ours, forger], undefined, []]) {
    await assertBasis(forged, keys, 'invalid_signature', 'own_key');
  }
  for (const keys of [[ours], { any: ours }, [stranger, ours], undefined, null]) {
    await assertBasis(own, keys, 'accepted', 'own_key');
  }
  await assertBasis(own, [stranger], 'invalid_signature', 'own_key');
  const keys = [stranger, gamma.key.publicKey];
  await assertBasis(theirs, keys, 'accepted', 'caller_keys');
  await assertBasis(theirs, undefined, 'invalid_signature', 'own_key');
  // A treaty that names another key of the issuer says nothing about this one.
  await issued(recognize(na, { ...keysOf(gamma), subject_public_keys: [stranger] }));
  await assertBasis(theirs, keys, 'accepted', 'caller_keys');
  const treaty = await issued(recognize(na, keysOf(gamma)));
  await assertBasis(theirs, keys, 'accepted', 'treaty');
  await assertBasis(theirs, { 'gamma-1': gamma.key.publicKey }, 'accepted', 'treaty');
  await assertBasis(theirs, [stranger], 'invalid_signature', 'caller_keys');
  await revokeTreaty(na, treaty.treaty_id);
  await assertBasis(theirs, keys, 'accepted', 'caller_keys');
});

/** The terms of a treaty with the sovereign. */
function keysOf({ name, key }: Sovereign): JsonObject {
  return { subject_sovereign_id: name, subject_public_keys: [key.publicKey] };
}

// Attestations by treaty

/** Faults of the treaty come first, then faults of the attestation [core-4-13]. */
const BOTH_FAULTS = [
  [
    'treaty_wrong_subject',
    (draft) => set(draft, 'attestation', { issuer_sovereign_id: 'someone' }),
  ],
  ['treaty_locally_revoked', (draft) => set(draft, 'treaty', { treaty_id: 'REVOKED' })],
  ['treaty_bad_status', (draft) => set(draft, 'treaty', { status: 'suspended' })],
  ['treaty_outside_validity_window', (draft) => set(draft, 'treaty', OUTSIDE)],
  ['treaty_missing_signature', (draft) => (draft.unsignedTreaty = true)],
  ['treaty_invalid_signature', (draft) => (draft.keys = [newKey().publicKey])],
  ['attestation_locally_revoked', (draft) => set(draft, 'attestation', { attestation_id: 'gone' })],
  ['attestation_bad_status', (draft) => set(draft, 'attestation', { status: 'suspended' })],
  ['attestation_outside_validity_window', (draft) => set(draft, 'attestation', OUTSIDE)],
  ['attestation_role_not_allowed', (draft) => set(draft, 'attestation', { roles: ['role:other'] })],
  ['attestation_missing_signature', (draft) => (draft.unsignedAttestation = true)],
  [
    'attestation_invalid_signature',
    (draft) => set(draft, 'treaty', { subject_public_keys: [newKey().publicKey] }),
  ],
] as const satisfies readonly (readonly [string, Spoil])[];

test('an attestation is verified by a treaty, and the first reason is reported', async (t) => {
  await using na = await startUnlimited();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const revokedId = await revokedTreatyId(na);
  const feed = beta.feed(na.clock.now(), 1, { revoked_attestation_ids: ['gone'] });
  const imported = await importFeed(na, feed, { issuer_public_keys: [beta.key.publicKey] });
  assert.equal(outcome(imported), '200');

  function bodyOf(draft: Draft): JsonObject {
    const { treaty = {}, attestation = {}, unsignedTreaty, unsignedAttestation, keys } = draft;
    const changes = {
      scope: { allowed_roles: ['role:client'], accepted_statuses: ['active'], claims: {} },
      ...(treaty as JsonObject),
    };
    if ('treaty_id' in changes) changes.treaty_id = revokedId;
    const signedTreaty = gamma.treaty(na.clock.now(), beta, changes);
    const signedAttestation = beta.attestation(na.clock.now(), attestation as JsonObject);
    return {
      treaty: unsignedTreaty ? { ...signedTreaty, signatures: [] } : signedTreaty,
      attestation: unsignedAttestation
        ? { ...signedAttestation, signatures: [] }
        : signedAttestation,
      treaty_issuer_public_keys: keys ?? [gamma.key.publicKey],
    };
  }

  await t.test('accepted, and the returned sovereigns are those of the treaty', async () => {
    const body = bodyOf({});
    const answer = await post(na, VERIFY_WITH_TREATY, body);
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, {
      accepted: true,
      reason: 'accepted',
      treaty_id: (body.treaty as JsonObject).treaty_id,
      attestation_id: (body.attestation as JsonObject).attestation_id,
      issuer_sovereign_id: 'gamma',
      subject_sovereign_id: 'beta',
      trust_basis: 'caller_keys',
    });
  });
  for (const { expected, names } of combinationsOf(BOTH_FAULTS)) {
    await t.test(`${expected}, of ${names.join(', ')}`, async () => {
      const answer = await post(na, VERIFY_WITH_TREATY, bodyOf(spoiled({}, BOTH_FAULTS, names)));
      assert.equal(answer.status, 200);
      assert.deepEqual([answer.body.accepted, answer.body.reason], [false, expected]);
    });
  }
});

for (const [name, scope, record, expected] of [
  ['any role when the scope names none', { allowed_roles: [] }, { roles: ['x'] }, 'accepted'],
  [
    'no status when the scope accepts none',
    { accepted_statuses: [] },
    {},
    'attestation_bad_status',
  ],
  [
    'suspended where the scope accepts it: the window demands active all the same',
    { accepted_statuses: ['suspended'] },
    { status: 'suspended' },
    'attestation_outside_validity_window',
  ],
] as [string, JsonObject, JsonObject, string][]) {
  test(`a treaty allows ${name}: ${expected}`, async () => {
    await using na = await startUnlimited();
    const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
    const now = na.clock.now();
    const full = { allowed_roles: [], accepted_statuses: ['active'], claims: {}, ...scope };
    const answer = await post(na, VERIFY_WITH_TREATY, {
      attestation: beta.attestation(now, record),
      treaty: gamma.treaty(now, beta, { scope: full }),
      treaty_issuer_public_keys: [gamma.key.publicKey],
    });
    assert.equal(answer.body.reason, expected);
  });
}

test('revocations count by issuer: imported ones of that issuer, and our own', async () => {
  await using na = await startUnlimited();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const now = na.clock.now();
  const treaty = gamma.treaty(now, beta);
  const verdict = async (attestation: JsonObject) => {
    const keys = [gamma.key.publicKey];
    const body = { attestation, treaty, treaty_issuer_public_keys: keys };
    return (await post(na, VERIFY_WITH_TREATY, body)).body.reason;
  };
  const foreign = beta.attestation(now);
  const feedOf = (of: Sovereign, sequence: number) =>
    importFeed(
      na,
      of.feed(now, sequence, { revoked_attestation_ids: [foreign.attestation_id ?? ''] }),
      { issuer_public_keys: [of.key.publicKey] },
    );
  assert.equal(outcome(await feedOf(gamma, 1)), '200');
  assert.equal(await verdict(foreign), 'accepted', 'gamma says nothing about beta');
  assert.equal(outcome(await feedOf(beta, 1)), '200');
  assert.equal(await verdict(foreign), 'attestation_locally_revoked');

  // This one is issued here in beta's name, so it can also be revoked here.
  const ours = await issued(attest(na, { issuer_sovereign_id: 'beta' }));
  const own = gamma.treaty(now, beta, { subject_public_keys: [na.audience] });
  const body = { attestation: ours, treaty: own, treaty_issuer_public_keys: [gamma.key.publicKey] };
  assert.equal((await post(na, VERIFY_WITH_TREATY, body)).body.reason, 'accepted');
  await revokeAttestation(na, ours.attestation_id);
  const after = await post(na, VERIFY_WITH_TREATY, body);
  assert.equal(after.body.reason, 'attestation_locally_revoked');
});

// Absent records and invalid ones

test('an absent record is 400, an invalid one is 422', async (t) => {
  await using na = await startUnlimited();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const now = na.clock.now();
  const attestation = beta.attestation(now);
  const treaty = gamma.treaty(now, beta);
  const recognition_policy = policyOf(entryOf(beta));
  const cases: [string, string, JsonObject, string][] = [
    ['nothing', VERIFY, {}, '400 missing_attestation'],
    ['no attestation', VERIFY, { recognition_policy }, '400 missing_attestation'],
    ['null', VERIFY, { attestation: null, recognition_policy }, '400 missing_attestation'],
    [
      'a wrong policy, no attestation',
      VERIFY,
      { recognition_policy: 7 },
      '400 missing_attestation',
    ],
    [
      'an attestation that is none, no policy',
      VERIFY,
      { attestation: 7 },
      '400 missing_recognition_policy',
    ],
    ['nothing', VERIFY_WITH_TREATY, {}, '400 missing_attestation'],
    [
      'null for both',
      VERIFY_WITH_TREATY,
      { attestation: null, treaty: null },
      '400 missing_attestation',
    ],
    ['no attestation', VERIFY_WITH_TREATY, { treaty }, '400 missing_attestation'],
    ['no treaty', VERIFY_WITH_TREATY, { attestation }, '400 missing_treaty'],
    ['null as treaty', VERIFY_WITH_TREATY, { attestation, treaty: null }, '400 missing_treaty'],
    [
      'no treaty, a wrong attestation',
      VERIFY_WITH_TREATY,
      { attestation: 7 },
      '400 missing_treaty',
    ],
    ['nothing', VERIFY_TREATY, {}, '400 missing_treaty'],
    ['null', VERIFY_TREATY, { treaty: null }, '400 missing_treaty'],
    ...valuesExcept('null').flatMap(([name, value]): [string, string, JsonObject, string][] => [
      [
        `${name} as attestation`,
        VERIFY,
        { attestation: value, recognition_policy },
        '422 invalid_attestation_or_policy',
      ],
      [
        `${name} as attestation`,
        VERIFY_WITH_TREATY,
        { attestation: value, treaty },
        '422 invalid_attestation_or_treaty',
      ],
      [
        `${name} as treaty`,
        VERIFY_WITH_TREATY,
        { attestation, treaty: value },
        '422 invalid_attestation_or_treaty',
      ],
      [`${name} as treaty`, VERIFY_TREATY, { treaty: value }, '422 invalid_recognition_treaty'],
    ]),
  ];
  for (const [name, path, body, expected] of cases) {
    await t.test(`${path} with ${name}: ${expected}`, async () => {
      assert.equal(outcome(await post(na, path, body)), expected);
    });
  }
  for (const path of ENDPOINTS) {
    for (const [body, expected] of [
      ['no json', '400 invalid_json'],
      ['[]', '400 invalid_json_object'],
      ['', `400 missing_${path === VERIFY_TREATY ? 'treaty' : 'attestation'}`],
    ] as const) {
      assert.equal(outcome(await send(na, 'POST', path, { body })), expected);
    }
  }
});

// Key lists [core-1-5]

test('caller-supplied keys are a list or an object of text; absent or null means our own key', async (t) => {
  await using na = await startUnlimited();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma', misspellableKey())];
  const now = na.clock.now();
  const ours = await issued(recognize(na, { subject_public_keys: [beta.key.publicKey] }));
  const theirs = gamma.treaty(now, beta);
  const attestation = beta.attestation(now);
  const right = gamma.key.publicKey;
  const others = (count: number) => Array.from({ length: count }, () => newKey().publicKey);
  const accepted = 'accepted';
  const invalid = 'invalid_signature';
  const refused = '400 invalid_public_keys';
  const noText = valuesExcept('a string', 'an empty string');
  const cases: [string, JsonValue | undefined, JsonObject, string][] = [
    ['absent, of our own treaty', undefined, ours, accepted],
    ['null, of our own treaty', null, ours, accepted],
    ['absent, of another treaty', undefined, theirs, invalid],
    ['null, of another treaty', null, theirs, invalid],
    ['an empty list, of our own treaty', [], ours, invalid],
    ['an empty object, of our own treaty', {}, ours, invalid],
    ['an empty list', [], theirs, invalid],
    ['an empty object', {}, theirs, invalid],
    ['a list with the key', [right], theirs, accepted],
    ['an object with the key', { 'gamma-na': right }, theirs, accepted],
    ['an object with the key under an odd name', { __proto__: null, '': right }, theirs, accepted],
    ['another key', others(1), theirs, invalid],
    ['the key behind another', [...others(1), right], theirs, accepted],
    ['the key as the 32nd', [...others(31), right], theirs, accepted],
    ['the key as the 33rd', [...others(32), right], theirs, invalid],
    [
      'the key as the 33rd of an object',
      Object.fromEntries([...others(32), right].map((key, n) => [`key-${n}`, key])),
      theirs,
      invalid,
    ],
    ['the key in an empty text’s company', ['', right], theirs, accepted],
    ['the key among texts that are no keys', ['x', '!', right], theirs, accepted],
    ...misspelledKeys(right).map(([name, key]): [string, JsonValue, JsonObject, string] => [
      `the key ${name}`,
      [key],
      theirs,
      invalid,
    ]),
    ...WEAK_KEYS.map((key): [string, JsonValue, JsonObject, string] => [
      `the weak key ${key.slice(0, 8)} and a forged signature`,
      [key],
      { ...theirs, signatures: [{ key_id: key, sig: FORGED_SIGNATURE }] },
      invalid,
    ]),
    ...valuesExcept('null', 'a list', 'an empty list', 'an object', 'an empty object').map(
      ([name, value]): [string, JsonValue, JsonObject, string] => [name, value, theirs, refused],
    ),
    ['1.0', new JsonFloat(1), theirs, refused],
    ...noText.flatMap(([name, value]): [string, JsonValue, JsonObject, string][] => [
      [`a list with ${name}`, [right, value], theirs, refused],
      [`an object with ${name}`, { a: right, b: value }, theirs, refused],
    ]),
  ];
  for (const [name, keys, treaty, expected] of cases) {
    await t.test(`${name}: ${expected}`, async () => {
      const given = keys === undefined ? {} : { issuer_public_keys: keys };
      const answer = await post(na, VERIFY_TREATY, { treaty, ...given });
      assert.equal(answer.body.reason ?? outcome(answer), expected);
      const alsoGiven = keys === undefined ? {} : { treaty_issuer_public_keys: keys };
      const both = await post(na, VERIFY_WITH_TREATY, { attestation, treaty, ...alsoGiven });
      const prefixed = expected === invalid ? `treaty_${expected}` : expected;
      assert.equal(both.body.reason ?? outcome(both), prefixed);
    });
  }
});

test('no more than 16 signatures are tried', async () => {
  await using na = await startUnlimited();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const { signatures: _, ...record } = gamma.treaty(na.clock.now(), beta) as Draft;
  const others = Array.from({ length: 16 }, newKey);
  for (const [keys, expected] of [
    [[...others.slice(1), gamma.key], 'accepted'],
    [[...others, gamma.key], 'invalid_signature'],
  ] as const) {
    const treaty = signedBy(record, ...keys);
    const body = { treaty, issuer_public_keys: [gamma.key.publicKey] };
    assert.equal((await post(na, VERIFY_TREATY, body)).body.reason, expected);
  }
});

test('a recognized issuer’s keys are limited and must be spelled like any other keys', async (t) => {
  await using na = await startUnlimited();
  const beta = sovereign('beta', misspellableKey());
  const others = Array.from({ length: 32 }, () => newKey().publicKey);
  for (const [name, public_keys, expected] of [
    ['the key as the 32nd', [...others.slice(1), beta.key.publicKey], 'accepted'],
    ['the key as the 33rd', [...others, beta.key.publicKey], 'invalid_signature'],
    ...misspelledKeys(beta.key.publicKey).map(
      ([spelling, key]) => [`the key ${spelling}`, [key], 'invalid_signature'] as const,
    ),
  ] as const) {
    await t.test(name, async () => {
      const draft = { entry: { public_keys } };
      const answer = await post(na, VERIFY, policyCase(beta, na.clock.now(), draft));
      assert.equal(answer.body.reason, expected);
    });
  }
});

// Stateless, limited, logged

/** A request that the endpoint accepts. */
function acceptable(na: TestAuthority, path: string): JsonObject {
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const now = na.clock.now();
  const keys = [gamma.key.publicKey];
  if (path === VERIFY) return policyCase(beta, now, {});
  if (path === VERIFY_TREATY) return { treaty: gamma.treaty(now, beta), issuer_public_keys: keys };
  return {
    attestation: beta.attestation(now),
    treaty: gamma.treaty(now, beta),
    treaty_issuer_public_keys: keys,
  };
}

test('a verification writes nothing, whatever its outcome', async () => {
  await using na = await startUnlimited({ environment: { MESH_LIVENESS_FLUSH_MS: '60000' } });
  const treaty = await issued(recognize(na));
  await revokeTreaty(na, treaty.treaty_id);
  const attestation = await issued(attest(na));
  await revokeAttestation(na, attestation.attestation_id);
  await na.flush();
  const before = await stateDigest(na);
  const entries = auditEvents(na).length;
  for (const path of ENDPOINTS) {
    assert.equal((await post(na, path, acceptable(na, path))).body.reason, 'accepted');
    for (const body of [
      {},
      { attestation, treaty },
      { attestation, recognition_policy: policyOf() },
      { attestation: 7, treaty: 7, recognition_policy: 7 },
    ] as JsonObject[]) {
      await post(na, path, body);
    }
    await send(na, 'POST', path, { body: 'no json' });
  }
  await na.flush();
  assert.equal(await stateDigest(na), before);
  assert.ok(auditEvents(na).length > entries, 'but it is logged');
  await attest(na);
  assert.notEqual(await stateDigest(na), before, 'the digest would have shown it');
});

test('every verdict is logged with its reason', async () => {
  await using na = await startUnlimited();
  for (const [path, event] of [
    [VERIFY, 'membership_attestation_verified'],
    [VERIFY_WITH_TREATY, 'treaty_attestation_verified'],
    [VERIFY_TREATY, 'recognition_treaty_verified'],
  ] as const) {
    await post(na, path, acceptable(na, path));
    const outcomes = audited(na, event);
    assert.equal(outcomes.length, 1);
    assert.deepEqual([outcomes[0]?.accepted, outcomes[0]?.reason], [true, 'accepted']);
  }
  const [outcomes] = audited(na, 'treaty_attestation_verified');
  assert.deepEqual(Object.keys(outcomes ?? {}).sort(), [
    'accepted',
    'attestation_id',
    'reason',
    'subject_sovereign_id',
    'treaty_id',
  ]);
});

test('each verification endpoint takes 60 requests a minute from an address, with a limit of its own', async () => {
  await using na = await startUnlimited({ environment: { MESH_RATE_LIMIT_VERIFY: '' } });
  const calls: ((body: string) => Promise<Received>)[] = ENDPOINTS.map(
    (path) => (body) => send(na, 'POST', path, { body }),
  );
  for (const [index, call] of calls.entries()) {
    for (let n = 0; n < 60; n += 1) {
      const body = n % 2 === 0 ? '{}' : 'no json';
      assert.equal((await call(body)).status, 400, `${ENDPOINTS[index]}, request ${n + 1}`);
    }
    for (const body of ['{}', 'no json']) {
      const limited = await call(body);
      assert.equal(outcome(limited), '429 rate_limit_exceeded');
      assert.equal(limited.headers.get('retry-after'), '60');
    }
  }
  na.clock.advance(MINUTE);
  for (const call of calls) assert.equal((await call('{}')).status, 400);
});

test('the limit of a verification endpoint slides with the minute', async () => {
  await using na = await startUnlimited({ environment: { MESH_RATE_LIMIT_VERIFY: '2/60' } });
  const call = async () => (await post(na, VERIFY, {})).status;
  assert.equal(await call(), 400);
  na.clock.advance(40_000);
  assert.equal(await call(), 400);
  assert.equal(await call(), 429);
  na.clock.advance(20_000);
  assert.equal(await call(), 400);
  assert.equal(await call(), 429, 'refused requests were not counted, accepted ones were');
});
