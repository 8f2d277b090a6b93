/** Instances that serve side by side: real processes on one PostgreSQL, with real links between them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { formatInstant } from '../src/base/timestamp.ts';
import { startBrowser, type TestBrowser } from './support/browser.ts';
import type { ChildServer } from './support/child-server.ts';
import { HOUR } from './support/clock.ts';
import {
  cuttableProxy,
  isActive,
  placeOf,
  type TestInstances,
  testInstances,
} from './support/instances.ts';
import { startCluster } from './support/postgresql.ts';
import {
  get,
  heartbeat,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  operatorRequest,
  outcome,
} from './support/requests.ts';
import { beat, openSession } from './support/sessions.ts';
import { until } from './support/until.ts';

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

let browser: TestBrowser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

test('every instance answers every request, and none with a document older than what any of them has acknowledged', async () => {
  await using instances = await testInstances(cluster);
  const [first, second, third] = await linked(instances, 3);
  const all = [first, second, third];
  const standby = { role: 'standby', term: 1, ready: true };
  assert.deepEqual(await Promise.all(all.map(placeOf)), [
    { ...standby, role: 'active' },
    standby,
    standby,
  ]);

  const node = await joinedNode(second.na);
  assert.equal(outcome(await heartbeat(third.na, node)), '200');
  for (let round = 0; round < 12; round += 1) {
    const revoking = all[round % 3] as ChildServer;
    const { body } = await joinedThrough(all[(round + 1) % 3] as ChildServer);
    const revoked = await operate(revoking.na, '/admin/revoke', { cert_id: body.cert_id });
    assert.equal(outcome(revoked), '200');
    const lists = await Promise.all(all.map(({ na }) => get(na, '/crl')));
    for (const { body: crl } of lists) {
      assert.equal(crl.revoked_certificates.length, round + 1, 'in every list at once');
    }
    const deltas = await Promise.all(
      all.map(({ na }) => get(na, `/crl?since=${lists[0]?.body.sequence - 1}`)),
    );
    for (const delta of deltas) assert.equal(delta.text, deltas[0]?.text);
  }
  // Each instance writes its row, and reads those of the others, once a second.
  await until(async () => /^mesh_na_standbys 2$/m.test((await get(first.na, '/metrics')).text));
  const [ofActive, ofStandby] = [await get(first.na, '/metrics'), await get(second.na, '/metrics')];
  assert.match(ofStandby.text, /^mesh_na_standbys 0$/m);
  assert.match(ofActive.text, /^mesh_na_lease_confirmation_seconds_count [1-9]/m);
  assert.match(ofStandby.text, /^mesh_na_link_round_trip_seconds_count [1-9]/m);
  for (const { text } of [ofActive, ofStandby]) {
    assert.match(text, /^mesh_na_database_clock_difference_seconds -?0/m, 'there is one clock');
  }
  const key = newKey();
  const added = { key_id: 'ops-reader', public_key: key.publicKey, tier: 'standard' };
  await operate(first.na, '/admin/operator-keys', added);
  const reader = { key, keyId: added.key_id };
  const { init } = operatorRequest(third.na, '/events', {}, { method: 'GET', operator: reader });
  const events = await fetch(`${third.na.url}/events`, init);
  assert.equal(events.status, 200);
  const reading = events.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let seen = ''; !seen.includes('operator_key_added'); ) {
    const read = await reading?.read();
    assert.equal(read?.done, false);
    seen += read?.value;
  }
  await operate(second.na, `/admin/operator-keys/${added.key_id}/revoke`);
  while ((await reading?.read())?.done === false);

  const invite = (await operate(first.na, '/admin/invite')).body.token_id;
  const joins = await Promise.all(
    all.map(({ na }) => nodeRequest(na, '/join', newKey(), { invite_token: invite })),
  );
  assert.deepEqual(joins.map(({ status }) => status).sort(), [200, 403, 403]);
});

test('stopping the active instance fails no request at the standbys, and killing it loses nothing acknowledged', async () => {
  await using instances = await testInstances(cluster);
  const [first, second, third] = await linked(instances, 3);

  const load = [second, third].map(({ na }) => underLoad(na));
  await until(async () => load.every(({ acknowledged }) => acknowledged.length > 5));
  assert.equal((await first.end('SIGTERM')).code, 0);
  const before = load.map(({ acknowledged }) => acknowledged.length);
  await until(async () =>
    load.every(({ acknowledged }, at) => acknowledged.length > (before[at] ?? 0) + 5),
  );
  await Promise.all(load.map((one) => one.stop()));
  for (const { failures } of load) assert.deepEqual(failures, []);

  const [active, other] =
    (await placeOf(second)).role === 'active' ? [second, third] : [third, second];
  const more = underLoad(other.na);
  await until(async () => more.acknowledged.length > 5);
  await active.end('SIGKILL');
  await until(() => isActive(other));
  const reached = more.acknowledged.length;
  await until(async () => more.acknowledged.length > reached + 5);
  await more.stop();
  for (const failure of more.failures) {
    assert.match(failure, /^(?:503 (?:outcome_unknown|authority_unavailable)|409 already_done)$/);
  }
  const sequences = [...load, more].flatMap(({ acknowledged }) => acknowledged);
  assert.equal(new Set(sequences).size, sequences.length, 'each certificate is acknowledged once');
  const { body: crl } = await get(other.na, '/crl');
  const listed = new Set(
    (crl.revoked_certificates as { certificate_id: string }[]).map((one) => one.certificate_id),
  );
  for (const id of sequences) assert.ok(listed.has(id), 'nothing acknowledged is lost');
});

test('the history contains the counts of every instance, and keeps them through a change of the active instance', async () => {
  await using instances = await testInstances(cluster);
  const [first, second] = await linked(instances, 2);
  const node = await joinedNode(first.na);
  const beat = async (server: ChildServer, times: number) => {
    for (let n = 0; n < times; n += 1) {
      assert.equal(outcome(await heartbeat(server.na, node)), '200');
    }
  };
  await beat(first, 5);
  await beat(second, 7);
  await first.end('SIGTERM');
  await until(() => isActive(second));
  await beat(second, 3);
  const third = await instances.start(LINKED);
  await until(async () => (await placeOf(third)).ready);
  await beat(third, 2);
  await second.end('SIGTERM');
  await until(() => isActive(third));
  await third.end('SIGTERM');
  const fourth = await instances.start(LINKED);
  await until(async () => (await placeOf(fourth)).ready);
  const { body } = await get(fourth.na, '/history.json?series=heartbeats,joins&step=1h');
  const sums = body.series.map(({ count }: { count: readonly (number | null)[] }) =>
    count.reduce((sum, each) => (sum ?? 0) + (each ?? 0), 0),
  );
  assert.deepEqual(sums, [5 + 7 + 3 + 2, 1]);
});

test('a heartbeat session counts on every instance, once for each heartbeat, and through a change of the active instance', async () => {
  await using instances = await testInstances(cluster);
  const [first, second] = await linked(instances, 2);
  const node = await joinedNode(second.na);
  const session = await openSession(second.na, node);
  const next = () => setTimeout(2);
  await next();
  assert.equal(outcome(await beat(second.na, session)), '200');
  await next();
  const instant = formatInstant(Date.now());
  assert.equal(outcome(await beat(first.na, session, { instant })), '200');
  assert.equal(outcome(await beat(second.na, session, { instant })), '401 session_ended');

  await first.end('SIGKILL');
  await until(() => isActive(second));
  assert.equal(outcome(await beat(second.na, session, { instant })), '401 session_ended');
  await next();
  assert.equal(outcome(await beat(second.na, session)), '200');
  await operate(second.na, '/admin/revoke', { cert_id: node.certId });
  await next();
  assert.equal(outcome(await beat(second.na, session)), '403 certificate_revoked');
});

test('a batch of invites is the same through every instance and after a change of the active one, and a license policy is that of all until then', async () => {
  await using instances = await testInstances(cluster);
  const [first, second] = await linked(instances, 2);
  const batch = 'field-team-7';
  const { tokens } = (await operate(second.na, '/admin/invite', { batch, count: 4 })).body;
  const join = { invite_token: tokens[0].token_id };
  assert.equal(outcome(await nodeRequest(second.na, '/join', newKey(), join)), '200');
  const posted = await operate(second.na, '/admin/data-usage/policy', {
    licensee_sovereign_id: 'beta',
    allowed_source_ids: ['s-1'],
    allowed_access_types: ['read'],
    valid_from: formatInstant(Date.now()),
    valid_until: formatInstant(Date.now() + HOUR),
  });
  assert.equal(outcome(posted), '201');
  for (const { na } of [first, second]) {
    const unused = `/admin/invites?batch=${batch}&status=unused`;
    assert.equal((await operate(na, unused, {}, { method: 'GET' })).body.count, 3);
    const { body } = await operate(na, '/admin/contacts', {}, { method: 'GET' });
    assert.deepEqual([body.total.active, body.bins.length], [1, 1]);
    assert.equal((await get(na, '/data-usage/policy')).text, posted.text);
  }
  assert.equal((await first.end('SIGTERM')).code, 0);
  await until(() => isActive(second));
  const withdrawn = await operate(second.na, '/admin/invites/withdraw', { batch });
  assert.deepEqual(withdrawn.body, { batch, withdrawn: 3, remaining: 0 });
  assert.equal(outcome(await get(second.na, '/data-usage/policy')), '404 no_policy');
});

test('while a link is cut, in either direction, no instance serves a list older than an acknowledged revocation', async () => {
  await using instances = await testInstances(cluster);
  const first = await instances.start(LINKED);
  await using proxy = await cuttableProxy(await instances.linkOfActive());
  await instances.setLinkOfActive(proxy.address);
  const second = await instances.start({ ...LINKED, MESH_HOLD_MS: '300' });
  await until(async () => (await placeOf(second)).ready);
  for (const direction of ['to the active instance', 'from the active instance', 'both'] as const) {
    const { body } = await joinedThrough(first);
    assert.equal(outcome(await get(second.na, '/crl')), '200');
    proxy.cut(direction);
    const began = performance.now();
    assert.equal(
      outcome(await operate(first.na, '/admin/revoke', { cert_id: body.cert_id })),
      '200',
    );
    assert.ok(performance.now() - began < 3000, 'a cut link delays it by no more than a grant');
    const seen = await get(second.na, '/crl');
    if (seen.status === 200) assert.ok(seen.text.includes(body.cert_id), `${direction}: stale`);
    else assert.equal(outcome(seen), '503 authority_unavailable');
    proxy.heal();
    await until(async () => (await get(second.na, '/crl')).text.includes(body.cert_id));
  }
});

test('while the active instance is suspended, a standby reports at once that it is not ready', async () => {
  await using instances = await testInstances(cluster);
  const settings = { ...LINKED, MESH_LEASE_MS: '60000', MESH_HOLD_MS: '100' };
  const first = await instances.start(settings);
  const second = await instances.start(settings);
  await until(async () => (await placeOf(second)).ready);
  first.process.kill('SIGSTOP');
  await until(async () => !(await placeOf(second)).ready);
  const waits: number[] = [];
  for (let i = 0; i < 5; i += 1) {
    const began = performance.now();
    const { status, body } = await get(second.na, '/readyz');
    waits.push(performance.now() - began);
    assert.deepEqual([status, body.error.details.database.writable], [503, false]);
  }
  assert.ok(Math.min(...waits) < 100, `a balancer waits for a second: ${waits}`);
  first.process.kill('SIGCONT');
  await until(async () => (await placeOf(second)).ready);
});

test('the dashboard of every instance shows all of them, and follows a change of the active instance', async () => {
  await using instances = await testInstances(cluster);
  const [first, second, third] = await linked(instances, 3);
  const all = [first, second, third];
  await operate(first.na, '/admin/invite');
  const [active, ...standbys] = await Promise.all(all.map(({ na }) => idOf(na)));
  const expected = shown(String(active), standbys);
  for (const { na } of all) {
    await until(async () => isDeepStrictEqual(await shownBy(na), expected));
  }
  const [ofActive, ofStandby] = await Promise.all([
    get(first.na, '/metrics'),
    get(second.na, '/metrics'),
  ]);
  for (const id of standbys) {
    assert.match(
      ofActive.text,
      new RegExp(`^mesh_na_standby_lag_revisions\\{standby="${id}"\\} 0$`, 'm'),
    );
  }
  assert.doesNotMatch(ofStandby.text, /^mesh_na_standby_lag_revisions\{/m);

  await using visit = await browser.visit(`${second.na.url}/dashboard`);
  const { page } = visit;
  const rows = () => page.locator('#instances tbody tr').allInnerTexts();
  const rowOfActive = page.locator('#instances tbody tr', { hasText: String(active) });
  assert.equal((await rows())[0], await rowOfActive.innerText());
  assert.match(await rowOfActive.innerText(), /\tactive\t/);
  assert.deepEqual(
    (await rows()).map((text) => /Up to date/.test(text)),
    [false, true, true],
  );
  assert.deepEqual(await visit.violations(), []);
  assert.doesNotMatch(await page.innerText('main'), /pid \d|127\.0\.0\.1/);
  await page.locator('[data-live-status="live"]').waitFor({ state: 'attached' });
  await page.evaluate("document.documentElement.setAttribute('data-not-reloaded', '')");
  await first.end('SIGTERM');
  await rowOfActive.waitFor({ state: 'detached' });
  await until(async () => (await rows()).length === 2);
  const ids = await Promise.all([second, third].map(({ na }) => idOf(na)));
  const [next, other] = (await placeOf(second)).role === 'active' ? ids : ids.toReversed();
  const later = shown(String(next), [String(other)]);
  await until(async () => isDeepStrictEqual(await shownBy(third.na), later));
  assert.equal(await page.locator('html[data-not-reloaded]').count(), 1);
});

async function idOf(na: ChildServer['na']): Promise<string> {
  return (await get(na, '/readyz')).body.instance;
}

async function shownBy(na: ChildServer['na']): Promise<unknown> {
  return (await get(na, '/dashboard.json')).body.instances;
}

/** All instances, none of which lags behind. */
function shown(active: string, standbys: readonly string[]) {
  return [
    { instance: active, role: 'active', lag_revisions: 0 },
    ...standbys.toSorted().map((instance) => ({ instance, role: 'standby', lag_revisions: 0 })),
  ];
}

