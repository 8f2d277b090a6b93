/**
 * What is known about a state from other sources: published lists, the chain of the authority's keys, and the head
 * kept in a second place [backup-6].
 */
import { SHA256 } from '../../base/crypto/digest.ts';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { parseDatetime } from '../../base/timestamp.ts';
import {
  type FollowedChain,
  followChain,
  receivedChain,
} from '../../protocol/records/authority-chain.ts';
import {
  type GenesisBlock,
  isSignedByRoot,
  readGenesisBlock,
} from '../../protocol/records/genesis.ts';
import { instantOf } from '../../protocol/records/record.ts';
import {
  readRevocationFeed,
  type SovereignRevocationFeed,
} from '../../protocol/records/revocation-feed.ts';
import {
  type CertificateRevocationList,
  readCertificateRevocationList,
} from '../../protocol/records/revocation-list.ts';
import { isSignedByAnyOfMany, type SignedRecord } from '../../protocol/records/signed-record.ts';
import { readStateHead, type StateHead } from '../../protocol/records/state-head.ts';
import { genesisOf, type Manifest } from '../../store/stream/manifest.ts';

/** The documents as read, still unchecked. */
export interface GivenEvidence {
  readonly crls: readonly unknown[];
  readonly feeds: readonly unknown[];
  readonly head: unknown;
  /** The document with the chain of keys, if there is one. */
  readonly authorityKeys?: unknown;
  /** The genesis block in force, if it is not the one in the backup. */
  readonly genesis?: unknown;
}

export interface RevokedCertificate {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly revokedAt: number;
  readonly reason: string;
}

export interface RevokedAttestation {
  readonly id: string;
  readonly issuer: string;
  readonly reason: string;
}

export interface Evidence {
  readonly certificates: ReadonlyMap<string, RevokedCertificate>;
  readonly attestations: ReadonlyMap<string, RevokedAttestation>;
  /** The highest sequence seen; -1 if there is no list. */
  readonly crlSequence: number;
  /** By issuer. */
  readonly feedSequences: ReadonlyMap<string, number>;
  readonly head: StateHead | null;
  /** Null if no chain was given. */
  readonly chain: FollowedChain | null;
  /** The genesis block in force. */
  readonly genesis: GenesisBlock;
  /** The highest sequences of the given lists, for the network's own feed; -1 if there is none. */
  readonly given: { readonly crl: number; readonly feed: number };
}

/** A document that is not of the authority of the backup; the backup itself may be sound. */
export class ForeignEvidence extends Error {
  readonly option: 'crl' | 'feed' | 'head' | 'authorityKeys' | 'genesis';
  /** The position of the document among several. */
  readonly index: number;

  constructor(option: ForeignEvidence['option'], index: number, problem: string) {
    super(`The file passed with ${FLAGS[option]} ${problem}`);
    this.option = option;
    this.index = index;
  }
}

const FLAGS = {
  crl: '--crl',
  feed: '--feed',
  head: '--head',
  authorityKeys: '--authority-keys',
  genesis: '--genesis',
} as const;

/** Throws a one-sentence error for anything that the authority of this network did not sign. */
export function readEvidence(
  read: GivenEvidence,
  manifest: Manifest,
  now: number,
  verify: VerifySignature,
): Evidence {
  const { network } = manifest;
  const chain =
    read.authorityKeys === undefined ? null : chainIn(read.authorityKeys, network, now, verify);
  const genesis =
    read.genesis === undefined ? genesisOf(manifest) : genesisIn(read.genesis, network, verify);
  const isSigned = signedBy(keysOf(network, genesis, chain), verify);
  const crls = read.crls.map((crl, index) => signedCrl(crl, index, isSigned));
  const feeds = read.feeds.map((feed, index) => signedFeed(feed, index, isSigned));
  const head = read.head === null ? null : signedHead(read.head, network.network_name, isSigned);
  const feedSequences = highestOf(feeds);
  const given = {
    crl: Math.max(-1, ...crls.map(({ sequence }) => Number(sequence))),
    feed: feedSequences.get(network.network_name) ?? -1,
  };
  if (head !== null) raise(feedSequences, network.network_name, head.feed_sequence);
  return {
    certificates: new Map(crls.flatMap(certificatesOf)),
    attestations: new Map(feeds.flatMap(attestationsOf)),
    crlSequence: Math.max(head?.crl_sequence ?? -1, given.crl),
    feedSequences,
    head,
    chain,
    genesis,
    given,
  };
}

