/** Opens the authority: reads the state from the store, unless a ready state is passed in, then serves commands. */

import { formatInstant } from '../base/timestamp.ts';
import { oneSliceATurn } from '../base/work.ts';
import type { Answer, Call, CallName } from '../protocol/contract/calls.ts';
import { GRAPH_DOCUMENTS } from '../protocol/contract/documents.ts';
import type { StatePosition, Store } from '../store/store.ts';
import { evictAgents } from './agents.ts';
import {
  type Authority,
  authorityOn,
  type OpeningFacts,
  type ServiceOptions,
} from './authority.ts';
import { HANDLERS } from './commands.ts';
import { refreshDashboard } from './dashboard/dashboard.ts';
import { admitCalls } from './engine/admission.ts';
import { execute, type Run } from './engine/execute.ts';
import { summarizeRefusals } from './engine/refusal-audit.ts';
import { CRL_ID, refreshCrl } from './lists/crl.ts';
import { refreshFeeds } from './lists/feed.ts';
import type { SignedList } from './lists/signed-list.ts';
import { refreshGraph } from './recognition/graph.ts';
import { endOverlaps } from './recognition/treaty-following.ts';
import { createRetention, type RetentionPeriods } from './retention.ts';
import { type AuthorityState, createAuthorityState } from './state.ts';
import { keepKeys, useKeys } from './succession/changes.ts';

/** What a waiting instance has learned about the state from other instances. */
export interface SeenState {
  /** The newest state that it has read; null if it has read none. */
  readonly position: StatePosition | null;
  readonly list: SeenList;
}

/** The newest revocation list that the instance has served. */
export interface SeenList {
  /** 0 if it has served none. */
  readonly sequence: number;
  /** The last certificate on the list; null if the list is empty. */
  readonly lastRevoked: string | null;
}

/** Thrown if the state is older than what this process has already seen. */
export class OlderState extends Error {}

export interface AuthorityOptions extends ServiceOptions {
  readonly retention: RetentionPeriods;
  /** Null if the process has not waited for another one. */
  readonly seen: SeenState | null;
}

/** A state that was kept up to date while another process was writing, and the facts as of its last revision. */
export interface ReadyState {
  readonly state: AuthorityState;
  readonly revision: number;
  readonly facts: OpeningFacts;
}

export type OpenAuthority = Awaited<ReturnType<typeof openAuthority>>;

/** Documents without entries of their own, which say what holds at the time when they are made, and until when. */
const OF_THE_TIME = ['bulletin', 'dashboard', ...GRAPH_DOCUMENTS] as const;

/** Calls whose answers cite the digest of the graph that they are based on. */
const CITES_GRAPH: ReadonlySet<CallName> = new Set<CallName>([
  'offerCapabilities',
  'counterOffer',
  'acceptAgreement',
  'buildEvidence',
  'considerTrust',
]);

/** Calls after which another key issues the revocation list. */
const CHANGES_ISSUER: ReadonlySet<CallName> = new Set<CallName>([
  'activateSuccession',
  'rollBackAuthorityKey',
]);

const SHUTTING_DOWN: Answer = { ok: false, refusal: 'shutting_down', details: {} };

