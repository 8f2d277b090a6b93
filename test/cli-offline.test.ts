/** `--offline`: the verdict that an authority would give, based on files alone. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { EXIT, outcomeOf } from '../src/cli/kernel/errors.ts';
import { offlineVerdicts, type Verifications } from '../src/cli/protocol/verification.ts';
import { MAX_KEYS } from '../src/protocol/records/record.ts';
import { startTestAuthority } from './support/authority.ts';
import {
  chainOf,
  countedKey,
  FIRST,
  HOUR,
  NETWORK,
  START,
  type Step,
} from './support/authority-chain.ts';
import { runProgram } from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { endOf } from './support/failed-command.ts';
import { networkFolder, scratchFolder, sharedScratch } from './support/folders.ts';
import { casesOf, GOLDEN, type GoldenCase } from './support/golden-trust.ts';
import { type HostileAuthority, startHostileAuthority } from './support/hostile-authority.ts';
import { get, operate } from './support/requests.ts';
import { type Sovereign, sovereign } from './support/trust.ts';

const METHODS: Readonly<Record<string, keyof Verifications>> = {
  '/attestations/verify': 'verifyAttestation',
  '/attestations/verify-with-treaty': 'verifyAttestationWithTreaty',
  '/recognition-treaties/verify': 'verifyTreaty',
  '/agreements/verify': 'verifyAgreement',
  '/boundary/verify': 'verifyDecision',
  '/trust-evidence/verify': 'verifyEvidence',
  '/disclosure/verify': 'verifyMembership',
  '/consensus/verify': 'verifyConsensus',
  '/data-usage/verify': 'verifyIntent',
};

/** Members that the vectors leave open, and the member that only an offline answer has. */
const OWN = new Set(['violation_id', 'detail', 'detected_at', 'unchecked']);

/** The answer as JSON, without the members that differ. */
function comparable(answer: unknown): unknown {
  return JSON.parse(
    JSON.stringify(answer, (name, value: JsonValue) => (OWN.has(name) ? undefined : value)),
  );
}

suite('offline, the records of the vectors get the verdicts of the vectors', () => {
  const authority = offlineVerdicts({
    authorityKeys: () => [GOLDEN.keys.na?.public_base64 ?? ''],
    sovereignId: GOLDEN.meta.network_name,
    feed: null,
    runtime: { now: () => Date.parse(GOLDEN.meta.clock), uuid: () => crypto.randomUUID() },
  });
  const verdictOn = ({ endpoint, request }: GoldenCase): Promise<unknown> => {
    const method = METHODS[endpoint];
    assert.ok(method !== undefined);
    return (authority[method] as (request: JsonObject) => Promise<unknown>)(request);
  };
  const known = casesOf('verify').filter(
    ({ endpoint, status, rawBody }) => endpoint in METHODS && status === 200 && rawBody === null,
  );

  test('there are many', () => assert.ok(known.length > 90, String(known.length)));

  for (const golden of known) {
    test(`${golden.endpoint}: ${golden.name}`, async () => {
      assert.deepEqual(comparable(await verdictOn(golden)), comparable(golden.body));
    });
  }

  test('a command may name more keys than a request may', async () => {
    const [genuine] = known.filter(({ endpoint }) => endpoint === '/trust-evidence/verify');
    assert.ok(genuine !== undefined);
    const key = GOLDEN.keys.na?.public_base64 ?? '';
    const request = { ...genuine.request, issuer_public_keys: Array(MAX_KEYS + 1).fill(key) };
    assert.ok(isJsonObject((await verdictOn({ ...genuine, request })) as JsonObject));
  });

  test('invalid records are refused with the authority’s codes', async () => {
    for (const [endpoint, method] of Object.entries(METHODS)) {
      const [genuine] = known.filter((golden) => golden.endpoint === endpoint);
      assert.ok(genuine !== undefined, endpoint);
      const request = Object.fromEntries(
        Object.entries(genuine.request).map(([name, value]) =>
          name.endsWith('_keys') || !isJsonObject(value) ? [name, value] : [name, {}],
        ),
      );
      await assert.rejects(verdictOn({ ...genuine, request }), (error) => {
        const { exit, code } = outcomeOf(error);
        assert.equal(exit, EXIT.refused, method);
        assert.match(code, /^invalid_/);
        return true;
      });
    }
  });
});

