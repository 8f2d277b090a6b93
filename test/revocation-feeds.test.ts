/** Revocation feeds, both our own and imported ones [service-states-imported-feed], [core-4-14], [core-5-10]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifyAuditChain } from '../src/authority/audit/audit.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { GENESIS_HASH } from '../src/store/store.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { FORGED_SIGNATURE, misspelledKeys, valuesExcept, WEAK_KEYS } from './support/hostile.ts';
import { auditEvents, get, newKey, operate, outcome, send } from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { auditEntriesOf } from './support/test-stores.ts';
import {
  attest,
  audited,
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

/** For tests that leave nothing behind that another test would notice. */
const shared = sharedAuthority();

const FEED = '/sovereign-revocation-feed';

// Export

test('while nothing is revoked the feed is a signed empty one with sequence 0', async () => {
  await using na = await startTestAuthority();
  const answer = await get(na, FEED);
  assert.equal(answer.status, 200);
  const { feed_id, issued_at, signatures, ...rest } = answer.body;
  assert.deepEqual(rest, {
    issuer_sovereign_id: 'alpha',
    sequence: 0,
    revoked_attestation_ids: [],
    revocation_reasons: {},
    issued_by: na.audience,
  });
  assert.match(feed_id, UUID);
  assert.match(issued_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$/);
  assert.deepEqual(
    signatures.map(({ key_id }: { key_id: string }) => key_id),
    [na.audience],
  );
  assert.ok(verifies(parsed(answer), na.audience));
});

test('the feed is the same across requests and restarts, until the next revocation', async () => {
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
  assert.equal((await get(again, FEED)).text, first);
  await using third = await again.restart();
  assert.equal((await get(third, FEED)).text, first);
});

test('each revoked attestation raises the sequence by one and gives the feed a new identity', async () => {
  await using na = await startTestAuthority();
  const feeds = [(await get(na, FEED)).body];
  const reasons: Record<string, string> = {};
  for (const reason of ['left', 'key_compromise', '', undefined]) {
    na.clock.advance(MINUTE);
    const { attestation_id } = await issued(attest(na));
    reasons[String(attestation_id)] = reason ?? 'unspecified';
    await revokeAttestation(na, attestation_id, reason === undefined ? {} : { reason });
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
    assert.ok(verifies(parsed(answer), na.audience));
    feeds.push(answer.body);
  }
  assert.equal(new Set(feeds.map(({ feed_id }) => feed_id)).size, feeds.length);
});

