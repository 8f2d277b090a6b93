/** What retention removes, what it never removes, and the answers for removed subjects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE } from './support/clock.ts';
import { networkFolder } from './support/folders.ts';
import { renewWeekly, YEAR_WEEKS } from './support/renewing-fleet.ts';
import {
  get,
  heartbeat,
  joinedNode,
  joinedNodes,
  newKey,
  nodeRequest,
  operate,
  outcome,
  sendSigned,
  signedByNode,
  type TestNode,
} from './support/requests.ts';
import { DAY, openSimulatedNetwork } from './support/simulated-network.ts';

const ONE_DAY_EACH = {
  MESH_RETENTION_CERTIFICATE_DAYS: '30',
  MESH_RETENTION_RENEWED_CERTIFICATE_DAYS: '2',
  MESH_RETENTION_INVITE_DAYS: '3',
};

/** Advances the clock by this many days, and runs sweeps. */
async function wait(na: TestAuthority, days: number): Promise<void> {
  na.clock.advance(days * DAY);
  for (let i = 0; i < 3; i += 1) await na.sweep();
}

async function renewed(na: TestAuthority, { key, certId }: TestNode): Promise<TestNode> {
  const answer = await sendSigned(na, signedByNode(na, '/renew', key, { cert_id: certId }));
  assert.equal(outcome(answer), '200');
  return { key, certId: answer.body.cert_id };
}

async function metric(na: TestAuthority, line: RegExp): Promise<number> {
  const found = line.exec((await get(na, '/metrics')).text);
  assert.ok(found, String(line));
  return Number(found[1]);
}

test('a renewed certificate is removed after its period, and unknown from then on', async () => {
  await using na = await startTestAuthority({ environment: ONE_DAY_EACH });
  const first = await joinedNode(na);
  na.clock.advance(6 * DAY);
  const second = await renewed(na, first);
  await wait(na, 2.5);
  assert.equal(outcome(await heartbeat(na, first)), '403 certificate_expired');
  await wait(na, 1);
  assert.equal(outcome(await heartbeat(na, first)), '403 certificate_not_found');
  const revocation = await operate(na, '/admin/revoke', { cert_id: first.certId });
  assert.equal(outcome(revocation), '404 certificate_not_found');
  assert.equal(outcome(await heartbeat(na, second)), '200');
  const third = await renewed(na, second);

  await using again = await na.restart();
  again.clock.advance(MINUTE);
  assert.equal(outcome(await heartbeat(again, first)), '403 certificate_not_found');
  assert.equal(outcome(await heartbeat(again, second)), '200');
  assert.equal(outcome(await heartbeat(again, third)), '200');
});

test('the last certificate of a key is kept for longer, even if it was read from the store', async () => {
  await using na = await startTestAuthority({ environment: ONE_DAY_EACH });
  const nodes = await joinedNodes(na, 10);
  na.clock.advance(DAY);
  const last = await Promise.all(nodes.map((node) => renewed(na, node)));
  await using again = await na.restart();
  await wait(again, 20);
  for (const node of last) {
    assert.equal(outcome(await heartbeat(again, node)), '403 certificate_expired');
  }
  for (const node of nodes) {
    assert.equal(outcome(await heartbeat(again, node)), '403 certificate_not_found');
  }
  await wait(again, 20);
  for (const node of last) {
    assert.equal(outcome(await heartbeat(again, node)), '403 certificate_not_found');
  }
});

test('neither a revoked certificate nor its entry in the list is ever removed', async () => {
  await using na = await startTestAuthority({ environment: ONE_DAY_EACH });
  const node = await joinedNode(na);
  const other = await joinedNode(na);
  assert.equal(outcome(await operate(na, '/admin/revoke', { cert_id: node.certId })), '200');
  await wait(na, 400);
  assert.equal(outcome(await heartbeat(na, node)), '403 certificate_revoked');
  assert.equal(outcome(await heartbeat(na, other)), '403 certificate_not_found');
  await using again = await na.restart();
  const { revoked_certificates } = (await get(again, '/crl')).body;
  assert.deepEqual(
    revoked_certificates.map((entry: { certificate_id: string }) => entry.certificate_id),
    [node.certId],
  );
});

test('invites are removed after their period, and answer as if they had never existed', async () => {
  await using na = await startTestAuthority({ environment: ONE_DAY_EACH });
  const invited = await operate(na, '/admin/invite', { count: 3, token_expiry_hours: 48 });
  const [used, unused] = invited.body.tokens.map(({ token_id }: { token_id: string }) => token_id);
  const join = (invite_token: string) => nodeRequest(na, '/join', newKey(), { invite_token });
  assert.equal(outcome(await join(used)), '200');
  await wait(na, 2.5);
  assert.equal(await metric(na, /mesh_na_subjects\{kind="invite"\} (\d+)/), 3);
  await wait(na, 1);
  assert.equal(await metric(na, /mesh_na_subjects\{kind="invite"\} (\d+)/), 2);
  await wait(na, 2);
  assert.equal(await metric(na, /mesh_na_subjects\{kind="invite"\} (\d+)/), 0);
  assert.equal(await metric(na, /mesh_na_subjects_removed_total\{kind="invite"\} (\d+)/), 3);
  for (const token of [used, unused]) {
    assert.equal(outcome(await join(token)), '403 invalid_invite_token');
  }
});

test('issued certificates are still counted once they are removed, across a restart too', async () => {
  await using na = await startTestAuthority({ environment: ONE_DAY_EACH });
  await joinedNode(na);
  await joinedNode(na);
  await wait(na, 60);
  await joinedNode(na);
  const issued = /mesh_na_issued_certs_total (\d+)/;
  assert.equal(await metric(na, issued), 3);
  assert.equal(await metric(na, /mesh_na_subjects\{kind="certificate"\} (\d+)/), 1);
  await using again = await na.restart();
  assert.equal(await metric(again, issued), 3);
  assert.equal(
    await metric(again, /mesh_na_subjects_removed_total\{kind="certificate"\} (\d+)/),
    2,
  );
});

test('nothing is removed in the hour after a start or after the clock was set', async () => {
  await using folder = networkFolder('alpha');
  const clock = { now: 1_800_000_000_000, elapsed: 0 };
  const network = await openSimulatedNetwork(folder.path, clock);
  await network.invite(5);
  const kept = async () => (await network.readCounts()).subjects.invite;
  clock.now += 100 * DAY;
  clock.elapsed += 59 * MINUTE;
  await network.sweepAll();
  assert.equal(await kept(), 5);
  network.clockSet(0);
  clock.elapsed += 59 * MINUTE;
  await network.sweepAll();
  assert.equal(await kept(), 5);
  clock.elapsed += MINUTE;
  await network.sweepAll();
  assert.equal(await kept(), 0);
  await network.close();
});

test('one sweep removes a limited number of subjects and the next one continues', async () => {
  await using folder = networkFolder('alpha');
  const clock = { now: 1_800_000_000_000, elapsed: 0 };
  const network = await openSimulatedNetwork(folder.path, clock);
  await network.invite(1000);
  network.advance(32 * DAY);
  await network.invite(500);
  const kept = async () => (await network.readCounts()).subjects.invite ?? 0;
  for (let expected = 1250; expected >= 500; expected -= 250) {
    await network.sweep();
    assert.equal(await kept(), expected);
  }
  await network.sweepAll();
  assert.equal(await kept(), 500);
  await network.close();
});

test('a fleet that renews weekly for two years takes no more room than its living nodes', () =>
  renewWeekly(2 * YEAR_WEEKS));
