/**
 * The client as a separate package: packed, installed into an empty folder, type-checked by other projects, and run by
 * Node.js, Deno, Bun and Chromium against one live authority.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { keyFromSeed } from '../src/client/keys.ts';
import { createOperatorClient } from '../src/client/operator-client.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { WEBHOOK_PROOF_HEADER, webhookProof } from '../src/protocol/records/webhook-proof.ts';
import { startTestAuthority } from './support/authority.ts';
import { startBrowser } from './support/browser.ts';
import {
  CLIENT_NAME,
  consumer,
  copyTypes,
  installClient,
  runtimes,
} from './support/client-package.ts';
import { REAL_TIME } from './support/clock.ts';
import { PROJECT_PATH } from './support/project.ts';

const run = promisify(execFile);
const tool = (name: string) => join(PROJECT_PATH, 'node_modules/.bin', name);
const manifest = (path: string) => JSON.parse(readFileSync(join(PROJECT_PATH, path), 'utf8'));

/** A site of another origin, whose page only loads the bundle. */
let bundle = '';
const site = createServer((request, response) => {
  const isScript = request.url === '/bundle.js';
  response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
  response.end(
    isScript ? bundle : '<!doctype html><title>Client</title><link rel="icon" href="data:,">',
  );
});
await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;

const na = await startTestAuthority({
  environment: { MESH_CORS_ORIGINS: `https://other.example, ${origin}` },
  clock: REAL_TIME,
});
const installed = installClient();
after(async () => {
  site.close();
  await na.stop();
  rmSync(installed.folder, { recursive: true });
});

const operatorSeed = Buffer.from(
  readKeyFile(join(na.dataDir, 'keys', 'operator-privileged.key')),
).toString('hex');

/** Uses each entry point of the package: signs, joins, verifies offline, and is refused. */
const PROGRAM = `
import { AuthorityError, createNodeClient, createOperatorClient, createPublicClient, createVerifier,
  keyFromSeed, newKey, recordText } from '${CLIENT_NAME}';
import { JsonFloat, parseJson } from '${CLIENT_NAME}/json';
import { readGenesisBlock } from '${CLIENT_NAME}/records';
import { formatInstant } from '${CLIENT_NAME}/timestamps';

export async function program(url, operatorSeed) {
  const seed = Uint8Array.from(operatorSeed.match(/../g), (pair) => Number.parseInt(pair, 16));
  const operator = createOperatorClient({ url, keyId: 'ops-privileged', key: keyFromSeed(seed) });
  const anyone = createPublicClient({ url });
  const key = newKey();
  const results = {};
  for (const proof of ['body', 'header']) {
    const { token_id } = await operator.createInvites();
    const node = createNodeClient({ url, key, proof });
    const certificate = await node.join({ invite_token: token_id });
    const { ack } = await node.heartbeat({ cert_id: certificate.cert_id });
    const genesis = await anyone.readGenesis();
    const verifier = createVerifier();
    const expected = { genesis, crl: recordText(await anyone.crl()), publicKey: key.publicKey };
    const before = verifier.certificate(certificate, expected);
    await operator.revokeCertificate({ cert_id: certificate.cert_id });
    const crl = await anyone.crl();
    const authority = genesis.network_authority.public_key;
    const after = verifier.certificate(recordText(certificate), { genesis, crl });
    const error = await node.heartbeat({ cert_id: certificate.cert_id }).catch((e) => e);
    results[proof] = [ack, verifier.genesis(genesis), verifier.revocationList(crl, authority), before, after,
      error instanceof AuthorityError && [error.status, error.code, error.retryable, error.requestId !== null]];
  }
  const agent = { claims: { share: new JsonFloat(1) } };
  let stringified = 'changed';
  try { JSON.stringify(agent); } catch (error) { stringified = error.name; }
  return { ...results, text: recordText(agent), stringified,
    parsed: recordText(parseJson('{"a":1.50,"b":12345678901234567890}')),
    malformed: readGenesisBlock({}), time: formatInstant(0) };
}
`;
const EXPECTED = {
  body: [true, 'valid', 'valid', 'valid', 'revoked', [403, 'certificate_revoked', false, true]],
  header: [true, 'valid', 'valid', 'valid', 'revoked', [403, 'certificate_revoked', false, true]],
  text: '{"claims":{"share":1.0}}',
  stringified: 'TypeError',
  parsed: '{"a":1.5,"b":12345678901234567890}',
  malformed: null,
  time: '1970-01-01T00:00:00Z',
};

