/** Defects in instances that share a database, and in their heartbeat sessions. */
import fc from 'fast-check';
import type { CallOf } from '../authority-calls.ts';
import {
  type DrawnRequest,
  type History,
  histories,
  INSTANCES,
  LONGEST_FAULT_MS,
  requestOf,
  succession,
} from '../instances/histories.ts';
import type { Defect } from '../instances/play.ts';
import { holds, isFound, type Run } from '../runs.ts';
import { ofInstances } from '../simulate.ts';
import { FORGOTTEN_INSTANTS, KEPT_SECRET, UNCHECKED_MAC } from './authority.ts';

const EACH = [0, 1, 2] as const;

interface Drawn {
  readonly instance: number;
  /** Differs between histories: how many milliseconds later the second event comes. */
  readonly later: number;
  readonly lasts: number;
  readonly succession: DrawnRequest['succession'];
}

/** Histories with other faults and requests, which show what others rarely produce. */
function having(
  made: (drawn: Drawn, history: History) => Partial<History>,
  later = { min: 0, max: 0 },
): fc.Arbitrary<History> {
  return fc
    .record({
      history: histories,
      instance: fc.nat(INSTANCES - 1),
      later: fc.integer(later),
      lasts: fc.nat(5),
      succession,
    })
    .map(({ history, ...drawn }) => ({ ...history, ...made(drawn, history) }));
}

const besides = (instance: number) => EACH.filter((other) => other !== instance);

/** An instance hands over, and soon afterward the database loses that change. */
const lostHandOvers = having(
  ({ instance, later, lasts }) => ({
    faults: [
      { at: 200, what: 'stop', instance, lasts },
      { at: 200 + later, what: 'database loses its end', instance, lasts },
    ],
  }),
  { min: 20, max: 300 },
);

/**
 * A machine is paused while another instance takes over. After resuming, an instance that was active believes until its next
 * renewal that it still has the lease.
 */
const pausedWriters = having(
  ({ instance, later }) => ({ faults: [{ at: 0, what: 'pause', instance, lasts: later }] }),
  { min: 2000, max: LONGEST_FAULT_MS },
);

/**
 * An instance reads, is cut off from the database and from the others, and is asked again after others have revoked a
 * certificate.
 */
const lostDatabases = having(({ instance }) => {
  const cut = { instance, at: 200, lasts: LONGEST_FAULT_MS };
  return {
    faults: [
      { ...cut, what: 'cut from the database' },
      { ...cut, what: 'hears nobody' },
    ],
    requests: [
      requestOf(100, 'read', instance),
      ...besides(instance).map((other) => requestOf(1800, 'revoke', other)),
      requestOf(2400, 'read', instance),
    ],
  };
});

/** An instance dies just after others have forwarded to it what may be done only once. */
const interruptedJoins = having(
  ({ instance, later }) => ({
    faults: [{ at: 200 + later, what: 'kill', instance, lasts: LONGEST_FAULT_MS }],
    requests: [0, 1, 2, 3].map((invite) => {
      const by = besides(instance)[invite % 2] ?? 0;
      return requestOf(200, 'join', by, { invite });
    }),
  }),
  { min: 5, max: 40 },
);

/** A key is replaced early, with no faults that could hide the consequences. */
const replacedKeys = (others: (history: History) => readonly DrawnRequest[]) =>
  having(({ instance, succession }, history) => {
    const now = { succession: { ...succession, activatesIn: 0 } };
    const stage = requestOf(100, 'stage', instance, now);
    const activate = requestOf(200, 'activate', instance, now);
    return { faults: [], requests: [stage, activate, ...others(history)] };
  });
const andWhatFollows = replacedKeys(({ requests }) => requests);
const andEarlierSessions = replacedKeys(() =>
  EACH.map((instance) => requestOf(600 + 200 * instance, 'beat', instance)),
);

/** A session heartbeat, the end of the instance, and then the same heartbeat again through others. */
const repeatedBeats = (what: 'kill' | 'stop') =>
  having(({ instance }) => ({
    faults: EACH.map((each) => ({ at: 200, what, instance: each, lasts: 100 })),
    requests: [
      requestOf(100, 'beat', instance),
      ...EACH.map((each) => requestOf(1800 + 200 * each, 'repeatBeat', each)),
    ],
  }));

