/**
 * Why attestations and treaties are accepted or not [core-4-11] to [core-4-13], [core-1-5]; `verifications.test.ts` has
 * what all verifications share.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import {
  verifyAttestation,
  verifyAttestationWithTreaty,
  verifyTreaty,
} from '../src/protocol/api/verifications.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import { FORGED_SIGNATURE, misspelledKeys, valuesExcept, WEAK_KEYS } from './support/hostile.ts';
import { newKey, outcome } from './support/requests.ts';
import { checkFaults, checkTable, type Fault, inEach, type Table } from './support/tables.ts';
import {
  attest,
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
import {
  checkVerdicts,
  eachAs,
  entryOf,
  NOW,
  policyOf,
  resultOf,
  us,
  verdictOf,
  verifier,
} from './support/verifications.ts';

const VERIFY = '/attestations/verify';
const VERIFY_WITH_TREATY = '/attestations/verify-with-treaty';
const VERIFY_TREATY = '/recognition-treaties/verify';

const SKEW = 5 * MINUTE;
const OUTSIDE: JsonObject = {
  expires_at: '2020-01-02T00:00:00Z',
  valid_from: '2020-01-01T00:00:00Z',
  issued_at: '2020-01-01T00:00:00Z',
};

const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
const stranger = newKey().publicKey;

/** The record without its signatures, if they are to be missing. */
function unsignedIf(isUnsigned: boolean | undefined, record: JsonObject): JsonObject {
  return isUnsigned ? { ...record, signatures: [] } : record;
}

// Attestations under a policy

interface PolicyDraft {
  readonly issuer?: string;
  readonly revoked?: true;
  readonly status?: string;
  readonly window?: JsonObject;
  readonly allowedRoles?: readonly string[];
  readonly unsigned?: true;
  readonly keys?: readonly string[];
  /** Other changes of the attestation, and of the entry of its issuer. */
  readonly record?: JsonObject;
  readonly entry?: JsonObject;
}

/** In the order of [core-4-11]. */
const ATTESTATION_FAULTS: readonly Fault<PolicyDraft>[] = [
  ['unknown_issuer', { issuer: 'gamma' }],
  ['locally_revoked', { revoked: true }],
  ['bad_status', { status: 'suspended' }],
  ['outside_validity_window', { window: OUTSIDE }],
  ['role_not_allowed', { allowedRoles: ['role:other'] }],
  ['missing_signature', { unsigned: true }],
  ['invalid_signature', { keys: [stranger] }],
];

function policyCase(draft: PolicyDraft, issuer = beta): JsonObject {
  const status = draft.status === undefined ? {} : { status: draft.status };
  const changes = { ...draft.record, ...draft.window, ...status };
  const attestation = unsignedIf(draft.unsigned, issuer.attestation(NOW, changes));
  const entry = entryOf(issuer);
  const changed = {
    ...entry,
    sovereign_id: draft.issuer ?? 'beta',
    allowed_roles: draft.allowedRoles ?? entry.allowed_roles ?? null,
    public_keys: draft.keys ?? entry.public_keys ?? null,
    ...draft.entry,
  };
  const revoked_attestation_ids = draft.revoked ? [attestation.attestation_id ?? ''] : [];
  return { attestation, recognition_policy: { ...policyOf(changed), revoked_attestation_ids } };
}

const underPolicy = (draft: PolicyDraft) => resultOf(verifyAttestation, policyCase(draft));

test('an attestation is verified under a policy, and the first reason is reported', async () => {
  const body = policyCase({});
  assert.deepEqual(await verdictOf(verifyAttestation, body), {
    accepted: true,
    reason: 'accepted',
    issuer_sovereign_id: 'beta',
    attestation_id: (body.attestation as JsonObject).attestation_id,
  });
  await checkFaults(ATTESTATION_FAULTS, underPolicy);
});

test('roles and statuses that a policy allows', () =>
  checkTable<PolicyDraft>(
    {
      accepted: {
        'no role at all': { record: { roles: [] } },
        'any role, because none is named': { allowedRoles: [], record: { roles: ['x'] } },
      },
      role_not_allowed: {
        'only some roles allowed': { record: { roles: ['role:client', 'x'] } },
        'a role that only begins like an allowed one': { record: { roles: ['role:client2'] } },
      },
      bad_status: {
        'no accepted status': { entry: { accepted_statuses: [] } },
        'active where only suspended is accepted': { entry: { accepted_statuses: ['suspended'] } },
      },
      // The window demands an active status all the same.
      outside_validity_window: {
        'suspended where that is accepted': {
          entry: { accepted_statuses: ['active', 'suspended'] },
          status: 'suspended',
        },
        'revoked by its own status where that is accepted': {
          entry: { accepted_statuses: ['revoked'] },
          status: 'revoked',
        },
      },
    },
    underPolicy,
  ));

