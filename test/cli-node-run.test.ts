/** `mesh-na node run` as a process, in real time. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startTestAuthority } from './support/authority.ts';
import { runProgram, runProgramBehind } from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { LOADER } from './support/project.ts';
import { get, invite, operate } from './support/requests.ts';
import { sharedScratch } from './support/shared-scratch.ts';
import { type SmallDisk, smallDisk } from './support/small-disk.ts';
import { until } from './support/until.ts';

const na = await startTestAuthority({
  clock: REAL_TIME,
  environment: { MESH_ACTIVE_NODE_WINDOW_SECONDS: '3' },
});
after(() => na[Symbol.asyncDispose]());
const scratch = sharedScratch();
const rootKey: string = (await get(na, '/genesis')).body.root_public_key;
/** Further lines are indented and say how to fix the problem. */
const ONE_SENTENCE = /^mesh-na: [^\n]+\n(?: {2}[^\n]+\n)*$/;
const tokenFile = join(scratch, 'token');
const nodeDir = join(scratch, 'node');

/** As docs/install.md recommends: otherwise garbage from startup stays in memory for a long time. */
const FRUGAL = '--max-semi-space-size=1';

/**
 * The private memory of the process, because the file pages of Node.js are shared among all its processes. On a busy
 * machine, the garbage of the start is collected later.
 */
async function becomesSmall(child: ChildProcess | null): Promise<void> {
  const { pid } = child ?? {};
  const kilobytes = () =>
    Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  // Compiling the sources takes more memory than the program itself.
  if (LOADER.length === 0) await until(() => kilobytes() < 60_000);
  assert.doesNotMatch(readFileSync(`/proc/${pid}/maps`, 'utf8'), /\.node$/m);
}

