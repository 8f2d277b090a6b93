/**
 * The parts of `npm run load` that decide: mixes, the search for a rate, comparisons, and whether load is permitted.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { appendFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { otherCertificates } from '../bench/load/commands/place.ts';
import type { Connection } from '../bench/load/connection.ts';
import { type DrivePlan, drive, type Loop, type Traffic } from '../bench/load/drive.ts';
import { findRate, missOf, parseObjectives } from '../bench/load/find.ts';
import { addToFleet, createFleet, type Fleet, readFleet } from '../bench/load/fleet-folder.ts';
import { type Latencies, newLatencies, readLatencies } from '../bench/load/latency.ts';
import { KINDS, kindsInTurn, parseMix } from '../bench/load/mix.ts';
import {
  compareRuns,
  differingSettings,
  type RunReport,
  readRunReport,
} from '../bench/load/run-report.ts';
import { readMetrics, readServiceMetrics, serviceUse } from '../bench/load/service-metrics.ts';
import { scratchFolder } from './support/folders.ts';

suite('a mix', () => {
  for (const [text, mix] of [
    ['heartbeat=95,renew=1,crl=3,verify=1', { heartbeat: 95, renew: 1, crl: 3, verify: 1 }],
    ['crl=1', { crl: 1 }],
    ['crl=1,crl=2', null],
    ['crl=0', null],
    ['crl', null],
    ['crl=-1', null],
    ['join=1', null],
    ['__proto__=1', null],
    ['', null],
  ] as const) {
    test(`"${text}" is ${mix === null ? 'refused' : 'read'}`, () => {
      assert.deepEqual(parseMix(text), mix);
    });
  }

  test('has each kind as often as its share says, in every stretch', () => {
    const shares = fc.record(Object.fromEntries(KINDS.map((kind) => [kind, fc.nat({ max: 20 })])));
    fc.assert(
      fc.property(shares, (mix) => {
        const total = Object.values(mix).reduce((sum, share) => sum + share, 0);
        fc.pre(total > 0);
        const next = kindsInTurn(mix);
        const kinds = Array.from({ length: 2 * total }, next);
        for (const half of [kinds.slice(0, total), kinds.slice(total)]) {
          for (const kind of KINDS) {
            assert.equal(half.filter((each) => each === kind).length, mix[kind]);
          }
        }
      }),
      { numRuns: 50 },
    );
  });
});

suite('objectives', () => {
  for (const [text, objectives] of [
    ['p99=50ms', [{ percentile: 'p99', milliseconds: 50 }]],
    [
      'p50=5ms,p99.9=1.5s',
      [
        { percentile: 'p50', milliseconds: 5 },
        { percentile: 'p999', milliseconds: 1500 },
      ],
    ],
    ['max=1s', [{ percentile: 'max', milliseconds: 1000 }]],
    ['p98=50ms', null],
    ['p99=50', null],
    ['p99', null],
    ['', null],
  ] as const) {
    test(`"${text}" are ${objectives === null ? 'refused' : 'read'}`, () => {
      assert.deepEqual(parseObjectives(text), objectives);
    });
  }

  const objectives = parseObjectives('p99=50ms') ?? [];
  const latency = runReport().latency_ms;
  for (const [what, given, miss] of [
    ['a run within them', {}, null],
    ['a slow run', { latency_ms: { ...latency, p99: 60 } }, 'p99 is 60.0 ms instead of 50 ms'],
    ['a run with failures', { accepted: 990 }, '10 of 1000 requests failed'],
    ['a run that does not reach the rate', { rate_reached: 90 }, '90/s were reached'],
  ] as const) {
    test(`are ${miss === null ? 'met' : 'missed'} by ${what}`, () => {
      assert.equal(missOf(runReport(given), objectives), miss);
    });
  }
});

suite('the search for the highest rate', () => {
  const search = { objectives: parseObjectives('p99=50ms') ?? [], from: 1000, highest: 200_000 };

  /** A service that is fast up to this rate and slow beyond it. */
  function service(capacity: number, was_at_limit = false) {
    return async (rate: number) => {
      const { latency_ms, generator } = runReport();
      const p99 = rate <= capacity ? 10 : 500;
      return runReport({
        rate_asked: rate,
        rate_reached: Math.min(rate, capacity),
        latency_ms: { ...latency_ms, p99 },
        generator: { ...generator, was_at_limit },
      });
    };
  }

  for (const capacity of [30, 1000, 1500, 17_300, 90_000]) {
    test(`finds ${capacity}/s within 5 %`, async () => {
      const { rate, endedByGenerator, attempts } = await findRate(search, service(capacity));
      assert.ok(rate !== null && rate <= capacity && rate > capacity * 0.94, String(rate));
      assert.equal(endedByGenerator, false);
      assert.ok(attempts.length < 16);
    });
  }

  test('finds nothing if no rate holds', async () => {
    const { rate, attempts } = await findRate(search, service(0));
    assert.equal(rate, null);
    assert.equal(attempts.at(-1)?.report.rate_asked, 1);
  });

  test('ends at the maximum rate', async () => {
    const { rate } = await findRate({ ...search, highest: 5000 }, service(100_000));
    assert.equal(rate, 5000);
  });

  test('ends when the generator is at its limit, because more would say nothing about the service', async () => {
    const { rate, endedByGenerator } = await findRate(search, service(3000, true));
    assert.deepEqual([rate, endedByGenerator], [2000, true]);
  });
});

