/** The configuration of an edge as plain values, and the edge built from it on its own thread. */

import type { LogFormat, LogLevel } from '../base/log/logger.ts';
import type { TlsFiles } from '../base/tls/pair.ts';
import type { CommandReference } from '../pages/reference/command-reference.ts';
import type { DocumentCache } from '../protocol/contract/publications.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import type { EdgeSettings, Instance } from './edge.ts';
import { publishedAuthorityKeys, publishedKeys } from './known-keys.ts';
import type { RateLimitSettings } from './rate-limit.ts';

export interface EdgeConfig {
  readonly host: string;
  /** Null for plain HTTP. */
  readonly tls: TlsFiles | null;
  readonly instance: Instance;
  readonly genesis: GenesisBlock;
  readonly publicUrl: string | null;
  readonly proxyHops: number;
  readonly corsOrigins: readonly string[] | null;
  readonly maxRequestBytes: number;
  /** The most connections that one edge holds open. */
  readonly maxConnections: number;
  /** How long a node's request may wait for an answer; 0 sets no limit. */
  readonly longestWaitMs: number;
  /** The most readers of the event stream on one edge. */
  readonly maxEventReaders: number;
  readonly maxFeedEntries: number;
  readonly createdStatus: 200 | 201;
  readonly rolePrefixes: readonly string[] | null;
  /** Key id and public key of each configured operator. */
  readonly operatorKeys: readonly (readonly [string, string])[];
  readonly acceptSignatureV1: boolean;
  readonly naPublicKey: string;
  /** Milliseconds. */
  readonly clockTolerance: number;
  /** How long a heartbeat session lasts, in milliseconds; null if there are none. */
  readonly heartbeatSession: number | null;
  readonly rateLimits: RateLimitSettings;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  readonly commands: CommandReference;
}

export function edgeSettings(config: EdgeConfig, documents: DocumentCache): EdgeSettings {
  const { clockTolerance: toleranceMs } = config;
  const authorityKeys = publishedAuthorityKeys(config.genesis, config.naPublicKey, documents);
  return {
    instance: config.instance,
    genesis: config.genesis,
    authorityKeys,
    publicUrl: config.publicUrl,
    proxyHops: config.proxyHops,
    scheme: config.tls === null ? 'http' : 'https',
    corsOrigins: config.corsOrigins && new Set(config.corsOrigins),
    maxRequestBytes: config.maxRequestBytes,
    maxConnections: config.maxConnections,
    longestWaitMs: config.longestWaitMs,
    maxFeedEntries: config.maxFeedEntries,
    createdStatus: config.createdStatus,
    isAllowedRole: roleRule(config.rolePrefixes),
    operatorAuth: {
      keys: publishedKeys(config.operatorKeys, documents),
      authorityKeys,
      toleranceMs,
      acceptV1: config.acceptSignatureV1,
    },
    nodeAuth: { authorityKeys, toleranceMs },
    commands: config.commands,
  };
}

const ROLE = /^[\x21-\x7e]{1,128}$/;

/**
 * Which role names this network allows [core-4-1], [core-g7]: all printable names, or only those with given
 * prefixes.
 */
function roleRule(prefixes: readonly string[] | null): (role: string) => boolean {
  return (role) =>
    ROLE.test(role) && (prefixes === null || prefixes.some((prefix) => role.startsWith(prefix)));
}
