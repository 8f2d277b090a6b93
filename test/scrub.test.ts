/** Damage to the stored state is found while it is served, and does not affect answers. */
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, rmSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createScrub } from '../src/server/lifecycle/scrub.ts';
import { EndedApart } from '../src/server/threads/apart.ts';
import { scrubFolder } from '../src/store/lmdb/scrub.ts';
import { openEnvironment, openTables } from '../src/store/lmdb/tables.ts';
import type { ScrubbedPart, ScrubPlace } from '../src/store/scrub.ts';
import { startTestAuthority } from './support/authority.ts';
import { makeNetworkFolder } from './support/folders.ts';
import './support/lmdb-only.ts';
import { get, heartbeat, joinedNode, operate, outcome } from './support/requests.ts';

const DATABASE = join('state', 'data.mdb');

test('a changed byte is found and reported, the service continues, and a repaired row is no longer reported', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  const metrics = async () => (await get(na, '/metrics')).text;
  await na.scrub();
  assert.match(await metrics(), /^mesh_na_scrub_damaged_rows 0$/m);
  assert.match(await metrics(), /^mesh_na_scrub_completed_timestamp_seconds [1-9]/m);

  const mend = await damageRow(na.dataDir, `certificate\0${node.certId}`);
  await na.scrub();
  assert.match(await metrics(), /^mesh_na_scrub_damaged_rows 1$/m);
  assert.match(await metrics(), /^mesh_na_posture_finding\{rule="damage"\} 2$/m);
  const row = `the row ["certificate","${node.certId}"] of table subjects does not match its checksum`;
  const errors = na.logLines.filter((line) => line.includes(' ERROR '));
  assert.equal(errors.length, 1);
  assert.ok(errors[0]?.includes(`mesh.store The stored state is damaged: ${row}`), errors[0]);
  assert.equal(outcome(await heartbeat(na, node)), '200');
  assert.equal((await get(na, '/readyz')).status, 200);

  mend();
  await na.scrub();
  assert.match(await metrics(), /^mesh_na_scrub_damaged_rows 0$/m);
});

test('each row is read once, in as many parts as it takes', async () => {
  const { folder: dataDir } = makeNetworkFolder();
  const na = await startTestAuthority({ dataDir });
  await operate(na, '/admin/invite', { count: 1000 });
  await operate(na, '/admin/invite', { count: 500 });
  await joinedNode(na);
  await na.stop();
  const whole = await inParts(dataDir, 1);
  const parts = await inParts(dataDir, 168);
  assert.equal(whole.length, 1);
  assert.ok(parts.length > 1);
  const rows = (read: readonly ScrubbedPart[]) => read.reduce((sum, part) => sum + part.rows, 0);
  assert.equal(rows(parts), rows(whole));
  assert.deepEqual(
    parts.flatMap(({ damaged }) => damaged),
    [],
  );

  truncateSync(join(dataDir, DATABASE), 20_000);
  const { damaged, next } = await scrubFolder(dataDir, null, 1);
  assert.match(damaged.join(), /^of state\/data\.mdb, it /);
  assert.equal(next, null);
  rmSync(dataDir, { recursive: true });
});

test('a missing audit entry is damage, in the middle of the log and at its end', async () => {
  const { folder: dataDir } = makeNetworkFolder();
  const na = await startTestAuthority({ dataDir });
  for (let made = 0; made < 3; made += 1) await operate(na, '/admin/invite');
  await na.stop();
  const damaged: (readonly string[])[] = [];
  for (const entry of [2, 3]) {
    const env = openEnvironment(dataDir, false);
    assert.equal(await openTables(env).audit.remove(entry), true);
    await env.close();
    damaged.push((await scrubFolder(dataDir, null, 1)).damaged);
  }
  assert.deepEqual(damaged, [
    ['after entry 1, the audit log goes on with entry 3'],
    ['table audit lacks 2 of the entries that were stored'],
  ]);
  rmSync(dataDir, { recursive: true });
});

test('a process that crashes on what it reads counts as damage, another failure does not', async () => {
  const found: string[] = [];
  const outcomes: (() => ScrubbedPart)[] = [
    () => ({ rows: 1, damaged: ['a row'], next: { table: 'audit', after: 7 } }),
    () => {
      throw new EndedApart(null, 'SIGSEGV');
    },
    () => {
      throw new EndedApart(null, 'SIGKILL');
    },
    () => ({ rows: 2, damaged: ['a row'], next: null }),
    () => ({ rows: 2, damaged: [], next: null }),
  ];
  const places: (ScrubPlace | null)[] = [];
  const scrub = createScrub({
    async read(from) {
      places.push(from);
      return (outcomes.shift() as () => ScrubbedPart)();
    },
    found: (what) => found.push(what),
    counted: () => undefined,
    completed: () => undefined,
    abort: new AbortController().signal,
  });
  await scrub.check();
  assert.equal(scrub.damaged, 1);
  await scrub.check();
  assert.equal(scrub.damaged, 2);
  await assert.rejects(scrub.check(), /SIGKILL/);
  await scrub.check();
  assert.equal(scrub.damaged, 1, 'the last whole reading counts');
  await scrub.check();
  assert.equal(scrub.damaged, 0);
  assert.deepEqual(found, ['a row', 'the database cannot be read (SIGSEGV)']);
  assert.deepEqual(places, [null, { table: 'audit', after: 7 }, null, null, null]);
});

async function inParts(dataDir: string, parts: number): Promise<ScrubbedPart[]> {
  const read: ScrubbedPart[] = [];
  let from: ScrubPlace | null = null;
  do {
    const part = await scrubFolder(dataDir, from, parts);
    read.push(part);
    from = part.next;
  } while (from !== null);
  return read;
}

/** Changes a byte of the row in the file itself; returns a function that undoes it. */
async function damageRow(dataDir: string, key: string): Promise<() => void> {
  const path = join(dataDir, DATABASE);
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
    const { damaged } = await scrubFolder(dataDir, null, 1);
    if (damaged.length > 0) return () => put(at, byte);
    put(at, byte);
  }
  throw new Error('The row is nowhere');
}
