/** What anyone may ask: the documents of [core-4-15], all of `public-trust.ts` and `public-protocol.ts`. */
import type { GenesisBlock } from '../records/genesis.ts';
import type { PolicyManifest } from '../records/policy-manifest.ts';
import type { CertificateRevocationList } from '../records/revocation-list.ts';
import { send } from './http.ts';
import type { ServerOptions } from './options.ts';
import { type PublicProtocol, publicProtocol } from './public-protocol.ts';
import { type PublicTrust, publicTrust } from './public-trust.ts';

export interface SovereignDocument {
  readonly sovereign_id: string;
  readonly network_name: string;
  readonly network_version: string;
  readonly endpoint: string;
  readonly network_authority: GenesisBlock['network_authority'];
  readonly root_public_key: string;
  readonly supported_surfaces: { readonly [surface: string]: string };
}

export interface Health {
  readonly status: string;
  readonly network: string;
  readonly version: string;
}

export interface PublicClient extends PublicTrust, PublicProtocol {
  genesis(): Promise<GenesisBlock>;
  sovereign(): Promise<SovereignDocument>;
  policy(): Promise<PolicyManifest>;
  crl(): Promise<CertificateRevocationList>;
  health(): Promise<Health>;
  nodeCount(): Promise<number>;
}

export function createPublicClient(server: ServerOptions): PublicClient {
  function get<T>(path: string): Promise<T> {
    return send<T>(server, { method: 'GET', path });
  }
  return {
    ...publicTrust(server),
    ...publicProtocol(server),
    genesis: () => get<GenesisBlock>('/genesis'),
    sovereign: () => get<SovereignDocument>('/sovereign.json'),
    policy: () => get<PolicyManifest>('/policy'),
    crl: () => get<CertificateRevocationList>('/crl'),
    health: () => get<Health>('/health'),
    nodeCount: async () => (await get<{ count: number }>('/nodes')).count,
  };
}
