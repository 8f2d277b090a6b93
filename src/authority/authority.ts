/** The settings, state and services available to every command. */
import type { Resting } from '../../machines/step.ts';
import type { JsonObject } from '../base/json/value.ts';
import type { Runtime } from '../base/runtime.ts';
import type { AuthoritySigner } from '../base/signer/authority-signer.ts';
import type { DocumentPublisher } from '../protocol/contract/documents.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import type { PolicyManifest } from '../protocol/records/policy-manifest.ts';
import type { Store } from '../store/store.ts';
import type { AuditChain } from './audit/audit.ts';
import type { Census } from './census.ts';
import type { HeartbeatInterval } from './certificates/beat-advice.ts';
import type { ContactWriter } from './certificates/contact-writer.ts';
import type { KnownChains } from './certificates/known-chains.ts';
import type { Rosters } from './certificates/roster.ts';
import type { FailureWindow } from './counts.ts';
import type { DashboardPace } from './dashboard/dashboard.ts';
import type { DashboardTreaties } from './dashboard/dashboard-treaties.ts';
import type { CountedFacts } from './dashboard/posture.ts';
import type { RefusalAudit, RefusalEvent, SingleRefusals } from './engine/refusal-audit.ts';
import type { EventTail } from './events.ts';
import type { KeptHistory } from './history.ts';
import type { HostStatus } from './host-status.ts';
import type { GraphCaches } from './recognition/graph.ts';
import type { AuthorityState } from './state.ts';
import type { SliceQueue } from './subjects/sliced.ts';

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

/** The stored state in memory; it can also follow the writes of another process. */
export type HeldState = AuthorityState['held'];

export interface Authority extends HeldState {
  readonly settings: AuthoritySettings;
  readonly signer: AuthoritySigner;
  readonly runtime: Runtime;
  readonly store: Store;
  /** Resolves when every unit decided so far is on disk and its effects have run. */
  lastCommit: Promise<unknown>;
  /** While the keys that sign are changed: resolves when other calls may be decided again. */
  exclusive: Promise<void> | null;
  readonly audit: AuditChain;
  readonly refusals: RefusalAudit;
  readonly contactWriter: ContactWriter;
  readonly rosters: Rosters;
  readonly heartbeatInterval: HeartbeatInterval;
  readonly eventTail: EventTail;
  readonly history: KeptHistory;
  readonly graph: GraphCaches;
  readonly sliceQueue: SliceQueue;
  /** The data-license policy, in memory only; undefined until one is created. */
  readonly license: { policy: Resting | undefined };
  readonly dashboardPace: DashboardPace;
  readonly dashboardTreaties: DashboardTreaties;
  readonly census: Census;
  /** The chains of authority keys that were published, as heartbeats name them. */
  readonly knownChains: KnownChains;
  readonly failures: FailureWindow;
  /** The latest of the times that were recorded before this process started, in milliseconds since the epoch. */
  readonly recordedUntil: number;
  /** Facts counted during the last build of the dashboard. */
  readonly counted: { facts: CountedFacts };
  /** When the posture first found what it finds now, by rule, in milliseconds since the epoch. */
  readonly foundAt: Map<string, number>;
  hostStatus(): HostStatus;
  /** Publishes documents; they change only after the state they show is on disk. */
  readonly publisher: DocumentPublisher;
  readonly log: (event: string, details: JsonObject) => void;
  /** Counts a refusal, whether or not it gets its own audit entry. */
  readonly countRefusal: (event: RefusalEvent, reason: string) => void;
  /**
   * Called when only the current key signs any more, and at each start after that: its genesis block and key file may be
   * put in place. `former` are the keys that signed before.
   */
  readonly keysSettled: (genesis: GenesisBlock, former: readonly string[]) => Promise<void>;
  /** Ends the process, because memory and disk no longer agree. `where` names what failed. */
  readonly fatal: (where: string, cause: unknown) => void;
}
