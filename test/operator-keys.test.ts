/** Operator keys: revoked for good [core-4-9], added at run time [core-4-19], and created as files. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import {
  sharedAuthority,
  startTestAuthority,
  type TestAuthority,
  type TestOperator,
} from './support/authority.ts';
import { MINUTE, testClock } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { valuesExcept } from './support/hostile.ts';
import {
  auditEvents,
  get,
  invite,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type Received,
  send,
} from './support/requests.ts';
import { audited, sovereign } from './support/trust.ts';

/** For tests that leave nothing behind that another test would notice. */
const shared = sharedAuthority();

test('revoking a key answers with every member, and the audit log names who did it', async () => {
  await using na = await startTestAuthority();
  na.clock.advance(MINUTE);
  const answer = await revoke(na, 'ops-standard', { reason: 'key_compromise' });
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.body, {
    key_id: 'ops-standard',
    revoked: true,
    already_revoked: false,
    revoked_at: formatInstant(na.clock.now()),
    reason: 'key_compromise',
    remaining_active_keys: 1,
  });
  assert.deepEqual(audited(na, 'operator_key_revoked'), [
    {
      key_id: 'ops-standard',
      reason: 'key_compromise',
      revoked_by: 'ops-privileged',
      remote_addr: '127.0.0.1',
    },
  ]);
});

test('the reason is any text of up to 1,024 characters, or unspecified', async () => {
  const operators = ['a', 'b', 'c', 'd'].map((keyId) => ({ keyId, key: newKey() }));
  await using na = await startWith(operators);
  for (const [index, reason] of ['', 'Zürich ✓ "left"', 'x'.repeat(1024), undefined].entries()) {
    const body = reason === undefined ? {} : { reason };
    const answer = await revoke(na, operators[index]?.keyId ?? '', body);
    assert.equal(outcome(answer), '200');
    const kept = reason ?? 'unspecified';
    assert.equal(answer.body.reason, kept);
    const shown = String(audited(na, 'operator_key_revoked').at(-1)?.reason);
    // Entries shorten long texts.
    assert.ok(kept === shown || (kept.length === 1024 && kept.startsWith(shown)), shown);
  }
});

test('a reason that is no text is 422, an unknown key 404, and every key stays usable', async () => {
  const na = await shared();
  for (const [name, reason] of valuesExcept('a string', 'an empty string', 'null')) {
    const answer = await revoke(na, 'ops-standard', { reason });
    assert.equal(outcome(answer), '422 request_validation_failed', name);
    assert.deepEqual(answer.body.error.details.errors[0].loc, ['body', 'reason']);
  }
  for (const keyId of ['nobody', 'OPS-STANDARD', 'ops-standard ', '__proto__', 'constructor']) {
    assert.equal(outcome(await revoke(na, keyId)), '404 unknown_operator_key', keyId);
  }
  for (const keyId of ['ops-standard', 'ops-privileged', 'nobody']) {
    const answer = await revoke(na, keyId, {}, na.standard);
    assert.equal(outcome(answer), '403 insufficient_operator_tier', 'not even itself');
  }
  for (const segment of ['%', '%zz', '%ff', '%c3%28']) {
    const answer = await send(na, 'POST', `/admin/operator-keys/${segment}/revoke`);
    assert.equal(outcome(answer), '400 bad_request', segment);
  }
  const used = await operate(na, '/admin/invite', {}, { operator: na.standard });
  assert.equal(outcome(used), '200');
  assert.deepEqual(audited(na, 'operator_key_revoked'), []);
});

test('a repeat is 200 with already_revoked, and nothing is revoked or audited again', async () => {
  await using na = await startTestAuthority();
  await revoke(na, 'ops-standard', { reason: 'key_compromise' });
  for (const reason of ['key_compromise', 'another']) {
    const answer = await revoke(na, 'ops-standard', { reason });
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, {
      key_id: 'ops-standard',
      revoked: true,
      already_revoked: true,
    });
  }
  assert.equal(audited(na, 'operator_key_revoked').length, 1);
});

