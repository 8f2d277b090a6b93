/** Treaties follow their subject to another authority key, for any chain and any clock [core-4-13-1]. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { Signer } from '../src/base/crypto/primitives.ts';
import type { JsonObject, JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { keysInForce } from '../src/protocol/records/authority-chain.ts';
import type { AuthoritySuccession } from '../src/protocol/records/authority-succession.ts';
import {
  acceptedKeys,
  followForTreaty,
  type TreatyPin,
} from '../src/protocol/records/treaty-chain.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import {
  chainAt,
  countedKey,
  FIRST,
  ROOT,
  START,
  type Step,
  TOOLS,
} from './support/authority-chain.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { auditEvents, get, newKey, operate, outcome } from './support/requests.ts';
import {
  audited,
  freshId,
  importFeed,
  issued,
  parsed,
  post,
  recognize,
  revokeTreaty,
  sovereign,
  verifies,
} from './support/trust.ts';

/** For tests that each have their own partner. */
const shared = sharedAuthority();

const SECOND_KEY = countedKey(2);
const THIRD_KEY = countedKey(3);
const PLANNED: Step = { kind: 'planned', at: -1, overlap: 10 };
const STOLEN: Step = { kind: 'compromise', at: -1 };

interface Partner {
  readonly name: string;
  chain(...steps: readonly Step[]): AuthoritySuccession[];
}

/** A sovereign whose chain has the given steps, in hours from now. */
function partnerOf(na: TestAuthority, name = freshId('partner')): Partner {
  const now = na.clock.now();
  return { name, chain: (...steps) => chainAt(now, name, steps) };
}

async function recognized(
  na: TestAuthority,
  { name }: Partner,
  terms: JsonObject = {},
): Promise<JsonObject> {
  const keys = [FIRST.publicKey];
  return issued(recognize(na, { subject_sovereign_id: name, subject_public_keys: keys, ...terms }));
}

function follow(
  na: TestAuthority,
  { treaty_id }: JsonObject,
  successions: readonly unknown[],
  rest: JsonObject = {},
) {
  const authority_keys = { successions: successions as JsonValue };
  return operate(na, followPath(treaty_id), { authority_keys, ...rest });
}

function followPath(id: JsonValue | undefined): string {
  return `/admin/recognition-treaties/${encodeURIComponent(String(id))}/follow`;
}

async function rowOf(na: TestAuthority, { treaty_id }: JsonObject) {
  return (await get(na, `/recognition-treaties/${treaty_id}`)).body;
}

/** How an attestation of the partner that this key has signed is verified under the treaty. */
async function verdict(na: TestAuthority, { name }: Partner, key: Signer, treaty: JsonObject) {
  const attestation = sovereign(name, key).attestation(na.clock.now());
  return (await post(na, '/attestations/verify-with-treaty', { attestation, treaty })).body.reason;
}

