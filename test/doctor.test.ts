/** `mesh-na doctor`: a healthy network has no findings, and each planted fault is found by its own check. */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { CHECKS, type Finding } from '../src/cli/doctor/finding.ts';
import { checkLocal, judgeSafety } from '../src/cli/doctor/local.ts';
import type { Machine } from '../src/cli/doctor/machine.ts';
import { checkRemote, type RemoteOptions } from '../src/cli/doctor/remote.ts';
import type { Fetch } from '../src/client/options.ts';
import { createBackup } from '../src/maintenance/backup/create.ts';
import type { GenesisBlock } from '../src/protocol/records/genesis.ts';
import { loadConfig } from '../src/server/config/load.ts';
import { openSigner } from '../src/server/threads/signer-thread.ts';
import { openLmdbSource } from '../src/store/lmdb/source.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { runProgram, runProgramBehind } from './support/child-server.ts';
import { HOUR, MINUTE, REAL_TIME, testClock } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { makeNetworkFolder, sharedScratch } from './support/folders.ts';
import { PROJECT } from './support/project.ts';
import { get, joinedNode, operate } from './support/requests.ts';
import { stage, succession } from './support/successions.ts';
import { makeTlsPair } from './support/tls-files.ts';
import { startReceiver } from './support/webhook-receiver.ts';

const DAY = 24 * HOUR;
const scratch = sharedScratch();
const healthy = join(scratch, 'healthy');
const other = join(scratch, 'other');
const clock = testClock();
const NOW = clock.now();

/** One network, with its head file and a backup next to it. */
before(async () => {
  await makeHealthy(healthy, 'alpha');
  await makeHealthy(other, 'other');
});

async function makeHealthy(folder: string, name: string): Promise<void> {
  mkdirSync(join(folder, 'backups'), { recursive: true });
  const data = join(folder, 'data');
  const { folder: made } = makeNetworkFolder(name, { now: NOW });
  cpSync(made, data, { recursive: true });
  chmodSync(data, 0o700);
  rmSync(made, { recursive: true });
  rmSync(join(data, 'keys', 'root.key'));
  const options = { dataDir: data, clock, environment: { MESH_HEAD_FILE: join(folder, 'head') } };
  const na = await startTestAuthority({ ...options, flags: { newHead: true } });
  await joinedNode(na);
  await operate(na, '/admin/recognition-treaties', {
    subject_sovereign_id: 'harbor',
    metadata: { note: 'seen by doctors' },
    subject_public_keys: [na.audience],
    validity_hours: 100,
  });
  await na.settle();
  cpSync(data, join(folder, 'earlier'), { recursive: true });
  await joinedNode(na);
  await na.stop();
  await backUp(folder, 'first.backup');
}

async function backUp(folder: string, name: string): Promise<void> {
  const data = join(folder, 'data');
  const { genesis, keySource, publicKey, keyId } = loadConfig({ dataDir: data }, {}, NOW);
  const keys = { current: { publicKey, keyId }, previous: null };
  const openKeys = () => openSigner(keySource(), keys);
  const source = await openLmdbSource(data);
  const path = join(folder, 'backups', name);
  const verify = verifySignature;
  const order = { source, genesis, openSigner: openKeys, verify, path, recipients: [], now: NOW };
  await createBackup(order);
  await source.close();
}

interface Patient {
  readonly folder: string;
  /** The data folder. */
  readonly data: string;
  environment: { [name: string]: string };
  machine: { -readonly [Name in keyof Machine]: Machine[Name] };
  deep: boolean;
}

function patient(): Patient {
  const folder = mkdtempSync(join(scratch, 'patient-'));
  for (const name of ['data', 'head', 'backups']) {
    cpSync(join(healthy, name), join(folder, name), { recursive: true });
  }
  return {
    folder,
    data: join(folder, 'data'),
    environment: {
      MESH_HEAD_FILE: join(folder, 'head'),
      MESH_BACKUP_TO: join(folder, 'backups'),
    },
    machine: {
      now: () => NOW + HOUR,
      nodeVersion: '22.12.0',
      glibcVersion: '2.39',
      freeBytes: async () => 2 ** 40,
      openFiles: () => 65_536,
    },
    deep: false,
  };
}

