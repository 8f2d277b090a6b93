/** The authority's keys [authority-keys-8]. */
import { type AuthorityKey, authorityKeyMachine } from '../../machines/authority-key.ts';
import { chainOf } from '../support/authority-chain.ts';
import { absent, inEach, NOW, testTable, testUnhandled } from '../support/state-tables.ts';
import { unsignedGenesis } from '../support/unsigned-genesis.ts';

const [statement, rolledBack, stolen] = chainOf([
  { kind: 'planned', at: 0 },
  { kind: 'roll_back', at: 0 },
  { kind: 'compromise', at: 20 },
]);
if (statement === undefined || rolledBack === undefined || stolen === undefined) {
  throw new Error('The chain is too short');
}
const genesis = unsignedGenesis('alpha', statement.to_key);
const rollBack = { statement: rolledBack, genesis: unsignedGenesis('alpha', statement.from_key) };

const none: AuthorityKey = {
  statement: null,
  genesis: null,
  rollBack: null,
  since: null,
  crlSequence: null,
  rolledBackAt: null,
  rolledBackFrom: null,
  until: null,
};
const next: AuthorityKey = { ...none, statement, genesis, rollBack };
const inForce: AuthorityKey = { ...next, since: NOW - 1, crlSequence: 7 };
const first = { value: 'current', context: { ...none, genesis } };
const staged = { value: 'staged', context: next };
const current = { value: 'current', context: inForce };
const afterTheft = {
  value: 'current',
  context: { ...inForce, statement: stolen, rollBack: null },
};
const previous = { value: 'previous', context: { ...none, genesis } };
const others = [
  current,
  previous,
  { value: 'distrusted', context: inForce },
  { value: 'retired', context: inForce },
];

const stage = {
  type: 'stage',
  statement,
  genesis,
  rollBack,
  isOtherStaged: false,
  problem: null,
} as const;
const activate = { type: 'activate', at: NOW, isDue: true, isHeld: true, crlSequence: 8 } as const;
const goBack = {
  type: 'roll_back',
  at: NOW,
  isRolledBack: false,
  isOver: false,
  isHeld: true,
  crlSequence: 9,
} as const;
const find = { type: 'found', genesis };
const founded = { current: { ...none, genesis } };
const another = { ...stage, isOtherStaged: true, problem: 'gap' };
const early = { ...activate, isDue: false, isHeld: false };
const finish = { type: 'finish', at: NOW, behind: 0, despite: 0 } as const;
const behind = { ...finish, behind: 3, despite: 2 };
const replace = { type: 'replace', at: NOW, kind: 'planned' } as const;
const replaceStolen = { ...replace, kind: 'compromise' };
const isGone = { ...goBack, isRolledBack: true };
const activeNow = { current: { since: NOW, crlSequence: 8 } };
const wentBack = { previous: { rolledBackAt: NOW, rolledBackFrom: 9 } };
const hasNoWayBack = { previous: { rollBack: null } };
const isStolen = { distrusted: { rollBack: null, until: NOW } };
const hasEnded = { current: { rollBack: null } };
const retired = { retired: { until: NOW } };

testTable(authorityKeyMachine, [
  ['the first key is found with its successor', absent, find, 'founded', founded],
  ['a succession that is in order is staged', absent, stage, 'staged', { staged: next }],
  ['it is not while another one is', absent, another, 'succession_staged'],
  ['it is not out of order', absent, { ...stage, problem: 'gap' }, 'succession_rejected: gap'],
  ['it is not twice', staged, stage, 'succession_staged'],
  ...inEach(others, ['it is never staged', stage, 'succession_rejected: key_used_before']),
  ['staged, it can be taken back', staged, { type: 'cancel' }, 'canceled'],
  ['nothing staged, nothing is taken back', absent, { type: 'cancel' }, 'succession_not_staged'],
  ['nothing staged, nothing is activated', absent, activate, 'succession_not_staged'],
  ['it is not activated too early', staged, early, 'activation_too_early'],
  ['not activated unless held', staged, { ...activate, isHeld: false }, 'authority_key_not_held'],
  ['activated, it is current', staged, activate, 'activated', activeNow],
  ['replaced as planned, it has no way back', current, replace, 'replaced', hasNoWayBack],
  ['replaced after a theft, it is distrusted', current, replaceStolen, 'replaced', isStolen],
  ['rolled back within the overlap, it is previous', current, goBack, 'rolled_back', wentBack],
  ['no way back before a succession', absent, goBack, 'roll_back_impossible: no_succession'],
  ['the first key is not rolled back', first, goBack, 'roll_back_impossible: no_succession'],
  ['nothing is rolled back twice', first, isGone, 'roll_back_impossible: rolled_back'],
  ['nor after a theft', afterTheft, goBack, 'roll_back_impossible: compromise'],
  ['nor too late', current, { ...goBack, isOver: true }, 'roll_back_impossible: overlap_ended'],
  ['nor to a key not held', current, { ...goBack, isHeld: false }, 'authority_key_not_held'],
  ['returned to, it is current again', previous, { type: 'return' }, 'returned', { current: {} }],
  ['the overlap ends when all have followed', previous, finish, 'retired', retired],
  ['not while others are behind than given', previous, behind, 'nodes_have_not_followed'],
  ['it ends by itself with any behind', previous, { ...finish, behind: null }, 'retired', retired],
  ['no overlap ends while there is none', absent, finish, 'no_overlap'],
  ['no way back after the overlap', current, { type: 'settle' }, 'settled', hasEnded],
]);

testUnhandled(authorityKeyMachine, [
  ['activating a key twice', current, activate],
  ['taking the current key back', current, { type: 'cancel' }],
  ['replacing a key that does not sign', previous, replace],
  ['returning to a distrusted key', others[2], { type: 'return' }],
  ['returning to a retired key', others[3], { type: 'return' }],
]);
