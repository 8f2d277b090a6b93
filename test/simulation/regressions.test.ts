/** Histories that once broke a rule, in their shortest form. */
import { test } from 'node:test';
import { MINUTE } from '../support/clock.ts';
import { play } from './play.ts';
import type { Step } from './steps.ts';

const byOperator = { operator: 0, flaw: 'none', isWellFormed: true } as const;
const byNode = { node: 0, flaw: 'none', late: 0 } as const;

test('certificates that are revoked while a renewal is being stored keep their places in the list', async () => {
  // Ids are drawn in sequence, so each additional draw changes the order in which they sort.
  for (let draws = 0; draws < 8; draws += 1) {
    const steps: Step[] = [
      ...Array.from(
        { length: draws },
        (): Step => ({ do: 'nullify', proof: draws, ...byOperator, isHeld: false }),
      ),
      { do: 'renew', certificate: 0, hours: 1, roles: 'same', ...byNode, isHeld: true },
      { do: 'revoke', certificate: 0, compromised: true, ...byOperator, isHeld: true },
      { do: 'settle' },
    ];
    await play({ enrolled: 1, steps });
  }
});

for (const [wait, back] of [
  [12, 4],
  [18, 12],
] as const) {
  test(`a request of ${wait} minutes ago is not accepted again after a clock was set back by ${back}`, async () => {
    await play({
      enrolled: 0,
      steps: [
        {
          do: 'attest',
          ...byOperator,
          flaw: 'ahead',
          issuer: 'foreign',
          subject: 3,
          isHeld: false,
        },
        { do: 'wait', ms: wait * MINUTE },
        { do: 'restart' },
        { do: 'setClock', ms: -back * MINUTE },
        { do: 'failFlush' },
        { do: 'replay', request: 0, late: 0, isHeld: true },
      ],
    });
  });
}

test('what a node sent before the clock was set back is not accepted after a clean restart', async () => {
  await play({
    enrolled: 3,
    steps: [
      {
        do: 'renew',
        ...byNode,
        flaw: 'ahead',
        late: 30_000,
        certificate: 0,
        hours: 100,
        roles: 'same',
        isHeld: false,
      },
      { do: 'setClock', ms: -MINUTE },
      { do: 'heartbeat', ...byNode, certificate: 6, isHeld: false },
      { do: 'heartbeat', ...byNode, node: 2, certificate: 2, isHeld: true },
      { do: 'restart' },
      { do: 'replay', request: 1, late: 0, isHeld: false },
    ],
  });
});

test('a heartbeat that a crash lost is not accepted again after the clean stop that follows', async () => {
  await play({
    enrolled: 1,
    steps: [
      { do: 'heartbeat', certificate: 0, ...byNode, isHeld: false },
      { do: 'crash', persisted: 0, again: false },
      { do: 'restart' },
      { do: 'replay', request: 0, late: 0, isHeld: false },
    ],
  });
});

test('a silent node is not active after a clock was set back and the service restarted', async () => {
  await play({
    enrolled: 1,
    steps: [
      { do: 'wait', ms: 6 * MINUTE },
      { do: 'setClock', ms: -12 * MINUTE },
      { do: 'wait', ms: 6 * MINUTE },
      { do: 'restart' },
    ],
  });
});

test('a heartbeat that is stored while a clock is set back does not count as later than that', async () => {
  await play({
    enrolled: 1,
    steps: [
      { do: 'setClock', ms: -4 * MINUTE },
      { do: 'heartbeat', certificate: 0, ...byNode, flaw: 'ahead', isHeld: true },
      { do: 'wait', ms: 6 * MINUTE },
      { do: 'settle' },
    ],
  });
});

test('a join while a clock is set back does not count as later than that', async () => {
  await play({
    enrolled: 0,
    steps: [
      { do: 'invite', ...byOperator, hours: 1, bound: -1, isHeld: false },
      { do: 'setClock', ms: -12 * MINUTE },
      { do: 'join', ...byNode, invite: 0, hours: 1, isHeld: true },
      { do: 'wait', ms: 4 * MINUTE },
      { do: 'settle' },
      { do: 'wait', ms: 6 * MINUTE },
    ],
  });
});

test('a contact from before a clock was set back does not follow a later renewal after a crash', async () => {
  const renew = { do: 'renew', ...byNode, hours: 1, roles: 'same', isHeld: false } as const;
  await play({
    enrolled: 1,
    steps: [
      { do: 'wait', ms: 16 * MINUTE },
      { do: 'heartbeat', ...byNode, certificate: 0, isHeld: false },
      { ...renew, certificate: 0 },
      { do: 'setClock', ms: -12 * MINUTE },
      { do: 'restart' },
      { ...renew, certificate: 1 },
      { do: 'crash', persisted: 0, again: false },
    ],
  });
});

test('a heartbeat that follows a renewal counts, although the renewal was still being stored', async () => {
  await play({
    enrolled: 1,
    steps: [
      { do: 'renew', certificate: 0, hours: 2, roles: 'same', ...byNode, isHeld: true },
      { do: 'heartbeat', certificate: 0, ...byNode, flaw: 'ahead', isHeld: false },
    ],
  });
});

