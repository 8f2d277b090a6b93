/**
 * What the authority knows of its stored state, in memory. It is read once, and can be brought up to date for as long
 * as another process writes the state: nothing of it is published, and nothing written, before an authority opens on it.
 */
import type { Treaty } from '../../machines/recognition-treaty.ts';
import type { ImportedRevocation } from '../../machines/revocation-feed.ts';
import { DELETE_ENVELOPE_TOLERANCE } from '../contract/delete-envelope.ts';
import { GRAPH_DOCUMENTS } from '../contract/documents.ts';
import type { Runtime } from '../runtime.ts';
import type { AuthoritySigner } from '../signer/authority-signer.ts';
import { oneSliceATurn } from '../slices.ts';
import type { StoreChanges, StoreReading } from '../store/store.ts';
import { createRecognitionIndex, type RecognitionIndex } from '../views/recognition-index.ts';
import type { Authority, AuthoritySettings } from './engine/authority.ts';
import { idsInOrder } from './engine/ids-in-order.ts';
import { applyChanges, type RestoreTarget, restoreSubjects } from './engine/restore.ts';
import { createSubjects, type SubjectListener } from './engine/subjects.ts';
import { createAgentIndex } from './enrollment/agent-index.ts';
import { createCertificateIndex } from './enrollment/certificate-index.ts';
import { createInviteBatches } from './enrollment/invite-batches.ts';
import { type ConfiguredOperator, createOperatorRegistry } from './enrollment/operator-registry.ts';
import { createPolicyIndex } from './enrollment/policy-index.ts';
import { createLiveness } from './liveness/last-contact.ts';
import { createBulletinIssuer } from './publication/bulletin.ts';
import { createCounts } from './publication/counts.ts';
import { createRevocations } from './publication/crl.ts';
import { createFeeds } from './publication/feed.ts';
import { createListThreads, type ListThreading } from './publication/list-renderer.ts';
import { createRecentChanges } from './publication/recent-changes.ts';
import { createAttestations } from './recognition/attestation-list.ts';
import { createImportedFeeds } from './recognition/imported-feeds.ts';
import { createTrustCycleLog } from './recognition/trust-cycle-log.ts';
import { createKeptAnswers } from './replay/kept-answers.ts';
import { createNonceLedger } from './replay/nonce-ledger.ts';
import { createCertificateNumbers } from './tables/certificate-numbers.ts';

export interface StateOptions {
  readonly settings: AuthoritySettings;
  /** The operator keys of the configuration, by id. */
  readonly operators: ReadonlyMap<string, ConfiguredOperator>;
  /** How old or how far ahead a signed request may be, in milliseconds. */
  readonly clockTolerance: number;
  readonly signer: AuthoritySigner;
  readonly runtime: Runtime;
  readonly publisher: Authority['publisher'];
  /** A thread for long lists; without it they are rendered on this one. */
  readonly listThreading?: ListThreading;
}

/** The members of an authority that hold stored state. */
type Held = Pick<
  Authority,
  | 'subjects'
  | 'revocations'
  | 'feeds'
  | 'bulletin'
  | 'listThreads'
  | 'certificates'
  | 'certificateIds'
  | 'inviteIds'
  | 'inviteBatches'
  | 'operatorRegistry'
  | 'policies'
  | 'agents'
  | 'attestations'
  | 'recognition'
  | 'importedFeeds'
  | 'recentChanges'
  | 'trustCycles'
  | 'counts'
  | 'nonces'
  | 'keptAnswers'
  | 'liveness'
>;

export interface AuthorityState {
  readonly held: Held;
  /** Call once, and before anything else; when it rejects, the state cannot be used. */
  read(stored: Omit<StoreReading, 'end'>): Promise<void>;
  /** The same of changes that follow what was read. */
  apply(changes: Omit<StoreChanges, 'end'>): Promise<void>;
  /** Ends its thread, if it has one. */
  close(): Promise<void>;
}