async function examine({ data, environment, machine, deep }: Patient) {
  const flags = { dataDir: data };
  const options = { flags, environment, otherVariables: [], machine, deep };
  return (await checkLocal(options)).findings;
}

/** The checks with findings, and their outcomes. */
function troubles(findings: readonly Finding[]): string[] {
  const troubled = findings.filter(({ outcome }) => outcome === 'wrong' || outcome === 'warning');
  return [...new Set(troubled.map(({ check, outcome }) => `${check} ${outcome}`))];
}

function edited(path: string, from: string | RegExp, to: string): void {
  const text = readFileSync(path, 'latin1');
  const fresh = text.replaceAll(new RegExp(from, 'g'), to);
  assert.notEqual(fresh, text, `${path} has no ${from}`);
  writeFileSync(path, fresh, 'latin1');
}

function keysOfOther(data: string): void {
  cpSync(join(other, 'data', 'keys', 'na.key'), join(data, 'keys', 'na.key'));
}

const on = (changes: Partial<Machine>) => (sick: Patient) => {
  Object.assign(sick.machine, changes);
};
const under = (variables: { readonly [name: string]: string }) => (sick: Patient) => {
  Object.assign(sick.environment, variables);
};
const days = (count: number) => (sick: Patient) => {
  sick.machine.now = () => NOW + count * DAY;
  delete sick.environment.MESH_BACKUP_TO;
};