/** Reads the state unless `ready` is given. Rejects with `OlderState` before publishing anything from the state. */
export async function openAuthority(options: AuthorityOptions, ready: ReadyState | null = null) {
  const calls = admitCalls(HANDLERS);
  const { state, facts } = ready ?? (await readState(options));
  try {
    const { seen, store } = options;
    if (seen !== null) await assertNotOlder(store, seen, storedList(state));
  } catch (cause) {
    await state.close();
    throw cause;
  }
  const { replay } = state.held;
  const { previousOwner, unstoredTimes } = facts;
  if (previousOwner === 'lost') await options.runtime.pause(replay.afterCrash(unstoredTimes));
  else replay.afterStop(unstoredTimes);
  const na = authorityOn(options, state, facts);
  const keepDueKeys = keeperOfKeys(na);
  let sealed = false;
  try {
    await startWithKeys(na);
    na.revocations.list.endLoading();
    na.feeds.endLoading();
    na.attestations.endLoading();
    na.treaties.endLoading();
    na.recognition.endLoading();
    na.importedFeeds.endLoading();
    await restoreLists(na);
    await na.contactWriter.storeRange();
    await keepDueKeys();
  } catch (cause) {
    await na.listThreads?.close();
    throw cause;
  }

  async function flush(isLast: boolean): Promise<void> {
    await execute(na, evictAgents, null);
    await execute(na, summarizeRefusals, { all: isLast });
    const now = na.runtime.now();
    const forgotten = na.replay.forget(now);
    try {
      await na.contactWriter.flush();
      await na.store.forgetNonces(forgotten, na.replay.forgottenTimes());
    } catch (cause) {
      na.fatal('liveness flush', cause);
      throw cause;
    }
  }

  const retention = createRetention(options.retention, na.runtime.elapsed);
  function seal(): void {
    sealed = true;
  }

  const call: Call = (name, given) => {
    if (sealed) return SHUTTING_DOWN;
    const run = calls.get(name);
    if (run === undefined) throw new Error(`There is no call ${name}`);
    const perform = () => execute(na, run as Run<typeof given>, given);
    // What takes long is done in slices, and a decision cannot pause, so it is done first.
    const made = preparation(na, name);
    if (made === null) return perform();
    const decide = (): Answer | Promise<Answer> => {
      if (sealed) return SHUTTING_DOWN;
      // Another key may have taken over since the nodes were counted.
      const isPrepared = name !== 'finishSuccession' || isCounted(na);
      return isPrepared ? perform() : countNodes(na).then(decide);
    };
    return made.then(decide);
  };

  return {
    /** The latest of the times that were recorded before the start; a clock before that is behind, or was ahead. */
    recordedUntil: na.recordedUntil,
    call,
    /** Writes liveness to the store and forgets expired nonces. */
    flush: (): Promise<void> => flush(false),
    /** Re-issues every signed list that has reached half of its lifetime. */
    async renewLists(): Promise<void> {
      await execute(na, refreshCrl, null);
      await execute(na, refreshFeeds, null);
      await execute(na, endOverlaps, null);
    },
    /** Activates a staged succession at its time, and ends an overlap at its end. */
    keepKeys: keepDueKeys,
    /** Removes some subjects whose retention period has ended, in one bounded unit of work. */
    async sweep(): Promise<void> {
      await execute(na, retention.sweep, null);
    },
    /** Checks all nodes and treaties for problems. */
    async judgePosture(): Promise<void> {
      await execute(na, refreshDashboard, null);
    },
    /**
     * Call after the clock was set by this much: times recorded under the old clock must not affect decisions under the new
     * one. Then call `renewLists`, because lists may be dated ahead.
     */
    clockSet(byMs: number) {
      const now = na.runtime.now();
      na.replay.clockSetBack(now);
      // A clock that was not known to be behind may have been right, and this machine paused.
      na.liveness.clockSet(now, byMs, byMs < 0 || now - byMs < na.recordedUntil);
      retention.clockSet();
      for (const name of OF_THE_TIME) na.publisher.withdraw(name);
      for (const list of listsOf(na)) list.clockSet(now);
    },
    /** Refuses all further commands. */
    seal,
    /** Refuses all further commands, flushes one last time and releases the store. */
    async close(): Promise<void> {
      // Anything acknowledged after the last flush would be lost.
      seal();
      await na.lastCommit;
      await flush(true);
      await Promise.all(listsOf(na).map((list) => list.settled()));
      await na.listThreads?.close();
      // A clean stop soon after a crash does not bring back the contacts that the crash lost.
      if (na.replay.mustStartAsCrashed()) await na.store.abandon();
      else await na.store.close();
    },
    /** Releases the store unchanged, if nothing was served. */
    async abandon(): Promise<void> {
      await na.listThreads?.close();
      await na.store.abandon();
    },
  };
}

async function readState(options: AuthorityOptions): Promise<ReadyState> {
  const stored = await options.store.load();
  const state = createAuthorityState(options);
  await state.read(stored);
  await stored.dispose();
  return { state, revision: stored.revision, facts: stored };
}

/** The newest revocation list in the state that was read. */
interface StoredList {
  readonly sequence: number;
  isListed(certificateId: string): boolean;
}

function storedList({ held: { subjects, revocations } }: AuthorityState): StoredList {
  const sequence = subjects.committed('crl', CRL_ID)?.context.sequence ?? 0;
  return { sequence, isListed: revocations.list.has };
}

