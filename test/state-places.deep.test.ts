/**
 * Every command that reads or creates a state finds it as `serve` does: by flag, variable, or the configuration file in
 * the folder.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { commandReference } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import { startTestAuthority } from './support/authority.ts';
import { NO_LIMITS, startChildServer } from './support/child-server.ts';
import { runCommand } from './support/commands.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { startCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
import { get, operate } from './support/requests.ts';

const cluster = await startCluster();
const scratch = mkdtempSync(join(tmpdir(), 'mesh-na-places-'));
/** Keys and genesis block of a network whose state is in the database. */
const { folder: network } = makeNetworkFolder();
const backup = join(scratch, 'mesh.backup');
let url: string;

before(async () => {
  url = await migratedDatabase(cluster);
  const na = await startTestAuthority({ dataDir: network, flags: { store: url } });
  await operate(na, '/admin/invite');
  await na.stop();
});
after(async () => {
  for (const folder of [scratch, network]) rmSync(folder, { recursive: true, force: true });
  await cluster[Symbol.asyncDispose]();
});

/** Nothing listens there, so a command that uses it fails. */
const NOWHERE = 'postgresql://mesh@127.0.0.1:1/mesh';

interface Named {
  readonly args: readonly string[];
  readonly environment: { readonly [name: string]: string };
  /** The database that the file in the folder names; null for none. */
  readonly inFile: string | null;
}

/** Each way of naming a database, and a wrong one in the places that it overrides. */
const WAYS: { readonly [way: string]: (folder: string, place: string) => Named } = {
  'the flag, before the variable and the file': (folder, place) => ({
    args: ['--data-dir', folder, '--store', place],
    environment: { MESH_STORE: NOWHERE },
    inFile: NOWHERE,
  }),
  'the variable, before the file': (folder, place) => ({
    args: [],
    environment: { MESH_DATA_DIR: folder, MESH_STORE: place },
    inFile: NOWHERE,
  }),
  'the file of the folder, where the variable is empty': (folder, place) => ({
    args: ['--data-dir', folder],
    environment: { MESH_STORE: '' },
    inFile: place,
  }),
};

/** The output of each read-only command for the state in the database. */
const READING: { readonly [command: string]: RegExp } = {
  'store status': /^Network: alpha$/m,
  'store migrate': /^The tables at \S+ already have schema version \d+\.$/m,
  'store verify': /^The state of "alpha" is sound at revision \d+ /m,
  'audit show': / {2}invite_created {2}ops-privileged /,
  'audit export': /"event_type":"invite_created"/,
  'audit verify': /^The audit log is intact: 1 entry/m,
  'backup create': /^Wrote and verified the backup /m,
  'doctor --all': /^ok +store +Revision \d+ of epoch 1 \(postgresql,/m,
};
const MAKING = ['restore apply'];

/** A folder with these keys and no state; its configuration file names this database. */
function folderNaming(store: string | null): string {
  const folder = join(mkdtempSync(join(scratch, 'folder-')), 'data');
  cpSync(network, folder, { recursive: true });
  const path = join(folder, 'mesh-na.json');
  const { store: _, ...settings } = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify(store === null ? settings : { ...settings, store }));
  return folder;
}

function named(way: string, place: string): Named & { readonly folder: string } {
  const naming = WAYS[way];
  assert.ok(naming !== undefined);
  const folder = folderNaming(naming('', place).inFile);
  return { folder, ...naming(folder, place) };
}

test('the commands that accept a database are known', () => {
  const taking = commandReference(buildProgram())
    .commands.filter(({ options }) => options.some(({ term }) => term.startsWith('--store ')))
    .map(({ path }) => path);
  assert.deepEqual(
    taking.sort(),
    [...Object.keys(READING), ...MAKING, 'config show', 'serve']
      .map((line) => line.replace(/ --.*/, ''))
      .sort(),
  );
});

test('the log of an unused database is reported as empty', async () => {
  const unused = await migratedDatabase(cluster);
  for (const command of ['show', 'export']) {
    const line = ['audit', command, '--data-dir', folderNaming(null), '--store', unused];
    const { code, stdout, stderr } = await runCommand(line);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, '');
    assert.equal(stderr, 'The audit log is empty.\n');
  }
});

for (const way of Object.keys(WAYS)) {
  suite(`the database is named by ${way}`, () => {
    for (const [command, shown] of Object.entries(READING)) {
      test(`mesh-na ${command} reads it`, async () => {
        const { folder, args, environment } = named(way, url);
        rmSync(join(folder, 'keys', 'root.key'));
        const to = command === 'backup create' ? ['--to', join(folder, 'made.backup')] : [];
        const line = [...command.split(' '), ...args, ...to];
        const { code, stdout, stderr } = await runCommand(line, environment);
        assert.equal(code, 0, stdout + stderr);
        assert.match(stdout, shown);
      });
    }

    test('mesh-na restore apply fills it, and mesh-na serve serves it', async () => {
      await makeBackup();
      const place = await migratedDatabase(cluster);
      const { folder, args, environment } = named(way, place);
      const restore = ['restore', 'apply', '--backup', backup, '--accept-loss', LOSS, ...args];
      const restored = await runCommand(restore, environment);
      assert.equal(restored.code, 0, restored.stdout + restored.stderr);
      assert.match(restored.stdout, /^Restored the state at revision \d+ of epoch 2\.$/m);
      assert.ok(!restored.stdout.includes(encodeURIComponent(cluster.password)));
      const status = await runCommand(['store', 'status', '--store', place]);
      assert.match(status.stdout, /^Network: alpha$/m);
      const own = args.filter((arg) => arg !== '--data-dir' && arg !== folder);
      const options = { environment: { ...NO_LIMITS, ...environment }, args: own };
      await using server = await startChildServer(folder, options);
      const { body } = await get(server.na, '/readyz');
      assert.equal(body.database.backend, 'postgresql');
    });
  });
}

const LOSS = 'audit=unknown,certificates=0,attestations=0';
let made: Promise<void> | undefined;

/** One backup of the database, shared by all restores. */
function makeBackup(): Promise<void> {
  made ??= runCommand([
    ...['backup', 'create', '--data-dir', network],
    ...['--store', url, '--to', backup],
  ]).then(({ code, stderr }) => assert.equal(code, 0, stderr));
  return made;
}

test('a database that already has state is not restored into', async () => {
  await makeBackup();
  const folder = folderNaming(url);
  const restore = ['restore', 'apply', '--backup', backup, '--accept-loss', LOSS];
  const { code, stderr } = await runCommand([...restore, '--data-dir', folder]);
  assert.equal(code, 3);
  assert.match(stderr, /^mesh-na: The database at \S+ holds state already\n$/);
});
