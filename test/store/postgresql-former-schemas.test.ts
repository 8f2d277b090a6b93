/**
 * A database as an earlier program left it, with the keys of the network in `test/fixtures/schema-3`: certificates that
 * were issued, renewed and revoked, a revoked attestation, a treaty and a policy.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { startTestAuthority } from '../support/authority.ts';
import { NO_LIMITS, runProgram } from '../support/child-server.ts';
import { testClock } from '../support/clock.ts';
import { assertServedAsItWas } from '../support/former-state.ts';
import { startCluster } from '../support/postgresql.ts';
import { PROJECT_PATH } from '../support/project.ts';

/** A minute after the dump was made. */
const THEN = Date.parse('2026-11-23T11:25:00Z');
const FIXTURES = join(PROJECT_PATH, 'test/fixtures');
const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());
const folder = mkdtempSync(join(tmpdir(), 'mesh-schemas-'));
after(() => rmSync(folder, { recursive: true, force: true }));
cpSync(join(FIXTURES, 'schema-3'), folder, { recursive: true });
rmSync(join(folder, 'data.mdb.gz'));
for (const name of ['na', 'operator-privileged', 'operator-standard']) {
  chmodSync(join(folder, 'keys', `${name}.key`), 0o600);
}

test('tables of version 2 are refused at a start, and served as they were once they are migrated', async () => {
  const url = await cluster.createDatabase();
  const dump = gunzipSync(readFileSync(join(FIXTURES, 'postgresql-schema-2', 'dump.sql.gz')));
  execFileSync('psql', ['--quiet', '--set=ON_ERROR_STOP=1', '--output=/dev/null', url], {
    input: dump,
  });
  const environment = { ...NO_LIMITS, MESH_STORE: url };
  const refused = await runProgram(['serve', '--data-dir', folder, '--port', '0'], environment);
  assert.equal(refused.code, 3, refused.stdout);
  assert.match(refused.stderr, /has schema version 2; .*mesh-na store migrate/s);

  const migrated = await runProgram(['store', 'migrate', '--store', url], environment);
  assert.equal(migrated.code, 0, migrated.stderr);
  await using na = await startTestAuthority({
    dataDir: folder,
    clock: testClock(THEN),
    flags: { store: url },
  });
  await assertServedAsItWas(na);
});