test('the last usable key is kept: 409, and it still works', async () => {
  await using na = await startTestAuthority();
  await revoke(na, 'ops-standard');
  assert.equal(warningsOf(na).length, 0);
  assert.equal(outcome(await revoke(na, 'ops-privileged')), '409 last_active_operator_key');
  assert.equal(outcome(await operate(na, '/admin/invite')), '200');
  assert.equal(audited(na, 'operator_key_revoked').length, 1);
  assert.equal(outcome(await revoke(na, 'nobody')), '404 unknown_operator_key');
  assert.equal(outcome(await revoke(na, 'ops-standard')), '200');
});

test('an operator may revoke its own key, which is unknown on the next request', async () => {
  await using na = await startTestAuthority();
  const answer = await revoke(na, 'ops-privileged');
  assert.equal(answer.body.already_revoked, false);
  assert.equal(answer.body.remaining_active_keys, 1);
  assert.equal(audited(na, 'operator_key_revoked')[0]?.revoked_by, 'ops-privileged');
  assert.equal(warningsOf(na).length, 1, 'no privileged key is left');
  const next = await operate(na, '/admin/invite');
  assert.equal(outcome(next), '401 admin_auth_failed');
  assert.equal(next.body.error.message, 'Unknown admin key');
  const remaining = await operate(na, '/admin/invite', {}, { operator: na.standard });
  assert.equal(outcome(remaining), '200');
});

test('a revoked key is refused on the next request, on every route and in both versions', async () => {
  await using na = await startTestAuthority();
  const operator = na.standard;
  assert.equal(outcome(await operate(na, '/admin/invite', {}, { operator })), '200');
  await revoke(na, 'ops-standard');
  for (const version of [1, 2] as const) {
    for (const [method, path] of [
      ['POST', '/admin/invite'],
      ['POST', '/admin/revoke'],
      ['POST', '/admin/operator-keys/ops-standard/revoke'],
      ['GET', '/nodes'],
    ] as const) {
      const answer = await operate(na, path, {}, { operator, version, method });
      assert.equal(outcome(answer), '401 admin_auth_failed', `${path} version ${version}`);
      assert.equal(answer.body.error.message, 'Unknown admin key');
    }
  }
  const reasons = audited(na, 'admin_auth_failed').map(({ reason }) => reason);
  assert.deepEqual(new Set(reasons), new Set(['revoked_key']));
});

test('a revocation survives restarts', async () => {
  await using na = await startTestAuthority();
  await revoke(na, 'ops-standard', { reason: 'key_compromise' });
  await using again = await na.restart();
  const refused = await operate(again, '/admin/invite', {}, { operator: na.standard });
  assert.equal(outcome(refused), '401 admin_auth_failed');
  assert.deepEqual((await revoke(again, 'ops-standard')).body, {
    key_id: 'ops-standard',
    revoked: true,
    already_revoked: true,
  });
  assert.equal(outcome(await revoke(again, 'ops-privileged')), '409 last_active_operator_key');
  await using third = await again.restart();
  const stillRefused = await operate(third, '/admin/invite', {}, { operator: na.standard });
  assert.equal(outcome(stillRefused), '401 admin_auth_failed');
});

test('a key id is given percent-encoded, and decoded once', async () => {
  const ids = ['ops 2', 'ops/2', 'ops%2F2', 'öps ✓', 'ops?x#y', 'ops+2', 'ops&2', '100%'];
  await using na = await startWith(ids.map((keyId) => ({ keyId, key: newKey() })));
  for (const [index, keyId] of ids.entries()) {
    const { body } = await revoke(na, keyId);
    assert.deepEqual([body.key_id, body.remaining_active_keys], [keyId, ids.length + 1 - index]);
    assert.equal(audited(na, 'operator_key_revoked').at(-1)?.key_id, keyId);
  }
});

test('two privileged operators who revoke each other at once cannot leave none', async () => {
  const rival = { keyId: 'rival', key: newKey() };
  await using na = await startWith([rival], 'privileged');
  await revoke(na, 'ops-standard');
  const answers = await Promise.all([
    revoke(na, 'rival'),
    revoke(na, 'ops-privileged', {}, rival),
    revoke(na, 'ops-privileged'),
    revoke(na, 'rival', {}, rival),
  ]);
  // A second revocation of the same key is also acknowledged.
  assert.equal(answers.filter(({ body }) => body.already_revoked === false).length, 1);
  const invites = [];
  for (const operator of [na.privileged, rival]) {
    invites.push((await operate(na, '/admin/invite', {}, { operator })).status);
  }
  assert.deepEqual(invites.sort(), [200, 401]);
});

