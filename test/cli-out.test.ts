/** Where commands save what they receive only once: no file is lost, and no record. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, suite, test } from 'node:test';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { buildProgram } from '../src/cli/program.ts';
import { startTestAuthority } from './support/authority.ts';
import { runCommand } from './support/commands.ts';
import { endOf } from './support/failed-command.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { type HostileAuthority, startHostileAuthority } from './support/hostile-authority.ts';
import { operate } from './support/requests.ts';

const FEED = {
  feed_id: 'feed-1',
  issuer_sovereign_id: 'alpha',
  sequence: 0,
  issued_at: '2026-01-01T00:00:00Z',
  revoked_attestation_ids: [],
  revocation_reasons: {},
  issued_by: 'na',
  signatures: [],
};
const TOKENS = ['a'.repeat(48), 'b'.repeat(48)];

const scratch = mkdtempSync(join(tmpdir(), 'mesh-na-out-'));
const { folder: dataDir } = makeNetworkFolder();
let server: HostileAuthority;
let folder: string;

before(async () => {
  server = await startHostileAuthority();
});
after(async () => {
  await server[Symbol.asyncDispose]();
  for (const path of [scratch, dataDir]) rmSync(path, { recursive: true, force: true });
});
beforeEach(() => {
  const tokens = TOKENS.map((token_id) => ({ token_id, expires_at: '2026-01-02T00:00:00Z' }));
  server.answers = {
    'GET /sovereign-revocation-feed': FEED,
    'POST /admin/invite': { ...tokens[0], tokens },
  };
  server.asked.length = 0;
  folder = mkdtempSync(join(scratch, 'test-'));
});

const exported = (out: string, ...more: string[]) => [
  ...['feed', 'export', '--url', server.url, '--out', out, ...more],
];

suite('--out', () => {
  test('replaces a file only with --force, and then the target of a link', async () => {
    const [file, link] = [join(folder, 'feed.json'), join(folder, 'link.json')];
    writeFileSync(file, 'precious');
    symlinkSync(file, link);
    const refused = await endOf(exported(link));
    assert.equal(refused.exit, EXIT.unusable);
    assert.match(refused.message, /link\.json exists; use --force to overwrite it$/);
    assert.equal(server.asked.length, 0, 'nothing was asked for');
    assert.equal(readFileSync(file, 'utf8'), 'precious');
    await buildProgram().parseAsync(exported(link, '--force'), { from: 'user' });
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), FEED);
    assert.deepEqual(readdirSync(folder).sort(), ['feed.json', 'link.json'], 'no draft is left');
  });

  test('is refused before any request if the file cannot be written', async () => {
    for (const out of [join(folder, 'absent', 'feed.json'), folder]) {
      assert.equal((await endOf(exported(out))).exit, EXIT.unusable);
    }
    assert.equal(server.asked.length, 0);
  });

  test('prints the record if the file turns out not to be writable', async () => {
    const { code, stdout, stderr } = await runCommand(exported('/dev/full'));
    assert.equal(code, EXIT.unusable);
    assert.deepEqual(JSON.parse(stdout), FEED);
    assert.match(
      stderr,
      /is exported, but \/dev\/full cannot be written \(ENOSPC\); it is on stand/,
    );
  });
});

/** Documents that commands show, each with the route that it comes from. */
const SHOWN: readonly (readonly [string, string, object])[] = [
  [
    'policy show',
    'GET /policy',
    {
      policy_id: 'spring',
      issued_at: '2026-01-01T00:00:00Z',
      min_client_version: '0.1.0',
      allowed_ports: [443],
      allowed_services: [],
      routing: { preferred_transports: [], max_hops: 8 },
      issued_by: 'na',
      signatures: [],
    },
  ],
  [
    'recognition-policy show',
    'GET /recognition-policy',
    { local_sovereign_id: 'alpha', recognized_issuers: [], revoked_attestation_ids: [] },
  ],
  [
    'graph show',
    'GET /recognition-graph',
    {
      sovereigns: [],
      recognition_edges: [],
      active_treaties: [],
      revoked_trust_material: [],
      local_sovereign_id: 'alpha',
    },
  ],
];

