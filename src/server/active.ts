/** What the active instance runs in addition to its edges: the authority on its store, and periodic work. */

import type { HostStatus } from '../authority/host-status.ts';
import { LIST_THREAD_FROM } from '../authority/lists/list-rendering.ts';
import {
  type AuthorityOptions,
  OlderState,
  type OpenAuthority,
  openAuthority,
  type ReadyState,
  type SeenState,
} from '../authority/open.ts';
import type { StateOptions } from '../authority/state.ts';
import { problemText } from '../base/error-message.ts';
import type { JsonObject } from '../base/json/value.ts';
import { jsonText } from '../base/json/write.ts';
import type { Logger } from '../base/log/logger.ts';
import type { Runtime } from '../base/runtime.ts';
import type { AuthoritySigner } from '../base/signer/authority-signer.ts';
import { formatInstant } from '../base/timestamp.ts';
import { createKeptFiles } from '../maintenance/backup/kept-files.ts';
import { type BackupSchedule, createBackupSchedule } from '../maintenance/backup/schedule.ts';
import { type Answer, type Call, whileHeld } from '../protocol/contract/calls.ts';
import type { DocumentPublisher } from '../protocol/contract/documents.ts';
import { instantOf } from '../protocol/records/record.ts';
import { isSignerUnavailable } from '../protocol/refusals.ts';
import { measured } from '../store/measured.ts';
import type { OpenedStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { type Role, STARTING } from './base.ts';
import type { Config } from './config/load.ts';
import { createFederation, type Federation } from './federation/federation.ts';
import { createHeadKeeper, type HeadKeeper } from './head/keeper.ts';
import { type OpenedHeads, openHeads } from './head/open.ts';
import { settleIdentityFiles } from './identity-files.ts';
import type { Background } from './lifecycle/background.ts';
import type { Fatal } from './lifecycle/lifecycle.ts';
import type { AuthorityMetrics } from './metrics/authority.ts';
import { backUpInChildProcess } from './threads/backup-child.ts';
import { startListThread } from './threads/list-thread.ts';
import { startVisitThread } from './threads/visit-thread.ts';
import { openWebhooks, type Webhooks } from './webhooks/webhooks.ts';

/** The dependencies of the state in memory. */
export interface StateContext {
  readonly config: Config;
  readonly signer: AuthoritySigner;
  readonly runtime: Runtime;
  readonly publisher: DocumentPublisher;
  readonly logger: Logger;
  readonly fatal: Fatal;
  /** Null for the default. */
  readonly listThreadFrom: number | null;
  /** Resolves when no edge reads a document that was replaced before this call. */
  edgesCaughtUp(): Promise<void>;
}

export interface ActiveOptions extends StateContext {
  readonly opened: OpenedStore;
  /** The standby state, if there is one. */
  readonly ready: ReadyState | null;
  /** What this instance learned about the state while it waited; null if it did not wait. */
  readonly seen: SeenState | null;
  readonly metrics: AuthorityMetrics;
  hostStatus(): HostStatus;
}

export interface ActiveRole extends Role {
  /** The authority; it refuses calls while another process might have replaced it. */
  readonly call: Call;
  /** Begins the periodic work; resolves when the first trust cycle has ended. */
  begin(background: Background): Promise<void>;
}

/** How late a scheduled backup may begin. */
const BACKUP_CHECK_MS = 60_000;
/** How often lists are checked; a list that is half a day old is re-issued. */
const LIST_RENEWAL_MS = 60_000;
/** A process that has lost its state answers reads from memory for at most this long. */
const OWNERSHIP_CHECK_MS = 1000;
const SWEEP_MS = 1000;
/** How late a succession takes effect, or an overlap ends. */
const KEYS_MS = 1000;
/** How late a partner is visited. */
const FEDERATION_MS = 1000;
/** After a crash, webhooks get the events of up to this period again. */
const WEBHOOK_SAVE_MS = 1000;
/** Except for revocations, heads in other places lag at most this much. */
const HEAD_MS = 1000;
/** How soon a problem is detected, even while nobody reads the dashboard. */
const POSTURE_MS = 15_000;

/**
 * If the start is refused, the state is released to other instances. If an instance that has waited finds an older state,
 * it keeps the lease and refuses every call: another one, which may not have seen the newer state, would serve the older.
 */
export async function openActive(options: ActiveOptions): Promise<ActiveRole> {
  const { opened, runtime, metrics, logger } = options;
  for (const note of opened.notes) logger.write('INFO', 'store', note);
  const store = measured(opened.store, { elapsed: runtime.elapsed, stored: metrics.stored });
  try {
    return activeOn(options, await openState(options, store));
  } catch (cause) {
    if (!keepsLease(cause, options)) throw cause;
    return refusingRole(store, cause, logger);
  }
}

interface OpenState {
  readonly authority: OpenAuthority;
  /** Null without head files. */
  readonly keeper: HeadKeeper | null;
}

/** Rejects with `OlderState` if the state was rolled back. */
async function openState(options: ActiveOptions, timed: Store): Promise<OpenState> {
  const { config, signer, runtime, ready } = options;
  let heads: OpenedHeads | null = null;
  let authority: OpenAuthority | null = null;
  let store = timed;
  try {
    heads = await openHeads(config.heads, timed, config.publicKey).catch(async (cause) => {
      await ready?.state.close();
      throw cause;
    });
    const { network_name: networkName } = config.genesis;
    const keeping = { store: timed, networkName, signer, now: runtime.now };
    const keeper = heads && (await createHeadKeeper({ ...heads, ...keeping }));
    store = keeper?.store ?? timed;
    const written = (heads?.heads ?? []).map((head) => instantOf(head.written_at));
    authority = await openAuthority(
      {
        ...authorityOptions(options, store),
        headWrittenAt: Math.max(0, ...written),
      },
      await readyFor(store, options),
    );
    await keeper?.keep();
    return { authority, keeper };
  } catch (cause) {
    // Abandoned, not closed: if the previous holder crashed, the next start must still know it.
    if (!keepsLease(cause, options)) await (authority ?? store).abandon();
    for (const file of heads?.files ?? []) file.release();
    throw cause;
  }
}

function keepsLease(cause: unknown, { seen }: ActiveOptions): cause is OlderState {
  return cause instanceof OlderState && seen !== null;
}

/** Leaves the state unchanged. */
function refusingRole(store: Store, { message: reason }: OlderState, logger: Logger): ActiveRole {
  logger.write('CRITICAL', 'store', reason);
  const refused: Answer = { ok: false, refusal: 'restore_pending', details: { reason } };
  return {
    ...STARTING,
    call: () => refused,
    begin: () => Promise.resolve(),
    close: store.abandon,
    abandon: store.abandon,
  };
}

function activeOn(options: ActiveOptions, { authority, keeper }: OpenState): ActiveRole {
  const { config, runtime, logger, fatal } = options;
  const { lease } = options.opened;
  if (runtime.now() < authority.recordedUntil) {
    const text = `The clock is before ${formatInstant(authority.recordedUntil)}, which is recorded in the state, in the genesis block or in a head file: it is behind, or was ahead`;
    logger.write('WARNING', 'clock', text);
  }
  const endReaders = new AbortController();
  let federation: Federation | null = null;
  const backups = backupsOf(options, endReaders.signal);
  let webhooks: Webhooks | null = null;
  let renewLists = (): void => undefined;
  return {
    call: lease === null ? authority.call : whileHeld(authority.call, lease.isHeld),
    clockSet(byMs) {
      authority.clockSet(byMs);
      renewLists();
    },
    seal: authority.seal,
    async begin(background) {
      renewLists = () => void background.attempt('list_renewal');
      startJobs(background, options, { authority, keeper });
      if (config.trustCycle !== null) await background.attempt('trust_cycle');
      webhooks = await openWebhooks(config.webhooks, { ...options, call: authority.call });
      if (config.webhooks.urls.length > 0) {
        background.start('webhook_save', WEBHOOK_SAVE_MS, webhooks.save);
      }
      if (config.federation !== null) {
        federation = createFederation(config.federation, {
          ...options,
          call: authority.call,
          startThread: (reach) =>
            startVisitThread(
              { maxFeedEntries: config.edge.maxFeedEntries, reach },
              authority.call,
              (cause) => fatal('visiting thread', cause),
            ),
        });
        await federation.readPartners();
        background.start('federation', FEDERATION_MS, federation.visitDue);
      }
      if (backups !== null) {
        background.start('backup', BACKUP_CHECK_MS, backups.check);
        void background.attempt('backup');
      }
    },
    backupFacts: () => backups?.facts ?? null,
    webhooks: () => webhooks?.facts ?? [],
    partners: () => federation?.facts ?? STARTING.partners(),
    endReaders() {
      endReaders.abort();
      federation?.stop();
    },
    async close() {
      await webhooks?.stop();
      await authority.close();
    },
    abandon: authority.abandon,
  };
}

/** The periodic work that every active instance does. */
function startJobs(
  background: Background,
  { config, opened: { store }, fatal }: ActiveOptions,
  { authority, keeper }: Pick<OpenState, 'authority' | 'keeper'>,
): void {
  background.start('liveness_flush', config.authority.flushInterval, authority.flush);
  background.start('list_renewal', LIST_RENEWAL_MS, authority.renewLists);
  background.start('authority_keys', KEYS_MS, authority.keepKeys);
  background.start('retention', SWEEP_MS, authority.sweep);
  background.start('ownership_check', OWNERSHIP_CHECK_MS, () => {
    if (store.isOwner()) return;
    const problem = store.health() ?? 'Another process has taken over the state';
    fatal('ownership', new Error(problem));
  });
  if (keeper !== null) {
    background.start('head', HEAD_MS, () =>
      keeper.keep().catch((cause) => {
        // Until the head can be signed again, it lags behind, as after a crash.
        if (!isSignerUnavailable(cause)) fatal('head file', cause);
      }),
    );
  }
  background.start('posture', POSTURE_MS, authority.judgePosture);
  background.start('trust_cycle', config.trustCycle, async () => {
    await authority.call('runTrustCycle', null);
  });
}

/** The standby state if it matches the store; null if the state must be read. */
async function readyFor(
  store: Store,
  { ready, logger }: Pick<ActiveOptions, 'ready' | 'logger'>,
): Promise<ReadyState | null> {
  if (ready === null) return null;
  const { revision, auditHead } = await store.position();
  if (ready.revision === revision && ready.facts.auditHead === auditHead) return ready;
  const problem = `The standby state is at revision ${ready.revision}, but the database is at ${revision}`;
  logger.write('WARNING', 'store', `${problem}: the state is read again`);
  await ready.state.close();
  return null;
}

/** Null without a schedule. */
function backupsOf(
  { config, runtime, logger, metrics }: ActiveOptions,
  abort: AbortSignal,
): BackupSchedule | null {
  const { backups: settings, dataDir, database, genesis, publicKey, keyId } = config;
  if (settings === null) return null;
  return createBackupSchedule({
    settings,
    files: createKeptFiles(settings.folder, genesis),
    now: runtime.now,
    async make(path, now) {
      const { bytes, revision } = await backUpInChildProcess(
        {
          dataDir,
          database: database?.named() ?? null,
          genesis,
          keySource: config.keySource(),
          key: { publicKey, keyId },
          recipients: settings.recipients,
          path,
          now,
        },
        abort,
      );
      const what = `of revision ${revision}, ${bytes} bytes, was made and verified`;
      logger.write('INFO', 'backup', `The backup ${path} ${what}`);
    },
    verified: metrics.backupVerified,
    failed: metrics.backupFailed,
    abort,
  });
}

function authorityOptions(
  { config, logger, metrics, fatal, hostStatus, seen, ...context }: ActiveOptions,
  store: Store,
): AuthorityOptions {
  return {
    ...stateOptions({ config, logger, fatal, ...context }),
    retention: config.authority.retention,
    store,
    seen,
    hostStatus,
    log: (event, details) => logAudit(logger, metrics, event, details),
    countRefusal: metrics.refused,
    fatal,
    keysSettled: (genesis, former) =>
      settleIdentityFiles(genesis, former, {
        files: config.identityFiles,
        configured: config.genesis,
        logger,
      }),
  };
}

/** The options for the state in memory, both for the active instance and for an instance that waits for its turn. */
export function stateOptions({
  config,
  signer,
  runtime,
  publisher,
  logger,
  fatal,
  listThreadFrom,
  edgesCaughtUp,
}: StateContext): StateOptions {
  return {
    ...config.authority,
    operators: new Map(config.operators.map((operator) => [operator.keyId, operator])),
    signer,
    runtime,
    publisher,
    listThreading: {
      from: listThreadFrom ?? LIST_THREAD_FROM,
      startThread: () =>
        startListThread(signer, config.keySource, (cause) => fatal('signed list thread', cause)),
      notStarted: (cause) =>
        logger.write(
          'ERROR',
          'lists',
          `The thread for long signed lists could not be started, so the authority thread renders them until a list has doubled in size: ${problemText(cause)}`,
        ),
      edgesCaughtUp,
    },
  };
}

/** Logs audit entries once they are stored, including the true reason for a refusal. */
function logAudit(
  logger: Logger,
  metrics: AuthorityMetrics,
  event: string,
  details: JsonObject,
): void {
  metrics.audited(event);
  if (event === 'operator_signature_v1') metrics.operatorSignatureV1();
  const level = WARNINGS.has(event) ? 'WARNING' : 'INFO';
  const failed = event === 'trust_cycle_completed' && details.result === 'failed';
  logger.write(failed ? 'ERROR' : level, 'audit', `${event} ${jsonText(details)}`);
}

const WARNINGS: ReadonlySet<string> = new Set([
  'admin_auth_failed',
  'refusals_summarized',
  'admin_authz_denied',
  'node_auth_failed',
  'join_rejected',
  'heartbeat_rejected',
  'renewal_rejected',
  'no_privileged_operator_key_left',
  'authority_key_not_held',
  'operator_signature_v1',
]);
