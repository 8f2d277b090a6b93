/** Policy versions [service-states-policy], [service-operator-endpoints], [core-4-10], [core-5-4]. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openAuthority } from '../src/authority/open.ts';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { createAuthoritySigner, heldHere } from '../src/base/signer/authority-signer.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import {
  createDocumentCache,
  createDocumentPublisher,
} from '../src/protocol/contract/documents.ts';
import { signRecord, soleSigner } from '../src/protocol/records/signed-record.ts';
import { openLmdbStore } from '../src/store/lmdb/store.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { makeNetworkFolder, networkFolder } from './support/folders.ts';
import { valuesExcept } from './support/hostile.ts';
import {
  auditEvents,
  get,
  newKey,
  type OperatorCall,
  operate,
  outcome,
  type Received,
} from './support/requests.ts';
import { type Cases, checkTable, inEach } from './support/tables.ts';
import { audited, parsed, UUID, verifies } from './support/trust.ts';
import { unsignedGenesis } from './support/unsigned-genesis.ts';

const PUBLISH = '/admin/policy';
const ROLL_BACK = '/admin/policy/rollback';
const HISTORY = '/admin/policy/history';
/** For tests that earlier publications do not affect. */
const shared = sharedAuthority();

const DEFAULTS = {
  min_client_version: '0.1.0',
  allowed_ports: [443, 8443],
  allowed_services: [],
  routing: { preferred_transports: ['quic', 'wireguard'], max_hops: 6 },
};

/** What the authority puts on what it publishes now. */
function stampOf(na: TestAuthority) {
  return { issued_at: formatInstant(na.clock.now()), issued_by: na.audience };
}

interface VersionRow {
  readonly policy_id: string;
  readonly active: boolean;
  readonly created_at: string;
  readonly policy: JsonObject;
}

test('a policy published without terms has every default, stamped and signed by the authority', async () => {
  const na = await shared();
  na.clock.advance(1234);
  // Stamps and signatures from a client are ignored, and so are unknown members.
  for (const ignored of [
    {},
    { issued_by: 'client', signatures: [{ key_id: 'client', sig: newKey().sign('p') }] },
    { issued_at: '2020-01-01T00:00:00Z', active: false, unknown: { deep: [1] } },
    { signatures: 7, issued_at: [] },
  ] as JsonObject[]) {
    const answer = await publish(na, ignored);
    assert.equal(answer.status, 200);
    const { policy_id, signatures, ...rest } = answer.body;
    assert.match(policy_id, /^policy-/);
    assert.match(policy_id.slice('policy-'.length), UUID);
    assert.deepEqual(rest, { ...DEFAULTS, ...stampOf(na) });
    assert.equal(signatures.length, 1);
    assert.equal(signatures[0].key_id, na.audience);
    assert.ok(verifies(parsed(answer), na.audience));
  }
});

test('a policy contains what the operator chose', async () => {
  const na = await shared();
  const terms = {
    policy_id: 'winter',
    min_client_version: '1.2.0',
    allowed_ports: [22, 0, -1, 70_000],
    allowed_services: ['mail', ''],
    routing: { preferred_transports: ['tcp'], max_hops: 3 },
  };
  const { body } = await publish(na, terms);
  const { issued_at, issued_by, signatures, ...chosen } = body;
  assert.deepEqual(chosen, terms);
  assert.deepEqual((await get(na, '/policy')).body, body);
  for (const [routing, expected] of [
    [{ preferred_transports: [] }, { preferred_transports: [] }],
    [{ max_hops: 0 }, { max_hops: 0 }],
    [{}, {}],
    [{ max_hops: 1, extra: true }, { max_hops: 1 }],
  ] as [JsonObject, JsonObject][]) {
    const published = (await publish(na, { routing })).body.routing;
    assert.deepEqual(published, { ...DEFAULTS.routing, ...expected });
  }
  const floats = await publish(na, {
    allowed_ports: [new JsonFloat(443), 8443],
    routing: { max_hops: new JsonFloat(4) },
  });
  assert.match(floats.text, /"allowed_ports":\[443,8443\]/);
  assert.match(floats.text, /"max_hops":4[,}]/);
  assert.ok(verifies(parsed(floats), na.audience));
});