suite('the comparison of two runs', () => {
  test('shows each figure with its change', () => {
    const figures = compareRuns(runReport(), runReport({ rate_reached: 110 }));
    assert.deepEqual(figures[0], { figure: 'requests/s', first: 100, second: 110, percent: 10 });
    assert.equal(figures.find(({ figure }) => figure === 'p99 (ms)')?.percent, 0);
    assert.equal(figures.find(({ figure }) => figure === 'failed requests')?.percent, null);
  });

  test('shows which settings differ', () => {
    assert.deepEqual(differingSettings(runReport(), runReport({ connections: 8 })), [
      'connections: 64, 8',
    ]);
  });

  for (const [what, value] of [
    ['another document', { kind: 'crl' }],
    ['a report of a later version', { ...runReport(), version: 2 }],
    ['a report without its histogram', { ...runReport(), histogram: 'none' }],
    ['nothing', null],
  ] as const) {
    test(`refuses ${what}`, () => assert.equal(readRunReport(value), null));
  }
});

suite('the metrics of a service', () => {
  const text = (requests: number, cpu: number) => `
# HELP mesh_na_http_requests_total Requests
mesh_na_http_requests_total{method="POST",path="/heartbeat",status="200"} ${requests}
mesh_na_http_requests_total{method="GET",path="/crl",status="200"} 5
mesh_na_process_cpu_seconds_total ${cpu}
mesh_na_process_resident_memory_bytes 1048576
mesh_na_store_seconds_sum{work="commit"} ${cpu / 10}
mesh_na_store_seconds_count{work="commit"} ${requests / 100}
mesh_na_issued_certs_total 7
`;

  test('are summed over labels, and become costs between two readings', () => {
    const [before, after] = [text(100, 1), text(1100, 1.05)].map(readServiceMetrics);
    assert.ok(before && after);
    assert.equal(before.requests, 105);
    assert.equal(before.issuedCertificates, 7);
    const use = serviceUse(before, after);
    assert.equal(use.requests, 1000);
    assert.ok(Math.abs(use.cpu_us_per_request - 50) < 0.001);
    assert.ok(Math.abs(use.flush_ms - 0.5) < 0.001);
  });

  test('are not read from another program', () => {
    assert.equal(readServiceMetrics('process_cpu_seconds_total 1\n'), null);
  });

  test('are read again after the service has ended the connection, as it does during a long run', async (t) => {
    const server = createServer((_, response) => {
      response.setHeader('connection', 'close').end(text(100, 1));
    });
    t.after(() => server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const target = { host: '127.0.0.1', port };
    for (let reading = 0; reading < 2; reading += 1) {
      const read = await readMetrics(target, { host: `127.0.0.1:${port}`, prefix: '' });
      assert.equal(read?.requests, 105);
    }
  });
});

suite('a fleet', () => {
  const network = {
    version: 1,
    network_name: 'alpha',
    authority_key: 'key',
    validity_hours: 8760,
  } as const;
  const seeds = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64')) as [string, string];

  test('is read from its folder; the last certificate of a node counts', async () => {
    await using folder = scratchFolder();
    assert.equal(readFleet(folder.path), null);
    createFleet(folder.path, network);
    addToFleet(folder.path, [
      { seed: seeds[0], cert_id: 'a' },
      { seed: seeds[1], cert_id: 'b' },
    ]);
    addToFleet(folder.path, [{ seed: seeds[0], cert_id: 'c' }]);
    const nodes = [
      { seed: seeds[0], cert_id: 'c' },
      { seed: seeds[1], cert_id: 'b' },
    ];
    assert.deepEqual(readFleet(folder.path), { network, nodes, certificates: 3 });
  });

  for (const [what, damage, problem] of [
    ['a line that was cut off', ['nodes.jsonl', '{"seed":"AQ'], /Line 1 of .* is not a node/],
    ['a line without a key', ['nodes.jsonl', '{"cert_id":"a"}\n'], /Line 1 of .* is not a node/],
    ['another document', ['fleet.json', '{"version":2}'], /does not describe a fleet/],
  ] as const) {
    test(`is refused with ${what}`, async () => {
      await using folder = scratchFolder();
      createFleet(folder.path, network);
      const [file, text] = damage;
      if (file === 'fleet.json') writeFileSync(join(folder.path, file), text);
      else appendFileSync(join(folder.path, file), text);
      assert.throws(() => readFleet(folder.path), problem);
    });
  }

  for (const [issued, certificates, others] of [
    [0, null, 0],
    [3, null, 3],
    [10, 10, 0],
    [8, 10, 0],
    [12, 10, 2],
    [null, 10, null],
  ] as const) {
    const fleet: Fleet | null = certificates === null ? null : { network, nodes: [], certificates };
    test(`of ${certificates} certificates, of ${issued} issued, leaves ${others} of others`, () => {
      assert.equal(otherCertificates(issued, fleet), others);
    });
  }
});

// How the load generator sends and measures, on a simulated clock: no machine is idle enough for real time.

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

/** A turn of the loop that has nothing to do takes this long. */
const TURN_MS = 0.05;

interface SimulatedLoop extends Loop {
  /** Runs until the promise has settled. */
  run<T>(work: Promise<T>): Promise<T>;
}

/** An event loop on a simulated clock. */
function simulatedLoop(): SimulatedLoop {
  let now = 0;
  let order = 0;
  let calls: { at: number; order: number; call: () => void }[] = [];

  function runNext(): void {
    const next = calls.reduce((first, each) =>
      each.at < first.at || (each.at === first.at && each.order < first.order) ? each : first,
    );
    calls = calls.filter((each) => each !== next);
    now = Math.max(now, next.at);
    next.call();
  }

  return {
    elapsed: () => now,
    after(milliseconds, call) {
      order += 1;
      calls.push({ at: now + Math.max(milliseconds, TURN_MS), order, call });
    },
    async run(work) {
      let isSettled = false;
      const settled = work.finally(() => {
        isSettled = true;
      });
      settled.catch(() => undefined);
      while (!isSettled) {
        for (let left = 100; left > 0 && calls.length > 0; left -= 1) runNext();
        // Promises that the calls have resolved continue here.
        await new Promise(setImmediate);
      }
      return settled;
    },
  };
}

interface SimulatedServer {
  open(): Connection;
}

/**
 * A server that answers with 200 and works on one request at a time; `workMs` is the duration of one that arrives at
 * this time, or null if its connection fails.
 */
function simulatedServer(loop: Loop, workMs: (now: number) => number | null): SimulatedServer {
  let freeAt = 0;
  return {
    open() {
      const connection: Connection = {
        send() {
          const now = loop.elapsed();
          const work = workMs(now);
          if (work === null) {
            loop.after(0, () => connection.failed(new Error('The connection was reset')));
            return;
          }
          freeAt = Math.max(freeAt, now) + work;
          loop.after(freeAt - now, () => connection.answered(200, Buffer.alloc(0), ''));
        },
        close: () => undefined,
        answered: () => undefined,
        failed: () => undefined,
      };
      return connection;
    },
  };
}

/** The report of a run in which everything went well, except for the given members. */
function runReport(given: Partial<RunReport> = {}): RunReport {
  const latencies = newLatencies();
  latencies.record(5);
  return {
    kind: 'mesh-na-load-run',
    version: 1,
    started_at: '2026-01-01T00:00:00.000000Z',
    url: 'http://127.0.0.1:8443',
    network_name: 'alpha',
    mix: 'heartbeat=1',
    nodes: 10,
    connections: 64,
    bulletins: false,
    sessions: false,
    seconds: 10,
    rate_asked: 100,
    rate_reached: 100,
    due: 1000,
    accepted: 1000,
    answered_429: 0,
    answered_503: 0,
    unsent: 0,
    errors: {},
    latency_ms: latencies.summary(),
    kinds: { heartbeat: { accepted: 1000, p50_ms: 5, p99_ms: 5 } },
    generator: {
      signing_threads: 1,
      signing_limit: 20_000,
      sending_limit: null,
      late_p99_ms: 0,
      was_at_limit: false,
    },
    service: {
      requests: 1000,
      cpu_seconds: 0.05,
      cpu_us_per_request: 50,
      resident_bytes_before: 200 * 2 ** 20,
      resident_bytes_after: 201 * 2 ** 20,
      flushes: 10,
      flush_ms: 3,
    },
    histogram: latencies.encoded(),
    ...given,
  };
}
