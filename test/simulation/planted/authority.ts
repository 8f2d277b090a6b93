/** Defects around one authority: in the store, in how requests are judged, in its keys, and in heartbeat sessions. */
import type { JsonObject } from '../../../src/base/json/value.ts';
import type { AuthoritySigner, SigningTerm } from '../../../src/base/signer/authority-signer.ts';
import type { NetworkTrust } from '../../../src/client/followed-keys.ts';
import type { HeartbeatSessions } from '../../../src/edge/auth/session.ts';
import {
  type SignedRecord,
  signRecord,
  soleSigner,
} from '../../../src/protocol/records/signed-record.ts';
import type { Store, SubjectWrite, Unit } from '../../../src/store/store.ts';
import type { CallOf, OpenAuthority } from '../authority-calls.ts';
import { NONCES_HELD } from '../model/access.ts';
import type { Defect } from '../process.ts';
import { AUTHORITY, FIRST_KEY_ID, GENESIS, NEXT_KEYS } from '../requests.ts';
import { holds, isFound, type Run } from '../runs.ts';
import { ofAuthority } from '../simulate.ts';
import { keyOfAuthority } from '../successions.ts';

/** Some name the expected message, because otherwise a side effect might reveal the defect, but only by luck. */
type Defects = readonly (readonly [name: string, defect: Defect, finding?: RegExp])[];

const IN_STORES: Defects = [
  ['a store that acknowledges before it is durable', acknowledging(() => true)],
  [
    'a revocation list that is published before it is stored',
    acknowledging(({ subjects }) => subjects.some(({ kind }) => kind === 'crl')),
  ],
  [
    'a failed flush that nobody notices',
    storing((store) => ({ commit: (unit) => store.commit(unit).catch(() => 0) })),
  ],
  ['invites that are not consumed', losing('invite', 'consumed')],
  ['revocations that are forgotten', losing('certificate', 'revoked')],
  ['a sequence that is used again after a crash', losing('crl')],
  ['operator keys that come back', losing('operator-key')],
  ['nullifiers that are not kept', losing('capability-nullifier')],
  ['agents that come back', losing('agent-registration', 'removed', 'evicted')],
  ['nonces that are not kept', changingUnits((unit) => ({ ...unit, nonces: [] }))],
  [
    'nonces that are forgotten early',
    storing((store) => ({
      forgetNonces: (now, times) => store.forgetNonces(now + NONCES_HELD, times),
    })),
  ],
  [
    'liveness that is not kept',
    storing((store) => ({ touchMany: (_rows, times) => store.touchMany([], times) })),
    /nodes are active instead of/,
  ],
  ['audit entries that are lost', changingUnits((unit) => ({ ...unit, audit: [] }))],
  ['forged signatures that pass', passing('invalid_signature')],
  ['old requests that pass', passing('stale_timestamp')],
];

const IN_KEYS: Defects = [
  [
    'an authority that signs with the previous key after the overlap',
    usingOther((last, terms) => {
      const { previous = null } = terms.findLast((term) => term.previous !== null) ?? {};
      return { ...last, previous: last.previous ?? previous };
    }),
    /is signed by|is not held/,
  ],
  [
    'an authority that forgets the second signature',
    usingOther((last) => ({ ...last, previous: null })),
    /is signed by [^,]+ instead of .*,/,
  ],
  [
    'an authority that goes on signing with a stolen key',
    usingOther((last, terms) => (last.previous === null ? (terms[0] ?? last) : last)),
    /the issuer of the revocation list|is signed by|is not held/,
  ],
  ['a list that keeps its number at an activation', { published: keepingNumber() }, /two contents/],
  [
    'a genesis block that names the first key forever',
    { published: (name, record) => (name === 'genesis' ? GENESIS : record) },
    /the key of the genesis block/,
  ],
  ['keys that are forgotten at a crash', losing('authority-key')],
  [
    'an authority that does nothing when it is due',
    { authority: (authority) => ({ ...authority, keepKeys: () => Promise.resolve() }) },
    /No change of keys came when due/,
  ],
  [
    'an edge that takes what a stolen key has signed',
    {
      edge: (keys) => {
        const trusted = [AUTHORITY, ...NEXT_KEYS].map(({ publicKey }) => publicKey);
        return Object.create(keys, { trusted: { value: trusted } });
      },
    },
    /An edge takes a forged treaty for accepted/,
  ],
  [
    'a client that takes what a stolen key has signed',
    {
      client: (create) => {
        const trust = create();
        const all = () => trust.keys().map(({ public_key }) => public_key);
        return { ...trust, signingNow: all, signingAt: all };
      },
    },
    /takes a forged/,
  ],
  ['a client that goes back to an older chain', { client: forgetful }, /takes another chain/],
  [
    'a client that follows nothing',
    {
      client: (create) => ({
        ...create(),
        follow: () => ({ refusal: null, changes: [], next: null }),
      }),
    },
    /for the current key/,
  ],
];

