/** Whether the service lives, is ready, and how it fares [core-4-15]. */
import { Health, Liveness, Readiness } from '../answers/documents.ts';
import { internalAnswer, publicAnswer } from './define.ts';

export const checkLiveness = publicAnswer('GET /healthz', {
  isOwn: true,
  isProbe: true,
  summary: 'Liveness of the process; checks no dependency',
  answer: Liveness,
});

export const checkReadiness = publicAnswer('GET /readyz', {
  isOwn: true,
  isProbe: true,
  summary: 'Readiness: database connectivity and migration state',
  answer: Readiness,
  refusals: ['service_not_ready', 'restore_pending'],
});

export const readHealth = publicAnswer('GET /health', {
  isOwn: true,
  summary: 'Expanded health summary',
  answer: Health,
  refusals: ['service_not_ready', 'restore_pending'],
});

export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export const readMetrics = internalAnswer('GET /metrics', {
  isOwn: true,
  summary: 'Metrics in the Prometheus text format',
  answer: { contentType: EXPOSITION_TYPE },
});
