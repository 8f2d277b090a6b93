/**
 * The history of the service [core-4-22], and what changes for everyone at some point: expirations [core-4-20], and a
 * change of the authority key [authority-keys-11].
 */

import Type from 'typebox';
import { Refusal } from '../../base/refusal.ts';
import { parseRequestTimestamp } from '../../base/timestamp.ts';
import { readAdoption, readHorizon } from '../../protocol/api/horizon.ts';
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
} from '../../protocol/rows/history.ts';
import { firstValue, type Query } from '../query.ts';
import { answerReply } from '../reply.ts';
import type { RouteEntry } from '../route.ts';
import { operationRoutes } from './operations.ts';

const DAY_MS = 86_400_000;
/** Without a step, the finest one with at most this many steps is taken. */
const USUAL_STEPS = 400;

export const historyRoutes: readonly RouteEntry[] = [
  ...operationRoutes({ readHorizon, readAdoption }),
  {
    method: 'GET',
    path: '/history.json',
    call: 'readHistory',
    limit: 'HISTORY',
    query: Type.Object({
      series: Type.String({
        example: 'heartbeats,active_nodes',
        description: `Names of at most ${MOST_SERIES} series, separated by commas`,
      }),
      from: Type.Optional(Type.String({ description: 'A timestamp; a day before `to` if absent' })),
      to: Type.Optional(Type.String({ description: 'A timestamp; now if absent' })),
      step: Type.Optional(
        Type.Enum([...STEP_NAMES], { description: 'Length of a step; fits the time if absent' }),
      ),
    }),
    summary: 'What the service counted and measured over time',
    description: `Series: ${SERIES_NAMES.join(', ')}.`,
    answer: History,
    refusals: ['invalid_series', 'invalid_step', 'invalid_time_range'],
    async handle({ query, now }, edge) {
      return answerReply(await edge.call('readHistory', questionIn(query, now)));
    },
  },
];

function questionIn(query: Query, now: number): HistoryQuestion {
  const to = timeIn(query, 'to') ?? now;
  const from = timeIn(query, 'from') ?? to - DAY_MS;
  return questionFor(seriesIn(query), from, to, stepIn(query));
}

/** From the beginning of the first step to the end of the last one, so that many readers ask the same. */
export function questionFor(
  series: readonly SeriesName[],
  from: number,
  to: number,
  asked: HistoryStep | null,
): HistoryQuestion {
  const step = asked ?? usualStep(to - from);
  const length = HISTORY_STEPS[step] * 1000;
  const [first, end] = [Math.floor(from / length), Math.ceil(to / length)];
  if (!(from >= 0 && from < to && end - first <= MOST_STEPS))
    throw new Refusal('invalid_time_range');
  return { series, from: first * length, to: end * length, step };
}

function usualStep(lengthMs: number): HistoryStep {
  const fits = (step: HistoryStep) => lengthMs / 1000 / HISTORY_STEPS[step] <= USUAL_STEPS;
  return STEP_NAMES.find(fits) ?? '1d';
}

function seriesIn(query: Query): SeriesName[] {
  const names = [...new Set((firstValue(query, 'series') ?? '').split(','))];
  const known = SERIES_NAMES.filter((name) => names.includes(name));
  if (known.length !== names.length || names.length > MOST_SERIES) {
    throw new Refusal('invalid_series');
  }
  return known;
}

function stepIn(query: Query): HistoryStep | null {
  const given = firstValue(query, 'step');
  if (given === null) return null;
  const step = STEP_NAMES.find((name) => name === given);
  if (step === undefined) throw new Refusal('invalid_step');
  return step;
}

function timeIn(query: Query, name: 'from' | 'to'): number | null {
  const given = firstValue(query, name);
  if (given === null) return null;
  const instant = parseRequestTimestamp(given);
  if (instant === null) throw new Refusal('invalid_time_range');
  return instant;
}
