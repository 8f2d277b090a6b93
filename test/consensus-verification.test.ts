/** Why a proof does not show consensus [service-consensus-verification-rules], [trust-4-7], [trust-6-6]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { MINUTE } from './support/clock.ts';
import {
  assembler,
  COUNCIL,
  checkCases,
  keysOf,
  namesOf,
  proofBy,
  reasonOf,
  sha256,
  stranger,
  v1,
  v2,
  v3,
  v4,
  voteOf,
  votesOf,
} from './support/consensus.ts';
import { type Fault, faultsTogether } from './support/faults.ts';
import { newKey } from './support/requests.ts';
import { stateDigest } from './support/test-stores.ts';
import { audited, sovereign, startUnlimited } from './support/trust.ts';
import { type Party, singlySigned, without } from './support/trust-protocol.ts';

interface VerifyDraft {
  readonly unsigned?: true;
  readonly assembler?: readonly string[];
  readonly foreignVote?: true;
  readonly unsignedVote?: true;
  readonly outsider?: true;
  readonly threshold?: number;
  readonly undigested?: true;
  readonly alike?: true;
  readonly over?: true;
}

/** In the order of [trust-4-6]. */
const VERIFY_FAULTS: readonly Fault<VerifyDraft>[] = [
  ['missing_signature', { unsigned: true }],
  ['invalid_assembler_signature', { assembler: [] }],
  ['proof_id_mismatch', { foreignVote: true }],
  ['invalid_vote_signature', { unsignedVote: true }],
  ['vote_not_in_validator_set', { outsider: true }],
  ['threshold_not_met', { threshold: 5 }],
  ['missing_context_digest', { undigested: true }],
  ['cascade_detected', { alike: true }],
  ['expired', { over: true }],
];

function spoiledVerification(now: number, draft: VerifyDraft): JsonObject {
  const same = draft.alike ? { context_digest: sha256('shared') } : {};
  const votes = [...COUNCIL, v4].map((voter, index) =>
    voteOf(voter, now, { after: 60 * index, ...same }),
  );
  if (draft.undigested) votes[3] = voteOf(v4, now, { after: 180, context_digest: null });
  if (draft.foreignVote) votes.push(voteOf(v1, now, { after: 240, proof_id: 'another' }));
  if (draft.unsignedVote) votes.push({ ...voteOf(v1, now, { after: 240 }), signature: null });
  if (draft.outsider) votes.push(voteOf(stranger, now, { after: 240 }));
  const proof = proofBy(assembler, now, {
    votes,
    required_threshold: draft.threshold ?? 2,
    validator_sovereign_ids: namesOf([...COUNCIL, v4]),
    ...(draft.over && { expires_at: formatInstant(now) }),
  });
  return {
    proof: draft.unsigned ? { ...proof, signature: null } : proof,
    validator_public_keys: keysOf([...COUNCIL, v4]),
    assembler_public_keys: draft.assembler ?? [assembler.key.publicKey],
  };
}

test('the first reason why there is no consensus is reported and logged', async (t) => {
  await using na = await startUnlimited();
  const before = await stateDigest(na);
  assert.equal(await reasonOf(na, spoiledVerification(na.clock.now(), {})), 'valid');
  for (const { name, expected, draft } of faultsTogether(VERIFY_FAULTS)) {
    await t.test(name, async () => {
      const body = spoiledVerification(na.clock.now(), draft);
      assert.equal(await reasonOf(na, body), expected);
      assert.deepEqual(audited(na, 'consensus_proof_verified').at(-1), {
        consensus_id: 'consensus',
        valid: false,
      });
    });
  }
  assert.equal(await stateDigest(na), before);
});

