import { type Nullifier, nullifierMachine } from '../../machines/capability-nullifier.ts';
import { NOW, testTable, testUnhandled } from '../support/state-tables.ts';

// Capability nullifier [trust-4-5]

const nullifier: Nullifier = {
  proofDigest: 'd1',
  commitmentId: 'c-1',
  nullifierId: 'n-1',
  issuedAt: NOW - 1,
  expiresAt: NOW + 59_999,
};
const nullified = { value: 'issued', context: nullifier };
const laterNullifier: Nullifier = { ...nullifier, nullifierId: 'n-2', issuedAt: NOW };
const nullify = { type: 'issue', nullifier, leafMatches: true } as const;
const nullifyLater = { ...nullify, nullifier: laterNullifier };
const usedUp = [{ refusal: 'nullifier_failed', reason: 'already_issued' }];

testTable(nullifierMachine, [
  {
    name: 'the first nullifier of a proof is issued',
    event: nullify,
    emits: ['issued'],
    to: { value: 'issued', facts: nullifier },
  },
  {
    name: 'a proof whose leaf is not that of its capability is refused, and not used up',
    event: { ...nullify, leafMatches: false },
    emits: [{ refusal: 'nullifier_failed', reason: 'leaf_hash_mismatch' }],
  },
  {
    name: 'a second one of the same proof is refused',
    from: nullified,
    event: nullifyLater,
    emits: usedUp,
  },
  {
    name: 'also when the first has expired',
    from: { value: 'issued', context: { ...nullifier, expiresAt: NOW - 1 } },
    event: nullifyLater,
    emits: usedUp,
  },
  {
    name: 'also for another content of the proof',
    from: nullified,
    event: { ...nullify, nullifier: { ...laterNullifier, proofDigest: 'd2', commitmentId: 'c-2' } },
    emits: usedUp,
  },
  {
    name: 'a repeated use is reported before a wrong leaf',
    from: nullified,
    event: { ...nullifyLater, leafMatches: false },
    emits: usedUp,
  },
]);

testUnhandled(nullifierMachine, [
  ['giving a proof back that was never used', undefined, { type: 'release' }],
  ['giving a used proof back', nullified, { type: 'release' }],
]);
