/** `mesh-na node run` as a process, in real time. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME, runProgram } from './support/child-server.ts';
import { LOADER } from './support/project.ts';
import { get, invite, operate } from './support/requests.ts';

const na = await startTestAuthority({
  clock: REAL_TIME,
  environment: { MESH_ACTIVE_NODE_WINDOW_SECONDS: '3' },
});
const scratch = mkdtempSync(join(tmpdir(), 'mesh-agent-'));
after(async () => {
  await na[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true });
});
const rootKey: string = (await get(na, '/genesis')).body.root_public_key;
const tokenFile = join(scratch, 'token');
const nodeDir = join(scratch, 'node');

function run(further: readonly string[] = [], onSpawn?: (process: ChildProcess) => void) {
  return runProgram(
    ['node', 'run', '--node-dir', nodeDir, ...further],
    { MESH_URL: na.url, NODE_OPTIONS: FRUGAL },
    onSpawn,
  );
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await pause(50);
}

/** As docs/operating.md recommends it: otherwise the garbage of the start stays for long. */
const FRUGAL = '--max-semi-space-size=1';

/** What the process has for itself: the file pages of Node.js are those of every such process. */
function assertSmall(child: ChildProcess | null): void {
  const { pid } = child ?? {};
  const [, kilobytes] =
    /^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  // What compiles the sources takes more than the program itself.
  if (LOADER.length === 0) assert.ok(Number(kilobytes) < 60_000, `${kilobytes} kB`);
  assert.doesNotMatch(readFileSync(`/proc/${pid}/maps`, 'utf8'), /\.node$/m);
}

function stateIn(folder: string) {
  const file = join(folder, 'agent.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { last_heartbeat: null };
}

test('a node joins, follows its network, is stopped, started again, and ends when it is revoked', async () => {
  writeFileSync(tokenFile, await invite(na));
  const log = join(scratch, 'changes');
  const onChange = `echo >> ${log}`;
  let child: ChildProcess | null = null;
  const first = run(
    ['--root-key', rootKey, '--token-file', tokenFile, '--on-change', onChange],
    (process) => (child = process),
  );
  await until(() => stateIn(nodeDir).last_heartbeat !== null);
  await until(() => existsSync(log) && readFileSync(log, 'utf8').includes('certificate'));
  assertSmall(child);
  (child as ChildProcess | null)?.kill('SIGTERM');
  const stopped = await first;
  assert.equal(stopped.code, 0, stopped.stderr);
  assert.match(stopped.stdout, /^Stopped\.\n$/);
  const names = readFileSync(log, 'utf8').trim().split(/\s+/);
  assert.deepEqual(names.toSorted(), ['certificate', 'crl', 'genesis', 'policy']);

  rmSync(tokenFile);
  const second = run();
  const { cert_id } = stateIn(nodeDir);
  await operate(na, '/admin/revoke', { cert_id });
  const ended = await second;
  assert.equal(ended.code, 4, ended.stderr);
  assert.match(ended.stderr, /on the revocation list of the network/);
  const status = await runProgram(['node', 'status', '--node-dir', nodeDir, '--offline', '--json']);
  const { agent, revoked } = JSON.parse(status.stdout);
  assert.equal(revoked, true);
  assert.equal(agent.ended.code, 'certificate_revoked');
  assert.equal(agent.cert_id, cert_id);
});

test('what a node cannot start with is refused in one sentence', async () => {
  const damaged = join(scratch, 'damaged');
  cpSync(nodeDir, damaged, { recursive: true });
  writeFileSync(join(damaged, 'policy.json'), '{"policy_id"');
  const file = join(scratch, 'file');
  writeFileSync(file, '');
  const other = Buffer.alloc(32, 1).toString('base64');
  const cases: [folder: string, args: string[], code: number, message: RegExp][] = [
    [nodeDir, ['--root-key', other], 3, /is of root key .*, not /],
    [damaged, [], 3, /The policy that is held is damaged/],
    [join(scratch, 'new'), [], 2, /give its --root-key/],
    [join(file, 'node'), ['--root-key', rootKey], 3, /file\/node/],
    [join(scratch, 'empty'), ['--root-key', rootKey], 4, /neither a certificate nor an invite/],
  ];
  const ends = cases.map(([folder, args]) =>
    runProgram(['node', 'run', '--node-dir', folder, ...args], { MESH_URL: na.url }),
  );
  for (const [index, { code, stderr }] of (await Promise.all(ends)).entries()) {
    const [folder, , expected, message] = cases[index] ?? assert.fail();
    assert.equal(code, expected, `${folder}: ${stderr}`);
    assert.match(stderr, /^mesh-na: [^\n]*\n$/);
    assert.match(stderr, message);
  }
});