test('each vote is checked in turn: signed, by a known key, genuine', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [first = {}, second = {}, third = {}] = votesOf(now);
  const unsigned = (vote: JsonObject) => ({ ...vote, signature: null });
  const forged = (vote: JsonObject) => singlySigned(vote, newKey(), 'val-3');
  const against = (voter: Party) => voteOf(voter, now, { after: 120, vote: false });
  const outside = voteOf(stranger, now, { after: 180 });
  const outsideAgainst = voteOf(stranger, now, { vote: false });
  const [noVal1, noVal3, withStranger] = [
    keysOf([v2, v3]),
    keysOf([v1, v2]),
    keysOf([...COUNCIL, stranger]),
  ];
  const [unsignedReason, unknown, named] = [
    'invalid_vote_signature',
    'unknown_validator_key',
    'vote_not_in_validator_set',
  ];
  await checkCases(na, [
    ['all signed, with keys', {}, 'valid'],
    // [service-consensus-verification-2]: the proof is rejected rather than the vote skipped, although two others are
    // enough.
    ['one unsigned', { votes: [first, second, unsigned(third)] }, unsignedReason],
    ['one without key', {}, unknown, noVal3],
    [
      'one unsigned and without key',
      { votes: [first, second, unsigned(third)] },
      unsignedReason,
      noVal3,
    ],
    [
      'a second vote of one validator, unsigned',
      { votes: [first, second, unsigned(voteOf(v1, now))] },
      unsignedReason,
    ],
    ['one forged', { votes: [first, second, forged(third)] }, unsignedReason],
    [
      'one changed after it was signed',
      { votes: [first, second, { ...third, reason: 'r' }] },
      unsignedReason,
    ],
    [
      'one signed by another validator',
      { votes: [first, second, singlySigned(third, v1.key, 'val-3')] },
      unsignedReason,
    ],
    [
      'one with a signature that is none',
      { votes: [first, second, { ...third, signature: { key_id: '', sig: '' } }] },
      unsignedReason,
    ],
    [
      'one with any key id',
      { votes: [first, second, singlySigned(third, v3.key, 'somebody')] },
      'valid',
    ],
    [
      'one with the key id of another',
      { votes: [first, second, singlySigned(third, v3.key, 'val-1')] },
      'valid',
    ],
    [
      'a signed member that nobody knows',
      { votes: [first, second, without(singlySigned({ ...third, extra: 1 }, v3.key), 'extra')] },
      unsignedReason,
    ],
    // The first faulty vote determines the reason.
    ['without key, then unsigned', { votes: [first, second, unsigned(third)] }, unknown, noVal1],
    [
      'unsigned, then without key',
      { votes: [unsigned(third), second, first] },
      unsignedReason,
      noVal1,
    ],
    ['forged, then without key', { votes: [forged(third), second, first] }, unsignedReason, noVal1],
    ['without key, then forged', { votes: [first, second, forged(third)] }, unknown, noVal1],
    // Votes against, cast by named validators, need no key, but they do need a signature.
    ['one against it', { votes: [first, second, against(v3)] }, 'valid'],
    ['one against it, without key', { votes: [first, second, against(v3)] }, 'valid', noVal3],
    ['one against it, unsigned', { votes: [first, second, unsigned(against(v3))] }, unsignedReason],
    [
      'one against it, unsigned, without key',
      { votes: [first, second, unsigned(against(v3))] },
      unsignedReason,
      noVal3,
    ],
    ['one against it, forged', { votes: [first, second, forged(against(v3))] }, unsignedReason],
    [
      'one against it, forged, without key',
      { votes: [first, second, forged(against(v3))] },
      'valid',
      noVal3,
    ],
    [
      'one against it, on another proof',
      { votes: [first, second, voteOf(v3, now, { vote: false, proof_id: 'x' })] },
      'valid',
    ],
    // Outsiders.
    ['an outsider for it', { votes: [first, second, outside] }, named],
    ['an outsider for it, with key', { votes: [first, second, outside] }, named, withStranger],
    ['an outsider for it, unsigned', { votes: [first, second, unsigned(outside)] }, named],
    [
      'an outsider for it, unsigned, with key',
      { votes: [first, second, unsigned(outside)] },
      named,
      withStranger,
    ],
    ['an outsider for it, forged', { votes: [first, second, forged(outside)] }, named],
    [
      'an outsider for it, forged, with key',
      { votes: [first, second, forged(outside)] },
      unsignedReason,
      withStranger,
    ],
    [
      'an outsider for another proof',
      { votes: [first, second, voteOf(stranger, now, { proof_id: 'x' })] },
      named,
    ],
    [
      'an outsider, then an unsigned vote',
      { votes: [outside, first, unsigned(second)] },
      unsignedReason,
    ],
    ['an outsider against it', { votes: [first, second, outsideAgainst] }, 'valid'],
    [
      'an outsider against it, unsigned',
      { votes: [first, second, unsigned(outsideAgainst)] },
      'valid',
    ],
    ['an outsider against it, forged', { votes: [first, second, forged(outsideAgainst)] }, 'valid'],
    [
      'an outsider against it, forged, with key',
      { votes: [first, second, forged(outsideAgainst)] },
      unsignedReason,
      withStranger,
    ],
    [
      'an outsider against it, unsigned, with key',
      { votes: [first, second, unsigned(outsideAgainst)] },
      'valid',
      withStranger,
    ],
    [
      'a name in capitals',
      { votes: [first, second, voteOf({ ...v3, name: 'VAL-3' }, now)] },
      named,
    ],
    // Votes on another matter.
    [
      'one for another proof',
      { votes: [first, second, voteOf(v3, now, { proof_id: 'x' })] },
      'proof_id_mismatch',
    ],
    [
      'one for another decision',
      { votes: [first, second, voteOf(v3, now, { decision_id: 'x' })] },
      'proof_id_mismatch',
    ],
    [
      'one for the proof in capitals',
      { votes: [first, second, voteOf(v3, now, { proof_id: 'JUSTIFICATION' })] },
      'proof_id_mismatch',
    ],
    ['all for another proof than the whole', { proof_id: 'another' }, 'proof_id_mismatch'],
    ['all for another decision than the whole', { decision_id: 'another' }, 'proof_id_mismatch'],
    [
      'an unsigned one for another proof, last',
      { votes: [unsigned(first), second, voteOf(v3, now, { proof_id: 'x' })] },
      'proof_id_mismatch',
    ],
  ]);
});

