/** Successions of a network in a folder, as `mesh-na authority-key prepare` and `sign` create them. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { SHA256 } from '../../src/base/crypto/digest.ts';
import { signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import { readKeyFile } from '../../src/base/keys/key-file.ts';
import { systemRuntime } from '../../src/base/runtime.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { nextKey } from '../../src/cli/authority-key/next-key.ts';
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
import type { TestAuthority } from './authority.ts';
import { REAL_TIME } from './clock.ts';
import { get, operate, outcome, type Received } from './requests.ts';
import { until } from './until.ts';

export const DAY = 86_400_000;

export interface Draft {
  readonly kind?: 'planned' | 'compromise';
  /** Milliseconds from now. */
  readonly activatesIn?: number;
  readonly overlap?: number;
  /** The key that takes over; by default that of `keys/na.next.key`, which is created if it does not exist. */
  readonly to?: Signer;
  readonly from?: Signer;
  readonly root?: Signer;
  /** Changes the terms before anything is signed. */
  readonly altered?: Partial<SuccessionTerms>;
}

/** A key in the folder of a network, by the name of its file. */
export function keyIn(dataDir: string, name: string): Signer {
  return signerFromSeed(readKeyFile(join(dataDir, 'keys', name)));
}

/** A succession that follows what the authority serves. */
export async function succession(na: TestAuthority, draft: Draft = {}): Promise<SignedSuccession> {
  const genesis = (await get(na, '/genesis')).body as GenesisBlock;
  const document = (await get(na, '/authority-keys')).body;
  const now = na.clock.now();
  const staged = document.keys.some(({ state }: { state: string }) => state === 'next');
  const successions = document.successions.slice(0, staged ? -1 : undefined);
  return signedSuccession(na.dataDir, { genesis, successions, now }, draft);
}

export interface Ground {
  readonly genesis: GenesisBlock;
  readonly successions: readonly AuthoritySuccession[];
  readonly now: number;
}

export function signedSuccession(
  dataDir: string,
  { genesis, successions, now }: Ground,
  draft: Draft = {},
): SignedSuccession {
  const { kind = 'planned', activatesIn = 0, overlap = 14 * DAY, altered } = draft;
  const from = draft.from ?? keyIn(dataDir, 'na.key');
  const to =
    draft.to ??
    nextKey(join(dataDir, 'keys', 'na.key'), () => systemRuntime.randomBytes(32)).signer;
  const root = draft.root ?? keyIn(dataDir, 'root.key');
  const previous = successions.at(-1);
  const activates = now + activatesIn;
  const isCompromise = kind === 'compromise';
  const terms: SuccessionTerms = {
    succession_id: systemRuntime.uuid(),
    network_name: genesis.network_name,
    root_public_key: genesis.root_public_key,
    sequence: successions.length + 1,
    previous_digest:
      previous === undefined ? genesisDigest(genesis, SHA256) : successionDigest(previous, SHA256),
    kind,
    from_key: genesis.network_authority.public_key,
    to_key: to.publicKey,
    issued_at: formatInstant(now),
    activates_at: formatInstant(activates),
    overlap_until: formatInstant(isCompromise ? activates : activates + overlap),
    distrusted_from: isCompromise ? formatInstant(now - DAY) : null,
    ...altered,
  };
  const rollBackTerms = (statement: AuthoritySuccession): SuccessionTerms => ({
    ...terms,
    succession_id: systemRuntime.uuid(),
    sequence: terms.sequence + 1,
    previous_digest: successionDigest(statement, SHA256),
    kind: 'roll_back',
    from_key: terms.to_key,
    to_key: terms.from_key,
  });
  const valid_to = formatInstant(activates + 365 * DAY);
  const request = buildSuccessionRequest(
    {
      genesis,
      successions,
      terms,
      rollBackTerms: isCompromise ? null : rollBackTerms,
      valid_to,
    },
    { from, to },
    { sha256: SHA256 },
  );
  return signSuccession(request, root);
}

export function stage(na: TestAuthority, signed: object, operator = na.privileged) {
  return operate(na, '/admin/authority-keys', signed as never, { operator });
}

/** One step of a succession: `cancel`, `activate`, `roll-back` or `finish`. */
export function step(
  na: TestAuthority,
  name: string,
  body = {},
  operator = na.privileged,
): Promise<Received> {
  return operate(na, `/admin/authority-keys/${name}`, body, { operator });
}

/** An operator activates the staged key, whose time has come. */
export async function activate(na: TestAuthority): Promise<void> {
  assert.equal(outcome(await step(na, 'activate')), '200');
}

/** The service has activated the staged key by itself: with the real time, that takes up to a second. */
export async function activated(na: TestAuthority): Promise<void> {
  const isDone = async () => (await keyStates(na)).every(([, state]) => state !== 'next');
  if (na.clock === REAL_TIME) await until(isDone);
  else assert.ok(await isDone());
}

/** Each key with its state, oldest first. */
export async function keyStates(na: TestAuthority): Promise<[string, string][]> {
  const { body } = await get(na, '/authority-keys');
  return body.keys.map((key: { public_key: string; state: string }) => [key.public_key, key.state]);
}
