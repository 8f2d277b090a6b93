/** Successions as the holder of the root key signs them, valid or flawed. */
import { SHA256 } from '../../src/base/crypto/digest.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import type { AuthorityKeys } from '../../src/protocol/records/authority-chain.ts';
import {
  type AuthoritySuccession,
  type SuccessionTerms,
  successionDigest,
} from '../../src/protocol/records/authority-succession.ts';
import { type GenesisBlock, genesisDigest } from '../../src/protocol/records/genesis.ts';
import {
  buildSuccessionRequest,
  type SignedSuccession,
  signSuccession,
} from '../../src/protocol/records/succession-request.ts';
import type { Offer, OfferFlaw, Statement } from './model/authority-keys.ts';
import { AUTHORITY, FORGER, NEXT_KEYS, ROOT } from './requests.ts';

export interface Draft {
  readonly kind: 'planned' | 'compromise';
  readonly to: Signer;
  /** Milliseconds from now. */
  readonly activatesIn: number;
  readonly overlap: number;
  readonly flaw: OfferFlaw;
}

/** What is published when the succession is prepared. */
export interface Ground {
  readonly genesis: GenesisBlock | JsonObject | null;
  readonly document: AuthorityKeys | JsonObject | null;
  readonly now: number;
  uuid(): string;
}

export interface MadeSuccession {
  readonly signed: SignedSuccession;
  readonly offer: Offer;
}

const VALID_TO = '2200-01-01T00:00:00Z';
const HOUR = 3_600_000;

export function keyOfAuthority(publicKey: string): Signer {
  const keys = [AUTHORITY, ...NEXT_KEYS];
  return keys.find((key) => key.publicKey === publicKey) ?? FORGER;
}

export function madeSuccession(
  { now, uuid, ...published }: Ground,
  { kind, to, activatesIn, overlap, flaw: drawn }: Draft,
): MadeSuccession {
  const genesis = published.genesis as GenesisBlock;
  const document = published.document as unknown as AuthorityKeys;
  // A stolen key signs nothing.
  const flaw = kind === 'compromise' && drawn === 'from' ? 'none' : drawn;
  const isStaged = document.keys.some(({ state }) => state === 'next');
  const successions = document.successions.slice(0, isStaged ? -1 : undefined);
  const last = successions.at(-1);
  const from = keyOfAuthority(genesis.network_authority.public_key);
  const isStolen = kind === 'compromise';
  const activatesAt = now + activatesIn;
  const overlapUntil = activatesAt + (flaw === 'times' ? -HOUR : isStolen ? 0 : overlap);
  const distrustedFrom = isStolen ? activatesAt - HOUR : null;
  const digest =
    last === undefined ? genesisDigest(genesis, SHA256) : successionDigest(last, SHA256);
  const terms: SuccessionTerms = {
    succession_id: uuid(),
    network_name: flaw === 'network' ? 'elsewhere' : genesis.network_name,
    root_public_key: genesis.root_public_key,
    sequence: successions.length + (flaw === 'number' ? 2 : 1),
    previous_digest: flaw === 'link' ? '0'.repeat(64) : digest,
    kind,
    from_key: from.publicKey,
    to_key: to.publicKey,
    issued_at: formatInstant(Math.min(now, activatesAt)),
    activates_at: formatInstant(activatesAt),
    overlap_until: formatInstant(overlapUntil),
    distrusted_from: distrustedFrom === null ? null : formatInstant(distrustedFrom),
  };
  const wayBackId = uuid();
  const rollBackTerms = (statement: AuthoritySuccession): SuccessionTerms => ({
    ...terms,
    succession_id: wayBackId,
    sequence: terms.sequence + 1,
    previous_digest: successionDigest(statement, SHA256),
    kind: 'roll_back',
    from_key: terms.to_key,
    to_key: terms.from_key,
  });
  const request = buildSuccessionRequest(
    {
      genesis,
      successions: [...successions],
      terms,
      rollBackTerms: isStolen ? null : rollBackTerms,
      valid_to: VALID_TO,
    },
    {
      from: flaw === 'from' ? forging(from) : from,
      to: flaw === 'proof' ? forging(to) : to,
    },
    { sha256: SHA256 },
  );
  const signed = signSuccession(request, flaw === 'root' ? FORGER : ROOT);
  const statement: Statement = {
    id: terms.succession_id,
    sequence: terms.sequence,
    kind,
    from: terms.from_key,
    to: terms.to_key,
    activatesAt,
    overlapUntil,
    distrustedFrom,
  };
  const wayBack: Statement = {
    ...statement,
    id: wayBackId,
    sequence: statement.sequence + 1,
    kind: 'roll_back',
    from: statement.to,
    to: statement.from,
  };
  const hasWayBack = !isStolen && flaw !== 'no_way_back';
  return {
    signed: altered(signed, flaw),
    offer: {
      statement,
      rollBack: hasWayBack ? wayBack : null,
      previous: last?.succession_id ?? 'first',
      flaw,
    },
  };
}

function altered(signed: SignedSuccession, flaw: OfferFlaw): SignedSuccession {
  const { statement } = signed;
  const [, ...others] = statement.signatures;
  if (flaw === 'no_root') return { ...signed, statement: { ...statement, signatures: others } };
  return flaw === 'no_way_back' ? { ...signed, roll_back: null } : signed;
}

/** Has this public key, but signs with another key. */
function forging({ publicKey }: Signer): Signer {
  return { publicKey, sign: (text) => FORGER.sign(text) };
}
