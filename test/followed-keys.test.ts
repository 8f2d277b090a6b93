/** A client without an agent, and the keys that it follows from the one it pinned [authority-keys-7]. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { SHA256 } from '../src/base/crypto/digest.ts';
import type { Signer } from '../src/base/crypto/primitives.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { createNetworkTrust, type NetworkTrust } from '../src/client/followed-keys.ts';
import { createVerifier } from '../src/client/offline.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { authorityKeysDigest } from '../src/protocol/records/authority-chain.ts';
import { genesisDigest } from '../src/protocol/records/genesis.ts';
import { signRecord, soleSigner } from '../src/protocol/records/signed-record.ts';
import {
  chainOf,
  countedKey,
  FIRST,
  HOUR,
  NETWORK,
  ROOT,
  START,
  type Step,
  signedStatement,
  TOOLS,
  termsOf,
} from './support/authority-chain.ts';
import { FIRST_GENESIS, startSuccessionAuthority } from './support/succession-authority.ts';

const PLANNED: Step = { kind: 'planned', at: 10, overlap: 40 };
const ROLL_BACK: Step = { ...PLANNED, kind: 'roll_back' };
const STOLEN: Step = { kind: 'compromise', at: 100 };
const [SECOND, THIRD] = [countedKey(2), countedKey(3)];
const DIGEST = genesisDigest(FIRST_GENESIS, SHA256);

interface Reader {
  readonly trust: NetworkTrust;
  /** Sets the time in hours after the start. */
  at(hours: number): void;
}

function reader(pin: { rootKey?: string; stored?: string } = {}, hours = 0): Reader {
  let now = START + hours * HOUR;
  const trust = createNetworkTrust({
    networkName: NETWORK,
    authorityKey: FIRST.publicKey,
    ...TOOLS,
    ...pin,
    now: () => now,
  });
  return {
    trust,
    at(later) {
      now = START + later * HOUR;
    },
  };
}

const ROOTED = { rootKey: ROOT.publicKey };
const documentOf = (...steps: Step[]) => ({ successions: chainOf(steps, DIGEST) });
const names = (keys: readonly string[]) =>
  keys.map(
    (key) =>
      ['first', 'second', 'third'][
        [FIRST, SECOND, THIRD].findIndex(({ publicKey }) => publicKey === key)
      ],
  );

suite('a pinned authority key', () => {
  test('is the only one that counts until a statement is in force', () => {
    const { trust, at } = reader();
    assert.deepEqual(names(trust.signingNow()), ['first']);
    const { refusal, changes, next } = trust.follow(documentOf(PLANNED));
    assert.equal(refusal, null);
    assert.deepEqual([changes.length, next?.to_key], [0, SECOND.publicKey]);
    at(60);
    assert.deepEqual(names(trust.signingNow()), ['first'], 'it may have been withdrawn');
    assert.equal(trust.follow(documentOf(PLANNED)).changes.length, 1);
    assert.equal(trust.currentKey(), SECOND.publicKey);
    assert.deepEqual(names(trust.signingNow()), ['second']);
  });

  test('counts together with its successor during the overlap, the current one first', () => {
    const { trust, at } = reader({}, 11);
    trust.follow(documentOf(PLANNED));
    assert.deepEqual(names(trust.signingNow()), ['second', 'first']);
    trust.follow(documentOf(PLANNED, ROLL_BACK));
    assert.deepEqual(names(trust.signingNow()), ['first', 'second']);
    at(50 + 4 / 60);
    assert.deepEqual(names(trust.signingNow()), ['first', 'second'], 'clocks differ');
    at(50 + 6 / 60);
    assert.deepEqual(names(trust.signingNow()), ['first']);
  });

  test('does not lead across a compromise: the client has to pin the root key', () => {
    const { trust } = reader({}, 200);
    const { refusal } = trust.follow(documentOf(STOLEN));
    assert.equal(refusal?.reason, 'root_key_needed');
    assert.match(
      refusal?.message ?? '',
      /^Statement 1 of the chain replaces a compromised key, so [^.]*; pin the root key of the network\.$/,
    );
    assert.deepEqual(names(trust.signingNow()), ['first']);
    assert.equal(reader(ROOTED, 200).trust.follow(documentOf(STOLEN)).refusal, null);
  });
});

