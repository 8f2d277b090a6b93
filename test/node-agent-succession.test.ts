/** A node agent whose authority's key is replaced while the agent runs, and while it is away [authority-keys-7]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SHA256 } from '../src/base/crypto/digest.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { Fetch } from '../src/client/options.ts';
import { authorityKeysDigest } from '../src/protocol/records/authority-chain.ts';
import type { AuthoritySuccession } from '../src/protocol/records/authority-succession.ts';
import { genesisDigest } from '../src/protocol/records/genesis.ts';
import {
  chainOf,
  countedKey,
  FIRST,
  HOUR,
  ROOT,
  START,
  type Step,
  signedStatement,
  termsOf,
} from './support/authority-chain.ts';
import { MINUTE } from './support/clock.ts';
import {
  complaints,
  type Files,
  followed,
  type Member,
  type MemberOptions,
  newAgentKey,
  signersOf,
  startMember,
  storageIn,
  stored,
} from './support/members.ts';
import {
  FIRST_GENESIS,
  type SuccessionAuthority,
  startSuccessionAuthority,
} from './support/succession-authority.ts';

const DIGEST = genesisDigest(FIRST_GENESIS, SHA256);
const chain = (...steps: Step[]) => chainOf(steps, DIGEST);
const SECOND_KEY = countedKey(2).publicKey;

const PLANNED: Step = { kind: 'planned', at: 10, overlap: 40 };

interface Enrolled extends Member {
  /** Restarts it with what it has stored. */
  again(): Promise<Enrolled>;
}

async function memberOf(
  na: SuccessionAuthority,
  further: Partial<MemberOptions> = {},
  files: Files = new Map(),
): Promise<Enrolled> {
  const key = further.key ?? newAgentKey();
  const { url, fetch } = na;
  const options = {
    ...{ url, fetch, rootKey: ROOT.publicKey, now: na.clock.now, random: () => 0.5 },
    token: () => (files.has('certificate') ? null : 'a-token'),
    ...further,
    key,
  };
  const member = await startMember(options, files);
  return { ...member, again: () => memberOf(na, { ...further, key }, files) };
}

/**
 * Until the next renewal, the authority advises a renewal time in the past, as if the node had been away at that time.
 */
function adviseRenewal(na: SuccessionAuthority): void {
  const renewals = asked(na, '/renew').length;
  na.instead.set('/heartbeat', () => ({
    ...na.answers['/heartbeat']?.({}),
    ...(asked(na, '/renew').length === renewals && { renew_after: formatInstant(START) }),
  }));
}

/** Runs each turn when it is due, until this many hours after the start. */
async function runUntil(
  { agent }: Enrolled,
  na: SuccessionAuthority,
  hours: number,
): Promise<void> {
  const end = START + hours * HOUR;
  for (;;) {
    const next = await agent.turn();
    assert.equal(typeof next, 'number', JSON.stringify(next));
    const at = Math.min(na.clock.now() + Number(next), end);
    na.clock.advance(at - na.clock.now());
    if (at >= end) return;
  }
}

const asked = (na: SuccessionAuthority, path: string) =>
  na.asked.filter((request) => request.path === path);

const lastBeat = (na: SuccessionAuthority) => asked(na, '/heartbeat').at(-1)?.body ?? {};

test('an agent follows a planned change, renews within the overlap, and has no problems', async () => {
  await using na = await startSuccessionAuthority();
  const member = await memberOf(na);
  await runUntil(member, na, 1);
  assert.equal('authority_keys_digest' in lastBeat(na), false);

  na.successions = chain(PLANNED);
  await runUntil(member, na, 9);
  assert.deepEqual(followed(member), ['planned announced']);
  assert.equal(asked(na, '/authority-keys').length, 2, 'with the first genesis, and the statement');
  assert.equal(lastBeat(na).authority_keys_digest, authorityKeysDigest(na.successions, SHA256));
  assert.equal(member.agent.state().authority_key, FIRST.publicKey);

  await runUntil(member, na, 11);
  assert.deepEqual(followed(member), ['planned announced', 'planned in force']);
  assert.equal(member.agent.state().authority_key, SECOND_KEY);
  for (const record of ['crl', 'policy'] as const) {
    assert.deepEqual(signersOf(member, record), [SECOND_KEY, FIRST.publicKey]);
  }
  assert.deepEqual(signersOf(member, 'certificate'), [FIRST.publicKey]);
  assert.equal(asked(na, '/renew').length, 0);

  await runUntil(member, na, 49);
  assert.equal(asked(na, '/renew').length, 1);
  assert.deepEqual(signersOf(member, 'certificate'), [SECOND_KEY, FIRST.publicKey]);
  await runUntil(member, na, 80);
  assert.equal(asked(na, '/renew').length, 1);
  assert.equal(asked(na, '/join').length, 1);
  assert.deepEqual(complaints(member), []);
});

