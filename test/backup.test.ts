/** Backups: taken while an authority runs, by operators and by itself; they restore its state, and a changed byte is detected. */
import assert from 'node:assert/strict';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, afterEach, before, beforeEach, suite, test } from 'node:test';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { createStateCheck, verifyBackup } from '../src/maintenance/backup/check-state.ts';
import { createBackup } from '../src/maintenance/backup/create.ts';
import { readBackup } from '../src/maintenance/backup/file.ts';
import { createKeptFiles, type KeptFiles } from '../src/maintenance/backup/kept-files.ts';
import { createBackupSchedule } from '../src/maintenance/backup/schedule.ts';
import { readEvidence } from '../src/maintenance/restore/evidence.ts';
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
import { chainOf, countedKey, FIRST, NETWORK, ROOT, START } from './support/authority-chain.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { ownFolder, ownNetwork } from './support/folders.ts';
import { get, heartbeat, invite, joinedNode, operate } from './support/requests.ts';
import { sharedCluster } from './support/shared-cluster.ts';
import { FIRST_GENESIS } from './support/succession-authority.ts';
import { sourceOf } from './support/test-stores.ts';
import { sovereign } from './support/trust.ts';

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

test('a state is sound, and evidence genuine, of which more keys have signed than a search tries', () => {
  const steps = Array.from({ length: 33 }, (_, n) => ({ kind: 'planned' as const, at: n + 1 }));
  const statements = chainOf(steps);
  const network = {
    network_name: NETWORK,
    root_public_key: ROOT.publicKey,
    authority_public_key: FIRST.publicKey,
  };
  const genesis = { network_authority: { public_key: FIRST.publicKey } };
  const check = createStateCheck(network, verifySignature);
  const watch = (kind: string, id: string, value: string, context: object) =>
    check.watch('subjects', { kind, id, version: 1, snapshot: { value, context } } as never);
  for (const key of [FIRST, countedKey(34)]) {
    const json = canonicalJson(sovereign(NETWORK, key).attestation(START));
    watch('attestation', key.publicKey, 'active', { json });
  }
  const key = { genesis, statement: null, rolledBackFrom: null };
  watch('authority-key', FIRST.publicKey, 'retired', key);
  for (const statement of statements) {
    const value = statement === statements.at(-1) ? 'current' : 'retired';
    watch('authority-key', statement.to_key, value, { ...key, statement });
  }
  watch('policy', 'later', 'active', {});

  const now = START + 100 * HOUR;
  const feed = sovereign(NETWORK, countedKey(33)).feed(now, 1);
  const given = { crls: [], feeds: [feed], head: null, authorityKeys: { successions: statements } };
  const manifest = { network, genesis: FIRST_GENESIS };
  const { feedSequences } = readEvidence(given, manifest as never, now, verifySignature);
  assert.equal(feedSequences.get(NETWORK), 1);
});

