/**
 * The history of the service: what it counts from requests, in any number of instances, and the effect of stops and clock
 * changes [core-4-22].
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';
import { keepHistory } from '../src/authority/history.ts';
import { createSliceQueue } from '../src/authority/subjects/sliced.ts';
import { jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { createEdgeMetrics } from '../src/edge/metrics.ts';
import { type Answer, OUTCOME_UNKNOWN, UNAVAILABLE } from '../src/protocol/contract/calls.ts';
import {
  CELLS,
  type History,
  type HistoryPart,
  placeOf,
  REQUEST_SECONDS,
  SERIES,
  type SeriesName,
  STORE_SECONDS,
} from '../src/protocol/rows/history.ts';
import { cellsIn, createHistoryRecorder } from '../src/server/history-recorder.ts';
import { createAuthorityMetrics } from '../src/server/metrics/authority.ts';
import type { Store, StoredHistory } from '../src/store/store.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND, testClock } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { keptLog } from './support/kept-log.ts';
import {
  get,
  joinedNode,
  nodeRequest,
  operate,
  outcome,
  type TestNode,
} from './support/requests.ts';

function first(values: readonly (number | null)[] = []): number {
  return values[0] ?? Number.NaN;
}

const START = Date.parse('2027-06-02T12:00:00Z');

suite('the history', () => {
  const clock = testClock(START);
  const { folder } = makeNetworkFolder('alpha', { now: START });
  let na: TestAuthority;
  let node: TestNode;
  before(async () => {
    na = await startTestAuthority({ clock, dataDir: folder });
    node = await joinedNode(na);
  });
  after(async () => {
    await na.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function beat(times: number): Promise<void> {
    for (let n = 0; n < times; n += 1) {
      const body = { cert_id: node.certId, status: 'healthy' };
      assert.equal(outcome(await nodeRequest(na, '/heartbeat', node.key, body)), '200');
    }
  }

  async function pass(time: number): Promise<void> {
    clock.advance(time);
    await na.recordHistory();
  }

  async function read(query: string): Promise<History> {
    const { status, body } = await get(na, `/history.json?${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  }

  /** The values of a count for each minute since the start. */
  async function counted(name: string, minutes: number) {
    const ends = `from=${formatInstant(START)}&to=${formatInstant(START + minutes * MINUTE)}`;
    return (await read(`series=${name}&${ends}&step=1m`)).series[0]?.count ?? [];
  }

  test('a minute is recorded when it has ended', async () => {
    await beat(3);
    assert.deepEqual(await counted('heartbeats', 2), [null, null]);
    await pass(MINUTE);
    assert.deepEqual(await counted('heartbeats', 2), [3, null]);
    await beat(2);
    await pass(MINUTE);
    assert.deepEqual(await counted('heartbeats', 2), [3, 2]);
    assert.deepEqual(await counted('joins', 2), [1, 0]);
  });

  test('it has everything the metrics count: changes, refusals, levels and times', async () => {
    await operate(na, '/admin/revoke', { cert_id: node.certId, reason: 'superseded' });
    assert.equal(outcome(await get(na, '/no-such-path')), '404 not_found');
    node = await joinedNode(na);
    await pass(MINUTE);
    const names =
      'revocations,joins,refused_404,crl_length,active_nodes,memory,operator_time,commit_time';
    const { recorded_minutes, series } = await read(
      `series=${names}&from=${formatInstant(START + 2 * MINUTE)}&to=${formatInstant(clock.now())}&step=1m`,
    );
    assert.deepEqual(recorded_minutes, [1]);
    const found = (name: string) => series.find((row) => row.name === name);
    for (const name of ['revocations', 'joins', 'refused_404']) {
      assert.deepEqual(found(name), { name, kind: 'count', count: [1] });
    }
    for (const name of ['crl_length', 'active_nodes']) {
      assert.deepEqual(found(name), { name, kind: 'level', mean: [1], max: [1] });
    }
    assert.ok(first(found('memory')?.mean) > 10_000_000);
    const times = found('operator_time');
    assert.ok(first(times?.count) >= 1);
    assert.ok(first(times?.p50) > 0 && first(times?.p50) <= first(times?.p99));
    assert.ok(first(found('commit_time')?.count) >= 2);
  });

  test('a restart loses nothing, and its minute is recorded once', async () => {
    await beat(4);
    na = await na.restart();
    // After a start, nothing older than the last request is accepted.
    clock.advance(SECOND);
    await beat(5);
    await pass(MINUTE);
    assert.deepEqual((await counted('heartbeats', 4)).slice(3), [9]);
    const { recorded_minutes } = await read(
      `series=joins&from=${formatInstant(START)}&to=${formatInstant(START + HOUR)}&step=1h`,
    );
    assert.deepEqual(recorded_minutes, [4]);
  });

  test('while nothing ran, there is a gap', async () => {
    await na.stop();
    clock.advance(3 * MINUTE);
    na = await startTestAuthority({ clock, dataDir: folder });
    clock.advance(SECOND);
    await beat(1);
    await pass(MINUTE);
    // The stop recorded the incomplete minute 4.
    assert.deepEqual((await counted('heartbeats', 8)).slice(4), [0, null, null, 1]);
  });

  test('a clock jump is a gap, and nothing that was counted is lost', async () => {
    await beat(2);
    clock.step(2 * HOUR);
    await na.checkClock();
    clock.advance(10 * SECOND);
    await na.checkClock();
    // The periodic work may do this at any time from here on.
    await na.recordHistory();
    await beat(3);
    await pass(MINUTE);
    const ahead = await counted('heartbeats', 140);
    assert.deepEqual([ahead[8], ahead[128]], [2, 3]);
    assert.ok(ahead.slice(10, 120).every((count) => count === null));
    clock.step(-2 * HOUR);
    await na.checkClock();
    clock.advance(10 * SECOND);
    await na.checkClock();
    await pass(MINUTE);
    await beat(1);
    await pass(MINUTE);
    const total = (await counted('heartbeats', 140)).reduce(
      (sum, count) => (sum ?? 0) + (count ?? 0),
      0,
    );
    assert.equal(total, 3 + 2 + 9 + 1 + 5 + 1);
  });

  test('it refuses unknown series, steps and times', async () => {
    for (const [query, expected] of [
      ['', '400 invalid_series'],
      ['series=', '400 invalid_series'],
      ['series=heartbeats,nothing', '400 invalid_series'],
      [`series=${SERIES.slice(0, 13).map(({ name }) => name)}`, '400 invalid_series'],
      ['series=joins&step=2m', '400 invalid_step'],
      ['series=joins&from=yesterday', '400 invalid_time_range'],
      ['series=joins&from=2027-06-02T12:00:00Z&to=2027-06-02T12:00:00Z', '400 invalid_time_range'],
      ['series=joins&from=2027-06-02&to=2027-06-04&step=1m', '400 invalid_time_range'],
      ['series=joins&from=1901-01-01&to=1901-01-02', '400 invalid_time_range'],
      ['series=joins&from=9999-12-31&to=9999-12-31T12:00:00Z&step=1d', '400 invalid_time_range'],
      ['series=joins,joins&from=2027-06-02&to=2027-06-03&step=1m', '200'],
    ] as const) {
      assert.equal(outcome(await get(na, `/history.json?${query}`)), expected, query);
    }
  });

  test('the command line draws it, and prints JSON and CSV', async () => {
    const ends = ['--since', formatInstant(START), '--until', formatInstant(START + 4 * MINUTE)];
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCommand([
        'history',
        '--url',
        na.url,
        '--step',
        '1m',
        ...ends,
        ...args,
      ]);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    const shown = await run('--series', 'heartbeats', '--series', 'active_nodes');
    assert.match(shown, /; 4 of 4 minutes were recorded\./);
    assert.match(shown, /^heartbeats +▃▃▁█ +9 +14$/m);
    assert.match(shown, /^active_nodes +████ +1$/m);
    const { series } = JSON.parse(await run('--series', 'joins', '--json'));
    assert.deepEqual(series, [{ name: 'joins', kind: 'count', count: [1, 0, 1, 0] }]);
    const csv = await run('--series', 'heartbeats', '--series', 'active_nodes', '--csv');
    assert.equal(
      csv.split('\n')[0],
      'time,recorded_minutes,heartbeats_count,active_nodes_mean,active_nodes_max',
    );
    assert.match(csv, /^2027-06-02T12:03:00Z,1,9,1,1$/m);
  });

  test('the client reads it; without times and step it covers the last day', async () => {
    const { from, to, step_seconds, series } = await createPublicClient({
      url: na.url,
    }).readHistory({ series: 'heartbeats,joins' });
    assert.deepEqual(
      series.map(({ name }) => name),
      ['heartbeats', 'joins'],
    );
    assert.equal(step_seconds, 300);
    assert.ok(Date.parse(to) - Date.parse(from) <= 24 * HOUR + 5 * MINUTE);
  });
});

// What an instance counts reaches the active instance exactly once, regardless of what happens to the active
// instance.

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