/** Some name the histories in which they show. */
type Defects = readonly (readonly [
  name: string,
  defect: Defect,
  finding?: RegExp,
  drawn?: fc.Arbitrary<History>,
])[];

const IN_INSTANCES: Defects = [
  [
    'a database that lets a former holder of the lease write',
    {
      database(database) {
        database.commit = (change) => database.store(change);
      },
    },
  ],
  [
    'a lease that nobody takes before the clock of the database says that it is over',
    {
      database(database) {
        const { lasts } = database;
        database.lasts = () => Math.max(lasts.call(database), database.remaining());
      },
    },
  ],
  [
    'a holder that is known by its number alone',
    {
      database(database) {
        database.isHeldBy = ({ term }) => database.lease.term === term;
      },
    },
    /acknowledged before it was asked/,
    lostHandOvers,
  ],
  [
    'a turn that does not remember what was seen',
    { remembersNothing: true },
    /which it has shown/,
    lostHandOvers,
  ],
  [
    'an answer after the end of the term, forwarded or not',
    { answersUnconfirmed: true },
    /acknowledged before it was asked/,
    pausedWriters,
  ],
  [
    'a request that is sent again although it may change something',
    { repeatsAnything: true },
    /was refused as \w+, and is stored/,
    interruptedJoins,
  ],
  ['a copy without its mark', { unmarkedCopies: true }, /acknowledged before/, lostDatabases],
  [
    'an unknown outcome that is called nothing done',
    {
      received: (answer) =>
        answer.ok || answer.refusal !== 'outcome_unknown'
          ? answer
          : { ...answer, refusal: 'authority_unavailable' },
    },
  ],
  [
    'a key that takes over although an instance lacks it',
    { countsNoInstances: true },
    /lacks .*, which takes over/,
    andWhatFollows,
  ],
  [
    'an active instance that signs with the key of its folder',
    { forgetsKeys: true },
    /shows the current key .* with documents that name/,
    andWhatFollows,
  ],
  [
    'an instance that shows its genesis block without asking',
    { asksNobodyForGenesis: true },
    /shows the current key .* with documents that name/,
    andWhatFollows,
  ],
];

const IN_SESSIONS: Defects = [
  ['an instance that does not check the MAC', UNCHECKED_MAC, /is valid at the edge/],
  [
    'an instance whose sessions outlast the key of the authority',
    KEPT_SECRET,
    /is valid at the edge|is not signed by/,
    andEarlierSessions,
  ],
  [
    'an instance that acknowledges heartbeats in sessions by itself',
    {
      call: (call) => (name, given) => {
        const isBeat = name === 'heartbeat' && (given as CallOf<'heartbeat'>).node.nonce === null;
        return isBeat ? { ok: true, json: '{}' } : call(name, given);
      },
    },
    /The active instance has not heard|counted twice|counted after/,
  ],
  [
    'an active instance that takes the crash of the one before for a stop',
    {
      store: (store) => ({
        ...store,
        load: async () => ({ ...(await store.load()), previousOwner: 'closed' }),
      }),
    },
    /counted twice|counted after a later one/,
    repeatedBeats('kill'),
  ],
  [
    'an active instance that does not store the instants',
    FORGOTTEN_INSTANTS,
    /counted twice|counted after a later one/,
    repeatedBeats('stop'),
  ],
];

export const ofDatabases: readonly Run[] = [
  ...runs(IN_INSTANCES, 400),
  holds('a handover that the database has lost is harmless', 40, ofInstances({}, lostHandOvers)),
];
export const ofTheirSessions: readonly Run[] = [
  ...runs(IN_SESSIONS, 200),
  ...(['kill', 'stop'] as const).map((end) =>
    holds(
      `a repeated heartbeat after a ${end} is harmless`,
      20,
      ofInstances({}, repeatedBeats(end)),
    ),
  ),
];

function runs(defects: Defects, histories: number): Run[] {
  return defects.map(([name, defect, finding = /./, drawn]) =>
    isFound(name, finding, histories, ofInstances(defect, drawn)),
  );
}
