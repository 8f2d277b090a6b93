/** Opens the authority on its store: restores every subject, then serves commands. */
import type { Treaty } from '../../machines/recognition-treaty.ts';
import type { ImportedRevocation } from '../../machines/revocation-feed.ts';
import type { Answer } from '../contract/answers.ts';
import type { Call, CallName } from '../contract/calls.ts';
import { DELETE_ENVELOPE_TOLERANCE } from '../contract/delete-envelope.ts';
import { GRAPH_DOCUMENTS } from '../contract/documents.ts';
import type { Runtime } from '../runtime.ts';
import type { AuthoritySigner } from '../signer/authority-signer.ts';
import type { Store, StoreContents, StoredLiveness } from '../store/store.ts';
import { createDashboardTreaties } from '../views/dashboard-treaties.ts';
import { createRecognitionIndex, type RecognitionIndex } from '../views/recognition-index.ts';
import { HANDLERS } from './commands.ts';
import { admitCalls } from './engine/admission.ts';
import { createAuditChain } from './engine/audit.ts';
import type { Authority, AuthoritySettings } from './engine/authority.ts';
import { execute, type Run } from './engine/execute.ts';
import { idsInOrder } from './engine/ids-in-order.ts';
import { summarizeRefusals } from './engine/refusal-audit.ts';
import { createRefusalAudit } from './engine/refusal-counter.ts';
import { restoreSubjects } from './engine/restore.ts';
import { createRetention, type RetentionPeriods } from './engine/retention.ts';
import { createSliceQueue } from './engine/sliced.ts';
import { createSubjects, type SubjectListener } from './engine/subjects.ts';
import { createAgentIndex } from './enrollment/agent-index.ts';
import { evictAgents } from './enrollment/agents.ts';
import { createCertificateIndex } from './enrollment/certificate-index.ts';
import { publishOperatorKeys } from './enrollment/operator-keys.ts';
import { type ConfiguredOperator, createOperatorRegistry } from './enrollment/operator-registry.ts';
import { policyPublisher } from './enrollment/policies.ts';
import { createPolicyIndex } from './enrollment/policy-index.ts';
import { createBeatPace } from './liveness/beat-advice.ts';
import { createLiveness } from './liveness/last-contact.ts';
import { createRosters } from './liveness/open-rosters.ts';
import { createBulletinIssuer } from './publication/bulletin.ts';
import { createCounts } from './publication/counts.ts';
import { createRevocations } from './publication/crl.ts';
import { refreshCrl, restoreCrl } from './publication/crl-calls.ts';
import { refreshDashboard } from './publication/dashboard.ts';
import { createDashboardPace } from './publication/dashboard-pace.ts';
import { createEventTail } from './publication/event-tail.ts';
import { createExpiryCensus } from './publication/expiry-census.ts';
import { createFailureWindow } from './publication/failure-window.ts';
import { createFeeds } from './publication/feed.ts';
import { refreshFeeds, restoreFeeds } from './publication/feed-calls.ts';
import { createFleetCensus } from './publication/fleet-census.ts';
import { refreshGraph } from './publication/graph.ts';
import { createGraphDigest } from './publication/graph-digest.ts';
import { createListThreads, type ListThreading } from './publication/list-renderer.ts';
import { createRecentChanges } from './publication/recent-changes.ts';
import { createSharedWork } from './publication/shared-work.ts';
import type { SignedSequence } from './publication/signed-sequence.ts';
import { NOTHING_COUNTED, NOTHING_KNOWN, type Vitals } from './publication/vitals.ts';
import { createAttestations } from './recognition/attestation-list.ts';
import { createImportedFeeds } from './recognition/imported-feeds.ts';
import { createTrustCycleLog } from './recognition/trust-cycle-log.ts';
import { createTrustGraphCopy } from './recognition/trust-graph-copy.ts';
import { createEarlierRequests } from './replay/earlier-requests.ts';
import { createKeptAnswers } from './replay/kept-answers.ts';
import { createNonceLedger } from './replay/nonce-ledger.ts';
import { createNonceWindows } from './replay/nonce-window.ts';
import { createUnstoredTimes, reserveOf } from './replay/unstored-times.ts';
import { createCertificateNumbers } from './tables/certificate-numbers.ts';