test('an agent does not renew early when its certificate is due within the overlap anyway', async () => {
  await using na = await startSuccessionAuthority();
  na.instead.set('/join', () => na.certificate(key.publicKey, 30));
  const key = newAgentKey();
  const member = await memberOf(na, { key, random: () => 0.01 });
  await runUntil(member, na, 1);
  na.successions = chain(PLANNED);
  const due = Date.parse(member.agent.state().renew_after ?? '');
  await runUntil(member, na, 14);
  assert.equal(asked(na, '/renew').length, 0);
  await runUntil(member, na, 24);
  assert.equal(asked(na, '/renew').length, 1);
  const { issued_at } = stored(member.files, 'certificate');
  assert.ok(Date.parse(issued_at) - due < 5 * MINUTE);
});

test('the agents of a network renew at times that are spread over the overlap, regardless of the authority’s advice', async () => {
  await using na = await startSuccessionAuthority();
  const member = await memberOf(na, { random: () => 0.01 });
  await runUntil(member, na, 1);
  na.successions = chain(PLANNED);
  await runUntil(member, na, 10);
  adviseRenewal(na);
  await runUntil(member, na, 24);
  assert.equal(asked(na, '/renew').length, 0);
  await runUntil(member, na, 27);
  assert.equal(asked(na, '/renew').length, 1);
  assert.deepEqual(complaints(member), []);
});

test('agents that return after an overlap renew at random times, within the period that all others had', async () => {
  await using na = await startSuccessionAuthority();
  const members = await Promise.all(
    [0.1, 0.9].map((place) => memberOf(na, { random: () => place })),
  );
  for (const member of members) await member.agent.turn();
  na.successions = chain(PLANNED);
  na.clock.advance(51 * HOUR);
  const begun = na.clock.now();
  for (const [index, hours] of [3, 27].entries()) {
    na.clock.step(begun - na.clock.now());
    const back = await members[index]?.again();
    assert.ok(back);
    adviseRenewal(na);
    await runUntil(back, na, 51 + 30);
    const { issued_at } = stored(back.files, 'certificate');
    assert.ok(Math.abs((Date.parse(issued_at) - begun) / HOUR - hours) < 0.1, issued_at);
    assert.deepEqual(complaints(back), []);
  }
});

test('an agent follows a rollback, and needs no other certificate for it', async () => {
  await using na = await startSuccessionAuthority();
  const member = await memberOf(na);
  await runUntil(member, na, 1);
  na.successions = chain(PLANNED);
  await runUntil(member, na, 46);
  assert.equal(asked(na, '/renew').length, 1);
  na.successions = chain(PLANNED, { ...PLANNED, kind: 'roll_back' });
  await runUntil(member, na, 70);
  assert.equal(member.agent.state().authority_key, FIRST.publicKey);
  assert.deepEqual(followed(member), [
    'planned announced',
    'planned in force',
    'roll_back in force',
  ]);
  assert.equal(asked(na, '/renew').length, 1);
  assert.deepEqual(complaints(member), []);
});

