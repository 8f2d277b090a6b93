/** Backups taken while an authority runs: they restore its state, and a changed byte is detected. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { verifyBackup } from '../src/maintenance/backup/check-state.ts';
import { createBackup } from '../src/maintenance/backup/create.ts';
import { readBackup } from '../src/maintenance/backup/file.ts';
import { loadConfig } from '../src/server/config/load.ts';
import { backUpInChildProcess } from '../src/server/threads/backup-child.ts';
import { openSigner } from '../src/server/threads/signer-thread.ts';
import { openLmdbTarget } from '../src/store/lmdb/receiver.ts';
import { openLmdbSource } from '../src/store/lmdb/source.ts';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { openPostgresqlTarget } from '../src/store/postgresql/receiver.ts';
import { openPostgresqlSource } from '../src/store/postgresql/source.ts';
import { differingTables } from '../src/store/stream/manifest.ts';
import type { StateSource } from '../src/store/stream/ports.ts';
import type { RowBatch } from '../src/store/stream/read.ts';
import { STREAM_TABLES } from '../src/store/stream/rows.ts';
import { fill } from '../src/store/stream/target.ts';
import { summarize } from '../src/store/stream/write.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { runCommand } from './support/commands.ts';
import { ownFolder } from './support/folders.ts';
import { get, heartbeat, joinedNode, operate } from './support/requests.ts';
import { sharedCluster } from './support/shared-cluster.ts';
import { sourceOf } from './support/test-stores.ts';

const cluster = await sharedCluster();

const folder = ownFolder();
let na: TestAuthority;

before(async () => {
  na = await startTestAuthority();
  for (let i = 0; i < 3; i += 1) {
    const node = await joinedNode(na);
    await heartbeat(na, node);
    if (i === 0) await operate(na, '/admin/revoke', { cert_id: node.certId, reason: 'superseded' });
  }
  await operate(na, '/admin/attestations', {
    subject_id: 'node-1',
    roles: ['role:client'],
  });
  await na.flush();
});

after(() => na[Symbol.asyncDispose]());

async function backUp(source: StateSource, name: string, recipients: readonly string[] = []) {
  const { genesis, keySource, publicKey, keyId } = loadConfig(
    { dataDir: na.dataDir },
    {},
    na.clock.now(),
  );
  const keys = { current: { publicKey, keyId }, previous: null };
  const openKeys = () => openSigner(keySource(), keys);
  const path = join(folder, name);
  const order = { source, genesis, openSigner: openKeys, path, recipients, now: na.clock.now() };
  return { path, ...(await createBackup({ ...order, verify: verifySignature })) };
}

async function verified(path: string, identities: readonly string[] = []) {
  return verifyBackup(await readBackup(path, identities), verifySignature);
}

suite('a backup', () => {
  test('is taken while the authority runs and contains every row', async () => {
    const source = await sourceOf(na);
    const { path, manifest } = await backUp(source, 'plain.backup');
    await source.close();
    assert.equal((await verified(path)).signedRecords, 1);
    assert.equal(manifest.crl_sequence, 1);
    assert.equal(manifest.is_closed, false);
    assert.equal(manifest.tables.liveness.rows, 3);
    assert.deepEqual(readdirSync(folder), ['plain.backup'], 'nothing else is left');
  });

  test('contains nothing that is written after it has begun', async () => {
    const source = await sourceOf(na);
    await joinedNode(na);
    const { manifest } = await backUp(source, 'frozen.backup');
    await source.close();
    const later = await sourceOf(na);
    assert.equal(later.facts.revision > manifest.revision, true);
    await later.close();
  });

  test('can be opened only by an identity of its recipient, even if it is large', async () => {
    const identity = await generateX25519Identity();
    const source = await sourceOf(na);
    const { path } = await backUp(source, 'secret.backup', [await identityToRecipient(identity)]);
    await source.close();
    assert.match(readFileSync(path, 'latin1'), /^age-encryption\.org\/v1\n/);
    await verified(path, [identity]);
    await assert.rejects(verified(path, [await generateX25519Identity()]));
    await assert.rejects(
      verified(path),
      /is encrypted; pass the file of a matching identity with --identity/,
    );
  });

  test('is refused if any byte is changed, cut or added', async () => {
    const source = await sourceOf(na);
    const { path } = await backUp(source, 'whole.backup');
    await source.close();
    const whole = readFileSync(path);
    const altered = join(folder, 'altered.backup');
    const refuse = async (bytes: Buffer, what: string) => {
      writeFileSync(altered, bytes);
      await assert.rejects(verified(altered), /damaged|not sound/, what);
    };
    for (let i = 0; i < 60; i += 1) {
      const at = Math.floor((i * whole.length) / 60);
      const flipped = Buffer.from(whole);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (i % 8));
      await refuse(flipped, `bit ${i % 8} of byte ${at}`);
    }
    for (const part of [0, 0.3, 0.9]) {
      await refuse(whole.subarray(0, Math.floor(part * whole.length)), `cut at ${part}`);
    }
    await refuse(whole.subarray(0, whole.length - 1), 'without its end');
    await refuse(Buffer.concat([whole, Buffer.from('{}\n')]), 'with more');
    const lines = whole.toString().split('\n');
    await refuse(Buffer.from([...lines.slice(0, 2), ...lines.slice(3)].join('\n')), 'less a row');
  });

  test('by the command line prints one JSON object', async () => {
    const path = join(folder, 'cli.backup');
    const made = await runCommand([
      'backup',
      'create',
      '--data-dir',
      na.dataDir,
      '--to',
      path,
      '--json',
    ]);
    assert.equal(made.code, 0, made.stderr);
    assert.equal(JSON.parse(made.stdout).crl_sequence, 1);
    const found = await runCommand(['backup', 'verify', path, '--json']);
    assert.equal(JSON.parse(found.stdout).valid, true);
    const listed = await runCommand(['backup', 'list', folder, '--json']);
    const names = JSON.parse(listed.stdout).backups.map(({ name }: { name: string }) => name);
    assert.ok(names.includes('cli.backup'));
    for (const command of [
      ['backup', 'verify'],
      ['restore', 'plan', '--backup'],
    ]) {
      const { code, stderr } = await runCommand([...command, `${path}.gone`]);
      const cause = `mesh-na: ${path}.gone cannot be read (ENOENT)`;
      const cure = 'The file or folder does not exist: correct the path.';
      assert.deepEqual([code, stderr], [3, `${cause}\n  ${cure}\n`]);
    }
  });

  test('gets a restore plan without a position if nothing shows what came after it', async () => {
    const source = await sourceOf(na);
    const { path } = await backUp(source, 'planned.backup');
    await source.close();
    const [crl, feed] = [join(folder, 'crl.json'), join(folder, 'feed.json')];
    writeFileSync(crl, (await get(na, '/crl')).text);
    writeFileSync(feed, (await get(na, '/sovereign-revocation-feed')).text);
    for (const [evidence, unknown, since, cure] of [
      [
        [],
        ['certificates', 'attestations', 'operator_keys'],
        'an unknown number of certificates, an unknown number of attestations, an unknown number of operator keys',
        'To find out what is unknown, give the newest --crl, --feed, --head',
      ],
      [
        ['--crl', crl],
        ['attestations', 'operator_keys'],
        '0 certificates, an unknown number of attestations, an unknown number of operator keys',
        'To find out what is unknown, give the newest --feed, --head',
      ],
      [
        ['--crl', crl, '--feed', feed],
        ['operator_keys'],
        '0 certificates, 0 attestations, an unknown number of operator keys',
        'To find out what is unknown, give the newest --head',
      ],
    ] as const) {
      const plan = ['restore', 'plan', '--backup', path, ...evidence];
      const [shown, read] = [await runCommand(plan), await runCommand([...plan, '--json'])];
      assert.equal(shown.code, 0, shown.stderr);
      assert.ok(shown.stdout.includes(`\nRevoked since: ${since}\n`), shown.stdout);
      assert.ok(shown.stdout.includes(`\n${cure}\n`), shown.stdout);
      assert.deepEqual(JSON.parse(read.stdout).unknown, unknown);
    }
    await using stranger = await startTestAuthority();
    writeFileSync(join(folder, 'foreign.json'), (await get(stranger, '/crl')).text);
    const evidence = ['--crl', crl, '--crl', join(folder, 'foreign.json')];
    const refused = await runCommand(['restore', 'plan', '--backup', path, ...evidence]);
    assert.equal(refused.code, 4);
    assert.match(
      refused.stderr,
      /^mesh-na: The file passed with --crl is not a revocation list signed by the authority of the backup: \S+foreign\.json; get it from that authority [^\n]+\n$/,
    );
  });
});

suite('a state copied to PostgreSQL and to LMDB', { concurrency: false }, () => {
  test('is identical, row for row, and can be backed up by a separate process', async () => {
    const url = await cluster.createStore();
    const address = parseStoreAddress(url, {});
    const keys = mkdtempSync(join(folder, 'keys-'));
    const source = await sourceOf(na);
    await fill(await openPostgresqlTarget(address, keys), batchesOf(source), source.facts);
    const postgresql = await openPostgresqlSource(address);
    assert.deepEqual(postgresql.facts, source.facts);
    const { genesis, keySource, publicKey, keyId } = loadConfig(
      { dataDir: na.dataDir },
      {},
      Date.now(),
    );
    const path = join(folder, 'of-a-database.backup');
    const made = await backUpInChildProcess(
      {
        dataDir: keys,
        database: { url, environment: {} },
        genesis,
        keySource: keySource(),
        key: { publicKey, keyId },
        recipients: [],
        path,
        now: na.clock.now(),
      },
      new AbortController().signal,
    );
    assert.deepEqual((await verified(path)).manifest.revision, made.revision);
    const back = join(folder, 'back');
    await fill(openLmdbTarget(back), batchesOf(postgresql), postgresql.facts);
    const again = await openLmdbSource(back);
    const tables = await Promise.all(
      [source, postgresql, again].map((source) => summarize(source)),
    );
    const [first, ...others] = tables;
    for (const other of others) {
      assert.deepEqual(differingTables(first as typeof other, other), []);
    }
    assert.ok((first?.audit.rows ?? 0) > 5);
    await assert.rejects(openPostgresqlTarget(address, keys), /holds state already/);
    assert.throws(() => openLmdbTarget(back), /holds state already/);
    await Promise.all([source.close(), postgresql.close(), again.close()]);
  });
});

async function* batchesOf(source: StateSource): AsyncGenerator<RowBatch> {
  for (const table of STREAM_TABLES) {
    for await (const rows of source.rows(table)) yield { table, rows } as unknown as RowBatch;
  }
}
