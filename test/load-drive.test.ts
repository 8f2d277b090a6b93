/** How the load generator sends and measures, on a simulated clock: no machine is idle enough for real time. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type DrivePlan, drive, type Traffic } from '../bench/load/drive.ts';
import { type Latencies, newLatencies, readLatencies } from '../bench/load/latency.ts';
import { compareRuns, type RunReport } from '../bench/load/run-report.ts';
import { runReport } from './support/run-reports.ts';
import { type SimulatedLoop, simulatedLoop, simulatedServer } from './support/simulated-loop.ts';

const REQUEST = Buffer.from('request');

interface Driven {
  readonly latencies: Latencies;
  readonly late: Latencies;
  readonly answered: number;
  readonly unsent: number;
  readonly lost: readonly string[];
  readonly sendingLimit: number | null;
}

interface Simulation {
  readonly workMs: (now: number) => number | null;
  readonly connections?: number;
  readonly next?: (now: number) => Buffer | null | undefined;
  readonly replaces?: boolean;
  readonly dueAt?: () => number;
}

async function driven(
  plan: Partial<DrivePlan>,
  { workMs, connections = 64, next = () => REQUEST, replaces = true, dueAt }: Simulation,
): Promise<Driven> {
  const loop: SimulatedLoop = simulatedLoop();
  const server = simulatedServer(loop, workMs);
  const [latencies, late] = [newLatencies(), newLatencies()];
  const counts = { answered: 0, unsent: 0 };
  const lost: string[] = [];
  const traffic: Traffic = {
    connections: Array.from({ length: connections }, server.open),
    next: () => next(loop.elapsed()),
    answered({ dueAt, lateMs }, _status, _body, now) {
      counts.answered += 1;
      latencies.record(now - dueAt);
      late.record(lateMs);
    },
    unsent(dueAt, now) {
      counts.unsent += 1;
      latencies.record(now - dueAt);
    },
    lost: (_sent, cause) => void lost.push(cause),
    ...(replaces && { replace: async () => server.open() }),
    ...(dueAt && { dueAt }),
  };
  const whole = { seconds: 2, rate: 100, patienceMs: 10_000, ...plan };
  const { sendingLimit } = await loop.run(drive(whole, traffic, loop));
  return { ...counts, latencies, late, lost, sendingLimit };
}

suite('an open loop', () => {
  for (const slowedBy of [0, 7, 50]) {
    test(`measures a server that takes ${slowedBy} ms longer as that much slower`, async () => {
      const { latencies } = await driven({ rate: 10 }, { workMs: () => 2 + slowedBy });
      for (const percentile of ['p50', 'p99', 'max'] as const) {
        assert.ok(Math.abs(latencies.at(percentile) - 2 - slowedBy) < 0.2);
      }
    });
  }

  test('sends every request when it is due', async () => {
    const { answered, unsent, late } = await driven({ rate: 250 }, { workMs: () => 1 });
    assert.deepEqual([answered, unsent], [500, 0]);
    assert.ok(late.at('max') <= 1, `${late.at('max')} ms`);
  });

  test('includes the waiting time of requests that were due while the server stalled', async () => {
    const stalls = (now: number) => (now >= 500 && now < 501 ? 1000 : 1);
    const plan = { rate: 1000, seconds: 4 };
    const { latencies, answered, unsent } = await driven(plan, { workMs: stalls, connections: 1 });
    assert.equal(answered + unsent, 4000);
    // A closed loop would have measured a single slow request.
    assert.ok(latencies.at('p50') > 500, `${latencies.at('p50')} ms`);
  });

  test('reports requests that were due and not sent, with the time they waited', async () => {
    const { answered, unsent, latencies, late } = await driven(
      { rate: 1000 },
      { workMs: () => 2, connections: 1 },
    );
    assert.equal(answered + unsent, 2000);
    // 500 per second, for the two seconds of the plan and one second after it.
    assert.ok(Math.abs(answered - 1500) < 10, `${answered} answered`);
    assert.ok(latencies.at('max') > 1400);
    assert.equal(late.at('p99'), 0, 'the server was late, not the generator');
  });

  test('is late if requests are not signed in time', async () => {
    const { late, latencies } = await driven(
      { rate: 100 },
      { workMs: () => 1, next: (now) => (now < 1000 ? null : REQUEST) },
    );
    assert.ok(late.at('max') > 950);
    assert.ok(latencies.at('max') > 950);
  });

  test('replaces a connection that fails, and reports which requests were lost', async () => {
    const { answered, lost } = await driven(
      { rate: 100 },
      { workMs: (now) => (now < 100 ? null : 1), connections: 2 },
    );
    assert.ok(lost.length > 0 && lost.every((cause) => cause === 'connection_lost'));
    assert.equal(answered + lost.length, 200);
  });

  test('gives up a request after its timeout', async () => {
    const plan = { rate: 10, patienceMs: 300 };
    const { answered, lost } = await driven(plan, { workMs: (now) => (now < 50 ? 700 : 1) });
    assert.ok(lost.length > 0 && lost.every((cause) => cause === 'timeout'));
    assert.equal(answered + lost.length, 20);
  });

  test('reports how many requests it could send', async () => {
    const { sendingLimit } = await driven({ rate: 2000 }, { workMs: () => 0.01 });
    assert.ok(sendingLimit !== null && sendingLimit > 5000, `${sendingLimit}/s`);
  });
});

suite('a closed loop', () => {
  test('sends the next request when one is answered, until there are no more', async () => {
    let left = 30;
    const next = () => {
      left -= 1;
      return left < 0 ? undefined : REQUEST;
    };
    const { answered, latencies } = await driven(
      { rate: null },
      { workMs: () => 10, connections: 3, next },
    );
    assert.equal(answered, 30);
    assert.ok(latencies.at('p50') >= 30);
  });

  test('ends with an error if a connection fails that must not be replaced', async () => {
    const failing = driven({ rate: null }, { workMs: () => null, replaces: false });
    await assert.rejects(failing, /reset/);
  });
});

suite('latencies', () => {
  test('are the same after encoding', () => {
    const latencies = newLatencies();
    for (let each = 1; each <= 10_000; each += 1) latencies.record(each / 7);
    const again = readLatencies(latencies.encoded());
    assert.deepEqual(again?.summary(), latencies.summary());
    assert.ok(Math.abs(latencies.at('p50') - 5000 / 7) / (5000 / 7) < 0.002);
  });

  test('are refused if they are not encoded ones', () => {
    assert.equal(readLatencies('abcd'), null);
  });

  test('of two runs against the same service differ by less than 3 %', async () => {
    const reports: RunReport[] = [];
    for (const seed of [1, 2]) {
      const random = randomFrom(seed);
      const { latencies } = await driven(
        { rate: 400, seconds: 10 },
        { workMs: () => 1 + random() },
      );
      reports.push(runReport({ histogram: latencies.encoded() }));
    }
    const [first, second] = reports as [RunReport, RunReport];
    for (const { figure, percent } of compareRuns(first, second)) {
      if (/^p(50|90|99) /.test(figure))
        assert.ok(Math.abs(percent ?? 100) < 3, `${figure} ${percent}`);
    }
  });
});

/** Repeatable numbers from 0 to 1 (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

test('requests with times of their own are sent when they are due', async () => {
  const times = [10, 400, 400, 900];
  const sentAt: number[] = [];
  const { answered, latencies } = await driven(
    { rate: null },
    {
      workMs: () => 2,
      dueAt: () => times[sentAt.length] ?? Number.POSITIVE_INFINITY,
      next(now) {
        sentAt.push(now);
        return REQUEST;
      },
    },
  );
  assert.equal(answered, times.length);
  for (const [index, at] of sentAt.entries()) {
    assert.ok(Math.abs(at - (times[index] ?? 0)) <= 1, `${at} ms`);
  }
  assert.ok(latencies.at('max') < 5);
});
