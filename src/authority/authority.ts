/** The settings, state and services available to every command. */
import type { Resting } from '../../machines/step.ts';
import type { JsonObject } from '../base/json/value.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import type { PolicyManifest } from '../protocol/records/policy-manifest.ts';
import { instantOf } from '../protocol/records/record.ts';
import type { Store, StoreContents } from '../store/store.ts';
import { createAuditChain } from './audit/audit.ts';
import { createCensus } from './census.ts';
import { createHeartbeatInterval } from './certificates/beat-advice.ts';
import { createContactWriter } from './certificates/contact-writer.ts';
import { createKnownChains } from './certificates/known-chains.ts';
import { createRosters } from './certificates/roster.ts';
import { createFailureWindow } from './counts.ts';
import { createDashboardPace } from './dashboard/dashboard.ts';
import { createDashboardTreaties } from './dashboard/dashboard-treaties.ts';
import { NOTHING_COUNTED } from './dashboard/posture.ts';
import {
  createRefusalAudit,
  type RefusalEvent,
  type SingleRefusals,
} from './engine/refusal-audit.ts';
import { createEventTail } from './events.ts';
import { keepHistory } from './history.ts';
import { type HostStatus, NOTHING_KNOWN } from './host-status.ts';
import { publishOperatorKeys } from './operator-keys.ts';
import { createGraphCaches } from './recognition/graph.ts';
import type { AuthorityState, StateOptions } from './state.ts';
import { createSliceQueue } from './subjects/sliced.ts';

/** Durations are in milliseconds. */
export interface AuthoritySettings {
  readonly networkName: string;
  readonly networkVersion: string;
  readonly activeWindow: number;
  /** How long a renewed certificate remains usable; null means until it expires. */
  readonly renewalGrace: number | null;
  /** Whether to refuse actions under another sovereign's name. */
  readonly refuseForeignIssuers: boolean;
  /** Whether a commitment may only contain capabilities from its agreement. */
  readonly commitWithinAgreement: boolean;
  /** How many refusals from one source are audited individually; null means all of them. */
  readonly singleRefusals: SingleRefusals | null;
  /** The genesis block in the configuration; the state may have a newer one. */
  readonly genesis: GenesisBlock;
  /** The unsigned policy whose digest is in the genesis block; null if there is none. */
  readonly firstPolicy: PolicyManifest | null;
}

export interface ServiceOptions extends StateOptions {
  readonly store: Store;
  /** When the head files were written last, in milliseconds since the epoch; 0 or absent if there are none. */
  readonly headWrittenAt?: number;
  log(event: string, details: JsonObject): void;
  countRefusal(event: RefusalEvent, reason: string): void;
  /** Ends the process, because memory and disk no longer agree. `where` names what failed. */
  fatal(where: string, cause: unknown): void;
  /**
   * Called when only the current key signs any more, and at each start after that: its genesis block and key file may be
   * put in place. `former` are the keys that signed before.
   */
  readonly keysSettled?: (genesis: GenesisBlock, former: readonly string[]) => Promise<void>;
  /** Facts that the authority cannot derive from its own state. */
  readonly hostStatus?: () => HostStatus;
}

/** Facts about the store that are needed when this process starts writing to it. */
export type OpeningFacts = Pick<
  StoreContents,
  'previousOwner' | 'unstoredTimes' | 'auditLength' | 'auditHead'
>;

export type Authority = ReturnType<typeof authorityOn>;

/** Creates the authority from a complete state; from now on, this process owns the store. */
export function authorityOn(
  options: ServiceOptions,
  { held }: AuthorityState,
  facts: OpeningFacts,
) {
  const { runtime, settings, signer, publisher, store, log, fatal } = options;
  const { subjects, liveness, operatorRegistry, certificates, recognition, bulletin, replay } =
    held;
  const startedAt = runtime.now();
  bulletin.logged(facts.auditLength);
  liveness.putInOrder();
  // Counting drops contacts that have been silent for too long.
  liveness.activeCount(startedAt);
  const latestContact = liveness.latest();
  replay.begin(startedAt, latestContact);
  liveness.begin(startedAt);
  operatorRegistry.addConfigured(subjects);
  publishOperatorKeys(subjects, publisher);
  const knownChains = createKnownChains();
  const failures = createFailureWindow(runtime.elapsed);
  return {
    ...held,
    settings,
    signer,
    runtime,
    store,
    /** Publishes documents; they change only after the state they show is on disk. */
    publisher,
    log,
    /** Ends the process, because memory and disk no longer agree. */
    fatal,
    keysSettled: options.keysSettled ?? (() => Promise.resolve()),
    hostStatus: options.hostStatus ?? (() => NOTHING_KNOWN),
    failures,
    /** Counts a refusal, whether or not it gets its own audit entry. */
    countRefusal(event: RefusalEvent, reason: string): void {
      failures.note(event);
      options.countRefusal(event, reason);
    },
    /** The latest of the times that were recorded before this process started, in milliseconds since the epoch. */
    recordedUntil: Math.max(
      instantOf(settings.genesis.network_authority.valid_from),
      held.recentAudit.newestAt(),
      latestContact,
      options.headWrittenAt ?? 0,
    ),
    /** Facts counted during the last build of the dashboard. */
    counted: { facts: NOTHING_COUNTED },
    /** When the posture first found what it finds now, by rule, in milliseconds since the epoch. */
    foundAt: new Map<string, number>(),
    /** The chains of authority keys that were published, as heartbeats name them. */
    knownChains,
    census: createCensus({
      subjects,
      certificates,
      liveness,
      knownChains,
      activeWindow: settings.activeWindow,
      now: runtime.now,
      elapsed: runtime.elapsed,
    }),
    /** Resolves when every unit decided so far is on disk and its effects have run. */
    lastCommit: Promise.resolve() as Promise<unknown>,
    /** While the keys that sign are changed: resolves when other calls may be decided again. */
    exclusive: null as Promise<void> | null,
    eventTail: createEventTail(facts.auditLength),
    history: keepHistory(store),
    graph: createGraphCaches(recognition, held.listThreads?.edgesCaughtUp),
    sliceQueue: createSliceQueue(),
    /** The data-license policy, in memory only; undefined until one is created. */
    license: { policy: undefined as Resting | undefined },
    dashboardPace: createDashboardPace(runtime.elapsed),
    dashboardTreaties: createDashboardTreaties(),
    contactWriter: createContactWriter({
      liveness,
      store,
      replay,
      now: runtime.now,
      failed: (cause) => fatal('liveness flush', cause),
    }),
    refusals: createRefusalAudit(settings.singleRefusals, runtime.elapsed),
    audit: createAuditChain(facts.auditHead, runtime),
    rosters: createRosters(),
    heartbeatInterval: createHeartbeatInterval(settings.activeWindow, runtime.elapsed),
  };
}
