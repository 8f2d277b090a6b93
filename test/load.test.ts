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
import { findRate, missOf, parseObjectives } from '../bench/load/find.ts';
import { addToFleet, createFleet, type Fleet, readFleet } from '../bench/load/fleet-folder.ts';
import { KINDS, kindsInTurn, parseMix } from '../bench/load/mix.ts';
import { compareRuns, differingSettings, readRunReport } from '../bench/load/run-report.ts';
import { readMetrics, readServiceMetrics, serviceUse } from '../bench/load/service-metrics.ts';
import { scratchFolder } from './support/folders.ts';
import { runReport } from './support/run-reports.ts';

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
