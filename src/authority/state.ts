/**
 * The authority's stored state in memory. It is read once, and can be kept up to date while another process writes the
 * state. Nothing in it is published, and nothing is written, before an authority is opened on it.
 */
import type { Attestation } from '../../machines/attestation.ts';
import { restoredRevocationId } from '../../machines/one-record.ts';
import type { Treaty } from '../../machines/recognition-treaty.ts';
import type { Runtime } from '../base/runtime.ts';
import type { AuthoritySigner } from '../base/signer/authority-signer.ts';
import { oneSliceATurn } from '../base/work.ts';
import { type DocumentPublisher, GRAPH_DOCUMENTS } from '../protocol/contract/documents.ts';
import type { StoreChanges, StoreReading } from '../store/store.ts';
import { createAgentIndex } from './agents.ts';
import type { AuthoritySettings } from './authority.ts';
import { createAuthorityKeys } from './authority-keys.ts';
import { createCertificateIndex } from './certificates/certificate-index.ts';
import { createLiveness } from './certificates/last-contact.ts';
import { createCounts } from './counts.ts';
import { createRecentAudit } from './events.ts';
import { createInviteBatches } from './invites.ts';
import { createBulletinIssuer } from './lists/bulletin.ts';
import { createRevocations } from './lists/crl.ts';
import { createFeeds } from './lists/feed.ts';
import { createListThreads, type ListThreading } from './lists/list-rendering.ts';
import { type ConfiguredOperator, createOperatorRegistry } from './operator-keys.ts';
import { createPolicyIndex } from './policies.ts';
import { createImportedFeeds } from './recognition/imported-feeds.ts';
import { createRecognitionIndex } from './recognition/recognition-index.ts';
import { createRecordLists } from './recognition/record-lists.ts';
import { createReplay } from './replay/replay.ts';
import { applyChanges, type RestoreTarget, restoreSubjects } from './restore.ts';
import { createCertificateNumbers } from './subjects/numbering.ts';
import { SortedTexts } from './subjects/sorted-texts.ts';
import { createSubjects } from './subjects/subjects.ts';

export interface StateOptions {
  readonly settings: AuthoritySettings;
  /** The operator keys in the configuration, by id. */
  readonly operators: ReadonlyMap<string, ConfiguredOperator>;
  /** How far in the past or future the signing time of a request may be, in milliseconds. */
  readonly clockTolerance: number;
  /** Milliseconds from one call to `flush` to the next. */
  readonly flushInterval: number;
  readonly signer: AuthoritySigner;
  readonly runtime: Runtime;
  readonly publisher: DocumentPublisher;
  /** Starts a thread for long lists; without it, they are rendered on this thread. */
  readonly listThreading?: ListThreading;
}

export type AuthorityState = ReturnType<typeof createAuthorityState>;