suite('a planned change', () => {
  test('replaces the treaty by one with both keys, and with the same scope and end', async () => {
    await using na = await startTestAuthority();
    const beta = partnerOf(na, 'beta');
    const old = await recognized(na, beta, {
      scope: { allowed_roles: ['role:client'], claims: { limit: 1 } },
      validity_hours: 500,
      metadata: { contact: 'ops@beta' },
    });
    na.clock.advance(SECOND);
    const answer = await follow(na, old, beta.chain(PLANNED));
    assert.equal(outcome(answer), '200');
    const successor = parsed(answer);
    const now = formatInstant(na.clock.now());
    assert.notEqual(successor.treaty_id, old.treaty_id);
    assert.deepEqual(
      { ...successor, signatures: [] },
      {
        ...old,
        treaty_id: successor.treaty_id,
        subject_public_keys: [SECOND_KEY.publicKey, FIRST.publicKey],
        issued_at: now,
        valid_from: now,
        metadata: { contact: 'ops@beta', root_public_key: ROOT.publicKey },
        signatures: [],
      },
    );
    assert.ok(verifies(successor, na.audience));
    const { lifecycle, status } = await rowOf(na, old);
    assert.deepEqual([status, lifecycle.state], ['revoked', 'replaced']);
    assert.equal(lifecycle.replacement_treaty_id, successor.treaty_id);
    assert.deepEqual(audited(na, 'recognition_treaty_followed'), [
      {
        treaty_id: old.treaty_id,
        successor_treaty_id: successor.treaty_id,
        subject_sovereign_id: 'beta',
        sequence: 1,
        subject_public_keys: [SECOND_KEY.publicKey, FIRST.publicKey],
      },
    ]);
  });

  test('is accepted at each instant, and the old key no longer than its overlap', async () => {
    await using na = await startTestAuthority();
    const beta = partnerOf(na);
    const old = await recognized(na, beta);
    const chain = beta.chain(PLANNED);
    assert.equal(await verdict(na, beta, FIRST, old), 'accepted');
    const both = await issued(follow(na, old, chain));
    assert.equal(await verdict(na, beta, FIRST, old), 'treaty_locally_revoked');
    for (const key of [FIRST, SECOND_KEY]) {
      assert.equal(await verdict(na, beta, key, both), 'accepted');
    }
    na.clock.advance(9 * HOUR - SECOND);
    await na.renewLists();
    assert.equal((await rowOf(na, both)).status, 'active', 'within the overlap');

    na.clock.advance(SECOND);
    await na.renewLists();
    const { lifecycle } = await rowOf(na, both);
    assert.equal(lifecycle.state, 'replaced');
    const last = await rowOf(na, { treaty_id: lifecycle.replacement_treaty_id });
    assert.deepEqual(last.treaty.subject_public_keys, [SECOND_KEY.publicKey]);
    assert.equal(last.treaty.expires_at, old.expires_at);
    assert.equal(await verdict(na, beta, SECOND_KEY, last.treaty), 'accepted');
    assert.equal(await verdict(na, beta, FIRST, last.treaty), 'attestation_invalid_signature');
    assert.equal(audited(na, 'recognition_treaty_followed').length, 2);

    na.clock.step(-2 * HOUR);
    await na.renewLists();
    assert.equal((await rowOf(na, last.treaty)).status, 'active', 'a clock brings no key back');
  });

  test('ends for many treaties in several steps, so that none blocks the authority for long', async () => {
    await using na = await startTestAuthority();
    const beta = partnerOf(na);
    const chain = beta.chain(PLANNED);
    for (let n = 0; n < 33; n += 1) await issued(follow(na, await recognized(na, beta), chain));
    na.clock.advance(9 * HOUR);
    await na.clock.idle();
    for (const replaced of [32, 33, 33]) {
      assert.equal(audited(na, 'recognition_treaty_followed').length, 33 + replaced);
      await na.renewLists();
    }
    const { body } = await get(na, '/recognition-treaties?status=active');
    const keys = body.recognition_treaties.map(
      ({ treaty }: { treaty: JsonObject }) => treaty.subject_public_keys,
    );
    assert.deepEqual(keys, Array(33).fill([SECOND_KEY.publicKey]));
  });

  test('changes nothing before it is in force, because it may be canceled', async () => {
    const na = await shared();
    const beta = partnerOf(na);
    const treaty = await recognized(na, beta);
    const chain = beta.chain({ kind: 'planned', at: 1 });
    const early = await follow(na, treaty, chain);
    assert.equal(outcome(early), '409 nothing_to_follow');
    assert.deepEqual(early.body.error.details, { activates_at: chain[0]?.activates_at });
    assert.equal((await rowOf(na, treaty)).status, 'active');
  });

  test('that was rolled back leads back, and the keys stay known', async () => {
    await using na = await startTestAuthority();
    const beta = partnerOf(na);
    const old = await recognized(na, beta);
    const [planned, rollBack] = beta.chain(PLANNED, { ...PLANNED, kind: 'roll_back' });
    const both = await issued(follow(na, old, [planned]));
    const back = await issued(follow(na, both, [planned, rollBack]));
    assert.deepEqual(back.subject_public_keys, [FIRST.publicKey, SECOND_KEY.publicKey]);
    na.clock.advance(9 * HOUR);
    await na.renewLists();
    const { replacement_treaty_id } = (await rowOf(na, back)).lifecycle;
    const { treaty } = await rowOf(na, { treaty_id: replacement_treaty_id });
    assert.deepEqual(treaty.subject_public_keys, [FIRST.publicKey]);
    const again = await follow(na, treaty, [planned]);
    assert.equal(again.body.error.details.cause, 'shorter', 'the rollback is not forgotten');
  });

  test('keeps keys of the treaty that are not in the chain', async () => {
    const na = await shared();
    const beta = partnerOf(na);
    const other = newKey().publicKey;
    const keys = [other, FIRST.publicKey];
    const treaty = await recognized(na, beta, { subject_public_keys: keys });
    const { subject_public_keys } = await issued(follow(na, treaty, beta.chain(PLANNED)));
    assert.deepEqual(subject_public_keys, [SECOND_KEY.publicKey, FIRST.publicKey, other]);
  });

  test('several changes are followed at once, from the newest key that the treaty names', async () => {
    const na = await shared();
    const beta = partnerOf(na);
    const chain = beta.chain({ ...STOLEN, at: -9 }, { ...PLANNED, at: -8, overlap: 1 });
    const keys = [FIRST.publicKey, SECOND_KEY.publicKey];
    const treaty = await recognized(na, beta, { subject_public_keys: keys });
    const { subject_public_keys } = await issued(follow(na, treaty, chain));
    assert.deepEqual(subject_public_keys, [THIRD_KEY.publicKey], 'the stolen key is gone, too');
  });

  test('a treaty that already names the key remembers the chain', async () => {
    const na = await shared();
    const beta = partnerOf(na);
    const chain = beta.chain({ ...PLANNED, at: -9, overlap: 1 });
    const keys = [SECOND_KEY.publicKey];
    const treaty = await recognized(na, beta, { subject_public_keys: keys });
    const successor = await issued(follow(na, treaty, chain));
    assert.deepEqual(successor.subject_public_keys, keys);
    assert.equal((await rowOf(na, successor)).followed.sequence, 1);
    assert.equal(outcome(await follow(na, successor, chain)), '409 nothing_to_follow');
  });
});

