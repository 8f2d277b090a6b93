/** What every command works with. */
import type { Resting } from '../../../machines/step.ts';
import type { DocumentPublisher } from '../../contract/publications.ts';
import type { JsonObject } from '../../json/value.ts';
import type { PolicyManifest } from '../../records/policy-manifest.ts';
import type { Runtime } from '../../runtime.ts';
import type { AuthoritySigner } from '../../signer/authority-signer.ts';
import type { Store } from '../../store/store.ts';
import type { DashboardTreaties } from '../../views/dashboard-treaties.ts';
import type { RecognitionIndex } from '../../views/recognition-index.ts';
import type { AgentIndex } from '../enrollment/agent-index.ts';
import type { CertificateIndex } from '../enrollment/certificate-index.ts';
import type { InviteBatches } from '../enrollment/invite-batches.ts';
import type { OperatorRegistry } from '../enrollment/operator-registry.ts';
import type { PolicyIndex } from '../enrollment/policy-index.ts';
import type { BeatPace } from '../liveness/beat-advice.ts';
import type { ContactWriter } from '../liveness/contact-writer.ts';
import type { Liveness } from '../liveness/last-contact.ts';
import type { Rosters } from '../liveness/open-rosters.ts';
import type { BulletinIssuer } from '../publication/bulletin.ts';
import type { Counts } from '../publication/counts.ts';
import type { Revocations } from '../publication/crl.ts';
import type { DashboardPace } from '../publication/dashboard-pace.ts';
import type { EventTail } from '../publication/event-tail.ts';
import type { ExpiryCensus } from '../publication/expiry-census.ts';
import type { FailureWindow } from '../publication/failure-window.ts';
import type { Feeds } from '../publication/feed.ts';
import type { FleetCensus } from '../publication/fleet-census.ts';
import type { GraphDigest } from '../publication/graph-digest.ts';
import type { ListThreads } from '../publication/list-renderer.ts';
import type { RecentChanges } from '../publication/recent-changes.ts';
import type { SharedWork } from '../publication/shared-work.ts';
import type { CountedFacts, Vitals } from '../publication/vitals.ts';
import type { Attestations } from '../recognition/attestation-list.ts';
import type { ImportedFeeds } from '../recognition/imported-feeds.ts';
import type { TrustCycleLog } from '../recognition/trust-cycle-log.ts';
import type { TrustGraphCopy } from '../recognition/trust-graph-copy.ts';
import type { TrustPaths } from '../recognition/trust-paths.ts';
import type { EarlierRequests } from '../replay/earlier-requests.ts';
import type { KeptAnswers } from '../replay/kept-answers.ts';
import type { NonceLedger } from '../replay/nonce-ledger.ts';
import type { NonceWindows } from '../replay/nonce-window.ts';
import type { UnstoredTimes } from '../replay/unstored-times.ts';
import type { AuditChain } from './audit.ts';
import type { IdsInOrder } from './ids-in-order.ts';
import type { RefusalAudit, RefusalEvent, SingleRefusals } from './refusal-counter.ts';
import type { SliceQueue } from './sliced.ts';
import type { Subjects } from './subjects.ts';

/** Durations are in milliseconds. */
export interface AuthoritySettings {
  readonly networkName: string;
  readonly networkVersion: string;
  /** Label of the NA key in `issued_by` and signatures. */
  readonly keyId: string;
  readonly activeWindow: number;
  /** How long a renewed certificate stays usable; null means until it expires. */
  readonly renewalGrace: number | null;
  /** Whether acting under another sovereign's name is refused. */
  readonly refuseForeignIssuers: boolean;
  /** Whether a commitment may only hold capabilities of its agreement. */
  readonly commitWithinAgreement: boolean;
  /** How many refusals of one source are audited individually; null means all of them. */
  readonly singleRefusals: SingleRefusals | null;
  /** When the authority key became valid, milliseconds since the epoch. */
  readonly foundedAt: number;
  /** Hex SHA-256 of the canonical genesis block. */
  readonly genesisDigest: string;
  /** Base64. */
  readonly rootKey: string;
  /** The policy whose digest the genesis block has, unsigned; null when it has none. */
  readonly firstPolicy: PolicyManifest | null;
}

export interface Authority {
  readonly settings: AuthoritySettings;
  readonly signer: AuthoritySigner;
  readonly runtime: Runtime;
  readonly store: Store;
  /** Resolves when every unit decided so far is on disk and its effects have run. */
  lastCommit: Promise<unknown>;
  readonly subjects: Subjects;
  readonly audit: AuditChain;
  readonly refusals: RefusalAudit;
  readonly nonces: NonceLedger;
  readonly keptAnswers: KeptAnswers;
  readonly windows: NonceWindows;
  readonly earlierRequests: EarlierRequests;
  readonly unstoredTimes: UnstoredTimes;
  readonly liveness: Liveness;
  readonly contactWriter: ContactWriter;
  readonly rosters: Rosters;
  readonly beatPace: BeatPace;
  readonly revocations: Revocations;
  readonly feeds: Feeds;
  readonly bulletin: BulletinIssuer;
  readonly eventTail: EventTail;
  /** Null when lists of any length are rendered on this thread. */
  readonly listThreads: ListThreads | null;
  readonly certificates: CertificateIndex;
  readonly certificateIds: IdsInOrder;
  readonly inviteIds: IdsInOrder;
  readonly inviteBatches: InviteBatches;
  readonly operatorRegistry: OperatorRegistry;
  readonly policies: PolicyIndex;
  readonly agents: AgentIndex;
  readonly attestations: Attestations;
  readonly recognition: RecognitionIndex;
  readonly importedFeeds: ImportedFeeds;
  readonly graphDigest: GraphDigest;
  readonly trustPaths: TrustPaths;
  readonly graphWork: SharedWork;
  readonly trustGraph: TrustGraphCopy;
  readonly sliceQueue: SliceQueue;
  /** The data-license policy, in memory only; undefined until one is created. */
  readonly license: { policy: Resting | undefined };
  readonly recentChanges: RecentChanges;
  readonly dashboardPace: DashboardPace;
  readonly dashboardTreaties: DashboardTreaties;
  readonly trustCycles: TrustCycleLog;
  readonly counts: Counts;
  readonly fleetCensus: FleetCensus;
  readonly expiryCensus: ExpiryCensus;
  readonly failures: FailureWindow;
  /** What is counted for the dashboard, as of its last build. */
  readonly counted: { facts: CountedFacts };
  vitals(): Vitals;
  /** Public documents; they change only after the state they show is on disk. */
  readonly publisher: DocumentPublisher;
  readonly log: (event: string, details: JsonObject) => void;
  /** Counts a refusal, whether or not it has an audit entry of its own. */
  readonly countRefusal: (event: RefusalEvent, reason: string) => void;
  /** Ends the process, because memory and disk no longer agree. `where` names what failed. */
  readonly fatal: (where: string, cause: unknown) => void;
}
