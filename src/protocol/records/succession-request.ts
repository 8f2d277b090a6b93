/** The two files by which the root key signs a succession offline [authority-keys-5]. */
import Type, { type Static } from 'typebox';
import type { Signer, VerifySignature } from '../../base/crypto/primitives.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { type ChainReason, type ChainTools, followChain } from './authority-chain.ts';
import {
  AuthoritySuccession,
  MAX_SUCCESSIONS,
  proveSuccession,
  type SuccessionTerms,
  signAsFromKey,
  signAsRoot,
} from './authority-succession.ts';
import { GenesisBlock, genesisDigest, isSignedByRoot } from './genesis.ts';
import { BoundedSignatures, Datetime, instantOf, nullable, recordReader } from './record.ts';
import { isSignedByAny, signatureOver, signedText, soleSigner } from './signed-record.ts';

/** What the root key is asked to sign, with all information needed, because it is signed offline. */
export const SuccessionRequest = Type.Object({
  format: Type.Literal('mesh-na-succession-request'),
  format_version: Type.Literal(1),
  genesis: GenesisBlock,
  successions: Type.Array(AuthoritySuccession, { default: [], maxItems: MAX_SUCCESSIONS }),
  statement: AuthoritySuccession,
  roll_back: nullable(AuthoritySuccession),
  valid_to: Datetime,
  signatures: BoundedSignatures,
});

const SignedChange = Type.Object({ statement: AuthoritySuccession, genesis: GenesisBlock });

export const SignedSuccession = Type.Object({
  format: Type.Literal('mesh-na-succession'),
  format_version: Type.Literal(1),
  statement: AuthoritySuccession,
  genesis: GenesisBlock,
  roll_back: nullable(SignedChange),
});

export type SuccessionRequest = Static<typeof SuccessionRequest>;
export type SignedSuccession = Static<typeof SignedSuccession>;

export const readSuccessionRequest = recordReader(SuccessionRequest);
export const readSignedSuccession = recordReader(SignedSuccession);

/**
 * Nodes accept a genesis block only if it begins later than theirs, so the block that returns to the previous key must
 * begin later too.
 */
const ROLL_BACK_DELAY_MS = 1000;

/**
 * The genesis block that takes effect with the statement, not yet signed. All other members stay, because nodes
 * identify the network by them.
 */
export function successionGenesis(
  { signatures: _, ...genesis }: GenesisBlock,
  { kind, to_key, activates_at }: AuthoritySuccession,
  valid_to: string,
): GenesisBlock {
  const begins = instantOf(activates_at) + ROLL_BACK_DELAY_MS;
  const valid_from = kind === 'roll_back' ? formatInstant(begins) : activates_at;
  const network_authority = { public_key: to_key, valid_from, valid_to };
  return { ...genesis, network_authority, signatures: [] };
}

export interface RequestDraft {
  readonly genesis: GenesisBlock;
  readonly successions: readonly AuthoritySuccession[];
  readonly terms: SuccessionTerms;
  /** Prepared and signed in advance, so that a roll-back does not need the root key. */
  readonly rollBackTerms: ((statement: AuthoritySuccession) => SuccessionTerms) | null;
  readonly valid_to: string;
}

export interface Successor {
  /** The key being replaced. */
  readonly from: Signer;
  readonly to: Signer;
}

/**
 * Everything except the root key's signatures. The next key signs the whole request, so that alterations are noticed.
 */
export function buildSuccessionRequest(
  draft: RequestDraft,
  { from, to }: Successor,
  { sha256 }: Pick<ChainTools, 'sha256'>,
): SuccessionRequest {
  const { genesis, successions, terms, rollBackTerms, valid_to } = draft;
  const proven = proveSuccession(terms, to, sha256);
  const statement = terms.kind === 'compromise' ? proven : signAsFromKey(proven, from);
  const roll_back =
    rollBackTerms === null
      ? null
      : signAsFromKey(proveSuccession(rollBackTerms(statement), from, sha256), to);
  const request: Omit<SuccessionRequest, 'signatures'> = {
    format: 'mesh-na-succession-request',
    format_version: 1,
    genesis,
    successions: [...successions],
    statement,
    roll_back,
    valid_to,
  };
  return { ...request, ...signatureOf(request, to) };
}

