/** Unauthenticated requests: those of the API, the documents of [core-4-15], and `public-trust.ts`. */
import type { JsonObject } from '../base/json/value.ts';
import { Health, SovereignDocument } from '../protocol/answers/documents.ts';
import { NodeCount } from '../protocol/answers/operators.ts';
import { AuthorityKeys } from '../protocol/records/authority-chain.ts';
import { Bulletin } from '../protocol/records/bulletin.ts';
import { CapabilityMembershipProof } from '../protocol/records/capability-disclosure.ts';
import { DataLicensePolicy } from '../protocol/records/data-usage.ts';
import { GenesisBlock } from '../protocol/records/genesis.ts';
import { PolicyManifest } from '../protocol/records/policy-manifest.ts';
import { CertificateRevocationList } from '../protocol/records/revocation-list.ts';
import { RevocationListDelta } from '../protocol/records/revocation-list-delta.ts';
import { History, type HistoryStep, type SeriesName } from '../protocol/rows/history.ts';
import { AuthorityError } from './authority-error.ts';
import { publicCalls } from './calls.ts';
import { type Operations, operations } from './operations.ts';
import type { CallOptions, ServerOptions } from './options.ts';
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

export type ProveRequest = {
  readonly capability: string;
  readonly capabilities: readonly string[];
  readonly commitment: JsonObject;
  readonly prover_sovereign_id: string;
};

export interface PublicClient extends PublicTrust, Operations<'public'> {
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
  /** `capabilities` is the complete list that the commitment covers. */
  proveMembership(request: ProveRequest, call?: CallOptions): Promise<CapabilityMembershipProof>;
  /** The policy in force; null when there is none. */
  licensePolicy(call?: CallOptions): Promise<DataLicensePolicy | null>;
}

export function createPublicClient(server: ServerOptions): PublicClient {
  const calls = publicCalls(server);
  const { get, post } = calls;
  return {
    ...operations(calls, 'public'),
    ...publicTrust(calls),
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
    proveMembership: (request, call) =>
      post(CapabilityMembershipProof, '/disclosure/prove', request, call),
    licensePolicy: (call) =>
      get(DataLicensePolicy, '/data-usage/policy', {}, call).catch(nullWithoutPolicy),
  };
}

function nullIfAbsent(error: unknown): null {
  if (error instanceof AuthorityError && error.status === 404) return null;
  throw error;
}

function nullWithoutPolicy(error: unknown): null {
  if (error instanceof AuthorityError && error.code === 'no_policy') return null;
  throw error;
}