/** When a process ends, prints the native modules that it has loaded. */
const LISTS_NATIVE_MODULES = `data:text/javascript,${encodeURIComponent(`
  process.on('exit', () => {
    const { sharedObjects } = process.report.getReport();
    const native = sharedObjects.filter((path) => path.endsWith('.node'));
    process.stderr.write('native: ' + JSON.stringify(native));
  });
`)}`;

suite('a record in a file', () => {
  const folder = sharedScratch();
  let listener: HostileAuthority;
  let alpha: Sovereign;
  let beta: Sovereign;
  before(async () => {
    listener = await startHostileAuthority();
    [alpha, beta] = [sovereign('alpha'), sovereign('beta')];
  });
  after(() => listener[Symbol.asyncDispose]());

  const save = (name: string, record: JsonObject): string => {
    const path = join(folder, name);
    writeFileSync(path, jsonText(record));
    return path;
  };
  const offline = (args: readonly string[]) =>
    runCommand([...args, '--offline'], { MESH_URL: listener.url, XDG_CONFIG_HOME: folder });

  test('is verified without contacting anyone, and without native code', async () => {
    const now = Date.now();
    const attestation = beta.attestation(now);
    const files = [
      save('attestation.json', attestation),
      ...['--treaty', save('treaty.json', alpha.treaty(now, beta))],
    ];
    const command = ['attestation', 'verify', ...files, '--treaty-key', alpha.key.publicKey];
    const { attestation_id: id } = attestation;
    const revoking = { revoked_attestation_ids: [id] } as JsonObject;
    const feed = (name: string, record: JsonObject) => ['--feed', save(name, record)];
    const [accepted, revoked, foreign] = await Promise.all([
      runProgram([...command, '--offline'], {
        MESH_URL: listener.url,
        XDG_CONFIG_HOME: folder,
        NODE_OPTIONS: `--import=${LISTS_NATIVE_MODULES}`,
      }),
      offline([...command, '--json', ...feed('feed.json', beta.feed(now, 1, revoking))]),
      offline([...command, '--json', ...feed('other.json', alpha.feed(now, 1, revoking))]),
    ]);
    assert.equal(accepted.code, EXIT.done, accepted.stderr);
    assert.match(
      accepted.stdout,
      /^Accepted: attestation .*\nNot known offline: whether the treaty was revoked, whether the attestation was revoked\.\n$/,
    );
    assert.match(accepted.stderr, /native: \[\]$/);
    assert.equal(revoked.code, EXIT.refused, revoked.stderr);
    const verdict = JSON.parse(revoked.stdout);
    assert.equal(verdict.reason, 'attestation_locally_revoked');
    assert.deepEqual(verdict.unchecked, ['treaty_revocation']);
    assert.equal(foreign.code, EXIT.refused);
    assert.equal(JSON.parse(foreign.stderr).error.code, 'wrong_issuer');
    assert.deepEqual(listener.asked, []);
  });

  test('is verified with the key of a genesis or a profile, and never with an unnamed key', async () => {
    await using na = await startTestAuthority({ clock: REAL_TIME });
    const { body } = await operate(na, '/admin/recognition-treaties', {
      subject_sovereign_id: 'beta',
      subject_public_keys: [beta.key.publicKey],
    });
    const verify = ['treaty', 'verify', save('issued.json', body as JsonObject)];
    const genesis = join(na.dataDir, 'genesis.json');
    const key = join(na.dataDir, 'keys', 'operator-privileged.key');
    const saved = await runCommand(
      ['connect', na.url, '--authority-key', na.audience, '--key-file', key, '--profile', 'na'],
      { XDG_CONFIG_HOME: folder },
    );
    assert.equal(saved.code, EXIT.done, saved.stderr);
    const [byGenesis, byProfile] = await Promise.all([
      offline([...verify, '--genesis', genesis]),
      offline([...verify, '--profile', 'na']),
    ]);
    for (const { code, stderr } of [byGenesis, byProfile]) assert.equal(code, EXIT.done, stderr);
    const config = ['--config-home', folder];
    const unnamed = await endOf([...verify, '--offline', ...config]);
    assert.deepEqual([unnamed.exit, unnamed.code], [EXIT.usage, 'usage']);
    const absent = await endOf([...verify, '--offline', ...config, '--profile', 'nobody']);
    assert.equal(absent.exit, EXIT.unusable);
    const online = await endOf([...verify, '--genesis', genesis]);
    assert.match(online.message, /^--genesis needs --offline$/);
  });

  test('is verified with any successor of a profile’s key, if none was stolen', async () => {
    const now = Date.now();
    const at = (now - START) / HOUR - 1;
    const connect = ['connect', listener.url, '--authority-key', FIRST.publicKey];
    await using network = networkFolder('alpha');
    const keyFile = join(network.path, 'keys', 'operator-standard.key');
    const profile = ['--key-file', keyFile, '--profile', 'old', '--offline'];
    const saved = await runCommand([...connect, ...profile], { XDG_CONFIG_HOME: folder });
    assert.equal(saved.code, EXIT.done, saved.stderr);
    const treaty = save('later.json', sovereign('alpha', countedKey(2)).treaty(now, beta));
    const verify = ['treaty', 'verify', treaty, '--profile', 'old'];
    const keys = (name: string, ...steps: Step[]) => {
      const document = { network_name: NETWORK, successions: chainOf(steps) };
      return ['--authority-keys', save(name, document)];
    };
    const last = save('last.json', sovereign('alpha', countedKey(34)).treaty(now, beta));
    const many = Array.from({ length: 33 }, (_, n): Step => ({ kind: 'planned', at: at - 33 + n }));
    const [without, followed, stolen, afterMany] = await Promise.all([
      offline(verify),
      offline([...verify, ...keys('planned.json', { kind: 'planned', at })]),
      offline([...verify, ...keys('stolen.json', { kind: 'compromise', at })]),
      offline(['treaty', 'verify', last, '--profile', 'old', ...keys('many.json', ...many)]),
    ]);
    assert.equal(afterMany.code, EXIT.done, afterMany.stdout + afterMany.stderr);
    assert.equal(without.code, EXIT.refused);
    assert.equal(followed.code, EXIT.done, followed.stderr);
    assert.equal(stolen.code, EXIT.refused);
    assert.match(
      stolen.stderr,
      /authority keys are rejected: [^.]*; pin the root key of the network/,
    );
    const online = await endOf([...verify.slice(0, 3), '--authority-keys', treaty]);
    assert.match(online.message, /^--authority-keys needs --offline$/);
  });
});

