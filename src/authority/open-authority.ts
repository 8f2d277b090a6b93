/** Opens the authority on its store: restores every subject, then serves commands. */
import type { OperatorKey, Tier } from '../../machines/operator-key.ts';
import type { Treaty } from '../../machines/recognition-treaty.ts';
import type { ImportedRevocation } from '../../machines/revocation-feed.ts';
import { step } from '../../machines/step.ts';
import type { Signer } from '../crypto/ed25519.ts';
import type { Runtime } from '../runtime.ts';
import type { Store } from '../store/store.ts';
import { createRecognitionIndex, type RecognitionIndex } from '../views/recognition-index.ts';
import { createAgentIndex } from './agent-index.ts';
import {
  countAgents,
  evictAgents,
  listAgents,
  readAgent,
  registerAgent,
  removeAgent,
} from './agents.ts';
import { acceptAgreement, counterOffer, offerCapabilities } from './agreements.ts';
import { createAttestationLog } from './attestation-log.ts';
import {
  issueAttestation,
  listAttestations,
  readAttestation,
  revokeAttestation,
} from './attestations.ts';
import { createAuditChain } from './audit.ts';
import { type Authority, type AuthoritySettings, execute, type Handler } from './authority.ts';
import { decideBoundary } from './boundary.ts';
import { createCertificateIndex } from './certificate-index.ts';
import { heartbeat, join, renew } from './certificates.ts';
import type { Answer } from './commands.ts';
import { assembleConsensus, castVote } from './consensus.ts';
import { refreshCrl, restoreCrl } from './crl.ts';
import { createCrlPress, type PressingBeside } from './crl-press.ts';
import { createRecentChanges, refreshDashboard } from './dashboard.ts';
import { createLicensePolicy, declareIntent } from './data-usage.ts';
import { commitCapabilities, nullifyProof } from './disclosure.ts';
import { GRAPH_DOCUMENTS } from './documents.ts';
import { buildEvidence } from './evidence.ts';
import { createFigures } from './figures.ts';
import { createGraphDigest, refreshGraph, trustPath } from './graph.ts';
import { createInvites } from './invites.ts';
import { createLiveness } from './liveness.ts';
import { closeRoster, countNodes, openRoster, readRoster } from './nodes.ts';
import { createNonceLedger, createNonceWindows } from './nonces.ts';
import { revokeOperatorKey } from './operators.ts';
import {
  ensurePolicy,
  policyPublisher,
  publishPolicy,
  readPolicyHistory,
  rollBackPolicy,
} from './policy.ts';
import { createPolicyIndex } from './policy-index.ts';
import {
  askRevocations,
  importFeed,
  readRecognitionPolicy,
  setRecognitionPolicy,
} from './recognition.ts';
import { restoreSubjects } from './restore-subjects.ts';
import { createRevocationLog } from './revocation-log.ts';
import { revokeCertificate } from './revocations.ts';
import { createRosters } from './rosters.ts';
import { readForeignFeed, restoreFeed } from './sovereign-feed.ts';
import { awaitPublications, checkReadiness, readFigures } from './status.ts';
import { createSubjects, MACHINES, type Subject, type SubjectListener } from './subjects.ts';
import { issueTreaty, listTreaties, readTreaty, revokeTreaty } from './treaties.ts';
import { runTrustCycle } from './trust-cycle.ts';
import { createTrustCycleLog } from './trust-cycle-log.ts';

const TRUST_COMMANDS = {
  offerCapabilities,
  counterOffer,
  acceptAgreement,
  decideBoundary,
  buildEvidence,
  commitCapabilities,
  nullifyProof,
  castVote,
  assembleConsensus,
  createLicensePolicy,
  declareIntent,
} as const;

const COMMANDS = {
  join,
  heartbeat,
  renew,
  createInvites,
  revokeCertificate,
  revokeOperatorKey,
  countNodes,
  openRoster,
  readRoster,
  closeRoster,
  ensurePolicy,
  publishPolicy,
  rollBackPolicy,
  readPolicyHistory,
  refreshCrl,
  registerAgent,
  removeAgent,
  countAgents,
  listAgents,
  readAgent,
  issueAttestation,
  revokeAttestation,
  listAttestations,
  readAttestation,
  setRecognitionPolicy,
  readRecognitionPolicy,
  issueTreaty,
  revokeTreaty,
  listTreaties,
  readTreaty,
  importFeed,
  readForeignFeed,
  askRevocations,
  refreshGraph,
  refreshDashboard,
  runTrustCycle,
  awaitPublications,
  trustPath,
  ...TRUST_COMMANDS,
  readFigures,
  checkReadiness,
} as const;

export type CommandName = keyof typeof COMMANDS;
/** Commands that build and sign records of the trust protocol. */
export type TrustCommand = keyof typeof TRUST_COMMANDS;
export type CommandOf<Name extends CommandName> = Parameters<(typeof COMMANDS)[Name]>[2];

/** Sends one command to the authority; the answer is a promise when something has to be stored. */
export type Call = <Name extends CommandName>(
  name: Name,
  command: CommandOf<Name>,
) => Answer | Promise<Answer>;

