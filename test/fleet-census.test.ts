/** Counting a large fleet without blocking other work. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Certificate, UNTOUCHED } from '../machines/certificate.ts';
import { createCensus } from '../src/authority/census.ts';
import { createCertificateIndex } from '../src/authority/certificates/certificate-index.ts';
import { createKnownChains } from '../src/authority/certificates/known-chains.ts';
import { createLiveness } from '../src/authority/certificates/last-contact.ts';
import { createCertificateNumbers } from '../src/authority/subjects/numbering.ts';
import { createSubjects } from '../src/authority/subjects/subjects.ts';
import { HOUR } from './support/clock.ts';

/** Every node is a client, every fourth is an anchor, and each pair of nodes has its own role, listed twice. */
function rolesOf(n: number): string[] {
  const own = `role:${n >> 1}`;
  return ['role:client', ...(n % 4 === 0 ? ['role:anchor'] : []), own, own];
}

/** A census of `nodes` nodes, all of which sent a heartbeat at 0; `time` is the monotonic clock. */
function censusOf(nodes: number, time: { now: number }) {
  const numbers = createCertificateNumbers();
  const subjects = createSubjects(numbers);
  const certificates = createCertificateIndex({ subjects, numbers, seed: 1 });
  const liveness = createLiveness(HOUR, numbers);
  subjects.follow({ certificate: { decided: certificates.add } });
  for (let n = 0; n < nodes; n += 1) {
    const context: Certificate = {
      nodePublicKey: `key-${n}`,
      roles: rolesOf(n),
      issuedAt: 0,
      expiresAt: 1000 * HOUR,
      maxValidityHours: 168,
      remoteAddr: '',
      ...UNTOUCHED,
    };
    subjects.restore('certificate', `c-${n}`, { version: 1, value: 'issued', context });
    liveness.touch(`c-${n}`, { at: 0, status: 'healthy', remoteAddr: '', chain: 0 });
  }
  const knownChains = createKnownChains();
  const now = () => time.now;
  return createCensus({
    subjects,
    certificates,
    liveness,
    knownChains,
    activeWindow: HOUR,
    now,
    elapsed: now,
  });
}

test('the first count of a large fleet is awaited, and yields to others', async () => {
  const census = censusOf(5_000, { now: 0 });
  const counting = census.take();
  assert.ok(counting instanceof Promise);
  assert.equal(census.take(), counting, 'others who ask meanwhile wait for the same count');
  let turns = 0;
  let isCounted = false;
  void counting.then(() => {
    isCounted = true;
  });
  for (; !isCounted; turns += 1) await nextTurn();
  assert.ok(turns >= 10, `${turns} turns`);
  assert.equal(census.latest()?.fleet.expected, 5_000);
  assert.equal(census.latest()?.fleet.silent, 0);
});

test('later counts run in the background, and readers get the previous one', async () => {
  const time = { now: 0 };
  const census = censusOf(5_000, time);
  void census.take();
  while (census.latest() === null) await nextTurn();
  time.now += 2 * HOUR;
  assert.equal(census.take(), undefined);
  assert.equal(census.latest()?.fleet.silent, 0);
  while (census.latest()?.fleet.silent === 0) await nextTurn();
  assert.equal(census.latest()?.fleet.silent, 5_000);
  assert.equal(census.take(), undefined);
  assert.equal(census.latest()?.fleet.silent, 5_000, 'a young count stands');
});

test('a small fleet is counted at once', () => {
  const time = { now: 0 };
  const census = censusOf(400, time);
  time.now += 2 * HOUR;
  assert.equal(census.take(), undefined);
  assert.deepEqual(census.latest()?.fleet, {
    ...ALL_SILENT,
    silentKnownFrom: HOUR,
    lapsed: 0,
    since: { silent: HOUR, lapsing: null, lapsed: null },
    // The other roles have two nodes each and are sorted by name.
    roles: [
      { role: 'role:client', ...ALL_SILENT },
      { role: 'role:anchor', ...ALL_SILENT, expected: 100, silent: 100 },
      ...['0', '1', '10', '100', '101', '102', '103', '104', '105', '106'].map((n) => ({
        role: `role:${n}`,
        ...ALL_SILENT,
        expected: 2,
        silent: 2,
      })),
    ],
    more_roles: 190,
  });
});

for (const [name, past, lapsing] of [
  ['begins three days before the end, not a tenth of 1,000 hours', 0, 0],
  ['has begun a millisecond later', 1, 4],
] as const) {
  test(`the lapse of a certificate ${name}`, () => {
    const time = { now: 0 };
    const census = censusOf(4, time);
    time.now = (1000 - 72) * HOUR + past;
    census.take();
    assert.equal(census.latest()?.fleet.lapsing, lapsing);
  });
}

test('beyond a thousand roles, further ones are not counted', async () => {
  const census = censusOf(5000, { now: 0 });
  let isCounted = false;
  void census.take()?.then(() => {
    isCounted = true;
  });
  while (!isCounted) await nextTurn();
  assert.equal(census.latest()?.fleet.more_roles, 1000 - 12);
});

const ALL_SILENT = { expected: 400, healthy: 0, silent: 400, unwell: 0, lapsing: 0 };
