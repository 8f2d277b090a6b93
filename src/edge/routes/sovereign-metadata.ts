import type { JsonObject } from '../../base/json/value.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';

/** Public metadata of the sovereign [service-sovereign-metadata], [core-5-13]: no key but public ones. */
export function sovereignMetadata(genesis: GenesisBlock, baseUrl: string): JsonObject {
  return {
    sovereign_id: genesis.network_name,
    network_name: genesis.network_name,
    network_version: genesis.network_version,
    endpoint: baseUrl,
    network_authority: genesis.network_authority,
    root_public_key: genesis.root_public_key,
    supported_surfaces: {
      genesis: `${baseUrl}/genesis`,
      recognition_treaties: `${baseUrl}/recognition-treaties`,
      sovereign_revocation_feed: `${baseUrl}/sovereign-revocation-feed`,
      recognition_graph: `${baseUrl}/recognition-graph`,
      connectome: `${baseUrl}/connectome.json`,
      atlas: `${baseUrl}/atlas.json`,
      swagger: `${baseUrl}/swagger.json`,
      api_reference: `${baseUrl}/api-reference`,
      cli_reference: `${baseUrl}/cli-reference`,
    },
    policy_manifest: genesis.policy_manifest,
    bootstrap_anchor_count: genesis.bootstrap_anchors.length,
  };
}
