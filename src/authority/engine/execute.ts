/**
 * The authority: what every command works with, and the one way a command is carried out. A command
 * decides without waiting, its unit is stored in one transaction, and only then does its answer leave.
 */
import type { Answer } from '../../contract/answers.ts';
import type { DocumentPublisher } from '../../contract/publications.ts';
import type { Signer } from '../../crypto/ed25519.ts';
import type { JsonObject } from '../../json/value.ts';
import { jsonText, type Writable } from '../../json/write.ts';
import { Refusal } from '../../refusal.ts';
import type { Runtime } from '../../runtime.ts';
import type { SealedEntry, Store } from '../../store/store.ts';
import type { RecognitionIndex } from '../../views/recognition-index.ts';
import type { AgentIndex } from '../enrolment/agent-index.ts';
import type { CertificateIndex } from '../enrolment/certificate-index.ts';
import type { PolicyIndex } from '../enrolment/policy-index.ts';
import type { Liveness } from '../liveness/last-contact.ts';
import type { Rosters } from '../liveness/open-rosters.ts';
import type { LicenseHolder } from '../protocol/data-usage.ts';
import type { Counts } from '../publication/counts.ts';
import type { CrlPublisher } from '../publication/crl-publisher.ts';
import type { RecentChanges } from '../publication/dashboard.ts';
import type { GraphDigest } from '../publication/graph.ts';
import type { RevocationLog } from '../publication/revocation-log.ts';
import type { AttestationLog } from '../recognition/attestation-log.ts';
import type { TrustCycleLog } from '../recognition/trust-cycle-log.ts';
import type { NonceLedger } from '../replay/nonce-ledger.ts';
import type { NonceWindows } from '../replay/nonce-window.ts';
import type { RestartFloor } from '../replay/restart-floor.ts';
import type { AuditChain } from './audit.ts';
import type { RefusalAudit, RefusalEvent, SingleRefusals } from './refusal-audit.ts';
import type { Subjects } from './subjects.ts';
import { UnitOfWork } from './unit-of-work.ts';

/** Durations are in milliseconds. */
export interface AuthoritySettings {
  readonly networkName: string;
  readonly networkVersion: string;
  /** Label of the NA key in `issued_by` and signatures. */
  readonly keyId: string;
  readonly operatorKeyIds: readonly string[];
  readonly activeWindow: number;
  /** How long a renewed certificate stays usable; null is until it expires. */
  readonly renewalGrace: number | null;
  /** Whether acting under another sovereign's name is refused. */
  readonly refuseForeignIssuers: boolean;
  /** Whether a commitment may only hold capabilities of its agreement. */
  readonly commitWithinAgreement: boolean;
  /** Refusals of one source that are audited one by one; null is all of them. */
  readonly singleRefusals: SingleRefusals | null;
  /** When the authority key became valid, milliseconds since the epoch. */
  readonly foundedAt: number;
}

export interface Authority {
  readonly settings: AuthoritySettings;
  readonly signer: Signer;
  readonly runtime: Runtime;
  readonly store: Store;
  /** Resolves when every unit decided so far is on disk and has taken effect. */
  lastCommit: Promise<unknown>;
  readonly subjects: Subjects;
  readonly audit: AuditChain;
  readonly refusals: RefusalAudit;
  readonly nonces: NonceLedger;
  readonly windows: NonceWindows;
  readonly restartFloor: RestartFloor;
  readonly liveness: Liveness;
  readonly rosters: Rosters;
  readonly revocations: RevocationLog;
  readonly crlPublisher: CrlPublisher;
  readonly certificates: CertificateIndex;
  readonly policies: PolicyIndex;
  readonly agents: AgentIndex;
  readonly attestationLog: AttestationLog;
  readonly recognition: RecognitionIndex;
  readonly graphDigest: GraphDigest;
  readonly license: LicenseHolder;
  readonly recentChanges: RecentChanges;
  readonly trustCycles: TrustCycleLog;
  readonly counts: Counts;
  /** Public documents, changed once what they show is on disk. */
  readonly publisher: DocumentPublisher;
  readonly log: (event: string, details: JsonObject) => void;
  /** Counts a refusal, whether or not it gets an audit entry of its own. */
  readonly countRefusal: (event: RefusalEvent, reason: string) => void;
  /** Memory and disk no longer agree, so the process has to end. `where` names what failed. */
  readonly fatal: (where: string, cause: unknown) => void;
}

/** Decides one call; what it returns is answered once the unit is stored. */
export type Run<Call> = (na: Authority, unit: UnitOfWork, call: Call) => Writable;

/** Carries out one command; the answer is a promise only when something has to be on disk first. */
export function execute<Call>(na: Authority, run: Run<Call>, call: Call): Answer | Promise<Answer> {
  const unit = new UnitOfWork(na.subjects, na.runtime.now());
  const answer = decide(na, unit, run, call);
  if (!unit.isEmpty) {
    const committed = commit(na, unit);
    na.lastCommit = committed;
    return committed.then((effects) => onceDone(effects, answer));
  }
  if (unit.effects.length === 0) return answer;
  return na.lastCommit.then(() => onceDone(takeEffect(unit), answer));
}

/** Effects that are still under way. */
type Pending = readonly Promise<void>[];

const NONE: Pending = [];

function onceDone(effects: Pending, answer: Answer): Answer | Promise<Answer> {
  return effects.length === 0 ? answer : Promise.all(effects).then(() => answer);
}

/** What a command read may still be on its way to the disk: nothing is shown before it is there. */
function takeEffect({ effects }: UnitOfWork): Pending {
  let pending = NONE;
  for (const effect of effects) {
    const done = effect();
    if (done instanceof Promise) pending = [...pending, done];
  }
  return pending;
}

function decide<Call>(na: Authority, unit: UnitOfWork, run: Run<Call>, call: Call): Answer {
  try {
    return { ok: true, json: jsonText(run(na, unit, call)) };
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause;
    unit.refuse();
    return { ok: false, refusal: cause.refusal, details: cause.details };
  }
}

async function commit(na: Authority, unit: UnitOfWork): Promise<Pending> {
  const { writes, removals, nonces } = unit;
  const audit = na.audit.extend(unit.auditDrafts, unit.at);
  na.subjects.decide(unit);
  try {
    await na.store.commit({ subjects: writes, removals, nonces, audit });
  } catch (cause) {
    na.fatal('commit', cause);
    throw cause;
  }
  // What is on disk but not in memory would make every later decision wrong.
  const failed = (cause: unknown) => na.fatal('effects of a commit', cause);
  try {
    const pending = settle(na, unit, audit);
    for (const effect of pending) effect.catch(failed);
    return pending;
  } catch (cause) {
    failed(cause);
    throw cause;
  }
}

/** Lets what was stored take effect. */
function settle(na: Authority, unit: UnitOfWork, audit: readonly SealedEntry[]): Pending {
  na.subjects.settle(unit);
  const pending = takeEffect(unit);
  for (const { entry } of audit) {
    na.recentChanges.add(entry);
    na.trustCycles.add(entry);
    na.log(entry.event_type, entry.details);
  }
  na.publisher.withdraw('dashboard');
  return pending;
}
