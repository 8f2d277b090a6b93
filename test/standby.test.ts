/** Instances that wait for their turn on one PostgreSQL, as real processes that are stopped, killed and suspended. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fingerprintOf, inviteId } from '../src/authority/invites.ts';
import type { Flags } from '../src/server/config/options.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { NO_LIMITS } from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { placeOf, type TestInstances, testInstances } from './support/instances.ts';
import { metricOf } from './support/metrics.ts';
import { get, newKey, operate, outcome, send } from './support/requests.ts';
import { sharedCluster } from './support/shared-cluster.ts';
import { until } from './support/until.ts';

const cluster = await sharedCluster();

/** An instance in this process. */
function startHere(
  { folder, url }: TestInstances,
  environment: Readonly<Record<string, string>> = {},
  flags: Flags = {},
): Promise<TestAuthority> {
  return startTestAuthority({
    dataDir: folder,
    clock: REAL_TIME,
    environment: { ...NO_LIMITS, MESH_STORE: url, MESH_LEASE_MS: '', ...environment },
    flags,
  });
}

const lagOf = async (na: TestAuthority) =>
  (await get(na, '/readyz')).body.error.details.lag_revisions;

test('a waiting instance is alive, does nothing, says so, and takes over when the active instance stops', async () => {
  await using instances = await testInstances(cluster);
  await using first = await startHere(instances);
  await using second = await startHere(instances, {}, { threads: '2' });
  const third = await instances.start({ MESH_THREADS: '1' });
  await assert.rejects(
    startHere(instances, {
      MESH_CLOCK_TOLERANCE_SECONDS: '100',
      MESH_RATE_LIMIT_VERIFY: '5/60',
    }),
    /^Error: The instance that writes \(pid \d+ on \S+\) has other settings than this one: rate limits, MESH_CLOCK_TOLERANCE_SECONDS; all instances/,
  );
  assert.deepEqual(await placeOf({ na: first }), { role: 'active', term: 1, ready: true });
  assert.deepEqual(await placeOf({ na: second }), { role: 'standby', term: 0, ready: false });
  assert.equal(outcome(await get(second, '/healthz')), '200');
  assert.equal(outcome(await get(second, '/health')), '503 service_not_ready');
  for (const asked of [
    await operate(second, '/admin/invite'),
    await get(second, '/crl'),
    await get(second, '/policy'),
    await get(second, '/genesis'),
    await get(second, '/sovereign.json'),
    await send(second, 'GET', '/agents'),
  ]) {
    assert.equal(outcome(asked), '503 authority_unavailable');
    assert.equal(asked.headers.get('retry-after'), '1');
  }
  assert.equal(await metricOf(second, 'mesh_na_instance_role{role="standby"}'), 1);
  assert.equal(await metricOf(second, 'mesh_na_restore_pending'), 0);
  // Without a value, no alert about the disk or the delegation fires.
  for (const counted of ['disk_free_bytes', 'delegation_not_after_seconds', 'active_nodes']) {
    assert.ok(Number.isNaN(await metricOf(second, `mesh_na_${counted}`)), counted);
    assert.ok((await metricOf(first, `mesh_na_${counted}`)) >= 0, counted);
  }
  await until(async () => (await lagOf(second)) === 0);
  assert.equal(await metricOf(second, 'mesh_na_replica_lag_revisions'), 0);
  await until(async () => (await lagOf(third.na)) === 0);
  const command = ['store', 'status', '--store', instances.url];
  let status = '';
  // A standby writes what it has read into the database a moment after it is ready.
  await until(async () => {
    ({ stdout: status } = await runCommand(command));
    return status.match(/^Standby: pid \d+ on \S+, up to date$/gm)?.length === 2;
  });
  assert.match(
    status,
    /^Active: pid \d+ on \S+, in term 1; its lease lasts for [01]\.\d s unless it is renewed$/m,
  );
  const { standbys, lease } = JSON.parse((await runCommand([...command, '--json'])).stdout);
  assert.equal(lease.term, 1);
  assert.ok(lease.remaining_seconds > 0);
  assert.equal(standbys.length, 2);
  assert.ok(standbys.every((one: { silent_seconds: number }) => one.silent_seconds >= 0));
  assert.equal((await third.end('SIGTERM')).code, 0, 'a waiting instance stops at once');

  assert.equal(outcome(await operate(first, '/admin/invite')), '200');
  await first.stop();
  await until(async () => (await placeOf({ na: second })).ready);
  assert.deepEqual(await placeOf({ na: second }), { role: 'active', term: 2, ready: true });
  assert.equal(outcome(await operate(second, '/admin/invite')), '200');
  assert.equal(await metricOf(second, 'mesh_na_instance_role{role="active"}'), 1);
  const remaining = await metricOf(second, 'mesh_na_lease_remaining_seconds');
  assert.ok(remaining > 0 && remaining < 2, `${remaining}`);
  await second.stop();
  const log = second.logLines.join('');
  assert.match(log, /pid \d+ on \S+ is active; this instance is a standby/);
  assert.match(log, /This instance is active, in term 2/);
  assert.match(log, /The standby state is ready, from revision \d+ on/);
  assert.doesNotMatch(log, /WARNING(?! mesh\.config A rollback)/);
});