test('a heartbeat follows a renewal that is being stored, although the clock is set back meanwhile', async () => {
  await play({
    enrolled: 1,
    steps: [
      { do: 'renew', certificate: 0, hours: 2, roles: 'same', ...byNode, isHeld: true },
      { do: 'setClock', ms: -MINUTE },
      { do: 'heartbeat', certificate: 0, ...byNode, isHeld: true },
      { do: 'wait', ms: 30_000 },
      { do: 'persist', count: 2 },
    ],
  });
});

const CRASHES: readonly (readonly [minutes: number, between: readonly Step[]])[] = [
  [1, []],
  [4, [{ do: 'flushLiveness' }]],
  [7, [{ do: 'wait', ms: 5 * MINUTE }]],
];
for (const [minutes, between] of CRASHES) {
  test(`a heartbeat that a crash lost is not accepted again under a clock that was set back by ${minutes} minutes`, async () => {
    await play({
      enrolled: 1,
      steps: [
        { do: 'heartbeat', certificate: 0, ...byNode, isHeld: false },
        ...between,
        { do: 'heartbeat', certificate: 0, ...byNode, isHeld: false },
        { do: 'setClock', ms: -minutes * MINUTE },
        { do: 'crash', persisted: 0, again: false },
        { do: 'wait', ms: 3 * MINUTE },
        { do: 'replay', request: 0, late: 0, isHeld: false },
        { do: 'replay', request: 1, late: 0, isHeld: false },
      ],
    });
  });
}

test('a policy from before a clock was set back is signed by the key that takes over after that', async () => {
  await play({
    enrolled: 0,
    steps: [
      { do: 'setClock', ms: -4 * MINUTE },
      { do: 'publishPolicy', ...byOperator, policy: 1, isHeld: false },
      { do: 'wait', ms: 30_000 },
      {
        do: 'stage',
        ...byOperator,
        again: -1,
        kind: 'compromise',
        key: 'new',
        hasKey: true,
        activatesIn: 0,
        overlap: 0,
        altered: 'none',
        isHeld: false,
      },
      { do: 'keepKeys' },
    ],
  });
});

test('a key that takes over after a clock was set back is the newer one', async () => {
  const planned = {
    do: 'stage',
    ...byOperator,
    again: -1,
    kind: 'planned',
    key: 'new',
    hasKey: true,
    activatesIn: 0,
    overlap: 60 * MINUTE,
    altered: 'none',
    isHeld: false,
  } as const;
  await play({
    enrolled: 0,
    steps: [
      planned,
      { do: 'wait', ms: 12 * MINUTE },
      { do: 'activate', ...byOperator, isHeld: false },
      { do: 'setClock', ms: -MINUTE },
      { do: 'restart' },
      planned,
      { do: 'activate', ...byOperator, isHeld: false },
    ],
  });
});

const beat = { do: 'beat', session: 0, flaw: 'none', late: 0, isHeld: false } as const;
const SET_BACK: readonly (readonly [string, readonly Step[]])[] = [
  ['twice after its clock was set back', [{ do: 'restart' }, { do: 'restart' }]],
  ['after it followed its clock', [{ do: 'wait', ms: 30_000 }, { do: 'restart' }]],
];
for (const [restarted, steps] of SET_BACK) {
  test(`a heartbeat of a node that is ahead may count again if the service is restarted ${restarted}`, async () => {
    const heartbeat = { do: 'heartbeat', certificate: 0, ...byNode, isHeld: false } as const;
    await play({
      enrolled: 1,
      steps: [
        { do: 'wait', ms: 10 * MINUTE },
        heartbeat,
        { do: 'flushLiveness' },
        { do: 'settle' },
        heartbeat,
        { ...heartbeat, flaw: 'ahead' },
        { do: 'setClock', ms: -MINUTE },
        ...steps,
        { do: 'replay', request: 1, late: 0, isHeld: false },
        { do: 'replay', request: 0, late: 0, isHeld: false },
      ],
    });
  });
}

const BEATS_BEFORE_A_CRASH: readonly (readonly [string, readonly Step[]])[] = [
  ['by a clock that is ahead', [{ ...beat, instant: 'ahead' }]],
  [
    'after a long silence, before the clock is set back',
    [
      { do: 'wait', ms: 20 * MINUTE },
      { ...beat, instant: 'now', isHeld: true },
      { do: 'setClock', ms: -MINUTE },
    ],
  ],
];
for (const [made, steps] of BEATS_BEFORE_A_CRASH) {
  test(`a heartbeat in a session that was made ${made} is not accepted again after a crash`, async () => {
    await play({
      enrolled: 1,
      steps: [
        { do: 'heartbeat', certificate: 0, ...byNode, isHeld: false },
        ...steps,
        { do: 'crash', persisted: 0, again: false },
        { do: 'replay', request: 0, late: 0, isHeld: false },
      ],
    });
  });
}
