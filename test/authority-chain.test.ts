/** From a trusted earlier key to the authority's current key [authority-keys-2] [authority-keys-3]. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { createVerifier } from '../src/client/offline.ts';
import {
  type ChainPin,
  type ChainReason,
  type FollowedChain,
  followChain,
  keysAt,
} from '../src/protocol/records/authority-chain.ts';
import {
  type AuthoritySuccession,
  MAX_SUCCESSIONS,
  readAuthoritySuccession,
  type SuccessionTerms,
} from '../src/protocol/records/authority-succession.ts';
import { instantOf } from '../src/protocol/records/record.ts';
import { nodesOf, put, variantsOf } from './support/altered.ts';
import {
  chainOf,
  countedKey,
  FIRST,
  GENESIS_DIGEST,
  HOUR,
  NETWORK,
  ROOT,
  START,
  type Step,
  signedStatement,
  TOOLS,
  termsOf,
} from './support/authority-chain.ts';
import { cpuOf } from './support/cpu.ts';

const PINNED: ChainPin = { networkName: NETWORK, trusted: { rootKey: ROOT.publicKey } };
const pinnedKey = (authorityKey: string): ChainPin => ({ ...PINNED, trusted: { authorityKey } });
const LATER = START + 1_000_000 * HOUR;

const STEPS: readonly Step[] = [
  { kind: 'planned', at: 100 },
  { kind: 'roll_back', at: 100 },
  { kind: 'planned', at: 200, overlap: 50 },
  { kind: 'compromise', at: 220 },
  { kind: 'planned', at: 300 },
];
const CHAIN = chainOf(STEPS);
const [PLANNED, ROLL_BACK, AGAIN, STOLEN, LAST] = CHAIN as [
  AuthoritySuccession,
  AuthoritySuccession,
  AuthoritySuccession,
  AuthoritySuccession,
  AuthoritySuccession,
];

function follow(chain: readonly unknown[], pin = PINNED, now = LATER): FollowedChain {
  const verdict = followChain(pin, { successions: chain }, now, TOOLS);
  assert.equal(verdict.refusal, null, verdict.refusal?.message);
  return verdict as FollowedChain;
}

function reasonOf(chain: readonly unknown[], pin = PINNED, now = LATER): ChainReason | null {
  const { refusal } = followChain(pin, { successions: chain }, now, TOOLS);
  if (refusal === null) return null;
  assert.match(refusal.message, /^[A-Z][^\n]*; [^\n]*\.$/, 'one sentence, with what to do');
  return refusal.reason;
}

suite('a trusted key', () => {
  test('leads to the current key', () => {
    const { currentKey, rootKey, inForce } = follow(CHAIN);
    assert.equal(currentKey, LAST.to_key);
    assert.equal(rootKey, ROOT.publicKey);
    assert.deepEqual(inForce, CHAIN);
  });

  test('is the current key if there was no succession', () => {
    assert.equal(follow([], pinnedKey(FIRST.publicKey)).currentKey, FIRST.publicKey);
    assert.equal(follow([]).currentKey, null);
  });

  test('may be any key of the authority since the last theft, and none from before it', () => {
    const planned = chainOf(STEPS.slice(0, 3));
    for (const { from_key, to_key } of planned) {
      assert.equal(follow(planned, pinnedKey(from_key)).currentKey, AGAIN.to_key);
      assert.equal(follow(planned, pinnedKey(to_key)).currentKey, AGAIN.to_key);
    }
    for (const { public_key, since } of keysAt(CHAIN, LATER)) {
      const isAfter = since !== null && since >= STOLEN.activates_at;
      assert.equal(
        reasonOf(CHAIN, pinnedKey(public_key)),
        isAfter ? null : 'root_key_needed',
        public_key,
      );
    }
  });

  test('is the one that vouches: a stranger’s root key cannot add statements', () => {
    const other = countedKey(30);
    const forged = signedStatement(
      { ...termsOf({ kind: 'planned', at: 1 }, []), root_public_key: other.publicKey },
      { root: other, from: other },
    );
    assert.equal(reasonOf([forged], pinnedKey(FIRST.publicKey)), 'not_signed_by_from_key');
    assert.equal(reasonOf([forged], pinnedKey(forged.to_key)), 'not_signed_by_from_key');
    assert.equal(reasonOf([forged]), 'wrong_root_key');
  });

  test('leads there with portable code alone', () => {
    const verifier = createVerifier({ now: () => LATER });
    const document = { network_name: NETWORK, successions: CHAIN };
    const verdict = verifier.authorityKeys(JSON.stringify(document), PINNED);
    assert.ok(verdict !== 'malformed' && verdict.refusal === null);
    assert.equal(verdict.currentKey, LAST.to_key);
    assert.equal(verifier.authorityKeys('{"successions":1}', PINNED), 'malformed');
    assert.equal(verifier.authorityKeys('[', PINNED), 'malformed');
  });
});

suite('a statement whose time has come', () => {
  const [first] = chainOf(STEPS.slice(0, 1)) as [AuthoritySuccession];
  const says = (state: string, public_key = first.to_key) => [{ public_key, state }];

  for (const [what, keys, pin, isInForce] of [
    ['is in force', undefined, PINNED, true],
    ['is in force if the document says so', says('current'), PINNED, true],
    ['waits while the document says so', says('next'), PINNED, false],
    [
      'is not held back by what is said of another key',
      says('next', FIRST.publicKey),
      PINNED,
      true,
    ],
    ['stays in force for those who know it', says('next'), { ...PINNED, known: [first] }, true],
  ] as const) {
    test(what, () => {
      const chain = { successions: [first], ...(keys && { keys }) };
      const verdict = followChain(pin, chain, LATER, TOOLS);
      assert.ok(verdict.refusal === null);
      assert.deepEqual(verdict.inForce, isInForce ? [first] : []);
      assert.equal(verdict.currentKey, isInForce ? first.to_key : first.from_key);
      assert.equal(verdict.keys.at(-1)?.state, isInForce ? 'current' : 'next');
    });
  }

  test('is not in force before its time, regardless of the document', () => {
    const chain = { successions: [first], keys: says('current') };
    const verdict = followChain(PINNED, chain, START, TOOLS);
    assert.deepEqual(verdict.refusal === null && verdict.inForce, []);
  });
});

suite('keys', () => {
  const statesAt = (hours: number, chain = CHAIN) =>
    keysAt(chain, START + hours * HOUR).map(({ state }) => state);

  for (const [title, steps, hours, states] of [
    ['before a change', 1, 99, ['current', 'next']],
    ['at the change', 1, 100, ['previous', 'current']],
    ['at the end of the overlap', 1, 110, ['retired', 'current']],
    ['rolled back', 2, 101, ['current', 'previous']],
    ['rolled back, after the overlap', 2, 110, ['current', 'retired']],
    ['of another change', 3, 201, ['previous', 'retired', 'current']],
    ['before a stolen one is replaced', 4, 219, ['previous', 'retired', 'current', 'next']],
    [
      'once it is replaced: no overlap is left',
      4,
      220,
      ['retired', 'retired', 'distrusted', 'current'],
    ],
    ['later', 5, 305, ['retired', 'retired', 'distrusted', 'previous', 'current']],
  ] as const) {
    test(title, () => assert.deepEqual(statesAt(hours, CHAIN.slice(0, steps)), states));
  }

  test('list since when they sign, and until when', () => {
    assert.deepEqual(
      keysAt(CHAIN, LATER).map(({ since, signs_until }) => [since, signs_until]),
      [
        [null, STOLEN.activates_at],
        [PLANNED.activates_at, PLANNED.overlap_until],
        [AGAIN.activates_at, STOLEN.distrusted_from],
        [STOLEN.activates_at, LAST.overlap_until],
        [LAST.activates_at, null],
      ],
    );
  });

  test('a statement that is not yet in force is followed, and can be canceled', () => {
    const before = START + 299 * HOUR;
    const { inForce, currentKey } = follow(CHAIN, PINNED, before);
    assert.deepEqual(inForce, CHAIN.slice(0, 4));
    assert.equal(currentKey, STOLEN.to_key);
    const other = signedStatement({
      ...termsOf({ kind: 'planned', at: 400 }, CHAIN.slice(0, 4)),
      to_key: countedKey(20).publicKey,
    });
    follow([...inForce, other], { ...PINNED, known: inForce }, before);
    follow(inForce, { ...PINNED, known: inForce }, before);
  });
});

/** A statement of the chain with other terms, signed again, by the right keys unless others are named. */
function remade(
  index: number,
  changed: Partial<SuccessionTerms>,
  signers: Parameters<typeof signedStatement>[1] = {},
): AuthoritySuccession[] {
  const before = CHAIN.slice(0, index);
  const terms = termsOf(STEPS[index] as Step, before);
  return [...before, signedStatement({ ...terms, ...changed }, signers)];
}

