import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { isSignedByRoot, readGenesisBlock } from '../src/protocol/records/genesis.ts';
import { readPolicyManifest } from '../src/protocol/records/policy-manifest.ts';
import { readCertificateRevocationList } from '../src/protocol/records/revocation-list.ts';
import { SCHEMA_VERSION } from '../src/store/postgresql/schema.ts';
import { sharedAuthority, startTestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { privateKeysOf } from './support/folders.ts';
import { metricOf } from './support/metrics.ts';
import {
  get,
  heartbeat,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  type Received,
  sendRaw,
} from './support/requests.ts';
import { IN_DATABASE } from './support/test-stores.ts';

const DOCUMENTS = [
  ...['/genesis', '/sovereign.json', '/policy', '/crl', '/swagger.json'],
  ...['/sovereign-revocation-feed', '/sovereign-revocation-feed?issuer_sovereign_id=beta'],
];

/** For tests that leave nothing behind that would affect the others. */
const shared = sharedAuthority();

const SAME: readonly (readonly [form: string, header: (tag: string) => string])[] = [
  ['the tag itself', (tag) => tag],
  ['a weak form of it', (tag) => `W/${tag}`],
  ['a list with it first', (tag) => `${tag}, "other"`],
  ['a list with it last', (tag) => `"other","another" , ${tag}`],
  ['a list with its weak form', (tag) => `W/"other", W/${tag}`],
  ['anything at all', () => '*'],
];

const OTHER: typeof SAME = [
  ['another tag', () => '"other"'],
  ['the tag without quotes', (tag) => tag.replaceAll('"', '')],
  ['half the tag', (tag) => `${tag.slice(0, 9)}"`],
  ['the tag in capitals', (tag) => tag.toUpperCase().replace(/^[^A-Z]*$/, '"X"')],
  ['a list of others', () => '"a", W/"b"'],
  ['the tag without its end', (tag) => `${tag.slice(0, -1)}x"`],
  ['an empty list', () => ','],
  ['nothing', () => ''],
];

test('every document has a strong validator, and is not sent again to a client that has it', async () => {
  const na = await shared();
  for (const path of DOCUMENTS) {
    const { headers, status, text } = await sendRaw(na, 'GET', path);
    const etag = headers.get('etag') ?? '';
    assert.equal(status, 200);
    assert.match(etag, /^"[\x21\x23-\x7e]+"$/);
    assert.match(headers.get('content-type') ?? '', /^application\/json\b/);
    for (const method of ['GET', 'HEAD']) {
      for (const [form, header] of path === '/crl' ? SAME : SAME.slice(0, 1)) {
        const sent = { headers: { 'If-None-Match': header(etag) } };
        const answer = await sendRaw(na, method, path, sent);
        const { status, text: body } = answer;
        assert.deepEqual([status, body, answer.headers.get('etag')], [304, '', etag], form);
        // Absent, or the length of the document (RFC 9110, 8.6).
        const length = answer.headers.get('content-length') ?? String(text.length);
        assert.equal(length, String(text.length), form);
      }
    }
    for (const [form, header] of path === '/crl' ? OTHER : OTHER.slice(0, 1)) {
      const answer = await sendRaw(na, 'GET', path, { headers: { 'If-None-Match': header(etag) } });
      assert.deepEqual([answer.status, answer.text], [200, text], form);
      assert.equal(answer.headers.get('etag'), etag, form);
    }
  }
});

test('no document contains a private key or a path, or a member whose name suggests a secret', async () => {
  const na = await shared();
  const node = await joinedNode(na);
  await operate(na, '/admin/revoke', { cert_id: node.certId });
  for (const path of DOCUMENTS) {
    const { text, body } = await get(na, path);
    for (const secret of [na.dataDir, ...privateKeysOf(na)]) {
      assert.equal(text.includes(secret), false);
    }
    // Clients refuse a bundle with such member names; the reference must name request fields.
    for (const name of path === '/swagger.json' ? [] : memberNames(body)) {
      assert.doesNotMatch(name, /private_key|bearer|credential|password|secret|token/);
    }
  }
});

test('documents have the canonical spelling, with every default present, and the same after a restart', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  await operate(na, '/admin/revoke', { cert_id: node.certId });
  const readers = {
    '/genesis': readGenesisBlock,
    '/policy': readPolicyManifest,
    '/crl': readCertificateRevocationList,
  };
  const before = new Map<string, Received>();
  for (const [path, reader] of Object.entries(readers)) {
    const answer = await get(na, path);
    const served = parseJson(answer.text);
    assert.deepEqual(reader(served), served, 'normalizing changes nothing');
    before.set(path, answer);
  }
  na.clock.advance(HOUR);
  await using again = await na.restart();
  for (const [path, { text, headers }] of before) {
    const after = await get(again, path);
    assert.equal(after.text, text);
    assert.equal(after.headers.get('etag'), headers.get('etag'));
  }
});

