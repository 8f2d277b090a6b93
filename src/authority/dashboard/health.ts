import { formatInstant } from '../../base/timestamp.ts';
import type { Readiness } from '../../protocol/answers/documents.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Posture } from '../../protocol/rows/dashboard.ts';
import { COMMIT_OVERDUE } from '../../store/store.ts';
import type { Authority } from '../authority.ts';
import { committedChain } from '../authority-keys.ts';
import type { Handler } from '../engine/admission.ts';
import { AsyncResult } from '../engine/execute.ts';
import { hasRoom } from '../host-status.ts';
import { CRL_ID } from '../lists/crl.ts';
import { laggardsIn } from '../succession/adoption.ts';
import { soonestEnds } from './horizon.ts';
import { judgePosture, type PostureFacts } from './posture.ts';

export const readCounts: Handler<'readCounts'> = (na, _given, at) => {
  const { findings, unknown } = currentPosture(na, at);
  const {
    silentKnownFrom: _,
    since: __,
    roles,
    more_roles: ___,
    ...nodes
  } = na.census.latest()?.fleet ?? NOT_COUNTED;
  return {
    issued_certificates: na.counts.issuedCertificates(),
    active_nodes: na.liveness.activeCount(at),
    revoked_certificates: na.counts.revokedCertificates(),
    crl_sequence: na.subjects.committed('crl', CRL_ID)?.context.sequence ?? 0,
    policy_versions: na.counts.policyVersions(),
    nonce_windows: na.replay.windowCount(),
    subjects: na.counts.kept(),
    removed_subjects: na.counts.removed(),
    posture: findings,
    posture_unknown: unknown.map(({ rule }) => rule),
    nodes,
    roles,
    disk_free: na.hostStatus().diskFree,
    disk_min_free: na.hostStatus().minFree,
    delegated_until: na.hostStatus().delegatedUntil,
    signs: na.hostStatus().signs,
    soonest_ends: soonestEnds(na),
    authority_keys: keyCounts(na),
    succession_adopted: adoptedRatio(na),
    webhooks: na.hostStatus().webhooks.map(({ host, delivered, waitingSince }) => ({
      host,
      lag_entries: na.eventTail.length() - delivered,
      lag_seconds: waitingSince === null ? 0 : Math.max(0, at - waitingSince) / 1000,
    })),
    partners: [...na.hostStatus().partners.values()].flatMap(
      ({ endpoint, fetchedAt, failingSince }) => {
        const since = fetchedAt ?? failingSince;
        return since === null
          ? []
          : [{ host: new URL(endpoint).host, lag_seconds: Math.max(0, at - since) / 1000 }];
      },
    ),
  };
};

/** How many keys of the authority are in each state. */
function keyCounts(na: Authority): Record<string, number> {
  const { keys, current } = committedChain(na);
  if (current === null) return { current: 1 };
  const counts: Record<string, number> = {};
  for (const { state } of keys) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

/** Not known while some nodes have not had the time to report. */
function adoptedRatio({ census }: Authority): number | null {
  const counted = census.adoption();
  if (counted === null || counted.knownFrom !== null || counted.nodes.active === 0) return null;
  return counted.nodes.followed / counted.nodes.active;
}

const NOT_COUNTED = {
  expected: null,
  healthy: null,
  silent: null,
  silentKnownFrom: 0,
  since: null,
  unwell: null,
  lapsing: null,
  lapsed: null,
  roles: [],
  more_roles: 0,
};

/** When the edge gets this answer, it has received everything published so far, because both arrive in order. */
export const awaitPublications: Handler<'awaitPublications'> = () => null;

/** Reports whether the database is ready, and whether nodes can be enrolled; never the location of the database. */
export const checkReadiness: Handler<'checkReadiness'> = (na, _given, at) => {
  const problem = na.store.health();
  if (problem !== null) {
    // Other problems may name files.
    const isKnown = problem === COMMIT_OVERDUE;
    throw new Refusal('service_not_ready', {
      problem: isKnown ? problem : 'the state cannot be written',
    });
  }
  const until = na.replay.refusedUntil(at);
  return {
    enrollment: enrollmentOf(na),
    ...(until !== null && { accepts_signed_after: formatInstant(until) }),
  };
};

function enrollmentOf(na: Authority): Readiness['enrollment'] {
  if (!na.signer.isAvailable()) return 'signer_unavailable';
  return hasRoom(na) ? 'open' : 'insufficient_storage';
}

export const recordHistory: Handler<'recordHistory'> = (na, unit, part) => {
  unit.whenCommitted(() => na.history.add(part));
  return null;
};

export const readHistory: Handler<'readHistory'> = (na, question) =>
  new AsyncResult(na.history.read(question, na.sliceQueue.run));

/** The posture of this authority, based on committed state and on the status of its host. */
export function currentPosture(na: Authority, now: number): Posture {
  const { findings, unknown } = judgePosture({
    now,
    ready: na.store.health() === null,
    restoredUntil: na.replay.refusedUntil(now),
    fleet: na.census.latest()?.fleet ?? null,
    listDueAt: na.subjects.committed('crl', CRL_ID)?.context.nextUpdate ?? Number.POSITIVE_INFINITY,
    recordedUntil: recordedUntil(na),
    operatorKeys: operatorKeysOf(na),
    failures: na.failures.lastHour(),
    succession: successionFacts(na),
    ...na.hostStatus(),
    ...na.counted.facts,
  });
  for (const rule of na.foundAt.keys()) {
    if (!findings.some((found) => found.rule === rule)) na.foundAt.delete(rule);
  }
  return {
    status: findings[0]?.severity ?? 'ok',
    findings: findings.map(({ since, ...found }) => ({
      ...found,
      since: formatInstant(since ?? firstFound(na, found.rule, now)),
    })),
    unknown,
  };
}

/** Of what the state does not date: when this process found it first, and has found it since. */
function firstFound({ foundAt }: Authority, rule: string, now: number): number {
  const at = foundAt.get(rule) ?? now;
  foundAt.set(rule, at);
  return at;
}

/** The latest of the times that a right clock is past; the lists are dated by this process, too. */
function recordedUntil({ subjects, recordedUntil }: Authority): number {
  const versions = [
    ...subjects.allCommitted('crl'),
    ...subjects.allCommitted('sovereign-feed'),
  ].map(([, { context }]) => context.issuedAt);
  return versions.reduce((latest, at) => Math.max(latest, at), recordedUntil);
}

function operatorKeysOf({ subjects }: Authority): PostureFacts['operatorKeys'] {
  const keys = [...subjects.allCommitted('operator-key')].map(([, key]) => key);
  const usable = keys.filter(({ value }) => value === 'usable');
  const privileged = usable.filter(({ context }) => context.tier === 'privileged');
  return { usable: usable.length, privileged: privileged.length };
}

function successionFacts(na: Authority): PostureFacts['succession'] {
  const followed = na.census.followed();
  if (followed === null) return null;
  const counted = na.census.adoption();
  const { activates_at, overlap_until } = followed.statement;
  return {
    state: followed.state,
    activatesAt: instantOf(activates_at),
    overlapUntil: instantOf(overlap_until),
    nodes: counted && { active: counted.nodes.active, laggards: laggardsIn(counted.nodes) },
    knownFrom: counted?.knownFrom ?? null,
  };
}
