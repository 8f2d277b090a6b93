/** Revocation feeds, both our own and imported ones [service-states-imported-feed], [core-4-14], [core-5-10]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifyAuditChain } from '../src/authority/audit/audit.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { GENESIS_HASH } from '../src/store/store.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { FORGED_SIGNATURE, misspelledKeys, valuesExcept, WEAK_KEYS } from './support/hostile.ts';
import { auditEvents, get, newKey, operate, outcome } from './support/requests.ts';
import { type Cases, checkFaults, type Fault, inEach } from './support/tables.ts';
import { auditEntriesOf } from './support/test-stores.ts';
import {
  attest,
  audited,
  freshId,
  IMPORT,
  importFeed,
  issued,
  misspellableKey,
  parsed,
  post,
  recognize,
  revokeAttestation,
  revokeTreaty,
  type Sovereign,
  signedBy,
  sovereign,
  startUnlimited,
  UUID,
  verifies,
} from './support/trust.ts';
import { without } from './support/trust-protocol.ts';

/** For tests that leave nothing behind that another test would notice. */
const shared = sharedAuthority();

const FEED = '/sovereign-revocation-feed';

// Export

test('the feed starts as a signed empty one, and each revoked attestation gives it a new identity', async () => {
  await using na = await startTestAuthority();
  const feeds: JsonObject[] = [];
  const reasons: Record<string, string> = {};
  const check = async () => {
    const answer = await get(na, FEED);
    const { feed_id, signatures, ...rest } = answer.body;
    assert.deepEqual(rest, {
      issuer_sovereign_id: 'alpha',
      sequence: feeds.length,
      issued_at: formatInstant(na.clock.now()),
      revoked_attestation_ids: Object.keys(reasons).sort(),
      revocation_reasons: reasons,
      issued_by: na.audience,
    });
    assert.match(feed_id, UUID);
    assert.deepEqual(
      signatures.map(({ key_id }: { key_id: string }) => key_id),
      [na.audience],
    );
    assert.ok(verifies(parsed(answer), na.audience));
    feeds.push(answer.body);
  };
  await check();
  for (const reason of ['left', 'key_compromise', '', undefined]) {
    na.clock.advance(MINUTE);
    const { attestation_id } = await issued(attest(na));
    reasons[String(attestation_id)] = reason ?? 'unspecified';
    await revokeAttestation(na, attestation_id, reason === undefined ? {} : { reason });
    await check();
  }
  assert.equal(new Set(feeds.map(({ feed_id }) => feed_id)).size, feeds.length);
});

test('the feed is the same until the next revocation, across requests, refusals and restarts', async () => {
  await using na = await startTestAuthority();
  const empty = (await get(na, FEED)).text;
  na.clock.advance(HOUR);
  await issued(attest(na));
  assert.equal((await get(na, FEED)).text, empty, 'an attestation alone changes nothing');
  await using again = await na.restart();
  assert.equal((await get(again, FEED)).text, empty);
  const { attestation_id } = await issued(attest(again));
  await revokeAttestation(again, attestation_id, { reason: 'Zürich ✓' });
  const first = (await get(again, FEED)).text;
  assert.notEqual(first, empty);
  again.clock.advance(HOUR);
  await revokeAttestation(again, attestation_id, { reason: 'second' });
  await revokeAttestation(again, attestation_id, { reason: 7 });
  await revokeAttestation(again, 'nobody');
  assert.equal((await get(again, FEED)).text, first);
  await using third = await again.restart();
  assert.equal((await get(third, FEED)).text, first);
});

test('30 simultaneous revocations are 30 in the feed, and its sequence is 30', async () => {
  await using na = await startTestAuthority();
  const ids: string[] = [];
  for (let n = 0; n < 30; n += 1) ids.push(String((await issued(attest(na))).attestation_id));
  await Promise.all(ids.map((id) => revokeAttestation(na, id)));
  const answer = await get(na, FEED);
  assert.equal(answer.body.sequence, 30);
  assert.deepEqual(answer.body.revoked_attestation_ids, ids.sort());
  assert.ok(verifies(parsed(answer), na.audience));
  await using again = await na.restart();
  assert.equal((await get(again, FEED)).text, answer.text);
});

