/** The posture of this authority, based on committed state and on the status of its host. */

import { instantOf } from '../../protocol/records/record.ts';
import type { Posture, PostureFinding } from '../../protocol/rows/posture.ts';
import { laggardsIn } from '../derived/adoption.ts';
import type { Authority } from '../engine/authority.ts';
import { CRL_ID } from '../lists/crl.ts';
import { judgePosture, type PostureFacts } from '../views/posture.ts';

export function currentPosture(na: Authority, now: number): Posture {
  const { findings, unknown } = judgePosture({
    now,
    ready: na.store.health() === null,
    restoredUntil: na.replay.refusedUntil(now),
    fleet: na.fleetCounts.latest,
    listDueAt: na.subjects.committed('crl', CRL_ID)?.context.nextUpdate ?? Number.POSITIVE_INFINITY,
    operatorKeys: operatorKeysOf(na),
    failures: na.failures.lastHour(),
    succession: successionFacts(na),
    ...na.hostStatus(),
    ...na.counted.facts,
  });
  return { status: statusOf(findings), findings, unknown };
}

function statusOf(findings: readonly PostureFinding[]): Posture['status'] {
  return findings[0]?.severity ?? 'ok';
}

function operatorKeysOf({ subjects }: Authority): PostureFacts['operatorKeys'] {
  const keys = [...subjects.allCommitted('operator-key')].map(([, key]) => key);
  const usable = keys.filter(({ value }) => value === 'usable');
  const privileged = usable.filter(({ context }) => context.tier === 'privileged');
  return { usable: usable.length, privileged: privileged.length };
}

function successionFacts(na: Authority): PostureFacts['succession'] {
  const followed = na.adoption.followed();
  if (followed === null) return null;
  const counted = na.adoption.latest();
  const { activates_at, overlap_until } = followed.statement;
  return {
    state: followed.state,
    activatesAt: instantOf(activates_at),
    overlapUntil: instantOf(overlap_until),
    nodes: counted && { active: counted.nodes.active, laggards: laggardsIn(counted.nodes) },
    knownFrom: counted?.knownFrom ?? null,
  };
}
