/** Defects in instances that share a database. */
import fc from 'fast-check';
import {
  beat,
  type History,
  histories,
  INSTANCES,
  LONGEST_FAULT_MS,
  succession,
} from '../instances/histories.ts';
import { type DefectsOfInstances, inInstances, inWorkingInstances } from './planted.ts';

/** An instance hands over, and soon afterward the database loses that change. */
const lostHandOvers = fc
  .record({
    history: histories,
    instance: fc.nat(INSTANCES - 1),
    later: fc.integer({ min: 20, max: 300 }),
    lasts: fc.nat(5),
  })
  .map(({ history, instance, later, lasts }): History => {
    const stop = { at: 200, what: 'stop', instance, lasts } as const;
    const loss = { at: 200 + later, what: 'database loses its end', instance, lasts } as const;
    return { ...history, faults: [stop, loss] };
  });

/**
 * A machine is paused while another instance takes over. After resuming, an instance that was active believes until its next
 * renewal that it still has the lease. Other histories rarely produce this: some runs need more than 500.
 */
const pausedWriters = fc
  .record({
    history: histories,
    instance: fc.nat(INSTANCES - 1),
    lasts: fc.integer({ min: 2000, max: LONGEST_FAULT_MS }),
  })
  .map(({ history, instance, lasts }): History => {
    const pause = { at: 0, what: 'pause', instance, lasts } as const;
    return { ...history, faults: [pause] };
  });

/**
 * An instance reads, is cut off from the database and from the others, and is asked again after others have revoked a
 * certificate.
 */
const lostDatabases = fc
  .record({ history: histories, instance: fc.nat(INSTANCES - 1) })
  .map(({ history, instance }): History => {
    const cut = { instance, at: 200, lasts: LONGEST_FAULT_MS } as const;
    const faults = (['cut from the database', 'hears nobody'] as const).map((what) => ({
      ...cut,
      what,
    }));
    const [drawn] = history.requests;
    if (drawn === undefined) return { ...history, faults };
    const others = Array.from({ length: INSTANCES }, (_, at) => at).filter((at) => at !== instance);
    const requests = [
      { ...drawn, at: 100, what: 'read', instance } as const,
      ...others.map((other) => ({ ...drawn, at: 1800, what: 'revoke', instance: other }) as const),
      { ...drawn, at: 2400, what: 'read', instance } as const,
    ];
    return { ...history, faults, requests };
  });

/** An instance dies just after others have forwarded to it what may be done only once. */
const interruptedJoins = fc
  .record({
    history: histories,
    instance: fc.nat(INSTANCES - 1),
    later: fc.integer({ min: 5, max: 40 }),
    succession,
    beat,
  })
  .map(({ history, instance, later, ...drawn }): History => {
    const death = { at: 200 + later, what: 'kill', instance, lasts: LONGEST_FAULT_MS } as const;
    const others = Array.from({ length: INSTANCES }, (_, at) => at).filter((at) => at !== instance);
    const joins = [0, 1, 2, 3].map((invite) => {
      const by = others[invite % others.length] as number;
      return { ...drawn, at: 200, what: 'join', instance: by, invite } as const;
    });
    return { ...history, faults: [death], requests: joins };
  });

/** A key is replaced early, with no faults that could hide the consequences. */
const replacedKeys = fc
  .record({ history: histories, instance: fc.nat(INSTANCES - 1), succession, beat })
  .map(({ history, instance, succession, beat }): History => {
    const drawn = { instance, invite: 0, succession: { ...succession, activatesIn: 0 }, beat };
    const stage = { ...drawn, at: 100, what: 'stage' } as const;
    const activate = { ...drawn, at: 200, what: 'activate' } as const;
    return { ...history, faults: [], requests: [stage, activate, ...history.requests] };
  });

const DEFECTS: DefectsOfInstances = [
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
    replacedKeys,
  ],
  [
    'an active instance that signs with the key of its folder',
    { forgetsKeys: true },
    /shows the current key .* with documents that name/,
    replacedKeys,
  ],
  [
    'an instance that shows its genesis block without asking',
    { asksNobodyForGenesis: true },
    /shows the current key .* with documents that name/,
    replacedKeys,
  ],
];

export const PLANTED_IN_INSTANCES = [
  ...inInstances(DEFECTS, 400),
  inWorkingInstances('a handover that the database has lost', 40, lostHandOvers),
];