test('issued_by and key_id of the feed are the authority key, even if a label is configured', async () => {
  await using na = await startTestAuthority({ environment: { NA_KEY_ID: 'na-2025-q1' } });
  const { attestation_id } = await issued(attest(na, { issuer_sovereign_id: 'beta' }));
  await revokeAttestation(na, attestation_id);
  for (const path of [FEED, `${FEED}?issuer_sovereign_id=beta`]) {
    const answer = await get(na, path);
    assert.equal(answer.body.issued_by, na.audience);
    assert.equal(answer.body.signatures[0].key_id, na.audience);
    assert.ok(verifies(parsed(answer), na.audience));
  }
});

test('attestations issued here under another name have a feed of their own', async () => {
  await using na = await startTestAuthority();
  const ours = await issued(attest(na));
  const theirs = await issued(attest(na, { issuer_sovereign_id: 'beta' }));
  const before = await get(na, `${FEED}?issuer_sovereign_id=beta`);
  assert.deepEqual([before.body.issuer_sovereign_id, before.body.sequence], ['beta', 0]);
  assert.notEqual(before.body.feed_id, (await get(na, FEED)).body.feed_id);
  assert.ok(verifies(parsed(before), na.audience));
  assert.equal((await get(na, `${FEED}?issuer_sovereign_id=beta`)).text, before.text);
  await revokeAttestation(na, theirs.attestation_id, { reason: 'left' });
  assert.equal((await get(na, FEED)).body.sequence, 0, 'ours is not changed by it');
  const after = await get(na, `${FEED}?issuer_sovereign_id=beta`);
  assert.equal(after.body.sequence, 1);
  assert.deepEqual(after.body.revoked_attestation_ids, [theirs.attestation_id]);
  assert.deepEqual(after.body.revocation_reasons, { [String(theirs.attestation_id)]: 'left' });
  await revokeAttestation(na, ours.attestation_id);
  assert.deepEqual((await get(na, FEED)).body.revoked_attestation_ids, [ours.attestation_id]);
  await using again = await na.restart();
  assert.equal((await get(again, `${FEED}?issuer_sovereign_id=beta`)).text, after.text);
});

test('MESH_FOREIGN_ISSUER=refuse serves only our own feed, also by name', async () => {
  await using na = await startTestAuthority({ environment: { MESH_FOREIGN_ISSUER: 'refuse' } });
  const plain = await get(na, FEED);
  assert.equal((await get(na, `${FEED}?issuer_sovereign_id=alpha`)).text, plain.text);
  for (const name of ['beta', 'ALPHA', 'alpha%20']) {
    const answer = await get(na, `${FEED}?issuer_sovereign_id=${name}`);
    assert.equal(outcome(answer), '400 feed_issuer_mismatch', name);
  }
});

// Import

const ids = (...revoked_attestation_ids: readonly string[]): JsonObject => ({
  revoked_attestation_ids,
});

test('importing a feed returns its contents, and is audited', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const feed = beta.feed(na.clock.now(), 3, {
    ...ids('b', 'a', 'b'),
    revocation_reasons: { a: 'left' },
  });
  const { signatures = [] } = signedBy({ ...feed, revoked_attestation_ids: ['a', 'b'] }, beta.key);
  const answer = await importFeed(na, { ...feed, signatures }, keysOf(beta));
  assert.equal(answer.status, 200);
  const about = {
    feed_id: feed.feed_id,
    issuer_sovereign_id: 'beta',
    sequence: 3,
    revoked_count: 2,
  };
  assert.deepEqual(answer.body, { accepted: true, reason: 'accepted', ...about });
  assert.deepEqual(auditEvents(na), [
    { type: 'sovereign_revocation_feed_imported', details: about },
  ]);
  assert.deepEqual(await materialOf(na), [
    materialRow(na, 'beta', 'a', feed, 3, 'left'),
    materialRow(na, 'beta', 'b', feed, 3, null),
  ]);
});

test('imports accumulate: an id stays revoked, and a later feed updates what is known about it', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const first = beta.feed(na.clock.now(), 1, {
    ...ids('a', 'b'),
    revocation_reasons: { a: 'one', b: 'two' },
  });
  await importFeed(na, first, keysOf(beta));
  const firstTime = formatInstant(na.clock.now());
  na.clock.advance(MINUTE);
  const second = beta.feed(na.clock.now(), 5, { ...ids('b', 'c'), revocation_reasons: { c: 'x' } });
  await importFeed(na, second, keysOf(beta));
  assert.deepEqual(await materialOf(na), [
    { ...materialRow(na, 'beta', 'a', first, 1, 'one'), revoked_at: firstTime },
    materialRow(na, 'beta', 'b', second, 5, null),
    materialRow(na, 'beta', 'c', second, 5, 'x'),
  ]);
});

