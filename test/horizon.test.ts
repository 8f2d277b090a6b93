/** What lapses and when, as shown to operators, on the dashboard and in metrics [core-4-20]. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';
import { type Certificate, UNTOUCHED } from '../machines/certificate.ts';
import { createCensus } from '../src/authority/census.ts';
import { createCertificateIndex } from '../src/authority/certificates/certificate-index.ts';
import { createKnownChains } from '../src/authority/certificates/known-chains.ts';
import { createLiveness } from '../src/authority/certificates/last-contact.ts';
import type { Subject } from '../src/authority/subjects/kinds.ts';
import { createCertificateNumbers } from '../src/authority/subjects/numbering.ts';
import { createSubjects } from '../src/authority/subjects/subjects.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { Horizon, LapsingKind } from '../src/protocol/rows/dashboard.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, SECOND, testClock } from './support/clock.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { get, joinedNode, nodeRequest, operate, outcome } from './support/requests.ts';

const DAY = 24 * HOUR;
const WEEK = 7 * DAY;
/** A Wednesday. */
const START = Date.parse('2027-06-02T12:00:00Z');

suite('what lapses', () => {
  const clock = testClock(START);
  const { folder } = makeNetworkFolder('alpha', { now: START });
  let na: TestAuthority;
  before(async () => {
    na = await startTestAuthority({ clock, dataDir: folder });
  });
  after(async () => {
    await na.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function horizon(): Promise<Horizon> {
    const call = { method: 'GET', operator: na.standard };
    return (await operate(na, '/admin/horizon', {}, call)).body;
  }

  async function lapsing(kind: LapsingKind) {
    const found = (await horizon()).lapsing.find((row) => row.kind === kind);
    if (found === undefined) return null;
    return [found.count, found.soonest, ...found.weeks.map((w) => [w.week_from, w.count])];
  }

  test('in a new network only the delegation lapses', async () => {
    const { as_of, lapsing } = await horizon();
    assert.equal(as_of, formatInstant(START));
    assert.deepEqual(
      lapsing.map(({ kind, count }) => [kind, count]),
      [['delegation', 1]],
    );
  });

  test('certificates count in the week of their expiry, until they are renewed or revoked', async () => {
    const nodes = [];
    for (let n = 0; n < 3; n += 1) nodes.push(await joinedNode(na));
    const [one, two] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
    const end = formatInstant(START + 168 * HOUR);
    assert.deepEqual(await lapsing('certificate'), [3, end, ['2027-06-07T00:00:00Z', 3]]);
    clock.advance(5 * DAY);
    const renewed = await nodeRequest(na, '/renew', one.key, { cert_id: one.certId });
    assert.equal(outcome(renewed), '200');
    assert.deepEqual(await lapsing('certificate'), [
      3,
      end,
      ['2027-06-07T00:00:00Z', 2],
      ['2027-06-14T00:00:00Z', 1],
    ]);
    await operate(na, '/admin/revoke', { cert_id: two.certId });
    assert.equal((await lapsing('certificate'))?.[0], 2);
    clock.advance(3 * DAY);
    const next = formatInstant(START + 5 * DAY + 168 * HOUR);
    assert.deepEqual(await lapsing('certificate'), [1, next, ['2027-06-14T00:00:00Z', 1]]);
  });

  test('treaties and attestations in force count, revoked ones do not', async () => {
    const now = clock.now();
    const treaty = {
      subject_sovereign_id: 'harbor',
      subject_public_keys: [na.audience],
      validity_hours: 48,
    };
    const attestation = {
      subject_id: 'node-1',
      subject_public_key: null,
      roles: ['role:client'],
      validity_hours: 24,
      claims: { expires_at: '1999-01-01T00:00:00Z', note: '"expires_at":"1999-01-01T00:00:00Z"' },
    };
    for (let n = 0; n < 2; n += 1) {
      assert.equal(outcome(await operate(na, '/admin/recognition-treaties', treaty)), '200');
    }
    const issued = await operate(na, '/admin/attestations', attestation);
    assert.equal(outcome(issued), '200', issued.text);
    const { body } = issued;
    assert.deepEqual((await lapsing('treaty'))?.slice(0, 2), [2, formatInstant(now + 2 * DAY)]);
    assert.deepEqual((await lapsing('attestation'))?.slice(0, 2), [1, formatInstant(now + DAY)]);
    await operate(na, `/admin/attestations/${body.attestation_id}/revoke`, { reason: 'left' });
    assert.equal(await lapsing('attestation'), null);
  });

  test('the data-license policy counts even after its end', async () => {
    const valid_until = formatInstant(clock.now() + HOUR);
    const valid_from = formatInstant(clock.now());
    const policy = {
      licensee_sovereign_id: 'harbor',
      allowed_source_ids: [],
      allowed_access_types: [],
      valid_from,
      valid_until,
    };
    assert.equal(outcome(await operate(na, '/admin/data-usage/policy', policy)), '201');
    clock.advance(2 * HOUR);
    assert.deepEqual((await lapsing('policy'))?.slice(0, 2), [1, valid_until]);
  });

  test('the dashboard and the metrics agree, and name no one', async () => {
    clock.advance(SECOND);
    const { horizon_summary } = (await get(na, '/dashboard.json')).body;
    const { days, ...within } = horizon_summary;
    assert.deepEqual(within, { within_day: 1, within_week: 4, within_month: 4 });
    assert.deepEqual(
      days.map(({ date, count }: { date: string; count: number }) => `${date}: ${count}`),
      [
        ...['2027-06-10: 1', '2027-06-11: 0', '2027-06-12: 2', '2027-06-13: 0'],
        ...['2027-06-14: 1', '2027-06-15: 0', '2027-06-16: 0', '2027-06-17: 0'],
      ],
    );
    const page = (await get(na, '/dashboard')).text;
    assert.match(
      page,
      /Ending soon<\/h2>.*<strong>\d needs?<\/strong> a person.*horizon_summary\.within_week[^>]*>4</,
    );
    assert.deepEqual(days[2].kinds, { treaty: 2 });
    assert.match(page, /<span>2 treaties<\/span>/);
    const { text } = await get(na, '/metrics');
    const soonest = (await horizon()).lapsing.map(({ kind, soonest }) => [kind, soonest]);
    const series = [
      ...text.matchAll(/^mesh_na_expiry_timestamp_seconds\{kind="(\w+)"\} (\S+)$/gm),
    ].map(([, kind, seconds]) => [kind, formatInstant(Number(seconds) * 1000)]);
    assert.deepEqual(series, soonest);
    assert.deepEqual(
      series.map(([kind]) => kind),
      ['delegation', 'certificate', 'treaty', 'policy'],
    );
  });
});

/** A certificate with this lifetime. */
function certificate(life: number, changes: Partial<Certificate> = {}): Subject<'certificate'> {
  const context = {
    nodePublicKey: '',
    roles: [],
    issuedAt: START,
    expiresAt: START + life,
    maxValidityHours: 168,
    remoteAddr: '',
    ...UNTOUCHED,
    ...changes,
  };
  return { version: 1, value: context.revokedAt === null ? 'issued' : 'revoked', context };
}

test('many certificates are counted in slices, and the count is shared while it is recent', () => {
  const numbers = createCertificateNumbers();
  const subjects = createSubjects(numbers);
  for (let n = 0; n < 50_000; n += 1) {
    subjects.restore('certificate', `c-${n}`, certificate((n % 4) * WEEK));
  }
  subjects.restore('certificate', 'gone', certificate(DAY, { revokedAt: START }));
  subjects.restore('certificate', 'renewed', certificate(DAY, { renewedAt: START }));
  let time = 0;
  const census = createCensus({
    subjects,
    certificates: createCertificateIndex({ subjects, numbers, seed: 1 }),
    liveness: createLiveness(HOUR, numbers),
    knownChains: createKnownChains(),
    activeWindow: HOUR,
    now: () => START,
    elapsed: () => time,
  });

  function count(msPerSlice: number) {
    const work = census.current();
    for (let slices = 1; ; slices += 1) {
      const { done, value } = work.next();
      if (done === true) return { slices, ends: value.ends };
      time += msPerSlice;
    }
  }

  const first = count(1);
  assert.equal(first.slices, 101);
  assert.equal(first.ends.certificate.count, 37_500);
  assert.deepEqual(
    first.ends.certificate.weeks().map(({ count }) => count),
    [12_500, 12_500, 12_500],
  );
  time += 1900;
  assert.deepEqual(count(1), { slices: 1, ends: first.ends });
  time += 200;
  assert.notEqual(count(1).ends, first.ends);
});
