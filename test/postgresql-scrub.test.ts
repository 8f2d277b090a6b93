/** Damage of a state in a database is found while it is served, and does no harm to what is answered. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { scrubDatabase } from '../src/store/postgresql/scrub.ts';
import type { ScrubbedPart, ScrubPlace } from '../src/store/scrub.ts';
import { startTestAuthority } from './support/authority.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { startCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
import { get, heartbeat, joinedNode, operate, outcome } from './support/requests.ts';

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

const nameOf = (url: string) => new URL(url).pathname.slice(1);

test('a changed bit is found and reported, the service goes on, and what is mended is forgotten', async () => {
  const url = await migratedDatabase(cluster);
  await using na = await startTestAuthority({ flags: { store: url } });
  const node = await joinedNode(na);
  await na.flush();
  const metrics = async () => (await get(na, '/metrics')).text;
  await na.scrub();
  assert.match(await metrics(), /^na_scrub_damaged_rows 0$/m);
  assert.match(await metrics(), /^na_scrub_completed_timestamp_seconds [1-9]/m);

  const flip = `update mesh_na.subjects set snapshot = set_byte(snapshot, 30, get_byte(snapshot, 30) # 8)
    where kind = 'certificate'`;
  await cluster.query(nameOf(url), flip);
  await na.scrub();
  assert.match(await metrics(), /^na_scrub_damaged_rows 1$/m);
  assert.match(await metrics(), /^na_posture_finding\{rule="damage"\} 2$/m);
  const row = `the row ["certificate","${node.certId}"] of table subjects does not match its checksum`;
  const errors = na.logLines.filter((line) => line.includes(' ERROR '));
  assert.equal(errors.length, 1, errors.join(''));
  assert.ok(errors[0]?.includes(`mesh.store The stored state is damaged: ${row}`), errors[0]);
  assert.equal(outcome(await heartbeat(na, node)), '200');
  assert.equal((await get(na, '/readyz')).status, 200);

  await cluster.query(nameOf(url), flip);
  await na.scrub();
  assert.match(await metrics(), /^na_scrub_damaged_rows 0$/m);
});

test('each row of every table is read once, in as many parts as it takes, and any damaged one is named', async () => {
  const url = await migratedDatabase(cluster);
  const { folder: dataDir } = makeNetworkFolder();
  const na = await startTestAuthority({ dataDir, flags: { store: url } });
  for (const count of [1000, 1000, 500]) await operate(na, '/admin/invite', { count });
  await heartbeat(na, await joinedNode(na));
  await na.stop();
  rmSync(dataDir, { recursive: true });
  const [whole, parts] = [await inParts(url, 1), await inParts(url, 168)];
  assert.equal(whole.length, 1);
  assert.ok(parts.length > 2);
  const rows = (read: readonly ScrubbedPart[]) => read.reduce((sum, part) => sum + part.rows, 0);
  assert.equal(rows(parts), rows(whole));
  const damaged = async () => (await inParts(url, 168)).flatMap((part) => part.damaged);
  assert.deepEqual(await damaged(), []);

  for (const [table, key, column] of [
    ['meta', 'key', 'value'],
    ['subjects', 'id', 'snapshot'],
    ['nonces', 'revision', 'digests'],
    ['nonces', 'revision', 'answers'],
    ['audit', 'last_entry', 'entries'],
    ['liveness', 'id', 'contact'],
  ] as const) {
    const last = `select ${key} from mesh_na.${table} where length(${column}) > 4 order by ${key} desc limit 1`;
    const flip = `update mesh_na.${table} set ${column} = set_byte(${column}, 3, get_byte(${column}, 3) # 1)
      where ${key} = (${last})`;
    const [found] = await cluster.query(nameOf(url), `${flip} returning ${column} as value`);
    assert.ok(found !== undefined, `${table} has a row to damage`);
    const named = column === 'answers' ? 'answers' : table;
    const [sentence, ...more] = await damaged();
    assert.match(String(sentence), new RegExp(`^the row .* of table ${named} does not match`));
    assert.deepEqual(more, []);
    await cluster.query(nameOf(url), flip);
    assert.deepEqual(await damaged(), []);
  }
});

test('a page that PostgreSQL cannot read is damage of its table, and the other tables are read', async () => {
  const url = await migratedDatabase(cluster);
  const { folder: dataDir } = makeNetworkFolder();
  const na = await startTestAuthority({ dataDir, flags: { store: url } });
  await joinedNode(na);
  await na.stop();
  rmSync(dataDir, { recursive: true });
  const [found] = await cluster.query(
    nameOf(url),
    `select pg_relation_filepath('mesh_na.subjects') as path`,
  );
  await cluster.stop('SIGINT');
  const path = join(cluster.socketFolder, 'data', String(found?.path));
  writeFileSync(path, readFileSync(path).fill(0xff, 0, 24));
  await cluster.start();
  const [part, ...more] = await inParts(url, 1);
  assert.deepEqual(more, []);
  const [sentence, ...others] = part?.damaged ?? [];
  assert.match(String(sentence), /^table subjects cannot be read \(invalid page in block 0 of/);
  assert.deepEqual(others, []);
  assert.ok((part?.rows ?? 0) > 3);
});

test('a database that cannot be asked is no damage', async () => {
  const nowhere = parseStoreAddress('postgresql://mesh@127.0.0.1:1/mesh', {});
  await assert.rejects(scrubDatabase(nowhere, null, 1), /cannot be reached \(ECONNREFUSED\)$/);
});

async function inParts(url: string, parts: number): Promise<ScrubbedPart[]> {
  const read: ScrubbedPart[] = [];
  let from: ScrubPlace | null = null;
  do {
    const part: ScrubbedPart = await scrubDatabase(parseStoreAddress(url, {}), from, parts);
    read.push(part);
    from = part.next;
  } while (from !== null);
  return read;
}
