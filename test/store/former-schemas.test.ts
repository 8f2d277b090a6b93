/**
 * Data folders as earlier programs left them: of each schema there is one in `test/fixtures`, with certificates that were
 * issued, renewed and revoked, a revoked attestation, a treaty and a policy.
 */
import assert from 'node:assert/strict';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import { migrateFolder } from '../../src/maintenance/move/migrate.ts';
import { checkMove } from '../../src/maintenance/move/move.ts';
import { readSchemaVersion } from '../../src/store/lmdb/former-source.ts';
import { openLmdbSource } from '../../src/store/lmdb/source.ts';
import { openLmdbStore } from '../../src/store/lmdb/store.ts';
import { startTestAuthority } from '../support/authority.ts';
import { runProgram } from '../support/child-server.ts';
import { testClock } from '../support/clock.ts';
import { assertServedAsItWas } from '../support/former-state.ts';
import '../support/lmdb-only.ts';
import { PROJECT_PATH } from '../support/project.ts';

const parent = mkdtempSync(join(tmpdir(), 'mesh-schemas-'));
after(() => rmSync(parent, { recursive: true, force: true }));
/** A minute after the fixtures were made. */
const THEN = Date.parse('2026-11-23T10:36:00Z');

function folderOf(version: number): string {
  const folder = mkdtempSync(join(parent, `schema-${version}-`));
  const fixture = join(PROJECT_PATH, 'test/fixtures', `schema-${version}`);
  cpSync(fixture, folder, { recursive: true });
  for (const name of ['na', 'operator-privileged', 'operator-standard']) {
    chmodSync(join(folder, 'keys', `${name}.key`), 0o600);
  }
  mkdirSync(join(folder, 'state'));
  writeFileSync(databaseIn(folder), gunzipSync(readFileSync(join(folder, 'data.mdb.gz'))));
  return folder;
}

function databaseIn(folder: string): string {
  return join(folder, 'state', 'data.mdb');
}

function networkOf(folder: string) {
  const genesis = JSON.parse(readFileSync(join(folder, 'genesis.json'), 'utf8'));
  return {
    network_name: String(genesis.network_name),
    root_public_key: String(genesis.root_public_key),
    authority_public_key: String(genesis.network_authority.public_key),
  };
}

function migrate(folder: string) {
  return migrateFolder(folder, networkOf(folder), verifySignature);
}

for (const version of [2, 3]) {
  test(`a start on schema ${version} changes nothing, and names the command that migrates it`, () => {
    const folder = folderOf(version);
    const before = readFileSync(databaseIn(folder));
    const message = `The data directory has schema version ${version}; this program reads version 4, to which mesh-na store migrate brings it`;
    assert.throws(() => openLmdbStore(folder, networkOf(folder)), { message });
    assert.throws(() => openLmdbSource(folder), { message });
    assert.ok(before.equals(readFileSync(databaseIn(folder))));
  });

  test(`a state of schema ${version} is migrated, served as it was, and kept`, async () => {
    const folder = folderOf(version);
    const before = readFileSync(databaseIn(folder));
    const { code, stdout, stderr } = await runProgram(['store', 'migrate', '--data-dir', folder]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, new RegExp(`has schema version 4; it had ${version}\\.`));
    assert.ok(before.equals(readFileSync(`${databaseIn(folder)}.schema-${version}`)));
    assert.deepEqual(await migrate(folder), { from: 4, to: 4, kept: null });

    const na = await startTestAuthority({ dataDir: folder, clock: testClock(THEN) });
    try {
      await assertServedAsItWas(na);
    } finally {
      await na.stop();
    }
  });
}

test('a migration that is killed leaves the old state or the new one, and is done again', async () => {
  const folder = folderOf(3);
  for (const afterMs of [200, 500, 900, 1400, 2000]) {
    await runProgram(['store', 'migrate', '--data-dir', folder], {}, (child) => {
      setTimeout(() => child.kill('SIGKILL'), afterMs);
    });
    assert.ok([3, 4].includes(readSchemaVersion(folder) ?? 0), `killed after ${afterMs} ms`);
  }
  await migrate(folder);
  const place = {
    openSource: async () => openLmdbSource(folder),
  };
  assert.equal((await checkMove(place, verifySignature)).tables.subjects.rows, 11);
  assert.ok(!existsSync(join(folder, '.migration')));
});

test('a state that is not sound, of another key or of the first schema is refused, and stays', async () => {
  const folder = folderOf(3);
  const before = readFileSync(databaseIn(folder));
  const foreign = {
    ...networkOf(folder),
    authority_public_key: networkOf(folderOf(2)).authority_public_key,
  };
  const refused = migrateFolder(folder, foreign, verifySignature);
  await assert.rejects(refused, /does not carry the authority’s signature/);
  assert.ok(before.equals(readFileSync(databaseIn(folder))));
  const first = folderOf(1);
  await assert.rejects(
    migrate(first),
    /has schema version 1; this program migrates versions 2 to 3$/,
  );
  assert.throws(() => openLmdbStore(first), {
    message: 'The data directory has schema version 1; this program reads version 4',
  });
});
