/** Damage to the stored state: what finds it, how it is named, and that the answers of a running service stay right. */
import assert from 'node:assert/strict';
import {
  closeSync,
  cpSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { Database, Key } from 'lmdb';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { soundTables } from '../src/maintenance/backup/check-state.ts';
import { openLmdbSource } from '../src/store/lmdb/source.ts';
import { openEnvironment, openTables } from '../src/store/lmdb/tables.ts';
import { startTestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { endOf } from './support/failed-command.ts';
import { ownFolder, ownNetwork } from './support/folders.ts';
import { get, heartbeat, joinedNode, operate, outcome } from './support/requests.ts';

const scratch = ownFolder();
const dataDir = ownNetwork();
let certId: string;

before(async () => {
  const na = await startTestAuthority({ dataDir });
  ({ certId } = await joinedNode(na));
  await operate(na, '/admin/invite');
  await na.stop();
});

const rowOf = (id: string) =>
  `the row ["certificate","${id}"] of table subjects does not match its checksum`;

test('a changed byte makes the backups of a running service fail, which name the row, until it is repaired', async () => {
  const backups = mkdtempSync(join(scratch, 'backups-'));
  await using na = await startTestAuthority({ flags: { backupTo: backups, backupEvery: '1h' } });
  const node = await joinedNode(na);
  await na.backUp();
  const mend = await damageRow(na.dataDir, node.certId);
  // Before the list is renewed, which would copy the damaged page.
  na.clock.advance(HOUR);
  await na.clock.idle();
  assert.ok(
    na.logLines.some((line) => /backup failed/.test(line) && line.includes(rowOf(node.certId))),
  );
  assert.match((await get(na, '/metrics')).text, /^mesh_na_backup_failures_total 1$/m);
  assert.equal(outcome(await heartbeat(na, node)), '200');
  assert.equal((await get(na, '/readyz')).status, 200);
  assert.equal(readdirSync(backups).length, 1);

  mend();
  na.clock.advance(HOUR);
  await na.backUp();
  assert.equal(readdirSync(backups).length, 2);
});

test('a state that is served is sound', async () => {
  await using na = await startTestAuthority({ dataDir });
  assert.equal(await problemOf(na.dataDir), null);
});

test('a check names the damaged row, and no start is possible from it', async () => {
  const folder = copied();
  await damageRow(folder, certId);
  const verified = await endOf(['store', 'verify', '--data-dir', folder]);
  assert.equal(verified.exit, 4);
  assert.ok(verified.message.includes(rowOf(certId)), verified.message);
  await assert.rejects(startTestAuthority({ dataDir: folder }), ({ message }: Error) =>
    message.includes(rowOf(certId)),
  );
});

for (const [place, table, sentence] of [
  ['first', 'audit', /an audit entry is missing/],
  ['last', 'audit', /the last audit entry is missing|holds \d+ entries where \d+ were stored/],
  ['first', 'subjects', /table subjects holds \d+ entries where \d+ were stored/],
  ['last', 'nonces', /table nonces holds \d+ entries where \d+ were stored/],
] as const) {
  test(`a missing row is damage: the ${place} of ${table}`, async () => {
    const folder = copied();
    const env = openEnvironment(folder, false);
    const opened = openTables(env)[table] as Database<Buffer, Key>;
    const [key = ''] = opened.getKeys({ limit: 1, reverse: place === 'last' });
    assert.equal(await opened.remove(key), true);
    await env.close();
    assert.match(String(await problemOf(folder)), sentence);
  });
}

test('a command that was removed is refused as unknown', async () => {
  const { exit, message } = await endOf(['store', 'salvage', '--data-dir', dataDir]);
  assert.equal(exit, 2);
  assert.match(message, /unknown command 'salvage'/);
});

function copied(): string {
  const folder = mkdtempSync(join(scratch, 'copy-'));
  cpSync(dataDir, folder, { recursive: true });
  return folder;
}

/** What `store verify` would say about the state; null if it is sound. */
async function problemOf(folder: string): Promise<string | null> {
  try {
    const source = await openLmdbSource(folder);
    await soundTables(source, verifySignature).finally(() => source.close());
    return null;
  } catch (cause) {
    return String(cause);
  }
}

/** Changes a byte of the certificate's row in the file itself; returns a function that undoes it. */
async function damageRow(folder: string, id: string): Promise<() => void> {
  const path = join(folder, 'state', 'data.mdb');
  const key = `certificate\0${id}`;
  const bytes = readFileSync(path);
  const put = (at: number, byte: number) => {
    const file = openSync(path, 'r+');
    writeSync(file, Buffer.of(byte), 0, 1, at);
    closeSync(file);
  };
  // Free pages contain earlier copies of the row.
  for (let found = bytes.indexOf(key); found >= 0; found = bytes.indexOf(key, found + 1)) {
    const at = found + key.length + 30;
    const byte = bytes.readUInt8(at);
    put(at, byte ^ 8);
    if ((await problemOf(folder)) !== null) return () => put(at, byte);
    put(at, byte);
  }
  throw new Error('The row is nowhere');
}
