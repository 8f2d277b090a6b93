/** The in-memory history: everything added is found at every level, and memory use stays constant. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createHistoryRing, type HistoryRing, quantile } from '../src/authority/history.ts';
import { withoutPause } from '../src/base/work.ts';
import {
  CELLS,
  HISTORY_LEVELS,
  type HistoryPart,
  type HistoryStep,
  placeOf,
  SERIES,
  SERIES_NAMES,
  type SeriesName,
} from '../src/protocol/rows/history.ts';
import { encodeHistory } from '../src/store/table-rows.ts';

const START = Date.parse('2027-06-02T12:00:00Z') / 60_000;
const DAY = 1440;

/** A part with these values, and zeros everywhere else. */
function partOf(
  minute: number,
  counts: Partial<Record<SeriesName, readonly number[]>>,
  { source = 1, number = nextNumber() } = {},
): HistoryPart {
  const cells = new Array<number>(CELLS).fill(0);
  for (const [name, values] of Object.entries(counts)) {
    for (const [i, value] of values.entries()) cells[placeOf(name as SeriesName).start + i] = value;
  }
  return { source, number, minute, cells };
}

let lastNumber = 0;
function nextNumber(): number {
  lastNumber += 1;
  return lastNumber;
}

function read(ring: HistoryRing, names: SeriesName[], from: number, to: number, step: HistoryStep) {
  const { series, ...rest } = withoutPause(
    ring.read({ series: names, from: from * 60_000, to: to * 60_000, step }),
  );
  const [first = assert.fail('no series')] = series;
  return { ...rest, ...first };
}

function total(values: readonly (number | null)[] | undefined): number {
  return (values ?? []).reduce<number>((sum, value) => sum + (value ?? 0), 0);
}

test('every level has the same sums, in any order of additions, even after it was stored and read', () => {
  const part = fc.record({
    minute: fc.integer({ min: START, max: START + DAY }),
    source: fc.integer({ min: 1, max: 3 }),
    heartbeats: fc.integer({ min: 0, max: 2 ** 40 }),
    active: fc.integer({ min: 0, max: 1000 }),
    quick: fc.integer({ min: 0, max: 50 }),
  });
  fc.assert(
    fc.property(fc.array(part, { maxLength: 60 }), (parts) => {
      const ring = createHistoryRing();
      for (const [i, { minute, source, heartbeats, active, quick }] of parts.entries()) {
        const values = {
          heartbeats: [heartbeats],
          active_nodes: [1, active, active],
          heartbeat_time: [quick],
        };
        ring.add(partOf(minute, values, { source, number: i + 1 }));
      }
      const again = createHistoryRing();
      for (const row of ring.rows()) again.put(row);
      const minutes = new Set(parts.map(({ minute }) => minute));
      for (const one of [ring, again]) {
        for (const step of ['1m', '5m', '15m', '1h', '6h', '1d'] as const) {
          const ends = [START - DAY, START + 2 * DAY] as const;
          const beats = read(one, ['heartbeats'], ...ends, step);
          assert.equal(total(beats.count), total(parts.map(({ heartbeats }) => heartbeats)));
          assert.equal(total(beats.recorded_minutes), minutes.size);
          const times = read(one, ['heartbeat_time'], ...ends, step);
          assert.equal(total(times.count), total(parts.map(({ quick }) => quick)));
          const nodes = read(one, ['active_nodes'], ...ends, step);
          const largest = Math.max(-1, ...(nodes.max ?? []).map((value) => value ?? -1));
          assert.equal(largest, Math.max(-1, ...parts.map(({ active }) => active)));
        }
      }
    }),
    { numRuns: 30 },
  );
});

test('a step is the sum of its minutes, and null if none was recorded', () => {
  const ring = createHistoryRing();
  for (const [minute, count] of [
    [0, 1],
    [1, 2],
    [4, 4],
    [5, 8],
    [15, 16],
  ] as const) {
    ring.add(partOf(START + minute, { joins: [count] }));
  }
  const { count, recorded_minutes, from, to } = read(ring, ['joins'], START, START + 20, '5m');
  assert.deepEqual(count, [7, 8, null, 16]);
  assert.deepEqual(recorded_minutes, [3, 1, 0, 1]);
  assert.deepEqual([from, to], ['2027-06-02T12:00:00Z', '2027-06-02T12:20:00Z']);
});

test('a level has the mean of all measurements, and a time its percentiles; both are null without any', () => {
  const ring = createHistoryRing();
  ring.add(partOf(START, { silent_nodes: [1, 2, 2], commit_time: [0, 10] }, { source: 1 }));
  ring.add(partOf(START, { silent_nodes: [1, 5, 5] }, { source: 2, number: nextNumber() }));
  ring.add(partOf(START + 1, {}));
  const silent = read(ring, ['silent_nodes'], START, START + 2, '1m');
  assert.deepEqual(
    [silent.mean, silent.max],
    [
      [4, null],
      [5, null],
    ],
  );
  const commits = read(ring, ['commit_time'], START, START + 2, '1m');
  assert.deepEqual(commits.count, [10, 0]);
  assert.deepEqual(
    [commits.p50, commits.p95],
    [
      [750, null],
      [975, null],
    ],
  );
});

test('a percentile lies within its bucket', () => {
  const bounds = [1, 2, 4];
  for (const [counts, part, expected] of [
    [[0, 0, 0, 0], 0.5, null],
    [[10, 0, 0, 0], 0.5, 0.5],
    [[0, 10, 0, 0], 0.5, 1.5],
    [[5, 5, 0, 0], 0.5, 1],
    [[1, 0, 0, 1], 0.99, 4],
    [[0, 0, 0, 3], 0.5, 4],
    [[90, 0, 10, 0], 0.95, 3],
  ] as const) {
    assert.equal(quantile(counts, bounds, part), expected, JSON.stringify([counts, part]));
  }
});