export const UNCHECKED_MAC = judging((judge, given) => ({ ...judge(...given), verdict: 'valid' }));

/** The instants of session heartbeats are not kept. */
export const FORGOTTEN_INSTANTS = {
  store: (store: Store): Store => ({
    ...store,
    touchMany: (rows, times) =>
      store.touchMany(
        rows.map((row) => ({ ...row, newestSignedAt: 0 })),
        times,
      ),
  }),
};

/** Sessions outlast the key of the authority, because they keep the secret that came first. */
export const KEPT_SECRET = {
  sessions(sessions: HeartbeatSessions): HeartbeatSessions {
    let isSet = false;
    return {
      ...sessions,
      use(secret) {
        if (!isSet) sessions.use(secret);
        isSet ||= secret !== null;
      },
    };
  },
};

const IN_SESSIONS: Defects = [
  ['an edge that does not check the MAC', UNCHECKED_MAC, /valid at the edge instead of false/],
  [
    'an edge for which sessions do not end',
    judging((judge, [key, header, beat, ...given]) => {
      const now = Date.parse(header.split(' ')[2] ?? '');
      return judge(key, header, { ...beat, now }, ...given);
    }),
    /valid at the edge instead of false/,
  ],
  [
    'sessions that outlast the key of the authority',
    KEPT_SECRET,
    /is not signed by|valid at the edge instead of false/,
  ],
  [
    'an authority that takes every instant for a new one',
    { authority: hurrying },
    /ended otherwise than session_ended/,
  ],
  [
    'instants that are not kept',
    FORGOTTEN_INSTANTS,
    /in session .* ended otherwise than session_ended/,
  ],
];

export const ofStores: readonly Run[] = [
  ...runs(IN_STORES, 400, 0),
  holds('a wrapped store without a defect is harmless', 20, planted(losing('nothing'), 1)),
];
export const ofKeys = runs(IN_KEYS, 200, 15);
export const ofSessions = runs(IN_SESSIONS, 200, 3);

function runs(defects: Defects, histories: number, successions: number): Run[] {
  return defects.map(([name, defect, finding = /./]) =>
    isFound(name, finding, histories, planted(defect, successions)),
  );
}

function planted(defect: Defect, successions: number) {
  return ofAuthority({ clocks: 'right', successions }, defect);
}

/** The store with some of its methods replaced. */
function storing(methods: (store: Store) => Partial<Store>): Defect {
  return { store: (store) => Object.assign(Object.create(store) as Store, methods(store)) };
}

function changingUnits(changed: (unit: Unit) => Unit): Defect {
  return storing((store) => ({ commit: (unit) => store.commit(changed(unit)) }));
}

function acknowledging(isEarly: (unit: Unit) => boolean): Defect {
  return storing((store) => ({
    commit(unit) {
      const stored = store.commit(unit);
      if (!isEarly(unit)) return stored;
      void stored.catch(() => undefined);
      return Promise.resolve(0);
    },
  }));
}

