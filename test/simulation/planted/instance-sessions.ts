/** Defects in the heartbeat sessions of instances. */
import fc from 'fast-check';
import type { CallOf } from '../authority-calls.ts';
import { beat, type History, histories, INSTANCES, succession } from '../instances/histories.ts';
import { type DefectsOfInstances, inInstances, inWorkingInstances } from './planted.ts';
import { FORGOTTEN_INSTANTS, UNCHECKED_MAC } from './sessions.ts';

const instance = fc.nat(INSTANCES - 1);
const GENUINE = { node: 2, instant: 'now', flaw: 'none', again: 0 } as const;
const NO_SUCCESSION = { kind: 'planned', activatesIn: 0, overlap: 0, holders: [] } as const;
const UNUSED = { invite: 0, succession: NO_SUCCESSION, beat: GENUINE } as const;

/** A session heartbeat, the end of the instance, and then the same heartbeat again through others. */
const repeatedBeats = (what: 'kill' | 'stop') =>
  fc.record({ history: histories, instance }).map(({ history, instance }): History => {
    const beat = { ...UNUSED, at: 100, what: 'beat', instance } as const;
    const faults = [0, 1, 2].map((instance) => ({ at: 200, what, instance, lasts: 100 }));
    const again = [1800, 2000, 2200].map((at, instance) => {
      return { ...UNUSED, at, what: 'repeatBeat', instance } as const;
    });
    return { ...history, faults, requests: [beat, ...again] };
  });

/** A key takes over, and heartbeats arrive in sessions that began before. */
const replacedKeys = fc
  .record({ history: histories, instance, succession, beat })
  .map(({ history, instance, succession }): History => {
    const drawn = { ...UNUSED, instance, succession: { ...succession, activatesIn: 0 } };
    const stage = { ...drawn, at: 100, what: 'stage' } as const;
    const activate = { ...drawn, at: 200, what: 'activate' } as const;
    const beats = [600, 800, 1000].map((at, instance) => {
      return { ...UNUSED, at, what: 'beat', instance } as const;
    });
    return { ...history, faults: [], requests: [stage, activate, ...beats] };
  });

const DEFECTS: DefectsOfInstances = [
  ['an instance that does not check the MAC', UNCHECKED_MAC, /is valid at the edge/],
  [
    'an instance whose sessions outlast the key of the authority',
    {
      sessions(sessions) {
        let isSet = false;
        return {
          ...sessions,
          use(secret) {
            if (!isSet) sessions.use(secret);
            isSet ||= secret !== null;
          },
        };
      },
    },
    /is valid at the edge|is not signed by/,
    replacedKeys,
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

export const PLANTED_IN_SESSIONS_OF_INSTANCES = [
  ...inInstances(DEFECTS, 200),
  ...(['kill', 'stop'] as const).map((end) =>
    inWorkingInstances(`a repeated heartbeat after a ${end}`, 20, repeatedBeats(end)),
  ),
];