const programs = consumer(installed, 'programs', {
  'program.mjs': PROGRAM,
  'main.mjs': `import { program } from './program.mjs';
const [url, seed] = (globalThis.Deno?.args ?? process.argv.slice(2));
console.log(JSON.stringify(await program(url, seed)));`,
  'page.mjs': "import { program } from './program.mjs';\nglobalThis.program = program;",
});

const { bun, deno, node22 } = runtimes();
for (const [name, command, args] of [
  ['this Node.js', process.execPath, []],
  ['Node.js 22', node22, []],
  ['Deno', deno, ['run', '--quiet', '--allow-net', '--node-modules-dir=manual']],
  ['Bun', bun, []],
] as const) {
  test(`the installed package signs, joins and verifies in ${name}`, async () => {
    const main = join(programs, 'main.mjs');
    const { stdout } = await run(command, [...args, main, na.url, operatorSeed], { cwd: programs });
    assert.deepEqual(JSON.parse(stdout), EXPECTED);
  });
}

test('a bundle for browsers does the same on a page of a configured origin', async () => {
  const { outputFiles } = await build({
    entryPoints: [join(programs, 'page.mjs')],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    minify: true,
    write: false,
  });
  bundle = outputFiles[0]?.text ?? '';
  assert.ok(bundle.length < 400_000, `${bundle.length} characters`);
  const browser = await startBrowser();
  try {
    const { page } = await browser.visit(origin);
    await page.addScriptTag({ url: '/bundle.js', type: 'module' });
    const call = `program(${JSON.stringify(na.url)}, ${JSON.stringify(operatorSeed)})`;
    assert.deepEqual(await page.evaluate(call), EXPECTED);
  } finally {
    await browser.close();
  }
});

test('a page of another origin can read nothing, and no answer allows credentials', async () => {
  const preflight = { 'access-control-request-method': 'POST' };
  const ask = (from: string, init: RequestInit = {}) =>
    fetch(`${na.url}/genesis`, { ...init, headers: { ...init.headers, origin: from } });
  const named = await ask(origin);
  assert.equal(named.headers.get('access-control-allow-origin'), origin);
  assert.match(named.headers.get('vary') ?? '', /Origin/);
  assert.equal(named.headers.get('access-control-allow-credentials'), null);
  for (const stranger of ['https://evil.example', 'null', `${origin}0`, origin.toUpperCase()]) {
    const answer = await ask(stranger);
    assert.equal(answer.headers.get('access-control-allow-origin'), null, stranger);
    assert.match(answer.headers.get('vary') ?? '', /Origin/);
    const asked = await ask(stranger, { method: 'OPTIONS', headers: preflight });
    assert.equal(asked.status, 405);
  }
  const asked = await ask(origin, { method: 'OPTIONS', headers: preflight });
  assert.equal(asked.status, 200);
  assert.match(asked.headers.get('access-control-allow-headers') ?? '', /X-Mesh-Node-Proof/);
});

test('answers do not mention origins if none are configured', async () => {
  await using closed = await startTestAuthority();
  const answer = await fetch(`${closed.url}/crl`, { headers: { origin } });
  const names = [...answer.headers.keys()].filter((name) => name.startsWith('access-control'));
  assert.deepEqual(names, []);
  assert.doesNotMatch(answer.headers.get('vary') ?? '', /Origin/);
});

for (const given of [
  '*',
  'null',
  'https://a.example/',
  'a.example',
  'ftp://a.example',
  'https://*.a',
]) {
  test(`the origin ${given} is refused at startup`, async () => {
    const environment = { MESH_CORS_ORIGINS: given };
    const started = startTestAuthority({ environment }).then((opened) => opened.stop());
    await assert.rejects(started, /MESH_CORS_ORIGINS must be origins/);
  });
}

/** The README's samples, with the values that a reader would fill in. */
async function samples(): Promise<string[]> {
  const readme = readFileSync(join(PROJECT_PATH, 'src/client/package/README.md'), 'utf8');
  const found = [...readme.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => String(code));
  const key = keyFromSeed(Buffer.from(operatorSeed, 'hex'));
  const operator = createOperatorClient({ url: na.url, keyId: 'ops-privileged', key });
  const genesis = await createPublicClient({ url: na.url }).readGenesis();
  const { keys, request } = manifest('test/vectors/webhooks.json').vectors;
  const signer = signerFromSeed(Buffer.from(keys.authority.seed_base64, 'base64'));
  const proof = webhookProof(request.body_sha256, formatInstant(REAL_TIME.now()), signer);
  const headers = { [WEBHOOK_PROOF_HEADER]: proof };
  const init = { method: 'POST', body: request.body, headers };
  const posted = `new Request('http://127.0.0.1/', ${JSON.stringify(init)})`;
  return Promise.all(
    found.map(async (code) =>
      code
        .replaceAll('http://127.0.0.1:8443', na.url)
        .replace('the invite token', (await operator.createInvites()).token_id)
        .replace('the root key', genesis.root_public_key)
        .replace('the authority key', signer.publicKey)
        .replace(/new Request\(.*'{}' }\)/, () => posted)
        .replace(
          'new Uint8Array(32)',
          `Uint8Array.from([${[...Buffer.from(operatorSeed, 'hex')].join()}])`,
        ),
    ),
  );
}