test('the threshold counts distinct approving validators', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [first = {}, second = {}, third = {}] = votesOf(now);
  const again = [60, 120, 180].map((after) => voteOf(v1, now, { after }));
  const against = (voter: Party) => voteOf(voter, now, { after: 200, vote: false });
  const short = 'threshold_not_met';
  await checkCases(na, [
    ['three of three', { required_threshold: 3 }, 'valid'],
    ['two, where two are needed', { votes: [first, second] }, 'valid'],
    ['one, where one is needed', { votes: [first], required_threshold: 1 }, 'valid'],
    ['three, where four are needed', { required_threshold: 4 }, short],
    ['two, where three are needed', { votes: [first, second], required_threshold: 3 }, short],
    ['none', { votes: [] }, short],
    ['none, where none is needed', { votes: [], required_threshold: 0 }, short],
    ['three, where none is needed', { required_threshold: 0 }, short],
    ['three, where less than none is needed', { required_threshold: -1 }, short],
    ['three, where the largest number is needed', { required_threshold: 2 ** 53 - 1 }, short],
    ['one validator four times', { votes: [first, ...again] }, short],
    ['the same vote twice', { votes: [first, first] }, short],
    ['one validator four times and another', { votes: [first, ...again, second] }, 'valid'],
    [
      'a set that repeats a name',
      { votes: [first], validator_sovereign_ids: ['val-1', 'val-1'] },
      short,
    ],
    ['two against it', { votes: [first, against(v2), against(v3)] }, short],
    ['all against it', { votes: COUNCIL.map(against), required_threshold: 1 }, short],
    ['one that is for and against it', { votes: [first, second, against(v1)] }, 'valid'],
    ['one that is against it and then for it', { votes: [against(v1), first, second] }, 'valid'],
    ['an empty set', { votes: [], validator_sovereign_ids: [] }, short],
    [
      'a third vote left out of the set',
      { votes: [first, second, third], validator_sovereign_ids: ['val-1', 'val-2'] },
      'vote_not_in_validator_set',
    ],
  ]);
});