test('issuers are separate: the same id and the same sequence of another issuer are different', async () => {
  await using na = await startTestAuthority();
  for (const of of [sovereign('gamma'), sovereign('beta')]) {
    const feed = of.feed(na.clock.now(), 1, ids('a'));
    assert.equal(outcome(await importFeed(na, feed, keysOf(of))), '200');
  }
  const rows = await materialOf(na);
  assert.deepEqual(
    rows.map(({ issuer_sovereign_id, id }) => `${issuer_sovereign_id} ${id}`),
    ['beta a', 'gamma a'],
  );
});

/** What is wrong with an import, in the order of the checks [core-4-14]. */
interface Draft {
  readonly sequence?: number;
  readonly ids?: JsonValue;
  readonly keys?: readonly string[];
  readonly expected?: string;
  readonly unsigned?: true;
}

const FAULTS = [
  ['400 invalid_sovereign_revocation_feed', { ids: [7] }],
  ['400 missing_issuer_public_keys', { keys: [] }],
  ['400 wrong_issuer', { expected: 'gamma' }],
  ['409 stale_sequence', { sequence: 5 }],
  ['400 missing_signature', { unsigned: true }],
  ['400 invalid_signature', { keys: [newKey().publicKey] }],
] as const satisfies readonly Fault<Draft>[];

test('of several faults of an import the first is reported and audited, and nothing changes', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  await importFeed(na, beta.feed(na.clock.now(), 5, ids('a')), keysOf(beta));
  const graph = (await get(na, '/recognition-graph')).text;
  await checkFaults<Draft>(FAULTS, async (draft) => {
    const { sequence = 6, ids: revoked = ['b'], keys = [beta.key.publicKey], expected } = draft;
    const feed = beta.feed(na.clock.now(), sequence, { revoked_attestation_ids: revoked });
    const before = audited(na, 'sovereign_revocation_feed_rejected').length;
    const answer = await importFeed(na, draft.unsigned ? { ...feed, signatures: [] } : feed, {
      issuer_public_keys: keys,
      expected_issuer_sovereign_id: expected ?? 'beta',
    });
    const { code, details } = answer.body.error;
    const about = { feed_id: feed.feed_id, issuer_sovereign_id: 'beta', sequence };
    const audit = audited(na, 'sovereign_revocation_feed_rejected').slice(before);
    if (code === 'invalid_sovereign_revocation_feed') {
      assert.deepEqual([details, audit], [{}, []]);
    } else if (code === 'missing_issuer_public_keys') {
      assert.deepEqual([details, audit], [{ issuer_sovereign_id: 'beta' }, []]);
    } else {
      assert.deepEqual([details, audit], [about, [{ ...about, reason: code }]]);
    }
    return outcome(answer);
  });
  assert.equal((await get(na, '/recognition-graph')).text, graph);
  const next = await importFeed(na, beta.feed(na.clock.now(), 6), keysOf(beta));
  assert.equal(outcome(next), '200', 'the stored sequence is the old one');
});