test('a node checks its certificate against its own data, and against a newer list in a file', async () => {
  await using scratch = scratchFolder();
  const { path: folder } = scratch;
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const { body } = await operate(na, '/admin/invite');
  const node = ['--node-dir', join(folder, 'node')];
  const genesis = ['--genesis', join(na.dataDir, 'genesis.json')];
  const token = String((body as JsonObject).token_id);
  const settings = { MESH_URL: na.url };
  const joined = await runCommand(
    ['node', 'join', '--token', token, ...genesis, ...node, '--json'],
    settings,
  );
  assert.equal(joined.code, EXIT.done, joined.stderr);
  const { cert_id } = JSON.parse(joined.stdout);
  await operate(na, '/admin/revoke', { cert_id });
  const crl = join(folder, 'crl.json');
  writeFileSync(crl, (await get(na, '/crl')).text);
  const status = ['node', 'status', '--offline', '--json', ...node];
  const nowhere = { MESH_URL: 'http://127.0.0.1:1' };
  const [held, newer, unknown] = await Promise.all([
    runCommand(status, nowhere),
    runCommand([...status, '--crl', crl], nowhere),
    runCommand(['node', 'status', '--offline', '--node-dir', folder], nowhere),
  ]);
  assert.equal(held.code, EXIT.done, held.stderr);
  assert.equal(JSON.parse(held.stdout).valid, true);
  assert.equal(newer.code, EXIT.refused, newer.stderr);
  assert.equal(JSON.parse(newer.stdout).reason, 'revoked');
  assert.equal(unknown.code, EXIT.unusable);
  const { code, stderr } = await runCommand(['node', 'status', ...node], nowhere);
  assert.equal(code, EXIT.unreachable);
  assert.match(stderr, /^mesh-na: Without the authority, --offline judges by what \S+node holds\n/);
});
