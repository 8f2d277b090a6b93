/** The command line for sovereign trust, end to end: two real authorities that exchange files. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { scratchFolder } from './support/folders.ts';
import { sovereignPair } from './support/sovereign-pair.ts';

/** Runs a command with `--json` for one authority's operator; fails unless it ends as expected. */
async function run(na: TestAuthority, args: readonly string[], exit = 0) {
  const { code, stdout, stderr } = await runCommand([...args, '--json'], {
    MESH_URL: na.url,
    MESH_DATA_DIR: na.dataDir,
  });
  assert.equal(code, exit, `${args.join(' ')}: ${stderr}`);
  return stdout === '' ? JSON.parse(stderr) : JSON.parse(stdout);
}

test('treaty, attestation and feed travel between two sovereigns as files', async () => {
  await using folder = scratchFolder();
  const file = (name: string) => join(folder.path, name);
  await using pair = await sovereignPair(REAL_TIME);
  const { alpha, beta } = pair;

  const [treaty, attestation] = await Promise.all([
    run(alpha, [
      ...['treaty', 'issue', 'beta', '--key', beta.audience],
      ...['--role', 'role:client', '--out', file('treaty.json')],
    ]),
    run(beta, [
      ...['attestation', 'issue', 'agent-7', '--role', 'role:client'],
      ...['--claims', '{"limit":1.0}', '--out', file('attestation.json')],
    ]),
  ]);
  assert.match(readFileSync(file('attestation.json'), 'utf8'), /"limit": ?1\.0/);

  const verify = [
    'attestation',
    'verify',
    file('attestation.json'),
    '--treaty',
    file('treaty.json'),
  ];
  assert.equal((await run(alpha, verify)).reason, 'accepted');
  await run(beta, ['attestation', 'revoke', attestation.attestation_id, '--reason', 'left']);
  await run(beta, ['feed', 'export', '--out', file('feed.json')]);
  assert.equal((await run(alpha, ['feed', 'import', file('feed.json')])).accepted, true);
  assert.equal((await run(alpha, verify, 4)).reason, 'attestation_locally_revoked');

  const [again, path, none, graph, list, verdict] = await Promise.all([
    run(alpha, ['feed', 'import', file('feed.json')], 4),
    run(alpha, ['graph', 'trace', 'alpha', 'beta']),
    run(alpha, ['graph', 'trace', 'beta', 'alpha'], 4),
    run(alpha, ['graph', 'show']),
    run(alpha, ['treaty', 'list']),
    run(alpha, ['treaty', 'verify', file('treaty.json')]),
  ]);
  assert.equal(again.error.code, 'stale_sequence');
  assert.deepEqual([path.trusted, path.hop_count], [true, 1]);
  assert.deepEqual([none.trusted, none.reason], [false, 'no_active_treaty_path']);
  assert.equal(graph.recognition_edges.length, 1);
  assert.equal(list.recognition_treaties[0].treaty.treaty_id, treaty.treaty_id);
  assert.equal(verdict.accepted, true);
  assert.equal((await run(alpha, ['treaty', 'revoke', treaty.treaty_id])).status, 'revoked');
});

