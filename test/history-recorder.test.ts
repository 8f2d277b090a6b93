/** What an instance counts reaches the active instance exactly once, regardless of what happens to the active instance. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepHistory } from '../src/authority/history.ts';
import { createSliceQueue } from '../src/authority/subjects/sliced.ts';
import { jsonText } from '../src/base/json/write.ts';
import { createEdgeMetrics } from '../src/edge/metrics.ts';
import { type Answer, OUTCOME_UNKNOWN, UNAVAILABLE } from '../src/protocol/contract/calls.ts';
import {
  CELLS,
  type History,
  type HistoryPart,
  placeOf,
  REQUEST_SECONDS,
  type SeriesName,
  STORE_SECONDS,
} from '../src/protocol/rows/history.ts';
import { cellsIn, createHistoryRecorder } from '../src/server/history-recorder.ts';
import { createAuthorityMetrics } from '../src/server/metrics/authority.ts';
import type { Store, StoredHistory } from '../src/store/store.ts';
import { MINUTE } from './support/clock.ts';
import { keptLog } from './support/kept-log.ts';

const START = Date.parse('2027-06-02T12:00:00Z');
const DONE: Answer = { ok: true, json: 'null' };

/** The rows that all instances share through a database. */
function sharedStore(): Pick<Store, 'history' | 'putHistory'> {
  const rows = new Map<string, StoredHistory>();
  return {
    async *history() {
      yield [...rows.values()];
    },
    async putHistory(put) {
      for (const row of put) rows.set(`${row.seconds} ${row.slot}`, row);
    },
  };
}

function instance(source: number, record: (part: HistoryPart) => Answer | Promise<Answer>) {
  let now = START;
  const { logger, text } = keptLog();
  const edges = [createEdgeMetrics(), createEdgeMetrics()];
  const recorder = createHistoryRecorder({
    source,
    now: () => now,
    reports: () => Promise.all(edges.map((edge) => edge.report())),
    counts: async () => UNAVAILABLE,
    diskFree: () => null,
    record,
    logger,
  });
  return {
    log: text,
    /** Answers this many heartbeats, alternating between the threads. */
    beat(times: number) {
      for (let n = 0; n < times; n += 1) {
        edges[n % 2]?.request('POST', '/heartbeat', 200, 0.0004);
      }
    },
    async pass(minutes = 1) {
      now += minutes * MINUTE;
      await recorder.check();
    },
    stop: () => recorder.finish(),
  };
}

async function beatsIn(history: Pick<ReturnType<typeof keepHistory>, 'read'>): Promise<unknown> {
  const question = {
    series: ['heartbeats'],
    from: START,
    to: START + 6 * MINUTE,
    step: '1m',
  } as const;
  const answer = await history.read(question, createSliceQueue().run);
  return (JSON.parse(jsonText(answer)) as History).series[0]?.count;
}

test('three instances and a change of the active instance: each heartbeat is counted once, in the minute in which it was answered', async () => {
  const store = sharedStore();
  let active: ReturnType<typeof keepHistory> | null = keepHistory(store);
  let losesAnswers = false;
  async function record(part: HistoryPart): Promise<Answer> {
    if (active === null) return UNAVAILABLE;
    await active.add(part);
    return losesAnswers ? OUTCOME_UNKNOWN : DONE;
  }
  const instances = [1, 2, 3].map((source) => instance(source, record));
  const all = async (beats: number) => {
    for (const one of instances) one.beat(beats);
    for (const one of instances) await one.pass();
  };
  await all(2);
  losesAnswers = true;
  await all(3);
  active = null;
  losesAnswers = false;
  await all(4);
  active = keepHistory(store);
  await all(5);
  instances[0]?.beat(1);
  await instances[0]?.stop();
  assert.deepEqual(await beatsIn(active), [6, 9, 12, 15, 1, null]);
  assert.deepEqual(await beatsIn(keepHistory(store)), [6, 9, 12, 15, 1, null]);
});

test('counts that no active instance takes are kept for an hour', async () => {
  const taken: HistoryPart[] = [];
  let isTaken = false;
  const one = instance(1, (part) => {
    if (!isTaken) return UNAVAILABLE;
    taken.push(part);
    return DONE;
  });
  for (let minute = 0; minute < 70; minute += 1) await one.pass();
  isTaken = true;
  await one.pass();
  assert.deepEqual([taken.length, taken[0]?.number, taken.at(-1)?.number], [60, 12, 71]);
});

test('an active instance that fails does not stop it, and is logged', async () => {
  let fails = true;
  const taken: number[] = [];
  const one = instance(1, (part) => {
    if (fails) throw new Error('no room');
    taken.push(part.number);
    return DONE;
  });
  await one.pass();
  assert.match(one.log(), /ERROR.*A minute could not be recorded: .*no room/);
  fails = false;
  await one.pass();
  assert.deepEqual(taken, [1, 2]);
});

test('a pause of the process is a gap, and earlier counts belong to the minute in which it began', async () => {
  const store = sharedStore();
  const history = keepHistory(store);
  const one = instance(1, async (part) => {
    await history.add(part);
    return DONE;
  });
  one.beat(7);
  await one.pass(3);
  one.beat(1);
  await one.pass();
  assert.deepEqual(await beatsIn(history), [7, null, null, 1, null, null]);
});

test('every count and time comes from the metrics', async () => {
  const edge = createEdgeMetrics();
  edge.request('POST', '/heartbeat', 200, 0.00005);
  edge.request('POST', '/heartbeat', 401, 0.0003);
  edge.request('GET', '/heartbeat', 405, 0.02);
  edge.request('POST', '/join', 409, 3);
  edge.request('POST', '/admin/revoke', 503, 0.2);
  edge.request('GET', '/crl', 304, 0.0002);
  edge.request('POST', '/attestations/verify', 200, 0.001);
  edge.shed();
  edge.verified('membership_attestation_verified', true);
  edge.verified('treaty_attestation_verified', false);
  edge.verified('agreement_verified', true);
  const authority = createAuthorityMetrics('test', () => 0);
  for (const event of ['certificate_issued', 'certificate_issued', 'policy_rolled_back', 'other']) {
    authority.audited(event);
  }
  authority.refused('admin_auth_failed', 'stale');
  authority.refused('node_auth_failed', 'stale');
  authority.clockStepped(-5000);
  authority.stored('commit', 0.003);
  authority.stored('liveness_flush', 2);
  const cells = cellsIn([await edge.report(), await authority.report()]);
  const expected = new Array<number>(CELLS).fill(0);
  const counts: Partial<Record<SeriesName, number>> = {
    requests: 7,
    heartbeats: 1,
    refused_401: 1,
    refused_other: 1,
    refused_409: 1,
    failed: 1,
    shed: 1,
    verifications: 3,
    attestations_accepted: 1,
    attestations_refused: 1,
    events: 3,
    joins: 2,
    policies_activated: 1,
    operator_auth_failures: 1,
    node_auth_failures: 1,
    clock_steps: 1,
  };
  for (const [name, count] of Object.entries(counts)) {
    expected[placeOf(name as SeriesName).start] = count;
  }
  const buckets = [
    ['heartbeat_time', 0],
    ['heartbeat_time', 2],
    ['heartbeat_time', 7],
    ['enrollment_time', REQUEST_SECONDS.length],
    ['operator_time', 8],
    ['other_time', 1],
    ['verification_time', 3],
    ['commit_time', 3],
    ['flush_time', STORE_SECONDS.length],
  ] as const;
  for (const [name, bucket] of buckets) expected[placeOf(name).start + bucket] = 1;
  assert.deepEqual(cells, expected);
});
