/** Names, labels and host names of nodes on the command line. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startTestAuthority } from './support/authority.ts';
import { MINUTE, REAL_TIME, SECOND, testClock } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { sharedScratch } from './support/folders.ts';
import { joinedNode, nodeRequest } from './support/requests.ts';

const na = await startTestAuthority({ clock: REAL_TIME });
after(() => na.stop());
const scratch = sharedScratch();

function run(...args: string[]) {
  return runCommand([...args, '--data-dir', na.dataDir], { MESH_URL: na.url });
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads members of an answer it then asserts on
async function answer(...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await run(...args, '--json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

/** Joins with the token, and returns the node's key. */
async function joined(name: string, token: string, ...args: string[]): Promise<string> {
  const tokenFile = join(scratch, `${name}.token`);
  writeFileSync(tokenFile, token);
  const place = ['--node-dir', join(scratch, name), '--url', na.url];
  const genesis = join(na.dataDir, 'genesis.json');
  const join_ = ['node', 'join', ...place, '--genesis', genesis, '--token-file', tokenFile];
  const { code, stderr } = await runCommand([...join_, ...args]);
  assert.equal(code, 0, stderr);
  return JSON.parse(readFileSync(join(scratch, name, 'certificate.json'), 'utf8')).node_public_key;
}

test('a node is meant by its name, unless several have it', async () => {
  const token = async () =>
    (await answer('invite', 'create', '--name', 'edge-1')).token_id as string;
  const key = await joined('edge', await token());
  const shown = await answer('certificate', 'show', 'edge-1');
  assert.equal(shown.node_public_key, key);
  const tried = await answer('certificate', 'revoke', 'edge-1', '--dry-run');
  assert.equal(tried.certificates[0].cert_id, shown.cert_id);
  const set = await answer('node', 'set', 'edge-1', '--label', 'rack=3');
  assert.deepEqual([set.node_public_key, set.labels], [key, { rack: '3' }]);
  const other = await joined('edge-too', await token());
  const several = await run('node', 'set', 'edge-1', '--no-name');
  assert.equal(several.code, 4);
  for (const each of [key, other]) assert.ok(several.stderr.includes(each), several.stderr);
  const none = await run('certificate', 'revoke', 'edge-2');
  assert.equal(none.code, 4);
  assert.match(none.stderr, /No certificate begins with edge-2, and no node has this name/);
});

test('nodes get names from their invites, are renamed, and are found', async () => {
  const create = ['invite', 'create', '--count', '2', '--name', 'web-{n}'];
  const created = await run(...create, '--label', 'env=prod', '--label', 'zone=eu=1');
  const tokens = created.stdout.trim().split('\n');
  assert.match(created.stderr, /they name their nodes web-1 to web-2\.\n/);
  const listed = await run('invite', 'list', '--name', 'web-*');
  assert.match(listed.stdout, /web-1 .*env=prod,zone=eu=1/);
  const first = await joined('one', tokens[0] ?? '');
  const second = await joined('two', tokens[1] ?? '', '--hostname', 'host-2');
  const other = (await answer('invite', 'create')).token_id;
  const third = await joined('three', other, '--hostname', 'web-1');
  const silent = (await answer('invite', 'create')).token_id;
  const fourth = await joined('four', silent, '--no-hostname');

  const rows = async (...filters: string[]) => {
    const { certificates } = await answer('certificate', 'list', ...filters);
    return certificates.map(({ node_public_key }: { node_public_key: string }) => node_public_key);
  };
  assert.deepEqual(await rows('--name', 'web-1'), [first]);
  assert.deepEqual(await rows('--hostname', 'web-1'), [third]);
  assert.deepEqual(await rows('--label', 'zone=eu=1', '--name', '*2'), [second]);
  const { certificates } = await answer('certificate', 'list', '--key', first);
  assert.equal(certificates[0].hostname, hostname());
  const [{ hostname: none }] = (await answer('certificate', 'list', '--key', fourth)).certificates;
  assert.equal(none, undefined);

  const nodes = (await run('node', 'list', '--label', 'env')).stdout;
  assert.match(nodes, /web-1 /);
  assert.doesNotMatch(nodes, /\(web-1\)/);
  assert.match(
    (await run('node', 'list')).stdout,
    /\(web-1\)/,
    'a reported name is in parentheses',
  );

  const set = ['node', 'set', second.slice(0, 12)];
  const changed = await answer(...set, '--name', 'db 1', '--label', 'a=b', '--remove-label', 'env');
  assert.deepEqual(changed, {
    node_public_key: second,
    name: 'db 1',
    labels: { a: 'b', zone: 'eu=1' },
    hostname: 'host-2',
  });
  const { cert_id } = (await answer('certificate', 'list', '--key', second)).certificates[0];
  const { stdout } = await run('certificate', 'show', cert_id);
  assert.match(
    stdout,
    /^name {10}db 1\nlabels {8}a=b, zone=eu=1\nhost name {5}host-2 \(as reported\)$/m,
  );
  for (const given of ['db 1', second, second.slice(0, 12)]) {
    const listed = await answer('certificate', 'list', '--key', given);
    assert.deepEqual([listed.count, listed.certificates[0].cert_id], [1, cert_id]);
    const doomed = await answer('certificate', 'revoke', '--key', given, '--dry-run');
    assert.equal(doomed.certificates[0].cert_id, cert_id);
  }
  assert.equal((await answer(...set, '--no-name')).name, undefined);
  const entries = await answer('audit', 'show', '--type', 'node_described', '--subject', 'db 1');
  assert.equal(entries.entries.length, 2, 'also that the name was removed');

  const doomed = ['certificate', 'revoke', '--name', 'web-*', '--label', 'env=prod'];
  assert.equal((await answer(...doomed, '--dry-run')).count, 1);
  assert.equal((await answer(...doomed, '--yes-revoke', '1')).count, 1);
  assert.deepEqual(await rows('--status', 'revoked'), [first]);
});

