/** The recognition policy that verifications use [core-4-12]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, JsonValue } from '../src/base/json/value.ts';
import { valuesExcept } from './support/hostile.ts';
import { get, operate, outcome } from './support/requests.ts';
import { checkTable, inEach } from './support/tables.ts';
import { audited, post, type Sovereign, sovereign, startUnlimited } from './support/trust.ts';
import { entryOf, policyOf } from './support/verifications.ts';

const VERIFY = '/attestations/verify';

const POLICY = '/admin/recognition-policy';

test('without a policy in the body or in the store it is 400, and one in the store applies', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const attestation = beta.attestation(na.clock.now());
  const bare = await post(na, VERIFY, { attestation });
  assert.equal(outcome(bare), '400 missing_recognition_policy');
  await operate(na, POLICY, { recognition_policy: policyOf(entryOf(beta)) });
  assert.equal((await post(na, VERIFY, { attestation })).body.reason, 'accepted');
  const given = { attestation, recognition_policy: policyOf() };
  assert.equal(
    (await post(na, VERIFY, given)).body.reason,
    'unknown_issuer',
    'the given one first',
  );
  await operate(na, POLICY, {
    recognition_policy: {
      ...policyOf(entryOf(beta)),
      revoked_attestation_ids: [attestation.attestation_id ?? ''],
    },
  });
  assert.equal((await post(na, VERIFY, { attestation })).body.reason, 'locally_revoked');
});

test('a policy in the body is used even if it is invalid: 422', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const attestation = beta.attestation(na.clock.now());
  await operate(na, POLICY, { recognition_policy: policyOf(entryOf(beta)) });
  for (const [name, recognition_policy] of [...valuesExcept(), ...wrongPolicies(beta)]) {
    const answer = await post(na, VERIFY, { attestation, recognition_policy });
    assert.equal(outcome(answer), '422 invalid_attestation_or_policy', name);
  }
});

function wrongPolicies(beta: Sovereign): [string, JsonValue][] {
  const entry = entryOf(beta);
  const noList = valuesExcept('a list', 'an empty list');
  const noText = valuesExcept('a string', 'an empty string');
  const { local_sovereign_id: _, ...nameless } = policyOf(entry) as Record<string, JsonValue>;
  const { sovereign_id: __, ...anonymous } = entry as Record<string, JsonValue>;
  const { public_keys: ___, ...keyless } = entry as Record<string, JsonValue>;
  return [
    ['a policy without local_sovereign_id', nameless],
    ['an entry without sovereign_id', policyOf(anonymous)],
    ['an entry without public_keys', policyOf(keyless)],
    ['an entry with no key', policyOf({ ...entry, public_keys: [] })],
    ['an unknown status', policyOf({ ...entry, accepted_statuses: ['gone'] })],
    ...noText.map(([name, value]): [string, JsonValue] => [
      `${name} as local_sovereign_id`,
      { ...policyOf(entry), local_sovereign_id: value },
    ]),
    ...noText.map(([name, value]): [string, JsonValue] => [
      `${name} as a key`,
      policyOf({ ...entry, public_keys: [value] }),
    ]),
    ...noText.map(([name, value]): [string, JsonValue] => [
      `${name} as a revoked id`,
      { ...policyOf(entry), revoked_attestation_ids: [value] },
    ]),
    ...noList.flatMap(([name, value]): [string, JsonValue][] => [
      [`${name} as recognized_issuers`, { ...policyOf(), recognized_issuers: value }],
      [`${name} as revoked_attestation_ids`, { ...policyOf(), revoked_attestation_ids: value }],
      [`${name} as public_keys`, policyOf({ ...entry, public_keys: value })],
      [`${name} as allowed_roles`, policyOf({ ...entry, allowed_roles: value })],
      [`${name} as accepted_statuses`, policyOf({ ...entry, accepted_statuses: value })],
    ]),
    ...valuesExcept('an object').map(([name, value]): [string, JsonValue] => [
      `${name} as an entry`,
      { ...policyOf(), recognized_issuers: [value] },
    ]),
  ];
}

test('setting a policy answers with its id, and it is served normalized', async () => {
  await using na = await startUnlimited();
  assert.equal(
    outcome(await get(na, '/recognition-policy')),
    '404 recognition_policy_not_configured',
  );
  const beta = sovereign('beta');
  for (const key of ['', '!!', beta.key.publicKey.slice(1), `${beta.key.publicKey} `]) {
    const entry = { ...(entryOf(beta) as JsonObject), public_keys: [beta.key.publicKey, key] };
    const refused = await operate(na, POLICY, { recognition_policy: policyOf(entry) });
    assert.equal(outcome(refused), '400 invalid_public_keys', JSON.stringify(key));
  }
  const answer = await operate(na, POLICY, {
    recognition_policy: {
      local_sovereign_id: 'alpha',
      recognized_issuers: [{ sovereign_id: 'beta', public_keys: [beta.key.publicKey], extra: 1 }],
      revoked_attestation_ids: ['b', '\u{1f600}', 'a', 'b', '\ue000'],
      extra: 1,
    },
  });
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.body, {
    policy_id: 'recognition-alpha',
    local_sovereign_id: 'alpha',
    active: true,
  });
  assert.deepEqual((await get(na, '/recognition-policy')).body, {
    local_sovereign_id: 'alpha',
    recognized_issuers: [
      {
        sovereign_id: 'beta',
        public_keys: [beta.key.publicKey],
        allowed_roles: [],
        accepted_statuses: ['active'],
      },
    ],
    revoked_attestation_ids: ['a', 'b', '\ue000', '\u{1f600}'],
  });
  assert.deepEqual(audited(na, 'recognition_policy_saved'), [
    { policy_id: 'recognition-alpha', local_sovereign_id: 'alpha', recognized_issuer_count: 1 },
  ]);
});

/** Characters, not UTF-16 units. */
const LONGEST = '\u{1F600}'.repeat(256);