/** Loses writes of this kind, or only those with these values, on the way to disk. */
function losing(lostKind: string, ...values: readonly string[]): Defect {
  const isLost = ({ kind, snapshot }: SubjectWrite) =>
    kind === lostKind && (values.length === 0 || values.includes(snapshot.value));
  return storing((store) => {
    const missing = new Set<string>();
    const commit = (unit: Unit) => {
      const kept = unit.subjects.filter((write) => {
        const key = `${write.kind} ${write.id}`;
        // Versions that follow a lost one are lost, too.
        if (isLost(write)) missing.add(key);
        return !missing.has(key);
      });
      return store.commit({ ...unit, subjects: kept });
    };
    return { commit };
  });
}

/** Every request with this verdict counts as proven. */
function passing(verdict: string): Defect {
  const lenient = (given: unknown): unknown =>
    typeof given === 'object' && given !== null && 'verdict' in given && given.verdict === verdict
      ? { ...given, verdict: 'valid' }
      : given;
  return {
    authority: (authority) => ({
      ...authority,
      call(name, given) {
        if (given === null || typeof given !== 'object') return authority.call(name, given);
        const changed = Object.entries(given).map(([key, one]) => [key, lenient(one)]);
        return authority.call(name, Object.fromEntries(changed) as typeof given);
      },
    }),
  };
}

/** Signs with keys other than the configured ones. */
function usingOther(
  other: (last: SigningTerm, terms: readonly SigningTerm[]) => SigningTerm,
): Defect {
  return {
    signer: (signer) =>
      Object.create(signer, {
        use: {
          value(terms: readonly SigningTerm[]) {
            const last = terms.at(-1);
            signer.use(last === undefined ? terms : [...terms.slice(0, -1), other(last, terms)]);
          },
        },
      }) as AuthoritySigner,
  };
}

/** The first list signed by a new key reuses the sequence number of the last one. */
function keepingNumber(): NonNullable<Defect['published']> {
  let before: JsonObject | null = null;
  return (name, record) => {
    if (name !== 'crl') return record;
    const isOther = before !== null && before.issuer !== record.issuer;
    before = record;
    if (!isOther) return record;
    const { signatures, ...list } = record as SignedRecord;
    const [current, previous] = signatures.map(({ key_id }) => ({
      ...soleSigner(key_id === FIRST_KEY_ID ? AUTHORITY : keyOfAuthority(key_id)),
      keyId: key_id,
    }));
    if (current === undefined) return record;
    const sequence = Number(record.sequence) - 1;
    return signRecord({ ...list, sequence }, { ...current, previous: previous ?? null });
  };
}

/** Starts over with each document. */
function forgetful(create: () => NetworkTrust): NetworkTrust {
  let trust = create();
  return {
    follow(received, genesis) {
      const fresh = create();
      const verdict = fresh.follow(received, genesis);
      if (verdict.refusal === null) trust = fresh;
      return verdict;
    },
    currentKey: () => trust.currentKey(),
    keys: () => trust.keys(),
    lastChange: () => trust.lastChange(),
    digest: () => trust.digest(),
    stored: () => trust.stored(),
    signingNow: () => trust.signingNow(),
    signingAt: (issuedAt) => trust.signingAt(issuedAt),
  };
}

type Judge = HeartbeatSessions['judge'];

function judging(other: (judge: Judge, given: Parameters<Judge>) => ReturnType<Judge>) {
  const sessions = (sessions: HeartbeatSessions): HeartbeatSessions => ({
    ...sessions,
    judge: (...given) => other(sessions.judge, given),
  });
  return { sessions };
}

/** Gives each session heartbeat a later instant than the one before. */
function hurrying(authority: OpenAuthority): OpenAuthority {
  let beats = 0;
  return {
    ...authority,
    call(name, given) {
      if (name !== 'heartbeat') return authority.call(name, given);
      const { node, ...further } = given as CallOf<'heartbeat'>;
      if (node.nonce !== null) return authority.call(name, given);
      beats += 1;
      const later = { ...further, node: { ...node, signedAt: node.signedAt + beats } };
      return authority.call(name, later as typeof given);
    },
  };
}
