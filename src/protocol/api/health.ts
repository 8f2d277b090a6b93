/**
 * How the service fares: whether it lives and is ready [core-4-15], what it counted [core-4-22], what lapses [core-4-20],
 * and how far a change of the authority key has come [authority-keys-11].
 */
import Type from 'typebox';
import { DAY_MS } from '../../base/duration.ts';
import { Health, Liveness, Readiness } from '../answers/documents.ts';
import { Refusal } from '../refusals.ts';
import { Adoption } from '../rows/adoption.ts';
import { Horizon } from '../rows/dashboard.ts';
import {
  HISTORY_STEPS,
  History,
  type HistoryQuestion,
  type HistoryStep,
  MOST_SERIES,
  MOST_STEPS,
  SERIES_NAMES,
  type SeriesName,
  STEP_NAMES,
} from '../rows/history.ts';
import { internalAnswer, operatorQuery, publicAnswer, publicQuery } from './define.ts';
import { choice, instant, needed } from './parameters.ts';

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

/** Without a step, the finest one with at most this many steps is taken. */
const USUAL_STEPS = 400;

export const readHistory = publicQuery('GET /history.json', {
  limit: 'HISTORY',
  summary: 'What the service counted and measured over time',
  description: `Series: ${SERIES_NAMES.join(', ')}.`,
  query: {
    to: instant('invalid_time_range', 'A timestamp; now if absent'),
    from: instant('invalid_time_range', 'A timestamp; a day before `to` if absent'),
    series: needed(
      Type.String({
        example: 'heartbeats,active_nodes',
        description: `Names of at most ${MOST_SERIES} series, separated by commas`,
      }),
      'invalid_series',
      seriesIn,
    ),
    step: choice(STEP_NAMES, 'invalid_step', 'Length of a step; fits the time if absent'),
  },
  derive({ series, from, to: asked, step }, { now }) {
    const to = asked ?? now;
    return historyQuestion(series, from ?? to - DAY_MS, to, step);
  },
  answer: History,
  refusals: ['invalid_time_range'],
});

function seriesIn(text: string): SeriesName[] | undefined {
  const names = [...new Set(text.split(','))];
  const known = SERIES_NAMES.filter((name) => names.includes(name));
  return known.length === names.length && names.length <= MOST_SERIES ? known : undefined;
}

/** The last instant that a timestamp can name. */
const LATEST = Date.parse('9999-12-31T23:59:59.999Z');

/** From the beginning of the first step to the end of the last one, so that many readers ask the same. */
export function historyQuestion(
  series: readonly SeriesName[],
  from: number,
  to: number,
  asked: HistoryStep | null,
): HistoryQuestion {
  const step = asked ?? usualStep(to - from);
  const length = HISTORY_STEPS[step] * 1000;
  const [first, end] = [Math.floor(from / length), Math.ceil(to / length)];
  const isWritten = end * length <= LATEST;
  if (!(from >= 0 && from < to && end - first <= MOST_STEPS && isWritten))
    throw new Refusal('invalid_time_range');
  return { series, from: first * length, to: end * length, step };
}

function usualStep(lengthMs: number): HistoryStep {
  const fits = (step: HistoryStep) => lengthMs / 1000 / HISTORY_STEPS[step] <= USUAL_STEPS;
  return STEP_NAMES.find(fits) ?? '1d';
}

export const readHorizon = operatorQuery('GET /admin/horizon', {
  summary: 'What lapses, by kind and week, as counts',
  answer: Horizon,
  refusals: ['rate_limit_exceeded'],
});

export const readAdoption = operatorQuery('GET /admin/authority-keys/adoption', {
  summary: 'Which nodes and treaties have followed a change of the authority key',
  answer: Adoption,
  refusals: ['rate_limit_exceeded'],
});