/** Rejects with `OlderState` if the database was rolled back or lost its latest data, which it cannot detect itself. */
async function assertNotOlder(
  store: Pick<Store, 'position' | 'auditHashAt'>,
  { position, list }: SeenState,
  stored: StoredList,
): Promise<void> {
  const { epoch, revision, auditLength } = await store.position();
  const isRestored = position !== null && position.epoch < epoch;
  if (isRestored) return;
  const { sequence, lastRevoked } = list;
  if (stored.sequence < sequence) {
    throw older(`revocation list ${sequence}`, `its newest is list ${stored.sequence}`);
  }
  if (lastRevoked !== null && !stored.isListed(lastRevoked)) {
    throw older(`revocation list ${sequence}`, `certificate ${lastRevoked} is not revoked there`);
  }
  if (position === null) return;
  if (position.revision > revision || position.auditLength > auditLength) {
    throw older(`revision ${position.revision}`, `it ends at ${revision}`);
  }
  const hash = position.auditLength === 0 ? null : await store.auditHashAt(position.auditLength);
  if (hash !== null && hash !== position.auditHead) {
    throw older(`audit entry ${position.auditLength}`, 'it has another one there');
  }
}

function older(what: string, instead: string): OlderState {
  return new OlderState(
    `The database lacks ${what}, which this instance has seen of it: ${instead}. Put the newer database in its place, or restore it with what came later (mesh-na restore)`,
  );
}

/** What a call needs that is computed in slices; null if it needs nothing. */
function preparation(na: Authority, name: CallName): Promise<unknown> | null {
  if (CITES_GRAPH.has(name)) {
    if (na.graph.digest.isKnown(na.runtime.now())) return null;
    return Promise.resolve(execute(na, refreshGraph, null));
  }
  if (name === 'finishSuccession') return countNodes(na);
  if (!CHANGES_ISSUER.has(name)) return null;
  return oneSliceATurn(na.revocations.prepareDigests());
}

async function countNodes(na: Authority): Promise<void> {
  await na.exclusive;
  await oneSliceATurn(na.census.current());
}

/** Whether the nodes are counted that have followed the key that a decision at this moment is about. */
function isCounted({ exclusive, census }: Authority): boolean {
  return exclusive === null && census.isCurrent();
}

/** Another start may find another key in the state than the configuration names. */
async function startWithKeys(na: Authority): Promise<void> {
  const { current, previous } = na.authorityKeys.chain();
  if (current !== null && !na.signer.holds(current.publicKey)) {
    throw new Error(
      `The private key of the authority key ${current.publicKey} is not here, although it took over: put it into the key file of the authority, or of the next key`,
    );
  }
  if (previous !== null && !na.signer.holds(previous.publicKey)) {
    // A database that has lost the end of the overlap does not bring back the key file.
    const isOver = previous.overlapUntil <= na.runtime.now();
    if (isOver && (await execute(na, keepKeys, null)).ok) return;
    throw new Error(
      `The private key of the previous authority key ${previous.publicKey} is not here, although it signs until ${formatInstant(previous.overlapUntil)}: put its file back, or start after that time`,
    );
  }
  await useKeys(na);
}

/** How often the log repeats that a due key is not held. */
const REMIND_MS = 3_600_000;

function keeperOfKeys(na: Authority): () => Promise<void> {
  let remindAt = -Infinity;
  return async () => {
    await oneSliceATurn(na.revocations.prepareDigests());
    const answer = await execute(na, keepKeys, null);
    const isMissing = !answer.ok && answer.refusal === 'authority_key_not_held';
    if (!isMissing || na.runtime.elapsed() < remindAt) return;
    remindAt = na.runtime.elapsed() + REMIND_MS;
    const { staged } = na.authorityKeys.chain();
    na.log('authority_key_not_held', { public_key: staged?.publicKey ?? null });
  };
}

/** Runs after a start. Feeds come first, because they recognize a first start by the absence of a CRL. */
const RESTORE_LISTS: readonly Run<null>[] = [
  (na, unit) => {
    for (const feed of na.feeds.all()) feed.restore(unit);
    return refreshFeeds(na, unit, null);
  },
  (na, unit) => {
    na.revocations.list.restore(unit);
    return refreshCrl(na, unit, null);
  },
];

async function restoreLists(na: Authority): Promise<void> {
  for (const restore of RESTORE_LISTS) {
    const answer = await execute(na, restore, null);
    if (!answer.ok) throw new Error(`The signed lists cannot be published: ${answer.refusal}`);
  }
  await Promise.all(listsOf(na).map((list) => list.ready()));
}

function listsOf({ revocations, feeds }: Authority): readonly SignedList[] {
  return [revocations.list, ...feeds.all()];
}