test('the configured label of the authority key is in the policy, and the configured status in the answer', async () => {
  const environment = { NA_KEY_ID: 'na-2025-q1', MESH_CREATED_STATUS: '201' };
  await using na = await startTestAuthority({ environment });
  const answer = await publish(na, { policy_id: 'a' });
  assert.equal(answer.status, 201);
  assert.equal(answer.body.issued_by, 'na-2025-q1');
  assert.equal(answer.body.signatures[0].key_id, 'na-2025-q1');
  assert.ok(verifies(parsed(answer), na.audience));
  assert.equal((await rollBack(na, { policy_id: 'a' })).status, 200);
  assert.equal(outcome(await publish(na, { policy_id: 7 })), '422 request_validation_failed');
});

test('a field of the wrong type is 422 and publishes nothing', async () => {
  await using na = await startTestAuthority();
  const before = (await publish(na, { policy_id: 'kept' })).text;
  const noText = valuesExcept('a string', 'an empty string');
  const noTextNorNull = valuesExcept('a string', 'an empty string', 'null');
  const noListNorNull = valuesExcept('a list', 'an empty list', 'null');
  const noInteger = valuesExcept('the integer 7');
  const noList = valuesExcept('a list', 'an empty list');
  const asItem = ([name, value]: readonly [string, JsonValue]) => [`[${name}]`, [value]] as const;
  const wrong: Cases<JsonObject> = {
    ...inEach('policy_id', [...noTextNorNull, ['an empty string', ''], ['long', 'x'.repeat(257)]]),
    ...inEach('min_client_version', noTextNorNull),
    ...inEach('allowed_ports', [...noListNorNull, ...noInteger.map(asItem)]),
    ...inEach('allowed_services', [...noListNorNull, ...noText.map(asItem)]),
    ...inEach('routing', [
      ...valuesExcept('an object', 'an empty object', 'null'),
      ...noInteger.map(([name, max_hops]) => [`max_hops ${name}`, { max_hops }] as const),
      ...noList.map(
        ([name, value]) => [`transports ${name}`, { preferred_transports: value }] as const,
      ),
    ]),
  };
  await checkTable({ '422 request_validation_failed': wrong }, async (terms) => {
    const answer = await publish(na, { policy_id: 'new', ...terms });
    const [error] = answer.body.error.details.errors;
    assert.deepEqual(error.loc.slice(0, 2), ['body', Object.keys(terms)[0]]);
    assert.deepEqual([typeof error.msg, typeof error.type], ['string', 'string']);
    return outcome(answer);
  });
  assert.equal((await get(na, '/policy')).text, before);
  assert.equal((await versions(na)).length, 1);
  assert.equal(audited(na, 'policy_published').length, 1);
});

test('publishing a policy_id again replaces that version', async () => {
  await using na = await startTestAuthority();
  await publish(na, { policy_id: 'p', allowed_ports: [1] });
  na.clock.advance(SECOND);
  const second = await publish(na, { policy_id: 'p', allowed_services: ['mail'] });
  assert.deepEqual(second.body.allowed_ports, [443, 8443], 'nothing of the first is left');
  assert.equal(second.body.issued_at, formatInstant(na.clock.now()));
  assert.deepEqual(await versions(na), [
    {
      policy_id: 'p',
      active: true,
      created_at: formatInstant(na.clock.now()),
      policy: second.body,
    },
  ]);
  assert.equal((await get(na, '/policy')).text, second.text);
});

test('a retired version that is published again is replaced and becomes active', async () => {
  await using na = await startTestAuthority();
  for (const policy_id of ['a', 'b', 'a']) {
    na.clock.advance(SECOND);
    await publish(na, { policy_id });
  }
  assert.deepEqual(flags(await versions(na)), ['a active', 'b']);
  const rolledBack = await rollBack(na, { policy_id: 'a' });
  assert.equal(rolledBack.body.issued_at, formatInstant(na.clock.now()));
});

