/** The composition root: wires store, authority and edge once, and takes them down again in order. */
import type { DestinationStream } from 'pino';
import type { DocumentName, PublishedDocument } from './authority/documents.ts';
import { publishedDocument } from './authority/documents.ts';
import { openAuthority } from './authority/open-authority.ts';
import type { Config } from './config/load.ts';
import { roleRule } from './config/roles.ts';
import type { Edge } from './http/edge.ts';
import { createRateLimiter, RATE_BUCKETS } from './http/rate-limit.ts';
import { listen } from './http/server.ts';
import type { JsonObject } from './json/value.ts';
import { jsonText } from './json/write.ts';
import { createLogger, type Logger } from './log/logger.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { instantOf } from './records/record.ts';
import { ROUTES } from './routes/table.ts';
import type { Runtime } from './runtime.ts';
import { openLmdbStore } from './store/lmdb.ts';
import type { Store } from './store/store.ts';

export interface Surroundings {
  readonly runtime: Runtime;
  /** Where log lines go. */
  readonly destination: DestinationStream;
  readonly version: string;
  /** Called when memory and disk can no longer agree: the process has to end, and not with 0. */
  readonly onFatal: (cause: unknown) => void;
}

export interface RunningAuthority {
  readonly port: number;
  readonly logger: Logger;
  /** Writes liveness now instead of at the next interval. */
  flush(): Promise<void>;
  /** Takes no new connections, finishes what is in flight, flushes and gives the store back. */
  stop(): Promise<void>;
}

export async function startAuthority(
  config: Config,
  surroundings: Surroundings,
): Promise<RunningAuthority> {
  const { runtime, destination, version, onFatal } = surroundings;
  const { logLevel: level, logFormat: format } = config;
  const logger = createLogger({ level, format, destination, now: runtime.now });
  const metrics = createMetrics(version);
  const documents = new Map<DocumentName, PublishedDocument>();
  documents.set('genesis', publishedDocument(jsonText(config.genesis)));
  let draining = false;

  const authority = await openAuthority({
    settings: {
      networkName: config.genesis.network_name,
      networkVersion: config.genesis.network_version,
      keyId: config.keyId,
      operatorKeyIds: config.operators.map(({ keyId }) => keyId),
      activeWindow: config.activeNodeWindow,
      renewalGrace: config.renewalGrace,
      refuseForeignIssuers: config.refuseForeignIssuers,
      commitWithinAgreement: config.commitWithinAgreement,
      foundedAt: instantOf(config.genesis.network_authority.valid_from),
    },
    operatorTiers: new Map(config.operators.map(({ keyId, tier }) => [keyId, tier])),
    clockTolerance: config.clockTolerance,
    signer: config.signer,
    runtime,
    store: measured(openLmdbStore(config.dataDir), metrics, runtime),
    publish: (name, document) => documents.set(name, document),
    withdraw: (name) => documents.delete(name),
    log: (event, details) => logAudit(logger, metrics, event, details),
    fatal(cause) {
      const problem = cause instanceof Error ? cause.message : String(cause);
      logger.write('CRITICAL', 'store', `State could not be stored: ${problem}`);
      onFatal(cause);
    },
  });

  const edge: Edge = {
    settings: {
      genesis: config.genesis,
      publicUrl: config.publicUrl,
      proxyHops: config.proxyHops,
      maxRequestBytes: config.maxRequestBytes,
      createdStatus: config.createdStatus,
      isAllowedRole: roleRule(config.rolePrefixes),
      operatorAuth: {
        keys: new Map(config.operators.map(({ keyId, publicKey }) => [keyId, publicKey])),
        audience: config.signer.publicKey,
        toleranceMs: config.clockTolerance,
        acceptV1: config.acceptSignatureV1,
      },
      nodeAuth: { audience: config.signer.publicKey, toleranceMs: config.clockTolerance },
    },
    call: authority.call,
    documents,
    limits: Object.fromEntries(
      RATE_BUCKETS.map((bucket) => [bucket, createRateLimiter(config.rateLimits[bucket])]),
    ) as Edge['limits'],
    runtime,
    logger,
    metrics,
    startedAt: runtime.elapsed(),
    routes: ROUTES,
    isDraining: () => draining,
  };

  const server = await listen(edge, config.host, config.port).catch(async (cause) => {
    await authority.close();
    throw cause;
  });
  // A flush that fails has already told `fatal`; there is nobody else to tell.
  const flushing = setInterval(
    () => authority.flush().catch(() => undefined),
    config.livenessFlush,
  );
  for (const warning of config.warnings) logger.write('WARNING', 'config', warning);

  return {
    port: server.port,
    logger,
    flush: authority.flush,
    async stop() {
      draining = true;
      await server.drain();
      clearInterval(flushing);
      await authority.close();
      server.close();
    },
  };
}

/** The store with its work timed: how long acknowledged state takes to reach the disk. */
function measured(store: Store, metrics: Metrics, runtime: Runtime): Store {
  return {
    ...store,
    async commit(unit) {
      const started = runtime.elapsed();
      const revision = await store.commit(unit);
      metrics.stored('commit', (runtime.elapsed() - started) / 1000);
      return revision;
    },
    async touchMany(rows) {
      const started = runtime.elapsed();
      await store.touchMany(rows);
      metrics.stored('liveness_flush', (runtime.elapsed() - started) / 1000);
    },
  };
}

/** Audit entries are logged once they are stored; the true reason of a refusal is told here. */
function logAudit(logger: Logger, metrics: Metrics, event: string, details: JsonObject): void {
  const reason = 'reason' in details ? String(details.reason) : '';
  if (event === 'admin_auth_failed') metrics.authFailed('operator', reason);
  if (event === 'node_auth_failed') metrics.authFailed('node', reason);
  const level = WARNINGS.has(event) ? 'WARNING' : 'INFO';
  logger.write(level, 'audit', `${event} ${jsonText(details)}`);
}

const WARNINGS: ReadonlySet<string> = new Set([
  'admin_auth_failed',
  'admin_authz_denied',
  'node_auth_failed',
  'join_rejected',
  'heartbeat_rejected',
  'renewal_rejected',
  'no_privileged_operator_key_left',
]);
