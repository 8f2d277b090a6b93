/**
 * Which native code a command loads: loading it takes time at each start, and only an authority's folder requires it.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { isJsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { startTestAuthority } from './support/authority.ts';
import { type Ended, runProgram } from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { casesOf, GOLDEN } from './support/golden-trust.ts';
import { invite, newKey } from './support/requests.ts';

const scratch = mkdtempSync(join(tmpdir(), 'mesh-native-'));
const { folder: network } = makeNetworkFolder();
after(() => {
  for (const folder of [scratch, network]) rmSync(folder, { recursive: true, force: true });
});

const MARK = 'loaded natively: ';

/** Reports each file of native code as it is loaded. */
const REPORTER = `
  const { dlopen } = process;
  process.dlopen = (module, file, ...rest) => {
    process.stderr.write('${MARK}' + file + '\\n');
    return dlopen.call(process, module, file, ...rest);
  };`;
const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(REPORTER)}`;

function run(args: readonly string[]): Promise<Ended> {
  return runProgram(args, { NODE_OPTIONS, XDG_CONFIG_HOME: scratch });
}

const nativeParts = ({ stderr }: Ended) =>
  stderr.split('\n').filter((line) => line.startsWith(MARK));

suite('commands that use no authority’s state load no native code', { concurrency: 2 }, () => {
  const operatorKey = join(network, 'keys', 'operator-privileged.key');
  const connect = ['connect', 'http://127.0.0.1:1', '--authority-key', newKey().publicKey];
  for (const args of [
    ['--version'],
    ['--help'],
    ['serve', '--help'],
    ['node', 'join', '--help'],
    ['no-such-command'],
    ['node', 'keygen', '--node-dir', join(scratch, 'node')],
    [...connect, '--key-file', operatorKey, '--offline'],
  ]) {
    test(args.slice(0, 2).join(' '), async () => {
      const ended = await run(args);
      assert.ok(ended.code === 0 || args[0] === 'no-such-command', ended.stderr);
      assert.deepEqual(nativeParts(ended), []);
    });
  }

  test('a request to an authority', async () => {
    const ended = await run(['node', 'list', '--url', 'http://127.0.0.1:1', '--data-dir', network]);
    assert.equal(ended.code, 5, ended.stderr);
    assert.deepEqual(nativeParts(ended), []);
  });
});

/** Each `verify` command, with records that the vectors send to the corresponding route. */
const VERIFICATIONS = [
  ['/attestations/verify', 'attestation verify {attestation} --policy {recognition_policy}'],
  [
    '/attestations/verify-with-treaty',
    'attestation verify {attestation} --treaty {treaty} --treaty-key {key}',
  ],
  ['/recognition-treaties/verify', 'treaty verify {treaty} --issuer-key {key}'],
  ['/agreements/verify', 'agreement verify {agreement} --offerer-key {key} --responder-key {key}'],
  ['/boundary/verify', 'boundary verify {decision} --operator-key {key}'],
  ['/trust-evidence/verify', 'evidence verify {evidence} --issuer-key {key}'],
  ['/disclosure/verify', 'disclosure verify {proof} {commitment} --issuer-key {key}'],
  ['/consensus/verify', 'consensus verify {proof} --validator-key na={key} --assembler-key {key}'],
  ['/data-usage/verify', 'data-usage verify {intent} {policy} --agent-key {key}'],
] as const;

suite('with --offline, verifying a record loads no native code', { concurrency: 2 }, () => {
  const key = GOLDEN.keys.na?.public_base64 ?? '';
  for (const [endpoint, command] of VERIFICATIONS) {
    test(command, async () => {
      const given = (name: string) => (name === 'key' ? key : savedRecord(endpoint, name));
      const args = command
        .split(' ')
        .map((part) => part.replace(/\{(\w+)\}/, (_, name: string) => given(name)));
      const ended = await run([...args, '--offline', '--json']);
      assert.notEqual(ended.stdout, '', ended.stderr);
      const { reason, violation_reason } = JSON.parse(ended.stdout);
      assert.equal(typeof (reason ?? violation_reason), 'string', ended.stdout);
      assert.deepEqual(nativeParts(ended), []);
    });
  }
});

test('with --offline, the status of a node loads no native code', async () => {
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const node = ['--node-dir', join(scratch, 'enrolled')];
  const genesis = ['--genesis', join(na.dataDir, 'genesis.json')];
  const joined = await run([
    'node',
    'join',
    '--token',
    await invite(na),
    ...genesis,
    ...node,
    '--url',
    na.url,
  ]);
  assert.equal(joined.code, 0, joined.stderr);
  const ended = await run(['node', 'status', '--offline', '--json', ...node]);
  assert.equal(JSON.parse(ended.stdout).valid, true, ended.stderr);
  assert.deepEqual(nativeParts(ended), []);
});

/** The path of a file with a record that the vectors send to the route. */
function savedRecord(endpoint: string, member: string): string {
  const records = casesOf('verify', endpoint)
    .filter(({ status }) => status === 200)
    .map(({ request }) => request[member]);
  const record = records.find(isJsonObject);
  assert.ok(record !== undefined, `${endpoint} has no ${member}`);
  const file = join(scratch, `${endpoint.replaceAll('/', '-')}-${member}.json`);
  writeFileSync(file, jsonText(record));
  return file;
}

test('init loads only what locks the folder and creates keys, and no part of the server', async () => {
  const ended = await run(['init', '--data-dir', join(scratch, 'network')]);
  assert.equal(ended.code, 0, ended.stderr);
  const parts = nativeParts(ended).map((line) => /node_modules\/([^/]+)/.exec(line)?.[1]);
  assert.deepEqual([...new Set(parts)].sort(), ['fs-native-extensions', 'sodium-native']);
});