test('a node is shown, named, revoked and asked about by its name', async () => {
  const token = (await answer('invite', 'create', '--name', 'db-7')).token_id;
  const key = await joined('seven', token);
  const shown = await run('node', 'show', 'db-7');
  assert.ok(shown.stdout.startsWith(`key           ${key}\nname          db-7\n`), shown.stdout);
  assert.match(shown.stdout, /\nstatus {8}joined\nlast contact {2}\S+ from \S+: joined\n/);
  const { certificates, status } = await answer('node', 'show', key.slice(0, 8));
  assert.deepEqual([certificates.length, status], [1, 'active']);

  const again = await run('invite', 'create', '--name', 'db-7');
  assert.match(again.stderr, /^mesh-na: This name belongs to other nodes, too: db-7;/m);
  const other = await joined('eight', (await answer('invite', 'create')).token_id);
  const named = await run('node', 'set', other, '--name', 'db-7');
  assert.match(named.stderr, /This name belongs to other nodes, too: db-7;/);
  for (const command of ['show', 'revoke']) {
    const { code, stderr } = await run('node', command, 'db-7');
    assert.equal(code, 4);
    assert.match(stderr, /db-7 is ambiguous, so nothing was done: it matches /);
  }
  const renamed = await run('node', 'set', other, '--name', 'db-8');
  assert.equal(renamed.stderr, '');

  const revoke = ['node', 'revoke', 'db-8'];
  assert.match((await run(...revoke, '--dry-run')).stdout, /1 certificate would be revoked\./);
  const revoked = await run(...revoke, '--reason', 'superseded');
  assert.match(revoked.stdout, /^1 certificate of db-8, whose key is \S+, revoked\.\n/);
  const after = await run('node', 'show', 'db-8');
  assert.match(after.stdout, /\nname {10}db-8\n(?:.+\n)*status {8}revoked\n/, 'it is not unknown');
  const [{ cert_id }] = (await answer('node', 'show', other)).certificates;
  const byCertificate = await run('node', 'show', cert_id.slice(0, 8));
  assert.equal(byCertificate.stdout, after.stdout);
  const types = (log: { event_type?: string; entry?: { event_type: string } }[]) =>
    log.map(({ event_type, entry }) => event_type ?? entry?.event_type);
  const happened = [
    'certificate_issued',
    'node_described',
    'node_described',
    'certificate_revoked',
  ];
  for (const subject of ['db-8', other]) {
    const { entries } = await answer('audit', 'show', '--subject', subject);
    assert.deepEqual(types(entries), happened);
    const { events } = await answer('events', '--subject', subject);
    assert.deepEqual(types(events), happened);
  }
});

test('nodes are listed the worst first, with what they said last, and --active without the silent', async () => {
  // The commands sign with the time of this machine.
  const clock = testClock(Date.now() - 10 * MINUTE);
  await using na = await startTestAuthority({ clock });
  const nodes: Awaited<ReturnType<typeof joinedNode>>[] = [];
  for (const name of ['silent-2', 'silent-1', 'well-10', 'well-2', 'unwell', 'never']) {
    nodes.push(await joinedNode(na, { name }));
    na.clock.advance(SECOND);
  }
  const report = async (index: number, status: string) => {
    const { key, certId } = nodes[index] ?? assert.fail();
    await nodeRequest(na, '/heartbeat', key, { cert_id: certId, status });
    na.clock.advance(SECOND);
  };
  for (const index of [0, 1]) await report(index, 'busy');
  na.clock.advance(10 * MINUTE);
  for (const index of [2, 3]) await report(index, 'healthy');
  await report(4, 'degraded: disk');
  const place = ['--data-dir', na.dataDir, '--url', na.url];
  const listed = async (...args: string[]) => {
    const { stdout } = await runCommand(['node', 'list', ...args, ...place, '--json']);
    return (JSON.parse(stdout).nodes as { name: string }[]).map(({ name }) => name);
  };
  const active = ['unwell', 'well-2', 'well-10'];
  // One that has never reported has not fallen silent, and is not among the counts either.
  assert.deepEqual(await listed(), ['silent-2', 'silent-1', 'unwell', 'never', ...active.slice(1)]);
  assert.deepEqual(await listed('--active'), active);
  assert.deepEqual(await listed('--limit', '1'), ['silent-2']);
  const { stdout } = await runCommand(['node', 'list', ...place]);
  assert.match(stdout, / silent-2 .* silent .* busy\n.* unwell .* degraded: disk .*Z\n/s);
  assert.match(stdout, / never .* joined .*Z\n/);
  const status = await runCommand(['status', ...place]);
  assert.match(status.stdout, /\nnodes {5}5: healthy 2, unwell 1, silent 2;/);
});

for (const [args, message] of [
  [['node', 'set', 'A'.repeat(8)], /Give a --name, a --label or a --remove-label/],
  [['node', 'set', 'A'.repeat(8), '--name', ' x'], /1 to 64 printable characters/],
  [['node', 'set', 'A'.repeat(8), '--label', 'env'], /A label is key=value/],
  [['node', 'set', 'A'.repeat(8), '--remove-label', 'a=b'], /The key of a label/],
  [['invite', 'create', '--label', 'E=x'], /A label is key=value/],
  [['node', 'list', '--label', 'E'], /A label is key=value/],
  [['node', 'join', '--hostname', 'a b'], /1 to 253 letters, digits/],
] as const) {
  test(`${args.join(' ')} is refused before any request`, async () => {
    const { code, stderr } = await run(...args);
    assert.equal(code, 2);
    assert.match(stderr, message);
  });
}
