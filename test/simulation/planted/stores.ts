/** Defects in the store, and in how requests are judged. */
import type { Store, SubjectWrite, Unit } from '../../../src/store/store.ts';
import type { OpenAuthority } from '../authority-calls.ts';
import type { MemoryStore } from '../memory-store.ts';
import { NONCES_HELD } from '../model/access.ts';
import { simulate } from '../simulate.ts';
import { type Defects, inAuthority, type Planted } from './planted.ts';

const DEFECTS: Defects = [
  [
    'a store that acknowledges before it is durable',
    {
      store: (store) =>
        instead(store, {
          commit(unit) {
            void store.commit(unit).catch(() => undefined);
            return Promise.resolve(0);
          },
        }),
    },
  ],
  [
    'a revocation list that is published before it is stored',
    {
      store: (store) =>
        instead(store, {
          commit(unit) {
            const stored = store.commit(unit);
            if (!unit.subjects.some(({ kind }) => kind === 'crl')) return stored;
            void stored.catch(() => undefined);
            return Promise.resolve(0);
          },
        }),
    },
  ],
  [
    'a failed flush that nobody notices',
    { store: (store) => instead(store, { commit: unnoticed(store) }) },
  ],
  [
    'invites that are not consumed',
    { store: without(({ kind, snapshot }) => kind === 'invite' && snapshot.value === 'consumed') },
  ],
  [
    'revocations that are forgotten',
    {
      store: without(
        ({ kind, snapshot }) => kind === 'certificate' && snapshot.value === 'revoked',
      ),
    },
  ],
  ['a sequence that is used again after a crash', { store: without(({ kind }) => kind === 'crl') }],
  ['operator keys that come back', { store: without(({ kind }) => kind === 'operator-key') }],
  [
    'nullifiers that are not kept',
    { store: without(({ kind }) => kind === 'capability-nullifier') },
  ],
  [
    'agents that come back',
    {
      store: without(
        ({ kind, snapshot }) => kind === 'agent-registration' && snapshot.value !== 'registered',
      ),
    },
  ],
  [
    'nonces that are not kept',
    {
      store: (store) => instead(store, { commit: (unit) => store.commit({ ...unit, nonces: [] }) }),
    },
  ],
  [
    'nonces that are forgotten early',
    {
      store: (store) =>
        instead(store, {
          forgetNonces: (now, times) => store.forgetNonces(now + NONCES_HELD, times),
        }),
    },
  ],
  [
    'liveness that is not kept',
    {
      store: (store) => instead(store, { touchMany: (_rows, times) => store.touchMany([], times) }),
    },
    /nodes are active instead of/,
  ],
  [
    'audit entries that are lost',
    {
      store: (store) => instead(store, { commit: (unit) => store.commit({ ...unit, audit: [] }) }),
    },
  ],
  [
    'forged signatures that pass',
    { authority: (authority) => judging(authority, 'invalid_signature') },
  ],
  ['old requests that pass', { authority: (authority) => judging(authority, 'stale_timestamp') }],
];

export const PLANTED_IN_STORES: readonly Planted[] = [
  ...inAuthority(DEFECTS, { histories: 400, successions: 0 }),
  {
    name: 'a wrapped store without a defect',
    finding: null,
    find: () =>
      simulate({ histories: 20, seed: 1, clocks: 'right' }, { store: without(() => false) }),
  },
];

/** The store with some of its methods replaced. */
function instead(store: MemoryStore, methods: Partial<Store>): Store {
  return Object.assign(Object.create(store) as Store, methods);
}

/** Loses some of a unit's writes on the way to disk. */
function without(lost: (write: SubjectWrite) => boolean): (store: MemoryStore) => Store {
  return (store) => {
    const missing = new Set<string>();
    const commit = (unit: Unit) => {
      const kept = unit.subjects.filter((write) => {
        const key = `${write.kind} ${write.id}`;
        // Versions that follow a lost one are lost, too.
        if (lost(write) || missing.has(key)) missing.add(key);
        return !missing.has(key);
      });
      return store.commit({ ...unit, subjects: kept });
    };
    return instead(store, { commit });
  };
}

function unnoticed(store: MemoryStore): Store['commit'] {
  return (unit) => store.commit(unit).catch(() => 0);
}

/** Every request with this verdict counts as proven. */
function judging(authority: OpenAuthority, verdict: string): OpenAuthority {
  const lenient = (given: unknown): unknown =>
    typeof given === 'object' && given !== null && 'verdict' in given && given.verdict === verdict
      ? { ...given, verdict: 'valid' }
      : given;
  return {
    ...authority,
    call: (name, given) => {
      const changed: object | null =
        given !== null && typeof given === 'object'
          ? Object.fromEntries(Object.entries(given).map(([key, one]) => [key, lenient(one)]))
          : null;
      return authority.call(name, (changed ?? given) as typeof given);
    },
  };
}
