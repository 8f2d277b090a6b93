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

/** A request by the first operator or node, answered before the next step. */
const held = { isHeld: true } as const;
const answeredNow = { isHeld: false } as const;
const heartbeat = { do: 'heartbeat', certificate: 0, ...byNode, ...answeredNow } as const;
const renew = { do: 'renew', ...byNode, roles: 'same', ...answeredNow } as const;
const replay = (request: number): Step => ({ do: 'replay', request, late: 0, ...answeredNow });
const wait = (minutes: number): Step => ({ do: 'wait', ms: minutes * MINUTE });
const setBack = (minutes: number): Step => ({ do: 'setClock', ms: -minutes * MINUTE });
const crash = { do: 'crash', persisted: 0, again: false } as const;
const stage = {
  do: 'stage',
  ...byOperator,
  again: -1,
  key: 'new',
  hasKey: true,
  activatesIn: 0,
  altered: 'none',
  ...answeredNow,
} as const;
const activate = { do: 'activate', ...byOperator, ...answeredNow } as const;
const planned = { ...stage, kind: 'planned', overlap: 60 * MINUTE } as const;

const feedOfTreaty = { peer: 0, sequence: 1, ids: [0], keys: 'treaty', isSigned: true };

const afterSetBack = (minutes: number, back: number): readonly Step[] => [
  { do: 'attest', ...byOperator, flaw: 'ahead', issuer: 'foreign', subject: 3, ...answeredNow },
  wait(minutes),
  { do: 'restart' },
  setBack(back),
  { do: 'failFlush' },
  { do: 'replay', request: 0, late: 0, ...held },
];

const lostInCrash = (back: number, ...between: readonly Step[]): readonly Step[] => [
  heartbeat,
  ...between,
  heartbeat,
  setBack(back),
  crash,
  wait(3),
  replay(0),
  replay(1),
];

const HISTORIES: readonly (readonly [name: string, enrolled: number, steps: readonly Step[]])[] = [
  [
    'a request of 12 minutes ago is not accepted after a clock was set back by 4',
    0,
    afterSetBack(12, 4),
  ],
  [
    'a request of 18 minutes ago is not accepted after a clock was set back by 12',
    0,
    afterSetBack(18, 12),
  ],
  [
    'what a node sent before the clock was set back is not accepted after a clean restart',
    3,
    [
      { ...renew, flaw: 'ahead', late: 30_000, certificate: 0, hours: 100 },
      setBack(1),
      { ...heartbeat, certificate: 6 },
      { ...heartbeat, node: 2, certificate: 2, ...held },
      { do: 'restart' },
      replay(1),
    ],
  ],
  [
    'a heartbeat that a crash lost is not accepted again after the clean stop that follows',
    1,
    [heartbeat, crash, { do: 'restart' }, replay(0)],
  ],
  [
    'a silent node is not active after a clock was set back and the service restarted',
    1,
    [wait(6), setBack(12), wait(6), { do: 'restart' }],
  ],
  [
    'a heartbeat that is stored while a clock is set back does not count as later than that',
    1,
    [setBack(4), { ...heartbeat, flaw: 'ahead', ...held }, wait(6), { do: 'settle' }],
  ],
  [
    'a join while a clock is set back does not count as later than that',
    0,
    [
      { do: 'invite', ...byOperator, hours: 1, bound: -1, ...answeredNow },
      setBack(12),
      { do: 'join', ...byNode, invite: 0, hours: 1, ...held },
      wait(4),
      { do: 'settle' },
      wait(6),
    ],
  ],
  [
    'a contact from before a clock was set back does not follow a later renewal after a crash',
    1,
    [
      wait(16),
      heartbeat,
      { ...renew, hours: 1, certificate: 0 },
      setBack(12),
      { do: 'restart' },
      { ...renew, hours: 1, certificate: 1 },
      crash,
    ],
  ],
  [
    'a heartbeat that follows a renewal counts, although the renewal was still being stored',
    1,
    [
      { ...renew, certificate: 0, hours: 2, ...held },
      { ...heartbeat, flaw: 'ahead' },
    ],
  ],
  [
    'a heartbeat follows a renewal that is being stored, although the clock is set back meanwhile',
    1,
    [
      { ...renew, certificate: 0, hours: 2, ...held },
      setBack(1),
      { ...heartbeat, ...held },
      { do: 'wait', ms: 30_000 },
      { do: 'persist', count: 2 },
    ],
  ],
  [
    'a heartbeat that a crash lost stays refused under a clock set back by 1 minute',
    1,
    lostInCrash(1),
  ],
  [
    'a heartbeat that a crash lost after a flush stays refused under a clock set back by 4 minutes',
    1,
    lostInCrash(4, { do: 'flushLiveness' }),
  ],
  [
    'a heartbeat that a crash lost 5 minutes later stays refused under a clock set back by 7 minutes',
    1,
    lostInCrash(7, wait(5)),
  ],
  [
    'a policy from before a clock was set back is signed by the key that takes over after that',
    0,
    [
      setBack(4),
      { do: 'publishPolicy', ...byOperator, policy: 1, ...answeredNow },
      { do: 'wait', ms: 30_000 },
      { ...stage, kind: 'compromise', overlap: 0 },
      { do: 'keepKeys' },
    ],
  ],
  [
    'a key that takes over after a clock was set back is the newer one',
    0,
    [planned, wait(12), activate, setBack(1), { do: 'restart' }, planned, activate],
  ],
  [
    'a treaty vouches for no feed once its revocation is decided',
    0,
    [
      { do: 'treaty', ...byOperator, peer: 0, hours: 1, ...answeredNow },
      { do: 'revokeTreaty', ...byOperator, treaty: 0, reason: 0, ...held },
      { do: 'importFeed', ...byOperator, ...feedOfTreaty, ...answeredNow },
    ],
  ],
];

for (const [name, enrolled, steps] of HISTORIES) {
  test(name, () => play({ enrolled, steps }));
}

const SET_BACK: readonly (readonly [string, readonly Step[]])[] = [
  ['twice after its clock was set back', [{ do: 'restart' }, { do: 'restart' }]],
  ['after it followed its clock', [{ do: 'wait', ms: 30_000 }, { do: 'restart' }]],
];
for (const [restarted, steps] of SET_BACK) {
  test(`a heartbeat of a node that is ahead may count again if the service is restarted ${restarted}`, () =>
    play({
      enrolled: 1,
      steps: [
        wait(10),
        heartbeat,
        { do: 'flushLiveness' },
        { do: 'settle' },
        heartbeat,
        { ...heartbeat, flaw: 'ahead' },
        setBack(1),
        ...steps,
        replay(1),
        replay(0),
      ],
    }));
}

const beat = { do: 'beat', session: 0, flaw: 'none', late: 0, ...answeredNow } as const;
const BEATS_BEFORE_A_CRASH: readonly (readonly [string, readonly Step[]])[] = [
  ['by a clock that is ahead', [{ ...beat, instant: 'ahead' }]],
  [
    'after a long silence, before the clock is set back',
    [wait(20), { ...beat, instant: 'now', ...held }, setBack(1)],
  ],
];
for (const [made, steps] of BEATS_BEFORE_A_CRASH) {
  test(`a heartbeat in a session that was made ${made} is not accepted again after a crash`, () =>
    play({ enrolled: 1, steps: [heartbeat, ...steps, crash, replay(0)] }));
}
