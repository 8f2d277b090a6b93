/** What operators on call look up and do on the command line: certificates, invites, keys, the audit log. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { JsonObject } from '../src/base/json/value.ts';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { onlyId } from '../src/cli/kernel/ids.ts';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runAtTerminal, runCommand } from './support/commands.ts';
import { endOf } from './support/failed-command.ts';
import { sharedScratch } from './support/folders.ts';
import { startHostileAuthority } from './support/hostile-authority.ts';
import { joinedNode, newKey, nodeRequest, operate } from './support/requests.ts';

const na = await startTestAuthority({ clock: REAL_TIME });
after(() => na.stop());
const scratch = sharedScratch();

const place = ['--data-dir', na.dataDir, '--url', na.url];

function run(...args: string[]) {
  return runCommand([...args, '--data-dir', na.dataDir], { MESH_URL: na.url });
}

async function printed(...args: string[]): Promise<JsonObject> {
  const { code, stdout, stderr } = await run(...args, '--json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as JsonObject;
}

test('a refused operator sees any reason known on this machine, otherwise the code’s cure', async (t) => {
  await using other = await startTestAuthority({ clock: REAL_TIME });
  const error = { code: 'admin_auth_failed', message: 'Failed', details: {}, request_id: '1' };
  await using silent = await startHostileAuthority({
    'POST /admin/invite': Response.json({ error }, { status: 401 }),
  });
  const keys = join(na.dataDir, 'keys');
  const unnamed = join(scratch, 'unnamed.key');
  writeFileSync(unnamed, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  const standard = join(keys, 'operator-standard.key');
  for (const [what, args, cure] of [
    [
      'a key file of another key',
      ['--url', na.url, '--key-file', standard],
      /belongs to ops-standard, not to ops-p/,
    ],
    [
      'a key file without a name',
      ['--url', na.url, '--key-file', unnamed],
      /does not match ops-privileged, whose pub/,
    ],
    [
      'an unknown key',
      ['--url', na.url, '--key-id', 'nobody', '--key-file', standard],
      /has no usable key nobody: /,
    ],
    ['the key of another network', ['--url', other.url], /^Check the address\.$/],
    [
      'a refusal without a reason',
      ['--url', silent.url],
      /^Check the clock, the key and the signed text \(Signing requests: docs\/signing.md\)/,
    ],
  ] as const) {
    await t.test(what, async () => {
      const end = await endOf(['invite', 'create', '--data-dir', na.dataDir, ...args]);
      assert.equal(end.exit, EXIT.refused, end.message);
      assert.match(end.cure ?? '', cure);
    });
  }
});

test('a refusal that counts nothing says no number', async () => {
  const place = ['--data-dir', na.dataDir, '--url', na.url];
  const { exit, message } = await endOf(['authority-key', 'finish', ...place]);
  assert.equal(exit, EXIT.refused);
  assert.match(message, /\(409 no_overlap, request /);
});

test('an operator whose clock is an hour off is informed of the difference', async () => {
  const error = { code: 'admin_auth_failed', message: 'Failed', details: {}, request_id: '1' };
  const headers = { date: new Date(Date.now() - 3_600_500).toUTCString() };
  await using elsewhere = await startHostileAuthority({
    'POST /admin/invite': Response.json({ error }, { status: 401, headers }),
  });
  const place = ['--data-dir', na.dataDir, '--url', elsewhere.url];
  const { cure } = await endOf(['invite', 'create', ...place]);
  assert.match(
    cure ?? '',
    /^The clock of this machine is 1 hour( \d seconds?)? ahead of the clock of the authority: correct the/,
  );
});

test('a command that gets no answer says why, and what to do', async (t) => {
  const port = new URL(na.url).port;
  for (const [what, url, cure] of [
    ['a port without TLS', `https://127.0.0.1:${port}`, /does not use TLS: use http:/],
    ['a port where nobody listens', 'http://127.0.0.1:1', /^Nothing listens there: /],
    ['a host that is not known', 'http://nobody.invalid', /host is unknown|resolver/],
  ] as const) {
    await t.test(what, async () => {
      const end = await endOf(['operator-key', 'list', '--data-dir', na.dataDir, '--url', url]);
      assert.equal(end.exit, EXIT.unreachable);
      assert.match(end.cure ?? '', cure);
    });
  }
});

test('a file that cannot be opened is named, with what to do', async () => {
  const file = join(scratch, 'none');
  const nodeDir = join(scratch, 'node');
  const reached = ['--url', na.url, '--node-dir', nodeDir, '--trust-on-first-use'];
  const end = await endOf(['node', 'join', ...reached, '--token-file', file]);
  assert.deepEqual(
    [end.exit, end.message, end.cure],
    [
      EXIT.unusable,
      `${file} cannot be opened (ENOENT)`,
      'The file or folder does not exist: correct the path.',
    ],
  );
});

test('the log is shown as it was checked: all of it, a part, or one kind', async () => {
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
    assert.match(line, /^\d+ {2}\S+Z {2}certificate_issued {2}node \S+ joined as role:client$/);
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
  assert.match(
    table.stdout,
    /^CERTIFICATE +NAME +LABELS +KEY +ROLES +STATUS +LAST CONTACT +EXPIRES +REASON\n/,
  );
  assert.ok(table.stdout.includes(one.certId) && table.stdout.includes(two.certId));
  assert.equal(active.count, 1);
  assert.match(shown.stdout, new RegExp(`^certificate +${two.certId}\nkey +`));
  assert.match(shown.stdout, /\nstatus +active\nlast contact +\S+ from 127\.0\.0\.1: joined\n/);
  for (const named of [[], [one.certId, ...key]]) {
    const { exit, message } = await endOf(['certificate', 'revoke', ...named]);
    assert.equal(exit, EXIT.usage);
    assert.match(message, /Give one certificate, a node key with --key, or filters/);
  }
  const revoked = await run('certificate', 'revoke', ...key, '--reason', 'key_compromise');
  assert.match(revoked.stdout, /^1 certificate of the key \S+ revoked\.\n/);
  assert.deepEqual((await printed('certificate', 'list', '--status', 'revoked')).count, 1);
});

test('ids and keys can be abbreviated, but never ambiguously', async () => {
  const node = await joinedNode(na);
  const short = node.certId.slice(0, 8);
  const shortKey = node.key.publicKey.slice(0, 8);
  const [shown, listed, few, none] = await Promise.all([
    printed('certificate', 'show', short),
    printed('certificate', 'list', '--key', shortKey),
    run('certificate', 'revoke', node.certId.slice(0, 7)),
    run('certificate', 'revoke', `${short}-0000-4`, '--json'),
  ]);
  assert.equal(shown.cert_id, node.certId);
  assert.equal(listed.count, 1);
  assert.deepEqual([few.code, few.stdout], [EXIT.usage, '']);
  assert.match(few.stderr, /is too short: give at least the first 8 characters of the certificate/);
  assert.equal(none.code, EXIT.refused);
  assert.match(JSON.parse(none.stderr).error.message, /^No certificate begins with /);
  const revoked = await run('certificate', 'revoke', short);
  assert.match(revoked.stdout, new RegExp(`^Certificate ${node.certId} is revoked\\.`));
  const { entries } = await printed('audit', 'show', '--subject', short);
  assert.equal((entries as JsonObject[]).length, 2);

  async function* ids() {
    yield* ['5a1f6e0c-1', '5a1f6e0c-2', '5a1f6e0d-1'];
  }
  await assert.rejects(onlyId('5a1f6e0c', 'certificate', ids()), {
    message:
      '5a1f6e0c is ambiguous, so nothing was done: it matches 5a1f6e0c-1, 5a1f6e0c-2; give more characters of the certificate',
  });
  assert.equal(await onlyId('5a1f6e0d', 'certificate', ids()), '5a1f6e0d-1');
});

test('certificates are revoked by filters after a preview, and only as many as were intended', async () => {
  const role = ['--role', 'role:anchor'];
  const nodes = await Promise.all([1, 2].map(() => joinedNode(na, { roles: ['role:anchor'] })));
  const ids = nodes.map(({ certId }) => certId).sort();
  const revoke = ['certificate', 'revoke', ...role];
  const [dry, text, unsure, other] = await Promise.all([
    printed(...revoke, '--dry-run'),
    run(...revoke, '--dry-run'),
    run(...revoke),
    run(...revoke, '--yes-revoke', '3'),
  ]);
  assert.deepEqual(
    (dry.certificates as { cert_id: string }[]).map(({ cert_id }) => cert_id),
    ids,
  );
  assert.match(text.stdout, /2 certificates would be revoked\. Nothing was revoked\.\n$/);
  for (const { code, stderr } of [unsure, other]) {
    assert.equal(code, EXIT.usage);
    assert.match(
      stderr,
      /2 certificates match, so nothing was revoked; use --yes-revoke 2 to revoke them/,
    );
  }
  assert.equal((await printed('certificate', 'list', ...role, '--status', 'active')).count, 2);
  assert.equal((await printed(...revoke, '--silent-since', '30d', '--dry-run')).count, 0);

  const { code, shown } = await runAtTerminal([...revoke, ...place], {
    answers: [[/Type 2 to revoke these 2 certificates: /, 'y\r']],
  });
  assert.equal(code, EXIT.usage);
  assert.match(shown, new RegExp(`${ids[0]?.slice(0, 8)} .* in \\d+[dh]`));
  assert.equal((await printed('certificate', 'list', ...role, '--status', 'active')).count, 2);

  const revoked = await printed(...revoke, '--yes-revoke', '2');
  assert.deepEqual([revoked.count, revoked.revoked_cert_ids], [2, ids]);
  assert.match((await run(...revoke)).stdout, /^0 certificates revoked\.\n$/);
});

test('nodes are listed by role, by health, and by how long they have been silent', async () => {
  const node = await joinedNode(na, { roles: ['role:bridge'] });
  const body = { cert_id: node.certId, status: 'degraded: disk' };
  await nodeRequest(na, '/heartbeat', node.key, body);
  const role = ['--role', 'role:bridge'];
  const [roster, unwell, healthy, silent] = await Promise.all([
    printed('node', 'list', ...role),
    printed('node', 'list', ...role, '--health', 'unwell'),
    printed('node', 'list', ...role, '--health', 'healthy'),
    printed('node', 'list', ...role, '--silent-since', '1h'),
  ]);
  const all = await printed('node', 'list');
  const row = (all.nodes as JsonObject[]).find(({ cert_id }) => cert_id === node.certId);
  assert.deepEqual(roster, { count: 1, nodes: [row] });
  assert.deepEqual(unwell, roster);
  assert.deepEqual([healthy.count, silent.count], [0, 0]);
});

test('a duration is accepted wherever a time is, and in place of a number of hours', async () => {
  const terms = ['--max-validity-hours', '3d', '--token-expiry-hours', '36'];
  const made = await printed('invite', 'create', '--name', 'brief', ...terms);
  const [row] = (await printed('invite', 'list', '--name', 'brief')).invites as JsonObject[];
  assert.ok(row?.max_validity_hours === 72);
  const hours = (Date.parse(String(made.expires_at)) - Date.now()) / 3_600_000;
  assert.ok(hours > 35 && hours <= 36);
  await run('invite', 'withdraw', String(row.token_fingerprint));
  await joinedNode(na, { max_validity_hours: 1 });
  const [soon, later, since] = await Promise.all([
    printed('certificate', 'list', '--expires-before', '2h', '--status', 'active'),
    printed('certificate', 'list', '--expires-before', '1m', '--status', 'active'),
    printed('audit', 'show', '--since', '1w2d'),
  ]);
  assert.deepEqual([soon.count, later.count], [1, 0]);
  assert.ok((since.entries as JsonObject[]).length > 0);
  for (const command of [
    ['certificate', 'list', '--expires-before'],
    ['certificate', 'revoke', '--silent-since'],
    ['audit', 'show', '--since'],
    ['graph', 'trace', 'a', 'b', '--as-of'],
    ['agreement', 'offer', 'beta', '--capability', 'c', '--valid-until'],
  ]) {
    const { exit, message } = await endOf([...command, '7 days']);
    assert.equal(exit, EXIT.usage);
    assert.match(message, /or a duration such as 7d or 1h30m\.$/);
  }
});

test('an unknown type of event is refused with a list of the known ones', async () => {
  for (const command of [
    ['events', '--follow'],
    ['audit', 'show'],
  ]) {
    const { exit, message } = await endOf([...command, '--type', 'nonsense']);
    assert.equal(exit, EXIT.usage);
    assert.match(message, /The types of events are invite_created, .*, store_moved\.$/);
  }
});

test('invites are listed without their tokens, and withdrawn', async () => {
  const made = (await operate(na, '/admin/invite')).body.token_id as string;
  const [table, unused] = await Promise.all([
    run('invite', 'list'),
    printed('invite', 'list', '--status', 'unused'),
  ]);
  assert.match(table.stdout, /^INVITE +STATUS +NAME +LABELS +BATCH +ROLES +CREATED +EXPIRES/);
  assert.equal(table.stdout.includes(made), false);
  const [invite] = unused.invites as [{ token_fingerprint: string }];
  const short = invite.token_fingerprint.slice(0, 8);
  const withdrawn = await run('invite', 'withdraw', short);
  assert.equal(withdrawn.stdout, `Invite ${invite.token_fingerprint} is withdrawn.\n`);
  assert.equal((await printed('invite', 'list', '--status', 'unused')).count, 0);
});

test('a batch of invites is created, listed, previewed, and withdrawn if its number is confirmed', async (t) => {
  const batch = ['--batch', 'field team 7'];
  const tokens = join(scratch, 'tokens');
  const made = await run('invite', 'create', ...batch, '--count', '3', '--out', tokens);
  assert.equal(made.code, 0, made.stderr);
  await printed('invite', 'create', '--batch', 'field team 8');
  const [used = '', leaked = ''] = readFileSync(tokens, 'utf8').trim().split('\n');
  await nodeRequest(na, '/join', newKey(), { invite_token: used });
  const withdraw = ['invite', 'withdraw', ...batch];
  const [table, listed, dry, text] = await Promise.all([
    run('invite', 'list', ...batch),
    printed('invite', 'list', ...batch, '--status', 'unused'),
    printed(...withdraw, '--dry-run'),
    run(...withdraw, '--dry-run'),
  ]);
  assert.match(
    table.stdout,
    /^INVITE[^\n]*\n(?:[0-9a-f]{16} +(?:unused|consumed) +field team 7 .*\n){3}$/,
  );
  assert.deepEqual([dry.dry_run, dry.count, dry.invites], [true, 2, listed.invites]);
  assert.match(text.stdout, /\n2 invites would be withdrawn\. Nothing was withdrawn\.\n$/);
  for (const number of [[], ['--yes-withdraw', '3']]) {
    const { exit, message } = await endOf([...withdraw, ...number, ...place]);
    assert.equal(exit, EXIT.usage);
    assert.match(
      message,
      /^2 invites match, so nothing was withdrawn; use --yes-withdraw 2 to withdraw them, or --dry-run /,
    );
  }
  assert.deepEqual(await printed('invite', 'list', ...batch, '--status', 'unused'), listed);

  await t.test('a terminal prompts for the number', async () => {
    const question = /Type 2 to withdraw these 2 invites: /;
    const line = [...withdraw, ...place];
    const unmeant = await runAtTerminal(line, { answers: [[question, '3\r']] });
    assert.equal(unmeant.code, EXIT.usage);
    assert.match(unmeant.shown, /Not confirmed, so nothing was withdrawn/);
    const whenAnotherCame = async () => {
      await operate(na, '/admin/invite', { batch: 'field team 7' });
      return '2\r';
    };
    const meant = await runAtTerminal(line, { answers: [[question, whenAnotherCame]] });
    assert.equal(meant.code, 0);
    assert.match(meant.shown, /2 invites withdrawn\.\n$/);
    // Another one came in the meantime, and nobody has confirmed it.
    assert.equal((await printed('invite', 'list', ...batch, '--status', 'unused')).count, 1);
  });

  const joined = await nodeRequest(na, '/join', newKey(), { invite_token: leaked });
  assert.equal(joined.status, 403);
  assert.match((await run(...withdraw, '--yes-withdraw', '1')).stdout, /^1 invite withdrawn\./);
  assert.equal((await run(...withdraw)).stdout, '0 invites withdrawn.\n');
  const eighth = ['invite', 'withdraw', '--batch', 'field team 8', '--yes-withdraw', '1'];
  assert.deepEqual(await printed(...eighth), { batch: 'field team 8', withdrawn: 1 });
});

test('a batch larger than one request can withdraw is withdrawn by several', async () => {
  const batch = 'large';
  for (const count of [1000, 2]) await operate(na, '/admin/invite', { batch, count });
  const withdraw = ['invite', 'withdraw', '--batch', batch];
  assert.deepEqual(await printed(...withdraw, '--yes-withdraw', '1002'), {
    batch,
    withdrawn: 1002,
  });
});

test('only an existing invite or batch can be withdrawn', async (t) => {
  for (const [what, args, exit, message] of [
    ['neither', [], EXIT.usage, /^Give one invite, or a batch with --batch$/],
    [
      'both',
      ['5f3c2b1a', '--batch', 'b'],
      EXIT.usage,
      /^Give one invite, or a batch with --batch$/,
    ],
    ['a look at one invite', ['5f3c2b1a', '--dry-run'], EXIT.usage, /need --batch: nothing was/],
    ['a number of one', ['5f3c2b1a', '--yes-withdraw', '1'], EXIT.usage, /need --batch: noth/],
    ['an empty label', ['--batch', ''], EXIT.usage, /1 to 64 printable ASCII characters without/],
    ['a label with a blank at its end', ['--batch', 'b '], EXIT.usage, /1 to 64 printable ASCII/],
    ['an unknown batch', ['--batch', 'b'], EXIT.refused, /^There is no invite in the batch b$/],
    [
      'a look at it',
      ['--batch', 'b', '--dry-run'],
      EXIT.refused,
      /^There is no invite in the batch b$/,
    ],
  ] as const) {
    await t.test(what, async () => {
      const end = await endOf(['invite', 'withdraw', ...args, ...place]);
      assert.equal(end.exit, exit);
      assert.match(end.message, message);
    });
  }
});

test('the audit log can be searched for who did what to whom, and since when', async () => {
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
    new RegExp(
      `^\\S+Z {2}certificate_revoked {2}ops-privileged revoked certificate ${node.certId}: unspecified\\n$`,
    ),
  );
  const [everything, last] = await Promise.all([
    printed('audit', 'show'),
    printed('audit', 'show', '--last', '2'),
  ]);
  assert.deepEqual(last.entries, (everything.entries as JsonObject[]).slice(-2));
  const show = ['audit', 'show', '--data-dir', na.dataDir];
  const { code, shown } = await runAtTerminal(show, { columns: 300 });
  assert.equal(code, 0);
  const lines = shown.trimEnd().split('\n');
  assert.ok(lines.length < 50);
  const nobody = await run('audit', 'show', '--actor', 'nobody');
  assert.equal(nobody.stdout, '');
  assert.match(nobody.stderr, /^None of the \d+ log entries match\.\n$/);
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

test('operator keys are added, listed, changed and revoked, the last privileged one only with --force', async () => {
  const made = await runCommand(['operator-key', 'create', 'ops-2', '--key-dir', scratch]);
  assert.equal(made.code, 0, made.stderr);
  const file = join(scratch, 'ops-2.pub');
  const add = ['operator-key', 'add', 'ops-2', '--public-key-file', file];
  const added = await run(...add, '--tier', 'standard');
  assert.equal(
    added.stdout,
    'Operator key ops-2 is added, with the tier standard.\n',
    added.stderr,
  );
  const as = ['--key-id', 'ops-2', '--key-file', join(scratch, 'ops-2.key')];
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