export interface AuthorityOptions {
  readonly settings: AuthoritySettings;
  /** The operator keys of the configuration, by id. */
  readonly operators: ReadonlyMap<string, ConfiguredOperator>;
  /** How old or how far ahead a signed request may be, in milliseconds. */
  readonly clockTolerance: number;
  /** Milliseconds from one call of `flush` to the next. */
  readonly flushInterval: number;
  readonly retention: RetentionPeriods;
  readonly signer: AuthoritySigner;
  readonly runtime: Runtime;
  readonly store: Store;
  readonly publisher: Authority['publisher'];
  readonly log: Authority['log'];
  readonly countRefusal: Authority['countRefusal'];
  readonly fatal: Authority['fatal'];
  /** What the authority cannot tell from its own state. */
  readonly vitals?: () => Vitals;
  /** A thread for long lists; without it they are rendered on this one. */
  readonly listThreading?: ListThreading;
}

export interface OpenAuthority {
  readonly call: Call;
  /** Writes liveness to the store and forgets nonces whose time has passed. */
  flush(): Promise<void>;
  /** Continues to remove what retention no longer keeps, for one bounded unit. */
  sweep(): Promise<void>;
  /** The clock was set: what was recorded under the old time must not affect the new one. */
  clockSet(): void;
  /** Re-issues every signed list whose lifetime is half over. */
  renewLists(): Promise<void>;
  /** Looks at all nodes and treaties for what is wrong with them. */
  judgePosture(): Promise<void>;
  /** Refuses every further command. */
  seal(): void;
  /** Refuses every command, flushes for the last time and releases the store. */
  close(): Promise<void>;
  /** Releases the store unchanged: nothing was served. */
  abandon(): Promise<void>;
}

/** Calls whose answers name the graph they rest on by its digest. */
const CITES_GRAPH: ReadonlySet<CallName> = new Set<CallName>([
  'offerCapabilities',
  'counterOffer',
  'acceptAgreement',
  'buildEvidence',
  'considerTrust',
]);

/** A start after a crash is not delayed by more than this. */
const LONGEST_WAIT_MS = 2000;

const SHUTTING_DOWN: Answer = { ok: false, refusal: 'shutting_down', details: {} };

export async function openAuthority(options: AuthorityOptions): Promise<OpenAuthority> {
  const calls = admitCalls(HANDLERS);
  const stored = await options.store.load();
  await waitUntilPast(options, stored);
  const na = await restoreAuthority(options, stored);
  let sealed = false;
  try {
    na.revocations.endLoading();
    na.feeds.endLoading();
    na.attestations.items();
    na.importedFeeds.endLoading();
    await restoreLists(na);
    // If the clock was set back, contacts were, too: before a renewal is stored that they are older than.
    await storeLiveness(na, na.liveness.takeDirty());
  } catch (cause) {
    await na.listThreads?.close();
    throw cause;
  }

  async function flush(isLast: boolean): Promise<void> {
    await execute(na, evictAgents, null);
    await execute(na, summarizeRefusals, { all: isLast });
    const now = na.runtime.now();
    const forgotten = na.nonces.forget(now);
    na.keptAnswers.forget(forgotten);
    na.windows.forgetIdle(now);
    try {
      const rows = na.liveness.takeDirty();
      if (rows.length > 0) await storeLiveness(na, rows);
      await na.store.forgetNonces(forgotten, na.nonces.forgottenTimes());
    } catch (cause) {
      na.fatal('liveness flush', cause);
      throw cause;
    }
  }

  const retention = createRetention(options.retention, na.runtime.elapsed);
  function seal(): void {
    sealed = true;
  }

  return {
    call(name, given) {
      if (sealed) return SHUTTING_DOWN;
      const run = calls.get(name);
      if (run === undefined) throw new Error(`There is no call ${name}`);
      const perform = () => execute(na, run as Run<typeof given>, given);
      if (!CITES_GRAPH.has(name) || na.graphDigest.isKnown(na.runtime.now())) return perform();
      // A large graph is built in slices, which a decision cannot wait for.
      const built = Promise.resolve(execute(na, refreshGraph, null));
      return built.then(() => (sealed ? SHUTTING_DOWN : perform()));
    },
    flush: () => flush(false),
    async renewLists() {
      await execute(na, refreshCrl, null);
      await execute(na, refreshFeeds, null);
    },
    async sweep() {
      await execute(na, retention.sweep, null);
    },
    async judgePosture() {
      await execute(na, refreshDashboard, null);
    },
    clockSet() {
      const now = na.runtime.now();
      na.windows.clockSetBack(now);
      na.liveness.clockSetBack(now);
      retention.clockSet();
    },
    seal,
    async close() {
      // What is acknowledged later than the last flush would be lost.
      seal();
      await na.lastCommit;
      await flush(true);
      await Promise.all(listsOf(na).map((list) => list.settled()));
      await na.listThreads?.close();
      // A stop soon after a crash does not bring back the contacts that the crash lost.
      if (na.earlierRequests.outliveProcess()) await na.store.abandon();
      else await na.store.close();
    },
    async abandon() {
      await na.listThreads?.close();
      await na.store.abandon();
    },
  };
}

