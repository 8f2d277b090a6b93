/**
 * The settings that must be the same for all instances on one database, by the names operators know. Otherwise the
 * answer to a request would depend on which instance is currently active.
 */
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { JsonValue } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import type { Config } from './load.ts';

/** Short digests by name; they reveal nothing about a setting. */
export function agreedSettings(config: Config): Readonly<Record<string, string>> {
  const { operators, edge, webhooks } = config;
  const { settings: decided, retention, clockTolerance } = config.authority;
  // A succession replaces these on one instance after the other.
  const { network_authority: _key, signatures: _signatures, ...genesis } = config.genesis;
  const settings: Readonly<Record<string, unknown>> = {
    genesis,
    NA_KEY_ID: config.keyId === config.publicKey ? null : config.keyId,
    'operator keys and tiers': Object.fromEntries(
      operators.map(({ keyId, publicKey, tier }) => [keyId, [publicKey, tier]]),
    ),
    'rate limits': { ...edge.rateLimits, AUTH_FAILURES: decided.singleRefusals },
    MESH_ADMIN_SIGNATURE_V1: edge.acceptSignatureV1,
    MESH_ACTIVE_NODE_WINDOW_SECONDS: decided.activeWindow,
    MESH_CLOCK_TOLERANCE_SECONDS: clockTolerance,
    RENEWAL_GRACE_SECONDS: decided.renewalGrace,
    MESH_HEARTBEAT_SESSION: edge.heartbeatSession,
    MESH_ROLE_PREFIXES: edge.rolePrefixes?.toSorted() ?? null,
    MESH_FOREIGN_ISSUER: decided.refuseForeignIssuers,
    MESH_COMMIT_SUBSET: decided.commitWithinAgreement,
    MESH_CREATED_STATUS: edge.createdStatus,
    MESH_MAX_REQUEST_BYTES: edge.maxRequestBytes,
    MESH_MAX_FEED_ENTRIES: edge.maxFeedEntries,
    'retention periods': retention,
    // The next active instance continues from their positions and forgets the webhooks that it does not know.
    ...(webhooks.urls.length > 0 && { webhooks: webhooks.urls.map(String).sort() }),
  };
  const digests = Object.entries(settings).map(([name, value]) => [name, digestOf(value)]);
  return Object.fromEntries(digests) as Readonly<Record<string, string>>;
}

function digestOf(value: unknown): string {
  return sha256Hex(canonicalJson(value as JsonValue)).slice(0, 16);
}