suite('a stolen key', () => {
  test('is refused as soon as the treaty has followed', async () => {
    const na = await shared();
    const beta = partnerOf(na);
    const treaty = await recognized(na, beta);
    const chain = beta.chain(STOLEN);
    assert.equal(await verdict(na, beta, FIRST, treaty), 'accepted', 'nobody knows yet');

    const unproven = await follow(na, treaty, chain);
    assert.equal(outcome(unproven), '422 chain_rejected');
    assert.equal(unproven.body.error.details.cause, 'root_key_needed');
    assert.equal(unproven.body.error.details.sequence, 1);

    const successor = await issued(follow(na, treaty, chain, { root_public_key: ROOT.publicKey }));
    assert.deepEqual(successor.subject_public_keys, [SECOND_KEY.publicKey]);
    assert.equal(await verdict(na, beta, FIRST, treaty), 'treaty_locally_revoked');
    assert.equal(await verdict(na, beta, FIRST, successor), 'attestation_invalid_signature');
    assert.equal(await verdict(na, beta, SECOND_KEY, successor), 'accepted');
  });

  test('is followed by the root key that the treaty names, or has learned from a planned change', async () => {
    const na = await shared();
    const named = partnerOf(na);
    const metadata = { root_public_key: ROOT.publicKey };
    const treaty = await recognized(na, named, { metadata });
    assert.equal(outcome(await follow(na, treaty, named.chain(STOLEN))), '200');

    const learned = partnerOf(na);
    const old = await recognized(na, learned);
    const chain = learned.chain({ ...PLANNED, at: -9 }, STOLEN);
    const both = await issued(follow(na, old, chain.slice(0, 1)));
    const last = await issued(follow(na, both, chain));
    assert.deepEqual(last.subject_public_keys, [THIRD_KEY.publicKey]);
  });
});