suite('a key that was followed', () => {
  test('is never given up: not for an older copy, a fork, or an invalid document', () => {
    const { trust } = reader(ROOTED, 60);
    trust.follow(documentOf(PLANNED));
    const before = [trust.stored(), trust.digest()];
    const other = signedStatement(
      { ...termsOf(PLANNED, [], DIGEST), to_key: countedKey(9).publicKey },
      { to: countedKey(9) },
    );
    for (const [offered, reason] of [
      [{ successions: [] }, 'shorter'],
      [{ successions: [other] }, 'fork'],
      [{}, 'malformed'],
      ['{"successions":', 'malformed'],
      [documentOf(STOLEN), 'fork'],
    ] as const) {
      const { refusal, changes } = trust.follow(offered);
      assert.equal(refusal?.reason, reason);
      assert.match(refusal?.message ?? '', /^[A-Z][^\n]*; [^\n]*\.$/);
      assert.deepEqual([changes, trust.stored(), trust.digest()], [[], ...before]);
    }
  });

  test('is kept between runs, along with what was in force', () => {
    const document = documentOf(PLANNED, ROLL_BACK, { kind: 'planned', at: 300 });
    const first = reader(ROOTED, 100);
    first.trust.follow(JSON.stringify(document));
    assert.equal(first.trust.digest(), authorityKeysDigest(document.successions, SHA256));
    const again = reader({ ...ROOTED, stored: first.trust.stored() }, 400);
    assert.equal(again.trust.stored(), first.trust.stored());
    assert.equal(again.trust.currentKey(), FIRST.publicKey, 'nobody said that it happened');
    assert.equal(again.trust.lastChange()?.kind, 'roll_back');
    assert.equal(again.trust.follow(documentOf(PLANNED)).refusal?.reason, 'shorter');
    assert.equal(again.trust.follow(document).changes.length, 1);
    for (const stored of ['{', '{}', '{"successions":[],"in_force":-1}']) {
      assert.throws(() => reader({ ...ROOTED, stored }), /stored authority keys are damaged/);
    }
    const forged = first.trust.stored().replaceAll(SECOND.publicKey, countedKey(9).publicKey);
    assert.throws(
      () => reader({ ...ROOTED, stored: forged }),
      /stored authority keys are refused: Statement \d/,
    );
  });

  test('is judged by the genesis rather than a clock that is slightly off', () => {
    const [early, late] = [reader(ROOTED, 10 - 4 / 60), reader(ROOTED, 10 + 4 / 60)];
    const named = {
      ...FIRST_GENESIS,
      network_authority: {
        ...FIRST_GENESIS.network_authority,
        valid_from: formatInstant(START + 10 * HOUR),
      },
    };
    assert.equal(early.trust.follow(documentOf(PLANNED), named).changes.length, 1);
    assert.equal(early.trust.currentKey(), SECOND.publicKey);
    assert.equal(late.trust.follow(documentOf(PLANNED), FIRST_GENESIS).changes.length, 0);
    late.at(11);
    assert.equal(late.trust.follow(documentOf(PLANNED), FIRST_GENESIS).changes.length, 1);
  });
});