suite('a state copied to PostgreSQL and to LMDB', { concurrency: false }, () => {
  test('is identical, row for row, and can be backed up by a separate process', async () => {
    const url = await cluster.createStore();
    const address = parseStoreAddress(url, {});
    const keys = mkdtempSync(join(folder, 'keys-'));
    await operate(na, '/admin/policy', { policy_id: `${'x'.repeat(64)}\u0000y` });
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

// When they are made, how many are kept, and the effect of a failure.
suite('backups that the service makes by itself', () => {
  const DAY = 24 * HOUR;
  const NOW = Date.parse('2026-06-01T10:00:00Z');

  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'mesh-backups-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const { genesis } = loadConfig({ dataDir: ownNetwork() }, {}, Date.now());

  suite('a schedule', () => {
    let now: number;
    let broken: boolean;
    let killed: boolean;
    let events: string[];
    const files = (): KeptFiles => createKeptFiles(folder, genesis);
    const names = () => readdirSync(folder).sort();
    const partOf = (path: string) => join(folder, `.${basename(path)}.partial`);
    beforeEach(() => {
      now = NOW;
      broken = false;
      killed = false;
      events = [];
    });

    function schedule(keep = 2) {
      const made = createBackupSchedule({
        settings: { every: DAY, keep },
        files: files(),
        now: () => now,
        async make(path) {
          if (broken) throw new Error('No space left');
          if (killed) {
            writeFileSync(partOf(path), 'half');
            throw new Error('The child process ended with SIGKILL');
          }
          writeFileSync(path, 'a backup');
        },
        verified: (at) => events.push(`verified ${(at - NOW) / HOUR}`),
        failed: () => events.push(`failed ${(now - NOW) / MINUTE}`),
        abort: new AbortController().signal,
      });
      return {
        ...made,
        /** Checks the schedule this many milliseconds after the start; a failure is an event. */
        async checkAt(after: number) {
          now = NOW + after;
          await made.check().catch(() => undefined);
        },
      };
    }

    test('takes the first backup at once, and each further one when it is due', async () => {
      const { checkAt } = schedule();
      for (const hours of [0, 1, 23, 24, 25, 47, 48]) await checkAt(hours * HOUR);
      assert.deepEqual(events, ['verified 0', 'verified 24', 'verified 48']);
      assert.equal(names().length, 2);
    });

    test('continues after a restart', async () => {
      await schedule().checkAt(0);
      const next = schedule();
      await next.checkAt(23 * HOUR);
      assert.deepEqual(events, ['verified 0', 'verified 0'], 'what is found counts as verified');
      await next.checkAt(24 * HOUR);
      assert.equal(events.at(-1), 'verified 24');
    });

    test('removes first what a clock that was ahead has made', async () => {
      for (const days of [29, 30]) writeFileSync(files().pathAt(NOW + days * DAY), 'a backup');
      const { checkAt } = schedule();
      for (const days of [0, 1, 2]) await checkAt(days * DAY);
      const kept = [1, 2].map((days) => files().pathAt(NOW + days * DAY));
      assert.deepEqual(names(), kept.map((path) => path.slice(folder.length + 1)).sort());
    });

    test('removes only backups of its own network and schedule, and no folder or other name', async () => {
      const others = [
        'mesh.backup',
        'alpha-00000000-20200101T000000Z.backup',
        'alpha-20200101T000000Z.backup',
        'notes.txt',
        '.other.backup.partial',
      ];
      for (const name of others) writeFileSync(join(folder, name), 'of somebody else');
      const own = files().pathAt(NOW - 9 * DAY);
      mkdirSync(own);
      writeFileSync(partOf(files().pathAt(NOW)), 'half');
      const { checkAt } = schedule(1);
      for (const days of [0, 1, 2]) await checkAt(days * DAY);
      const kept = [files().pathAt(NOW + 2 * DAY), own].map((path) =>
        path.slice(folder.length + 1),
      );
      assert.deepEqual(names(), [...others, ...kept].sort());
    });

    test('removes nothing after a failure, and tries again at growing intervals', async () => {
      const { checkAt } = schedule(1);
      await checkAt(0);
      broken = true;
      for (let minute = 0; minute <= 150; minute += 1) await checkAt(DAY + minute * MINUTE);
      const minutes = DAY / MINUTE;
      const tries = [0, 1, 3, 7, 15, 31, 63, 123].map((after) => `failed ${minutes + after}`);
      assert.deepEqual(events, ['verified 0', ...tries]);
      assert.equal(names().length, 1);
      broken = false;
      await checkAt(DAY + 200 * MINUTE);
      assert.match(events.at(-1) ?? '', /^verified 27\.3/);
      assert.equal(names().length, 1);
    });

    test('keeps what a killed process has written only until it tries again', async () => {
      const { checkAt } = schedule();
      killed = true;
      for (const minute of [0, 1, 3, 7]) await checkAt(minute * MINUTE);
      assert.deepEqual(names(), [basename(partOf(files().pathAt(NOW + 7 * MINUTE)))]);
      killed = false;
      await checkAt(15 * MINUTE);
      assert.deepEqual(names(), [basename(files().pathAt(NOW + 15 * MINUTE))]);
    });

    test('takes another one under a clock that was set back, and does not remove that one', async () => {
      const { checkAt } = schedule(1);
      await checkAt(9 * DAY);
      await checkAt(0);
      assert.deepEqual(names(), [
        files()
          .pathAt(NOW)
          .slice(folder.length + 1),
      ]);
    });

    test('uses a folder that is missing at first once it is there', async () => {
      const { checkAt } = schedule();
      renameSync(folder, `${folder}-away`);
      await checkAt(0);
      renameSync(`${folder}-away`, folder);
      await checkAt(MINUTE);
      assert.deepEqual(
        events.map((event) => event.split(' ')[0]),
        ['failed', 'verified'],
      );
    });
  });

  test('a running authority backs itself up, and reports when that fails', async () => {
    await using na = await startTestAuthority({
      flags: { backupTo: folder, backupEvery: '24h', backupKeep: '1' },
    });
    await invite(na);
    await na.backUp();
    const [first = ''] = readdirSync(folder);
    assert.match(first, /^alpha-[0-9a-f]{8}-\d{8}T\d{6}Z\.backup$/);
    const seconds = Math.floor(na.clock.now() / SECOND);
    const verifiedAt = /^mesh_na_backup_verified_timestamp_seconds (.*)$/m;
    const metrics = async () => (await get(na, '/metrics')).text;
    assert.equal(Math.floor(Number(verifiedAt.exec(await metrics())?.[1])), seconds);
    assert.match(na.logLines.join(''), /INFO mesh\.backup The backup .* was made and verified/);

    na.clock.advance(DAY);
    await na.backUp();
    const [second = '', ...rest] = readdirSync(folder);
    assert.notEqual(second, first);
    assert.deepEqual(rest, []);
    const bytes = await readBackup(join(folder, second), []);
    const { manifest } = await verifyBackup(bytes, verifySignature);
    assert.equal(Date.parse(manifest.created_at), na.clock.now());

    rmSync(folder, { recursive: true });
    na.clock.advance(5 * DAY);
    await na.clock.idle();
    assert.match(na.logLines.join(''), /ERROR mesh\.background backup failed: .*ENOENT/);
    assert.match(await metrics(), /^mesh_na_backup_failures_total 1$/m);
    assert.match(await metrics(), /^mesh_na_posture_finding\{rule="backup"\} 2$/m);
    assert.equal((await get(na, '/readyz')).status, 200);
  });

  test('a stop ends a running backup, and the next start takes another one, encrypted as before', async () => {
    const identity = await generateX25519Identity();
    const backupRecipient = [await identityToRecipient(identity)];
    await using na = await startTestAuthority({ flags: { backupTo: folder, backupRecipient } });
    // The start has begun a backup, which takes a separate process.
    await na.stop();
    assert.deepEqual(
      readdirSync(folder).filter((name) => !name.startsWith('.')),
      [],
    );
    assert.doesNotMatch(na.logLines.join(''), / ERROR /);
    await using again = await na.restart();
    await again.backUp();
    const [name = '', ...rest] = readdirSync(folder);
    assert.deepEqual(rest, []);
    await assert.rejects(readBackup(join(folder, name), []), /is encrypted/);
    await verifyBackup(await readBackup(join(folder, name), [identity]), verifySignature);
  });

  suite('invalid settings are refused', () => {
    for (const [flags, problem] of [
      [{ backupTo: '/b', backupEvery: '0h' }, /--backup-every must be a duration from 1m to 366d/],
      [{ backupTo: '/b', backupEvery: 'daily' }, /such as 30m or 24h, not "daily"/],
      [{ backupTo: '/b', backupEvery: '367d' }, /--backup-every must be a duration/],
      [{ backupTo: '/b', backupKeep: '0' }, /--backup-keep must be a whole number from 1/],
      [{ backupRecipient: ['age1x'] }, /--backup-recipient requires --backup-to/],
    ] as const) {
      test(JSON.stringify(flags), () => {
        const dataDir = ownNetwork();
        assert.throws(() => loadConfig({ dataDir, ...flags }, {}, Date.now()), problem);
      });
    }

    test('an invalid recipient prevents the start', async () => {
      const dataDir = ownNetwork();
      const flags = ['--backup-to', folder, '--backup-recipient', 'age1nobody', '--port', '0'];
      const { code, stderr } = await runCommand(['serve', '--data-dir', dataDir, ...flags]);
      assert.equal(code, 3);
      assert.match(stderr, /^mesh-na: age1nobody is not an age recipient/);
    });
  });
});