const LOCAL: readonly (readonly [
  fault: string,
  expected: string,
  plant: (sick: Patient) => void,
])[] = [
  ['Node.js of before', 'node_version wrong', on({ nodeVersion: '18.20.4' })],
  ['a version without native parts', 'node_version wrong', on({ nodeVersion: '21.7.1' })],
  ['an old glibc', 'glibc wrong', on({ glibcVersion: '2.36' })],
  ['another C library', 'glibc wrong', on({ glibcVersion: null })],
  ['no data folder', 'data_folder wrong', ({ data }) => rmSync(data, { recursive: true })],
  ['a data folder for everybody', 'data_folder warning', ({ data }) => chmodSync(data, 0o777)],
  [
    'a broken file of settings',
    'configuration wrong',
    ({ data }) => appendFileSync(join(data, 'mesh-na.json'), '}'),
  ],
  [
    'a misspelt member in the file of settings',
    'configuration wrong',
    ({ data }) => edited(join(data, 'mesh-na.json'), '"network_name"', '"stor"'),
  ],
  ['a misspelt variable', 'configuration warning', under({ MESH_TREADS: '2' })],
  ['a port that is none', 'configuration wrong', under({ PORT: 'https' })],
  ['no genesis', 'genesis wrong', ({ data }) => rmSync(join(data, 'genesis.json'))],
  [
    'a genesis that is cut off',
    'genesis wrong',
    ({ data }) => truncateSync(join(data, 'genesis.json'), 100),
  ],
  [
    'an altered genesis',
    'first_policy warning, root_signature wrong',
    ({ data }) => edited(join(data, 'genesis.json'), '"v0.1"', '"v0.2"'),
  ],
  ['a delegation that has ended', 'delegation wrong', days(91)],
  ['a delegation that ends', 'delegation warning', days(80)],
  ['a clock of before', 'backups warning, clock wrong', on({ now: () => NOW - DAY })],
  [
    'no key of the authority',
    'authority_key wrong',
    ({ data }) => rmSync(join(data, 'keys', 'na.key')),
  ],
  ['the key of another authority', 'authority_key wrong', ({ data }) => keysOfOther(data)],
  [
    'a succession that was interrupted before the next key file was renamed',
    '',
    ({ data }) => {
      cpSync(join(data, 'keys', 'na.key'), join(data, 'keys', 'na.next.key'));
      keysOfOther(data);
    },
  ],
  [
    'a key that everybody can read',
    'key_modes wrong',
    ({ data }) => chmodSync(join(data, 'keys', 'na.key'), 0o644),
  ],
  [
    'the root key left there',
    'root_key warning',
    ({ data }) => cpSync(join(data, 'keys', 'na.key'), join(data, 'keys', 'root.key')),
  ],
  [
    'no privileged operator',
    'operator_keys warning',
    ({ data }) => edited(join(data, 'mesh-na.json'), '"privileged"', '"standard"'),
  ],
  ['plain HTTP on all addresses', 'exposure warning', under({ HOST: '0.0.0.0' })],
  ['a TLS key of another certificate', 'tls wrong', (sick) => serveTls(sick, 30, 'other')],
  ['a TLS certificate that ends', 'tls warning', (sick) => serveTls(sick, 5)],
  [
    'a TLS certificate that has ended',
    'tls wrong',
    (sick) => {
      serveTls(sick, 1);
      days(3)(sick);
    },
  ],
  ['a disk that is nearly full', 'free_space wrong', on({ freeBytes: async () => 2 ** 27 })],
  ['a disk that fills up', 'free_space warning', on({ freeBytes: async () => 2 ** 29 })],
  ['few open files', 'open_files warning', on({ openFiles: () => 1024 })],
  [
    'a state that is gone',
    'store wrong',
    ({ data }) => rmSync(join(data, 'state'), { recursive: true }),
  ],
  [
    'a state that is cut off',
    'store wrong',
    ({ data }) => truncateSync(join(data, 'state', 'data.mdb'), 12_288),
  ],
  [
    'the state of another network',
    'store wrong',
    ({ data }) => cpSync(join(other, 'data', 'state'), join(data, 'state'), { recursive: true }),
  ],
  [
    'a state whose process was killed',
    'head warning, last_stop warning',
    (sick) => {
      cpSync(join(healthy, 'earlier', 'state'), join(sick.data, 'state'), { recursive: true });
      delete sick.environment.MESH_HEAD_FILE;
    },
  ],
  [
    'a changed row, which only a full read finds',
    'rows wrong',
    (sick) => {
      sick.deep = true;
      edited(join(sick.data, 'state', 'data.mdb'), 'seen by doctors', 'seen by doctorz');
    },
  ],
  ['no head file', 'head wrong', ({ folder }) => rmSync(join(folder, 'head'))],
  ['no head that is kept', 'head warning', (sick) => void delete sick.environment.MESH_HEAD_FILE],
  [
    'an altered head',
    'head wrong',
    ({ folder }) => edited(join(folder, 'head'), '"revision":', '"revision":1'),
  ],
  [
    'an older state than the head',
    'head wrong, last_stop warning',
    ({ data }) =>
      cpSync(join(healthy, 'earlier', 'state'), join(data, 'state'), { recursive: true }),
  ],
  ['no backups', 'backups wrong', ({ folder }) => rmSync(join(folder, 'backups', 'first.backup'))],
  [
    'no folder of backups',
    'backups wrong, configuration wrong',
    ({ folder }) => rmSync(join(folder, 'backups'), { recursive: true }),
  ],
  [
    'backups of another network',
    'backups wrong',
    ({ folder }) => cpSync(join(other, 'backups'), join(folder, 'backups'), { recursive: true }),
  ],
  [
    'a webhook that leads to a private address',
    'webhooks wrong',
    ({ environment }) => {
      environment.MESH_WEBHOOKS = 'https://localhost/hook';
    },
  ],
  [
    'a webhook where nobody listens',
    'webhooks warning',
    ({ environment }) => {
      environment.MESH_WEBHOOKS = 'http://127.0.0.1:1/hook';
      environment.MESH_WEBHOOK_PRIVATE = '1';
    },
  ],
  ['an old backup', 'backups warning', on({ now: () => NOW + 3 * DAY })],
  [
    'a backup that is cut off, which only a full read finds',
    'backups wrong',
    (sick) => {
      sick.deep = true;
      const path = join(sick.folder, 'backups', 'first.backup');
      truncateSync(path, statSync(path).size - 10);
    },
  ],
];