test('a repeated or refused revocation does not change the feed', async () => {
  await using na = await startTestAuthority();
  const { attestation_id } = await issued(attest(na));
  await revokeAttestation(na, attestation_id, { reason: 'first' });
  const feed = (await get(na, FEED)).text;
  na.clock.advance(MINUTE);
  await revokeAttestation(na, attestation_id, { reason: 'second' });
  await revokeAttestation(na, attestation_id, { reason: 7 });
  await revokeAttestation(na, 'nobody');
  assert.equal((await get(na, FEED)).text, feed);
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

test('the feed can be requested by our own name', async () => {
  await using na = await startTestAuthority({ environment: { MESH_FOREIGN_ISSUER: 'refuse' } });
  const plain = await get(na, FEED);
  assert.equal((await get(na, `${FEED}?issuer_sovereign_id=alpha`)).text, plain.text);
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

test('MESH_FOREIGN_ISSUER=refuse serves only our own feed', async () => {
  await using na = await startTestAuthority({ environment: { MESH_FOREIGN_ISSUER: 'refuse' } });
  for (const name of ['beta', 'ALPHA', 'alpha%20']) {
    const answer = await get(na, `${FEED}?issuer_sovereign_id=${name}`);
    assert.equal(outcome(answer), '400 feed_issuer_mismatch', name);
  }
});

test('the feed has a strong ETag, and clients that have it get 304', async () => {
  await using na = await startTestAuthority();
  for (const path of [FEED, `${FEED}?issuer_sovereign_id=beta`]) {
    const etag = (await get(na, path)).headers.get('etag') ?? '';
    assert.match(etag, /^"[^"]+"$/);
    const conditional = () => send(na, 'GET', path, { headers: { 'If-None-Match': etag } });
    const held = await conditional();
    assert.deepEqual([held.status, held.text], [304, '']);
    const issuer = path === FEED ? 'alpha' : 'beta';
    const { attestation_id } = await issued(attest(na, { issuer_sovereign_id: issuer }));
    await revokeAttestation(na, attestation_id);
    assert.equal((await conditional()).status, 200);
  }
});

test('another authority can import our feed', async () => {
  await using na = await startTestAuthority();
  const { attestation_id } = await issued(attest(na));
  await revokeAttestation(na, attestation_id);
  const feed = parsed(await get(na, FEED));
  await using other = await startTestAuthority({ clock: na.clock });
  const answer = await importFeed(other, feed, { issuer_public_keys: { alpha: na.audience } });
  assert.deepEqual(answer.body, {
    accepted: true,
    reason: 'accepted',
    feed_id: feed.feed_id,
    issuer_sovereign_id: 'alpha',
    sequence: 1,
    revoked_count: 1,
  });
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

test('an empty feed with sequence 0 is a feed too, and is stale when it comes again', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const feed = beta.feed(na.clock.now(), 0);
  const answer = await importFeed(na, feed, keysOf(beta));
  assert.deepEqual([answer.status, answer.body.revoked_count], [200, 0]);
  assert.equal(outcome(await importFeed(na, feed, keysOf(beta))), '409 stale_sequence');
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

test('a feed of our own name is checked like any other', async () => {
  await using na = await startTestAuthority();
  const feed = sovereign('alpha').feed(na.clock.now(), 1, ids('a'));
  const answer = await importFeed(na, feed, { issuer_public_keys: [na.audience] });
  assert.equal(outcome(answer), '400 invalid_signature');
});

/** Faults of an import, in the order of the checks [core-4-14]. */
const FAULTS = [
  'invalid_sovereign_revocation_feed',
  'missing_issuer_public_keys',
  'wrong_issuer',
  'stale_sequence',
  'missing_signature',
  'invalid_signature',
] as const;
type Fault = (typeof FAULTS)[number];

for (const [index, fault] of FAULTS.entries()) {
  const later = FAULTS.slice(index + 1);
  const combinations: Fault[][] = [
    [fault],
    ...later.map((other) => [fault, other]),
    [fault, ...later],
  ];
  const status = fault === 'stale_sequence' ? 409 : 400;
  for (const faults of combinations) {
    test(`an import with ${faults.join(', ')} is ${status} ${fault}, and changes nothing`, async () => {
      await using na = await startTestAuthority();
      const beta = sovereign('beta');
      await importFeed(na, beta.feed(na.clock.now(), 5, ids('a')), keysOf(beta));
      const before = (await get(na, '/recognition-graph')).text;
      const body = faultyImport(na, beta, new Set(faults));
      const answer = await operate(na, IMPORT, body);
      assert.equal(outcome(answer), `${status} ${fault}`);
      const { feed_id, issuer_sovereign_id, sequence } = body.feed as JsonObject;
      const details = { feed_id, issuer_sovereign_id, sequence };
      const audit = audited(na, 'sovereign_revocation_feed_rejected');
      if (index < 2) {
        const outcomes = fault === 'missing_issuer_public_keys' ? { issuer_sovereign_id } : {};
        assert.deepEqual(answer.body.error.details, outcomes);
        assert.deepEqual(audit, []);
      } else {
        assert.deepEqual(answer.body.error.details, details);
        assert.deepEqual(audit, [{ ...details, reason: fault }]);
      }
      assert.equal((await get(na, '/recognition-graph')).text, before);
      const next = await importFeed(na, beta.feed(na.clock.now(), 6), keysOf(beta));
      assert.equal(outcome(next), '200', 'the stored sequence is the old one');
    });
  }
}

function faultyImport(na: TestAuthority, beta: Sovereign, faults: ReadonlySet<Fault>): JsonObject {
  const feed: Record<string, JsonValue> = {
    ...beta.feed(na.clock.now(), faults.has('stale_sequence') ? 5 : 6, ids('b')),
  };
  if (faults.has('invalid_sovereign_revocation_feed')) feed.revoked_attestation_ids = [7];
  if (faults.has('missing_signature')) feed.signatures = [];
  const keys = faults.has('invalid_signature') ? [newKey().publicKey] : [beta.key.publicKey];
  return {
    feed,
    issuer_public_keys: faults.has('missing_issuer_public_keys') ? [] : keys,
    expected_issuer_sovereign_id: faults.has('wrong_issuer') ? 'gamma' : 'beta',
  };
}

test('an invalid feed is 400 invalid_sovereign_revocation_feed', async (t) => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const noText = valuesExcept('a string', 'an empty string');
  const make = (changes: JsonObject) => beta.feed(na.clock.now(), 1, { ...ids('a'), ...changes });
  const cases: [string, JsonValue | undefined][] = [
    ['nothing', undefined],
    ...valuesExcept(),
    ...['feed_id', 'issuer_sovereign_id', 'issued_by'].flatMap((member) =>
      noText.map(([name, value]): [string, JsonValue] => [
        `${name} as ${member}`,
        make({ [member]: value }),
      ]),
    ),
    ...[
      ...valuesExcept('the integer 7'),
      ['-1', -1] as const,
      ['-1.0', new JsonFloat(-1)] as const,
      ['1.5', new JsonFloat(1.5)] as const,
      ['-2 ** 70', -(2n ** 70n)] as const,
      ['"1"', '1'] as const,
    ].map(([name, sequence]): [string, JsonValue] => [`${name} as sequence`, make({ sequence })]),
    ...[
      ...valuesExcept(),
      ['a naive datetime', '2026-01-01T00:00:00'] as const,
      ['a numeric text', '1767225600'] as const,
    ].map(([name, issued_at]): [string, JsonValue] => [
      `${name} as issued_at`,
      make({ issued_at }),
    ]),
    ...valuesExcept('a list', 'an empty list').map(([name, value]): [string, JsonValue] => [
      `${name} as revoked_attestation_ids`,
      make({ revoked_attestation_ids: value }),
    ]),
    ...noText.map(([name, value]): [string, JsonValue] => [
      `${name} as a revoked id`,
      make({ revoked_attestation_ids: ['a', value] }),
    ]),
    ...valuesExcept('an object', 'an empty object').map(([name, value]): [string, JsonValue] => [
      `${name} as revocation_reasons`,
      make({ revocation_reasons: value }),
    ]),
    ...noText.map(([name, value]): [string, JsonValue] => [
      `${name} as a reason`,
      make({ revocation_reasons: { a: value } }),
    ]),
    ['a reason for an id that is not revoked', make({ revocation_reasons: { a: 'x', b: 'y' } })],
    ['a reason for __proto__', make({ revocation_reasons: parseJson('{"__proto__":"x"}') })],
    ...valuesExcept('a list', 'an empty list').map(([name, value]): [string, JsonValue] => [
      `${name} as signatures`,
      { ...make({}), signatures: value },
    ]),
    ['a signature without key_id', { ...make({}), signatures: [{ sig: 'x' }] }],
    ['a signature without sig', { ...make({}), signatures: [{ key_id: 'x' }] }],
  ];
  for (const [name, feed] of cases) {
    await t.test(name, async () => {
      const body = feed === undefined ? keysOf(beta) : { feed, ...keysOf(beta) };
      const answer = await operate(na, IMPORT, body);
      assert.equal(outcome(answer), '400 invalid_sovereign_revocation_feed');
    });
  }
  for (const member of ['feed_id', 'issuer_sovereign_id', 'sequence', 'issued_at', 'issued_by']) {
    await t.test(`a feed without ${member}`, async () => {
      const { [member]: _, ...feed } = make({}) as Record<string, JsonValue>;
      const answer = await importFeed(na, feed, keysOf(beta));
      assert.equal(outcome(answer), '400 invalid_sovereign_revocation_feed');
    });
  }
  assert.deepEqual(auditEvents(na), []);
});

for (const [name, value] of valuesExcept('null', 'a string', 'an empty string')) {
  test(`${name} as expected_issuer_sovereign_id is 422`, async () => {
    const na = await shared();
    const beta = sovereign('beta');
    const rest = { ...keysOf(beta), expected_issuer_sovereign_id: value };
    const answer = await importFeed(na, beta.feed(na.clock.now(), 1), rest);
    assert.equal(outcome(answer), '422 request_validation_failed');
  });
}

test('the expected issuer is compared only when it is given', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  for (const [sequence, rest] of [
    [1, {}],
    [2, { expected_issuer_sovereign_id: null }],
    [3, { expected_issuer_sovereign_id: 'beta' }],
  ] as [number, JsonObject][]) {
    const feed = beta.feed(na.clock.now(), sequence);
    assert.equal(outcome(await importFeed(na, feed, { ...keysOf(beta), ...rest })), '200');
  }
});

// Keys of an import

test('keys are a list or an object; if empty or of another type, they are missing', async (t) => {
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
    await t.test(`${name}: ${expected}`, async () => {
      sequence += 1;
      const feed = beta.feed(na.clock.now(), sequence);
      assert.equal(outcome(await importFeed(na, feed, { issuer_public_keys })), expected);
    });
  }
  for (const key of WEAK_KEYS) {
    const forged = {
      ...beta.feed(na.clock.now(), 1000),
      signatures: [{ key_id: key, sig: FORGED_SIGNATURE }],
    };
    const answer = await importFeed(na, forged, { issuer_public_keys: [key] });
    assert.equal(outcome(answer), invalid, 'a weak key verifies nothing');
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

for (const [name, left, expected] of [
  ['that expires soon', SECOND, '200'],
  ['in its last second', SECOND - 1, '400 missing_issuer_public_keys'],
  ['that has expired', 0, '400 missing_issuer_public_keys'],
] as const) {
  test(`the keys of a treaty ${name}: ${expected}`, async () => {
    await using na = await startTestAuthority();
    const beta = sovereign('beta');
    await recognize(na, { subject_public_keys: [beta.key.publicKey], validity_hours: 1 });
    na.clock.advance(HOUR - left);
    const feed = beta.feed(na.clock.now(), 1);
    assert.equal(outcome(await importFeed(na, feed)), expected);
    assert.equal(
      outcome(await importFeed(na, feed, { issuer_public_keys: null })),
      expected === '200' ? '409 stale_sequence' : expected,
    );
  });
}

test('a replaced treaty no longer vouches, its successor does', async () => {
  await using na = await startTestAuthority();
  const [old, rotated] = [sovereign('beta'), sovereign('beta')];
  const first = await issued(recognize(na, { subject_public_keys: [old.key.publicKey] }));
  const second = await issued(recognize(na, { subject_public_keys: [rotated.key.publicKey] }));
  await revokeTreaty(na, first.treaty_id, { reason: `renewed_by:${second.treaty_id}` });
  const now = na.clock.now();
  assert.equal(outcome(await importFeed(na, old.feed(now, 1))), '400 invalid_signature');
  assert.equal(outcome(await importFeed(na, rotated.feed(now, 1))), '200');
});

test('given keys alone decide, whatever treaties say', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  await recognize(na, { subject_public_keys: [beta.key.publicKey] });
  const feed = beta.feed(na.clock.now(), 1);
  const other = { issuer_public_keys: [newKey().publicKey] };
  assert.equal(outcome(await importFeed(na, feed, other)), '400 invalid_signature');
});

// Sequences

test('each feed must be newer than the last one, by any step', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  for (const [sequence, expected] of [
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

test('a sequence is a whole number of any size, and is returned with every digit', async (t) => {
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
    await t.test(digits.slice(0, 24), async () => {
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
    });
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
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const feed = beta.feed(na.clock.now(), 3);
  const answer = await importFeed(na, { ...feed, sequence: new JsonFloat(3) }, keysOf(beta));
  assert.equal(outcome(answer), '200');
  assert.match(answer.text, /"sequence":3[,}]/);
});

for (const [name, sequences] of [
  ['the same', Array.from({ length: 20 }, () => 1)],
  ['rising', Array.from({ length: 20 }, (_, n) => n)],
  ['falling', Array.from({ length: 20 }, (_, n) => 20 - n)],
] as const) {
  test(`20 concurrent imports with ${name} sequence keep the highest, each sequence at most once`, async () => {
    await using na = await startTestAuthority();
    const beta = sovereign('beta');
    const answers = await Promise.all(
      sequences.map((sequence, n) =>
        importFeed(na, beta.feed(na.clock.now(), sequence, ids(`id-${n}`)), keysOf(beta)),
      ),
    );
    const accepted = answers.filter(({ status }) => status === 200);
    const taken = accepted.map(({ body }) => body.sequence);
    assert.equal(new Set(taken).size, taken.length);
    assert.equal(Math.max(...taken), Math.max(...sequences));
    if (name === 'the same') assert.equal(taken.length, 1);
    const refused = answers.filter(({ status }) => status !== 200);
    for (const answer of refused) assert.equal(outcome(answer), '409 stale_sequence');
    assert.equal((await materialOf(na)).length, accepted.length, 'a refused feed revokes nothing');
    const stale = beta.feed(na.clock.now(), Math.max(...sequences));
    assert.equal(outcome(await importFeed(na, stale, keysOf(beta))), '409 stale_sequence');
  });
}

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

test('a feed of 5000 ids is imported whole', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const many = Array.from({ length: 5000 }, (_, n) => `id-${String(n).padStart(5, '0')}`);
  const feed = beta.feed(na.clock.now(), 1, ids(...many));
  assert.equal((await importFeed(na, feed, keysOf(beta))).body.revoked_count, 5000);
  assert.equal((await get(na, '/connectome.json')).body.summary.imported_revocation_count, 5000);
});

test('an unknown member is dropped, and invalidates a signature over it', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const feed = beta.feed(na.clock.now(), 1, ids('a'));
  const covered = signedBy({ ...unsigned(feed), extra: 1 }, beta.key);
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

test('importing requires the privileged tier, which is checked before the body is read', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  for (const body of [
    {},
    { feed: beta.feed(na.clock.now(), 1), ...keysOf(beta) },
  ] as JsonObject[]) {
    const standard = await operate(na, IMPORT, body, { operator: na.standard });
    assert.equal(outcome(standard), '403 insufficient_operator_tier');
    const stranger = { keyId: na.privileged.keyId, key: newKey() };
    assert.equal(
      outcome(await operate(na, IMPORT, body, { operator: stranger })),
      '401 admin_auth_failed',
    );
  }
  assert.deepEqual(await materialOf(na), []);
});

function keysOf({ key }: Sovereign): JsonObject {
  return { issuer_public_keys: [key.publicKey] };
}

function unsigned(record: JsonObject): JsonObject {
  const { signatures: _, ...rest } = record as Record<string, JsonValue>;
  return rest;
}

async function materialOf(na: TestAuthority): Promise<JsonObject[]> {
  const rows = parsed(await get(na, '/recognition-graph')).revoked_trust_material;
  return (rows as JsonObject[]).filter(({ type }) => type === 'membership_attestation');
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
