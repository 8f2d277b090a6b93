/** The service on PostgreSQL: started, stopped, killed and replaced, and restored when its database is lost. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { HISTORY, playAndRestore } from './restoring/histories.ts';
import { routesWith } from './restoring/places.ts';
import { assertEnded, failIn, invite, mayTrace } from './support/broken-disk.ts';
import { NO_LIMITS, runProgram, startChildServer } from './support/child-server.ts';
import { networkFolder, ownFolder, ownNetwork } from './support/folders.ts';
import { startCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
import {
  get,
  heartbeat,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
} from './support/requests.ts';
import { until } from './support/until.ts';

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

test('the service keeps its state in the database that --store names, through stops and kills', async () => {
  const folder = ownNetwork();
  const url = await migratedByCommand();
  const environment = NO_LIMITS;
  const args = ['--store', url];
  const first = await startChildServer(folder, { environment, args });
  const ready = await get(first.na, '/readyz');
  assert.deepEqual((ready.body as { database: unknown }).database, {
    backend: 'postgresql',
    writable: true,
    schema_version: 7,
  });
  assert.equal(outcome(await operate(first.na, '/admin/invite')), '200');
  const stopped = await first.end('SIGTERM');
  assert.equal(stopped.code, 0);
  const log = stopped.stdout + stopped.stderr;
  assert.equal(withoutLogLines(stopped.stderr), '', 'no library says anything of its own');
  assert.match(log, /INFO mesh\.store The state is in PostgreSQL \d+/);
  assert.match(log, /An acknowledged change is on the disk of the one database server/);
  assert.ok(!log.includes(cluster.password) && !log.includes(encodeURIComponent(cluster.password)));
  assert.match((await status(url)).text, /Active: none; pid \d+ on \S+ has stopped/);

  const second = await startChildServer(folder, { environment, args });
  assert.equal(outcome(await operate(second.na, '/admin/invite')), '200');
  const held = await status(url);
  assert.match(
    held.text,
    /Active: pid \d+ on \S+, in term \d+; its lease lasts for \d\.\d s unless/,
  );
  await second.end('SIGKILL');
  const runOut = 'update mesh_na.writer_lease set expires_at = clock_timestamp()';
  await cluster.query(databaseOf(url), runOut);

  await using third = await startChildServer(folder, { environment, args });
  const { rows, revision, lease } = (await status(url)).json;
  assert.equal(lease.term, 3);
  assert.ok(rows.audit > 0 && revision >= held.json.revision, 'nothing acknowledged is lost');
  assert.equal(outcome(await operate(third.na, '/admin/invite')), '200');
  const place = ['--data-dir', folder, '--store', url];
  const doctor = await runProgram(['doctor', ...place, '--deep', '--all']);
  assert.equal(doctor.code, 0, doctor.stdout + doctor.stderr);
  for (const line of [
    /^ok {7}holder +pid \d+ on \S+ writes the state$/m,
    /^ok {7}database +\S+, synchronous_commit=on$/m,
    /^ok {7}store +Revision \d+ of epoch \d+ \(postgresql, schema version \d+\)$/m,
    /^ok {7}last_stop +A process is running$/m,
    /^ok {7}rows /m,
  ]) {
    assert.match(doctor.stdout, line);
  }
});

test('the audit log in a database is shown, exported and verified while the service runs', async () => {
  await using folder = await networkFolder('alpha');
  const url = await migratedByCommand();
  const settings = join(folder.path, 'mesh-na.json');
  const chosen = JSON.parse(readFileSync(settings, 'utf8'));
  writeFileSync(settings, JSON.stringify({ ...chosen, store: url }));
  // An empty value leaves the choice to the file, even if tests use other stores.
  const environment = { ...NO_LIMITS, MESH_STORE: '' };
  await using server = await startChildServer(folder.path, { environment });
  for (let i = 0; i < 3; i += 1)
    assert.equal(outcome(await operate(server.na, '/admin/invite')), '200');

  const inFolder = ['--data-dir', folder.path];
  const saved = join(folder.path, 'audit.ndjson');
  const [shown, exported, written, verified, named] = await Promise.all([
    runProgram(['audit', 'show', '--store', url, '--type', 'invite_created']),
    runProgram(['audit', 'export', ...inFolder]),
    runProgram(['audit', 'export', ...inFolder, '--out', saved]),
    runProgram(['audit', 'verify', ...inFolder, '--json']),
    runProgram(['audit', 'verify'], { MESH_STORE: url }),
  ]);
  assert.deepEqual({ ...shown, stdout: '' }, { code: 0, signal: null, stdout: '', stderr: '' });
  assert.equal(shown.stdout.match(/invite_created {2}ops-privileged/g)?.length, 3, shown.stdout);
  const entries = exported.stdout.trimEnd().split('\n');
  assert.equal(entries.length, 3, exported.stderr);
  assert.equal(written.code, 0, written.stderr);
  assert.equal(readFileSync(saved, 'utf8'), exported.stdout);
  const head = JSON.parse(entries[2] ?? '').hash;
  assert.deepEqual(JSON.parse(verified.stdout), { valid: true, length: 3, head });
  assert.equal(named.stdout, `The audit log is intact: 3 entries, head ${head}\n`);

  await cluster.query(databaseOf(url), 'delete from mesh_na.audit where last_entry = 3');
  const cut = await runProgram(['audit', 'verify', ...inFolder]);
  assert.equal(cut.code, 3);
  assert.match(
    cut.stderr,
    /^mesh-na: The stored state is damaged: table audit holds 2 entries where 3 /,
  );
});

test('a service whose lease was taken ends with 1 by itself', async () => {
  await using folder = await networkFolder('alpha');
  const url = await migratedByCommand();
  const environment = { ...NO_LIMITS, MESH_STORE: url };
  const server = await startChildServer(folder.path, { environment });
  await cluster.query(databaseOf(url), 'update mesh_na.writer_lease set epoch = epoch + 1');
  const { code, stderr } = await server.ended;
  assert.equal(code, 1);
  assert.match(stderr, /CRITICAL .*ownership: .*Another process has taken over the database/);
});

test('a service that loses the database during a command never answers it, and ends with 1', async () => {
  await using folder = await networkFolder('alpha');
  const url = await migratedByCommand();
  const server = await startChildServer(folder.path, {
    environment: { ...NO_LIMITS, MESH_STORE: url },
  });
  await cluster.query(
    databaseOf(url),
    `create function mesh_na.cut() returns trigger language plpgsql as $$
       begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
     create trigger cut before insert on mesh_na.audit execute function mesh_na.cut()`,
  );
  await assert.rejects(operate(server.na, '/admin/invite'), TypeError);
  const { code, stderr } = await server.ended;
  assert.equal(code, 1);
  assert.match(stderr, /CRITICAL mesh\.process Ending after a failure: commit: /);
});

test('a service whose database cannot write ends with the reason, and loses nothing that was acknowledged', async (t) => {
  if (!mayTrace()) return t.skip('this user may not trace processes');
  await using folder = await networkFolder('alpha');
  const url = await migratedByCommand();
  const ask = (statement: string) => cluster.query(databaseOf(url), statement);
  const tokens: string[] = [];
  for (const [table, call, error, cause] of [
    ['subjects', 'pwrite64', 'ENOSPC', /commit: error: could not extend file .*: No space left on/],
    // The log of the database cannot be flushed, so the whole database server restarts.
    [null, 'fdatasync', 'EIO', /commit: error: could not fdatasync file .*: Input\/output error/],
  ] as const) {
    await using server = await startChildServer(folder.path, {
      environment: { ...NO_LIMITS, MESH_STORE: url },
    });
    for (const invite_token of tokens.splice(0)) {
      assert.equal(
        outcome(await nodeRequest(server.na, '/join', newKey(), { invite_token })),
        '200',
      );
    }
    tokens.push(...(await invite(server, 1)));
    const [writer] = await ask(`select pid from pg_stat_activity
      where datname = current_database() and query ~ 'commit_units|store_liveness|nonces'`);
    await failIn(Number(writer?.pid), join(cluster.socketFolder, 'data'), {
      file: table === null ? await logFile() : await fileOf(table),
      call,
      error,
      nth: 1,
    });
    tokens.push(...(await invite(server)));
    await assertEnded(server, cause);
    await until(() =>
      ask('select').then(
        () => true,
        () => false,
      ),
    );
  }
  const verified = await runProgram(['store', 'verify', '--store', url]);
  assert.equal(verified.code, 0, verified.stderr);

  async function fileOf(table: string): Promise<string> {
    const [found] = await ask(`select pg_relation_filepath('mesh_na.${table}') as path`);
    return String(found?.path);
  }

  async function logFile(): Promise<string> {
    const [found] = await ask('select pg_walfile_name(pg_current_wal_lsn()) as name');
    return join('pg_wal', String(found?.name));
  }
});

test('a start on a database without tables ends with 3, and status reports that there are none', async () => {
  await using folder = await networkFolder('alpha');
  const url = await cluster.createDatabase();
  const args = ['serve', '--data-dir', folder.path, '--port', '0', '--store', url];
  const refused = await runProgram(args);
  assert.equal(refused.code, 3);
  assert.match(
    refused.stderr,
    /^mesh-na: The database at \S+ has no tables of an authority; mesh-na store migrate, with the same --store, makes them\n$/,
  );
  const { text, json } = await status(url);
  assert.match(text, /Schema version: no tables/);
  assert.deepEqual([json.schema_version, json.rows], [0, null]);
});

test('a database that cannot be reached ends the commands of the store with 3', async () => {
  const url = 'postgresql://mesh:s3cret@127.0.0.1:1/mesh';
  for (const verb of ['migrate', 'status']) {
    const { code, stderr } = await runProgram(['store', verb, '--store', url]);
    assert.equal(code, 3);
    assert.equal(
      stderr,
      'mesh-na: The database at 127.0.0.1:1/mesh cannot be reached (ECONNREFUSED)\n',
    );
  }
});

function withoutLogLines(text: string): string {
  return text.replace(/^\S+ (?:DEBUG|INFO|WARNING) .*\n/gm, '');
}

async function migratedByCommand(): Promise<string> {
  const url = await cluster.createDatabase();
  const made = await runProgram(['store', 'migrate', '--store', url]);
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /^The tables at \S+ now have schema version 7\.\n$/);
  return url;
}

interface Status {
  readonly schema_version: number;
  readonly revision: number;
  readonly rows: { readonly audit: number };
  readonly lease: { readonly term: number };
}

async function status(url: string): Promise<{ text: string; json: Status }> {
  const command = ['store', 'status', '--store', url];
  const [text, json] = await Promise.all([runProgram(command), runProgram([...command, '--json'])]);
  assert.deepEqual([text.code, json.code], [0, 0]);
  return { text: text.stdout, json: JSON.parse(json.stdout) as Status };
}

function databaseOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

// A lost database: the program restores it into another one, with every revocation made after the backup.

const routes = await routesWith(cluster);
const scratch = ownFolder();
after(() => cluster[Symbol.asyncDispose]());

test('everything revoked after the backup stays revoked, and the lost database is not served again', async () => {
  await using folder = await networkFolder('alpha');
  const [lost, fresh] = [await migratedDatabase(cluster), await migratedDatabase(cluster)];
  const [backup, crl, head] = ['mesh.backup', 'crl.json', 'head'].map((name) =>
    join(scratch, name),
  );
  assert.ok(backup !== undefined && crl !== undefined && head !== undefined);
  const on = (store: string) => ({ ...NO_LIMITS, MESH_STORE: store, MESH_HEAD_FILE: head });
  const inFolder = ['--data-dir', folder.path];

  const first = await startChildServer(folder.path, {
    environment: on(lost),
    args: ['--new-head'],
  });
  const [kept, stolen] = [await joinedNode(first.na), await joinedNode(first.na)];
  const made = await runProgram(['backup', 'create', ...inFolder, '--to', backup], on(lost));
  assert.equal(made.code, 0, made.stderr);
  const late = await joinedNode(first.na);
  for (const { certId } of [stolen, late]) {
    const revoked = await operate(first.na, '/admin/revoke', { cert_id: certId });
    assert.equal(outcome(revoked), '200');
  }
  writeFileSync(crl, (await get(first.na, '/crl')).text);
  assert.equal((await first.end('SIGTERM')).code, 0);

  const evidence = ['--backup', backup, '--crl', crl, '--head', head];
  const plan = await runProgram(['restore', 'plan', ...evidence, '--json']);
  const { loss, replayed_certificates, lost_certificates, unknown } = JSON.parse(plan.stdout);
  assert.deepEqual([replayed_certificates, lost_certificates], [[stolen.certId], [late.certId]]);
  assert.deepEqual(unknown, [], 'the head names the newest lists');
  assert.match(loss, /^audit=\d+,certificates=1,attestations=0$/);

  // Afterward, requests are refused for as long as the clock tolerance.
  const apply = ['restore', 'apply', ...evidence, ...inFolder, '--clock-tolerance', '1'];
  const refused = await runProgram(apply, on(fresh));
  assert.equal(refused.code, 4);
  assert.ok(refused.stderr.includes(`--accept-loss ${loss}`), refused.stderr);
  const restored = await runProgram([...apply, '--accept-loss', loss], on(fresh));
  assert.equal(restored.code, 0, restored.stderr);
  assert.match(
    restored.stdout,
    /mesh-na serve --data-dir \S+ --head-file \S+ --new-head, with the same --store\n$/,
  );

  const args = ['--new-head'];
  const second = await startChildServer(folder.path, { environment: on(fresh), args });
  assert.equal(outcome(await heartbeat(second.na, kept)), '200');
  for (const node of [stolen, late]) {
    assert.notEqual(outcome(await heartbeat(second.na, node)), '200');
  }
  const { body } = await get(second.na, '/crl');
  const listed = body.revoked_certificates.map(
    ({ certificate_id }: { certificate_id: string }) => certificate_id,
  );
  assert.deepEqual(listed.toSorted(), [stolen.certId, late.certId].toSorted());
  assert.ok(body.sequence > 1_000_000);
  assert.equal((await second.end('SIGTERM')).code, 0);

  const again = await runProgram(['serve', '--data-dir', folder.path, '--port', '0'], on(lost));
  assert.equal(again.code, 3);
  assert.match(again.stderr, /The state is older than the head in /);
});

const HISTORIES = 3;

for (const route of routes) {
  test(`${HISTORIES} random histories of ${route.name}, are restored without un-revoking anything`, () =>
    fc.assert(
      fc.asyncProperty(HISTORY, (history) => playAndRestore(history, route)),
      { numRuns: HISTORIES },
    ));
}