test('after a compromise, agents renew at random times within the spread', async () => {
  await using na = await startSuccessionAuthority();
  const members = await Promise.all(
    [0.1, 0.5, 0.9].map((at) => memberOf(na, { random: () => at })),
  );
  for (const member of members) await member.agent.turn();
  na.successions = chain({ kind: 'compromise', at: 5 });
  na.clock.advance(5 * HOUR);
  const begun = na.clock.now();
  for (const [index, member] of members.entries()) {
    na.clock.step(begun - na.clock.now());
    const wait = Number(await member.agent.turn());
    assert.equal(member.agent.state().authority_key, SECOND_KEY);
    assert.deepEqual(signersOf(member, 'certificate'), [FIRST.publicKey]);
    await runUntil(member, na, 6);
    const { issued_at } = stored(member.files, 'certificate');
    const place = (Date.parse(issued_at) - begun) / (10 * MINUTE);
    assert.ok(Math.abs(place - ([0.1, 0.5, 0.9][index] ?? 0)) < 0.02, String(place));
    assert.ok(wait <= 10 * MINUTE);
    assert.deepEqual(signersOf(member, 'certificate'), [SECOND_KEY]);
    assert.deepEqual(complaints(member), []);
  }
});

test('after a compromise, nothing signed by the old key alone is believed, or blocks the agent', async () => {
  await using na = await startSuccessionAuthority();
  const member = await memberOf(na);
  await runUntil(member, na, 1);
  // The thief issues a list whose sequence no later list could continue.
  na.crlSequence = 1000;
  await runUntil(member, na, 2);
  assert.equal(member.agent.state().crl_sequence, 1000);
  na.crlSequence = 1;
  na.successions = chain({ kind: 'compromise', at: 5 });
  await runUntil(member, na, 6);
  assert.equal(member.agent.state().crl_sequence, 2);
  assert.deepEqual(signersOf(member, 'crl'), [SECOND_KEY]);
  const quiet = complaints(member).filter((each) => !/names revocation list 1,/.test(each));
  assert.deepEqual(quiet, []);

  const again = await member.again();
  na.instead.set('/crl', () => na.list(2000, [FIRST]));
  na.crlSequence = 2;
  await runUntil(again, na, 7);
  assert.equal(again.agent.state().crl_sequence, 2);
  assert.match(complaints(again).join(), /crl: the authority of the genesis did not sign it/);

  // The old genesis, with everything that belongs to it.
  na.instead.clear();
  const successions = na.successions;
  na.successions = [];
  na.crlSequence = 3000;
  const beaten = await member.again();
  await runUntil(beaten, na, 8);
  assert.equal(beaten.agent.state().authority_key, SECOND_KEY);
  assert.equal(beaten.agent.state().crl_sequence, 2);
  assert.match(complaints(beaten).join(), /genesis: it is older than the stored one/);
  assert.match(complaints(beaten).join(), /bulletin: its authority is not that of alpha/);
  na.successions = successions;
});

for (const [what, steps, key] of [
  ['a planned change', [PLANNED], 2],
  [
    'a roll-back, a planned change, and a compromise',
    [
      PLANNED,
      { ...PLANNED, kind: 'roll_back' },
      { kind: 'planned', at: 60, overlap: 5 },
      { kind: 'compromise', at: 70 },
    ],
    5,
  ],
] as const) {
  for (const proof of ['body', 'header'] as const) {
    test(`an agent that was away during ${what} follows when it returns, with its proof in the ${proof}`, async () => {
      await using na = await startSuccessionAuthority();
      const member = await memberOf(na, { proof });
      await runUntil(member, na, 1);
      na.successions = chain(...steps);
      na.clock.advance(79 * HOUR);
      const back = await member.again();
      await runUntil(back, na, 128);
      assert.equal(back.agent.state().authority_key, countedKey(key).publicKey);
      assert.deepEqual(followed(back), [`${steps.at(-1)?.kind} in force`]);
      assert.equal(asked(na, '/join').length, 1);
      assert.equal(asked(na, '/renew').length, 1);
      assert.deepEqual(signersOf(back, 'certificate'), [countedKey(key).publicKey]);
      assert.deepEqual(complaints(back), []);
      // The followed key is stored, so the next start does not request the statements again.
      const before = asked(na, '/authority-keys').length;
      const again = await back.again();
      await runUntil(again, na, 129);
      assert.equal(asked(na, '/authority-keys').length, before);
      assert.equal(lastBeat(na).authority_keys_digest, authorityKeysDigest(na.successions, SHA256));
      assert.deepEqual(complaints(again), []);
    });
  }
}