test('GET /genesis is the block that init created, signed by the root', async () => {
  await using na = await startTestAuthority();
  const genesis = readGenesisBlock(parseJson((await get(na, '/genesis')).text));
  assert.ok(genesis !== null);
  assert.equal(isSignedByRoot(genesis, verifySignature), true);
  assert.equal(genesis.network_authority.public_key, na.audience);
  const made = parseJson(readFileSync(join(na.dataDir, 'genesis.json'), 'utf8'));
  assert.deepEqual(genesis, made);
});

test('a label for the authority key is used in signatures, while the issuer of the policy remains the key', async () => {
  await using na = await startTestAuthority({ flags: { keyId: 'na-2025-q1' } });
  const policy = await get(na, '/policy');
  assert.equal(policy.body.issued_by, na.audience, 'the root key has signed the digest of that');
  assert.equal(policy.body.signatures[0].key_id, 'na-2025-q1');
});

test('GET /sovereign.json names the sovereign and its surfaces', async () => {
  const na = await shared();
  const { body } = await get(na, '/sovereign.json');
  const genesis = (await get(na, '/genesis')).body;
  assert.equal(body.sovereign_id, 'alpha');
  assert.equal(body.network_name, 'alpha');
  assert.equal(body.network_version, 'v0.1');
  assert.equal(body.endpoint, na.url);
  assert.deepEqual(body.network_authority, genesis.network_authority);
  assert.equal(body.root_public_key, genesis.root_public_key);
  const surfaces = body.supported_surfaces;
  assert.deepEqual(surfaces, {
    genesis: `${na.url}/genesis`,
    recognition_treaties: `${na.url}/recognition-treaties`,
    sovereign_revocation_feed: `${na.url}/sovereign-revocation-feed`,
    recognition_graph: `${na.url}/recognition-graph`,
    connectome: `${na.url}/connectome.json`,
    atlas: `${na.url}/atlas.json`,
    swagger: `${na.url}/swagger.json`,
    api_reference: `${na.url}/api-reference`,
    cli_reference: `${na.url}/cli-reference`,
  });
  for (const url of Object.values(surfaces)) assert.equal((await fetch(String(url))).status, 200);
});

/** What reaches the service behind proxies that forward these entries. */
function forwarded(hosts: readonly string[], schemes: readonly string[]) {
  return {
    Host: 'inner',
    'X-Forwarded-Host': hosts.join(', '),
    'X-Forwarded-Proto': schemes.join(','),
  };
}

const HTTPS_ONLY = { Host: 'na.example', 'X-Forwarded-Proto': 'https' };
const EVIL = { 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'http' };
const OWN_LINES = { Host: 'inner', 'X-Forwarded-Host': ['evil.example', 'na.example', 'inner'] };
const NOT_TRUSTED = { Host: 'na.example', ...EVIL };
const ONE = { Host: 'inner', 'X-Forwarded-Host': 'na.example', 'X-Forwarded-Proto': 'https' };
const FOUR = ['evil.example', 'worse.example', 'na.example', 'inner'];
const TWO = forwarded(['na.example:8443', 'inner'], ['https', 'http']);

type Asked = readonly [
  name: string,
  headers: Readonly<Record<string, string | string[]>>,
  url: string,
];