function revoke(na: TestAuthority, keyId: string, body: JsonObject = {}, operator = na.privileged) {
  const path = `/admin/operator-keys/${encodeURIComponent(keyId)}/revoke`;
  return operate(na, path, body, { operator });
}

/** An authority that knows these operators in addition to its own two. */
function startWith(operators: readonly TestOperator[], tier = 'standard'): Promise<TestAuthority> {
  const keys = operators.map(({ keyId, key }) => [keyId, key.publicKey]);
  const tiers = operators.map(({ keyId }) => [keyId, tier]);
  return startTestAuthority({
    environment: {
      OPERATOR_PUBLIC_KEYS_JSON: JSON.stringify(Object.fromEntries(keys)),
      OPERATOR_KEY_TIERS_JSON: JSON.stringify(Object.fromEntries(tiers)),
    },
  });
}

function warningsOf(na: TestAuthority): string[] {
  return na.logLines.filter((line) => line.includes(' WARNING ') && line.includes('privileged'));
}

// Operator keys that operators add at run time [core-4-19].

function newOperator(keyId: string): TestOperator {
  return { keyId, key: newKey() };
}

function add(
  na: TestAuthority,
  { keyId, key }: TestOperator,
  tier = 'standard',
  operator = na.privileged,
): Promise<Received> {
  const body = { key_id: keyId, public_key: key.publicKey, tier };
  return operate(na, '/admin/operator-keys', body, { operator });
}

function setTier(na: TestAuthority, keyId: string, tier: string, operator = na.privileged) {
  return operate(na, `/admin/operator-keys/${keyId}/tier`, { tier }, { operator });
}

async function invites(na: TestAuthority, operator: TestOperator): Promise<string> {
  return outcome(await operate(na, '/admin/invite', {}, { operator }));
}

async function publishes(na: TestAuthority, operator: TestOperator): Promise<string> {
  return outcome(await operate(na, '/admin/policy', {}, { operator }));
}

async function keysOf(na: TestAuthority) {
  const call = { method: 'GET', operator: na.standard };
  const { body } = await operate(na, '/admin/operator-keys', {}, call);
  return body.operator_keys as { key_id: string; [member: string]: unknown }[];
}

test('an added key signs at once and after a restart, within its tier', async () => {
  await using na = await startTestAuthority();
  const [plain, chief] = [newOperator('ops-2'), newOperator('ops-3@example')];
  assert.equal(await invites(na, plain), '401 admin_auth_failed');
  const added = await add(na, plain);
  assert.deepEqual(added.body, {
    key_id: 'ops-2',
    public_key: plain.key.publicKey,
    tier: 'standard',
    added_at: formatInstant(na.clock.now()),
  });
  assert.deepEqual(auditEvents(na).at(-1), {
    type: 'operator_key_added',
    details: {
      ...{ key_id: 'ops-2', public_key: plain.key.publicKey },
      ...{ tier: 'standard', remote_addr: '127.0.0.1' },
    },
  });
  const many = await Promise.all(Array.from({ length: 8 }, () => invites(na, plain)));
  assert.deepEqual(new Set(many), new Set(['200']));
  assert.equal(outcome(await add(na, chief, 'privileged')), '200');
  await using again = await na.restart();
  assert.equal(await publishes(again, plain), '403 insufficient_operator_tier');
  assert.equal(await publishes(again, chief), '200');
  assert.equal(outcome(await revoke(again, 'ops-2', { reason: 'left' }, chief)), '200');
  assert.equal(await invites(again, plain), '401 admin_auth_failed');
  const rows = await keysOf(again);
  assert.deepEqual(
    rows.map(({ key_id, tier, status, source }) => [key_id, tier, status, source]),
    [
      ['ops-2', 'standard', 'revoked', 'operator'],
      ['ops-3@example', 'privileged', 'usable', 'operator'],
      ['ops-privileged', 'privileged', 'usable', 'configuration'],
      ['ops-standard', 'standard', 'usable', 'configuration'],
    ],
  );
  assert.deepEqual(rows[0], {
    key_id: 'ops-2',
    public_key: plain.key.publicKey,
    tier: 'standard',
    status: 'revoked',
    source: 'operator',
    added_at: formatInstant(na.clock.now()),
    added_by: 'ops-privileged',
    revoked_at: formatInstant(na.clock.now()),
    revoked_by: 'ops-3@example',
    reason: 'left',
  });
});