const at = (hours: number) => formatInstant(START + hours * HOUR);
const other = countedKey(30);
const withSignatures = (index: number, signatures: AuthoritySuccession['signatures']) =>
  CHAIN.with(index, { ...(CHAIN[index] as AuthoritySuccession), signatures });
const fork = signedStatement({
  ...termsOf({ kind: 'planned', at: 150 }, CHAIN.slice(0, 1)),
  to_key: countedKey(21).publicKey,
});

suite('a chain is refused', () => {
  for (const [title, chain, reason, pin] of [
    ['that is too long', Array(MAX_SUCCESSIONS + 1).fill(null), 'too_long'],
    ['with something else in it', [...CHAIN, null], 'malformed'],
    ['with a kind that is none', [{ ...PLANNED, kind: 'lost' }], 'malformed'],
    ['with a time that is none', [{ ...PLANNED, distrusted_from: 'soon' }], 'malformed'],
    ['with an id that is none', [{ ...PLANNED, succession_id: 'x' }], 'malformed'],
    ['with a key in another spelling', [{ ...PLANNED, to_key: `${PLANNED.to_key}=` }], 'malformed'],
    ['with three signatures', withSignatures(0, Array(3).fill(PLANNED.signatures[0])), 'malformed'],
    ['of another network', CHAIN, 'wrong_network', { ...PINNED, networkName: 'beta' }],
    ['with a statement of another network', remade(2, { network_name: 'beta' }), 'wrong_network'],
    [
      'of another root key',
      CHAIN,
      'wrong_root_key',
      { ...PINNED, trusted: { rootKey: other.publicKey } },
    ],
    [
      'with a statement of another root key',
      remade(2, { root_public_key: other.publicKey }, { root: other }),
      'wrong_root_key',
      pinnedKey(FIRST.publicKey),
    ],
    ['without its beginning', CHAIN.slice(1), 'gap'],
    ['with a gap', CHAIN.toSpliced(2, 1), 'gap'],
    ['with a statement twice', CHAIN.toSpliced(1, 0, PLANNED), 'gap'],
    ['in another order', CHAIN.toReversed(), 'gap'],
    ['with a number that is left out', remade(2, { sequence: 4 }), 'gap'],
    [
      'that follows on another genesis',
      CHAIN,
      'broken_link',
      { ...PINNED, genesisDigest: 'cd'.repeat(32) },
    ],
    [
      'that follows on another statement',
      remade(2, { previous_digest: GENESIS_DIGEST }),
      'broken_link',
    ],
    ['that replaces a key of long ago', remade(4, { from_key: FIRST.publicKey }), 'wrong_from_key'],
    ['made after it is in force', remade(0, { issued_at: at(101) }), 'wrong_times'],
    ['whose overlap ends before it begins', remade(0, { overlap_until: at(99) }), 'wrong_times'],
    ['that is planned and distrusts', remade(0, { distrusted_from: at(99) }), 'wrong_times'],
    ['that trusts a stolen key', remade(3, { distrusted_from: null }), 'wrong_times'],
    ['that distrusts too late', remade(3, { distrusted_from: at(221) }), 'wrong_times'],
    ['that lets a stolen key sign on', remade(3, { overlap_until: at(221) }), 'wrong_times'],
    [
      'in force no later than the one before',
      remade(2, { activates_at: at(100), issued_at: at(90) }),
      'wrong_times',
    ],
    ['that goes back at the beginning', remade(0, { kind: 'roll_back' }), 'wrong_roll_back'],
    [
      'that goes back after a theft',
      remade(4, { kind: 'roll_back', to_key: STOLEN.from_key }),
      'wrong_roll_back',
    ],
    [
      'that goes back twice',
      remade(2, { kind: 'roll_back', to_key: ROLL_BACK.from_key }),
      'wrong_roll_back',
    ],
    ['that goes back to another key', remade(1, { to_key: other.publicKey }), 'wrong_roll_back'],
    ['that goes back later', remade(1, { activates_at: at(101) }), 'wrong_roll_back'],
    ['that goes back for longer', remade(1, { overlap_until: at(999) }), 'wrong_roll_back'],
    ['that leads to the root key', remade(0, { to_key: ROOT.publicKey }), 'key_used_before'],
    ['that stays where it is', remade(0, { to_key: FIRST.publicKey }), 'key_used_before'],
    ['that leads to a key of before', remade(4, { to_key: FIRST.publicKey }), 'key_used_before'],
    ['that does not have the pinned key', CHAIN, 'unknown_key', pinnedKey(other.publicKey)],
    ['with a proof of another key', remade(2, {}, { to: other }), 'wrong_proof'],
    [
      'with a proof of other terms',
      [{ ...PLANNED, succession_id: ROLL_BACK.succession_id }],
      'wrong_proof',
    ],
    ['signed by another root key', remade(2, {}, { root: other }), 'not_signed_by_root'],
    ['without signatures', withSignatures(2, []), 'not_signed_by_root'],
    [
      'with its signatures the other way round',
      withSignatures(2, AGAIN.signatures.toReversed()),
      'not_signed_by_root',
    ],
    [
      'without the old key’s signature',
      withSignatures(2, AGAIN.signatures.slice(0, 1)),
      'not_signed_by_from_key',
    ],
    ['signed by another old key', remade(2, {}, { from: other }), 'not_signed_by_from_key'],
    [
      'with the signature of a stolen key',
      withSignatures(3, [...STOLEN.signatures, ...STOLEN.signatures]),
      'not_signed_by_from_key',
    ],
    ['with two statements of one number', [PLANNED, ROLL_BACK, fork], 'fork'],
    ['that forks off what is known', [PLANNED, fork], 'fork', { ...PINNED, known: CHAIN }],
    [
      'with a second statement of a number that nobody signed',
      [PLANNED, ROLL_BACK, { ...fork, signatures: ROLL_BACK.signatures }],
      'gap',
    ],
    [
      'that is shorter than what is known',
      CHAIN.slice(0, 4),
      'shorter',
      { ...PINNED, known: CHAIN },
    ],
    ['that is empty, and was not', [], 'shorter', { ...PINNED, known: [PLANNED] }],
  ] as [string, unknown[], ChainReason, ChainPin?][]) {
    test(`${title}: ${reason}`, () => assert.equal(reasonOf(chain, pin), reason));
  }

  test('without checking a signature if its form is already wrong', () => {
    let checks = 0;
    const verify = () => {
      checks += 1;
      return true;
    };
    const long = Array(MAX_SUCCESSIONS).fill(PLANNED);
    assert.equal(
      followChain(PINNED, { successions: long }, LATER, { ...TOOLS, verify }).refusal?.reason,
      'gap',
    );
    assert.equal(checks, 0);
    assert.equal(
      followChain(PINNED, { successions: CHAIN }, LATER, { ...TOOLS, verify }).refusal,
      null,
    );
    assert.ok(checks <= 3 * CHAIN.length);
  });
});