/** What the base URL is, by settings. */
const BASE_URLS: readonly (readonly [Record<string, string>, readonly Asked[]])[] = [
  [
    { MESH_PUBLIC_URL: 'https://na.example/mesh/' },
    [['the public URL', {}, 'https://na.example/mesh']],
  ],
  [
    { MESH_PUBLIC_URL: 'https://na.example', MESH_PROXY_HOPS: '1' },
    [['the public URL, whatever is forwarded', EVIL, 'https://na.example']],
  ],
  [
    { MESH_PUBLIC_URL: 'https://na.example', MESH_PROXY_HOPS: '2' },
    [['that also of several entries', forwarded(FOUR, ['http', 'http']), 'https://na.example']],
  ],
  [
    {},
    [
      ['the host that was asked', { Host: 'na.example:8443' }, 'http://na.example:8443'],
      ['the same where no proxy is trusted', NOT_TRUSTED, 'http://na.example'],
      ['no host that is none', { Host: 'a"b<script>' }, 'http://localhost'],
    ],
  ],
  [
    { MESH_PROXY_HOPS: '1' },
    [
      ['what a trusted proxy forwarded', ONE, 'https://na.example'],
      ['the host that was asked if only the scheme is forwarded', HTTPS_ONLY, 'https://na.example'],
      [
        'what the only trusted proxy appended',
        forwarded(['evil.example', 'na.example'], ['ftp', 'https']),
        'https://na.example',
      ],
      [
        'no other entry where that of the proxy is no host',
        forwarded(['evil.example', 'a"b'], ['https', 'gopher']),
        'http://localhost',
      ],
      [
        'no other entry where that of the proxy is empty',
        forwarded(['evil.example', ''], ['https']),
        'https://localhost',
      ],
    ],
  ],
  [
    { MESH_PROXY_HOPS: '2' },
    [
      ['what the outer of two proxies wrote', TWO, 'https://na.example:8443'],
      ['what it appended', forwarded(FOUR, ['http', 'https', 'http']), 'https://na.example'],
      ['what two proxies appended in headers of their own', OWN_LINES, 'http://na.example'],
      [
        'the only entry, if one replaces',
        forwarded(['na.example'], ['https']),
        'https://na.example',
      ],
    ],
  ],
];

for (const [environment, rows] of BASE_URLS) {
  test(`the base URL with ${JSON.stringify(environment)}`, async () => {
    await using na = await startTestAuthority({ environment });
    for (const [name, headers, expected] of rows) {
      const sovereign = await sendRaw(na, 'GET', '/sovereign.json', { headers });
      assert.equal(sovereign.body.endpoint, expected, name);
      const swagger = await sendRaw(na, 'GET', '/swagger.json', { headers });
      assert.deepEqual(swagger.body.servers, [{ url: expected }], name);
    }
  });
}

