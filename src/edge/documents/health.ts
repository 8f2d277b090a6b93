import { setTimeout as delay } from 'node:timers/promises';
import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { keyFingerprint } from '../../base/crypto/digest.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { Readiness } from '../../protocol/answers/documents.ts';
import { EXPOSITION_TYPE } from '../../protocol/api/health.ts';
import { type Answer, UNAVAILABLE } from '../../protocol/contract/calls.ts';
import type { InstanceStatus } from '../../protocol/contract/instance-status.ts';
import type { Edge } from '../edge.ts';
import type { EdgeParts } from '../operations/operations.ts';
import { jsonReply, type Reply, refusalReply, textReply } from '../reply.ts';
import { cachedBySource, oncePerTurn } from './shared-build.ts';

export const healthParts = {
  checkLiveness: { answer: () => jsonReply(200, '{"status":"ok"}') },
  checkReadiness: { answer: (_asked, _request, edge) => sharedReadiness(edge)() },
  readHealth: {
    async answer(_asked, _request, edge) {
      const answer = await checkedReadiness(edge);
      return answer.ok ? jsonReply(200, healthSummary(edge)) : notReady(answer);
    },
  },
  readMetrics: {
    answer: async (_asked, _request, edge) =>
      textReply(EXPOSITION_TYPE, await sharedExposition(edge)()),
  },
} satisfies EdgeParts;

/** All threads are asked for it. */
const sharedExposition = cachedBySource((edge: Edge) => oncePerTurn(edge.exposition));

const sharedReadiness = cachedBySource((edge: Edge) => oncePerTurn(() => readiness(edge)));

/** A draining server is alive, but should get no new requests. */
async function readiness(edge: Edge): Promise<Reply> {
  const answer = await checkedReadiness(edge);
  const described = description(edge, answer.ok);
  if (!answer.ok) return notReady(answer, described);
  // A standby may not know the key of the active instance yet.
  const { signing_key = described.signing_key, ...reported } = JSON.parse(answer.json);
  const found = { ...reported, ...described, signing_key };
  if (edge.draining.isAnnounced) {
    return refusalReply('service_not_ready', { problem: 'the service is stopping', ...found });
  }
  return jsonReply(200, jsonText({ status: 'ready', ...found }));
}

/** Readiness as reported by the authority; if it does not answer, it is not ready. */
async function checkedReadiness(edge: Edge): Promise<Answer> {
  if (edge.isAuthoritySilent()) return SILENT;
  if (edge.instanceStatus?.isActive() === false) return readinessElsewhere(edge);
  const answered = new AbortController();
  const silence = silent(edge.instanceStatus, answered.signal).catch(() => SILENT);
  const answer = await Promise.race([edge.call('checkReadiness', null), silence]);
  answered.abort();
  return answer;
}

/** A standby is ready if it reaches an active instance that can write, even if that one is about to stop. */
async function readinessElsewhere({ forwarder }: Edge): Promise<Answer> {
  const answer = await forwarder?.read('/readyz', LONGEST_CHECK_AMONG_OTHERS_MS);
  const found = answer == null ? null : reportIn(answer.body);
  if (found?.database.writable !== true) return UNAVAILABLE;
  const { enrollment, accepts_signed_after: accepted, signing_key: signingKey } = found;
  const json = jsonText({
    enrollment,
    ...(accepted !== undefined && { accepts_signed_after: accepted }),
    signing_key: signingKey,
  });
  return { ok: true, json };
}

/** What an instance reports about itself, ready or not; null if it reports nothing. */
function reportIn(body: string): Static<typeof REPORT> | null {
  const value: unknown = parsed(body);
  if (Value.Check(REPORT, value)) return value;
  return Value.Check(REFUSED, value) ? value.error.details : null;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

const REPORT = Type.Pick(Readiness, [
  'enrollment',
  'accepts_signed_after',
  'database',
  'signing_key',
]);
const REFUSED = Type.Object({ error: Type.Object({ details: REPORT }) });

function silent(instanceStatus: InstanceStatus | null, signal: AbortSignal): Promise<Answer> {
  const patience = instanceStatus === null ? LONGEST_CHECK_MS : LONGEST_CHECK_AMONG_OTHERS_MS;
  return delay(patience, SILENT, { signal });
}

function notReady(
  { refusal, details }: Extract<Answer, { readonly ok: false }>,
  described: JsonObject = {},
): Reply {
  if (refusal !== 'authority_unavailable')
    return refusalReply(refusal, { ...details, ...described });
  const problem = 'another instance is active, or none is known';
  return refusalReply('service_not_ready', { problem, ...details, ...described });
}

const SILENT: Answer = {
  ok: false,
  refusal: 'service_not_ready',
  details: { problem: 'the authority does not answer' },
};

/** An authority that does not answer within this time is not ready. */
const LONGEST_CHECK_MS = 2000;
/** Load balancers wait one second, and consider an instance dead if it has not answered by then. */
const LONGEST_CHECK_AMONG_OTHERS_MS = 500;

/** The identity of this authority; never the location of its files. */
function description({ settings, instanceStatus }: Edge, writable: boolean): JsonObject {
  const { id, database, haMode, signingKeyId } = settings.instance;
  const { current, isSuccessor } = settings.authorityKeys;
  return {
    instance: id,
    ha_mode: haMode,
    ...(instanceStatus === null ? {} : placeAmong(instanceStatus)),
    database: { backend: database.backend, writable, schema_version: database.schemaVersion },
    signing_key: {
      key_id: isSuccessor ? current : signingKeyId,
      fingerprint: keyFingerprint(current),
    },
  };
}

/** The position of this instance among those on one database. */
function placeAmong(instanceStatus: InstanceStatus): JsonObject {
  return {
    role: instanceStatus.isActive() ? 'active' : 'standby',
    term: instanceStatus.term(),
    lag_revisions: instanceStatus.lag(),
    ...(instanceStatus.isMoving() ? { moving: true } : {}),
  };
}

function healthSummary(edge: Edge): string {
  const { network_name: network, network_version: version } = edge.settings.genesis;
  return jsonText({
    status: 'healthy',
    network,
    version,
    uptime_seconds: Math.floor((edge.runtime.elapsed() - edge.startedAt) / 1000),
    database: 'ok',
    migrations: 'current',
  });
}