suite('a verifier with followed keys', () => {
  const signed = (record: JsonObject, ...by: Signer[]) => ({
    ...record,
    signatures: by.flatMap((key) => signRecord(record, soleSigner(key)).signatures),
  });
  const certificate = (issued: number, ...by: Signer[]) =>
    signed(
      {
        cert_id: 'c',
        node_public_key: 'k',
        network_name: NETWORK,
        roles: [],
        issued_at: formatInstant(START + issued * HOUR),
        expires_at: formatInstant(START + 1000 * HOUR),
        issued_by: 'na',
      },
      ...by,
    );
  const followedAt = (hours: number, ...steps: Step[]) => {
    const { trust } = reader(ROOTED, hours);
    assert.equal(trust.follow(documentOf(...steps)).refusal, null);
    const now = () => START + hours * HOUR;
    return { trust, verifier: createVerifier({ verify: TOOLS.verify, now }) };
  };

  for (const [what, hours, steps, issued, by, reason] of [
    ['the old key signed before the change', 11, [PLANNED], 5, [FIRST], 'valid'],
    ['both keys signed', 11, [PLANNED], 10.5, [SECOND, FIRST], 'valid'],
    ['the old key signed in the overlap, which is over', 60, [PLANNED], 45, [FIRST], 'valid'],
    ['the old key signed after the overlap', 60, [PLANNED], 55, [FIRST], 'invalid_signature'],
    ['the key signed that was rolled back', 60, [PLANNED, ROLL_BACK], 20, [SECOND], 'valid'],
    ['it signed after that', 60, [PLANNED, ROLL_BACK], 55, [SECOND], 'invalid_signature'],
    ['the stolen key signed before the theft', 101, [STOLEN], 98.9, [FIRST], 'valid'],
    ['the stolen key signed since the theft', 101, [STOLEN], 99, [FIRST], 'invalid_signature'],
    ['the new key signed, too', 101, [STOLEN], 99.5, [FIRST, SECOND], 'valid'],
    ['the next key signed', 5, [PLANNED], 4, [SECOND], 'invalid_signature'],
    ['a stranger signed', 11, [PLANNED], 5, [countedKey(9)], 'invalid_signature'],
  ] as [string, number, Step[], number, Signer[], string][]) {
    test(`reports ${reason} for a certificate that ${what}`, () => {
      const { trust, verifier } = followedAt(hours, ...steps);
      const expected = { genesis: FIRST_GENESIS, authority: trust };
      assert.equal(verifier.certificate(certificate(issued, ...by), expected), reason);
    });
  }

  test('believes current statements only from keys that sign now', () => {
    const list = (...by: Signer[]) =>
      signed(
        {
          crl_id: 'l',
          sequence: 3,
          issued_at: formatInstant(START + 9 * HOUR),
          next_update: formatInstant(START + 900 * HOUR),
          issuer: FIRST.publicKey,
          revoked_certificates: [],
        },
        ...by,
      );
    const overlap = followedAt(11, PLANNED);
    const later = followedAt(60, PLANNED);
    const stranger = countedKey(9);
    for (const [{ trust, verifier }, by, reason] of [
      [overlap, [FIRST], 'valid'],
      [overlap, [SECOND, FIRST], 'valid'],
      [overlap, [stranger], 'invalid_signature'],
      [overlap, [stranger, stranger, FIRST], 'invalid_signature'],
      [later, [FIRST], 'invalid_signature'],
      [later, [SECOND], 'valid'],
    ] as const) {
      assert.equal(verifier.revocationList(list(...by), trust), reason);
    }
    // A client that pinned the old key and follows nothing can verify lists until the overlap ends.
    assert.equal(overlap.verifier.revocationList(list(SECOND, FIRST), FIRST.publicKey), 'valid');
    assert.equal(later.verifier.revocationList(list(SECOND), FIRST.publicKey), 'invalid_signature');
  });
});

test('a public client that pinned the old key is served through the overlap, and follows from it afterwards', async () => {
  await using na = await startSuccessionAuthority();
  const client = createPublicClient({ url: na.url });
  const verifier = createVerifier({ now: na.clock.now });
  const trust = createNetworkTrust({
    networkName: NETWORK,
    authorityKey: FIRST.publicKey,
    now: na.clock.now,
  });
  const reasons = async (by: string | NetworkTrust) => [
    verifier.bulletin(await client.readBulletin(), NETWORK, by),
    verifier.revocationList(await client.crl(), by),
    verifier.policy(await client.readPolicy(), by),
  ];
  const valid = ['valid', 'valid', 'valid'];
  na.successions = chainOf([PLANNED], DIGEST);
  for (const hours of [0, 10, 49]) {
    na.clock.step(START + hours * HOUR - na.clock.now());
    assert.deepEqual(await reasons(FIRST.publicKey), valid);
    assert.equal(trust.follow(await client.authorityKeys()).refusal, null);
    assert.deepEqual(await reasons(trust), valid);
  }
  na.clock.advance(20 * HOUR);
  assert.deepEqual(await reasons(trust), valid);
  assert.deepEqual(new Set(await reasons(FIRST.publicKey)), new Set(['invalid_signature']));
});
