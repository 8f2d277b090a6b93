/**
 * The history of the service, in memory and in the store [core-4-22]: a row for each minute, hour and day, in rings of fixed length. What an instance counted is
 * added to all three rows at once, so each level has the same sums. The row of a time that was not recorded is absent.
 */

import { JsonText, jsonText, type Writable } from '../base/json/write.ts';
import { formatInstant } from '../base/timestamp.ts';
import {
  boundsOf,
  HISTORY_LEVELS,
  HISTORY_STEPS,
  type History,
  type HistoryPart,
  type HistoryQuestion,
  type HistorySeries,
  mergeCells,
  type Place,
  placeOf,
  type SeriesName,
} from '../protocol/rows/history.ts';
import { packValue, unpackValue } from '../store/rows.ts';
import type { Store, StoredHistory } from '../store/store.ts';
import { Sliced, type SliceQueue } from './subjects/sliced.ts';

export type HistoryRing = ReturnType<typeof createHistoryRing>;

interface Row {
  /** The number of the minute, hour or day since the epoch. */
  readonly index: number;
  /** How many of its minutes were recorded. */
  minutes: number;
  /** In rows of a minute, the processes that contributed: for each, its source and the number of its last part. */
  readonly sources: number[];
  readonly cells: number[];
}

/** Less than a millisecond. */
const STEPS_PER_SLICE = 50;

/** Processes that are remembered, to recognize a part that is sent twice. */
const MOST_SOURCES = 256;

export function createHistoryRing() {
  // Lists of numbers would take several times the memory of these bytes.
  const levels = HISTORY_LEVELS.map(({ seconds, rows }) => ({
    seconds,
    rows: new Array<Uint8Array | undefined>(rows).fill(undefined),
  }));
  type Level = (typeof levels)[number];
  /** The last part of each process, the most recently added last. */
  const added = new Map<number, number>();

  function rowAt({ rows }: Level, index: number): Row | null {
    const bytes = rows[slotOf(rows.length, index)];
    if (bytes === undefined) return null;
    const row = rowOf(unpackValue(bytes) as number[]);
    return row.index === index ? row : null;
  }

  function note(source: number, number: number): void {
    const last = Math.max(number, added.get(source) ?? 0);
    added.delete(source);
    added.set(source, last);
    for (const oldest of added.keys()) {
      if (added.size <= MOST_SOURCES) break;
      added.delete(oldest);
    }
  }

  return {
    /** Adds a part, unless it was added before; returns the rows that it changed. */
    add({ source, number, minute, cells }: HistoryPart): readonly StoredHistory[] {
      if (number <= (added.get(source) ?? 0)) return [];
      note(source, number);
      let isNew = false;
      return levels.map((level) => {
        const index = Math.floor((minute * 60) / level.seconds);
        const found = rowAt(level, index);
        const row = found ?? { index, minutes: 0, sources: [], cells: [] };
        const isMinute = level.seconds === 60;
        if (isMinute) {
          isNew = found === null;
          noteSource(row.sources, source, number);
        }
        if (isNew) row.minutes += 1;
        mergeCells(row.cells, cells);
        const values = valuesOf(row);
        const slot = slotOf(level.rows.length, index);
        level.rows[slot] = packValue(values);
        return { seconds: level.seconds, slot, values };
      });
    },
    /** Puts a stored row. */
    put({ seconds, slot, values }: StoredHistory) {
      const level = levels.find((one) => one.seconds === seconds);
      if (level === undefined || slot >= level.rows.length) return;
      const { sources } = rowOf(values);
      for (let i = 0; i < sources.length; i += 2) note(sources[i] ?? 0, sources[i + 1] ?? 0);
      level.rows[slot] = packValue(values);
    },
    /** All rows. */
    *rows(): Iterable<StoredHistory> {
      for (const { seconds, rows } of levels) {
        for (const [slot, bytes] of rows.entries()) {
          if (bytes === undefined) continue;
          yield { seconds, slot, values: unpackValue(bytes) as number[] };
        }
      }
    },
    /** Pauses now and then, because a long answer takes many milliseconds. */
    *read({ series, from, to, step }: HistoryQuestion): Generator<void, History> {
      const seconds = HISTORY_STEPS[step];
      const level = levels.findLast((one) => seconds % one.seconds === 0);
      if (level === undefined) throw new Error(`No level has steps of ${step}`);
      const first = Math.floor(from / 1000 / seconds);
      const end = Math.ceil(to / 1000 / seconds);
      const places = series.map(placeOf);
      const perStep = seconds / level.seconds;
      const steps: Step[] = [];
      for (let number = first; number < end; number += 1) {
        const merged: Step = { minutes: 0, cells: [] };
        for (let i = number * perStep; i < (number + 1) * perStep; i += 1) {
          const row = rowAt(level, i);
          if (row !== null) mergeStep(merged, row, places);
        }
        steps.push(merged);
        if (steps.length % STEPS_PER_SLICE === 0) yield;
      }
      return {
        from: formatInstant(first * seconds * 1000),
        to: formatInstant(end * seconds * 1000),
        step_seconds: seconds,
        recorded_minutes: steps.map(({ minutes }) => minutes),
        series: series.map((name) => seriesOf(name, steps)),
      };
    },
  };
}

