/** The command line for sovereign trust, end to end: two real authorities, and files between them. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { REAL_TIME, runProgram } from './support/child-server.ts';
import { networkFolder } from './support/folders.ts';

/** Runs a command with `--json` for one authority's operator; fails unless it ends as expected. */
async function run(na: TestAuthority, args: readonly string[], exit = 0) {
  const { code, stdout, stderr } = await runProgram([...args, '--json'], {
    MESH_URL: na.url,
    MESH_DATA_DIR: na.dataDir,
  });
  assert.equal(code, exit, `${args.join(' ')}: ${stderr}`);
  return stdout === '' ? JSON.parse(stderr) : JSON.parse(stdout);
}

test('treaty, attestation and feed travel between two sovereigns as files', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-cli-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = (name: string) => join(folder, name);
  await using betaFolder = networkFolder('beta');
  await using alpha = await startTestAuthority({ clock: REAL_TIME });
  await using beta = await startTestAuthority({ clock: REAL_TIME, dataDir: betaFolder.path });

  const [treaty, attestation] = await Promise.all([
    run(alpha, [
      ...['treaty', 'issue', 'beta', '--key', beta.audience],
      ...['--role', 'role:client', '--out', file('treaty.json')],
    ]),
    run(beta, [
      ...['attest', 'agent-7', '--role', 'role:client'],
      ...['--claims', '{"limit":1.0}', '--out', file('attestation.json')],
    ]),
  ]);
  assert.match(readFileSync(file('attestation.json'), 'utf8'), /"limit": ?1\.0/);

  const verify = ['verify-attestation', file('attestation.json'), '--treaty', file('treaty.json')];
  assert.equal((await run(alpha, verify)).reason, 'accepted');
  await run(beta, ['revoke-attestation', attestation.attestation_id, '--reason', 'left']);
  await run(beta, ['feed', 'export', '--out', file('feed.json')]);
  assert.equal((await run(alpha, ['feed', 'import', file('feed.json')])).accepted, true);
  assert.equal((await run(alpha, verify, 4)).reason, 'attestation_locally_revoked');

  const [again, path, none, graph, list, verdict] = await Promise.all([
    run(alpha, ['feed', 'import', file('feed.json')], 4),
    run(alpha, ['trust-path', 'alpha', 'beta']),
    run(alpha, ['trust-path', 'beta', 'alpha'], 4),
    run(alpha, ['graph']),
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

test('policies, the recognition policy and the agents of a node are kept from the command line', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-cli-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const node = ['--node-dir', join(folder, 'node')];

  await run(na, ['policy', 'publish', '--policy-id', 'first', '--port', '443']);
  await run(na, ['policy', 'publish', '--policy-id', 'second']);
  assert.equal((await run(na, ['policy', 'rollback', 'first'])).policy_id, 'first');
  const { versions } = await run(na, ['policy', 'history']);
  assert.deepEqual(
    versions.map(({ policy_id, active }: { policy_id: string; active: boolean }) => [
      policy_id,
      active,
    ]),
    [
      ['second', false],
      ['first', true],
    ],
  );
  await run(na, ['recognition-policy', 'show'], 4);

  const { token_id: token } = await run(na, ['invite']);
  const genesis = ['--genesis', join(na.dataDir, 'genesis.json')];
  await run(na, ['node', 'join', '--token', token, ...genesis, ...node]);
  await run(na, [
    ...['node', 'agent', 'register', '--agent-id', 'a-1', '--capability', 'llm:chat'],
    ...['--host', '192.0.2.7', '--port', '7448', ...node],
  ]);
  assert.equal((await run(na, ['agents', 'llm:chat'])).count, 1);
  await run(na, ['node', 'agent', 'unregister', ...node]);
  assert.equal((await run(na, ['agents'])).count, 0);
});
