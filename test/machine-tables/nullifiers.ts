import { type Nullifier, nullifierMachine } from '../../machines/capability-nullifier.ts';
import { absent, NOW, testTable, testUnhandled } from '../support/state-tables.ts';

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
const otherContent = { ...laterNullifier, proofDigest: 'd2', commitmentId: 'c-2' };
const expired = { value: 'issued', context: { ...nullifier, expiresAt: NOW - 1 } };
const wrongLeaf = { ...nullify, leafMatches: false };
const WRONG_LEAF = 'nullifier_failed: leaf_hash_mismatch';
const usedUp = 'nullifier_failed: already_issued';

testTable(nullifierMachine, [
  ['the first nullifier of a proof is issued', absent, nullify, 'issued', { issued: nullifier }],
  ['a wrong leaf is refused, and not used up', absent, wrongLeaf, WRONG_LEAF],
  ['a second one of the same proof is refused', nullified, nullifyLater, usedUp],
  ['also when the first has expired', expired, nullifyLater, usedUp],
  ['also of another content', nullified, { ...nullify, nullifier: otherContent }, usedUp],
  ['that comes before a wrong leaf', nullified, { ...nullifyLater, leafMatches: false }, usedUp],
]);

testUnhandled(nullifierMachine, [
  ['giving a proof back that was never used', absent, { type: 'release' }],
  ['giving a used proof back', nullified, { type: 'release' }],
]);