suite('a succession', () => {
  const folder = join(scratch, 'succession');
  const ACTIVATES = NOW + DAY;

  before(async () => {
    const { folder: made } = makeNetworkFolder('alpha', { now: NOW });
    cpSync(made, folder, { recursive: true });
    rmSync(made, { recursive: true });
    const na = await startTestAuthority({ dataDir: folder, clock });
    const answer = await stage(na, await succession(na, { activatesIn: DAY }));
    assert.equal(answer.status, 200, answer.text);
    await na.stop();
  });

  async function examined(dataDir: string, now = NOW) {
    const machine = { ...patient().machine, now: () => now };
    const flags = { dataDir };
    const options = { flags, environment: {}, otherVariables: [], machine, deep: false };
    const { findings } = await checkLocal(options);
    const [found, ...rest] = findings.filter(({ check }) => check === 'succession');
    assert.deepEqual(rest, []);
    return [found?.outcome, found?.found];
  }

  test('is healthy while its key is available and its time has not come', async () => {
    const [outcome, found] = await examined(folder);
    assert.equal(outcome, 'ok');
    assert.match(found ?? '', /^The next authority key \S+ is held here, and takes over in 24h$/);
    assert.deepEqual(await examined(join(healthy, 'data')), ['ok', 'No succession is under way']);
  });

  test('is late when its time has passed', async () => {
    const [outcome, found] = await examined(folder, ACTIVATES + 2 * HOUR);
    assert.equal(outcome, 'warning');
    assert.match(found ?? '', / should have taken over 2h ago; the next start activates it$/);
  });

  test('fails without its key', async () => {
    const next = join(folder, 'keys', 'na.next.key');
    const key = readFileSync(next);
    rmSync(next);
    const [outcome, found] = await examined(folder);
    writeFileSync(next, key, { mode: 0o600 });
    assert.equal(outcome, 'wrong');
    assert.match(found ?? '', /^The next authority key \S+ is not held here$/);
  });

  test('is missing if there is a next key that is not staged', async () => {
    const { data } = patient();
    cpSync(join(folder, 'keys', 'na.next.key'), join(data, 'keys', 'na.next.key'));
    const [outcome, found] = await examined(data);
    assert.equal(outcome, 'warning');
    assert.match(found ?? '', /^There is a next key \S+, but no succession to it is staged$/);
  });
});

function serveTls({ folder, environment }: Patient, lifeDays: number, keyOf = 'own'): void {
  const own = makeTlsPair(folder, 'own', lifeDays);
  environment.MESH_TLS_CERT = own.certFile;
  environment.MESH_TLS_KEY = keyOf === 'own' ? own.keyFile : makeTlsPair(folder, keyOf).keyFile;
}

suite('on the machine of the authority', () => {
  for (const deep of [false, true]) {
    test(`a healthy network has no findings and is not changed: deep ${deep}`, async () => {
      const sick = { ...patient(), deep };
      const files = digests(sick.data);
      const findings = await examine(sick);
      assert.deepEqual(
        findings.filter(({ outcome }) => outcome !== 'ok'),
        [],
      );
      assert.deepEqual(digests(sick.data), files);
    });
  }

  for (const [fault, expected, plant] of LOCAL) {
    test(`${fault}: ${expected || 'all is well'}`, async () => {
      const sick = patient();
      plant(sick);
      const findings = await examine(sick);
      assert.deepEqual(troubles(findings).sort().join(', '), expected, JSON.stringify(findings));
      rmSync(sick.folder, { recursive: true, force: true });
    });
  }

  test('a webhook that listens is healthy, and nothing is posted to it', async () => {
    await using hook = await startReceiver({ authorityKey: '', now: () => NOW });
    const sick = patient();
    Object.assign(sick.environment, { MESH_WEBHOOKS: hook.url, MESH_WEBHOOK_PRIVATE: '1' });
    const [found] = (await examine(sick)).filter(({ check }) => check === 'webhooks');
    assert.equal(found?.found, `${hook.host} is reachable`);
    assert.equal(hook.requests, 0);
  });

  test('a network that was only just created has no state, which is healthy', async () => {
    const sick = patient();
    for (const name of ['state', 'mesh-na.state.json']) {
      rmSync(join(sick.data, name), { recursive: true, force: true });
    }
    assert.deepEqual(troubles(await examine(sick)), []);
  });

  test('a database must keep what it acknowledges', () => {
    const well = { place: 'db', full_page_writes: 'on', synchronous_commit: 'on' };
    const alone = { ...well, synchronous_standby_names: '' };
    assert.equal(judgeSafety(alone).outcome, 'ok');
    assert.equal(judgeSafety({ ...alone, full_page_writes: 'off' }).outcome, 'wrong');
    const standby = { ...well, synchronous_standby_names: 'one' };
    assert.equal(judgeSafety(standby).outcome, 'ok');
    assert.equal(judgeSafety({ ...standby, synchronous_commit: 'local' }).outcome, 'warning');
  });

  test('a database that does not answer is named, and so is the state in it', async () => {
    const sick = patient();
    sick.environment.MESH_STORE = 'postgresql://mesh@127.0.0.1:1/mesh';
    assert.deepEqual(troubles(await examine(sick)), ['database wrong', 'store wrong']);
  });
});