test('of several entries for one issuer the first counts', async () => {
  const attestation = beta.attestation(NOW);
  const [right, other] = [entryOf(beta), entryOf(gamma)];
  const wrong = { ...right, public_keys: [stranger] };
  const under = (...entries: JsonObject[]) => ({ recognition_policy: policyOf(...entries) });
  await checkVerdicts(
    verifyAttestation,
    {
      accepted: { 'the right one': under(right, wrong), 'after another': under(other, right) },
      invalid_signature: { 'the wrong one': under(wrong, right) },
      unknown_issuer: { 'no entry': under() },
    },
    { attestation },
  );
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

test('attestation, treaty and both together are valid from 5 minutes before their window until 5 after it', async () => {
  const keys = [gamma.key.publicKey];
  const base = { issued_at: formatInstant(NOW - HOUR), valid_from: formatInstant(NOW - HOUR) };
  const inZone = (instant: number) => formatInstant(instant + 2 * HOUR).replace('Z', '+02:00');
  const windows: Table = {
    accepted: {
      'valid from exactly 5 minutes ahead': { valid_from: formatInstant(NOW + SKEW) },
      'expired exactly 5 minutes ago': { expires_at: formatInstant(NOW - SKEW) },
      'issued long after now': { issued_at: formatInstant(NOW + HOUR / 2) },
      'expired exactly 5 minutes ago in another zone': { expires_at: inZone(NOW - SKEW) },
    },
    outside_validity_window: {
      'valid from a millisecond further ahead': { valid_from: formatInstant(NOW + SKEW + 1) },
      'valid from a microsecond further ahead': { valid_from: formatInstant(NOW + SKEW + 0.001) },
      'expired a millisecond earlier': { expires_at: formatInstant(NOW - SKEW - 1) },
      'expired a microsecond earlier': { expires_at: formatInstant(NOW - SKEW - 0.001) },
      'expired a millisecond earlier in another zone': { expires_at: inZone(NOW - SKEW - 1) },
    },
  };
  await checkTable(windows, (window) => underPolicy({ window: { ...base, ...window } }));
  await checkTable(windows, (window) => {
    const treaty = gamma.treaty(NOW, beta, { ...base, ...window });
    return resultOf(verifyTreaty, { treaty, issuer_public_keys: keys });
  });
  const reasonOfBoth = (attested: JsonObject, agreed: JsonObject) =>
    resultOf(verifyAttestationWithTreaty, {
      attestation: beta.attestation(NOW, { ...base, ...attested }),
      treaty: gamma.treaty(NOW, beta, { ...base, ...agreed }),
      treaty_issuer_public_keys: keys,
    });
  const { accepted = {}, outside_validity_window = {} } = windows;
  await checkTable(
    { accepted, treaty_outside_validity_window: outside_validity_window },
    (window) => reasonOfBoth(window, window),
  );
  await checkTable(
    { accepted, attestation_outside_validity_window: outside_validity_window },
    (window) => reasonOfBoth(window, {}),
  );
});

// Treaties

interface TreatyDraft {
  readonly issuer?: string;
  readonly subject?: string;
  readonly revoked?: true;
  readonly status?: string;
  readonly window?: JsonObject;
  readonly unsigned?: true;
  readonly keys?: readonly string[];
}

/** In the order of [core-4-13]. */
const TREATY_FAULTS: readonly Fault<TreatyDraft>[] = [
  ['wrong_issuer', { issuer: 'someone' }],
  ['wrong_subject', { subject: 'someone' }],
  ['locally_revoked', { revoked: true }],
  ['bad_status', { status: 'suspended' }],
  ['outside_validity_window', { window: OUTSIDE }],
  ['missing_signature', { unsigned: true }],
  ['invalid_signature', { keys: [stranger] }],
];

/** An authority that revoked the treaty with this id, and the attestation. */
const revoking = verifier({
  askRevocations: ({ treaty, attestation }) => ({
    attestation_revoked_here: false,
    attestation_revoked_by_feed: attestation?.id === 'gone',
    treaty_revoked: treaty?.id === 'gone',
    treaty_keys: [],
  }),
});

function treatyOf({ revoked, status, window, unsigned }: TreatyDraft, terms: JsonObject = {}) {
  const changes = {
    ...terms,
    ...window,
    ...(status !== undefined && { status }),
    ...(revoked && { treaty_id: 'gone' }),
  };
  return unsignedIf(unsigned, gamma.treaty(NOW, beta, changes));
}

function treatyCase(draft: TreatyDraft): JsonObject {
  return {
    treaty: treatyOf(draft),
    issuer_public_keys: draft.keys ?? [gamma.key.publicKey],
    expected_issuer_sovereign_id: draft.issuer ?? 'gamma',
    expected_subject_sovereign_id: draft.subject ?? 'beta',
  };
}

test('a treaty is verified, and the first reason is reported', async () => {
  const body = treatyCase({});
  assert.deepEqual(await verdictOf(verifyTreaty, body, revoking), {
    accepted: true,
    reason: 'accepted',
    treaty_id: (body.treaty as JsonObject).treaty_id,
    issuer_sovereign_id: 'gamma',
    subject_sovereign_id: 'beta',
    trust_basis: 'caller_keys',
  });
  const ask = (draft: TreatyDraft) => resultOf(verifyTreaty, treatyCase(draft), revoking);
  await checkFaults(TREATY_FAULTS, ask);
  assert.equal(await ask({ status: 'revoked' }), 'bad_status');
});

test('expectations count only when they are given, and must be text', async () => {
  for (const member of ['expected_issuer_sovereign_id', 'expected_subject_sovereign_id']) {
    const { [member]: _, ...absent } = treatyCase({});
    await checkVerdicts(
      verifyTreaty,
      {
        accepted: { absent: {}, null: { [member]: null } },
        '422 request_validation_failed': inEach(
          member,
          valuesExcept('null', 'a string', 'an empty string'),
        ),
      },
      absent,
    );
    await assert.rejects(verdictOf(verifyTreaty, { ...absent, [member]: 7 }), {
      details: { errors: [{ loc: ['body', member], msg: 'must be a string', type: 'type' }] },
    });
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
  const alpha = sovereign('alpha');
  const own = await issued(recognize(na, keysOf(beta)));
  const forged = alpha.treaty(now, beta);
  const theirs = gamma.treaty(now, beta);
  const attestation = beta.attestation(now);
  const ours = na.audience;
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
  // Another key of the issuer has signed as well, as during an overlap.
  const next = newKey();
  const byBoth = signedBy(theirs, next, gamma.key);
  await assertBasis(byBoth, [next.publicKey, gamma.key.publicKey], 'accepted', 'treaty');
  await assertBasis(byBoth, [next.publicKey], 'accepted', 'caller_keys');
  await revokeTreaty(na, treaty.treaty_id);
  await assertBasis(theirs, keys, 'accepted', 'caller_keys');
});

/** The terms of a treaty with the sovereign. */
function keysOf({ name, key }: Sovereign): JsonObject {
  return { subject_sovereign_id: name, subject_public_keys: [key.publicKey] };
}

// Attestations by treaty

interface BothDraft {
  readonly issuer?: string;
  readonly treaty?: TreatyDraft;
  readonly gone?: true;
  readonly status?: string;
  readonly window?: JsonObject;
  readonly roles?: readonly string[];
  readonly unsigned?: true;
  readonly subjectKeys?: readonly string[];
}

const SCOPE = { allowed_roles: ['role:client'], accepted_statuses: ['active'], claims: {} };

/** Faults of the attestation, in the order of [core-4-13]; they come after those of the treaty. */
const BOTH_FAULTS: readonly Fault<BothDraft>[] = [
  ['attestation_locally_revoked', { gone: true }],
  ['attestation_bad_status', { status: 'suspended' }],
  ['attestation_outside_validity_window', { window: OUTSIDE }],
  ['attestation_role_not_allowed', { roles: ['role:other'] }],
  ['attestation_missing_signature', { unsigned: true }],
  ['attestation_invalid_signature', { subjectKeys: [stranger] }],
];

function bothCase(draft: BothDraft): JsonObject {
  const changes = {
    ...draft.window,
    ...(draft.issuer !== undefined && { issuer_sovereign_id: draft.issuer }),
    ...(draft.gone && { attestation_id: 'gone' }),
    ...(draft.status !== undefined && { status: draft.status }),
    ...(draft.roles !== undefined && { roles: draft.roles }),
  };
  const { treaty = {}, subjectKeys = [beta.key.publicKey] } = draft;
  return {
    treaty: treatyOf(treaty, { scope: SCOPE, subject_public_keys: subjectKeys }),
    attestation: unsignedIf(draft.unsigned, beta.attestation(NOW, changes)),
    treaty_issuer_public_keys: treaty.keys ?? [gamma.key.publicKey],
  };
}

test('an attestation is verified by a treaty, and the first reason is reported', async () => {
  const body = bothCase({});
  assert.deepEqual(await verdictOf(verifyAttestationWithTreaty, body, revoking), {
    accepted: true,
    reason: 'accepted',
    treaty_id: (body.treaty as JsonObject).treaty_id,
    attestation_id: (body.attestation as JsonObject).attestation_id,
    issuer_sovereign_id: 'gamma',
    subject_sovereign_id: 'beta',
    trust_basis: 'caller_keys',
  });
  const ask = (draft: BothDraft) =>
    resultOf(verifyAttestationWithTreaty, bothCase(draft), revoking);
  await checkFaults(BOTH_FAULTS, ask);
  const all: BothDraft = Object.assign({}, ...BOTH_FAULTS.map(([, draft]) => draft));
  const ofTreaty: readonly Fault<TreatyDraft & Pick<BothDraft, 'issuer'>>[] = [
    ['treaty_wrong_subject', { issuer: 'someone' }],
    ...TREATY_FAULTS.slice(2).map(
      ([expected, draft]): Fault<TreatyDraft> => [`treaty_${expected}`, draft],
    ),
  ];
  for (const others of [{}, all]) {
    await checkFaults(ofTreaty, ({ issuer, ...treaty }) =>
      ask({ ...others, treaty, ...(issuer !== undefined && { issuer }) }),
    );
  }
});

test('roles and statuses that a treaty allows', () =>
  checkTable<readonly [scope: JsonObject, record: JsonObject]>(
    {
      accepted: {
        'any role when the scope names none': [{ allowed_roles: [] }, { roles: ['x'] }],
      },
      attestation_bad_status: {
        'no status when the scope accepts none': [{ accepted_statuses: [] }, {}],
      },
      // The window demands an active status all the same.
      attestation_outside_validity_window: {
        'suspended where the scope accepts it': [
          { accepted_statuses: ['suspended'] },
          { status: 'suspended' },
        ],
      },
    },
    ([scope, record]) =>
      resultOf(verifyAttestationWithTreaty, {
        attestation: beta.attestation(NOW, record),
        treaty: gamma.treaty(NOW, beta, { scope: { ...SCOPE, allowed_roles: [], ...scope } }),
        treaty_issuer_public_keys: [gamma.key.publicKey],
      }),
  ));

test('revocations count by issuer: imported ones of that issuer, and our own', async () => {
  await using na = await startUnlimited();
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

test('an absent record is 400, an invalid one is 422', async () => {
  const attestation = beta.attestation(NOW);
  const treaty = gamma.treaty(NOW, beta);
  const recognition_policy = policyOf(entryOf(beta));
  const wrong = valuesExcept('null');
  await checkVerdicts(verifyAttestation, {
    '400 missing_attestation': {
      nothing: {},
      'no attestation': { recognition_policy },
      null: { attestation: null, recognition_policy },
      'a wrong policy, no attestation': { recognition_policy: 7 },
    },
    '400 missing_recognition_policy': {
      'an attestation that is none, no policy': { attestation: 7 },
    },
  });
  const invalidPolicy = { '422 invalid_attestation_or_policy': inEach('attestation', wrong) };
  await checkVerdicts(verifyAttestation, invalidPolicy, { recognition_policy });
  await checkVerdicts(verifyAttestationWithTreaty, {
    '400 missing_attestation': {
      nothing: {},
      'null for both': { attestation: null, treaty: null },
      'no attestation': { treaty },
    },
    '400 missing_treaty': {
      'no treaty': { attestation },
      'null as treaty': { attestation, treaty: null },
      'no treaty, a wrong attestation': { attestation: 7 },
    },
  });
  const invalid = { ...inEach('attestation', wrong), ...inEach('treaty', wrong) };
  const table = { '422 invalid_attestation_or_treaty': invalid };
  await checkVerdicts(verifyAttestationWithTreaty, table, { attestation, treaty });
  await checkVerdicts(verifyTreaty, {
    '400 missing_treaty': { nothing: {}, null: { treaty: null } },
    '422 invalid_recognition_treaty': inEach('treaty', wrong),
  });
});

// Key lists [core-1-5]

test('caller-supplied keys are a list or an object of text; absent or null means our own key', async () => {
  const oddly = sovereign('gamma', misspellableKey());
  const ours = us.treaty(NOW, beta);
  const theirs = oddly.treaty(NOW, beta);
  const right = oddly.key.publicKey;
  const others = (count: number) => Array.from({ length: count }, () => newKey().publicKey);
  const asObject = (keys: readonly string[]) =>
    Object.fromEntries(keys.map((key, n) => [`key-${n}`, key]));
  const noText = valuesExcept('a string', 'an empty string');
  const noKeys = valuesExcept('null', 'a list', 'an empty list', 'an object', 'an empty object');
  /** The treaty, with the keys unless they are absent. */
  type Given = readonly [treaty: JsonObject, keys?: JsonValue];
  const named = (entries: readonly (readonly [string, JsonValue])[], treaty = theirs) =>
    Object.fromEntries(entries.map(([name, keys]): [string, Given] => [name, [treaty, keys]]));
  const weak = WEAK_KEYS.map((key): [string, Given] => [
    `the weak key ${key} and a forged signature`,
    [{ ...theirs, signatures: [{ key_id: key, sig: FORGED_SIGNATURE }] }, [key]],
  ]);
  const accepted: { readonly [name: string]: Given } = {
    'absent, of our own treaty': [ours],
    'null, of our own treaty': [ours, null],
    ...named([
      ['a list with the key', [right]],
      ['an object with the key', { 'gamma-na': right }],
      ['an object with the key under an odd name', { __proto__: null, '': right }],
      ['the key behind another', [...others(1), right]],
      ['the key as the 32nd', [...others(31), right]],
      ['the key in an empty text’s company', ['', right]],
      ['the key among texts that are no keys', ['x', '!', right]],
    ]),
  };
  const invalid: { readonly [name: string]: Given } = {
    'absent, of another treaty': [theirs],
    'an empty list, of our own treaty': [ours, []],
    'an empty object, of our own treaty': [ours, {}],
    ...named([
      ['null, of another treaty', null],
      ['an empty list', []],
      ['an empty object', {}],
      ['another key', others(1)],
      ['the key as the 33rd', [...others(32), right]],
      ['the key as the 33rd of an object', asObject([...others(32), right])],
      ...misspelledKeys(right).map(([name, key]) => [`the key ${name}`, [key]] as const),
    ]),
    ...Object.fromEntries(weak),
  };
  const refused = named([
    ...noKeys,
    ['1.0', new JsonFloat(1)],
    ...noText.map(([name, value]) => [`a list with ${name}`, [right, value]] as const),
    ...noText.map(([name, value]) => [`an object with ${name}`, { a: right, b: value }] as const),
  ]);
  const refusal = '400 invalid_public_keys';
  await checkTable<Given>(
    { accepted, invalid_signature: invalid, [refusal]: refused },
    ([treaty, keys]) =>
      resultOf(verifyTreaty, {
        treaty,
        ...(keys !== undefined && { issuer_public_keys: keys }),
      }),
  );
  await checkTable<Given>(
    { accepted, treaty_invalid_signature: invalid, [refusal]: refused },
    ([treaty, keys]) =>
      resultOf(verifyAttestationWithTreaty, {
        attestation: beta.attestation(NOW),
        treaty,
        ...(keys !== undefined && { treaty_issuer_public_keys: keys }),
      }),
  );
});

test('no more than 16 signatures are tried', () => {
  const { signatures: _, ...record } = gamma.treaty(NOW, beta) as JsonObject;
  const others = Array.from({ length: 16 }, newKey);
  return checkVerdicts(
    verifyTreaty,
    {
      accepted: eachAs('treaty', { '16th': signedBy(record, ...others.slice(1), gamma.key) }),
      invalid_signature: eachAs('treaty', { '17th': signedBy(record, ...others, gamma.key) }),
    },
    { issuer_public_keys: [gamma.key.publicKey] },
  );
});

test('a recognized issuer’s keys are limited and must be spelled like any other keys', async () => {
  const oddly = sovereign('beta', misspellableKey());
  const { publicKey } = oddly.key;
  const others = Array.from({ length: 32 }, () => newKey().publicKey);
  const misspelled = misspelledKeys(publicKey).map(([name, key]) => [name, { keys: [key] }]);
  await checkTable<PolicyDraft>(
    {
      accepted: { 'the key as the 32nd': { keys: [...others.slice(1), publicKey] } },
      invalid_signature: {
        'the key as the 33rd': { keys: [...others, publicKey] },
        ...Object.fromEntries(misspelled),
      },
    },
    (draft) => resultOf(verifyAttestation, policyCase(draft, oddly)),
  );
});
