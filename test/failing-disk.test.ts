/**
 * A disk that fails, fills up or is taken over: one case of each. `failing-calls.deep` covers every call, and
 * disks that fill up.
 */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { open } from 'lmdb';
import { jsonText } from '../src/base/json/write.ts';
import { loadConfig } from '../src/server/config/load.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import {
  assertEnded,
  assertStored,
  invite as createdInvites,
  failFromNow,
  mayTrace,
} from './support/broken-disk.ts';
import { NO_LIMITS, runProgram, startChildServer } from './support/child-server.ts';
import { MINUTE, SECOND, testClock } from './support/clock.ts';
import { ownNetwork } from './support/folders.ts';
import {
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
  send,
  sendSigned,
  signedByNode,
  type TestNode,
} from './support/requests.ts';
import { signAgentDescriptor } from './support/signing.ts';
import { networkOn, type SmallDisk, smallDisk } from './support/small-disk.ts';

test('a server whose commit cannot be stored ends with 1, names the cause, and has stored everything it acknowledged', async (t) => {
  if (!mayTrace()) return t.skip('this user may not trace processes');
  const folder = ownNetwork();
  const server = await startChildServer(folder, { environment: NO_LIMITS });
  const tokens = await createdInvites(server, 2);
  await failFromNow(server, { file: 'state/data.mdb', call: 'fdatasync', error: 'EIO', nth: 1 });
  tokens.push(...(await createdInvites(server)));
  await assertEnded(server, /EIO|Input\/output error/);
  await assertStored(folder, tokens);
});

test('a start on a full disk is refused in one sentence, and the next one serves', async (t) => {
  await using disk = await smallDisk('4m');
  if (disk === null) return t.skip('this user may not mount a disk in a namespace of their own');
  const dataDir = networkOn(disk);
  disk.fill();
  const serve = ['serve', '--data-dir', dataDir, '--port', '0'];
  const { code, signal, stdout, stderr } = await runProgram(serve);
  assert.deepEqual({ code, signal, stdout }, { code: 3, signal: null, stdout: '' }, stderr);
  assert.match(
    stderr,
    /^mesh-na: .*cannot be written \(ENOSPC\)\n {2}The disk is full: free up space\.\n$/,
  );
  disk.clear();
  await assertStored(dataDir, []);
});

test('a server that can no longer store ends with 1 and never answers the command', async () => {
  const folder = ownNetwork();
  const server = await startChildServer(folder, { environment: NO_LIMITS });
  assert.equal((await get(server.na, '/readyz')).status, 200);
  await takeFolderOver(folder);
  await assert.rejects(operate(server.na, '/admin/invite'), TypeError);
  const { code, stderr } = await server.ended;
  assert.equal(code, 1);
  // The commit detects it or, on a busy machine, the periodic check that runs before it.
  assert.match(
    stderr,
    /CRITICAL mesh\.process Ending after a failure: (?:commit|ownership): .*Another process has taken over the data directory/,
  );
});

test('a server whose folder was taken over ends by itself, without any request', async () => {
  const folder = ownNetwork();
  const server = await startChildServer(folder, { environment: NO_LIMITS });
  await takeFolderOver(folder);
  const { code, stderr } = await server.ended;
  assert.equal(code, 1);
  assert.match(stderr, /CRITICAL .*Another process has taken over the data directory/);
});

/** Takes the folder over, like a process that considers its owner dead. */
async function takeFolderOver(folder: string): Promise<void> {
  const env = open({ path: join(folder, 'state'), maxDbs: 16 });
  const meta = env.openDB<object, string>({ name: 'meta', useVersions: true });
  await meta.put('owner', { pid: 1 }, 1_000_000);
  await env.close();
}

// A disk that is almost full: new nodes are refused, and everyone else is served [core-4-2-1].

const MEGABYTE = 1_048_576;
const REFUSED = '507 insufficient_storage';