test('an invalid feed is 400 invalid_sovereign_revocation_feed', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const noText = valuesExcept('a string', 'an empty string');
  const noList = valuesExcept('a list', 'an empty list');
  const texts = (...values: readonly string[]) => values.map((value) => [value, value] as const);
  const changes: Cases<JsonObject> = {
    ...inEach('feed_id', noText),
    ...inEach('issuer_sovereign_id', noText),
    ...inEach('issued_by', noText),
    ...inEach('sequence', [
      ...valuesExcept('the integer 7'),
      ['-1', -1],
      ['-1.0', new JsonFloat(-1)],
      ['1.5', new JsonFloat(1.5)],
      ['-2 ** 70', -(2n ** 70n)],
      ['"1"', '1'],
      ['257 digits', 10n ** 256n],
    ]),
    ...inEach('feed_id', texts('f'.repeat(257))),
    ...inEach('issuer_sovereign_id', texts('i'.repeat(1025))),
    ...inEach('issued_at', [...valuesExcept(), ...texts('2026-01-01T00:00:00', '1767225600')]),
    ...inEach('revoked_attestation_ids', noList),
    ...inEach(
      'revoked_attestation_ids',
      noText.map(([name, value]) => [`with ${name}`, ['a', value]]),
    ),
    ...inEach('revocation_reasons', valuesExcept('an object', 'an empty object')),
    ...inEach(
      'revocation_reasons',
      noText.map(([name, value]) => [`with ${name}`, { a: value }]),
    ),
    'a reason for an id that is not revoked': { revocation_reasons: { a: 'x', b: 'y' } },
    'a reason for __proto__': { revocation_reasons: parseJson('{"__proto__":"x"}') },
  };
  const make = (change: JsonObject) => beta.feed(na.clock.now(), 1, { ...ids('a'), ...change });
  const feeds: (readonly [string, JsonValue | undefined])[] = [
    ['nothing', undefined],
    ...valuesExcept(),
    ...Object.entries(changes).map(([name, change]) => [name, make(change)] as const),
    ...[...noList, ['without key_id', [{ sig: 'x' }]], ['without sig', [{ key_id: 'x' }]]].map(
      ([name, signatures]) =>
        [`signatures: ${name}`, { ...make({}), signatures } as JsonObject] as const,
    ),
    ...['feed_id', 'issuer_sovereign_id', 'sequence', 'issued_at', 'issued_by'].map(
      (member) => [`a feed without ${member}`, without(make({}), member)] as const,
    ),
  ];
  for (const [name, feed] of feeds) {
    const body = feed === undefined ? keysOf(beta) : { feed, ...keysOf(beta) };
    const answer = await operate(na, IMPORT, body);
    assert.equal(outcome(answer), '400 invalid_sovereign_revocation_feed', name);
  }
  assert.deepEqual(auditEvents(na), []);
});

test('the expected issuer is compared only when it is given', async () => {
  const na = await shared();
  const beta = sovereign('beta');
  const outcomeOf = async (sequence: number, rest: JsonObject) =>
    outcome(
      await importFeed(na, beta.feed(na.clock.now(), sequence), { ...keysOf(beta), ...rest }),
    );
  for (const [name, value] of valuesExcept('null', 'a string', 'an empty string')) {
    const answer = await outcomeOf(1, { expected_issuer_sovereign_id: value });
    assert.equal(answer, '422 request_validation_failed', name);
  }
  assert.equal(await outcomeOf(1, {}), '200');
  assert.equal(await outcomeOf(2, { expected_issuer_sovereign_id: null }), '200');
  assert.equal(await outcomeOf(3, { expected_issuer_sovereign_id: 'beta' }), '200');
});

// Keys of an import

test('keys are a list or an object; if empty or of another type, they are missing', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta', misspellableKey());
  const right = beta.key.publicKey;
  const others = (count: number) => Array.from({ length: count }, () => newKey().publicKey);
  const missing = '400 missing_issuer_public_keys';
  const invalid = '400 invalid_signature';
  const noText = valuesExcept('a string', 'an empty string');
  let sequence = 0;
  for (const [name, issuer_public_keys, expected] of [
    ['a list', [right], '200'],
    ['an object', { 'beta-na': right }, '200'],
    ['a list with another in front', [...others(1), right], '200'],
    ['the key as the 32nd', [...others(31), right], '200'],
    ['the key as the 33rd', [...others(32), right], invalid],
    ['another key', others(1), invalid],
    ['texts that are no keys', ['x', ''], invalid],
    ...misspelledKeys(right).map(
      ([spelling, key]) => [`the key ${spelling}`, [key], invalid] as const,
    ),
    ['an empty list', [], missing],
    ['an empty object', {}, missing],
    ...valuesExcept('null', 'a list', 'an empty list', 'an object', 'an empty object').map(
      ([kind, value]) => [kind, value, missing] as const,
    ),
    ['1.0', new JsonFloat(1), missing],
    ...noText.flatMap(
      ([kind, value]) =>
        [
          [`a list with ${kind}`, [right, value], missing],
          [`an object with ${kind}`, { a: right, b: value }, missing],
        ] as const,
    ),
    ['null, with no treaty', null, missing],
  ] as [string, JsonValue, string][]) {
    sequence += 1;
    const feed = beta.feed(na.clock.now(), sequence);
    assert.equal(outcome(await importFeed(na, feed, { issuer_public_keys })), expected, name);
  }
  const ours = sovereign('alpha').feed(na.clock.now(), 1, ids('a'));
  const answer = await importFeed(na, ours, { issuer_public_keys: [na.audience] });
  assert.equal(outcome(answer), invalid, 'a feed of our own name is checked like any other');
  for (const key of WEAK_KEYS) {
    const forged = {
      ...beta.feed(na.clock.now(), 1000),
      signatures: [{ key_id: key, sig: FORGED_SIGNATURE }],
    };
    const answer = await importFeed(na, forged, { issuer_public_keys: [key] });
    assert.equal(outcome(answer), invalid, 'a weak key verifies nothing');
  }
});