suite('refusals change nothing', () => {
  const fake = newKey();
  const altered = (statement: AuthoritySuccession | undefined, changes: JsonObject) => ({
    ...statement,
    ...changes,
  });

  test('a chain that does not lead on from the treaty', async () => {
    const na = await shared();
    for (const [name, cause, chainOf, rest, terms] of [
      ['another network', 'wrong_network', (_, other) => other.chain(PLANNED)],
      ['a missing statement', 'gap', (beta) => beta.chain(PLANNED, STOLEN).slice(1)],
      [
        'an altered statement',
        'wrong_proof',
        (beta) => [
          altered(beta.chain(PLANNED)[0], {
            succession_id: '00000000-0000-4000-8000-00000000ffff',
          }),
        ],
      ],
      [
        'a missing signature of the root key',
        'not_signed_by_root',
        (beta) => [altered(beta.chain(PLANNED)[0], { signatures: [] })],
      ],
      ['something else', 'malformed', () => [7]],
      [
        'the same statement twice',
        'gap',
        (beta) => [...beta.chain(PLANNED), ...beta.chain(PLANNED)],
      ],
      ['too many statements', 'too_long', () => Array.from({ length: 257 }, () => 0)],
      [
        'keys that the treaty does not name',
        'unknown_key',
        (beta) => beta.chain(PLANNED),
        {},
        { subject_public_keys: [fake.publicKey] },
      ],
      [
        'keys that the treaty does not name, under the right root key',
        'unknown_key',
        (beta) => beta.chain(PLANNED),
        { root_public_key: ROOT.publicKey },
        { subject_public_keys: [fake.publicKey] },
      ],
      [
        'another root key than in the request',
        'wrong_root_key',
        (beta) => beta.chain(PLANNED),
        { root_public_key: fake.publicKey },
      ],
      [
        'a request with another root key than the treaty',
        'wrong_root_key',
        (beta) => beta.chain(PLANNED),
        { root_public_key: ROOT.publicKey },
        { metadata: { root_public_key: fake.publicKey } },
      ],
    ] as readonly (readonly [
      string,
      string,
      (beta: Partner, other: Partner) => unknown[],
      JsonObject?,
      JsonObject?,
    ])[]) {
      const beta = partnerOf(na);
      const treaty = await recognized(na, beta, terms);
      const chain = chainOf(beta, partnerOf(na));
      const before = (await get(na, '/recognition-treaties')).text;
      const events = auditEvents(na).length;
      const answer = await follow(na, treaty, chain, rest);
      assert.equal(outcome(answer), '422 chain_rejected');
      const { details } = answer.body.error;
      assert.equal(details.cause, cause, name);
      assert.match(details.problem, /^[A-Z][^\n]*; [^\n]*\.$/, 'what is wrong, and what to do');
      assert.equal((await get(na, '/recognition-treaties')).text, before);
      assert.equal(auditEvents(na).length, events);
    }
  });

  test('a chain that is shorter than, or differs from, what was followed', async () => {
    const na = await shared();
    const beta = partnerOf(na);
    const chain = beta.chain({ ...PLANNED, at: -9 }, { ...PLANNED, at: -3 });
    const treaty = await issued(follow(na, await recognized(na, beta), chain));
    const fork = beta.chain({ ...PLANNED, at: -9 }, { ...PLANNED, at: -2 });
    for (const [offered, cause] of [
      [chain.slice(0, 1), 'shorter'],
      [[], 'shorter'],
      [fork, 'fork'],
    ] as const) {
      const answer = await follow(na, treaty, offered);
      assert.equal(outcome(answer), '422 chain_rejected');
      assert.equal(answer.body.error.details.cause, cause);
    }
    assert.equal(outcome(await follow(na, treaty, chain)), '409 nothing_to_follow');
    assert.equal((await rowOf(na, treaty)).status, 'active');
  });

  test('a missing or empty chain, and an invalid root key', async () => {
    const na = await shared();
    const beta = partnerOf(na);
    const treaty = await recognized(na, beta);
    const path = followPath(treaty.treaty_id);
    for (const body of [
      {},
      { authority_keys: null },
      { authority_keys: [] },
      { authority_keys: {} },
      { authority_keys: { successions: {} } },
      { authority_keys: 'https://beta.example/authority-keys' },
    ] as JsonObject[]) {
      assert.equal(outcome(await operate(na, path, body)), '400 invalid_authority_keys');
    }
    assert.equal(outcome(await follow(na, treaty, [])), '409 nothing_to_follow');
    for (const root_public_key of ['', 'key', 7, `${ROOT.publicKey} `]) {
      const answer = await follow(na, treaty, beta.chain(PLANNED), { root_public_key });
      assert.equal(outcome(answer), '422 request_validation_failed');
      assert.deepEqual(answer.body.error.details.errors[0].loc, ['body', 'root_public_key']);
    }
    assert.equal((await rowOf(na, treaty)).status, 'active');
  });

  test('a treaty that is unknown, revoked, replaced or expired', async () => {
    await using na = await startTestAuthority();
    const beta = partnerOf(na);
    const chain = beta.chain(PLANNED);
    const unknown = await follow(na, { treaty_id: 'nobody' }, chain);
    assert.equal(outcome(unknown), '404 treaty_not_found');
    const revoked = await recognized(na, beta);
    await revokeTreaty(na, revoked.treaty_id, { reason: 'ended' });
    assert.equal(outcome(await follow(na, revoked, chain)), '409 treaty_revoked');
    assert.equal((await rowOf(na, revoked)).revocation_reason, 'ended');
    const replaced = await recognized(na, beta);
    await issued(follow(na, replaced, chain));
    assert.equal(outcome(await follow(na, replaced, chain)), '409 treaty_revoked');
    const expired = await recognized(na, beta, { validity_hours: 1 });
    na.clock.advance(HOUR - SECOND + 1);
    assert.equal(outcome(await follow(na, expired, chain)), '409 treaty_expired');
    assert.equal(audited(na, 'recognition_treaty_followed').length, 1);
  });

  test('a treaty in the name of another sovereign, once that is refused', async () => {
    await using na = await startTestAuthority();
    const beta = partnerOf(na);
    const treaty = await recognized(na, beta, { issuer_sovereign_id: 'gamma' });
    await na.stop();
    await using strict = await startTestAuthority({
      dataDir: na.dataDir,
      clock: na.clock,
      environment: { MESH_FOREIGN_ISSUER: 'refuse' },
    });
    const answer = await follow(strict, treaty, beta.chain(PLANNED));
    assert.equal(outcome(answer), '400 wrong_issuer');
    assert.deepEqual(answer.body.error.details, { expected: 'alpha' });
  });
});