/** The values of one step; those of other series than the ones asked for are missing. */
interface Step {
  minutes: number;
  readonly cells: number[];
}

function mergeStep(merged: Step, { minutes, cells }: Row, places: readonly Place[]): void {
  merged.minutes += minutes;
  for (const { start, end } of places) {
    // A row of an earlier version of the program lacks the series that were added since.
    if (cells.length >= end) mergeCells(merged.cells, cells, start, end);
  }
}

function seriesOf(name: SeriesName, steps: readonly Step[]): HistorySeries {
  const { kind, start, end } = placeOf(name);
  const cells = steps.map((step) =>
    step.cells.length < end || step.cells[start] === undefined
      ? null
      : step.cells.slice(start, end),
  );
  if (kind === 'count') return { name, kind, count: cells.map((found) => found?.[0] ?? null) };
  if (kind === 'level') {
    return {
      name,
      kind,
      mean: cells.map((found) => meanOf(found)),
      max: cells.map((found) => (found?.[0] ? (found[2] ?? null) : null)),
    };
  }
  const bounds = boundsOf(name);
  const at = (part: number) =>
    cells.map((found) => (found === null ? null : inMicroseconds(quantile(found, bounds, part))));
  return {
    name,
    kind,
    count: cells.map((found) => found?.reduce((sum, count) => sum + count, 0) ?? null),
    p50: at(0.5),
    p95: at(0.95),
    p99: at(0.99),
  };
}

function inMicroseconds(seconds: number | null): number | null {
  return seconds === null ? null : Math.round(seconds * 1e6);
}

function meanOf(found: readonly number[] | null): number | null {
  const [measured = 0, sum = 0] = found ?? [];
  return measured === 0 ? null : Math.round(sum / measured);
}

function slotOf(rows: number, index: number): number {
  return ((index % rows) + rows) % rows;
}

function noteSource(sources: number[], source: number, number: number): void {
  for (let i = 0; i < sources.length; i += 2) {
    if (sources[i] !== source) continue;
    sources[i + 1] = number;
    return;
  }
  sources.push(source, number);
}

/** A row as it is stored: its index, its minutes, the length of its sources, these, and the values of the series. */
function valuesOf({ index, minutes, sources, cells }: Row): number[] {
  return [index, minutes, sources.length, ...sources, ...cells];
}

function rowOf(values: readonly number[]): Row {
  const [index = 0, minutes = 0, count = 0] = values;
  return { index, minutes, sources: values.slice(3, 3 + count), cells: values.slice(3 + count) };
}

/**
 * The value below which a part of all measurements lies, by how many fell into each bucket: interpolated within the
 * bucket, as Prometheus does. Null without measurements; the last bound if it lies beyond.
 */
export function quantile(
  counts: readonly number[],
  bounds: readonly number[],
  part: number,
): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = part * total;
  let below = 0;
  for (const [index, bound] of bounds.entries()) {
    const count = counts[index] ?? 0;
    if (count > 0 && below + count >= rank) {
      const lowest = bounds[index - 1] ?? 0;
      return lowest + ((bound - lowest) * (rank - below)) / count;
    }
    below += count;
  }
  return bounds.at(-1) ?? null;
}

/** Answers stay the same until something is added, so that many readers cost as much as one. */
const MOST_ANSWERS = 64;

/** The rows are read when they are first needed, because a change of the active instance must not wait for them. */
export function keepHistory(store: Pick<Store, 'history' | 'putHistory'>) {
  const ring = createHistoryRing();
  const answers = new Map<string, Promise<Writable>>();
  let loading: Promise<void> | null = null;

  async function load(): Promise<void> {
    for await (const rows of store.history()) for (const row of rows) ring.put(row);
  }

  async function loaded(): Promise<void> {
    loading ??= load();
    try {
      await loading;
    } catch (cause) {
      loading = null;
      throw cause;
    }
  }

  return {
    /** Adds what an instance counted in one minute, unless it was added before; resolves when it is stored. */
    async add(part: HistoryPart): Promise<void> {
      await loaded();
      const rows = ring.add(part);
      answers.clear();
      if (rows.length > 0) await store.putHistory(rows);
    },
    /** `run` runs a long query in slices. */
    async read(question: HistoryQuestion, run: SliceQueue['run']): Promise<Writable> {
      await loaded();
      const key = JSON.stringify(question);
      const known = answers.get(key);
      if (known !== undefined) return known;
      const answer = run(new Sliced(answerTo(question)));
      if (answers.size >= MOST_ANSWERS) answers.clear();
      answers.set(key, answer);
      answer.catch(() => answers.delete(key));
      return answer;
    },
  };

  function* answerTo(question: HistoryQuestion): Generator<void, Writable> {
    return new JsonText(jsonText(yield* ring.read(question)));
  }
}
