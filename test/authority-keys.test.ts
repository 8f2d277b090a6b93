/** The succession to the authority's next key: staged, canceled, and refused [authority-keys-8], [authority-keys-9]. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { storedChain } from '../src/authority/authority-keys.ts';
import { SHA256 } from '../src/base/crypto/digest.ts';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { publishedAuthorityKeys } from '../src/edge/auth/known-keys.ts';
import { createDocumentCache, ownDocument } from '../src/protocol/contract/documents.ts';
import { authorityKeysDigest, followChain } from '../src/protocol/records/authority-chain.ts';
import { isBulletinOf, readBulletin } from '../src/protocol/records/bulletin.ts';
import type { GenesisBlock } from '../src/protocol/records/genesis.ts';
import type { SignedSuccession } from '../src/protocol/records/succession-request.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { chainOf, FIRST } from './support/authority-chain.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import {
  auditEvents,
  get,
  joinedNode,
  newKey,
  operate,
  outcome,
  send,
} from './support/requests.ts';
import {
  activate,
  DAY,
  type Draft,
  keyIn,
  keyStates,
  stage,
  step,
  succession,
} from './support/successions.ts';

test('of the keys that signed before, the newest are tried first', () => {
  const statements = chainOf([1, 100, 200].map((at) => ({ kind: 'planned' as const, at })));
  const ids = [FIRST.publicKey, ...statements.map(({ to_key }) => to_key)];
  const newestFirst = ids.toReversed();
  const stored = ids.map((id, n) => ({
    kind: 'authority-key',
    id,
    version: 1,
    snapshot: {
      value: id === newestFirst[0] ? 'current' : 'retired',
      context: { statement: statements[n - 1] ?? null, genesis: {}, rolledBackFrom: null },
    },
  }));
  const { trusted, keys } = storedChain(stored as never);
  assert.deepEqual(trusted, newestFirst);

  const document = ownDocument(JSON.stringify({ keys, successions: statements }));
  const documents = createDocumentCache(new Int32Array(0));
  documents.take({ name: 'authority_keys', version: 1, document });
  const known = publishedAuthorityKeys({} as GenesisBlock, FIRST.publicKey, documents);
  assert.deepEqual(known.trusted, newestFirst);
});

suite('staging', () => {
  const shared = sharedAuthority();

  test('a network whose key was never replaced publishes that single key, with a validator', async () => {
    const na = await shared();
    const { body, headers } = await get(na, '/authority-keys');
    assert.deepEqual(body.keys, [
      { public_key: na.audience, state: 'current', since: null, signs_until: null },
    ]);
    assert.deepEqual(body.successions, []);
    const again = await send(na, 'GET', '/authority-keys', {
      headers: { 'if-none-match': headers.get('etag') ?? '' },
    });
    assert.equal(again.status, 304);
    assert.equal('authority_keys_digest' in (await get(na, '/bulletin')).body, false);
  });

  /** Replaces signatures of the statement. */
  const resigned =
    (change: (signatures: SignedSuccession['statement']['signatures']) => readonly object[]) =>
    ({ statement, ...others }: SignedSuccession) => ({
      ...others,
      statement: { ...statement, signatures: change(statement.signatures) },
    });
  const withGenesis = (changes: object) => (signed: SignedSuccession) => ({
    ...signed,
    genesis: { ...signed.genesis, ...changes },
  });

  /** Why a succession based on this draft, or changed like this, is refused; `authority-chain` has further reasons. */
  const REFUSED: readonly (readonly [
    string,
    string,
    (na: TestAuthority) => Draft | Promise<Draft>,
    ((signed: SignedSuccession) => object)?,
  ])[] = [
    [
      'of another network',
      'wrong_genesis',
      () => ({ altered: { network_name: 'beta' } }),
      withGenesis({ network_name: 'beta' }),
    ],
    [
      'whose statement names another network',
      'wrong_network',
      () => ({ altered: { network_name: 'beta' } }),
    ],
    ['with a gap before it', 'gap', () => ({ altered: { sequence: 2 } })],
    [
      'that follows another genesis block',
      'broken_link',
      () => ({ altered: { previous_digest: 'ab'.repeat(32) } }),
    ],
    [
      'from another key',
      'wrong_from_key',
      () => {
        const from = newKey();
        return { from, altered: { from_key: from.publicKey } };
      },
    ],
    ['to the root key', 'key_used_before', (na) => ({ to: keyIn(na.dataDir, 'root.key') })],
    ['to the key of an operator', 'key_of_operator', (na) => ({ to: na.standard.key })],
    [
      'to the key of a revoked operator',
      'key_of_operator',
      async (na) => {
        const to = newKey();
        const added = { key_id: 'former', public_key: to.publicKey, tier: 'standard' };
        assert.equal(outcome(await operate(na, '/admin/operator-keys', added)), '200');
        assert.equal(outcome(await operate(na, '/admin/operator-keys/former/revoke', {})), '200');
        return { to };
      },
    ],
    ['to the key of a node', 'key_of_node', async (na) => ({ to: (await joinedNode(na)).key })],
    [
      'to the key of a revoked node',
      'key_of_node',
      async (na) => {
        const { key, certId } = await joinedNode(na);
        assert.equal(outcome(await operate(na, '/admin/revoke', { cert_id: certId })), '200');
        return { to: key };
      },
    ],
    [
      'that begins before the current key',
      'wrong_genesis',
      () => ({
        activatesIn: -400 * DAY,
        overlap: 500 * DAY,
        altered: { issued_at: '2001-01-01T00:00:00Z' },
      }),
    ],
    [
      'whose overlap has ended',
      'overlap_ended',
      (na) => {
        na.clock.advance(HOUR);
        const issued_at = formatInstant(na.clock.now() - 20 * MINUTE);
        return { activatesIn: -10 * MINUTE, overlap: 5 * MINUTE, altered: { issued_at } };
      },
    ],
    [
      'with a wrong proof of possession',
      'wrong_proof',
      () => ({ kind: 'compromise' }),
      ({ statement, ...others }) => ({
        ...others,
        statement: { ...statement, proof_of_possession: statement.signatures[0]?.sig },
      }),
    ],
    ['that another root key has signed', 'wrong_genesis', () => ({ root: newKey() })],
    [
      'with a genesis block of the root key, and a statement that another key has signed',
      'not_signed_by_root',
      () => ({}),
      (signed) => {
        const sig = signed.genesis.signatures[0]?.sig;
        return resigned(([root, ...from]) => [{ ...root, sig }, ...from])(signed);
      },
    ],
    [
      'that the current key has not signed',
      'not_signed_by_from_key',
      () => ({}),
      resigned(([root]) => [{ ...root }]),
    ],
    [
      'without its way back',
      'wrong_roll_back_file',
      () => ({}),
      (signed) => ({ ...signed, roll_back: null }),
    ],
    [
      'with another genesis block',
      'wrong_genesis',
      () => ({}),
      withGenesis({ network_version: 'v9' }),
    ],
  ];

  test('a succession is refused with the cause, and changes nothing', async () => {
    const na = await shared();
    const before = (await get(na, '/authority-keys')).text;
    for (const [what, cause, draft, changed = (signed: SignedSuccession) => signed] of REFUSED) {
      const terms = { activatesIn: HOUR, to: newKey(), ...(await draft(na)) };
      const answer = await stage(na, changed(await succession(na, terms)));
      assert.equal(outcome(answer), '422 succession_rejected', what);
      assert.equal(answer.body.error.details.cause, cause, what);
      assert.match(answer.body.error.details.message, /^[A-Z].*\.$/);
      assert.equal((await get(na, '/authority-keys')).text, before, what);
    }
  });

  test('only a valid succession can be staged, and only a staged one canceled', async () => {
    const na = await shared();
    const signed = await succession(na, { activatesIn: HOUR, to: newKey() });
    for (const body of [{}, { ...signed, format_version: 2 }, { ...signed, statement: null }]) {
      assert.equal(outcome(await stage(na, body)), '400 invalid_succession');
    }
    assert.equal(outcome(await step(na, 'cancel')), '409 succession_not_staged');
  });
});

