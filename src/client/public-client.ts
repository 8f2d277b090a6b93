/** Unauthenticated requests: the documents of [core-4-15], `public-trust.ts` and `public-protocol.ts`. */
import { Health, SovereignDocument } from '../protocol/answers/documents.ts';
import { NodeCount } from '../protocol/answers/operators.ts';
import { AuthorityKeys } from '../protocol/records/authority-chain.ts';
import { Bulletin } from '../protocol/records/bulletin.ts';
import { GenesisBlock } from '../protocol/records/genesis.ts';
import { PolicyManifest } from '../protocol/records/policy-manifest.ts';
import { CertificateRevocationList } from '../protocol/records/revocation-list.ts';
import { RevocationListDelta } from '../protocol/records/revocation-list-delta.ts';
import { History, type HistoryStep, type SeriesName } from '../protocol/rows/history.ts';
import { AuthorityError } from './authority-error.ts';
import { publicCalls } from './calls.ts';
import { type Operations, operations } from './operations.ts';
import type { CallOptions, ServerOptions } from './options.ts';
import { type PublicProtocol, publicProtocol } from './public-protocol.ts';
import { type PublicTrust, publicTrust } from './public-trust.ts';

export interface HistoryQuery {
  /** At most 12. */
  readonly series: readonly SeriesName[];
  /** A timestamp; a day before `to` by default. */
  readonly from?: string | undefined;
  /** A timestamp; now by default. */
  readonly to?: string | undefined;
  /** One that fits the time by default. */
  readonly step?: HistoryStep | undefined;
}

export interface PublicClient extends Operations<'public'>, PublicTrust, PublicProtocol {
  genesis(call?: CallOptions): Promise<GenesisBlock>;
  sovereign(call?: CallOptions): Promise<SovereignDocument>;
  /**
   * The keys of the authority and the succession statements; `createNetworkTrust` verifies them. Null from an authority
   * that has no such document.
   */
  authorityKeys(call?: CallOptions): Promise<AuthorityKeys | null>;
  policy(call?: CallOptions): Promise<PolicyManifest>;
  crl(call?: CallOptions): Promise<CertificateRevocationList>;
  /** The changes of the list since a sequence; `410 delta_unavailable` if it is too old. */
  crlSince(sequence: number, call?: CallOptions): Promise<RevocationListDelta>;
  /** The versions of the newest documents, for clients that send no heartbeats. */
  bulletin(call?: CallOptions): Promise<Bulletin>;
  health(call?: CallOptions): Promise<Health>;
  /** What the service counted and measured over time. */
  history(query: HistoryQuery, call?: CallOptions): Promise<History>;
  nodeCount(call?: CallOptions): Promise<number>;
}

export function createPublicClient(server: ServerOptions): PublicClient {
  const calls = publicCalls(server);
  const { get } = calls;
  return {
    ...operations(calls, 'public'),
    ...publicTrust(calls),
    ...publicProtocol(calls),
    genesis: (call) => get(GenesisBlock, '/genesis', {}, call),
    sovereign: (call) => get(SovereignDocument, '/sovereign.json', {}, call),
    authorityKeys: (call) => get(AuthorityKeys, '/authority-keys', {}, call).catch(nullIfAbsent),
    policy: (call) => get(PolicyManifest, '/policy', {}, call),
    crl: (call) => get(CertificateRevocationList, '/crl', {}, call),
    crlSince: (sequence, call) => get(RevocationListDelta, '/crl', { since: sequence }, call),
    bulletin: (call) => get(Bulletin, '/bulletin', {}, call),
    health: (call) => get(Health, '/health', {}, call),
    history: ({ series, ...query }, call) =>
      get(History, '/history.json', { series: series.join(','), ...query }, call),
    nodeCount: async (call) => (await get(NodeCount, '/nodes', {}, call)).count,
  };
}

function nullIfAbsent(error: unknown): null {
  if (error instanceof AuthorityError && error.status === 404) return null;
  throw error;
}