function signatureOf(record: JsonObject, signer: Signer): Pick<GenesisBlock, 'signatures'> {
  return { signatures: [signatureOver(signedText(record), soleSigner(signer))] };
}

/** Whether the request is exactly what the next key signed. */
export function isUnaltered(request: SuccessionRequest, verify: VerifySignature): boolean {
  return isSignedByAny(request, [request.statement.to_key], verify);
}

/** Signs a request with the root key; check the result with `successionProblem`. */
export function signSuccession(request: SuccessionRequest, root: Signer): SignedSuccession {
  const { statement, roll_back } = request;
  return {
    format: 'mesh-na-succession',
    format_version: 1,
    ...signedChange(statement, request, root),
    roll_back: roll_back === null ? null : signedChange(roll_back, request, root),
  };
}

function signedChange(
  statement: AuthoritySuccession,
  { genesis, valid_to }: SuccessionRequest,
  root: Signer,
): Static<typeof SignedChange> {
  const next = successionGenesis(genesis, statement, valid_to);
  return {
    statement: signAsRoot(statement, root),
    genesis: { ...next, ...signatureOf(next, root) },
  };
}

export interface SuccessionProblem {
  readonly reason: ChainReason | 'wrong_genesis' | 'wrong_roll_back_file';
  /** One sentence. */
  readonly message: string;
}

export interface SuccessionBasis {
  /** The current genesis block, signed by the root key. */
  readonly genesis: GenesisBlock;
  /** All previous statements; empty if the key is replaced for the first time. */
  readonly successions: readonly AuthoritySuccession[];
}

/** Why the authority with this genesis block cannot accept the succession; null if it can. */
export function successionProblem(
  { statement, genesis, roll_back }: SignedSuccession,
  basis: SuccessionBasis,
  now: number,
  tools: ChainTools,
): SuccessionProblem | null {
  if ((roll_back !== null) !== (statement.kind === 'planned')) {
    return {
      reason: 'wrong_roll_back_file',
      message:
        'A planned succession must include its roll-back, and any other must not; prepare and sign it again.',
    };
  }
  const changes = [{ statement, genesis }, ...(roll_back === null ? [] : [roll_back])];
  const isNext = changes.every((change) => isGenesisOf(change, basis.genesis, tools.verify));
  if (!isNext) {
    return {
      reason: 'wrong_genesis',
      message:
        'The new genesis block must be the current one with the next key, a later start, and the root key’s signature; prepare and sign the succession again.',
    };
  }
  return chainProblem(changes, basis, now, tools);
}

function isGenesisOf(
  { statement, genesis }: Static<typeof SignedChange>,
  present: GenesisBlock,
  verify: VerifySignature,
): boolean {
  const { valid_from, valid_to } = genesis.network_authority;
  const derived = successionGenesis(present, statement, valid_to);
  return (
    canonicalJson(derived, 'signatures') === canonicalJson(genesis, 'signatures') &&
    instantOf(valid_from) > instantOf(present.network_authority.valid_from) &&
    instantOf(valid_to) > instantOf(statement.overlap_until) &&
    isSignedByRoot(genesis, verify)
  );
}

function chainProblem(
  changes: readonly Static<typeof SignedChange>[],
  { genesis, successions }: SuccessionBasis,
  now: number,
  tools: ChainTools,
): SuccessionProblem | null {
  const { network_name, root_public_key, network_authority } = genesis;
  const chain = [...successions, ...changes.map(({ statement }) => statement)];
  const fromKey = chain[successions.length]?.from_key;
  const pin = {
    networkName: network_name,
    trusted: { rootKey: root_public_key },
    ...(successions.length === 0 && { genesisDigest: genesisDigest(genesis, tools.sha256) }),
  };
  const { refusal } = followChain(pin, { successions: chain }, now, tools);
  if (refusal !== null) return refusal;
  if (fromKey === network_authority.public_key) return null;
  return {
    reason: 'wrong_from_key',
    message: `The succession replaces the key ${fromKey}, but the genesis block names ${network_authority.public_key}; prepare and sign it again.`,
  };
}