test('after the key was replaced, a succession that does not follow it is refused, and changes nothing', async () => {
  await using na = await startTestAuthority();
  const first = keyIn(na.dataDir, 'na.key');
  const signed = await succession(na, { kind: 'compromise' });
  assert.equal(outcome(await stage(na, signed)), '200');
  await activate(na);
  na.clock.advance(MINUTE);
  const served = async () =>
    Promise.all(
      ['/authority-keys', '/crl', '/genesis'].map(async (path) => (await get(na, path)).text),
    );
  const untouched = await served();
  const draftOf = (draft: Draft) => succession(na, { activatesIn: HOUR, to: newKey(), ...draft });
  const isUsed = /prepare a succession to a new key\.$/;
  for (const [offered, cause, message] of [
    [
      await draftOf({ altered: { sequence: 1 } }),
      'fork',
      /sequence 1, but the next one here is 2; prepare/,
    ],
    [
      await draftOf({ altered: { sequence: 3 } }),
      'gap',
      /sequence 3, but the next one here is 2; prepare/,
    ],
    [signed, 'key_used_before', isUsed],
    [await draftOf({ to: first }), 'key_used_before', isUsed],
  ] as const) {
    const answer = await stage(na, offered);
    assert.equal(outcome(answer), '422 succession_rejected');
    assert.equal(answer.body.error.details.cause, cause);
    assert.match(answer.body.error.details.message, message);
    assert.deepEqual(await served(), untouched);
  }
});

