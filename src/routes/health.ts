import { setTimeout as delay } from 'node:timers/promises';
import Type from 'typebox';
import type { Edge } from '../http/edge.ts';
import { answerReply, jsonReply, refusalReply, textReply } from '../http/reply.ts';
import type { RouteEntry } from '../http/route.ts';
import { jsonText } from '../json/write.ts';
import { EXPOSITION_TYPE } from '../metrics.ts';

export const healthRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/healthz',
    access: 'public',
    limit: 'none',
    summary: 'Liveness; checks nothing it depends on',
    answer: Type.Object({ status: Type.Literal('ok') }),
    refusals: [],
    handle: () => jsonReply(200, '{"status":"ok"}'),
  },
  {
    method: 'GET',
    path: '/readyz',
    call: 'checkReadiness',
    limit: 'none',
    summary: 'Readiness: database connectivity and migration state',
    answer: Type.Object({ status: Type.Literal('ready') }),
    refusals: ['service_not_ready'],
    handle: (_request, edge) => readiness(edge),
  },
  {
    method: 'GET',
    path: '/health',
    call: 'checkReadiness',
    limit: 'none',
    summary: 'Expanded health summary',
    answer: Type.Object({
      status: Type.Literal('healthy'),
      network: Type.String(),
      version: Type.String(),
      uptime_seconds: Type.Integer(),
      database: Type.Literal('ok'),
      migrations: Type.Literal('current'),
    }),
    refusals: ['service_not_ready'],
    async handle(_request, edge) {
      const answer = await edge.call('checkReadiness', null);
      return answer.ok ? jsonReply(200, healthSummary(edge)) : answerReply(answer);
    },
  },
  {
    method: 'GET',
    path: '/metrics',
    access: 'internal',
    limit: 'none',
    summary: 'Metrics in the Prometheus text format',
    answer: { contentType: EXPOSITION_TYPE },
    refusals: [],
    handle: async (_request, edge) => textReply(EXPOSITION_TYPE, await edge.exposition()),
  },
];

/** A server that is draining is alive, but no longer the place to send requests to. */
async function readiness(edge: Edge) {
  if (edge.draining.isAnnounced) return refusalReply('service_not_ready');
  const late = new AbortController();
  const patience = delay(LONGEST_CHECK_MS, null, { signal: late.signal }).catch(() => null);
  const answer = await Promise.race([edge.call('checkReadiness', null), patience]);
  late.abort();
  return answer === null ? refusalReply('service_not_ready') : answerReply(answer);
}

/** An authority that does not answer within this is not ready. */
const LONGEST_CHECK_MS = 2000;

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