/**
 * After a crash, heartbeats signed within the last stored range are refused. Its end is at most a moment
 * ahead, so requests signed from now on need not meet it.
 */
async function waitUntilPast({ runtime, flushInterval }: AuthorityOptions, stored: StoreContents) {
  if (stored.previousOwner !== 'lost') return;
  const ahead = stored.unstoredTimes.map(([, until]) => until - runtime.now());
  const moment = Math.min(reserveOf(flushInterval), LONGEST_WAIT_MS);
  await runtime.pause(Math.max(0, ...ahead.filter((wait) => wait <= moment)));
}

async function storeLiveness(na: Authority, rows: readonly StoredLiveness[]): Promise<void> {
  await na.store.touchMany(rows, na.unstoredTimes.next(na.runtime.now()));
  na.unstoredTimes.stored();
}

/** The list of certificates comes last: the feeds recognize a first start by its absence. */
async function restoreLists(na: Authority): Promise<void> {
  for (const restore of [restoreFeeds, restoreCrl]) {
    const answer = await execute(na, restore, null);
    if (!answer.ok) throw new Error(`The signed lists cannot be published: ${answer.refusal}`);
  }
  await Promise.all(listsOf(na).map((list) => list.ready()));
}

function listsOf({ revocations, feeds }: Authority): readonly SignedSequence[] {
  return [revocations.list, ...feeds.all()];
}