test('of keys with ids the one that a signature names is tried first, because a long feed allows few checks', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const reasons = { revocation_reasons: { a: 'x'.repeat(1_900_000) } };
  const feed = beta.feed(na.clock.now(), 1, { ...ids('a'), ...reasons });
  const [signature] = feed.signatures as readonly [JsonObject];
  const labeled = { ...feed, signatures: [{ ...signature, key_id: 'beta-7' }] };
  const others = Array.from({ length: 6 }, (_, n) => [`beta-${n}`, newKey().publicKey]);
  for (const [id, expected] of [
    ['beta-8', '400 invalid_signature'],
    ['beta-7', '200'],
  ] as const) {
    const keys = Object.fromEntries([...others, [id, beta.key.publicKey]]);
    assert.equal(outcome(await importFeed(na, labeled, { issuer_public_keys: keys })), expected);
  }
});

test('without keys those of active treaties with the issuer decide, regardless of who issued them', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const rotated = sovereign('beta');
  let sequence = 0;
  const importBy = async (signer: Sovereign) => {
    sequence += 1;
    return outcome(await importFeed(na, signer.feed(na.clock.now(), sequence)));
  };
  const keys = (...signers: readonly Sovereign[]) => ({
    subject_public_keys: signers.map(({ key }) => key.publicKey),
  });
  assert.equal(await importBy(beta), '400 missing_issuer_public_keys');
  await recognize(na, { subject_sovereign_id: 'gamma', ...keys(beta) });
  await recognize(na, {
    issuer_sovereign_id: 'beta',
    subject_sovereign_id: 'alpha',
    ...keys(beta),
  });
  assert.equal(await importBy(beta), '400 missing_issuer_public_keys', 'treaties with others');
  const treaty = await issued(recognize(na, { issuer_sovereign_id: 'delta', ...keys(beta) }));
  assert.equal(await importBy(beta), '200');
  assert.equal(await importBy(rotated), '400 invalid_signature');
  await recognize(na, keys(sovereign('beta'), rotated));
  assert.equal(await importBy(rotated), '200', 'each key of each active treaty');
  assert.equal(await importBy(beta), '200');
  await revokeTreaty(na, treaty.treaty_id);
  assert.equal(await importBy(beta), '400 invalid_signature', 'a revoked treaty vouches no longer');
  assert.equal(await importBy(rotated), '200');
});

test('a treaty lends its keys until its last second', async () => {
  const na = await shared();
  for (const [left, expected, again] of [
    [SECOND, '200', '409 stale_sequence'],
    [SECOND - 1, '400 missing_issuer_public_keys'],
    [0, '400 missing_issuer_public_keys'],
  ] as const) {
    const partner = sovereign(freshId('partner'));
    const subject_public_keys = [partner.key.publicKey];
    const about = { subject_sovereign_id: partner.name, subject_public_keys };
    await recognize(na, { ...about, validity_hours: 1 });
    na.clock.advance(HOUR - left);
    const feed = partner.feed(na.clock.now(), 1);
    assert.equal(outcome(await importFeed(na, feed)), expected);
    const repeated = await importFeed(na, feed, { issuer_public_keys: null });
    assert.equal(outcome(repeated), again ?? expected);
  }
});

test('a replaced treaty no longer vouches, its successor does, and given keys alone decide', async () => {
  await using na = await startTestAuthority();
  const [old, rotated] = [sovereign('beta'), sovereign('beta')];
  const first = await issued(recognize(na, { subject_public_keys: [old.key.publicKey] }));
  const second = await issued(recognize(na, { subject_public_keys: [rotated.key.publicKey] }));
  await revokeTreaty(na, first.treaty_id, { reason: `renewed_by:${second.treaty_id}` });
  const now = na.clock.now();
  const other = { issuer_public_keys: [newKey().publicKey] };
  for (const [feed, given, expected] of [
    [old.feed(now, 1), {}, '400 invalid_signature'],
    [rotated.feed(now, 1), other, '400 invalid_signature'],
    [rotated.feed(now, 1), {}, '200'],
  ] as const) {
    assert.equal(outcome(await importFeed(na, feed, given)), expected);
  }
});

