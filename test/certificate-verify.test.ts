/** How one node checks another: `certificate verify`, and what docs/peers.md shows in other languages. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { buildSync } from 'esbuild';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { readDocument } from './support/documents.ts';
import { PROJECT_PATH } from './support/project.ts';
import { operate } from './support/requests.ts';
import { filesOf } from './support/transcripts.ts';

const na = await startTestAuthority({ clock: REAL_TIME });
after(() => na.stop());
const scratch = mkdtempSync(join(tmpdir(), 'mesh-na-peers-'));
after(() => rmSync(scratch, { recursive: true, force: true }));
const [own, peer] = [join(scratch, 'mesh-node'), join(scratch, 'peer.json')];

async function enrolled(folder: string): Promise<string> {
  const { body } = await operate(na, '/admin/invite', { roles: ['role:client'] });
  const pin = ['--genesis', join(na.dataDir, 'genesis.json')];
  const token = ['--token', body.token_id, '--node-dir', folder, '--url', na.url];
  const { code, stderr } = await runCommand(['node', 'join', ...token, ...pin]);
  assert.equal(code, 0, stderr);
  return JSON.parse(readFileSync(join(folder, 'certificate.json'), 'utf8')).cert_id;
}

await enrolled(own);
const peerId = await enrolled(join(scratch, 'mesh-peer'));
cpSync(join(scratch, 'mesh-peer', 'certificate.json'), peer);

async function verify(...more: string[]) {
  const args = ['certificate', 'verify', peer, '--node-dir', own, '--url', na.url, ...more];
  const { code, stdout, stderr } = await runCommand([...args, '--json']);
  const { valid, reason, cert_id } = stdout === '' ? ({} as never) : JSON.parse(stdout);
  return { code, valid, reason, cert_id, stderr };
}

const CLIENT = join(PROJECT_PATH, 'src', 'client', 'offline.ts');
const PROGRAMS: readonly (readonly [file: string, program: string])[] = [
  ['check.ts', process.execPath],
  ['check.sh', 'bash'],
  // Its library for Ed25519 is not part of Python.
  ...(spawnSync('python3', ['-c', 'import cryptography']).status === 0
    ? [['check.py', 'python3'] as const]
    : []),
];

const files = new Map(filesOf(readDocument('docs/peers.md')).map(({ name, text }) => [name, text]));
for (const [name] of PROGRAMS) writeFileSync(join(scratch, name), files.get(name) ?? '');
buildSync({
  entryPoints: [join(scratch, 'check.ts')],
  outfile: join(scratch, 'check.mjs'),
  bundle: true,
  platform: 'node',
  format: 'esm',
  banner: {
    js: "import { createRequire } from 'node:module'; const require = createRequire('/');",
  },
  alias: { 'mesh-network-authority-client': CLIENT },
});

/** Whether each example of the document accepts the certificate. */
function examples(): (readonly [name: string, isAccepted: boolean])[] {
  return PROGRAMS.map(([name, program]) => {
    const path = join(scratch, name.replace('.ts', '.mjs'));
    const { status, stderr } = spawnSync(program, [path], { cwd: scratch });
    return [`${name}: ${stderr}`, files.has(name) && status === 0];
  });
}

suite('the certificate of another node', { concurrency: false }, () => {
  test('is valid for its key and role, online and offline', async () => {
    for (const more of [[], ['--offline'], ['--role', 'role:client']]) {
      const { code, valid, cert_id, stderr } = await verify(...more);
      assert.deepEqual([code, valid, cert_id], [0, true, peerId], stderr);
    }
    const files = ['--genesis', join(own, 'genesis.json'), '--crl', join(own, 'crl.json')];
    const elsewhere = ['--node-dir', join(scratch, 'none'), '--offline', ...files];
    const { stdout } = await runCommand(['certificate', 'verify', peer, ...elsewhere]);
    assert.match(stdout, new RegExp(`^Valid: certificate ${peerId} of \\S+, role:client\\.`));
  });

  test('is refused for another key, another role and an altered member', async () => {
    const other = JSON.parse(readFileSync(join(own, 'certificate.json'), 'utf8')).node_public_key;
    assert.deepEqual(reasonOf(await verify('--key', other)), [4, 'wrong_key']);
    assert.deepEqual(reasonOf(await verify('--role', 'role:anchor')), [4, 'role_missing']);
    const text = readFileSync(peer, 'utf8');
    writeFileSync(peer, text.replace('role:client', 'role:anchor'));
    assert.deepEqual(reasonOf(await verify('--offline')), [4, 'invalid_signature']);
    writeFileSync(peer, '{}');
    const { code, stderr } = await verify('--offline');
    assert.deepEqual([code, /the certificate of a node/.test(stderr)], [3, true]);
    writeFileSync(peer, text);
  });

  test('is accepted and, once revoked, refused by the document’s examples, too', async () => {
    for (const [name, isAccepted] of examples()) assert.ok(isAccepted, name);
    await operate(na, '/admin/revoke', { cert_id: peerId, reason: 'key_compromise' });
    assert.equal((await verify('--offline')).code, 0, 'not known yet');
    assert.deepEqual(reasonOf(await verify()), [4, 'revoked']);
    assert.deepEqual(reasonOf(await verify('--offline')), [4, 'revoked']);
    for (const [name, isAccepted] of examples()) assert.ok(!isAccepted, name);
  });
});

function reasonOf({ code, reason }: Awaited<ReturnType<typeof verify>>) {
  return [code, reason];
}