const USER = `
import { createPublicClient, createVerifier, type AuthorityError, type NodeCount } from '${CLIENT_NAME}';
import { canonicalJson } from '${CLIENT_NAME}/json';
import { type JoinCertificate, readJoinCertificate } from '${CLIENT_NAME}/records';
import { parseDatetime } from '${CLIENT_NAME}/timestamps';
const client = createPublicClient({ url: '', fetch: globalThis.fetch, headers: { a: 'b' }, retries: 0 });
export const graph: Promise<readonly { readonly from: string }[]> = client
  .readRecognitionGraph({ signal: new AbortController().signal })
  .then(({ recognition_edges }) => recognition_edges);
export const certificate: JoinCertificate | null = readJoinCertificate({});
export const reason: 'expired' | 'revoked' | string = createVerifier().agent('{}');
export const text: string = canonicalJson({ a: [1] });
export const instant: number | undefined = parseDatetime('')?.instant;
export function explain(error: AuthorityError, { nodes = {} }: NodeCount): string {
  // @ts-expect-error: no such code
  if (error.code === 'no_such_code') return '';
  return error.retryable ? Object.keys(nodes).join() : error.code;
}
`;

test('other projects type-check against it, and the samples of the README run', async () => {
  copyTypes(installed);
  const code = await samples();
  assert.equal(code.length, 7);
  const files = Object.fromEntries(code.map((text, index) => [`sample-${index}.ts`, text]));
  const project = consumer(installed, 'project', { 'user.ts': USER, ...files });
  const common = ['--strict', '--target', 'es2023'];
  const all = readdirSync(project).filter((name) => name.endsWith('.ts'));
  const node = [
    '--skipLibCheck',
    'false',
    '--module',
    'nodenext',
    '--lib',
    'es2023',
    '--types',
    'node',
  ];
  await checked(project, [...common, ...node, ...all]);
  const bundler = [
    '--skipLibCheck',
    '--module',
    'esnext',
    '--moduleResolution',
    'bundler',
    '--noEmit',
  ];
  await checked(project, [...common, ...bundler, '--lib', 'es2023,dom', '--types', '', 'user.ts']);
  for (const index of code.keys()) {
    const { stdout } = await run(process.execPath, [`sample-${index}.js`], { cwd: project });
    if (index === 1) assert.equal(stdout, 'true certificate_not_found 404 false\n');
    if (index === 2) assert.match(stdout, /^1 invite_created \{[\s\S]*?\} [0-9a-f]{64}\n/);
    if (index === 3) assert.match(stdout, /^1 invite_created [\s\S]*^3 \w+ [\s\S]*^204 \n$/m);
    if (index === 4) assert.equal(stdout, 'valid\nvalid\n');
    if (index === 5) assert.match(stdout, /^0 new [A-Za-z0-9+/]{43}=\nvalid\n$/);
  }
});

async function checked(cwd: string, args: readonly string[]): Promise<void> {
  await run(tool('tsc'), [...args], { cwd }).catch(({ stdout }) => assert.fail(String(stdout)));
}

test('package linters find nothing', async () => {
  const packed = join(installed.folder, 'node_modules', CLIENT_NAME);
  await run(tool('publint'), ['run', packed, '--strict', '--pack', 'false']).catch(({ stdout }) =>
    assert.fail(String(stdout)),
  );
  const args = [installed.tarball, '--profile', 'esm-only', '--no-color'];
  await run(tool('attw'), args).catch(({ stdout }) => assert.fail(String(stdout)));
});

test('its version and dependencies are those of the authority, and nothing else is packed', () => {
  const own = manifest('src/client/package/package.json');
  const authority = manifest('package.json');
  assert.equal(own.version, authority.version);
  for (const [name, version] of Object.entries(own.dependencies)) {
    assert.equal(version, authority.dependencies[name], name);
  }
  const packed = join(installed.folder, 'node_modules', CLIENT_NAME);
  const files = readdirSync(packed, { recursive: true, encoding: 'utf8' });
  const others = files.filter((name) => /\.[a-z]+$/.test(name) && !/\.(js|d\.ts)$/.test(name));
  assert.deepEqual(others.sort(), ['README.md', 'package.json']);
  assert.ok(files.includes('LICENSE'));
});
