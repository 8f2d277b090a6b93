/** Unauthenticated requests: the documents of [core-4-15], `public-trust.ts` and `public-protocol.ts`. */
import { Health, SovereignDocument } from '../protocol/answers/documents.ts';
import { NodeCount } from '../protocol/answers/operators.ts';
import { Bulletin } from '../protocol/records/bulletin.ts';
import { GenesisBlock } from '../protocol/records/genesis.ts';
import { PolicyManifest } from '../protocol/records/policy-manifest.ts';
import { CertificateRevocationList } from '../protocol/records/revocation-list.ts';
import { RevocationListDelta } from '../protocol/records/revocation-list-delta.ts';
import { publicCalls } from './calls.ts';
import type { CallOptions, ServerOptions } from './options.ts';
import { type PublicProtocol, publicProtocol } from './public-protocol.ts';
import { type PublicTrust, publicTrust } from './public-trust.ts';

export interface PublicClient extends PublicTrust, PublicProtocol {
  genesis(call?: CallOptions): Promise<GenesisBlock>;
  sovereign(call?: CallOptions): Promise<SovereignDocument>;
  policy(call?: CallOptions): Promise<PolicyManifest>;
  crl(call?: CallOptions): Promise<CertificateRevocationList>;
  /** The changes of the list since a sequence; `410 delta_unavailable` if it is too old. */
  crlSince(sequence: number, call?: CallOptions): Promise<RevocationListDelta>;
  /** The versions of the newest documents, for clients that send no heartbeats. */
  bulletin(call?: CallOptions): Promise<Bulletin>;
  health(call?: CallOptions): Promise<Health>;
  nodeCount(call?: CallOptions): Promise<number>;
}

export function createPublicClient(server: ServerOptions): PublicClient {
  const calls = publicCalls(server);
  const { get } = calls;
  return {
    ...publicTrust(calls),
    ...publicProtocol(calls),
    genesis: (call) => get(GenesisBlock, '/genesis', {}, call),
    sovereign: (call) => get(SovereignDocument, '/sovereign.json', {}, call),
    policy: (call) => get(PolicyManifest, '/policy', {}, call),
    crl: (call) => get(CertificateRevocationList, '/crl', {}, call),
    crlSince: (sequence, call) => get(RevocationListDelta, '/crl', { since: sequence }, call),
    bulletin: (call) => get(Bulletin, '/bulletin', {}, call),
    health: (call) => get(Health, '/health', {}, call),
    nodeCount: async (call) => (await get(NodeCount, '/nodes', {}, call)).count,
  };
}