test('feeds continue across a change: the new key signs, the sequence continues, and replays are refused', async () => {
  const na = await shared();
  const beta = partnerOf(na);
  const by = (key: Signer, sequence: number) =>
    sovereign(beta.name, key).feed(na.clock.now(), sequence, {
      revoked_attestation_ids: [`id-${sequence}`],
    });
  const chain = beta.chain({ ...PLANNED, at: -2 }, { ...STOLEN, at: -1 });
  const old = await recognized(na, beta);
  assert.equal(outcome(await importFeed(na, by(FIRST, 5))), '200');
  assert.equal(outcome(await importFeed(na, by(SECOND_KEY, 6))), '400 invalid_signature');

  const both = await issued(follow(na, old, chain.slice(0, 1)));
  assert.equal(outcome(await importFeed(na, by(SECOND_KEY, 5))), '409 stale_sequence');
  assert.equal(outcome(await importFeed(na, by(SECOND_KEY, 6))), '200');
  assert.equal(outcome(await importFeed(na, by(FIRST, 7))), '200', 'within the overlap');

  await issued(follow(na, both, chain));
  for (const stolen of [FIRST, SECOND_KEY]) {
    assert.equal(outcome(await importFeed(na, by(stolen, 8))), '400 invalid_signature');
  }
  assert.equal(outcome(await importFeed(na, by(THIRD_KEY, 8))), '200');
  assert.equal(outcome(await importFeed(na, by(FIRST, 5))), '409 stale_sequence');
});

test('rows, the graph, paths and explanations show the key that is followed', async () => {
  await using na = await startTestAuthority();
  const beta = partnerOf(na, 'beta');
  const old = await recognized(na, beta);
  const chain = beta.chain(PLANNED);
  const successor = await issued(follow(na, old, chain));
  assert.deepEqual((await rowOf(na, successor)).followed, {
    root_public_key: ROOT.publicKey,
    sequence: 1,
    keys: [
      {
        public_key: FIRST.publicKey,
        state: 'previous',
        since: null,
        signs_until: chain[0]?.overlap_until,
      },
      {
        public_key: SECOND_KEY.publicKey,
        state: 'current',
        since: chain[0]?.activates_at,
        signs_until: null,
      },
    ],
  });
  assert.equal('followed' in (await rowOf(na, old)), false);
  for (const path of ['/recognition-graph', '/connectome.json', '/atlas.json']) {
    const { recognition_edges } = (await get(na, path)).body;
    const keys = new Map(
      recognition_edges.map((edge: JsonObject) => [edge.treaty_id, edge.followed_key]),
    );
    assert.equal(keys.get(successor.treaty_id), SECOND_KEY.publicKey, path);
    assert.equal(keys.get(old.treaty_id), undefined, path);
  }
  for (const query of ['', '&explain=1']) {
    const answer = await get(na, `/connectome/trust-path?from=alpha&to=beta${query}`);
    assert.equal(answer.body.path[0].followed_key, SECOND_KEY.publicKey);
  }
  const page = (await get(na, `/treaty?id=${successor.treaty_id}`)).text;
  assert.match(page, /current since <time/);
  assert.match(page, /previous, accepted until <time/);
  assert.match(page, /1 change so far, signed by the root key/);
  const { text } = await get(na, '/trust?from=alpha&to=beta');
  assert.match(text, /follows its subject, to the key ./);
});