export function createAuthorityState(options: StateOptions): AuthorityState {
  const { runtime, signer, settings, clockTolerance } = options;
  const numbers = createCertificateNumbers();
  const subjects = createSubjects(numbers);
  const listThreads =
    options.listThreading === undefined ? null : createListThreads(options.listThreading);
  const lists = {
    publisher: options.publisher,
    threads: listThreads,
    uuid: runtime.uuid,
    assertSigner: signer.assertAvailable,
  };
  const revocations = createRevocations({
    ...lists,
    signer: { ...signer, keyId: settings.keyId },
  });
  const bulletin = createBulletinIssuer({
    ...settings,
    revocations,
    signer: { ...signer, keyId: settings.keyId },
    publisher: options.publisher,
    elapsed: runtime.elapsed,
  });
  const feeds = createFeeds({ ...lists, signer, ownName: settings.networkName });
  const counts = createCounts(subjects);
  const certificates = createCertificateIndex({
    subjects,
    numbers,
    seed: runtime.randomBytes(4).readInt32LE(),
  });
  const certificateIds = idsInOrder(subjects, 'certificate');
  const inviteIds = idsInOrder(subjects, 'invite');
  const inviteBatches = createInviteBatches();
  const policies = createPolicyIndex();
  const agents = createAgentIndex();
  const attestations = createAttestations(subjects);
  const recognition = createRecognitionIndex();
  const importedFeeds = createImportedFeeds(recognition, () => {
    for (const name of GRAPH_DOCUMENTS) options.publisher.withdraw(name);
    options.publisher.withdraw('dashboard');
  });
  const recentChanges = createRecentChanges();
  const trustCycles = createTrustCycleLog();
  subjects.onDecided(revocations.followDecided);
  subjects.onDecided(feeds.followDecided);
  subjects.onDecided(certificates.follow);
  subjects.onRemoved(certificates.followRemovals);
  subjects.onRemoved((kind, id) => kind === 'certificate' && liveness.remove(id));
  subjects.onDecided(inviteBatches.follow);
  subjects.onRemoved(inviteBatches.followRemovals);
  subjects.onDecided(policies.follow);
  subjects.onCommitted(revocations.followCommitted);
  subjects.onCommitted(feeds.followCommitted);
  subjects.onCommitted(bulletin.followCommitted);
  subjects.onCommitted(agents.follow);
  subjects.onCommitted(importedFeeds.follow);
  subjects.onCommitted(recognitionFollower(recognition));
  const liveness = createLiveness(settings.activeWindow, numbers);
  const operatorRegistry = createOperatorRegistry(options.operators);
  // Twice the larger tolerance and a minute, so a nonce outlives every timestamp it could be replayed with.
  const nonces = createNonceLedger(
    2 * Math.max(clockTolerance, DELETE_ENVELOPE_TOLERANCE) + 60_000,
    runtime.elapsed,
  );
  const keptAnswers = createKeptAnswers();

  /** Whoever has gone quiet stays so when the clock is set back, as in a process that serves. */
  function target(): RestoreTarget {
    const activeSince = runtime.now() - settings.activeWindow;
    return { subjects, liveness, operatorKey: operatorRegistry.restored, activeSince };
  }

  async function takeRequests(from: Pick<StoreReading, 'nonces' | 'answers' | 'forgottenTimes'>) {
    nonces.restoreForgotten(from.forgottenTimes);
    for await (const batch of from.nonces) for (const nonce of batch) nonces.restore(nonce);
    for await (const batch of from.answers) for (const answer of batch) keptAnswers.keep(answer);
  }

  function takeAudit({ recentAudit }: Pick<StoreReading, 'recentAudit'>): void {
    for (const entry of recentAudit) {
      recentChanges.add(entry);
      trustCycles.add(entry);
    }
  }

  return {
    held: {
      subjects,
      revocations,
      feeds,
      bulletin,
      listThreads,
      certificates,
      certificateIds,
      inviteIds,
      inviteBatches,
      operatorRegistry,
      policies,
      agents,
      attestations,
      recognition,
      importedFeeds,
      recentChanges,
      trustCycles,
      counts,
      nonces,
      keptAnswers,
      liveness,
    },
    async read(stored) {
      takeAudit(stored);
      await restoreSubjects(stored, target());
      await takeRequests(stored);
    },
    async apply(changes) {
      takeAudit(changes);
      await applyChanges(changes, target());
      await takeRequests(changes);
      // A take-over of a large network has no time for what can be done now.
      liveness.putInOrder();
      liveness.activeCount(runtime.now());
      await oneSliceATurn(revocations.takeLoaded());
    },
    close: async () => listThreads?.close(),
  };
}

function recognitionFollower(index: RecognitionIndex): SubjectListener {
  return (kind, id, { context }) => {
    if (kind === 'recognition-treaty') index.putTreaty(id, context as Treaty);
    else if (kind === 'imported-revocation') index.putRevocation(context as ImportedRevocation);
  };
}