export interface AuthorityOptions {
  readonly settings: AuthoritySettings;
  readonly operatorTiers: ReadonlyMap<string, Tier>;
  /** Milliseconds a signed request may be old or ahead. */
  readonly clockTolerance: number;
  readonly signer: Signer;
  readonly runtime: Runtime;
  readonly store: Store;
  readonly board: Authority['board'];
  readonly log: Authority['log'];
  readonly fatal: Authority['fatal'];
  /** A thread for long revocation lists; without it they are made on this one. */
  readonly pressing?: PressingBeside;
}

export interface OpenAuthority {
  readonly call: Call;
  /** Writes liveness to the store and forgets nonces whose time has passed. */
  flush(): Promise<void>;
  /** Flushes for the last time and gives the store back. */
  close(): Promise<void>;
}

export async function openAuthority(options: AuthorityOptions): Promise<OpenAuthority> {
  const na = restoreAuthority(options);
  await na.store.endLoading();
  await execute(na, restoreCrl, null);
  await execute(na, restoreFeed, null);
  await na.crlPress.ready();

  async function flush(): Promise<void> {
    const now = na.runtime.now();
    const rows = na.liveness.takeDirty();
    na.nonces.forget(now);
    await execute(na, evictAgents, null);
    try {
      if (rows.length > 0) await na.store.touchMany(rows);
      await na.store.forgetNonces(now);
    } catch (cause) {
      na.fatal(cause);
      throw cause;
    }
  }

  return {
    call: (name, command) => execute(na, COMMANDS[name] as Handler<typeof command>, command),
    flush,
    async close() {
      await flush();
      await na.crlPress.close();
      await na.store.close();
    },
  };
}

function restoreAuthority(options: AuthorityOptions): Authority {
  const { store, runtime, signer, settings, clockTolerance } = options;
  const stored = store.load();
  const subjects = createSubjects();
  const revocations = createRevocationLog(signer.publicKey);
  const figures = createFigures(subjects);
  const certificates = createCertificateIndex(subjects, runtime.randomBytes(4).readInt32LE());
  const policies = createPolicyIndex();
  const agents = createAgentIndex();
  const attestationLog = createAttestationLog();
  const recognition = createRecognitionIndex();
  const recentChanges = createRecentChanges();
  const trustCycles = createTrustCycleLog();
  for (const entry of stored.recentAudit) {
    recentChanges.add(entry);
    trustCycles.add(entry);
  }
  subjects.onDecided(revocations.follow);
  subjects.onDecided(certificates.follow);
  subjects.onDecided(policies.follow);
  subjects.onDecided(attestationLog.followDecided);
  subjects.onCommitted(attestationLog.followCommitted);
  subjects.onCommitted(agents.follow);
  subjects.onCommitted(policyPublisher(options.board));
  subjects.onCommitted(recognitionFollower(recognition, options.board));
  const liveness = createLiveness(settings.activeWindow);
  restoreSubjects(stored, {
    subjects,
    liveness,
    operatorKeys: options.operatorTiers,
    activeSince: runtime.now() - settings.activeWindow,
  });
  for (const [id, tier] of options.operatorTiers) {
    if (subjects.current('operator-key', id) === undefined) {
      subjects.restore('operator-key', id, configuredKey(tier));
    }
  }

  // Twice the tolerance, and a minute: a nonce outlives every timestamp it could be replayed with.
  const nonces = createNonceLedger(2 * clockTolerance + 60_000);
  for (const nonce of stored.nonces) nonces.restore(nonce);
  // After a crash up to one flush of accepted heartbeats is not known: nothing signed before now passes.
  const globalFloor = stored.closedCleanly ? 0 : runtime.now();
  const windows = createNonceWindows(clockTolerance, (nodeKey) =>
    certificates
      .ownedBy(nodeKey)
      .reduce((floor, id) => Math.max(floor, liveness.newestSignedAt(id)), globalFloor),
  );

  return {
    ...options,
    lastCommit: Promise.resolve(),
    subjects,
    revocations,
    crlPress: createCrlPress({
      issuer: { ...signer, keyId: settings.keyId },
      revocations,
      board: options.board,
      beside: options.pressing,
    }),
    certificates,
    policies,
    agents,
    attestationLog,
    recognition,
    graphDigest: createGraphDigest(recognition),
    license: { policy: undefined },
    recentChanges,
    trustCycles,
    figures,
    nonces,
    windows,
    audit: createAuditChain(stored.auditHead, runtime),
    liveness,
    rosters: createRosters(),
  };
}

/** Every change of the graph takes the documents made from it back. */
function recognitionFollower(index: RecognitionIndex, board: Authority['board']): SubjectListener {
  return (kind, id, { context }) => {
    if (kind === 'recognition-treaty') index.putTreaty(id, context as Treaty);
    else if (kind === 'imported-revocation') index.putRevocation(context as ImportedRevocation);
    else return;
    for (const name of GRAPH_DOCUMENTS) board.withdraw(name);
  };
}

function configuredKey(tier: Tier): Subject<'operator-key'> {
  const { next } = step(MACHINES['operator-key'], undefined, { type: 'configure', tier });
  return { version: 0, value: next.value, context: next.context as OperatorKey };
}
