/** Defects in how the authority's key is replaced and followed. */
import type { JsonObject } from '../../../src/base/json/value.ts';
import type { AuthoritySigner, SigningTerm } from '../../../src/base/signer/authority-signer.ts';
import type { NetworkTrust } from '../../../src/client/followed-keys.ts';
import {
  type SignedRecord,
  signRecord,
  soleSigner,
} from '../../../src/protocol/records/signed-record.ts';
import type { MemoryStore } from '../memory-store.ts';
import type { Defect } from '../process.ts';
import { AUTHORITY, FIRST_KEY_ID, GENESIS, NEXT_KEYS } from '../requests.ts';
import { keyOfAuthority } from '../successions.ts';
import { type Defects, inAuthority } from './planted.ts';

const DEFECTS: Defects = [
  [
    'an authority that signs with the previous key after the overlap',
    {
      signer: usingOther((last, terms) => {
        const { previous = null } = terms.findLast((term) => term.previous !== null) ?? {};
        return { ...last, previous: last.previous ?? previous };
      }),
    },
    /is signed by|is not held/,
  ],
  [
    'an authority that forgets the second signature',
    { signer: usingOther((last) => ({ ...last, previous: null })) },
    /is signed by [^,]+ instead of .*,/,
  ],
  [
    'an authority that goes on signing with a stolen key',
    { signer: usingOther((last, terms) => (last.previous === null ? (terms[0] ?? last) : last)) },
    /the issuer of the revocation list|is signed by|is not held/,
  ],
  ['a list that keeps its number at an activation', { published: keepingNumber() }, /two contents/],
  [
    'a genesis block that names the first key forever',
    { published: (name, record) => (name === 'genesis' ? GENESIS : record) },
    /the key of the genesis block/,
  ],
  [
    'keys that are forgotten at a crash',
    { store: (store) => storing(store, ({ kind }) => kind !== 'authority-key') },
    /./,
  ],
  [
    'an authority that does nothing when it is due',
    { authority: (authority) => ({ ...authority, keepKeys: () => Promise.resolve() }) },
    /No change of keys came when due/,
  ],
  [
    'an edge that takes what a stolen key has signed',
    {
      edge: (keys) => ({
        ...keys,
        get audiences() {
          return keys.audiences;
        },
        get current() {
          return keys.current;
        },
        trusted: [AUTHORITY, ...NEXT_KEYS].map(({ publicKey }) => publicKey),
      }),
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

export const PLANTED_IN_KEYS = inAuthority(DEFECTS, { histories: 200, successions: 15 });

/** Signs with keys other than the configured ones. */
function usingOther(other: (last: SigningTerm, terms: readonly SigningTerm[]) => SigningTerm) {
  return (signer: AuthoritySigner): AuthoritySigner =>
    Object.create(signer, {
      use: {
        value(terms: readonly SigningTerm[]) {
          const last = terms.at(-1);
          signer.use(last === undefined ? terms : [...terms.slice(0, -1), other(last, terms)]);
        },
      },
    }) as AuthoritySigner;
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

function storing(store: MemoryStore, isKept: (write: { readonly kind: string }) => boolean) {
  return Object.assign(Object.create(store) as MemoryStore, {
    commit: (unit: Parameters<MemoryStore['commit']>[0]) =>
      store.commit({ ...unit, subjects: unit.subjects.filter(isKept) }),
  });
}

/** Starts over with each document. */
function forgetful(create: () => NetworkTrust): NetworkTrust {
  let trust = create();
  const later = (): NetworkTrust => trust;
  return {
    follow(received, genesis) {
      const fresh = create();
      const verdict = fresh.follow(received, genesis);
      if (verdict.refusal === null) trust = fresh;
      return verdict;
    },
    currentKey: () => later().currentKey(),
    keys: () => later().keys(),
    lastChange: () => later().lastChange(),
    digest: () => later().digest(),
    stored: () => later().stored(),
    signingNow: () => later().signingNow(),
    signingAt: (issuedAt) => later().signingAt(issuedAt),
  };
}