function chainIn(
  document: unknown,
  { network_name: networkName, root_public_key: rootKey }: Manifest['network'],
  now: number,
  verify: VerifySignature,
): FollowedChain {
  const received = receivedChain(document);
  if (received === null) {
    throw new ForeignEvidence('authorityKeys', 0, 'has no list of successions');
  }
  const tools = { verify, sha256: SHA256 };
  const chain = followChain({ networkName, trusted: { rootKey } }, received, now, tools);
  if (chain.refusal === null) return chain;
  throw new ForeignEvidence('authorityKeys', 0, `cannot be used: ${chain.refusal.message}`);
}

function genesisIn(
  value: unknown,
  { network_name, root_public_key }: Manifest['network'],
  verify: VerifySignature,
): GenesisBlock {
  const genesis = readGenesisBlock(value);
  const isOurs =
    genesis?.network_name === network_name && genesis.root_public_key === root_public_key;
  if (genesis !== null && isOurs && isSignedByRoot(genesis, verify)) return genesis;
  throw new ForeignEvidence('genesis', 0, 'is not a genesis block of the network of the backup');
}

/** The keys of the authority, each with the instant from which on its signatures are void; Infinity if there is none. */
type KnownKeys = ReadonlyMap<string, number>;

function keysOf(
  network: Manifest['network'],
  genesis: GenesisBlock,
  chain: FollowedChain | null,
): KnownKeys {
  const named = [network.authority_public_key, genesis.network_authority.public_key];
  const keys = new Map(named.map((key) => [key, Infinity]));
  for (const { public_key, state, signs_until } of chain?.keys ?? []) {
    const isStolen = state === 'distrusted' && signs_until !== null;
    keys.set(public_key, isStolen ? instantOf(signs_until) : Infinity);
  }
  return keys;
}

/** Whether one of the keys signed the record of this time. */
type IsSigned = (record: SignedRecord, signedAt: string) => boolean;

function signedBy(keys: KnownKeys, verify: VerifySignature): IsSigned {
  return (record, signedAt) => {
    const at = instantOf(signedAt);
    const usable = [...keys].filter(([, voidFrom]) => at < voidFrom).map(([key]) => key);
    return isSignedByAnyOfMany(record, usable, verify);
  };
}

function notSigned(option: 'crl' | 'feed' | 'head', index: number, what: string): ForeignEvidence {
  return new ForeignEvidence(option, index, `is not ${what} signed by the authority of the backup`);
}

function signedCrl(value: unknown, index: number, isSigned: IsSigned): CertificateRevocationList {
  const crl = readCertificateRevocationList(value);
  if (crl !== null && isSigned(crl, crl.issued_at)) return crl;
  throw notSigned('crl', index, 'a revocation list');
}

function signedFeed(value: unknown, index: number, isSigned: IsSigned): SovereignRevocationFeed {
  const feed = readRevocationFeed(value);
  if (feed !== null && isSigned(feed, feed.issued_at)) return feed;
  throw notSigned('feed', index, 'a revocation feed');
}

function signedHead(value: unknown, networkName: string, isSigned: IsSigned): StateHead {
  const head = readStateHead(value);
  const isOurs = head?.network_name === networkName;
  if (head !== null && isOurs && isSigned(head, head.written_at)) return head;
  throw notSigned('head', 0, 'a head');
}

function certificatesOf(crl: CertificateRevocationList): [string, RevokedCertificate][] {
  return crl.revoked_certificates.map(({ certificate_id: id, revoked_at, reason }) => [
    id,
    { id, reason, revokedAt: parseDatetime(revoked_at)?.instant ?? 0 },
  ]);
}

function attestationsOf(feed: SovereignRevocationFeed): [string, RevokedAttestation][] {
  const { issuer_sovereign_id: issuer, revocation_reasons: reasons } = feed;
  return feed.revoked_attestation_ids.map((id) => [
    id,
    { id, issuer, reason: reasons[id] ?? 'unspecified' },
  ]);
}

function highestOf(feeds: readonly SovereignRevocationFeed[]): Map<string, number> {
  const sequences = new Map<string, number>();
  for (const { issuer_sovereign_id: issuer, sequence } of feeds) {
    raise(sequences, issuer, Number(sequence));
  }
  return sequences;
}

function raise(sequences: Map<string, number>, issuer: string, sequence: number): void {
  sequences.set(issuer, Math.max(sequences.get(issuer) ?? -1, sequence));
}