test('a rollback returns the manifest as it was signed, and activates it', async () => {
  await using na = await startTestAuthority();
  const first = await publish(na, { policy_id: 'first', allowed_services: ['a'] });
  const { etag } = Object.fromEntries((await get(na, '/policy')).headers);
  na.clock.advance(HOUR);
  await publish(na, { policy_id: 'second' });
  na.clock.advance(HOUR);
  const answer = await rollBack(na, { policy_id: 'first' });
  assert.equal(answer.status, 200);
  assert.equal(answer.text, first.text, 'original signature and issued_at');
  const served = await get(na, '/policy');
  assert.equal(served.text, first.text);
  assert.equal(served.headers.get('etag'), etag);
  assert.deepEqual(flags(await versions(na)), ['second', 'first active']);
});

test('a rollback to the active version changes nothing, and one to the default policy works like any other', async () => {
  await using na = await startTestAuthority();
  const made = await get(na, '/policy');
  const later = await publish(na, { policy_id: 'later' });
  na.clock.advance(HOUR);
  assert.equal((await rollBack(na, { policy_id: 'later' })).text, later.text);
  assert.deepEqual(flags(await versions(na)), ['later active', 'policy-alpha-v0.1']);
  assert.equal((await rollBack(na, { policy_id: 'policy-alpha-v0.1' })).text, made.text);
});

test('a rollback without policy_id is 400, to an unknown version 404, and changes nothing', async () => {
  await using na = await startTestAuthority();
  const active = await publish(na, { policy_id: 'winter' });
  const ids = ['nobody', 'WINTER', 'winter ', '__proto__', 'constructor', 'x'.repeat(300)];
  for (const body of [{}, { policy_id: '' }, { policy_id: null }, { policy_id: [] }]) {
    assert.equal(outcome(await rollBack(na, body)), '400 missing_policy_id');
  }
  for (const policy_id of ids) {
    const answer = await rollBack(na, { policy_id });
    assert.equal(outcome(answer), '404 policy_not_found');
    assert.deepEqual(answer.body.error.details, {});
  }
  assert.equal((await get(na, '/policy')).text, active.text);
  assert.deepEqual(audited(na, 'policy_rolled_back'), []);
});

test('the history names every version, newest first, and which one is active', async () => {
  await using na = await startTestAuthority();
  assert.deepEqual((await history(na)).body, { versions: [] });
  const published: Received[] = [];
  const times: string[] = [];
  for (const policy_id of ['b', 'a', 'c']) {
    na.clock.advance(SECOND);
    times.unshift(formatInstant(na.clock.now()));
    published.unshift(await publish(na, { policy_id }));
  }
  na.clock.advance(SECOND);
  await rollBack(na, { policy_id: 'a' });
  assert.deepEqual(
    await versions(na),
    published.map(({ body }, index) => ({
      policy_id: body.policy_id,
      active: body.policy_id === 'a',
      created_at: times[index],
      policy: body,
    })),
  );
});

test('the first read publishes the policy whose digest the root key has signed', async () => {
  await using na = await startTestAuthority();
  const { body: genesis } = await get(na, '/genesis');
  na.clock.advance(MINUTE);
  const first = await get(na, '/policy');
  const { signatures, ...rest } = first.body;
  assert.deepEqual(rest, {
    policy_id: 'policy-alpha-v0.1',
    issued_at: genesis.network_authority.valid_from,
    issued_by: na.audience,
    ...DEFAULTS,
  });
  const digest = sha256Hex(canonicalJson(parsed(first), 'signatures'));
  assert.equal(genesis.policy_manifest.hash, `sha256:${digest}`);
  assert.ok(verifies(parsed(first), na.audience));
  const made = formatInstant(na.clock.now());
  na.clock.advance(HOUR);
  assert.equal((await get(na, '/policy')).text, first.text);
  assert.deepEqual(await versions(na), [
    { policy_id: 'policy-alpha-v0.1', active: true, created_at: made, policy: first.body },
  ]);
});

test('a network with the longest name has a first policy, too', async () => {
  const name = 'a'.repeat(1024);
  await using folder = networkFolder(name);
  await using na = await startTestAuthority({ dataDir: folder.path });
  assert.equal((await get(na, '/policy')).body.policy_id, `policy-${name}-v0.1`);
});