function stateIn(folder: string) {
  const file = join(folder, 'agent.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { last_heartbeat: null };
}

test('a node joins, follows its network, is stopped and started again, and exits when it is revoked', async () => {
  writeFileSync(tokenFile, await invite(na));
  const log = join(scratch, 'changes');
  const onChange = `echo "$@" >> ${log}; true`;
  let child: ChildProcess | null = null;
  const joining = ['--root-key', rootKey, '--token-file', tokenFile, '--on-change', onChange];
  const first = runProgram(
    ['node', 'run', '--node-dir', nodeDir, ...joining],
    { MESH_URL: na.url, NODE_OPTIONS: FRUGAL },
    (process) => (child = process),
  );
  await until(() => stateIn(nodeDir).last_heartbeat !== null);
  await until(() => existsSync(log) && readFileSync(log, 'utf8').includes('certificate'));
  await becomesSmall(child);
  (child as ChildProcess | null)?.kill('SIGTERM');
  const stopped = await first;
  assert.equal(stopped.code, 0, stopped.stderr);
  assert.match(stopped.stdout, /^Stopped\.\n$/);
  assert.match(
    stopped.stderr,
    /^mesh-na: Joined: certificate \S+ of network "\S+", .*, until \S+Z\n/,
  );
  const names = readFileSync(log, 'utf8').trim().split(/\s+/);
  assert.deepEqual(names.toSorted(), ['certificate', 'crl', 'genesis', 'policy']);

  rmSync(tokenFile);
  const second = runCommand(['node', 'run', '--node-dir', nodeDir], { MESH_URL: na.url });
  const { cert_id } = stateIn(nodeDir);
  await operate(na, '/admin/revoke', { cert_id });
  const ended = await second;
  assert.equal(ended.code, 4, ended.stderr);
  assert.match(
    ended.stderr,
    new RegExp(
      `revocation list of the network: certificate ${cert_id}, unspecified, 2\\S+Z\\n {2}`,
    ),
  );
  const status = await runCommand(['node', 'status', '--node-dir', nodeDir, '--offline', '--json']);
  const { agent, revoked } = JSON.parse(status.stdout);
  assert.equal(revoked, true);
  assert.equal(agent.ended.code, 'certificate_revoked');
  assert.equal(agent.cert_id, cert_id);
});

test('anything that prevents a node’s start is refused in one sentence, with a cure if there is one', async () => {
  const damaged = join(scratch, 'damaged');
  cpSync(nodeDir, damaged, { recursive: true });
  writeFileSync(join(damaged, 'certificate.json'), '{"cert_id"');
  const file = join(scratch, 'file');
  writeFileSync(file, '');
  const other = Buffer.alloc(32, 1).toString('base64');
  const cases: [folder: string, args: string[], code: number, message: RegExp][] = [
    [nodeDir, ['--root-key', other], 3, /has root key .*, not /],
    [damaged, [], 3, /The stored certificate is damaged/],
    [join(scratch, 'new'), [], 2, /give its --root-key/],
    [join(file, 'node'), ['--root-key', rootKey], 3, /file\/node/],
    [join(scratch, 'empty'), ['--root-key', rootKey], 4, /no certificate and no invite/],
  ];
  for (const [folder, args, expected, message] of cases) {
    const command = ['node', 'run', '--node-dir', folder, ...args];
    const { code, stderr } = await runCommand(command, { MESH_URL: na.url });
    assert.equal(code, expected, `${folder}: ${stderr}`);
    assert.match(stderr, ONE_SENTENCE);
    assert.match(stderr, message);
  }
});

for (const [fault, code, breakDisk, mendDisk] of [
  ['is full', 'ENOSPC', (disk: SmallDisk) => disk.fill(), (disk: SmallDisk) => disk.clear()],
  [
    'cannot be written',
    'EROFS',
    (disk: SmallDisk) => disk.lock(true),
    (disk: SmallDisk) => disk.lock(false),
  ],
] as const) {
  test(`a node whose disk ${fault} continues to send heartbeats, reports it once, and recovers`, async (t) => {
    await using disk = await smallDisk('256k');
    if (disk === null) return t.skip('no disk can be mounted here');
    const folder = join(disk.path, 'node');
    const token = join(scratch, `token-${code}`);
    const within = join(disk.inside.path, 'node');
    writeFileSync(token, await invite(na));
    const joining = ['--root-key', rootKey, '--token-file', token];
    const first = startNode(disk, ['--node-dir', within, ...joining]);
    await until(() => stateIn(folder).last_heartbeat !== null);
    breakDisk(disk);
    await until(() => first.shown().includes('cannot be written'));
    const held = recordsIn(folder);
    await moreBeats(2);
    assert.deepEqual(recordsIn(folder), held, 'nothing is changed');
    mendDisk(disk);
    await until(() => first.shown().includes('is writable again'));
    await until(() => stateIn(folder).problem === null);
    const { stderr } = await first.stop();
    assert.equal(
      stderr.split(`agent.json cannot be written (${code}); this node keeps running`).length,
      2,
    );

    breakDisk(disk);
    const second = startNode(disk, ['--node-dir', within]);
    await moreBeats(2);
    assert.match((await second.stop()).stderr, new RegExp(`cannot be written \\(${code}\\)`));
    const refused = await startNode(disk, ['--node-dir', `${within}-2`, ...joining]).ended;
    assert.equal(refused.code, 3, refused.stderr);
    assert.match(refused.stderr, ONE_SENTENCE);
  });
}

/** As a process, because only that sees the disk where its path leads. */
function startNode({ inside }: SmallDisk, args: readonly string[]) {
  let child: ChildProcess | null = null;
  let shown = '';
  const command = ['node', 'run', ...args];
  const ended = runProgramBehind(inside.command, command, { MESH_URL: na.url }, (process) => {
    child = process;
    process.stderr?.on('data', (text) => {
      shown += text;
    });
  });
  return {
    ended,
    shown: () => shown,
    async stop() {
      child?.kill('SIGTERM');
      const end = await ended;
      assert.equal(end.code, 0, end.stderr);
      return end;
    },
  };
}

/** A node's files and their contents, without files still being written, whose names end in a random part. */
function recordsIn(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => /\.(json|key|pub)$/.test(name))
    .sort()
    .map((name) => `${name} ${readFileSync(join(folder, name), 'utf8')}`);
}

/** Resolves when the authority has accepted `count` more heartbeats, which only one node sends. */
async function moreBeats(count: number): Promise<void> {
  const accepted = async () => {
    const { text } = await get(na, '/metrics');
    const counts = [...text.matchAll(/^mesh_na_heartbeats_total\{.*\} (\d+)$/gm)];
    return counts.reduce((sum, [, beats]) => sum + Number(beats), 0);
  };
  const before = await accepted();
  await until(async () => (await accepted()) >= before + count);
}