test('neither an id nor a public key is ever used again', async () => {
  await using na = await startTestAuthority();
  const [one, two] = [newOperator('one'), newOperator('two')];
  await add(na, one);
  await add(na, two);
  await revoke(na, 'two');
  await revoke(na, 'ops-standard');
  for (const taken of [
    one,
    two,
    { keyId: 'one', key: newKey() },
    { keyId: 'two', key: newKey() },
    { keyId: 'ops-privileged', key: newKey() },
    { keyId: 'three', key: one.key },
    { keyId: 'three', key: two.key },
    { keyId: 'three', key: na.privileged.key },
    { keyId: 'three', key: na.standard.key },
  ]) {
    assert.equal(outcome(await add(na, taken)), '409 operator_key_exists');
  }
  await using again = await na.restart();
  assert.equal(
    outcome(await add(again, { keyId: 'three', key: two.key })),
    '409 operator_key_exists',
  );
  assert.equal(outcome(await add(again, newOperator('three'))), '200');
});

test('invalid keys, ids and tiers are refused', async () => {
  const na = await shared();
  const good = { key_id: 'ops-2', public_key: newKey().publicKey, tier: 'standard' };
  for (const [wrong, expected] of [
    [{ key_id: '' }, '400 invalid_key_id'],
    [{ key_id: 'a b' }, '400 invalid_key_id'],
    [{ key_id: '.a' }, '400 invalid_key_id'],
    [{ key_id: 'x'.repeat(129) }, '400 invalid_key_id'],
    [{ key_id: 7 }, '400 invalid_key_id'],
    [{ public_key: 'AAAA' }, '400 invalid_public_key'],
    [{ tier: 'root' }, '400 invalid_tier'],
    [{ key_id: '__proto__' }, '200'],
  ] as const) {
    const answer = await operate(na, '/admin/operator-keys', { ...good, ...wrong });
    assert.equal(outcome(answer), expected);
  }
  assert.equal(outcome(await operate(na, '/admin/operator-keys', {})), '400 invalid_key_id');
});