test('with an earlier genesis, which names no policy, the first read creates one of that moment', async () => {
  const { folder: dataDir } = makeNetworkFolder();
  const path = join(dataDir, 'genesis.json');
  const { signatures: _, ...genesis } = JSON.parse(readFileSync(path, 'utf8'));
  const root = signerFromSeed(readKeyFile(join(dataDir, 'keys', 'root.key')));
  const earlier = { ...genesis, policy_manifest: { hash: 'sha256:placeholder', url: null } };
  writeFileSync(path, JSON.stringify(signRecord(earlier, soleSigner(root))));
  await using na = await startTestAuthority({ dataDir });
  na.clock.advance(MINUTE);
  const { body } = await get(na, '/policy');
  assert.equal(body.policy_id, 'policy-alpha-v0.1');
  assert.equal(body.issued_at, formatInstant(na.clock.now()));
  await na.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

test('50 simultaneous first reads create one default', async () => {
  await using na = await startTestAuthority();
  const answers = await Promise.all(Array.from({ length: 50 }, () => get(na, '/policy')));
  assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
  assert.equal((await versions(na)).length, 1);
});

test('GET /policy follows each publication and each rollback, with an ETag of its own', async () => {
  await using na = await startTestAuthority();
  const seen = new Map<string, string>();
  async function follow(expected: Received): Promise<void> {
    const served = await get(na, '/policy');
    assert.equal(served.text, expected.text);
    const etag = served.headers.get('etag') ?? '';
    assert.match(etag, /^"[^"]+"$/, 'a strong validator');
    assert.equal(seen.get(etag) ?? served.text, served.text);
    seen.set(etag, served.text);
  }
  await follow(await publish(na, { policy_id: 'a' }));
  await follow(await publish(na, { policy_id: 'b' }));
  await follow(await rollBack(na, { policy_id: 'a' }));
  na.clock.advance(1);
  await follow(await publish(na, { policy_id: 'a' }));
  await follow(await rollBack(na, { policy_id: 'b' }));
  assert.equal(seen.size, 3);
});

const RIVALS: readonly (readonly [string, (na: TestAuthority, n: number) => Promise<Received>])[] =
  [
    ['publications', (na, n) => publish(na, { policy_id: `p${n}` })],
    ['publications of one id', (na) => publish(na, { policy_id: 'same' })],
    ['rollbacks', (na, n) => rollBack(na, { policy_id: n % 2 === 0 ? 'first' : 'second' })],
    [
      'publications, rollbacks and reads',
      (na, n) => {
        if (n % 3 === 0) return publish(na, { policy_id: `p${n}` });
        return n % 3 === 1 ? rollBack(na, { policy_id: 'first' }) : get(na, '/policy');
      },
    ],
  ];

test('of 30 simultaneous calls exactly one leaves its version active, which is the one that is served', async () => {
  await using first = await startTestAuthority();
  await publish(first, { policy_id: 'first' });
  await publish(first, { policy_id: 'second' });
  let last: TestAuthority = first;
  for (const [name, call] of RIVALS) {
    // After a start, the first reads build the document while versions are published.
    await using na = await last.restart();
    const running = Promise.all(times(30, (n) => call(na, n)));
    for (const rows of await Promise.all(times(10, () => versions(na)))) {
      assert.equal(rows.filter((row) => row.active).length, 1, `${name}, at any time`);
    }
    for (const answer of await running) assert.equal(outcome(answer), '200', name);
    const active = (await versions(na)).filter((row) => row.active);
    assert.equal(active.length, 1, name);
    const served = await get(na, '/policy');
    assert.deepEqual(served.body, active[0]?.policy, name);
    await using again = await na.restart();
    assert.equal((await get(again, '/policy')).text, served.text, name);
    assert.deepEqual(
      (await versions(again)).filter((row) => row.active),
      active,
      name,
    );
    last = again;
  }
});

test('first reads during the first publications never bring an older policy back', async () => {
  await using na = await startTestAuthority();
  const calls = times(20, (n) =>
    n % 2 === 0 ? get(na, '/policy') : publish(na, { policy_id: `p${n}` }),
  );
  for (const answer of await Promise.all(calls)) assert.equal(outcome(answer), '200');
  const active = (await versions(na)).filter((row) => row.active);
  assert.deepEqual((await get(na, '/policy')).body, active[0]?.policy);
});

test('a read between two publications of one turn does not bring the first one back', async () => {
  await using folder = networkFolder('alpha');
  const publisher = createDocumentPublisher();
  const documents = createDocumentCache(publisher.versions);
  publisher.follow(documents.take);
  const key = newKey();
  const authority = await openAuthority({
    settings: {
      networkName: 'alpha',
      networkVersion: 'v0.1',
      activeWindow: 5 * MINUTE,
      renewalGrace: null,
      refuseForeignIssuers: false,
      commitWithinAgreement: true,
      singleRefusals: null,
      genesis: unsignedGenesis('alpha', ''),
      firstPolicy: null,
    },
    operators: new Map([['ops', { tier: 'privileged', publicKey: '' }]]),
    clockTolerance: 5 * MINUTE,
    flushInterval: 1000,
    retention: { certificate: 0, renewedCertificate: 0, invite: 0, agent: 0 },
    seen: null,
    signer: createAuthoritySigner(
      heldHere(() => [key]),
      soleSigner(key, 'na'),
    ),
    runtime: systemRuntime,
    store: openLmdbStore(folder.path),
    publisher,
    log: () => undefined,
    countRefusal: () => undefined,
    fatal(_where, cause) {
      throw cause;
    },
  });
  const publishNow = (policyId: string) =>
    authority.call('publishPolicy', {
      operator: {
        keyId: 'ops',
        signedAt: systemRuntime.now(),
        nonce: policyId,
        verdict: 'valid',
        signatureVersion: 2,
        scope: '',
        remoteAddr: '',
        identity: null,
      },
      input: { ok: true, value: { policy_id: policyId } },
    });
  const calls = ['a', 'b'].map(publishNow);
  calls.push(authority.call('ensurePolicy', null));
  calls.push(publishNow('c'));
  for (const answer of await Promise.all(calls)) assert.equal(answer.ok, true);
  const served = JSON.parse(String(documents.get('policy')?.bytes));
  await authority.close();
  assert.equal(served.policy_id, 'c');
});

test('each publication and each rollback is audited, and refusals are not', async () => {
  await using na = await startTestAuthority();
  await publish(na, { policy_id: 'a' });
  await publish(na, { policy_id: 'b' });
  await rollBack(na, { policy_id: 'a' });
  await publish(na, { policy_id: 7 });
  await rollBack(na, { policy_id: 'nobody' });
  await get(na, '/policy');
  const remote_addr = '127.0.0.1';
  assert.deepEqual(auditEvents(na), [
    { type: 'policy_published', details: { policy_id: 'a', remote_addr } },
    { type: 'policy_published', details: { policy_id: 'b', remote_addr } },
    { type: 'policy_rolled_back', details: { policy_id: 'a', remote_addr } },
  ]);
});

test('any text of up to 256 characters is a policy_id, also on disk', async () => {
  await using na = await startTestAuthority();
  const published = new Map<string, string>();
  for (const policy_id of [
    ' ',
    'a/b',
    '../up',
    '__proto__',
    'constructor',
    'Zürich ✓ 😀',
    'a\u0000b',
    '\u0000',
    '\u0001\u001f',
    'x'.repeat(256),
    `\u0000${'x'.repeat(64)}\u0004\u0000y`,
    '漢'.repeat(256),
  ]) {
    const answer = await publish(na, { policy_id });
    assert.equal(outcome(answer), '200', policy_id);
    assert.equal(answer.body.policy_id, policy_id);
    published.set(policy_id, answer.text);
  }
  await using again = await na.restart();
  const found = (await versions(again)).map((row) => row.policy_id);
  assert.deepEqual(new Set(found), new Set(published.keys()));
  for (const [policy_id, text] of published) {
    assert.equal((await rollBack(again, { policy_id })).text, text);
    assert.equal((await get(again, '/policy')).text, text);
  }
});

function publish(na: TestAuthority, terms: JsonObject = {}, call: OperatorCall = {}) {
  return operate(na, PUBLISH, terms, call);
}

function rollBack(na: TestAuthority, body: JsonObject) {
  return operate(na, ROLL_BACK, body);
}

function history(na: TestAuthority, call: OperatorCall = {}) {
  return operate(na, HISTORY, {}, { operator: na.standard, ...call, method: 'GET' });
}

async function versions(na: TestAuthority): Promise<VersionRow[]> {
  return (await history(na)).body.versions;
}

function flags(rows: readonly VersionRow[]): string[] {
  return rows.map(({ policy_id, active }) => (active ? `${policy_id} active` : policy_id));
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