test('a part that is sent twice counts once, even after a restart', () => {
  const ring = createHistoryRing();
  const [first, second] = [1, 2].map((number) =>
    partOf(START + number, { renewals: [number] }, { source: 7, number }),
  ) as [HistoryPart, HistoryPart];
  assert.equal(ring.add(first).length, 3);
  assert.deepEqual(ring.add(first), []);
  const again = createHistoryRing();
  for (const row of ring.rows()) again.put(row);
  assert.deepEqual(again.add(first), []);
  assert.equal(again.add(second).length, 3);
  assert.equal(total(read(again, ['renewals'], START, START + 60, '1h').count), 3);
});

test('parts of as many as 256 processes are recognized', () => {
  const ring = createHistoryRing();
  const parts = Array.from({ length: 256 }, (_, source) =>
    partOf(START, { renewals: [1] }, { source: source + 1 }),
  );
  for (const part of parts) assert.equal(ring.add(part).length, 3);
  for (const part of parts) assert.deepEqual(ring.add(part), []);
});

test('while the clock was wrong, minutes are recorded at its time, and only what they replace is lost', () => {
  const ring = createHistoryRing();
  for (let minute = 0; minute < 60; minute += 1) ring.add(partOf(START + minute, { joins: [1] }));
  // Five years ahead for three minutes, then a day back for two.
  for (let minute = 0; minute < 3; minute += 1) {
    ring.add(partOf(START + 5 * 365 * DAY + minute, { joins: [10] }));
  }
  for (let minute = 0; minute < 2; minute += 1) {
    ring.add(partOf(START - DAY + minute, { joins: [100] }));
  }
  const kept = read(ring, ['joins'], START, START + 60, '1m');
  assert.equal(kept.count?.filter((count) => count === 1).length, total(kept.recorded_minutes));
  assert.ok(total(kept.recorded_minutes) >= 57);
  assert.equal(total(read(ring, ['joins'], START - DAY, START - DAY + 60, '1m').count), 200);
  assert.equal(total(read(ring, ['joins'], START, START + 60, '1h').count), 60);
});

test('rows of a program with fewer series have gaps for the added ones', () => {
  const ring = createHistoryRing();
  ring.put({ seconds: 60, slot: START % 2880, values: [START, 1, 0, 5, 3] });
  const [requests, joins] = (['requests', 'joins'] as const).map((name) =>
    read(ring, [name], START, START + 1, '1m'),
  );
  assert.deepEqual([requests?.count, requests?.recorded_minutes], [[5], [1]]);
  assert.deepEqual(joins?.count, [null]);
  const [, last = assert.fail('no series')] = SERIES_NAMES;
  const { count } = read(ring, [last], START, START + 1, '1m');
  assert.deepEqual(count, [3], 'the last series of that program');
});

test('after two years, it has the last two days by minute, 90 days by hour and all days, in a fixed amount of memory', () => {
  const ring = createHistoryRing();
  const busy = Object.fromEntries(
    SERIES.map(({ name }) => {
      const { start, end } = placeOf(name);
      return [name, Array.from({ length: end - start }, (_, i) => 40_000_000 + i)];
    }),
  );
  const days = 730;
  const end = START + days * DAY;
  // A day apart, then an hour, then a minute.
  for (let minute = START; minute < end - 95 * DAY; minute += DAY) ring.add(partOf(minute, busy));
  for (let minute = end - 95 * DAY; minute < end; minute += 60) ring.add(partOf(minute, busy));
  for (let minute = end - 3 * DAY; minute < end; minute += 1) {
    if (minute % 60 !== 0) ring.add(partOf(minute, busy));
  }
  const rows = [...ring.rows()];
  assert.equal(rows.filter(({ seconds }) => seconds === 60).length, 2880);
  assert.equal(rows.filter(({ seconds }) => seconds === 3600).length, 2160);
  assert.equal(rows.filter(({ seconds }) => seconds === 86_400).length, 731);
  const full = HISTORY_LEVELS.reduce((sum, level) => sum + level.rows, 0);
  const perRow = rows.reduce((sum, row) => sum + encodeHistory(row).length, 0) / rows.length;
  assert.ok(perRow * full < 6 * 1024 ** 2, `${perRow} bytes for a row`);
  const counted = (step: HistoryStep, from: number) =>
    read(ring, ['joins'], from, end, step).count?.filter((count) => count !== null).length;
  assert.equal(counted('1m', end - 3 * DAY), 2880);
  assert.equal(counted('1h', START), 2160);
  assert.equal(counted('1d', START), 731);
});

test('no slice of a query takes long', () => {
  const ring = createHistoryRing();
  for (let minute = 0; minute < 2 * DAY; minute += 1) {
    ring.add(partOf(START + minute, { requests: [minute], heartbeat_time: [1, 2, 3, 4, 5] }));
  }
  const question = {
    series: SERIES_NAMES.slice(-12),
    from: START * 60_000,
    to: (START + 2 * DAY) * 60_000,
    step: '1m',
  } as const;
  withoutPause(ring.read(question));
  const slices = [...ring.read(question)].length;
  const began = process.cpuUsage();
  withoutPause(ring.read(question));
  const { user, system } = process.cpuUsage(began);
  const perSlice = (user + system) / 1000 / slices;
  assert.ok(perSlice < 10, `${perSlice} ms for each of ${slices} slices`);
});