export function createAuthorityState(options: StateOptions) {
  const { runtime, signer, settings } = options;
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
  const authorityKeys = createAuthorityKeys();
  const revocations = createRevocations({
    ...lists,
    signer,
    issuerOf: (sequence) => authorityKeys.chain().issuerOf(sequence) ?? signer.publicKey,
    issuers() {
      const { current, previous, staged } = authorityKeys.chain();
      const others = [previous, staged].flatMap((key) => key?.publicKey ?? []);
      return [current?.publicKey ?? signer.publicKey, ...others];
    },
    revoked(id) {
      const certificate = subjects.current('certificate', id);
      if (certificate?.value === 'revoked') return { kind: 'certificate', id, ...certificate };
      const restoredId = restoredRevocationId('crl', id);
      const restored = subjects.current('restored-revocation', restoredId);
      return restored ? { kind: 'restored-revocation', id: restoredId, ...restored } : null;
    },
  });
  const bulletin = createBulletinIssuer({
    ...settings,
    revocations,
    signer,
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
  const certificateIds = new SortedTexts();
  const inviteIds = new SortedTexts();
  const inviteBatches = createInviteBatches();
  const policies = createPolicyIndex();
  const agents = createAgentIndex();
  const attestations = createRecordLists<Attestation>();
  const treaties = createRecordLists<Treaty>();
  const recognition = createRecognitionIndex();
  const importedFeeds = createImportedFeeds(recognition, () => {
    for (const name of GRAPH_DOCUMENTS) options.publisher.withdraw(name);
    options.publisher.withdraw('dashboard');
  });
  const recentAudit = createRecentAudit();
  const liveness = createLiveness(settings.activeWindow, numbers);
  const operatorRegistry = createOperatorRegistry(options.operators);
  const replay = createReplay({
    toleranceMs: options.clockTolerance,
    flushIntervalMs: options.flushInterval,
    now: runtime.now,
    elapsed: runtime.elapsed,
    newestSignedBy: (nodeKey) =>
      certificates
        .ownedBy(nodeKey)
        .reduce((newest, id) => Math.max(newest, liveness.newestSignedAt(id)), 0),
  });

  // Called for every subject at startup, so these functions must not allocate.
  subjects.follow({
    certificate: {
      decided(id, certificate) {
        revocations.decided('certificate', id, certificate);
        certificates.add(id, certificate);
      },
      committed(id, certificate) {
        counts.certificateCommitted(certificate);
        revocations.committed(id, certificate);
      },
      added: (id) => certificateIds.add(id),
      removed(id, certificate) {
        certificates.remove(id, certificate);
        certificateIds.delete(id);
        liveness.remove(id);
      },
    },
    'node-key': { decided: revocations.compromise },
    'node-description': { committed: certificates.describe },
    invite: {
      decided: inviteBatches.put,
      added: (id) => inviteIds.add(id),
      removed(id, invite) {
        inviteBatches.remove(id, invite);
        inviteIds.delete(id);
      },
    },
    attestation: {
      decided: (id, attestation) => feeds.decided('attestation', id, attestation),
      committed(id, attestation) {
        attestations.put(id, attestation);
        feeds.committed(id, attestation);
      },
    },
    'restored-revocation': {
      decided(id, revocation) {
        revocations.decided('restored-revocation', id, revocation);
        feeds.decided('restored-revocation', id, revocation);
      },
    },
    'sovereign-feed': { decided: (_, { context }) => void feeds.of(context.issuer) },
    'recognition-treaty': {
      committed(id, treaty) {
        treaties.put(id, treaty);
        recognition.putTreaty(id, treaty.context);
      },
    },
    'revocation-import': { committed: importedFeeds.load },
    policy: { decided: policies.put, committed: bulletin.policyCommitted },
    'authority-key': { decided: authorityKeys.put, removed: authorityKeys.remove },
    'operator-key': { decided: operatorRegistry.put },
    'agent-registration': { committed: agents.put },
  });

  /** Silent certificates remain inactive when the clock is set back, as in a serving process. */
  function target(): RestoreTarget {
    const now = runtime.now();
    const activeSince = now - settings.activeWindow;
    return { subjects, liveness, operatorKey: operatorRegistry.restored, activeSince, now };
  }

  function takeAudit(stored: Pick<StoreReading, 'recentAudit'>): void {
    for (const entry of stored.recentAudit) recentAudit.add(entry);
  }

  return {
    held: {
      subjects,
      revocations,
      feeds,
      bulletin,
      /** Null if lists of any length are rendered on this thread. */
      listThreads,
      certificates,
      certificateIds,
      inviteIds,
      inviteBatches,
      operatorRegistry,
      policies,
      authorityKeys,
      agents,
      attestations,
      treaties,
      recognition,
      importedFeeds,
      recentAudit,
      counts,
      replay,
      liveness,
    },
    /** Call once, before anything else. If it rejects, the state cannot be used. */
    async read(stored: Omit<StoreReading, 'end'>): Promise<void> {
      takeAudit(stored);
      await restoreSubjects(stored, target());
      await replay.restore(stored);
    },
    /** Applies changes that were stored after what was read. */
    async apply(changes: Omit<StoreChanges, 'end'>): Promise<void> {
      takeAudit(changes);
      await applyChanges(changes, target());
      await replay.restore(changes);
      // Done now to keep the takeover of a large network fast.
      liveness.putInOrder();
      liveness.activeCount(runtime.now());
      for (const list of [revocations.list, ...feeds.all()]) await oneSliceATurn(list.takeLoaded());
      await oneSliceATurn(revocations.prepareDigests());
    },
    /** Ends the list thread, if there is one. */
    close: async (): Promise<void> => listThreads?.close(),
  };
}