test('an agent that restarts at any point of a change continues where it was', async () => {
  await using na = await startSuccessionAuthority();
  let member = await memberOf(na);
  await runUntil(member, na, 1);
  na.successions = chain(PLANNED);
  for (const hours of [2, 9, 10, 10.5, 30, 49, 51, 60]) {
    await runUntil(member, na, hours);
    assert.deepEqual(complaints(member), []);
    member = await member.again();
  }
  await member.agent.turn();
  assert.equal(member.agent.state().authority_key, SECOND_KEY);
  assert.equal(asked(na, '/renew').length, 1);
  assert.equal(asked(na, '/join').length, 1);
  assert.equal(asked(na, '/authority-keys').length, 3);
});

test('a statement that is canceled before it is in force is discarded, and another one can replace it', async () => {
  await using na = await startSuccessionAuthority();
  const member = await memberOf(na);
  na.successions = chain(PLANNED);
  await runUntil(member, na, 2);
  na.successions = [];
  await runUntil(member, na, 3);
  assert.equal('authority_keys_digest' in lastBeat(na), false);
  na.clock.advance(20 * HOUR);
  const again = await member.again();
  na.successions = chain({ kind: 'planned', at: 30, overlap: 20 });
  await runUntil(again, na, 31);
  assert.deepEqual(followed(again), ['planned announced', 'planned in force']);
  assert.equal(again.agent.state().authority_key, SECOND_KEY);
  assert.deepEqual(complaints(again), []);
});

test('an agent accepts nothing of a fork, reports it, and continues with what it has', async () => {
  await using na = await startSuccessionAuthority();
  const member = await memberOf(na);
  na.successions = chain(PLANNED);
  await runUntil(member, na, 11);
  const other = signedStatement(
    { ...termsOf(PLANNED, [], DIGEST), to_key: countedKey(9).publicKey },
    { to: countedKey(9) },
  );
  na.successions = [other];
  await runUntil(member, na, 11.5);
  assert.equal(member.agent.state().authority_key, SECOND_KEY);
  assert.match(
    complaints(member).join(),
    /authority-keys: Statement 1 of the chain has the same sequence as another signed statement; .*ask the operators/,
  );
});

for (const [what, spoil] of [
  ['are unreadable', (na) => na.instead.set('/authority-keys', () => ({ successions: 7 }))],
  [
    'are those of another network',
    (na) => {
      na.successions = na.successions.map((each) => ({ ...each, network_name: 'beta' }));
    },
  ],
] as [string, (na: SuccessionAuthority) => void][]) {
  test(`an agent accepts no other key while the statements ${what}, and does so once they are right`, async () => {
    await using na = await startSuccessionAuthority();
    const member = await memberOf(na);
    await runUntil(member, na, 9);
    const right: readonly AuthoritySuccession[] = chain(PLANNED);
    na.successions = right;
    spoil(na);
    await runUntil(member, na, 11);
    assert.equal(member.agent.state().authority_key, FIRST.publicKey);
    assert.match(complaints(member).join(), /authority-keys: /);
    // Both keys sign, so the agent misses nothing.
    assert.equal(typeof (await member.agent.turn()), 'number');
    na.instead.clear();
    na.successions = right;
    await runUntil(member, na, 12);
    assert.equal(member.agent.state().authority_key, SECOND_KEY);
  });
}

test('an agent whose clock is slow believes the genesis, not its clock', async () => {
  await using na = await startSuccessionAuthority();
  const member = await memberOf(na, { now: () => na.clock.now() - 4 * MINUTE });
  na.successions = chain(PLANNED);
  await runUntil(member, na, 10.02);
  await member.agent.turn();
  assert.equal(member.agent.state().authority_key, SECOND_KEY);
  assert.deepEqual(complaints(member), []);
  const again = await member.again();
  assert.equal(again.agent.state().authority_key, SECOND_KEY);
});

test('an agent whose clock is fast waits for the genesis', async () => {
  await using na = await startSuccessionAuthority();
  const member = await memberOf(na, { now: () => na.clock.now() + 4 * MINUTE });
  await runUntil(member, na, 9.99);
  na.successions = chain(PLANNED);
  await member.agent.turn();
  assert.equal(member.agent.state().authority_key, FIRST.publicKey);
  na.successions = [];
  await runUntil(member, na, 10.5);
  assert.deepEqual(complaints(member), []);
});

