/** What lapses and when, as shown to operators, on the dashboard and in metrics [core-4-20]: all of it, for years. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { type Certificate, UNTOUCHED } from '../machines/certificate.ts';
import { createCensus } from '../src/authority/census.ts';
import { createCertificateIndex } from '../src/authority/certificates/certificate-index.ts';
import { createKnownChains } from '../src/authority/certificates/known-chains.ts';
import { createLiveness } from '../src/authority/certificates/last-contact.ts';
import type { Subject } from '../src/authority/subjects/kinds.ts';
import { createCertificateNumbers } from '../src/authority/subjects/numbering.ts';
import { createSubjects } from '../src/authority/subjects/subjects.ts';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { readGenesisBlock } from '../src/protocol/records/genesis.ts';
import { signRecord, soleSigner } from '../src/protocol/records/signed-record.ts';
import type { Horizon, LapsingKind, PostureFinding } from '../src/protocol/rows/dashboard.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, SECOND, testClock } from './support/clock.ts';
import { makeNetworkFolder } from './support/folders.ts';
import {
  get,
  joinedNode,
  nodeRequest,
  operate,
  outcome,
  type TestNode,
} from './support/requests.ts';

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

// Years in which operators and nodes act only on what the authority announces: nothing lapses without an earlier
// announcement, and nothing that is renewed in time ever lapses.

/** `npm run test:longer -- lapses` covers five years. */
const DAYS = Number(process.env.MESH_TEST_LAPSE_DAYS ?? 95);
const DELEGATION_DAYS = 90;
const NODES = 1;
const TREATY_DAYS = 60;
/** Everything is announced at least this long before it ends. */
const NOTICE = 2 * DAY;

test(`within ${DAYS} days nothing lapses unannounced, and nothing that was acted on`, async (t) => {
  const clock = testClock(START);
  const { folder } = makeNetworkFolder('alpha', { now: START });
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  let na = await startTestAuthority({ clock, dataDir: folder });
  t.after(() => na.stop());
  const nodes: TestNode[] = [];
  for (let n = 0; n < NODES; n += 1) nodes.push(await joinedNode(na));
  let treaties = 0;
  await concludeTreaty();
  const announced = new Map<string, number>();

  /** Issues a treaty with the next sovereign. */
  async function concludeTreaty(): Promise<void> {
    treaties += 1;
    const body = {
      subject_sovereign_id: `sovereign-${treaties}`,
      subject_public_keys: [na.audience],
      validity_hours: TREATY_DAYS * 24,
    };
    assert.equal(outcome(await operate(na, '/admin/recognition-treaties', body)), '200');
  }

  /** Does the same as `mesh-na genesis renew`, and restarts. */
  async function renewDelegation(): Promise<void> {
    const file = join(folder, 'genesis.json');
    const genesis = readGenesisBlock(JSON.parse(readFileSync(file, 'utf8')));
    assert.ok(genesis !== null);
    const { signatures: _, ...block } = genesis;
    const root = signerFromSeed(readKeyFile(join(folder, 'keys', 'root.key')));
    const network_authority = {
      ...block.network_authority,
      valid_to: formatInstant(clock.now() + DELEGATION_DAYS * DAY),
    };
    const renewed = signRecord({ ...block, network_authority }, soleSigner(root));
    writeFileSync(file, JSON.stringify(renewed));
    na = await na.restart();
  }

  async function beat(node: TestNode, index: number): Promise<void> {
    const body = { cert_id: node.certId, status: 'healthy', bulletin: true };
    const beaten = await nodeRequest(na, '/heartbeat', node.key, body);
    assert.equal(outcome(beaten), '200');
    if (Date.parse(beaten.body.renew_after) > clock.now()) return;
    const renewed = await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
    assert.equal(outcome(renewed), '200');
    nodes[index] = { key: node.key, certId: renewed.body.cert_id };
  }

  async function findings(): Promise<readonly PostureFinding[]> {
    return (await get(na, '/dashboard.json')).body.posture.findings;
  }

  async function horizon(): Promise<Horizon['lapsing']> {
    const call = { method: 'GET', operator: na.standard };
    return (await operate(na, '/admin/horizon', {}, call)).body.lapsing;
  }

  async function assertDocumentsHold(): Promise<void> {
    await na.renewLists();
    for (const path of ['/crl', '/sovereign-revocation-feed.json', '/policy']) {
      const { body } = await get(na, path);
      const until = Date.parse(body.next_update ?? body.expires_at ?? body.valid_until ?? '');
      if (Number.isNaN(until)) continue;
      assert.ok(until > clock.now(), `${path} holds on ${formatInstant(clock.now())}`);
    }
  }

  for (let day = 0; day < DAYS; day += 1) {
    clock.advance(DAY);
    for (const [index, node] of nodes.entries()) await beat(node, index);
    await assertDocumentsHold();
    const today = formatInstant(clock.now());
    const found = new Set((await findings()).map(({ rule }) => rule));
    for (const { kind, soonest } of await horizon()) {
      const left = Date.parse(soonest) - clock.now();
      assert.ok(left > 0, `${kind} has not lapsed on ${today}`);
      const rule = ANNOUNCED_BY[kind];
      if (left < NOTICE) assert.ok(found.has(rule ?? ''), `${kind} is announced on ${today}`);
      if (found.has(rule ?? '')) announced.set(kind, (announced.get(kind) ?? 0) + 1);
    }
    if (found.has('delegation')) await renewDelegation();
    if (found.has('treaties_expiring')) await concludeTreaty();
  }
  for (const [kind, days] of [
    ['delegation', DELEGATION_DAYS],
    ['treaty', TREATY_DAYS],
  ] as const) {
    assert.ok((announced.get(kind) ?? 0) >= Math.floor(DAYS / days), `${kind} was announced`);
  }
});

const ANNOUNCED_BY: { readonly [kind: string]: string } = {
  delegation: 'delegation',
  certificate: 'certificates_lapsing',
  treaty: 'treaties_expiring',
};