test('when little space is left newcomers are refused, and all others are served', async (t) => {
  await using disk = await smallDisk('24m');
  if (disk === null) return t.skip('this user may not mount a disk in a namespace of their own');
  await using na = await startOn(disk, '8');
  const [node, other] = [await joinedNode(na), await joinedNode(na)];
  assert.equal(outcome(await register(na, node)), '200');
  const token = await invite(na);
  assert.equal((await get(na, '/readyz')).body.enrollment, 'open');

  disk.leave(7 * MEGABYTE);
  await na.checkDisk();
  assert.equal(outcome(await operate(na, '/admin/invite')), REFUSED);
  const newcomer = signedByNode(na, '/join', newKey(), { invite_token: token });
  assert.equal(outcome(await sendSigned(na, newcomer)), REFUSED);
  assert.equal(outcome(await register(na, other)), REFUSED);
  const wrong = await nodeRequest(na, '/join', newKey(), { invite_token: 'none' });
  assert.equal(outcome(wrong), '403 invalid_invite_token');

  na.clock.advance(MINUTE);
  assert.equal(outcome(await register(na, node)), '200', 'who is registered may refresh');
  assert.equal(outcome(await heartbeat(na, node)), '200');
  const renewal = await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
  assert.equal(outcome(renewal), '200');
  const revoked = { cert_id: other.certId, reason: 'superseded' };
  assert.equal(outcome(await operate(na, '/admin/revoke', revoked)), '200');
  const added = { key_id: 'ops-new', public_key: newKey().publicKey, tier: 'standard' };
  assert.equal(outcome(await operate(na, '/admin/operator-keys', added)), '200');

  const ready = await get(na, '/readyz');
  assert.deepEqual([ready.status, ready.body.enrollment], [200, 'insufficient_storage']);
  const metrics = (await get(na, '/metrics')).text;
  assert.match(metrics, /^mesh_na_disk_min_free_bytes 8388608$/m);
  assert.match(metrics, /^mesh_na_posture_finding\{rule="disk"\} 2$/m);
  assert.equal(logged(na, /ERROR mesh\.store .*invites, joins and new agents are refused/), 1);

  disk.clear();
  await na.checkDisk();
  na.clock.advance(SECOND);
  assert.equal(outcome(await operate(na, '/admin/invite')), '200');
  assert.equal(outcome(await sendSigned(na, newcomer)), '200', 'the same request, sent again');
  assert.equal((await get(na, '/readyz')).body.enrollment, 'open');
  assert.equal(logged(na, /There is enough disk space again/), 1);
});

test('a start on a disk that is nearly full refuses newcomers from the first request on', async (t) => {
  await using disk = await smallDisk('24m');
  if (disk === null) return t.skip('this user may not mount a disk in a namespace of their own');
  await using na = await startOn(disk, '100');
  assert.equal(outcome(await operate(na, '/admin/invite')), REFUSED);
});

test('with MESH_MIN_FREE_MB=0 no one is refused', async (t) => {
  await using disk = await smallDisk('24m');
  if (disk === null) return t.skip('this user may not mount a disk in a namespace of their own');
  await using na = await startOn(disk, '0');
  assert.equal(outcome(await operate(na, '/admin/invite')), '200');
});

test('the disk of the data folder does not matter to a state in a database', () => {
  const dataDir = ownNetwork();
  const load = (flags: object) => loadConfig({ dataDir, ...flags }, {}, Date.now()).minFree;
  assert.equal(load({}), 256 * MEGABYTE);
  assert.equal(load({ store: 'postgresql://mesh@localhost/mesh' }), 0);
});

function startOn(disk: SmallDisk, minFree: string): Promise<TestAuthority> {
  const dataDir = join(disk.path, 'data');
  cpSync(ownNetwork(), dataDir, { recursive: true });
  const environment = { MESH_MIN_FREE_MB: minFree };
  return startTestAuthority({ dataDir, environment, clock: testClock() });
}

function register(na: TestAuthority, { key }: TestNode) {
  const agent = {
    agent_id: 'agent-1',
    network_name: 'alpha',
    capabilities: ['survey'],
    endpoint: { host: '127.0.0.1', port: 7448 },
    lifetimeSeconds: 3600,
  };
  const descriptor = signAgentDescriptor(agent, key, na.clock.now());
  return send(na, 'POST', '/agents', { body: jsonText(descriptor) });
}

function logged({ logLines }: TestAuthority, text: RegExp): number {
  return logLines.filter((line) => text.test(line)).length;
}