async function restoreAuthority(
  options: AuthorityOptions,
  stored: StoreContents,
): Promise<Authority> {
  const { runtime, signer, settings, clockTolerance } = options;
  const startedAt = runtime.now();
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
    logSize: stored.auditLength,
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
  for (const entry of stored.recentAudit) {
    recentChanges.add(entry);
    trustCycles.add(entry);
  }
  subjects.onDecided(revocations.followDecided);
  subjects.onDecided(feeds.followDecided);
  subjects.onDecided(certificates.follow);
  subjects.onRemoved(certificates.followRemovals);
  subjects.onRemoved((kind, id) => kind === 'certificate' && liveness.remove(id));
  subjects.onDecided(policies.follow);
  subjects.onCommitted(revocations.followCommitted);
  subjects.onCommitted(feeds.followCommitted);
  subjects.onCommitted(bulletin.followCommitted);
  subjects.onCommitted(agents.follow);
  subjects.onCommitted(policyPublisher(options.publisher));
  subjects.onCommitted(importedFeeds.follow);
  subjects.onCommitted(recognitionFollower(recognition, options.publisher));
  const liveness = createLiveness(settings.activeWindow, numbers);
  const operatorRegistry = createOperatorRegistry(options.operators);
  await restoreSubjects(stored, {
    subjects,
    liveness,
    operatorKey: operatorRegistry.restored,
    activeSince: startedAt - settings.activeWindow,
  });
  const lastContactAt = liveness.latest();
  liveness.clockSetBack(startedAt);
  operatorRegistry.addConfigured(subjects);
  publishOperatorKeys(subjects, options.publisher);

  // Twice the larger tolerance and a minute, so a nonce outlives every timestamp it could be replayed with.
  const nonces = createNonceLedger(
    2 * Math.max(clockTolerance, DELETE_ENVELOPE_TOLERANCE) + 60_000,
    runtime.elapsed,
    stored.forgottenTimes,
  );
  for await (const batch of stored.nonces) for (const nonce of batch) nonces.restore(nonce);
  const keptAnswers = createKeptAnswers();
  for await (const batch of stored.answers) for (const answer of batch) keptAnswers.keep(answer);
  await stored.dispose();
  const earlierRequests = createEarlierRequests({
    closedCleanly: stored.previousOwner !== 'lost',
    startedAt,
    lastContactAt,
    unstoredTimes: stored.unstoredTimes,
    reserveMs: reserveOf(options.flushInterval),
    toleranceMs: clockTolerance,
    now: runtime.now,
    elapsed: runtime.elapsed,
    newestSignedBy: (nodeKey) =>
      certificates
        .ownedBy(nodeKey)
        .reduce((newest, id) => Math.max(newest, liveness.newestSignedAt(id)), 0),
  });
  const unstoredTimes = createUnstoredTimes({
    startedAt,
    toleranceMs: clockTolerance,
    flushIntervalMs: options.flushInterval,
    lostTimes: earlierRequests.lostTimes,
  });

  const failures = createFailureWindow(runtime.elapsed);
  return {
    ...options,
    vitals: options.vitals ?? (() => NOTHING_KNOWN),
    failures,
    countRefusal(event, reason) {
      failures.note(event);
      options.countRefusal(event, reason);
    },
    counted: { facts: NOTHING_COUNTED },
    fleetCensus: createFleetCensus({
      subjects,
      certificates,
      liveness,
      activeWindow: settings.activeWindow,
      startedAt,
      elapsed: runtime.elapsed,
    }),
    expiryCensus: createExpiryCensus({ subjects, now: runtime.now, elapsed: runtime.elapsed }),
    lastCommit: Promise.resolve(),
    subjects,
    revocations,
    feeds,
    bulletin,
    eventTail: createEventTail(stored.auditLength),
    listThreads,
    certificates,
    certificateIds,
    inviteIds,
    operatorRegistry,
    policies,
    agents,
    attestations,
    recognition,
    importedFeeds,
    graphDigest: createGraphDigest(recognition),
    graphWork: createSharedWork(),
    trustGraph: createTrustGraphCopy(recognition),
    sliceQueue: createSliceQueue(),
    license: { policy: undefined },
    recentChanges,
    dashboardPace: createDashboardPace(runtime),
    dashboardTreaties: createDashboardTreaties(),
    trustCycles,
    counts,
    nonces,
    windows: createNonceWindows(clockTolerance, earlierRequests.floorOf),
    earlierRequests,
    keptAnswers,
    unstoredTimes,
    refusals: createRefusalAudit(settings.singleRefusals, runtime.elapsed),
    audit: createAuditChain(stored.auditHead, runtime),
    liveness,
    rosters: createRosters(),
    beatPace: createBeatPace(settings.activeWindow, runtime.elapsed),
  };
}

/** Every change of the graph withdraws the documents derived from it. */
function recognitionFollower(
  index: RecognitionIndex,
  publisher: Authority['publisher'],
): SubjectListener {
  return (kind, id, { context }) => {
    if (kind === 'recognition-treaty') index.putTreaty(id, context as Treaty);
    else if (kind === 'imported-revocation') index.putRevocation(context as ImportedRevocation);
    else return;
    for (const name of GRAPH_DOCUMENTS) publisher.withdraw(name);
  };
}