test('a private key that the authority can recognize is refused where a public key belongs, and never shown', async () => {
  await using na = await startTestAuthority();
  const ofFile = (name: string) =>
    readKeyFile(join(na.dataDir, 'keys', `${name}.key`)).toString('base64');
  const [added, revoked, node] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte));
  const keyOf = (seed: Buffer | undefined) => signerFromSeed(seed ?? Buffer.alloc(32));
  await add(na, { keyId: 'added', key: keyOf(added) });
  await add(na, { keyId: 'revoked', key: keyOf(revoked) });
  await revoke(na, 'revoked');
  await nodeRequest(na, '/join', keyOf(node), { invite_token: await invite(na) });
  const seeds = {
    'the authority': ofFile('na'),
    'the root': ofFile('root'),
    'a configured operator': ofFile('operator-standard'),
    'the one who asks': ofFile('operator-privileged'),
    'an added operator': added?.toString('base64') ?? '',
    'a revoked operator': revoked?.toString('base64') ?? '',
    'a node': node?.toString('base64') ?? '',
  };
  const beta = sovereign('beta');
  const before = auditEvents(na).length;
  for (const [whose, seed] of Object.entries(seeds)) {
    for (const [path, body] of [
      ['/admin/operator-keys', { key_id: 'ops-9', public_key: seed, tier: 'standard' }],
      [
        '/admin/recognition-treaties',
        { subject_sovereign_id: 'b', subject_public_keys: [beta.key.publicKey, seed] },
      ],
      [
        '/admin/recognition-policy',
        {
          recognition_policy: {
            local_sovereign_id: 'alpha',
            recognized_issuers: [{ sovereign_id: 'b', public_keys: [seed] }],
          },
        },
      ],
      [
        '/admin/sovereign-revocation-feeds/import',
        { feed: beta.feed(na.clock.now(), 1), issuer_public_keys: { a: seed } },
      ],
      [
        '/admin/attestations',
        { subject_id: 'n', roles: ['role:client'], subject_public_key: seed },
      ],
      ['/admin/invite', { recipient_public_key: seed }],
      ['/admin/revoke', { node_public_key: seed }],
      // The id decides, but the key was sent.
      ['/admin/revoke', { cert_id: 'unknown', node_public_key: seed }],
      ['/admin/recognition-treaties/unknown/renew', { subject_public_keys: [seed] }],
    ] as const) {
      const answer = await operate(na, path, body);
      assert.equal(outcome(answer), '400 private_key_given', `of ${whose}, by ${path}`);
      assert.equal(answer.text.includes(seed), false);
    }
    assert.equal(na.logLines.join('').includes(seed), false);
    assert.equal((await get(na, '/metrics')).text.includes(seed), false);
  }
  assert.equal(auditEvents(na).length, before);
  const public_key = seeds['the root'];
  const body = { key_id: 'ops-9', public_key, tier: 'standard' };
  const operator = { keyId: 'ops-privileged', key: newKey() };
  const toStranger = await operate(na, '/admin/operator-keys', body, { operator });
  assert.equal(outcome(toStranger), '401 admin_auth_failed', 'a stranger does not learn of it');
  assert.equal(outcome(await add(na, newOperator('ops-9'))), '200');
});

test('of several ids that get one public key at once, one has it: 409 for the others', async () => {
  const na = await shared();
  const { key } = newOperator('');
  const operators = Array.from({ length: 8 }, (_, index) => ({ keyId: `twin-${index}`, key }));
  const answers = await Promise.all(operators.map((operator) => add(na, operator)));
  assert.deepEqual(answers.map(outcome).sort(), [
    '200',
    ...Array<string>(operators.length - 1).fill('409 operator_key_exists'),
  ]);
  assert.equal((await keysOf(na)).filter((row) => row.public_key === key.publicKey).length, 1);
});

test('the private key of a key that is still being stored is refused as a public key', async () => {
  const na = await shared();
  const seed = randomBytes(32);
  const key = signerFromSeed(seed);
  const given = { ...key, publicKey: seed.toString('base64') };
  const [added] = await Promise.all([
    add(na, { keyId: 'stored', key }),
    ...Array.from({ length: 8 }, (_, index) => add(na, { keyId: `as-${index}`, key: given })),
  ]);
  assert.equal(outcome(added), '200');
  // Only what came before the key could pass for a public key.
  assert.equal(audited(na, 'operator_key_added').at(-1)?.key_id, 'stored');
});

test('the tier of an added key can be changed, that of a configured or revoked key cannot', async () => {
  await using na = await startTestAuthority();
  const operator = newOperator('ops-2');
  await add(na, operator);
  assert.equal(
    outcome(await setTier(na, 'ops-2', 'privileged', operator)),
    '403 insufficient_operator_tier',
  );
  assert.equal(outcome(await setTier(na, 'ops-2', 'privileged')), '200');
  assert.equal(outcome(await setTier(na, 'ops-2', 'privileged')), '200');
  assert.equal(await publishes(na, operator), '200');
  await using again = await na.restart();
  assert.equal(await publishes(again, operator), '200');
  for (const [keyId, tier, expected] of [
    ['ops-standard', 'privileged', '409 operator_key_configured'],
    ['nobody', 'standard', '404 unknown_operator_key'],
    ['ops-2', 'root', '400 invalid_tier'],
  ] as const) {
    assert.equal(outcome(await setTier(again, keyId, tier)), expected);
  }
  await revoke(again, 'ops-privileged');
  const last = await setTier(again, 'ops-2', 'standard', operator);
  assert.equal(outcome(last), '409 last_privileged_operator_key');
  assert.deepEqual(
    audited(na, 'operator_key_tier_set').map(({ key_id, tier }) => [key_id, tier]),
    [['ops-2', 'privileged']],
  );
});