// Sequences

test('each feed must be newer than the last one, by any step', async () => {
  const na = await shared();
  const beta = sovereign(freshId('issuer'));
  for (const [sequence, expected] of [
    [0, '200'],
    [0, '409 stale_sequence'],
    [5, '200'],
    [5, '409 stale_sequence'],
    [4, '409 stale_sequence'],
    [0, '409 stale_sequence'],
    [6, '200'],
    [1000, '200'],
    [999, '409 stale_sequence'],
  ] as const) {
    const feed = beta.feed(na.clock.now(), sequence);
    assert.equal(outcome(await importFeed(na, feed, keysOf(beta))), expected, `${sequence}`);
  }
});

test('a sequence is a whole number of any size, and is returned with every digit', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  for (const digits of [
    '9007199254740991',
    '9007199254740992',
    '9007199254740993',
    '9223372036854775807',
    '9223372036854775808',
    '18446744073709551615',
    '18446744073709551616',
    '36893488147419103233',
    `1${'0'.repeat(100)}`,
    `1${'0'.repeat(99)}1`,
  ]) {
    const feed = beta.feed(na.clock.now(), BigInt(digits), ids('a'));
    const answer = await importFeed(na, feed, keysOf(beta));
    assert.equal(outcome(answer), '200');
    assert.match(answer.text, new RegExp(`"sequence":${digits}[,}]`));
    const again = await importFeed(na, feed, keysOf(beta));
    assert.equal(outcome(again), '409 stale_sequence');
    assert.match(again.text, new RegExp(`"sequence":${digits}[,}]`));
    const [row] = parsed(await get(na, '/recognition-graph')).revoked_trust_material as [
      JsonObject,
    ];
    assert.equal(String(row.sequence), digits);
    assert.equal(row.feed_id, feed.feed_id);
  }
  assert.equal(audited(na, 'sovereign_revocation_feed_imported').length, 10);
  const graph = (await get(na, '/recognition-graph')).text;
  await using restarted = await na.restart();
  assert.equal((await get(restarted, '/recognition-graph')).text, graph);
  const entries = await auditEntriesOf(na);
  assert.equal(
    (await verifyAuditChain(entries, GENESIS_HASH)).valid,
    true,
    'the audit chain is intact',
  );
  const smaller = beta.feed(na.clock.now(), 2n ** 300n);
  assert.equal(outcome(await importFeed(restarted, smaller, keysOf(beta))), '409 stale_sequence');
});

test('an integral float is accepted as a sequence', async () => {
  const na = await shared();
  const beta = sovereign(freshId('issuer'));
  const feed = beta.feed(na.clock.now(), 3);
  const answer = await importFeed(na, { ...feed, sequence: new JsonFloat(3) }, keysOf(beta));
  assert.equal(outcome(answer), '200');
  assert.match(answer.text, /"sequence":3[,}]/);
});

test('20 concurrent imports keep the highest sequence, and each sequence at most once', async () => {
  const na = await shared();
  for (const [name, sequences] of [
    ['the same', Array.from({ length: 20 }, () => 1)],
    ['rising', Array.from({ length: 20 }, (_, n) => n)],
    ['falling', Array.from({ length: 20 }, (_, n) => 20 - n)],
  ] as const) {
    const issuer = sovereign(freshId('issuer'));
    const answers = await Promise.all(
      sequences.map((sequence, n) =>
        importFeed(na, issuer.feed(na.clock.now(), sequence, ids(`id-${n}`)), keysOf(issuer)),
      ),
    );
    const accepted = answers.filter(({ status }) => status === 200);
    const taken = accepted.map(({ body }) => body.sequence);
    assert.equal(new Set(taken).size, taken.length);
    assert.equal(Math.max(...taken), Math.max(...sequences));
    if (name === 'the same') assert.equal(taken.length, 1);
    const refused = answers.filter(({ status }) => status !== 200);
    for (const answer of refused) assert.equal(outcome(answer), '409 stale_sequence');
    const rows = await materialOf(na, issuer.name);
    assert.equal(rows.length, accepted.length, 'a refused feed revokes nothing');
    const stale = issuer.feed(na.clock.now(), Math.max(...sequences));
    assert.equal(outcome(await importFeed(na, stale, keysOf(issuer))), '409 stale_sequence');
  }
});