test('an agent without a genesis accepts none that the statements show to be old', async () => {
  await using na = await startSuccessionAuthority();
  na.successions = chain(PLANNED);
  na.clock.advance(11 * HOUR);
  na.instead.set('/genesis', () => FIRST_GENESIS);
  const member = await memberOf(na);
  await member.agent.turn();
  assert.deepEqual([asked(na, '/join').length, member.files.has('genesis')], [0, false]);
  assert.match(complaints(member).join(), /genesis: its authority key \S+ is not the current one/);
  na.instead.clear();
  await runUntil(member, na, 12);
  assert.deepEqual(signersOf(member, 'certificate'), [SECOND_KEY, FIRST.publicKey]);
});

test('a folder without statements, whose genesis already names the new key, opens and catches up', async () => {
  await using na = await startSuccessionAuthority();
  const member = await memberOf(na);
  na.successions = chain(PLANNED);
  await runUntil(member, na, 11);
  member.files.delete('authority-keys');
  const again = await member.again();
  await runUntil(again, na, 12);
  assert.equal(lastBeat(na).authority_keys_digest, authorityKeysDigest(na.successions, SHA256));
  assert.deepEqual(complaints(again), []);
});

test('an agent that cannot fetch what verifies its new certificate asks for the same one again', async () => {
  await using na = await startSuccessionAuthority();
  const key = newAgentKey();
  na.instead.set('/join', () => na.certificate(key.publicKey, 2));
  let isDown = false;
  const fetch: Fetch = (url, init) =>
    isDown && url.endsWith('/genesis') ? Promise.reject(new Error('down')) : na.fetch(url, init);
  const member = await memberOf(na, { key, fetch });
  await runUntil(member, na, 0.9);
  na.successions = chain({ kind: 'compromise', at: 0.9 });
  isDown = true;
  while (asked(na, '/renew').length < 2) na.clock.advance(Number(await member.agent.turn()));
  const [first, second] = asked(na, '/renew');
  assert.deepEqual(second, first);
  isDown = false;
  await member.agent.turn();
  assert.deepEqual(signersOf(member, 'certificate'), [SECOND_KEY]);
});

test('an agent that ends while only some of its files can be written starts again', async () => {
  await using na = await startSuccessionAuthority();
  const files: Files = new Map();
  let isFull = false;
  const storage = storageIn(files, (name) => isFull && name !== 'genesis');
  const member = await memberOf(na, { storage }, files);
  na.successions = chain({ kind: 'compromise', at: 5 });
  await runUntil(member, na, 4);
  isFull = true;
  await runUntil(member, na, 6);
  assert.equal(member.agent.state().authority_key, SECOND_KEY);
  isFull = false;
  const again = await member.again();
  await again.agent.turn();
  assert.equal(again.agent.state().authority_key, SECOND_KEY);
});

test('an agent fetches damaged statements again, and does not start with those of another root key', async () => {
  await using na = await startSuccessionAuthority();
  const member = await memberOf(na);
  na.successions = chain(PLANNED);
  await runUntil(member, na, 2);
  const kept = member.files.get('authority-keys') ?? '';
  member.files.set('authority-keys', '{');
  const again = await member.again();
  await runUntil(again, na, 3);
  assert.equal(member.files.get('authority-keys'), kept);
  assert.deepEqual(complaints(again), []);
  member.files.set('authority-keys', kept.replaceAll('"planned"', '"compromise"'));
  await assert.rejects(member.again(), /stored authority keys are refused: Statement 1/);
});

test('an agent starts again with what the newest of many keys has signed', async () => {
  await using na = await startSuccessionAuthority();
  const steps = Array.from({ length: 33 }, (_, n): Step => ({ kind: 'planned', at: n + 1 }));
  na.successions = chain(...steps);
  na.clock.advance(50 * HOUR);
  const member = await memberOf(na);
  await member.agent.turn();
  assert.deepEqual(signersOf(member, 'policy'), [countedKey(34).publicKey]);
  const again = await member.again();
  await again.agent.turn();
  assert.deepEqual(complaints(again), []);
});
