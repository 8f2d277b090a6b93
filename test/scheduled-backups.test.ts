/** Backups that the service makes by itself: when it makes them, how many it keeps, and the effect of a failure. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, suite, test } from 'node:test';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { verifyBackup } from '../src/maintenance/backup/check-state.ts';
import { readBackup } from '../src/maintenance/backup/file.ts';
import { createKeptFiles, type KeptFiles } from '../src/maintenance/backup/kept-files.ts';
import { createBackupSchedule } from '../src/maintenance/backup/schedule.ts';
import { loadConfig } from '../src/server/config/load.ts';
import { startTestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { ownNetwork } from './support/folders.ts';
import { get, invite } from './support/requests.ts';

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
  let events: string[];
  const files = (): KeptFiles => createKeptFiles(folder, genesis);
  const names = () => readdirSync(folder).sort();
  beforeEach(() => {
    now = NOW;
    broken = false;
    events = [];
  });

  function schedule(keep = 2) {
    const made = createBackupSchedule({
      settings: { every: DAY, keep },
      files: files(),
      now: () => now,
      async make(path) {
        if (broken) throw new Error('No space left');
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
    const unfinished = join(
      folder,
      `.${files()
        .pathAt(NOW)
        .slice(folder.length + 1)}.partial`,
    );
    writeFileSync(unfinished, 'half');
    const { checkAt } = schedule(1);
    for (const days of [0, 1, 2]) await checkAt(days * DAY);
    const kept = [files().pathAt(NOW + 2 * DAY), own].map((path) => path.slice(folder.length + 1));
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