test('what was followed is the same after a restart', async () => {
  await using na = await startTestAuthority();
  const beta = partnerOf(na);
  const chain = beta.chain({ ...PLANNED, at: -9 }, { ...PLANNED, at: -3 });
  const treaty = await issued(follow(na, await recognized(na, beta), chain));
  const before = (await get(na, '/recognition-treaties')).text;
  const graph = (await get(na, '/recognition-graph')).text;
  await using again = await na.restart();
  assert.equal((await get(again, '/recognition-treaties')).text, before);
  assert.equal((await get(again, '/recognition-graph')).text, graph);
  const shorter = await follow(again, treaty, chain.slice(0, 1));
  assert.equal(shorter.body.error.details.cause, 'shorter');
  again.clock.advance(7 * HOUR);
  await again.renewLists();
  assert.equal((await rowOf(again, treaty)).lifecycle.state, 'replaced', 'the overlap ended');
});

// Which keys a treaty names after it has followed a chain, for any chain and any clock [core-4-13-1].

const OTHER = countedKey(39).publicKey;

/** Steps in ascending order of time; a rollback follows its planned change. */
const STEPS: fc.Arbitrary<Step[]> = fc
  .array(
    fc.record({
      kind: fc.constantFrom('planned' as const, 'compromise' as const),
      wait: fc.integer({ min: 1, max: 20 }),
      overlap: fc.integer({ min: 0, max: 30 }),
      isRolledBack: fc.boolean(),
    }),
    { minLength: 1, maxLength: 5 },
  )
  .map((drawn) => {
    let at = 0;
    return drawn.flatMap(({ kind, wait, overlap, isRolledBack }): Step[] => {
      at += wait;
      const step = { kind, at, overlap };
      const goesBack = kind === 'planned' && isRolledBack;
      return goesBack ? [step, { ...step, kind: 'roll_back' }] : [step];
    });
  });

/** What the treaty knows after it has followed the chain at this time. */
function followed(pin: TreatyPin, chain: readonly AuthoritySuccession[], now: number): TreatyPin {
  const verdict = followForTreaty(pin, null, { successions: chain }, now, TOOLS);
  assert.equal(verdict.refusal, null, verdict.refusal?.message);
  if (verdict.refusal !== null || verdict.inForce.length === 0) return pin;
  const subjectKeys = acceptedKeys(verdict.inForce, pin.subjectKeys, now);
  return { ...pin, subjectKeys, followed: verdict.inForce };
}

test('a treaty names the current key first, then only keys that may still sign, and never goes back', () => {
  const hours = fc.array(fc.integer({ min: 0, max: 130 }), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(STEPS, hours, fc.integer({ min: 0, max: 130 }), (steps, drawn, later) => {
      const chain = chainAt(START, 'beta', steps);
      let treaty: TreatyPin = {
        subject: 'beta',
        subjectKeys: [FIRST.publicKey, OTHER],
        rootKey: ROOT.publicKey,
        followed: [],
      };
      for (const hour of drawn.toSorted((a, b) => a - b)) {
        const now = START + hour * HOUR;
        treaty = followed(treaty, chain, now);
        if (treaty.followed.length === 0) continue;
        const states = new Map(
          keysInForce(treaty.followed, now).map(({ public_key, state }) => [public_key, state]),
        );
        const [current, ...rest] = treaty.subjectKeys.filter((key) => key !== OTHER);
        assert.equal(states.get(current ?? ''), 'current');
        for (const key of rest) assert.equal(states.get(key), 'previous');
        assert.ok(treaty.subjectKeys.includes(OTHER), 'a key outside the chain stays');
      }
      // No key that was stolen by the time the treaty followed is accepted at any time, even an earlier one.
      const at = START + later * HOUR;
      const stolen = treaty.followed.flatMap(({ kind, from_key }) =>
        kind === 'compromise' ? [from_key] : [],
      );
      const accepted = acceptedKeys(treaty.followed, treaty.subjectKeys, at);
      if (treaty.followed.length === 0) return;
      for (const key of stolen) assert.ok(!accepted.includes(key), key);
      const shorter = treaty.followed.slice(0, -1);
      assert.equal(
        followForTreaty(treaty, null, { successions: shorter }, at, TOOLS).refusal?.reason,
        'shorter',
      );
    }),
    { numRuns: 60 },
  );
});
