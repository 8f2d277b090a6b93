/** The command line for sovereign trust, end to end: two real authorities that exchange files, and treaties that follow. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AuthoritySuccession } from '../src/protocol/records/authority-succession.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { chainAt, countedKey, FIRST, ROOT, type Step } from './support/authority-chain.ts';
import { REAL_TIME } from './support/clock.ts';
import { runAtTerminal, runCommand } from './support/commands.ts';
import { scratchFolder, sharedScratch } from './support/folders.ts';
import { startHostileAuthority } from './support/hostile-authority.ts';
import { get } from './support/requests.ts';
import { freshId, issued, recognize, sovereignPair } from './support/trust.ts';

/** Runs a command with `--json` for one authority's operator; fails unless it ends as expected. */
async function run(na: TestAuthority, args: readonly string[], exit = 0) {
  const { code, stdout, stderr } = await runCommand([...args, '--json'], {
    MESH_URL: na.url,
    MESH_DATA_DIR: na.dataDir,
  });
  assert.equal(code, exit, `${args.join(' ')}: ${stderr}`);
  return stdout === '' ? JSON.parse(stderr) : JSON.parse(stdout);
}

test('treaty, attestation and feed travel between two sovereigns as files', async () => {
  await using folder = scratchFolder();
  const file = (name: string) => join(folder.path, name);
  await using pair = await sovereignPair(REAL_TIME);
  const { alpha, beta } = pair;

  const [treaty, attestation] = await Promise.all([
    run(alpha, [
      ...['treaty', 'issue', 'beta', '--key', beta.audience],
      ...['--role', 'role:client', '--out', file('treaty.json')],
    ]),
    run(beta, [
      ...['attestation', 'issue', 'agent-7', '--role', 'role:client'],
      ...['--claims', '{"limit":1.0}', '--out', file('attestation.json')],
    ]),
  ]);
  assert.match(readFileSync(file('attestation.json'), 'utf8'), /"limit": ?1\.0/);

  const verify = [
    'attestation',
    'verify',
    file('attestation.json'),
    '--treaty',
    file('treaty.json'),
  ];
  assert.equal((await run(alpha, verify)).reason, 'accepted');
  const { error } = await run(alpha, verify.slice(0, 3), 4);
  assert.match(error.cure, /^Give the --treaty or the --policy to verify it by, or set one with /);
  await run(beta, ['attestation', 'revoke', attestation.attestation_id, '--reason', 'left']);
  await run(beta, ['feed', 'export', '--out', file('feed.json')]);
  assert.equal((await run(alpha, ['feed', 'import', file('feed.json')])).accepted, true);
  assert.equal((await run(alpha, verify, 4)).reason, 'attestation_locally_revoked');

  const [again, path, none, graph, list, verdict] = await Promise.all([
    run(alpha, ['feed', 'import', file('feed.json')], 4),
    run(alpha, ['graph', 'trace', 'alpha', 'beta']),
    run(alpha, ['graph', 'trace', 'beta', 'alpha'], 4),
    run(alpha, ['graph', 'show']),
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

test('policies, the recognition policy and the agents of a node can be managed from the command line', async () => {
  await using folder = scratchFolder();
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const node = ['--node-dir', join(folder.path, 'node')];

  const initial = await run(na, ['policy', 'show']);
  const publish = ['policy', 'publish'];
  await run(na, publish, 2);
  await run(na, [...publish, '--port', '443'], 2);
  const service = ['--port', '443', '--service', 'llm'];
  const dry = await run(na, [...publish, ...service, '--dry-run']);
  assert.deepEqual([dry.active_policy_id, dry.policy.allowed_ports], [initial.policy_id, [443]]);
  assert.deepEqual(await run(na, ['policy', 'show']), initial);
  await run(na, [...publish, '--policy-id', 'first', ...service, '--yes']);
  const second = ['--policy-id', 'second', '--min-client-version', '0.2.0'];
  const changed = await run(na, [...publish, ...second, '--yes']);
  assert.deepEqual(
    [changed.min_client_version, changed.allowed_ports, changed.allowed_services, changed.routing],
    ['0.2.0', [443], ['llm'], initial.routing],
    'what is not named stays',
  );
  assert.equal((await run(na, ['policy', 'rollback', 'first'])).policy_id, 'first');
  const { versions } = await run(na, ['policy', 'list']);
  assert.deepEqual(
    versions.map(({ policy_id, active }: { policy_id: string; active: boolean }) => [
      policy_id,
      active,
    ]),
    [
      ['second', false],
      ['first', true],
      [initial.policy_id, false],
    ],
  );
  await run(na, ['recognition-policy', 'show'], 4);

  const { token_id: token } = await run(na, ['invite', 'create']);
  const genesis = ['--genesis', join(na.dataDir, 'genesis.json')];
  await run(na, ['node', 'join', '--token', token, ...genesis, ...node]);
  await run(na, [
    ...['agent', 'register', '--agent-id', 'a-1', '--capability', 'llm:chat'],
    ...['--host', '192.0.2.7', '--port', '7448', ...node],
  ]);
  assert.equal((await run(na, ['agent', 'list', 'llm:chat'])).count, 1);
  await run(na, ['agent', 'unregister', ...node]);
  assert.equal((await run(na, ['agent', 'list'])).count, 0);
});

test('the command line explains why one sovereign trusts another, what would happen if, and how it was', async () => {
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const start = na.clock.now();
  const key = ['--key', na.audience];
  const first = await run(na, ['treaty', 'issue', 'beta', ...key, '--role', 'role:client']);
  const unlimited = await run(na, ['treaty', 'issue', 'beta', ...key], 2);
  assert.match(unlimited.error.message, /--any-role/);
  const second = await run(na, ['treaty', 'issue', 'beta', ...key, '--any-role']);
  const ended = await run(na, ['treaty', 'issue', 'beta', ...key, '--any-role']);
  await run(na, ['treaty', 'revoke', ended.treaty_id, '--reason', 'ended']);
  const ids = [first.treaty_id, second.treaty_id].sort();
  const trace = ['graph', 'trace', 'alpha', 'beta'];
  const before = new Date(start - 1000).toISOString();
  const [explained, without, cut, unknown, future] = await Promise.all([
    run(na, ['graph', 'trace', 'alpha', 'beta', '--explain']),
    run(na, [...trace, '--without', ids[0]]),
    run(na, [...trace, '--without', ids[0], '--without', ids[1], '--explain'], 4),
    run(na, [...trace, '--as-of', before], 4),
    run(na, [...trace, '--as-of', '2999-01-01T00:00:00Z'], 4),
  ]);
  assert.deepEqual([explained.path[0].treaty_id, explained.explanation.cut.size], [ids[0], 2]);
  assert.deepEqual([without.path[0].treaty_id, without.without], [ids[1], [ids[0]]]);
  assert.deepEqual([cut.trusted, cut.explanation.candidate_count], [false, 3]);
  assert.deepEqual([unknown.reason, unknown.trusted], ['indeterminate', false]);
  assert.equal(future.error.code, 'invalid_as_of');

  const text = async (...args: string[]) =>
    (await runCommand([...trace, ...args], { MESH_URL: na.url })).stdout;
  const said = await text('--explain');
  assert.match(said, /^alpha trusts beta over 1 treaty\./);
  assert.match(said, /^Trusted until: \S+Z\. This path valid until: \S+Z\.$/m);
  assert.match(said, /^The trust ends only if 2 treaties end:$/m);
  assert.match(said, new RegExp(`${ids[1]}  on an equally short path, later in the order$`, 'm'));
  assert.match(said, new RegExp(`${ended.treaty_id}  revoked at \\S+Z: ended$`, 'm'));
  assert.match(said, new RegExp(`^Graph digest: ${explained.graph_digest}$`, 'm'));
  assert.match(
    await text('--as-of', before),
    /^Whether alpha trusted beta as of \S+Z is not known: the record begins at \S+Z\.$/m,
  );
});

// `mesh-na treaty follow`: what it shows, what it confirms, and what it refuses [core-4-13-1].

const shared = sharedAuthority({ clock: REAL_TIME });
const folder = sharedScratch();

const PLANNED: Step = { kind: 'planned', at: -1 };
const STOLEN: Step = { kind: 'compromise', at: -1 };
const SECOND = countedKey(2).publicKey;

/** A treaty with another sovereign, whose chain is in a file. */
async function partner(...steps: readonly Step[]) {
  const na = await shared();
  const name = freshId('partner');
  const terms = { subject_sovereign_id: name, subject_public_keys: [FIRST.publicKey] };
  const issue = async () => String((await issued(recognize(na, terms))).treaty_id);
  const keys = join(folder, `${name}.json`);
  const chain = chainAt(na.clock.now(), name, steps);
  writeFileSync(keys, JSON.stringify({ successions: chain }));
  const id = await issue();
  return { na, name, id, keys, chain, issue, row: async () => (await get(na, rowPath(id))).body };
}

function rowPath(id: string): string {
  return `/recognition-treaties/${id}`;
}

async function follow(which: string | readonly string[], keys: string, ...more: readonly string[]) {
  const na = await shared();
  return runCommand(['treaty', 'follow', ...[which].flat(), '--keys', keys, ...more], {
    MESH_URL: na.url,
    MESH_DATA_DIR: na.dataDir,
  });
}

test('a planned change is shown, and the treaty is replaced', async () => {
  const { na, name, id, keys, chain, row } = await partner(PLANNED);
  const { code, stdout, stderr } = await follow(id.slice(0, 13), keys, '--yes');
  assert.equal(code, 0, stderr);
  const lines = stdout.split('\n');
  assert.match(lines[0] ?? '', new RegExp(`^Treaty .* replaces treaty ${id}\\.$`));
  assert.match(stdout, /recognizes "partner-\d+"\. It is replaced by one with the same scope/);
  assert.match(stdout, /statement {6}1 of the chain, in force since .* ago\); planned/);
  assert.match(stdout, /root key .*; new to the treaty: compare it with its operators/);
  assert.ok(lines.includes(`  adds           ${SECOND}`), stdout);
  const until = chain[0]?.overlap_until;
  assert.ok(lines.includes(`  keeps          ${FIRST.publicKey}, until ${until}`), stdout);
  assert.equal((await row()).lifecycle.state, 'replaced');

  const { replacement_treaty_id } = (await row()).lifecycle;
  const again = await follow(replacement_treaty_id, keys);
  assert.equal(again.code, 4);
  assert.match(again.stderr, /409 nothing_to_follow/);
  const ended = await follow(id, keys, '--json');
  assert.equal(JSON.parse(ended.stderr).error.code, 'treaty_revoked');

  const trace = await runCommand(['graph', 'trace', 'alpha', name], { MESH_URL: na.url });
  assert.match(trace.stdout, /FOLLOWED TO THE KEY/);
  assert.ok(trace.stdout.includes(`${name}  ${SECOND}`), trace.stdout);
});

test('after a theft the root key is required, as text or in a file', async () => {
  const { id, keys, issue, row } = await partner(STOLEN);
  const another = await issue();
  const unproven = await follow(id, keys, '--yes', '--json');
  assert.equal(unproven.code, 4);
  assert.equal(JSON.parse(unproven.stderr).error.code, 'root_key_needed');
  assert.equal((await row()).status, 'active');

  const file = join(folder, 'root.pub');
  writeFileSync(file, `${ROOT.publicKey}\n`);
  const done = await follow(id, keys, '--yes', '--root-key', file);
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /the old key was stolen/);
  assert.match(done.stdout, new RegExp(`root key {7}${ROOT.publicKey.replaceAll('+', '\\+')}\n`));
  assert.match(done.stdout, / {2}removes {8}\S+, distrusted/);
  assert.match(
    done.stderr,
    new RegExp(`Treaty ${another} still names a removed key: follow it, too`),
  );
  const last = await follow(another, keys, '--yes', '--root-key', ROOT.publicKey);
  assert.deepEqual([last.code, last.stderr], [0, '']);

  const other = await partner(STOLEN);
  const json = await follow(other.id, other.keys, '--yes', '--json', '--root-key', ROOT.publicKey);
  assert.deepEqual(JSON.parse(json.stdout).subject_public_keys, [SECOND]);
});

test('the chain is read from the address where the partner publishes it, up to the maximum length', async () => {
  const { id, keys: _, chain } = await partner(PLANNED);
  await using server = await startHostileAuthority({
    'GET /authority-keys': { successions: chain },
    'GET /long': { successions: ['x'.repeat(3 * 1024 * 1024)] },
    'GET /other': { status: 'ok' },
  });
  const { url } = server;
  const long = await follow(id, `${url}/long`, '--yes');
  assert.equal(long.code, 5, long.stderr);
  const other = await follow(id, `${url}/other`, '--yes');
  assert.match(other.stderr, /does not contain a chain of authority keys/);
  const done = await follow(id, `${url}/authority-keys`, '--yes');
  assert.equal(done.code, 0, done.stderr);
});

test('asks on a terminal, and requires --yes elsewhere', async () => {
  const { na, id, keys, row } = await partner(PLANNED);
  const unasked = await follow(id, keys);
  assert.equal(unasked.code, 2);
  assert.match(unasked.stderr, /add --yes/);
  const line = ['treaty', 'follow', id, '--keys', keys];
  const environment = { MESH_URL: na.url, MESH_DATA_DIR: na.dataDir };
  for (const [answer, code, state] of [
    ['n', 4, 'active'],
    ['y', 0, 'replaced'],
  ] as const) {
    const answers = [[/adds[\s\S]*Replace it\? \[y\/N\] /, `${answer}\n`]] as const;
    const ended = await runAtTerminal(line, { columns: 200, environment, answers });
    assert.equal(ended.code, code, ended.shown);
    assert.equal((await row()).lifecycle.state, state);
  }
});

test('--partner follows every treaty in force with a sovereign, and shows each', async () => {
  const { na, name, id, keys, issue } = await partner(PLANNED);
  const ids = [id, await issue()];
  const all = ['--partner', name];
  const line = ['treaty', 'follow', ...all, '--keys', keys];
  const environment = { MESH_URL: na.url, MESH_DATA_DIR: na.dataDir };
  const answers = [[/Replace 2\? \[y\/N\] /, 'y\n']] as const;
  const { code, shown } = await runAtTerminal(line, { columns: 200, environment, answers });
  assert.equal(code, 0, shown);
  for (const each of ids) {
    assert.match(shown, new RegExp(`Treaty ${each} recognizes`));
    assert.match(shown, new RegExp(`replaces treaty ${each}\\.`));
    assert.equal((await get(na, rowPath(each))).body.lifecycle.state, 'replaced');
  }
  const again = await follow(all, keys, '--yes');
  assert.deepEqual(
    [again.code, again.stdout],
    [0, `No treaty with "${name}" has anything to follow.\n`],
  );

  const latest = await issue();
  const done = await follow(all, keys, '--yes', '--json');
  const [successor, ...others] = JSON.parse(done.stdout).recognition_treaties;
  assert.deepEqual([successor.subject_public_keys.length, others], [2, []]);
  assert.equal((await get(na, rowPath(latest))).body.lifecycle.state, 'replaced');
});

test('--partner changes nothing if one treaty cannot follow, and is used instead of an id', async () => {
  const { na, name, id, keys, row } = await partner(PLANNED);
  const terms = { subject_sovereign_id: name, subject_public_keys: [countedKey(9).publicKey] };
  const { treaty_id: other } = await issued(recognize(na, terms));
  const refused = await follow(['--partner', name], keys, '--yes');
  assert.equal(refused.code, 4);
  assert.match(refused.stderr, new RegExp(`rejected for treaty ${other}: .* Nothing was changed`));
  assert.equal((await row()).status, 'active');
  for (const which of [[], [id, '--partner', name]]) {
    const { code, stderr } = await follow(which, keys, '--yes');
    assert.deepEqual([code, /either the id of a treaty, or --partner/.test(stderr)], [2, true]);
  }
});

for (const [name, code, reason, change] of [
  ['a file that is no chain', 3, /does not contain a chain of authority keys/, () => ({})],
  [
    'the chain of another network',
    4,
    /is rejected for treaty \S+: Statement 1 of the chain belongs to the network "other"/,
    () => ({ successions: chainAt(REAL_TIME.now(), 'other', [PLANNED]) }),
  ],
  [
    'a chain without its first statement',
    4,
    /has the sequence 2, so one is missing/,
    (chain: readonly AuthoritySuccession[]) => ({ successions: chain.slice(1) }),
  ],
] as const) {
  test(`${name} changes nothing`, async () => {
    const { id, keys, chain, row } = await partner(PLANNED, { kind: 'planned', at: -0.5 });
    writeFileSync(keys, JSON.stringify(change(chain)));
    const ended = await follow(id, keys, '--yes');
    assert.equal(ended.code, code, ended.stderr);
    assert.match(ended.stderr, reason);
    assert.equal((await row()).status, 'active');
  });
}

test('a private root key is refused, and not repeated', async () => {
  const { id, keys } = await partner(STOLEN);
  const file = join(folder, 'root.key');
  const secret = Buffer.alloc(32, 7).toString('base64');
  writeFileSync(file, `${secret}\n`);
  const ended = await follow(id, keys, '--yes', '--root-key', file);
  assert.equal(ended.code, 3);
  assert.match(ended.stderr, /private key/);
  assert.ok(!ended.stderr.includes(secret));
});
