/** The configuration of an edge as plain values, and what routes read of it on the edge's own thread. */

import type { LogSettings } from '../base/log/logger.ts';
import type { TlsFiles } from '../base/tls/pair.ts';
import type { CommandReference } from '../pages/reference/cli-reference.ts';
import type { ReadContext } from '../protocol/api/members.ts';
import type { DocumentCache } from '../protocol/contract/documents.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import {
  type KnownAuthorityKeys,
  publishedAuthorityKeys,
  publishedKeys,
} from './auth/known-keys.ts';
import type { NodeAuthSettings } from './auth/node.ts';
import type { OperatorAuthSettings } from './auth/operator.ts';
import type { RateLimitSettings } from './limits/rate-limit.ts';

/** The identity of this running instance, for operators who run several or replace one with another. */
export interface Instance {
  /** New at each start. */
  readonly id: string;
  readonly database: { readonly backend: string; readonly schemaVersion: number };
  /** The label of the first key of the network. */
  readonly signingKeyId: string;
  /** Whether others can replace it, and answer at the same time. */
  readonly haMode: 'single' | 'standby' | 'linked';
}

/** The settings of the service that edges use as they are. Durations are in milliseconds. */
export interface EdgeOptions {
  readonly host: string;
  readonly publicUrl: string | null;
  readonly proxyHops: number;
  /** Null if pages of other origins may not use the API. */
  readonly corsOrigins: readonly string[] | null;
  readonly maxRequestBytes: number;
  /** How long a node's request may wait for an answer; 0 sets no limit. */
  readonly longestWaitMs: number;
  readonly maxFeedEntries: number;
  readonly createdStatus: 200 | 201;
  readonly rolePrefixes: readonly string[] | null;
  readonly acceptSignatureV1: boolean;
  /** How long a heartbeat session lasts; null if there are none. */
  readonly heartbeatSession: number | null;
  readonly rateLimits: RateLimitSettings;
}

export interface EdgeConfig extends EdgeOptions {
  readonly instance: Instance;
  /** Null for plain HTTP. */
  readonly tls: TlsFiles | null;
  /** The genesis block in the configuration; only what a succession never changes may be read from it. */
  readonly genesis: GenesisBlock;
  readonly log: LogSettings;
  readonly clockTolerance: number;
  /** How long a request is held while no instance is active, in milliseconds. */
  readonly holdMs: number;
  /** The most connections that one edge holds open. */
  readonly maxConnections: number;
  /** The most readers of the event stream on one edge. */
  readonly maxEventReaders: number;
  /** Key id and public key of each configured operator. */
  readonly operatorKeys: readonly (readonly [string, string])[];
  readonly naPublicKey: string;
  readonly commands: CommandReference;
}

/** Members that routes read in another form, or not at all. */
type Replaced =
  | 'tls'
  | 'corsOrigins'
  | 'rolePrefixes'
  | 'operatorKeys'
  | 'acceptSignatureV1'
  | 'naPublicKey'
  | 'clockTolerance';

export interface EdgeSettings extends Omit<EdgeConfig, Replaced> {
  readonly authorityKeys: KnownAuthorityKeys;
  /** The scheme of connections to this edge. */
  readonly scheme: 'http' | 'https';
  /** The origins whose pages may use the API; null if there are none. */
  readonly corsOrigins: ReadonlySet<string> | null;
  readonly isAllowedRole: ReadContext['isAllowedRole'];
  readonly operatorAuth: OperatorAuthSettings;
  readonly nodeAuth: NodeAuthSettings;
}

export function edgeSettings(config: EdgeConfig, documents: DocumentCache): EdgeSettings {
  const { clockTolerance: toleranceMs } = config;
  const authorityKeys = publishedAuthorityKeys(config.genesis, config.naPublicKey, documents);
  return {
    ...config,
    authorityKeys,
    scheme: config.tls === null ? 'http' : 'https',
    corsOrigins: config.corsOrigins && new Set(config.corsOrigins),
    isAllowedRole: roleRule(config.rolePrefixes),
    operatorAuth: {
      keys: publishedKeys(config.operatorKeys, documents),
      authorityKeys,
      toleranceMs,
      acceptV1: config.acceptSignatureV1,
    },
    nodeAuth: { authorityKeys, toleranceMs },
  };
}

const ROLE = /^[\x21-\x7e]{1,128}$/;

/**
 * Which role names this network allows [core-4-1], [core-g7]: all printable names, or only those with given
 * prefixes.
 */
function roleRule(prefixes: readonly string[] | null): ReadContext['isAllowedRole'] {
  return (role) =>
    ROLE.test(role) && (prefixes === null || prefixes.some((prefix) => role.startsWith(prefix)));
}
