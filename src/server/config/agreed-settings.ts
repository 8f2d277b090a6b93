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
  const { operators, rateLimits, retention, rolePrefixes, webhooks } = config;
  // A succession replaces these on one instance after the other.
  const { network_authority: _key, signatures: _signatures, ...genesis } = config.genesis;
  const settings: Readonly<Record<string, unknown>> = {
    genesis,
    NA_KEY_ID: config.keyId === config.publicKey ? null : config.keyId,
    'operator keys and tiers': Object.fromEntries(
      operators.map(({ keyId, publicKey, tier }) => [keyId, [publicKey, tier]]),
    ),
    'rate limits': { ...rateLimits, AUTH_FAILURES: config.singleRefusals },
    MESH_ADMIN_SIGNATURE_V1: config.acceptSignatureV1,
    MESH_ACTIVE_NODE_WINDOW_SECONDS: config.activeNodeWindow,
    MESH_CLOCK_TOLERANCE_SECONDS: config.clockTolerance,
    RENEWAL_GRACE_SECONDS: config.renewalGrace,
    MESH_HEARTBEAT_SESSION: config.heartbeatSession,
    MESH_ROLE_PREFIXES: rolePrefixes?.toSorted() ?? null,
    MESH_FOREIGN_ISSUER: config.refuseForeignIssuers,
    MESH_COMMIT_SUBSET: config.commitWithinAgreement,
    MESH_CREATED_STATUS: config.createdStatus,
    MESH_MAX_REQUEST_BYTES: config.maxRequestBytes,
    MESH_MAX_FEED_ENTRIES: config.maxFeedEntries,
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
