/** The command line, end to end: the real program against a real authority, in real time. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { verifyAuditChain } from '../src/authority/audit/audit.ts';
import { type AuditEntry, GENESIS_HASH } from '../src/store/store.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { type Ended, runProgram } from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { scratchFolder } from './support/folders.ts';
import { get, operate } from './support/requests.ts';
import { IN_DATABASE } from './support/test-stores.ts';
import { until } from './support/until.ts';

const DONE = 0;
const REFUSED = 4;
const UNREACHABLE = 5;
const TOKEN = /^[0-9a-f]{48}$/;

/** The one JSON object that a successful command printed, with no other output. */
function printed({ code, stdout, stderr }: Ended): Record<string, unknown> {
  assert.equal(code, DONE, stderr);
  assert.equal(stderr, '');
  assert.equal(stdout.split('\n').length, 2, 'one line');
  return JSON.parse(stdout);
}

/** The error of a command that failed with `exit`: one JSON object on standard error, nothing else. */
function failed({ code, stdout, stderr }: Ended, exit: number): { code: string; message: string } {
  assert.equal(code, exit, stderr);
  assert.equal(stdout, '');
  assert.equal(stderr.split('\n').length, 2, 'one line');
  const { error, ...rest } = JSON.parse(stderr);
  assert.deepEqual(rest, {});
  const { code: name, message, cure = '', ...others } = error;
  assert.deepEqual(
    [typeof name, typeof message, typeof cure, others],
    ['string', 'string', 'string', {}],
  );
  return error;
}