test('a policy is accepted with its wrapper or without, and its id has a default', async () => {
  await using na = await startUnlimited();
  const policy = policyOf(entryOf(sovereign('beta')));
  for (const [name, body, expected] of [
    ['wrapped', { recognition_policy: policy }, 'recognition-alpha'],
    ['wrapped, with an id', { recognition_policy: policy, policy_id: 'p-1' }, 'p-1'],
    [
      'wrapped, with an empty id',
      { recognition_policy: policy, policy_id: '' },
      'recognition-alpha',
    ],
    [
      'wrapped, with null as id',
      { recognition_policy: policy, policy_id: null },
      'recognition-alpha',
    ],
    ['wrapped, with the longest id', { recognition_policy: policy, policy_id: LONGEST }, LONGEST],
    ['bare', policy, 'recognition-alpha'],
    ['bare, with an id', { ...policy, policy_id: 'p-2' }, 'p-2'],
    ['of another sovereign', { ...policy, local_sovereign_id: 'gamma' }, 'recognition-gamma'],
    ['with no issuer', { recognition_policy: { local_sovereign_id: 'x' } }, 'recognition-x'],
  ] as [string, JsonObject, string][]) {
    const answer = await operate(na, POLICY, body);
    assert.deepEqual([answer.status, answer.body.policy_id], [200, expected], name);
  }
  const { body } = await get(na, '/recognition-policy');
  assert.equal(body.local_sovereign_id, 'x', 'the one that was set last applies');
});

test('an absent policy is 400, an invalid one 422, and the previous one stays', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  await operate(na, POLICY, { recognition_policy: policyOf(entryOf(beta)) });
  const before = (await get(na, '/recognition-policy')).text;
  const wrongIds = inEach('policy_id', [
    ...valuesExcept('null', 'a string', 'an empty string'),
    ['one character too many', `${LONGEST}x`],
  ]);
  await checkTable(
    {
      '400 missing_recognition_policy': {
        'an empty body': {},
        null: { recognition_policy: null },
        'only an id': { policy_id: 'p' },
      },
      '422 invalid_recognition_policy': inEach('recognition_policy', [
        ...valuesExcept('null'),
        ...wrongPolicies(beta),
      ]),
      '422 request_validation_failed': Object.fromEntries(
        Object.entries(wrongIds).map(([name, id]) => [
          name,
          { recognition_policy: policyOf(), ...id },
        ]),
      ),
    },
    async (body: JsonObject) => outcome(await operate(na, POLICY, body)),
  );
  assert.equal((await get(na, '/recognition-policy')).text, before);
  assert.equal(audited(na, 'recognition_policy_saved').length, 1);
});