test('policies, the recognition policy and the agents of a node can be managed from the command line', async () => {
  await using folder = scratchFolder();
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const node = ['--node-dir', join(folder.path, 'node')];

  const initial = await run(na, ['policy', 'show']);
  const publish = ['policy', 'publish'];
  await run(na, publish, 2);
  await run(na, [...publish, '--port', '443'], 2);
  const service = ['--port', '443', '--service', 'llm'];
  const dry = await run(na, [...publish, ...service, '--dry-run']);
  assert.deepEqual([dry.active_policy_id, dry.policy.allowed_ports], [initial.policy_id, [443]]);
  assert.deepEqual(await run(na, ['policy', 'show']), initial);
  await run(na, [...publish, '--policy-id', 'first', ...service, '--yes']);
  const second = ['--policy-id', 'second', '--min-client-version', '0.2.0'];
  const changed = await run(na, [...publish, ...second, '--yes']);
  assert.deepEqual(
    [changed.min_client_version, changed.allowed_ports, changed.allowed_services, changed.routing],
    ['0.2.0', [443], ['llm'], initial.routing],
    'what is not named stays',
  );
  assert.equal((await run(na, ['policy', 'rollback', 'first'])).policy_id, 'first');
  const { versions } = await run(na, ['policy', 'list']);
  assert.deepEqual(
    versions.map(({ policy_id, active }: { policy_id: string; active: boolean }) => [
      policy_id,
      active,
    ]),
    [
      ['second', false],
      ['first', true],
      [initial.policy_id, false],
    ],
  );
  await run(na, ['recognition-policy', 'show'], 4);

  const { token_id: token } = await run(na, ['invite', 'create']);
  const genesis = ['--genesis', join(na.dataDir, 'genesis.json')];
  await run(na, ['node', 'join', '--token', token, ...genesis, ...node]);
  await run(na, [
    ...['agent', 'register', '--agent-id', 'a-1', '--capability', 'llm:chat'],
    ...['--host', '192.0.2.7', '--port', '7448', ...node],
  ]);
  assert.equal((await run(na, ['agent', 'list', 'llm:chat'])).count, 1);
  await run(na, ['agent', 'unregister', ...node]);
  assert.equal((await run(na, ['agent', 'list'])).count, 0);
});

test('the command line explains why one sovereign trusts another, what would happen if, and how it was', async () => {
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const start = na.clock.now();
  const key = ['--key', na.audience];
  const first = await run(na, ['treaty', 'issue', 'beta', ...key, '--role', 'role:client']);
  const unlimited = await run(na, ['treaty', 'issue', 'beta', ...key], 2);
  assert.match(unlimited.error.message, /--any-role/);
  const second = await run(na, ['treaty', 'issue', 'beta', ...key, '--any-role']);
  const ended = await run(na, ['treaty', 'issue', 'beta', ...key, '--any-role']);
  await run(na, ['treaty', 'revoke', ended.treaty_id, '--reason', 'ended']);
  const ids = [first.treaty_id, second.treaty_id].sort();
  const trace = ['graph', 'trace', 'alpha', 'beta'];
  const before = new Date(start - 1000).toISOString();
  const [explained, without, cut, unknown, future] = await Promise.all([
    run(na, ['graph', 'trace', 'alpha', 'beta', '--explain']),
    run(na, [...trace, '--without', ids[0]]),
    run(na, [...trace, '--without', ids[0], '--without', ids[1], '--explain'], 4),
    run(na, [...trace, '--as-of', before], 4),
    run(na, [...trace, '--as-of', '2999-01-01T00:00:00Z'], 4),
  ]);
  assert.deepEqual([explained.path[0].treaty_id, explained.explanation.cut.size], [ids[0], 2]);
  assert.deepEqual([without.path[0].treaty_id, without.without], [ids[1], [ids[0]]]);
  assert.deepEqual([cut.trusted, cut.explanation.candidate_count], [false, 3]);
  assert.deepEqual([unknown.reason, unknown.trusted], ['indeterminate', false]);
  assert.equal(future.error.code, 'invalid_as_of');

  const text = async (...args: string[]) =>
    (await runCommand([...trace, ...args], { MESH_URL: na.url })).stdout;
  const said = await text('--explain');
  assert.match(said, /^alpha trusts beta over 1 treaty\./);
  assert.match(said, /^Trusted until: \S+Z\. This path valid until: \S+Z\.$/m);
  assert.match(said, /^The trust ends only if 2 treaties end:$/m);
  assert.match(said, new RegExp(`${ids[1]}  on an equally short path, later in the order$`, 'm'));
  assert.match(said, new RegExp(`${ended.treaty_id}  revoked at \\S+Z: ended$`, 'm'));
  assert.match(said, new RegExp(`^Graph digest: ${explained.graph_digest}$`, 'm'));
  assert.match(
    await text('--as-of', before),
    /^Whether alpha trusted beta as of \S+Z is not known: the record begins at \S+Z\.$/m,
  );
});