/** Arbitrary histories: planned changes, some of them rolled back, and thefts. */
const histories = fc
  .array(
    fc.record({
      kind: fc.constantFrom('planned', 'rolled_back', 'compromise'),
      after: fc.integer({ min: 1, max: 40 }),
      overlap: fc.integer({ min: 0, max: 60 }),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .map((changes) => {
    let hour = 0;
    return changes.flatMap(({ kind, after, overlap }): Step[] => {
      hour += after;
      if (kind === 'compromise') return [{ kind, at: hour }];
      const planned: Step = { kind: 'planned', at: hour, overlap };
      return kind === 'planned' ? [planned] : [planned, { ...planned, kind: 'roll_back' }];
    });
  })
  .map((steps) => chainOf(steps));
const hours = fc.integer({ min: 0, max: 400 }).map((hour) => START + hour * HOUR);
const RUNS = { numRuns: 60 };

suite('in any history', () => {
  test('everyone who ever pinned the root key can follow to the end', () => {
    fc.assert(
      fc.property(histories, hours, (chain, met) => {
        const known = follow(chain, PINNED, met).inForce;
        const { currentKey } = follow(chain, { ...PINNED, known });
        assert.equal(currentKey, chain.at(-1)?.to_key);
      }),
      RUNS,
    );
  });

  test('everyone who pinned a key can follow to the end unless one was stolen since', () => {
    fc.assert(
      fc.property(histories, (chain) => {
        for (const { public_key } of keysAt(chain, LATER)) {
          const last = chain.findLastIndex(({ to_key }) => to_key === public_key);
          const isCut = chain.slice(last + 1).some(({ kind }) => kind === 'compromise');
          const reason = reasonOf(chain, pinnedKey(public_key));
          assert.equal(reason, isCut ? 'root_key_needed' : null);
        }
      }),
      RUNS,
    );
  });

  test('a shorter chain than the known one is never accepted', () => {
    fc.assert(
      fc.property(histories, hours, fc.nat(), (chain, met, cut) => {
        const known = follow(chain, PINNED, met).inForce;
        if (known.length === 0) return;
        const older = chain.slice(0, cut % known.length);
        assert.equal(reasonOf(older, { ...PINNED, known }), 'shorter');
      }),
      RUNS,
    );
  });

  test('one key is current at any time, at most two sign, and a stolen one is never trusted again', () => {
    fc.assert(
      fc.property(histories, hours, (chain, now) => {
        const keys = keysAt(chain, now);
        const withState = (wanted: string) => keys.filter(({ state }) => state === wanted);
        assert.equal(withState('current').length, 1);
        assert.ok(withState('previous').length <= 1);
        const stolen = chain
          .filter((each) => each.kind === 'compromise' && instantOf(each.activates_at) <= now)
          .map(({ from_key }) => from_key);
        assert.deepEqual(
          withState('distrusted').map(({ public_key }) => public_key),
          stolen,
        );
      }),
      RUNS,
    );
  });

  test('finding the keys takes time in proportion to the length', async () => {
    const chain = Array.from({ length: MAX_SUCCESSIONS }, (_, at) => ({
      ...PLANNED,
      from_key: `key-${at}`,
      to_key: `key-${at + 1}`,
      activates_at: formatInstant(START + at * HOUR),
      overlap_until: formatInstant(START + (at + 10) * HOUR),
    }));
    const costOf = (length: number, rounds: number) =>
      cpuOf(() => {
        for (let round = 0; round < rounds; round += 1) keysAt(chain.slice(0, length), LATER);
      });
    const shorter = await costOf(MAX_SUCCESSIONS / 16, 1600);
    assert.ok((await costOf(MAX_SUCCESSIONS, 100)) < 4 * shorter);
  });

  test('every change of a statement is noticed', () => {
    fc.assert(
      fc.property(histories, fc.nat(), fc.nat(), (chain, place, which) => {
        const nodes = nodesOf(chain as unknown as JsonValue).slice(1);
        const { path, value } = nodes[place % nodes.length] as (typeof nodes)[number];
        const variants = [...variantsOf(value), undefined];
        const altered = put(
          chain as unknown as JsonValue,
          path,
          variants[which % variants.length],
        ) as unknown as readonly unknown[];
        // A whole chain may be truncated, or have an extra member that nobody reads.
        const read = altered.map((each) => readAuthoritySuccession(each));
        const isAsItWas = read.every(
          (each, index) =>
            each !== null && canonicalJson(each) === canonicalJson(chain[index] ?? null),
        );
        assert.equal(reasonOf(altered) === null, isAsItWas, path.join('.'));
      }),
      { numRuns: 400 },
    );
  });
});
