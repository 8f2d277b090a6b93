/** What people on call ask and do by the command line: certificates, invites, keys, the audit log. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { EXIT } from '../src/cli/exit-codes.ts';
import type { JsonObject } from '../src/json/value.ts';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME, runProgram } from './support/child-server.ts';
import { endOf } from './support/failed-command.ts';
import { joinedNode, operate } from './support/requests.ts';

const na = await startTestAuthority({ clock: REAL_TIME });
after(() => na.stop());

function run(...args: string[]) {
  return runProgram([...args, '--data-dir', na.dataDir], { MESH_URL: na.url });
}

async function printed(...args: string[]): Promise<JsonObject> {
  const { code, stdout, stderr } = await run(...args, '--json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as JsonObject;
}

test('what was logged is shown as it was checked, all of it, a part, or one kind', async () => {
  await joinedNode(na);
  const [all, part, kind, ahead] = await Promise.all([
    printed('events'),
    printed('events', '--after', '1'),
    run('events', '--type', 'certificate_issued'),
    run('events', '--after', '999999', '--json'),
  ]);
  const events = all.events as JsonObject[];
  assert.ok(events.length > 1);
  assert.deepEqual((part.events as JsonObject[]).slice(0, events.length - 1), events.slice(1));
  for (const line of kind.stdout.trimEnd().split('\n')) {
    assert.match(line, /^\d+ {2}\S+Z {2}certificate_issued {2}- {2}\{/);
  }
  assert.equal(ahead.code, EXIT.refused);
  assert.equal(JSON.parse(ahead.stderr).error.code, 'after_ahead');
});

test('certificates are listed, shown, and revoked by the key of their node', async () => {
  const [one, two] = [await joinedNode(na), await joinedNode(na)];
  const key = ['--key', one.key.publicKey];
  const [table, active, shown] = await Promise.all([
    run('certificate', 'list', '--status', 'active'),
    printed('certificate', 'list', ...key, '--role', 'role:client'),
    run('certificate', 'show', two.certId),
  ]);
  assert.match(table.stdout, /^CERTIFICATE +KEY +ROLES +STATUS +LAST CONTACT +EXPIRES +REASON\n/);
  assert.ok(table.stdout.includes(one.certId) && table.stdout.includes(two.certId));
  assert.equal(active.count, 1);
  assert.match(shown.stdout, new RegExp(`^certificate +${two.certId}\nkey +`));
  assert.match(shown.stdout, /\nstatus +active\nlast contact +\S+ from 127\.0\.0\.1: joined\n/);
  for (const named of [[], [one.certId, ...key]]) {
    const { exit, message } = await endOf(['certificate', 'revoke', ...named]);
    assert.equal(exit, EXIT.usage);
    assert.match(message, /Name one certificate, or the key of a node by --key/);
  }
  const revoked = await run('certificate', 'revoke', ...key, '--reason', 'key_compromise');
  assert.match(revoked.stdout, /^Certificates of the key \S+ that are revoked: 1\.\n/);
  assert.deepEqual((await printed('certificate', 'list', '--status', 'revoked')).count, 1);
});

test('invites are listed without their tokens, and withdrawn', async () => {
  const made = (await operate(na, '/admin/invite')).body.token_id as string;
  const [table, unused] = await Promise.all([
    run('invite', 'list'),
    printed('invite', 'list', '--status', 'unused'),
  ]);
  assert.match(table.stdout, /^INVITE +STATUS +ROLES +CREATED +EXPIRES/);
  assert.equal(table.stdout.includes(made), false);
  const [invite] = unused.invites as [{ token_fingerprint: string }];
  const withdrawn = await run('invite', 'withdraw', invite.token_fingerprint);
  assert.equal(withdrawn.stdout, `Invite ${invite.token_fingerprint} is withdrawn.\n`);
  assert.equal((await printed('invite', 'list', '--status', 'unused')).count, 0);
});

test('the audit log is searched for who did what to whom, and since when', async () => {
  const since = new Date().toISOString();
  const node = await joinedNode(na);
  await operate(na, '/admin/revoke', { cert_id: node.certId });
  const typesOf = ({ entries }: JsonObject) =>
    (entries as { event_type: string }[]).map(({ event_type }) => event_type);
  const [ofActor, ofSubject, ofType, text] = await Promise.all([
    printed('audit', 'show', '--actor', 'ops-privileged', '--since', since),
    printed('audit', 'show', '--subject', node.certId),
    printed('audit', 'show', '--type', 'invite_created', '--since', since),
    run('audit', 'show', '--actor', 'ops-privileged', '--since', since),
  ]);
  assert.deepEqual(typesOf(ofActor), ['certificate_revoked']);
  assert.deepEqual(typesOf(ofSubject), ['certificate_issued', 'certificate_revoked']);
  assert.deepEqual(typesOf(ofType), ['invite_created']);
  assert.match(
    text.stdout,
    /^\S+Z {2}certificate_revoked {2}ops-privileged {2}\{"cert_id":"[^\n]+\}\n$/,
  );
  assert.equal((await endOf(['audit', 'show', '--since', 'yesterday'])).exit, EXIT.usage);
  const nobody = await run('audit', 'show', '--actor', 'nobody');
  assert.equal(nobody.stdout, '');
  assert.match(nobody.stderr, /^None of the \d+ entries of the log matches\.\n$/);
});

test('the horizon shows what lapses, by kind and by week', async () => {
  await joinedNode(na);
  const [table, { lapsing }] = await Promise.all([run('horizon'), printed('horizon')]);
  assert.deepEqual(
    (lapsing as { kind: string }[]).map(({ kind }) => kind),
    ['delegation', 'certificate'],
  );
  assert.match(
    table.stdout,
    /^LAPSES +COUNT +SOONEST\ndelegation +1 +20\S+Z\ncertificate +\d+ +20\S+Z\n\nWEEK FROM +DELEGATION +CERTIFICATE\n20\S+ +0 +\d+\n/,
  );
});

test('operator keys are added, listed, changed and revoked, the last privileged one by force alone', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-keys-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const made = await runProgram(['operator-key', 'create', 'ops-2', '--key-dir', folder]);
  assert.equal(made.code, 0, made.stderr);
  const file = join(folder, 'ops-2.pub');
  const added = await run(
    'operator-key',
    'add',
    'ops-2',
    '--public-key-file',
    file,
    '--tier',
    'standard',
  );
  assert.equal(
    added.stdout,
    'Operator key ops-2 is added, with the tier standard.\n',
    added.stderr,
  );
  const as = ['--key-id', 'ops-2', '--key-file', join(folder, 'ops-2.key')];
  const [table, kept] = await Promise.all([
    run('operator-key', 'list', ...as),
    run('operator-key', 'revoke', 'ops-privileged'),
  ]);
  assert.match(
    table.stdout,
    /^KEY +TIER +STATUS +FROM +ADDED[^\n]*\nops-2 +standard +usable +ops-privileged/,
  );
  assert.equal(kept.code, 4);
  assert.match(kept.stderr, /last_privileged_operator_key/);
  const neither = await endOf(['operator-key', 'add', 'ops-3', '--tier', 'standard']);
  assert.equal(neither.exit, EXIT.usage);
  const set = await run('operator-key', 'set-tier', 'ops-2', 'privileged');
  assert.equal(set.stdout, 'Operator key ops-2 has the tier privileged.\n');
  assert.equal((await run('operator-key', 'revoke', 'ops-privileged', ...as)).code, 0);
  const last = await run('operator-key', 'revoke', 'ops-2', '--force-last-privileged', ...as);
  assert.match(last.stdout, /is revoked; 1 remain usable/);
});