test('a network can be managed on the command line: from init to the audit log', async () => {
  await using folder = scratchFolder();
  const { path: scratch } = folder;
  const dataDir = join(scratch, 'network');
  const made = printed(
    await runCommand(['init', '--data-dir', dataDir, '--network-name', 'beta', '--json']),
  );
  assert.equal(made.network_name, 'beta');

  await using na = await startTestAuthority({ dataDir, clock: REAL_TIME });
  const settings = { MESH_URL: na.url, MESH_DATA_DIR: dataDir };
  // The real program prints a result and a refusal for people, and everything else is printed in this process.
  const cli = (...args: string[]) => runCommand([...args, '--json'], settings);
  const node = (name: string, command: string, ...args: string[]) =>
    cli('node', command, '--node-dir', join(scratch, name), ...args);

  // Invites: as JSON, several at once, and as text for people.
  const [one, several, people] = await Promise.all([
    cli('invite', 'create', '--role', 'role:anchor', '--max-validity-hours', '24'),
    cli('invite', 'create', '--count', '3', '--key-id', 'ops-standard'),
    runProgram(['invite', 'create'], settings),
  ]);
  const { token_id: token } = printed(one);
  assert.match(String(token), TOKEN);
  const { tokens, token_id: first } = printed(several);
  assert.ok(Array.isArray(tokens));
  assert.deepEqual([tokens.length, tokens[0].token_id], [3, first]);
  assert.equal(people.code, DONE);
  assert.match(people.stdout, /^[0-9a-f]{48}\n$/);
  assert.match(people.stderr, /^Each token admits one node until 20/);

  // Two nodes join: one with the proof in the body, one in the header.
  const tokenFile = join(scratch, 'token');
  writeFileSync(tokenFile, `${token}\n`);
  const joins = await Promise.all([
    node('a', 'join', '--token-file', tokenFile, '--root-key', String(made.root_public_key)),
    node(
      ...(['b', 'join', '--token', String(first), '--genesis', String(made.genesis_file)] as const),
      ...['--proof', 'header', '--validity-hours', '5'],
    ),
  ]);
  const [a, b] = joins.map(printed);
  assert.deepEqual([a?.roles, b?.roles], [['role:anchor'], ['role:client']]);
  assert.deepEqual([a?.network_name, a?.issued_by], ['beta', made.na_public_key]);
  assert.equal(Date.parse(String(b?.expires_at)) - Date.parse(String(b?.issued_at)), 5 * 3_600_000);
  const kept = join(scratch, 'a', 'certificate.json');
  assert.deepEqual(JSON.parse(readFileSync(kept, 'utf8')), a);
  assert.equal(statSync(kept).mode & 0o777, 0o600);
  assert.equal(statSync(join(scratch, 'a', 'node.key')).mode & 0o777, 0o600);

  // Heartbeats in both forms; a token that is already used.
  const [beatA, beatB, again] = await Promise.all([
    node('a', 'heartbeat'),
    node('b', 'heartbeat', '--proof', 'header', '--status', 'degraded'),
    node('c', 'join', '--token-file', tokenFile, '--trust-on-first-use'),
  ]);
  assert.equal(printed(beatA).ack, true);
  assert.equal(printed(beatB).ack, true);
  const refusal = failed(again, REFUSED);
  assert.equal(refusal.code, 'invalid_invite_token');
  assert.match(refusal.message, /^The authority refused: .* \(403 invalid_invite_token, request /);

  // The roster, and the table for people; the certificate before and after its renewal.
  const [roster, table, renewal] = await Promise.all([
    cli('node', 'list', '--key-id', 'ops-standard'),
    runCommand(['node', 'list'], settings),
    node('b', 'renew', '--validity-hours', '1000'),
  ]);
  const nodes = printed(roster).nodes as { cert_id: string; node_status: string }[];
  assert.equal(nodes.find(({ cert_id }) => cert_id === a?.cert_id)?.node_status, 'healthy');
  assert.match(
    table.stdout,
    /^CERTIFICATE +NAME +LABELS +KEY +ROLES +STATUS +LAST HEARTBEAT +EXPIRES +SAID\n/,
  );
  assert.ok(table.stdout.includes(String(a?.cert_id)));
  const renewed = printed(renewal);
  assert.notEqual(renewed.cert_id, b?.cert_id);
  assert.equal(
    Date.parse(String(renewed.expires_at)) - Date.parse(String(renewed.issued_at)),
    168 * 3_600_000,
    'capped by the invite',
  );

  // Revocation: the node sees it on the list, and its requests are refused.
  const certId = String(a?.cert_id);
  const [status, revoked] = await Promise.all([
    node('b', 'status'),
    cli('certificate', 'revoke', certId, '--reason', 'key_compromise'),
  ]);
  const { cert_id, revoked: isRevoked, expired, roles } = printed(status);
  assert.deepEqual([cert_id, isRevoked, expired], [renewed.cert_id, false, false]);
  assert.deepEqual(roles, ['role:client']);
  assert.deepEqual(printed(revoked), {
    crl_sequence: 1,
    revoked_count: 1,
  });
  const [refused, after, asText, byStandard] = await Promise.all([
    node('a', 'heartbeat'),
    node('a', 'status'),
    runProgram(['node', 'heartbeat', '--node-dir', join(scratch, 'a')], settings),
    cli('certificate', 'revoke', String(renewed.cert_id), '--key-id', 'ops-standard'),
  ]);
  assert.equal(failed(refused, REFUSED).code, 'certificate_revoked');
  assert.equal(after.code, REFUSED);
  const { revocation_reason, crl_sequence, ...seen } = JSON.parse(after.stdout);
  assert.deepEqual([seen.revoked, revocation_reason, crl_sequence], [true, 'key_compromise', 1]);
  assert.equal(asText.code, REFUSED);
  assert.match(
    asText.stderr,
    /^mesh-na: The authority refused: [^\n]*certificate_revoked[^\n]*\n {2}Ask an operator [^\n]*\n$/,
  );
  assert.equal(failed(byStandard, REFUSED).code, 'insufficient_operator_tier');

  // An operator key is revoked.
  const off = printed(await cli('operator-key', 'revoke', 'ops-standard', '--reason', 'rotated'));
  assert.deepEqual([off.already_revoked, off.remaining_active_keys], [false, 1]);

  // It can no longer create invites; the audit log, read while the authority runs, records everything.
  const [invited, verified, exported] = await Promise.all([
    cli('invite', 'create', '--key-id', 'ops-standard'),
    cli('audit', 'verify'),
    runCommand(['audit', 'export', '--data-dir', dataDir]),
  ]);
  assert.equal(failed(invited, REFUSED).code, 'admin_auth_failed');
  const entries = exported.stdout.trimEnd().split('\n');
  const parsed = entries.map((line) => JSON.parse(line) as AuditEntry);
  const verdict = await verifyAuditChain(parsed, GENESIS_HASH);
  assert.equal(verdict.valid, true);
  const { valid, length, pages_checked } = printed(verified);
  assert.deepEqual([valid, pages_checked], [true, IN_DATABASE ? undefined : true]);
  // Both commands ran concurrently with a refused one, which adds an entry.
  assert.ok(Math.abs(Number(length) - parsed.length) <= 1);
  const types = new Set(parsed.map(({ event_type }) => event_type));
  for (const type of ['invite_created', 'certificate_renewed', 'operator_key_revoked']) {
    assert.ok(types.has(type), type);
  }
  for (const secret of [token, first])
    assert.equal(exported.stdout.includes(String(secret)), false);

  // The authority is gone.
  await na.stop();
  const [absent, absentText] = await Promise.all([
    node('b', 'heartbeat'),
    runCommand(['node', 'list'], settings),
  ]);
  assert.equal(failed(absent, UNREACHABLE).code, 'unreachable');
  assert.equal(absentText.code, UNREACHABLE);
  assert.match(
    absentText.stderr,
    /^mesh-na: No answer from the authority at [^\n]*\n {2}Nothing listens there: [^\n]*\n$/,
  );
});

suite('heartbeats at an interval', () => {
  test('continue until a signal, which ends them with 0 and a count', async () => {
    await using folder = scratchFolder();
    await using na = await startTestAuthority({ clock: REAL_TIME });
    const made = await operate(na, '/admin/invite', {});
    const args = ['--node-dir', folder.path, '--url', na.url];
    const joining = ['--trust-on-first-use', '--token', made.body.token_id];
    await runCommand(['node', 'join', ...args, ...joining]);
    let child: ChildProcess | undefined;
    const loop = runProgram(
      ['node', 'heartbeat', ...args, '--every', '1', '--status', 'looping', '--json'],
      {},
      (process) => {
        child = process;
      },
    );
    await until(async () => JSON.stringify(await rosterOf(na)).includes('"looping"'));
    const inSession = /^mesh_na_heartbeats_total\{proof="session"\} [1-9]/m;
    await until(async () => inSession.test((await get(na, '/metrics')).text));
    child?.kill('SIGTERM');
    const { acknowledged, missed } = printed(await loop);
    assert.ok(Number(acknowledged) >= 2);
    assert.equal(missed, 0);
  });
});

async function rosterOf(na: TestAuthority): Promise<Record<string, Record<string, unknown>>> {
  return (await operate(na, '/nodes', {}, { method: 'GET' })).body.nodes;
}
