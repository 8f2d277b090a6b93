/** The history of the service: what it counts from requests, and the effect of stops and clock changes [core-4-22]. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';
import { formatInstant } from '../src/base/timestamp.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { type History, SERIES } from '../src/protocol/rows/history.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND, testClock } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { makeNetworkFolder } from './support/folders.ts';
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