test('the private key of a staged key is refused where a public key belongs', async () => {
  await using na = await startTestAuthority();
  const seed = Buffer.alloc(32, 7);
  const to = signerFromSeed(seed);
  assert.equal(outcome(await stage(na, await succession(na, { activatesIn: DAY, to }))), '200');
  const body = { key_id: 'ops-3', public_key: seed.toString('base64'), tier: 'standard' };
  assert.equal(outcome(await operate(na, '/admin/operator-keys', body)), '400 private_key_given');
});

test('a staged succession is published until it is canceled, and after a restart', async () => {
  await using na = await startTestAuthority();
  const signed = await succession(na, { activatesIn: DAY });
  const { statement } = signed;
  const staged = await stage(na, signed);
  assert.deepEqual(staged.body, {
    public_key: statement.to_key,
    state: 'staged',
    sequence: 1,
    kind: 'planned',
    activates_at: statement.activates_at,
    overlap_until: statement.overlap_until,
    key_held: true,
  });
  const states = [
    [na.audience, 'current'],
    [statement.to_key, 'next'],
  ];
  assert.deepEqual(await keyStates(na), states);
  const { body } = await get(na, '/authority-keys');
  assert.deepEqual(body.successions, [statement]);
  const pin = { networkName: 'alpha', trusted: { authorityKey: na.audience } };
  const tools = { verify: verifySignature, sha256: SHA256 };
  assert.equal(followChain(pin, body, na.clock.now(), tools).refusal, null);

  na.clock.advance(2000);
  const bulletin = readBulletin((await get(na, '/bulletin')).body);
  assert(bulletin !== null);
  assert.equal(bulletin.authority_keys_digest, authorityKeysDigest([statement], SHA256));
  assert(isBulletinOf(bulletin, 'alpha', na.audience, verifySignature));

  assert.equal(outcome(await stage(na, signed)), '409 succession_staged');
  const other = await succession(na, { to: newKey(), activatesIn: DAY });
  assert.equal(outcome(await stage(na, other)), '409 succession_staged');

  await using again = await na.restart();
  assert.deepEqual(await keyStates(again), states);
  const canceled = await step(again, 'cancel');
  assert.equal(canceled.body.state, 'absent');
  assert.deepEqual(await keyStates(again), [[na.audience, 'current']]);
  assert.equal(outcome(await step(again, 'cancel')), '409 succession_not_staged');

  await using third = await again.restart();
  assert.deepEqual(await keyStates(third), [[na.audience, 'current']]);
  assert.equal(outcome(await stage(third, signed)), '200');
  const events = auditEvents(third)
    .filter(({ type }) => type.startsWith('authority_'))
    .map(({ type, details }) => [type, details.sequence, details.to_key]);
  assert.deepEqual(events, [['authority_succession_staged', 1, statement.to_key]]);
});
