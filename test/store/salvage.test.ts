/** What `mesh-na store verify` finds in a damaged state, and what `mesh-na store salvage` recovers from it. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import { soundTables } from '../../src/maintenance/backup/check-state.ts';
import { readRemains } from '../../src/store/lmdb/remains.ts';
import { openLmdbSource } from '../../src/store/lmdb/source.ts';
import { type Salvaged, salvageLines } from '../../src/store/salvage.ts';
import { randomFrom } from '../fuzz/random.ts';
import { startTestAuthority } from '../support/authority.ts';
import { runProgram } from '../support/child-server.ts';
import { endOf } from '../support/failed-command.ts';
import { makeNetworkFolder } from '../support/folders.ts';
import '../support/lmdb-only.ts';
import { joinedNode, operate } from '../support/requests.ts';

const FLIPS = Number(process.env.MESH_TEST_FLIPS ?? 60);
const SEED = Number(process.env.MESH_TEST_SEED ?? Date.now() % 1_000_000);
const DATABASE = join('state', 'data.mdb');

const { folder: dataDir } = makeNetworkFolder();
const scratch = mkdtempSync(join(tmpdir(), 'mesh-salvage-'));
let bytes: Buffer;
let certId: string;
let whole: readonly string[];

before(async () => {
  const na = await startTestAuthority({ dataDir });
  for (let i = 0; i < 60; i += 1) ({ certId } = await joinedNode(na));
  await operate(na, '/admin/revoke', { cert_id: certId, reason: 'superseded' });
  await na.stop();
  bytes = readFileSync(join(dataDir, DATABASE));
  const { lines, lost } = salvaged(dataDir);
  assert.deepEqual(lost, []);
  whole = lines;
});
after(() => {
  for (const folder of [dataDir, scratch]) rmSync(folder, { recursive: true, force: true });
});

function salvaged(folder: string): { lines: string[]; lost: string[] } {
  const found: Salvaged = { rows: {}, lost: [] };
  return { lines: [...salvageLines(readRemains(folder), found)], lost: found.lost };
}

/** A copy of the folder with this bit flipped. */
function damagedAt(at: number, bit: number): string {
  const folder = mkdtempSync(join(scratch, 'copy-'));
  cpSync(dataDir, folder, { recursive: true });
  const changed = Buffer.from(bytes);
  changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at);
  writeFileSync(join(folder, DATABASE), changed);
  return folder;
}

/** A copy with a bit flipped in the certificate's current row; free pages contain earlier copies of the row. */
function damagedInRow(): string {
  const key = `certificate\0${certId}`;
  for (let at = bytes.indexOf(key); at >= 0; at = bytes.indexOf(key, at + 1)) {
    const folder = damagedAt(at + key.length + 30, 3);
    if (salvaged(folder).lost.length > 0) return folder;
  }
  throw new Error('The row is nowhere');
}

test('a sound state is exported completely, in lines of the portable stream', () => {
  const rows = whole.slice(1).map((line) => JSON.parse(line));
  const of = (table: string) => rows.filter((row) => row.table === table).map(({ row }) => row);
  assert.equal(of('subjects').filter(({ kind }) => kind === 'certificate').length, 60);
  assert.equal(of('subjects').find(({ id }) => id === certId)?.value, 'revoked');
  assert.equal(of('audit').at(-1)?.event_type, 'certificate_revoked');
  const head = JSON.parse(whole[0] ?? '');
  assert.equal(head.format, 'mesh-na-salvage');
  assert.equal(head.audit_length, of('audit').length);
});

test(`whatever bit is changed, each exported row is genuine, and missing rows are reported (seed ${SEED})`, () => {
  const random = randomFrom(SEED);
  const known = new Set(whole.slice(1));
  const folder = damagedAt(0, 0);
  let incomplete = 0;
  for (let round = 0; round < FLIPS; round += 1) {
    const [at, bit] = [random.below(bytes.length), random.below(8)];
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at);
    writeFileSync(join(folder, DATABASE), changed);
    const { lines, lost } = salvaged(folder);
    const rows = lines.slice(1).filter((line) => !line.startsWith('{"lost"'));
    const hasShapes = !lost.some((sentence) => /"shapes" of table meta|table meta/.test(sentence));
    for (const row of rows) {
      const isNamed = hasShapes || !row.includes('"stored":[');
      assert.ok(known.has(row) || !isNamed, `${at}.${bit}: ${row}`);
    }
    if (rows.length === known.size) continue;
    incomplete += 1;
    assert.ok(lost.length > 0, `${at}.${bit}: ${known.size - rows.length} rows are missing`);
  }
  assert.ok(incomplete > 0);
});

test('a file of which only the beginning is left reports what is lost', () => {
  const folder = damagedAt(0, 0);
  for (const part of [0, 1000, 10_000, bytes.length / 2]) {
    writeFileSync(join(folder, DATABASE), bytes.subarray(0, part));
    assert.notDeepEqual(salvaged(folder).lost, [], String(part));
  }
});

test('a folder that is served is sound, and nothing is salvaged from it', async () => {
  await using na = await startTestAuthority({ dataDir });
  const source = await openLmdbSource(na.dataDir);
  const { subjects } = await soundTables(source, verifySignature);
  await source.close();
  assert.ok(subjects.rows > 100);
  assert.throws(() => [...readRemains(na.dataDir)], /in use by another process/);
});

test('the program names the damaged row, and exports the others', async () => {
  const folder = damagedInRow();
  const row = `the row ["certificate","${certId}"] of table subjects does not match its checksum`;
  const verified = await endOf(['store', 'verify', '--data-dir', folder]);
  assert.equal(verified.exit, 4);
  assert.ok(verified.message.includes(row), verified.message);

  const to = join(scratch, 'salvaged.ndjson');
  const [started, left] = await Promise.all([
    runProgram(['serve', '--data-dir', damagedInRow(), '--port', '0']),
    runProgram(['store', 'salvage', '--data-dir', folder, '--to', to]),
  ]);
  assert.equal(started.code, 3);
  assert.ok(started.stderr.includes(row), started.stderr);
  const command = /export what is readable with mesh-na store salvage --data-dir \S+ --to FILE\n$/;
  assert.match(started.stderr, command);
  assert.equal(left.code, 4, left.stderr);
  assert.match(left.stdout, /Lost, as the file says: 1\./);
  const lines = readFileSync(to, 'utf8').split('\n').slice(1, -1);
  assert.equal(lines.length, whole.length - 1);
  assert.deepEqual(lines.at(-1), JSON.stringify({ lost: row }));
});
