import { ofKeys, ofSessions, ofStores } from './planted/authority.ts';
import { ofDatabases, ofTheirSessions } from './planted/instances.ts';
import { holds, type Run } from './runs.ts';
import { ofAuthority, ofInstances } from './simulate.ts';

/** What tests play, each suite in a process of its own. */
export const SUITES: ReadonlyMap<string, readonly Run[]> = new Map([
  [
    'a few of each kind',
    [
      holds('10 histories under correct clocks', 10, ofAuthority({ clocks: 'right' })),
      holds('10 under clocks that are set forward and back', 10, ofAuthority({ clocks: 'wrong' })),
      holds('5 with many keys', 5, ofAuthority({ clocks: 'right', successions: 15 })),
      holds('10 of three instances', 10, ofInstances()),
    ],
  ],
  ['correct clocks', [holds('500 histories', 500, ofAuthority({ clocks: 'right' }))]],
  ['clocks that are set', [holds('500 histories', 500, ofAuthority({ clocks: 'wrong' }))]],
  [
    // Everything is signed by the keys of its time, and a client that pinned an earlier key reaches the current one.
    'many keys',
    [
      holds('50 histories', 50, ofAuthority({ clocks: 'right', successions: 15 })),
      holds('30 under clocks that are set', 30, ofAuthority({ clocks: 'wrong', successions: 15 })),
      holds(
        '30 while other processes take over',
        30,
        ofAuthority({ clocks: 'right', successions: 15, takesOver: true }),
      ),
    ],
  ],
  [
    // A state that another process kept up to date, by looking at the disk after arbitrary steps, is as one read from it.
    'other processes take over',
    [
      holds('100 histories', 100, ofAuthority({ clocks: 'right', takesOver: true })),
      holds(
        '100 under clocks that are set',
        100,
        ofAuthority({ clocks: 'wrong', takesOver: true }),
      ),
    ],
  ],
  ['three instances', [holds('400 histories', 400, ofInstances())]],
  ['defects in what is stored and judged', ofStores],
  ['defects in the keys of the authority', ofKeys],
  ['defects in heartbeat sessions', ofSessions],
  ['defects in instances', ofDatabases],
  ['defects in the heartbeat sessions of instances', ofTheirSessions],
]);