/** The digest of every file except the lock file, in which readers register. */
function digests(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'lock.mdb')
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => `${path} ${sha256Hex(readFileSync(path))}`);
}

suite('from outside', () => {
  let na: TestAuthority;
  let options: RemoteOptions;
  before(async () => {
    na = await startTestAuthority();
    const genesis = (await get(na, '/genesis')).body as GenesisBlock;
    options = { url: na.url, fetch, ca: null, genesis, version: 'test', now: na.clock.now };
  });
  after(() => na[Symbol.asyncDispose]());

  /** Alters the route's answers, as a faulty or hostile server would. */
  const altering =
    (route: string, alter: (text: string) => string, status?: number) =>
    (): Partial<RemoteOptions> => ({
      fetch: altered(options.fetch, route, alter, status),
    });

  test('a healthy network has no findings', async () => {
    for (const genesis of [options.genesis, null]) {
      const findings = await checkRemote({ ...options, genesis });
      assert.deepEqual(
        findings.filter(({ outcome }) => outcome !== 'ok'),
        [],
      );
    }
  });

  const posture = (status: string) => (text: string) =>
    text.replace(
      /"posture":\{"status":"ok","findings":\[\]/,
      `"posture":{"status":"${status}","findings":[{"rule":"disk","severity":"${status}","sentence":"Full."}]`,
    );
  const REMOTE: readonly (readonly [string, string, () => Partial<RemoteOptions>])[] = [
    ['nobody there', 'reachable wrong', () => ({ url: 'http://127.0.0.1:1' })],
    ['another server', 'reachable wrong', altering('/healthz', () => '<html>')],
    [
      'an authority that waits for a restore',
      'ready wrong',
      altering(
        '/readyz',
        () => '{"error":{"code":"restore_pending","message":"","details":{}}}',
        503,
      ),
    ],
    [
      'another network',
      'network wrong',
      () => ({ genesis: { ...genesisOf(options), root_public_key: na.audience } }),
    ],
    [
      'an altered genesis',
      'network wrong',
      altering('/genesis', (text) => text.replace('v0.1', 'v0.2')),
    ],
    [
      'a genesis of before its renewal',
      'network warning',
      () => {
        const genesis = genesisOf(options);
        const authority = { ...genesis.network_authority, valid_to: '2099-01-01T00:00:00Z' };
        return { genesis: { ...genesis, network_authority: authority } };
      },
    ],
    [
      'an altered revocation list',
      'crl wrong',
      altering('/crl', (text) => text.replace('"sequence":0', '"sequence":1')),
    ],
    [
      'no revocation list',
      'crl wrong',
      altering('/crl', () => '{"error":{"code":"x","message":"x","details":{}}}', 503),
    ],
    [
      'an altered feed',
      'feed wrong',
      altering('/sovereign-revocation-feed', (text) =>
        text.replace('"sequence":0', '"sequence":1'),
      ),
    ],
    [
      'a list from a cache',
      'clock_skew wrong, crl wrong',
      () => ({ now: () => na.clock.now() + 3 * DAY }),
    ],
    [
      'lists that are dated ahead',
      'clock_skew wrong, crl wrong, feed wrong',
      () => ({ now: () => na.clock.now() - 10 * MINUTE }),
    ],
    ['a clock that is behind', 'clock_skew wrong', () => ({ now: () => na.clock.now() + 301_000 })],
    [
      'a clock that is a little ahead',
      'clock_skew warning',
      () => ({ now: () => na.clock.now() - 61_000 }),
    ],
    [
      'an address that clients do not know',
      'public_url warning',
      altering('/sovereign.json', (text) => text.replaceAll(na.url, 'http://10.0.0.1')),
    ],
    [
      'what the authority finds grave',
      'posture wrong',
      altering('/dashboard.json', posture('action')),
    ],
    [
      'what the authority finds',
      'posture warning',
      altering('/dashboard.json', posture('attention')),
    ],
    ['another version', 'version warning', () => ({ version: '0.0.1' })],
  ];
  for (const [fault, expected, plant] of REMOTE) {
    test(`${fault}: ${expected || 'all is well'}`, async () => {
      const findings = await checkRemote({ ...options, ...plant() });
      assert.deepEqual(troubles(findings).sort().join(', '), expected, JSON.stringify(findings));
    });
  }

  test('a waiting instance is not checked further', async () => {
    const waits =
      '{"error":{"code":"service_not_ready","message":"","details":{"role":"standby"}}}';
    const findings = await checkRemote({ ...options, ...altering('/readyz', () => waits, 503)() });
    assert.deepEqual(
      findings.map(({ check, outcome }) => `${check} ${outcome}`),
      ['reachable ok', 'ready ok', 'network ok'],
    );
  });

  for (const [mode, outcome] of [
    ['standby', 'ok'],
    ['linked', 'wrong'],
  ]) {
    test(`a standby that reaches no active instance is ${outcome} if it is ${mode}, and is no man in the middle`, async () => {
      const refused = (code: string, details: object) =>
        new Response(JSON.stringify({ error: { code, message: '', details } }), { status: 503 });
      const answer: Fetch = async (url, init) => {
        const { pathname } = new URL(url);
        if (pathname === '/healthz') return options.fetch(url, init);
        if (pathname !== '/readyz') return refused('authority_unavailable', {});
        return refused('service_not_ready', { role: 'standby', ha_mode: mode });
      };
      const findings = await checkRemote({ ...options, fetch: answer });
      assert.deepEqual(
        findings.map((found) => `${found.check} ${found.outcome}`),
        ['reachable ok', `ready ${outcome}`],
      );
    });
  }

  for (const [code, details] of [
    ['service_not_ready', { problem: 'the state cannot be written', ha_mode: 'single' }],
    ['restore_pending', { reason: 'the state is older' }],
  ] as const) {
    test(`an authority with ${code} says why`, async () => {
      const answer = JSON.stringify({ error: { code, message: '', details } });
      const refused = altering('/readyz', () => answer, 503);
      const findings = await checkRemote({ ...options, ...refused() });
      const [why] = Object.values(details);
      const ready = findings.find(({ check }) => check === 'ready');
      assert.equal(ready?.found, `It is not ready (${code}): ${why}`);
    });
  }

  test('closed metrics are not a fault', async () => {
    const findings = await checkRemote({ ...options, ...altering('/metrics', () => '', 404)() });
    assert.deepEqual(troubles(findings), []);
    assert.equal(findings.find(({ check }) => check === 'version')?.outcome, 'unknown');
  });

  test('a client that can choose its own address is detected', async () => {
    await using open = await startTestAuthority({ environment: { MESH_PROXY_HOPS: '1' } });
    const findings = await checkRemote({
      ...options,
      url: open.url,
      genesis: null,
      now: open.clock.now,
    });
    assert.deepEqual(troubles(findings), ['forwarded warning']);
  });

  test('a TLS certificate is judged, even if nobody trusts it', async () => {
    const { certFile, keyFile } = makeTlsPair(scratch, 'served', 30);
    const flags = { tlsCert: certFile, tlsKey: keyFile };
    await using served = await startTestAuthority({ flags, clock: REAL_TIME });
    const args = ['doctor', '--url', served.url, '--data-dir', served.dataDir];
    rmSync(join(served.dataDir, 'keys', 'root.key'));
    const [strange, trusted] = await Promise.all([
      runCommand([...args, '--json']),
      runCommand([...args, '--ca', certFile, '--json']),
    ]);
    const checks = (text: string) => JSON.parse(text).checks as Finding[];
    assert.deepEqual(troubles(checks(strange.stdout)), ['head warning', 'tls wrong']);
    assert.equal(strange.code, 4);
    assert.deepEqual(
      troubles(checks(trusted.stdout)),
      ['head warning', 'version warning'],
      trusted.stderr,
    );
    assert.equal(trusted.code, 0);
  });
});

function genesisOf({ genesis }: RemoteOptions): GenesisBlock {
  assert.ok(genesis !== null);
  return genesis;
}

function altered(
  ask: Fetch,
  route: string,
  alter: (text: string) => string,
  status?: number,
): Fetch {
  return async (url, init) => {
    const answer = await ask(url, init);
    if (new URL(url).pathname !== route) return answer;
    const text = alter(await answer.text());
    return new Response(text, { status: status ?? answer.status });
  };
}

suite('the command', () => {
  test('prints problems first while the folder is served, each check on request, and exits with 4 if something is wrong', async () => {
    await using na = await startTestAuthority({ clock: REAL_TIME });
    const args = ['doctor', '--data-dir', na.dataDir, '--deep'];
    const served = await runCommand([...args, '--all']);
    assert.equal(served.code, 0, served.stdout + served.stderr);
    assert.match(served.stdout, /^ok {7}holder {10}Process \d+ on \S+ writes the state$/m);
    assert.match(served.stdout, /^ok {7}rows /m);
    assert.match(
      served.stdout,
      /^warning {2}root_key {8}\S+root\.key is on this machine\. An intruder [^.]+\. Move it [^.]+\.$/m,
    );
    assert.match(served.stdout, /^warning {2}head {12}No head file is configured/m);
    assert.match(served.stdout, /\n\d+ checks: 0 wrong, 2 warnings, 1 unknown\.\n$/);
    const inShort = await runCommand(args);
    const fine = '(\\w+, )*holder, (\\w+, )*rows(, \\w+)* \\(--all shows what was found\\)';
    assert.match(
      inShort.stdout,
      new RegExp(`^(warning .+\\n){2}unknown .+\\nok {7}${fine}\\n\\d+ checks: .+\\n$`),
    );
    chmodSync(join(na.dataDir, 'keys', 'na.key'), 0o604);
    const exposed = await runCommand([...args, '--json']);
    assert.equal(exposed.code, 4);
    assert.equal(exposed.stderr, '');
    const { wrong, checks } = JSON.parse(exposed.stdout);
    assert.equal(wrong, 1);
    const [found] = checks.filter(({ outcome }: Finding) => outcome === 'wrong');
    assert.deepEqual(Object.keys(found), ['check', 'outcome', 'found', 'why', 'cure']);
    assert.equal(found.why, CHECKS.key_modes);
  });

  test('says once for each check why it matters', async () => {
    const { data } = patient();
    const { stdout } = await runCommand(['doctor', '--data-dir', data], {
      PORT: 'b',
      MESH_THREADS: 'c',
    });
    assert.equal(stdout.match(/^wrong {4}configuration /gm)?.length, 2, stdout);
    assert.equal(stdout.split(CHECKS.configuration).length, 2, stdout);
  });

  test('loads no native code for an authority elsewhere', async () => {
    const ended = await runProgram(['doctor', '--url', 'http://127.0.0.1:1'], {
      NODE_OPTIONS: '--no-addons',
    });
    assert.equal(ended.code, 4, ended.stderr);
    assert.match(ended.stdout, /^wrong {4}reachable /);
  });

  test('skips no check of a data folder that this user may not read', async () => {
    const isRoot = process.getuid?.() === 0;
    mkdirSync('mesh-data', { mode: isRoot ? 0o700 : 0o000 });
    const user = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
    try {
      const ended = await runProgramBehind(user, ['doctor', '--url', 'http://127.0.0.1:1']);
      assert.equal(ended.code, 4, ended.stderr);
      assert.match(
        ended.stdout,
        /^wrong {4}data_folder {5}This user cannot read and write \S*mesh-data/m,
      );
    } finally {
      chmodSync('mesh-data', 0o700);
      rmSync('mesh-data', { recursive: true });
    }
  });
});

test('every check is documented for operators', () => {
  const text = readFileSync(new URL('docs/monitoring.md', PROJECT), 'utf8');
  const missing = Object.keys(CHECKS).filter((name) => !text.includes(`| \`${name}\` |`));
  assert.deepEqual(missing, []);
});
