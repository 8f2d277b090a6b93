/** A lost database: the program restores it into another one, with every revocation made after the backup. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { HISTORY, playAndRestore } from './restoring/histories.ts';
import { routesWith } from './restoring/places.ts';
import { NO_LIMITS, runProgram, startChildServer } from './support/child-server.ts';
import { networkFolder, ownFolder } from './support/folders.ts';
import { startCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
import { get, heartbeat, joinedNode, operate, outcome } from './support/requests.ts';

const cluster = await startCluster();
const routes = await routesWith(cluster);
const scratch = ownFolder();
after(() => cluster[Symbol.asyncDispose]());

test('everything revoked after the backup stays revoked, and the lost database is not served again', async () => {
  await using folder = await networkFolder('alpha');
  const [lost, fresh] = [await migratedDatabase(cluster), await migratedDatabase(cluster)];
  const [backup, crl, head] = ['mesh.backup', 'crl.json', 'head'].map((name) =>
    join(scratch, name),
  );
  assert.ok(backup !== undefined && crl !== undefined && head !== undefined);
  const on = (store: string) => ({ ...NO_LIMITS, MESH_STORE: store, MESH_HEAD_FILE: head });
  const inFolder = ['--data-dir', folder.path];

  const first = await startChildServer(folder.path, {
    environment: on(lost),
    args: ['--new-head'],
  });
  const [kept, stolen] = [await joinedNode(first.na), await joinedNode(first.na)];
  const made = await runProgram(['backup', 'create', ...inFolder, '--to', backup], on(lost));
  assert.equal(made.code, 0, made.stderr);
  const late = await joinedNode(first.na);
  for (const { certId } of [stolen, late]) {
    const revoked = await operate(first.na, '/admin/revoke', { cert_id: certId });
    assert.equal(outcome(revoked), '200');
  }
  writeFileSync(crl, (await get(first.na, '/crl')).text);
  assert.equal((await first.end('SIGTERM')).code, 0);

  const evidence = ['--backup', backup, '--crl', crl, '--head', head];
  const plan = await runProgram(['restore', 'plan', ...evidence, '--json']);
  const { loss, replayed_certificates, lost_certificates, unknown } = JSON.parse(plan.stdout);
  assert.deepEqual([replayed_certificates, lost_certificates], [[stolen.certId], [late.certId]]);
  assert.deepEqual(unknown, [], 'the head names the newest lists');
  assert.match(loss, /^audit=\d+,certificates=1,attestations=0$/);

  // Afterward, requests are refused for as long as the clock tolerance.
  const apply = ['restore', 'apply', ...evidence, ...inFolder, '--clock-tolerance', '1'];
  const refused = await runProgram(apply, on(fresh));
  assert.equal(refused.code, 4);
  assert.ok(refused.stderr.includes(`--accept-loss ${loss}`), refused.stderr);
  const restored = await runProgram([...apply, '--accept-loss', loss], on(fresh));
  assert.equal(restored.code, 0, restored.stderr);
  assert.match(
    restored.stdout,
    /mesh-na serve --data-dir \S+ --head-file \S+ --new-head, with the same --store\n$/,
  );

  const args = ['--new-head'];
  const second = await startChildServer(folder.path, { environment: on(fresh), args });
  assert.equal(outcome(await heartbeat(second.na, kept)), '200');
  for (const node of [stolen, late]) {
    assert.notEqual(outcome(await heartbeat(second.na, node)), '200');
  }
  const { body } = await get(second.na, '/crl');
  const listed = body.revoked_certificates.map(
    ({ certificate_id }: { certificate_id: string }) => certificate_id,
  );
  assert.deepEqual(listed.toSorted(), [stolen.certId, late.certId].toSorted());
  assert.ok(body.sequence > 1_000_000);
  assert.equal((await second.end('SIGTERM')).code, 0);

  const again = await runProgram(['serve', '--data-dir', folder.path, '--port', '0'], on(lost));
  assert.equal(again.code, 3);
  assert.match(again.stderr, /The state is older than the head in /);
});

const HISTORIES = 3;

for (const route of routes) {
  test(`${HISTORIES} random histories of ${route.name}, are restored without un-revoking anything`, () =>
    fc.assert(
      fc.asyncProperty(HISTORY, (history) => playAndRestore(history, route)),
      { numRuns: HISTORIES },
    ));
}