test('the last privileged key is kept if the request says so, and revoked otherwise', async () => {
  await using na = await startTestAuthority();
  const kept = { unless_last_privileged: true };
  const refused = await revoke(na, 'ops-privileged', kept);
  assert.equal(outcome(refused), '409 last_privileged_operator_key');
  assert.equal(await publishes(na, na.privileged), '200');
  const wrong = await revoke(na, 'ops-privileged', { unless_last_privileged: 'yes' });
  assert.equal(outcome(wrong), '422 request_validation_failed');
  const other = newOperator('ops-2');
  await add(na, other, 'privileged');
  assert.equal(outcome(await revoke(na, 'ops-privileged', kept)), '200');
  assert.equal(outcome(await revoke(na, 'ops-2', kept, other)), '409 last_privileged_operator_key');
  assert.equal(outcome(await revoke(na, 'ops-2', {}, other)), '200');
});

test('a start with another configuration governs only the keys that it names', async (t) => {
  const { folder: dataDir } = makeNetworkFolder();
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const clock = testClock();
  const [kept, named] = [newOperator('kept'), newOperator('named')];
  const start = (publicKey?: string) =>
    startTestAuthority({
      dataDir,
      clock,
      environment:
        publicKey === undefined
          ? {}
          : {
              OPERATOR_PUBLIC_KEYS_JSON: JSON.stringify({ named: publicKey }),
              OPERATOR_KEY_TIERS_JSON: JSON.stringify({ named: 'standard' }),
            },
    });
  {
    await using first = await start();
    await add(first, kept, 'privileged');
    await add(first, named, 'privileged');
  }
  {
    await using second = await start(named.key.publicKey);
    assert.equal(await publishes(second, named), '403 insufficient_operator_tier');
    assert.equal(await publishes(second, kept), '200');
    assert.equal(
      outcome(await setTier(second, 'named', 'privileged')),
      '409 operator_key_configured',
    );
  }
  await assert.rejects(
    start(newKey().publicKey),
    /Operator key named was added .* another public key/,
  );
  {
    await using third = await start();
    assert.equal(await publishes(third, named), '200', 'its own tier again');
    await revoke(third, 'named');
  }
  await using fourth = await start(named.key.publicKey);
  assert.equal(await invites(fourth, named), '401 admin_auth_failed', 'revoked for good');
});

// `operator-key create`: a key pair in two files, for an operator added after the first ones.

const USAGE = 2;
const UNUSABLE = 3;

const folder = mkdtempSync(join(tmpdir(), 'mesh-operator-key-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const create = (...args: string[]) =>
  runCommand(['operator-key', 'create', '--key-dir', folder, ...args]);

test('both files contain their half of the key, and only their owner can read them', async () => {
  const { code, stdout, stderr } = await create('ops-2', '--json');
  assert.equal(code, 0, stderr);
  const made = JSON.parse(stdout);
  assert.deepEqual([made.key_id, Object.keys(made).length], ['ops-2', 4]);
  assert.equal(signerFromSeed(readKeyFile(made.key_file)).publicKey, made.public_key);
  assert.equal(readKeyFile(made.public_key_file).toString('base64'), made.public_key);
  assert.equal(made.key_file, join(folder, 'ops-2.key'));
  assert.equal(statSync(made.key_file).mode & 0o777, 0o600);
});

test('an existing key is not replaced', async () => {
  assert.equal((await create('ops-3')).code, 0);
  const before = readFileSync(join(folder, 'ops-3.key'), 'utf8');
  const { code, stderr } = await create('ops-3');
  assert.equal(code, UNUSABLE);
  assert.match(stderr, /ops-3\.key already exists and is not overwritten/);
  assert.equal(readFileSync(join(folder, 'ops-3.key'), 'utf8'), before);
});

for (const keyId of ['', '../ops', 'a/b', '.hidden', '-ops', 'two words']) {
  test(`the key id ${JSON.stringify(keyId)} is refused as a file name`, async () => {
    const before = readdirSync(folder);
    const { code } = await create('--', keyId);
    assert.equal(code, USAGE);
    assert.deepEqual(readdirSync(folder), before);
  });
}