// The contents that a feed may have

test('names that are special to programs are names like any other', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('__proto__');
  const names = [
    '',
    ' ',
    '\u0000',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '😀',
    '\ue000',
  ];
  const feed = beta.feed(na.clock.now(), 1, {
    revoked_attestation_ids: [...names].sort(byCodePoint),
    revocation_reasons: parseJson('{"":"","__proto__":"proto"}'),
  });
  const answer = await importFeed(na, feed, keysOf(beta));
  assert.equal(outcome(answer), '200');
  const expected = [...names].sort(byCodePoint).map((id) => {
    const reason = id === '' ? '' : id === '__proto__' ? 'proto' : null;
    return materialRow(na, '__proto__', id, feed, 1, reason);
  });
  assert.deepEqual(await materialOf(na), expected);
  await using again = await na.restart();
  assert.deepEqual(await materialOf(again), expected);
});

test('an id without a reason has none, even if every object has a member of that name', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const names = ['__proto__', 'constructor', 'toString', 'valueOf'];
  const feed = beta.feed(na.clock.now(), 1, ids(...names));
  assert.equal(outcome(await importFeed(na, feed, keysOf(beta))), '200');
  assert.deepEqual(
    (await materialOf(na)).map(({ id, reason }) => [id, reason]),
    names.map((id) => [id, null]),
  );
  const next = beta.feed(na.clock.now(), 2);
  assert.equal(outcome(await importFeed(na, next, keysOf(beta))), '200', 'and the service goes on');
});

test('an unknown member is dropped, and invalidates a signature over it', async () => {
  const na = await shared();
  const beta = sovereign(freshId('issuer'));
  const feed = beta.feed(na.clock.now(), 1, ids('a'));
  const covered = signedBy({ ...feed, extra: 1 }, beta.key);
  assert.equal(outcome(await importFeed(na, covered, keysOf(beta))), '400 invalid_signature');
  assert.equal(outcome(await importFeed(na, { ...feed, extra: 1 }, keysOf(beta))), '200');
});

test('an imported revocation is enforced forever, treaty or not', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const attestation = beta.attestation(na.clock.now(), { expires_at: '2099-01-01T00:00:00Z' });
  const verdict = async (on: TestAuthority) => {
    const treaty = await issued(recognize(on, { subject_public_keys: [beta.key.publicKey] }));
    return (await post(on, '/attestations/verify-with-treaty', { attestation, treaty })).body
      .reason;
  };
  assert.equal(await verdict(na), 'accepted');
  const { attestation_id = '' } = attestation;
  await importFeed(na, beta.feed(na.clock.now(), 1, ids(String(attestation_id))));
  await importFeed(na, beta.feed(na.clock.now(), 2), keysOf(beta));
  assert.equal(await verdict(na), 'attestation_locally_revoked');
  na.clock.advance(1000 * HOUR);
  await using again = await na.restart();
  assert.equal(await verdict(again), 'attestation_locally_revoked');
});

function keysOf({ key }: Sovereign): JsonObject {
  return { issuer_public_keys: [key.publicKey] };
}

/** Revoked attestations of the graph, of one issuer if it is given. */
async function materialOf(na: TestAuthority, issuer?: string): Promise<JsonObject[]> {
  const rows = parsed(await get(na, '/recognition-graph')).revoked_trust_material;
  return (rows as JsonObject[]).filter(
    ({ type, issuer_sovereign_id }) =>
      type === 'membership_attestation' && (issuer ?? issuer_sovereign_id) === issuer_sovereign_id,
  );
}

function materialRow(
  na: TestAuthority,
  issuer_sovereign_id: string,
  id: string,
  feed: JsonObject,
  sequence: number,
  reason: string | null,
): JsonObject {
  return {
    type: 'membership_attestation',
    id,
    issuer_sovereign_id,
    feed_id: feed.feed_id ?? '',
    sequence,
    reason,
    revoked_at: formatInstant(na.clock.now()),
  };
}

function byCodePoint(a: string, b: string): number {
  const [x, y] = [[...a], [...b]].map((text) => text.map((c) => c.codePointAt(0) ?? 0));
  for (const [index, code] of (x ?? []).entries()) {
    const other = y?.[index];
    if (other === undefined) return 1;
    if (code !== other) return code - other;
  }
  return (x?.length ?? 0) - (y?.length ?? 0);
}