test('operator keys other than the active instance’s, and a link address that is in use, are refused', async () => {
  await using instances = await testInstances(cluster);
  const linked = { MESH_LINK: '127.0.0.1:0' };
  await using first = await startHere(instances, linked);
  const taken = await instances.linkOfActive();
  const operatorPublicKey = [`ops-late=${newKey().publicKey}`];
  const flags = { operatorPublicKey, operatorKeyTier: ['ops-late=standard'] };
  await assert.rejects(
    startHere(instances, linked, flags),
    /has other settings than this one: operator keys and tiers; /,
  );
  await assert.rejects(
    startHere(instances, { MESH_LINK: taken }),
    new RegExp(`The link cannot listen on ${taken} \\(EADDRINUSE\\)`),
  );
  assert.deepEqual(await placeOf({ na: first }), { role: 'active', term: 1, ready: true });
});

test('another takes over from an active instance that is killed or suspended, with everything it has acknowledged', async () => {
  await using instances = await testInstances(cluster);
  const first = await instances.start();
  const [second, third] = await Promise.all([instances.start(), instances.start()]);
  const acknowledged = new Set<string>();
  const issuing = issueUntilItFails();
  async function issueUntilItFails(): Promise<void> {
    for (;;) {
      const answer = await operate(first.na, '/admin/invite').catch(() => null);
      if (answer === null) return;
      assert.equal(outcome(answer), '200');
      acknowledged.add(fingerprintOf(inviteId(answer.body.token_id)));
    }
  }
  await until(async () => acknowledged.size > 20);
  await first.end('SIGKILL');
  await issuing;
  await until(async () => (await placeOf(second)).ready || (await placeOf(third)).ready);
  const isSecond = (await placeOf(second)).ready;
  const [active, waiting] = isSecond ? [second, third] : [third, second];
  const listed = await operate(active.na, '/admin/invites?limit=1000', undefined, {
    method: 'GET',
  });
  const known = new Set(
    (listed.body.invites as { token_fingerprint: string }[]).map((one) => one.token_fingerprint),
  );
  for (const id of acknowledged) assert.ok(known.has(id), 'nothing acknowledged is lost');

  assert.equal(outcome(await get(active.na, '/crl')), '200');
  active.process.kill('SIGSTOP');
  await until(async () => (await placeOf(waiting)).ready);
  const asked = [
    get(active.na, '/crl'),
    get(active.na, '/policy'),
    operate(active.na, '/admin/invite'),
  ];
  const answers = asked.map((answer) => answer.then(outcome, () => 'no answer'));
  active.process.kill('SIGCONT');
  for (const answer of await Promise.all(answers)) {
    assert.match(answer, /^(?:no answer|503 authority_unavailable)$/);
  }
  const { code, stdout, stderr } = await active.ended;
  assert.equal(code, 1);
  assert.match(stdout + stderr, /CRITICAL .*Another process has taken over the database/);
});