suite('a document that is shown', () => {
  for (const [command, route, document] of SHOWN) {
    test(`${command} saves it in a file, or says why not`, async () => {
      server.answers = { [route]: document };
      const out = join(folder, 'document.json');
      const args = [...command.split(' '), '--url', server.url, '--out', out];
      await buildProgram().parseAsync(args, { from: 'user' });
      assert.deepEqual(JSON.parse(readFileSync(out, 'utf8')), document);
      assert.match(
        (await endOf(args)).message,
        /document\.json exists; use --force to overwrite it$/,
      );
      assert.equal(server.asked.length, 1);
    });
  }

  test('the audit log is saved one entry per line, readable only by its owner', async () => {
    await using na = await startTestAuthority();
    await operate(na, '/admin/invite');
    const out = join(folder, 'audit.ndjson');
    const args = ['audit', 'export', '--data-dir', na.dataDir];
    const [saved, printed] = [
      await runCommand([...args, '--out', out, '--json']),
      await runCommand(args),
    ];
    assert.equal(saved.code, EXIT.done, saved.stderr);
    assert.equal(readFileSync(out, 'utf8'), printed.stdout);
    assert.equal(statSync(out).mode & 0o777, 0o600);
    const length = printed.stdout.trimEnd().split('\n').length;
    assert.deepEqual(JSON.parse(saved.stdout), { length, file: out });
  });
});

test('no text from others reaches standard output in a form that could control a terminal', async () => {
  await using na = await startTestAuthority();
  const reason = 'a\u202eb\u009bc\u2028d\u00ade\u{e0001}f';
  await operate(na, '/admin/operator-keys/ops-standard/revoke', { reason });
  const place = ['--data-dir', na.dataDir];
  for (const args of [
    ['audit', 'export', ...place],
    ['audit', 'export', '--json', ...place],
    ['audit', 'show', '--details', ...place],
  ]) {
    const { stdout, stderr } = await runCommand(args);
    assert.equal(stderr, '');
    assert.doesNotMatch(stdout.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    assert.ok(stdout.includes('a\\u202eb\\u009bc\\u2028d\\u00ade\\udb40\\udc01f'), args.join(' '));
    if (args.includes('--json')) {
      const { entries } = JSON.parse(stdout);
      assert.equal(entries.at(-1).details.reason, reason, 'the value is the same');
    }
  }
  const { stdout } = await runCommand(['audit', 'show', ...place]);
  assert.match(stdout, / revoked the operator key ops-standard: a b c d e.+f\n$/);
  assert.doesNotMatch(stdout.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
});

suite('mesh-na invite', () => {
  const invite = (...more: string[]) => [
    ...['invite', 'create', '--count', '2', '--url', server.url, '--data-dir', dataDir, ...more],
  ];

  test('prints only the tokens to standard output, and information for people to standard error', async () => {
    const { code, stdout, stderr } = await runCommand(invite());
    assert.equal(code, EXIT.done, stderr);
    assert.equal(stdout, `${TOKENS.join('\n')}\n`);
    assert.match(stderr, /^Each token admits one node until 2026-01-02T00:00:00Z and is not shown/);
  });

  test('saves them for its user only, and prints them if it cannot', async () => {
    const out = join(folder, 'tokens');
    const [saved, full] = await Promise.all([
      runCommand(invite('--out', out)),
      runCommand(invite('--out', '/dev/full', '--json')),
    ]);
    assert.deepEqual([saved.code, saved.stdout], [EXIT.done, '']);
    assert.equal(readFileSync(out, 'utf8'), `${TOKENS.join('\n')}\n`);
    assert.equal(statSync(out).mode & 0o777, 0o600);
    assert.equal(full.code, EXIT.unusable);
    assert.equal(JSON.parse(full.stdout).tokens.length, 2);
  });

  test('does not sign with a key that every user can read', async () => {
    const key = join(folder, 'operator.key');
    copyFileSync(join(dataDir, 'keys', 'operator-privileged.key'), key);
    chmodSync(key, 0o644);
    const { exit, message } = await endOf(invite('--key-file', key));
    assert.equal(exit, EXIT.unusable);
    assert.match(message, /operator\.key can be opened by other users; run chmod 600 /);
    assert.equal(server.asked.length, 0);
  });

  test('creates tokens that a node takes one at a time, also from standard input', async () => {
    const tokens = join(folder, 'tokens');
    writeFileSync(tokens, `${TOKENS.join('\n')}\n`);
    const nodeDir = ['--node-dir', join(folder, 'node'), '--url', server.url];
    const enroll = ['node', 'join', ...nodeDir, '--trust-on-first-use', '--token-file'];
    const { exit, message } = await endOf([...enroll, tokens]);
    assert.equal(exit, EXIT.unusable);
    assert.match(message, /tokens does not contain one invite token$/);
    assert.match(
      (await runCommand([...enroll, tokens])).stderr,
      /\n {2}Give each node a file with /,
    );
    const none = await runCommand([...enroll, '-']);
    assert.equal(none.code, EXIT.unusable);
    assert.match(none.stderr, /Standard input does not contain one invite token/);
  });
});