test('GET /readyz names this start, the database and the signing key, and no path', async () => {
  await using na = await startTestAuthority();
  const { status, body } = await get(na, '/readyz');
  assert.equal(status, 200);
  const { instance, term, ...rest } = body;
  assert.match(instance, /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  const authority = (await get(na, '/genesis')).body.network_authority;
  const key = Buffer.from(authority.public_key, 'base64');
  assert.deepEqual(rest, {
    status: 'ready',
    enrollment: 'open',
    ...PLACE,
    signing_key: {
      key_id: na.audience,
      fingerprint: createHash('sha256').update(key).digest('hex').slice(0, 16),
    },
  });
  assert.equal((await get(na, '/readyz')).body.instance, instance);
  await using again = await na.restart();
  const restarted = (await get(again, '/readyz')).body;
  assert.notEqual(restarted.instance, instance);
  assert.deepEqual({ ...restarted, instance, ...(term && { term }) }, body);
});

/** What it says about the instance, as one of several or alone, and about the store. */
const PLACE = IN_DATABASE
  ? {
      ha_mode: 'standby',
      role: 'active',
      lag_revisions: 0,
      database: { backend: 'postgresql', writable: true, schema_version: SCHEMA_VERSION },
    }
  : { ha_mode: 'single', database: { backend: 'lmdb', writable: true, schema_version: 5 } };

test('GET /healthz is ok, and GET /health names the network and its version, and no path', async () => {
  const na = await shared();
  assert.deepEqual((await get(na, '/healthz')).body, { status: 'ok' });
  const { status, body, text } = await get(na, '/health');
  assert.equal(status, 200);
  const { uptime_seconds: uptime, ...rest } = body;
  assert.deepEqual(rest, {
    status: 'healthy',
    network: 'alpha',
    version: 'v0.1',
    database: 'ok',
    migrations: 'current',
  });
  assert.ok(Number.isInteger(uptime) && uptime >= 0);
  assert.equal(text.includes('/'), false);
});

const FIGURES = [
  'mesh_na_issued_certs_total',
  'mesh_na_active_nodes',
  'mesh_na_revoked_certs_total',
  'mesh_na_crl_sequence',
  'mesh_na_policy_versions_total',
] as const;

test('GET /metrics is in the Prometheus text format, each figure a gauge with its help', async () => {
  const na = await shared();
  const { status, headers, text } = await get(na, '/metrics');
  assert.equal(status, 200);
  assert.equal(headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  for (const figure of FIGURES) {
    assert.match(text, new RegExp(`^# HELP ${figure} \\S.*$`, 'm'));
    assert.match(text, new RegExp(`^# TYPE ${figure} gauge$`, 'm'));
  }
  const typed = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
  assert.ok(typed.length > 15);
  assert.equal(new Set(typed).size, typed.length, 'each metric has one type line');
  assert.deepEqual(
    typed.filter((name) => !name.startsWith('mesh_na_')),
    [],
  );
});

test('the five counts follow joins, renewals, revocations, time and restarts', async () => {
  await using na = await startTestAuthority();
  const counts = (authority = na) =>
    Promise.all(FIGURES.map((figure) => metricOf(authority, figure)));
  assert.deepEqual(await counts(), [0, 0, 0, 0, 0]);
  const node = await joinedNode(na);
  const other = await joinedNode(na);
  assert.deepEqual(await counts(), [2, 2, 0, 0, 0]);
  await get(na, '/policy');
  assert.deepEqual(await counts(), [2, 2, 0, 0, 1]);
  await nodeRequest(na, '/renew', other.key, { cert_id: other.certId });
  assert.deepEqual(await counts(), [3, 2, 0, 0, 1]);
  await operate(na, '/admin/revoke', { cert_id: node.certId });
  assert.deepEqual(await counts(), [3, 1, 1, 1, 1]);
  na.clock.advance(299_999);
  assert.deepEqual(await counts(), [3, 1, 1, 1, 1]);
  na.clock.advance(1);
  assert.deepEqual(await counts(), [3, 0, 1, 1, 1]);
  await heartbeat(na, other);
  assert.deepEqual(await counts(), [3, 1, 1, 1, 1]);
  await using again = await na.restart();
  assert.deepEqual(await counts(again), [3, 1, 1, 1, 1]);
});

test('no id, key, token or raw path is in the metrics', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  await heartbeat(na, node);
  await heartbeat(na, node, { signedBy: newKey() });
  await operate(na, '/admin/operator-keys/some-key-id/revoke');
  await operate(na, '/admin/invite', {}, { operator: { ...na.standard, keyId: 'stranger' } });
  await get(na, '/some/raw/path');
  await sendRaw(na, 'BREW', '/nodes');
  const { text } = await get(na, '/metrics');
  const ids = [node.certId, node.key.publicKey, na.audience];
  for (const detail of [
    ...ids,
    ...['some-key-id', 'stranger', 'ops-', 'raw/path', 'BREW', '127.0.0.1'],
  ]) {
    assert.equal(text.includes(detail), false, detail);
  }
  const labels = new Set([...text.matchAll(/[{,](\w+)="/g)].map(([, label]) => label));
  const known =
    'bucket direction event job kind le method proof reason role route rule state status version work'.split(
      ' ',
    );
  for (const label of labels) {
    const isOwn = known.includes(label ?? '');
    assert.ok(isOwn || ownsNothing(text, label ?? ''), label);
  }
  assert.match(text, /route="\/admin\/operator-keys\/\{key_id\}\/revoke"/);
});

function memberNames(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const names = Array.isArray(value) ? [] : Object.keys(value);
  return [...names, ...Object.values(value).flatMap(memberNames)];
}

/** Whether only the metrics of the process itself (memory, event loop) have the label. */
function ownsNothing(text: string, label: string): boolean {
  const lines = text.split('\n').filter((line) => line.includes(`${label}="`));
  return lines.every((line) => /^mesh_na_(nodejs|process)_/.test(line));
}
