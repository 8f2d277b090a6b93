/** The authority's keys [authority-keys-8]. */
import { type AuthorityKey, authorityKeyMachine } from '../../machines/authority-key.ts';
import { chainOf } from '../support/authority-chain.ts';
import { NOW, testTable, testUnhandled } from '../support/state-tables.ts';
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
const finish = { type: 'finish', at: NOW, behind: 0, despite: 0 } as const;
const impossible = (reason: string) => ({
  emits: [{ refusal: 'roll_back_impossible', reason }],
});

testTable(authorityKeyMachine, [
  {
    name: 'the first key has a state once its successor is staged',
    event: { type: 'found', genesis },
    emits: ['founded'],
    to: { value: 'current', facts: { ...none, genesis } },
  },
  {
    name: 'a succession that is in order is staged',
    event: stage,
    emits: ['staged'],
    to: { value: 'staged', facts: next },
  },
  {
    name: 'it is not while another one is',
    event: { ...stage, isOtherStaged: true, problem: 'gap' },
    emits: ['succession_staged'],
  },
  {
    name: 'it is not if it is not in order',
    event: { ...stage, problem: 'gap' },
    emits: [{ refusal: 'succession_rejected', reason: 'gap' }],
  },
  { name: 'it is not twice', from: staged, event: stage, emits: ['succession_staged'] },
  ...others.map((from) => ({
    name: `a key that is ${from.value} is never staged`,
    from,
    event: stage,
    emits: [{ refusal: 'succession_rejected', reason: 'key_used_before' }],
  })),
  {
    name: 'staged, it can be taken back',
    from: staged,
    event: { type: 'cancel' },
    emits: ['canceled'],
  },
  {
    name: 'nothing is taken back while nothing is staged',
    event: { type: 'cancel' },
    emits: ['succession_not_staged'],
  },
  {
    name: 'nothing is activated while nothing is staged',
    event: activate,
    emits: ['succession_not_staged'],
  },
  {
    name: 'it is not activated before its time',
    from: staged,
    event: { ...activate, isDue: false, isHeld: false },
    emits: ['activation_too_early'],
  },
  {
    name: 'it is not activated where its key is not held',
    from: staged,
    event: { ...activate, isHeld: false },
    emits: ['authority_key_not_held'],
  },
  {
    name: 'activated, it is current',
    from: staged,
    event: activate,
    emits: ['activated'],
    to: { value: 'current', facts: { since: NOW, crlSequence: 8 } },
  },
  {
    name: 'replaced as planned, it is previous, and its own way back is gone',
    from: current,
    event: { type: 'replace', at: NOW, kind: 'planned' },
    emits: ['replaced'],
    to: { value: 'previous', facts: { rollBack: null } },
  },
  {
    name: 'replaced after a theft, it is distrusted',
    from: current,
    event: { type: 'replace', at: NOW, kind: 'compromise' },
    emits: ['replaced'],
    to: { value: 'distrusted', facts: { rollBack: null, until: NOW } },
  },
  {
    name: 'rolled back within the overlap, it is previous',
    from: current,
    event: goBack,
    emits: ['rolled_back'],
    to: { value: 'previous', facts: { rolledBackAt: NOW, rolledBackFrom: 9 } },
  },
  {
    name: 'nothing is rolled back before a succession',
    event: goBack,
    ...impossible('no_succession'),
  },
  {
    name: 'the first key is not rolled back',
    from: first,
    event: goBack,
    ...impossible('no_succession'),
  },
  {
    name: 'nothing is rolled back twice',
    from: first,
    event: { ...goBack, isRolledBack: true },
    ...impossible('rolled_back'),
  },
  {
    name: 'the key that replaced a stolen one is not rolled back',
    from: afterTheft,
    event: goBack,
    ...impossible('compromise'),
  },
  {
    name: 'it is not rolled back after the overlap',
    from: current,
    event: { ...goBack, isOver: true },
    ...impossible('overlap_ended'),
  },
  {
    name: 'it is not rolled back to a key that is not held',
    from: current,
    event: { ...goBack, isHeld: false },
    emits: ['authority_key_not_held'],
  },
  {
    name: 'returned to, the previous key is current again',
    from: previous,
    event: { type: 'return' },
    emits: ['returned'],
    to: { value: 'current', facts: {} },
  },
  {
    name: 'the overlap ends when all have followed',
    from: previous,
    event: finish,
    emits: ['retired'],
    to: { value: 'retired', facts: { until: NOW } },
  },
  {
    name: 'it does not while nodes are behind, unless their number is given',
    from: previous,
    event: { ...finish, behind: 3, despite: 2 },
    emits: ['nodes_have_not_followed'],
  },
  {
    name: 'it ends by itself however many are behind',
    from: previous,
    event: { ...finish, behind: null },
    emits: ['retired'],
    to: { value: 'retired', facts: { until: NOW } },
  },
  { name: 'no overlap ends while there is none', event: finish, emits: ['no_overlap'] },
  {
    name: 'after the overlap there is no way back',
    from: current,
    event: { type: 'settle' },
    emits: ['settled'],
    to: { value: 'current', facts: { rollBack: null } },
  },
]);

testUnhandled(authorityKeyMachine, [
  ['activating a key twice', current, activate],
  ['taking the current key back', current, { type: 'cancel' }],
  ['replacing a key that does not sign', previous, { type: 'replace', at: NOW, kind: 'planned' }],
  ['returning to a distrusted key', others[2], { type: 'return' }],
  ['returning to a retired key', others[3], { type: 'return' }],
]);