test('votes that look like copies of each other make no consensus', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [digest, other] = [sha256('shared'), sha256('another')];
  const crowd = Array.from({ length: 8 }, (_, index) => sovereign(`crowd-${index}`));
  const set = { validator_sovereign_ids: namesOf(crowd), required_threshold: 2 };
  const keys = keysOf(crowd);
  /** The first `alike` votes carry the shared digest; consecutive votes are `gap` seconds apart. */
  const votes = (alike: number, of: number, gap: number) =>
    crowd.slice(0, of).map((voter, index) =>
      voteOf(voter, now, {
        after: gap * index,
        ...(index < alike && { context_digest: digest }),
      }),
    );
  const own = (voter: Party, after: number) => voteOf(voter, now, { after });
  const shared = (voter: Party, after: number) =>
    voteOf(voter, now, { after, context_digest: digest });
  const none = (voter: Party, after: number) => voteOf(voter, now, { after, context_digest: null });
  const copies = [shared(v1, 0), shared(v2, 60), shared(v3, 120)];
  const [cascade, missing] = ['cascade_detected', 'missing_context_digest'];
  await checkCases(na, [
    ['digests of their own, spread out', {}, 'valid'],
    [
      'digests of their own, at one moment',
      { votes: COUNCIL.map((voter) => own(voter, 0)) },
      'valid',
    ],
    ['one digest in all', { votes: copies }, cascade],
    [
      'one digest in two of three',
      { votes: [shared(v1, 0), shared(v2, 60), own(v3, 120)] },
      'valid',
    ],
    [
      'one digest in two of three, at one moment',
      { votes: [shared(v1, 0), shared(v2, 0), own(v3, 0)] },
      cascade,
    ],
    ['one digest in two of two', { votes: [shared(v1, 0), shared(v2, 60)] }, cascade],
    ['a single vote with any digest', { votes: [shared(v1, 0)], required_threshold: 1 }, 'valid'],
    ['5 of 8, spread out: the score is 0.4', { ...set, votes: votes(5, 8, 30) }, 'valid', keys],
    ['6 of 8, spread out', { ...set, votes: votes(6, 8, 30) }, cascade, keys],
    ['2 of 8, at one moment: the score is 0.4', { ...set, votes: votes(2, 8, 0) }, 'valid', keys],
    ['3 of 8, at one moment', { ...set, votes: votes(3, 8, 0) }, cascade, keys],
    ['5 of 8, a little closer in time', { ...set, votes: votes(5, 8, 12) }, cascade, keys],
    [
      'two digests in two pairs',
      {
        ...set,
        votes: crowd
          .slice(0, 4)
          .map((voter, index) =>
            voteOf(voter, now, { after: 60 * index, context_digest: index < 2 ? digest : other }),
          ),
      },
      'valid',
      keys,
    ],
    [
      'digests that differ in case',
      {
        votes: [
          shared(v1, 0),
          voteOf(v2, now, { after: 60, context_digest: digest.toUpperCase() }),
        ],
      },
      'valid',
    ],
    [
      'an empty text for a digest',
      { votes: [voteOf(v1, now, { context_digest: '' }), own(v2, 60)] },
      'valid',
    ],
    [
      'two empty texts for digests',
      {
        votes: [
          voteOf(v1, now, { context_digest: '' }),
          voteOf(v2, now, { after: 60, context_digest: '' }),
        ],
      },
      cascade,
    ],
    [
      'a vote against it with the digest of another',
      {
        votes: [
          shared(v1, 0),
          own(v2, 60),
          voteOf(v3, now, { after: 61, vote: false, context_digest: digest }),
        ],
      },
      'valid',
    ],
    // Only a validator's first vote counts, whatever it casts later.
    [
      'copies, diluted by later votes',
      {
        votes: [
          ...copies,
          ...[130, 140, 150].flatMap((after) => COUNCIL.map((voter) => own(voter, after))),
        ],
      },
      cascade,
    ],
    [
      'copies, diluted by later votes that come first',
      { votes: [...COUNCIL.map((voter) => own(voter, 200)), ...copies] },
      cascade,
    ],
    [
      'copies, diluted by a vote of the same moment',
      { votes: [...copies, own(v1, 0), own(v2, 60), own(v3, 120)] },
      cascade,
    ],
    [
      'copies that come second in the same moment',
      { votes: [own(v1, 0), own(v2, 60), own(v3, 120), ...copies] },
      'valid',
    ],
    [
      'copies that are cast later than the first votes',
      { votes: [...COUNCIL.map((voter) => shared(voter, 200)), ...votesOf(now)] },
      'valid',
    ],
    [
      'copies cast before by a microsecond',
      {
        votes: [
          ...COUNCIL.map((voter) =>
            voteOf(voter, now, { voted_at: '2026-01-15T12:00:00.000002Z' }),
          ),
          ...COUNCIL.map((voter) =>
            voteOf(voter, now, { voted_at: '2026-01-15T12:00:00.000001Z', context_digest: digest }),
          ),
        ],
      },
      cascade,
    ],
    [
      'copies cast before, in another zone',
      {
        votes: [
          ...COUNCIL.map((voter) => voteOf(voter, now, { voted_at: '2026-01-15T12:00:00Z' })),
          ...COUNCIL.map((voter) =>
            voteOf(voter, now, { voted_at: '2026-01-15T13:59:59+02:00', context_digest: digest }),
          ),
        ],
      },
      cascade,
    ],
    // Every counted vote needs a digest, even if it is not the validator's first.
    ['one without digest', { votes: [own(v1, 0), own(v2, 60), none(v3, 120)] }, missing],
    ['all without digest', { votes: [none(v1, 0), none(v2, 60)] }, missing],
    ['a later one without digest', { votes: [own(v1, 0), own(v2, 60), none(v1, 120)] }, missing],
    [
      'one without digest among copies',
      { votes: [shared(v1, 0), shared(v2, 60), none(v3, 120)] },
      missing,
    ],
    [
      'one against it without digest',
      { votes: [own(v1, 0), own(v2, 60), voteOf(v3, now, { vote: false, context_digest: null })] },
      'valid',
    ],
  ]);
});

test('a proof is valid until its end, which is checked last', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [first = {}] = votesOf(now);
  const at = (instant: number) => ({ expires_at: formatInstant(instant) });
  await checkCases(na, [
    ['a millisecond before its end', at(now + 1), 'valid'],
    ['a microsecond before its end', at(now + 0.001), 'valid'],
    ['at its end', at(now), 'expired'],
    ['after its end', at(now - 1), 'expired'],
    ['long after its end', { expires_at: '0001-01-01T00:00:00Z' }, 'expired'],
    ['long before its end', { expires_at: '9999-12-31T23:59:59.999999Z' }, 'valid'],
    ['before its end in another zone', { expires_at: '9999-12-31T23:59:59-12:00' }, 'valid'],
    ['after its end, with votes too few', { ...at(now), votes: [first] }, 'threshold_not_met'],
    ['made in the future', { reached_at: formatInstant(now + MINUTE) }, 'valid'],
    ['without assessment', { cascade_assessment_digest: null }, 'valid'],
  ]);
});