const LINKED = { MESH_LINK: '127.0.0.1:0' };

/** The first is active, and the others answer too. */
async function linked(instances: TestInstances, count: number) {
  const first = await instances.start(LINKED);
  const others = Array.from({ length: count - 1 }, () => instances.start(LINKED));
  const all = [first, ...(await Promise.all(others))];
  await until(async () => (await Promise.all(all.map(placeOf))).every(({ ready }) => ready));
  return all as [ChildServer, ChildServer, ChildServer];
}

async function joinedThrough({ na }: ChildServer) {
  const { body } = await operate(na, '/admin/invite');
  return nodeRequest(na, '/join', newKey(), { invite_token: body.token_id });
}

interface Load {
  /** Certificates that were enrolled and revoked. */
  readonly acknowledged: string[];
  /** Outcomes other than 200. */
  readonly failures: string[];
  stop(): Promise<void>;
}

function underLoad(na: ChildServer['na']): Load {
  const acknowledged: string[] = [];
  const failures: string[] = [];
  let isOver = false;

  async function enrollAndRevoke(): Promise<void> {
    const invite = await operate(na, '/admin/invite');
    if (invite.status !== 200) return void failures.push(outcome(invite));
    const invited = { invite_token: invite.body.token_id };
    const joined = await nodeRequest(na, '/join', newKey(), invited);
    if (joined.status !== 200) return void failures.push(`${outcome(joined)}`);
    const { cert_id } = joined.body;
    const revoked = await operate(na, '/admin/revoke', { cert_id });
    // An instance that died before it answered may have carried it out [core-2-5]: it must be listed, too.
    const isRevoked = ['200', '409 already_done'].includes(outcome(revoked));
    if (isRevoked) acknowledged.push(cert_id);
    else failures.push(outcome(revoked));
    const list = await get(na, '/crl');
    if (list.status !== 200) failures.push(outcome(list));
    else if (isRevoked && !list.text.includes(cert_id)) failures.push('stale list');
  }

  const running = (async () => {
    while (!isOver) await enrollAndRevoke();
  })();
  return {
    acknowledged,
    failures,
    async stop() {
      isOver = true;
      await running;
    },
  };
}
