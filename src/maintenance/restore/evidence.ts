/** What is known about a state from other sources: published lists, and the head kept in a second place [backup-6]. */
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { parseDatetime } from '../../base/timestamp.ts';
import {
  readRevocationFeed,
  type SovereignRevocationFeed,
} from '../../protocol/records/revocation-feed.ts';
import {
  type CertificateRevocationList,
  readCertificateRevocationList,
} from '../../protocol/records/revocation-list.ts';
import { isSignedByAny } from '../../protocol/records/signed-record.ts';
import { readStateHead, type StateHead } from '../../protocol/records/state-head.ts';
import type { NetworkIdentity } from '../../store/network-identity.ts';

/** The documents as read, still unchecked. */
export interface GivenEvidence {
  readonly crls: readonly unknown[];
  readonly feeds: readonly unknown[];
  readonly head: unknown;
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
  /** The highest sequences of the given lists, for the network's own feed; -1 if there is none. */
  readonly given: { readonly crl: number; readonly feed: number };
}

/** A document that the authority of the backup did not sign; the backup itself may be sound. */
export class ForeignEvidence extends Error {
  readonly option: 'crl' | 'feed' | 'head';
  /** The position of the document among several. */
  readonly index: number;

  constructor(option: ForeignEvidence['option'], index: number, what: string) {
    super(`The file passed with --${option} is not ${what} signed by the authority of the backup`);
    this.option = option;
    this.index = index;
  }
}

/** Throws a one-sentence error for anything that the authority of this network did not sign. */
export function readEvidence(
  read: GivenEvidence,
  network: NetworkIdentity,
  verify: VerifySignature,
): Evidence {
  const key = network.authority_public_key;
  const crls = read.crls.map((crl, index) => signedCrl(crl, index, key, verify));
  const feeds = read.feeds.map((feed, index) => signedFeed(feed, index, key, verify));
  const head = read.head === null ? null : signedHead(read.head, network, verify);
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
    given,
  };
}

function signedCrl(
  value: unknown,
  index: number,
  key: string,
  verify: VerifySignature,
): CertificateRevocationList {
  const crl = readCertificateRevocationList(value);
  if (crl !== null && isSignedByAny(crl, [key], verify)) return crl;
  throw new ForeignEvidence('crl', index, 'a revocation list');
}

function signedFeed(
  value: unknown,
  index: number,
  key: string,
  verify: VerifySignature,
): SovereignRevocationFeed {
  const feed = readRevocationFeed(value);
  if (feed !== null && isSignedByAny(feed, [key], verify)) return feed;
  throw new ForeignEvidence('feed', index, 'a revocation feed');
}

export function signedHead(
  value: unknown,
  { network_name, authority_public_key: key }: NetworkIdentity,
  verify: VerifySignature,
): StateHead {
  const head = readStateHead(value);
  const isOurs = head?.network_name === network_name;
  if (head !== null && isOurs && isSignedByAny(head, [key], verify)) return head;
  throw new ForeignEvidence('head', 0, 'a head');
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
