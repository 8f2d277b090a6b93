import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createLogger, LOG_LEVELS, type LogLevel, redact } from '../src/base/log/logger.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { NODE_PROOF_HEADER } from '../src/client/signing.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { privateKeysOf } from './support/folders.ts';
import {
  auditEvents,
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  operatorRequest,
  outcome,
  provenByNode,
  send,
  sendRaw,
  sendSigned,
  signedByNode,
} from './support/requests.ts';

const REQUEST_KEYS = [
  'duration_ms',
  'level',
  'logger',
  'message',
  'method',
  'path',
  'remote_addr',
  'request_id',
  'status',
  'timestamp',
];

type Line = Readonly<Record<string, unknown>>;

test('in JSON a request has exactly the keys of the contract, and a timestamp', async () => {
  await using na = await startJson();
  const answer = await send(na, 'GET', '/nodes?capability=x', {
    headers: { 'X-Request-ID': 'my-id' },
  });
  assert.equal(answer.status, 200);
  const line = requestLines(na).at(-1) ?? {};
  assert.deepEqual(Object.keys(line).sort(), REQUEST_KEYS);
  const { duration_ms: duration, timestamp, message, ...rest } = line;
  assert.deepEqual(rest, {
    level: 'INFO',
    logger: 'mesh.access',
    method: 'GET',
    path: '/nodes',
    status: 200,
    remote_addr: '127.0.0.1',
    request_id: 'my-id',
  });
  assert.ok(typeof duration === 'number' && duration >= 0);
  assert.equal(timestamp, formatInstant(na.clock.now()));
  assert.equal(typeof message, 'string');
});

test('every request has one line, whatever its outcome', async () => {
  await using na = await startJson();
  const asked: [string, string, number][] = [
    ['GET', '/healthz', 200],
    ['HEAD', '/genesis', 200],
    ['GET', '/nowhere', 404],
    ['DELETE', '/join', 405],
    ['POST', '/join', 400],
    ['POST', '/admin/invite', 401],
  ];
  for (const [method, path] of asked) await sendRaw(na, method, path);
  await operate(na, '/admin/revoke', {}, { operator: na.standard });
  await send(na, 'GET', '/genesis', { headers: { 'If-None-Match': '*' } });
  assert.deepEqual(
    requestLines(na).map(({ method, path, status }) => [method, path, status]),
    [...asked, ['POST', '/admin/revoke', 403], ['GET', '/genesis', 304]],
  );
});

test('the request id of a line is that of the answer', async () => {
  await using na = await startJson();
  const answers = await Promise.all(Array.from({ length: 20 }, () => get(na, '/nowhere')));
  assert.deepEqual(
    new Set(requestLines(na).map(({ request_id: id }) => id)),
    new Set(answers.map(({ body }) => body.error.request_id)),
  );
});

test('lines that are not about a request have level, logger, message and timestamp', async () => {
  await using na = await startJson();
  await send(na, 'POST', '/admin/invite');
  const line = linesOf(na).find(({ logger }) => logger === 'mesh.audit') ?? {};
  assert.deepEqual(Object.keys(line).sort(), ['level', 'logger', 'message', 'timestamp']);
  assert.equal(line.level, 'WARNING');
  assert.match(String(line.message), /^admin_auth_failed \{.*"reason":"missing_headers"/);
});

test('the default is text: one line a request, with all of its details', async () => {
  await using na = await startTestAuthority();
  await send(na, 'GET', '/nodes', { headers: { 'X-Request-ID': 'my-id' } });
  const stamp = formatInstant(na.clock.now()).replaceAll('.', '\\.');
  assert.match(
    na.logLines.at(-1) ?? '',
    new RegExp(
      `^${stamp} INFO mesh\\.access GET /nodes 200 [0-9.]+ms request_id=my-id remote_addr=127\\.0\\.0\\.1\n$`,
    ),
  );
});

test('MESH_LOG_LEVEL is the least level that is written, and requests are INFO', async () => {
  for (const [index, level] of LOG_LEVELS.entries()) {
    for (const format of ['text', 'json'] as const) {
      const lines: string[] = [];
      const destination = { write: (line: string) => lines.push(line) };
      const logger = createLogger({ level, format, destination, now: () => 0 });
      for (const other of LOG_LEVELS) logger.write(other, 'test', `at ${other}`);
      assert.deepEqual(lines.map(levelOf), LOG_LEVELS.slice(index));
      for (const line of lines) assert.match(line, /\n$/);
    }
  }
  for (const [level, isLogged] of [
    ['INFO', true],
    ['WARNING', false],
  ] as const) {
    await using na = await startTestAuthority({ environment: { MESH_LOG_LEVEL: level } });
    await get(na, '/healthz');
    const isThere = na.logLines.some((line) => line.includes('GET /healthz'));
    assert.equal(isThere, isLogged);
  }
});

for (const format of ['text', 'json']) {
  test(`a path cannot forge or hide a line of the ${format} log`, async () => {
    await using na = await startTestAuthority({ environment: { MESH_LOG_FORMAT: format } });
    for (const path of [
      '/line%0Afeed%0D%0A2026-01-01T00:00:00Z INFO mesh.audit invite_created {}'.replaceAll(
        ' ',
        '%20',
      ),
      '/escape%1b%5b2J',
      '/zero%00byte',
      '/separator%E2%80%A8',
      '/quote%22,%22status%22:200,%22x%22:%22',
      '/backslash%5C',
      "/token='",
      '/token=%22',
      "/password:'",
      "/x-admin-signature='open",
      '/-----BEGIN%20PRIVATE%20KEY-----',
      '/-----BEGIN%20OPENSSH%20PRIVATE%20KEY-----abc',
      '/bearer%20',
      '/secret=%5C',
      '/etc/na.key',
    ]) {
      const before = na.logLines.length;
      const answer = await sendRaw(na, 'GET', path);
      assert.equal(outcome(answer), '404 not_found');
      const written = na.logLines.slice(before);
      assert.equal(written.length, 1);
      const [line = ''] = written;
      assert.equal(line.indexOf('\n'), line.length - 1, 'one line, and its end');
      const id = answer.headers.get('x-request-id') ?? '';
      if (format === 'text') {
        assert.match(line, / INFO mesh\.access GET .* 404 [0-9.]+ms request_id=/s, path);
        assert.doesNotMatch(line.slice(0, -1), /[\p{Cc}\p{Zl}\p{Zp}]/u, 'no other line end');
        assert.ok(line.endsWith(` request_id=${id} remote_addr=127.0.0.1\n`), path);
      } else {
        const parsed = JSON.parse(line);
        assert.deepEqual(Object.keys(parsed).sort(), REQUEST_KEYS, path);
        const { status, remote_addr, request_id } = parsed;
        assert.deepEqual([status, remote_addr, request_id], [404, '127.0.0.1', id], path);
      }
    }
  });
}

/** Secrets in the formats of this service and its neighbors. */
const SECRETS = {
  'hexadecimal tokens': fc.uint8Array({ minLength: 16, maxLength: 32 }).map(hex),
  UUIDs: fc.uuid(),
  'base64 keys': fc.uint8Array({ minLength: 32, maxLength: 32 }).map(base64),
  'base64 signatures': fc.uint8Array({ minLength: 64, maxLength: 64 }).map(base64),
  'base64url tokens': fc.uint8Array({ minLength: 24, maxLength: 48 }).map(base64url),
  'web tokens': fc
    .tuple(fc.uint8Array({ minLength: 16 }), fc.uint8Array({ minLength: 16 }))
    .map(([head, tail]) => `${base64url(head)}.${base64url(tail)}.${base64url(head)}`),
  passwords: fc.string({
    minLength: 16,
    maxLength: 40,
    unit: fc.constantFrom(...'abcXYZ0189!#$%*+-./:<=>?@^_|~'),
  }),
};

/** Names after which a value is secret [core-7]. */
const NAMES = [
  'signature',
  'X-Admin-Signature',
  'delete_signature',
  'invite_token',
  'token',
  'token_id',
  'password',
  'db.password',
  'secret',
  'client_secret',
  'private_key',
  'private-key',
  'privateKey',
];

const NAME = fc.constantFrom(
  ...NAMES,
  ...NAMES.map((name) => name.toUpperCase()),
  ...NAMES.map((name) => name.toLowerCase()),
);

/** The ways in which a secret can appear in a line. */
const EMBEDDINGS: { readonly [name: string]: (name: string, secret: string) => string } = {
  'a header': (name, secret) => `${name}: ${secret}`,
  'an assignment': (name, secret) => `${name}=${secret}`,
  'an assignment with blanks': (name, secret) => `${name} = ${secret}`,
  'double quotes': (name, secret) => `${name}="${secret}"`,
  'single quotes': (name, secret) => `${name}='${secret}'`,
  'quotes that never close': (name, secret) => `${name}='${secret}`,
  'a JSON member': (name, secret) => JSON.stringify({ [name]: secret }),
  'a JSON member with blanks': (name, secret) => JSON.stringify({ [name]: secret }, null, 1),
  'JSON within JSON': (name, secret) => JSON.stringify(JSON.stringify({ a: 1, [name]: secret })),
  'JSON within JSON within JSON': (name, secret) =>
    JSON.stringify(JSON.stringify(JSON.stringify({ [name]: secret }))),
  'a Python dictionary': (name, secret) => `{'a': 1, '${name}': '${secret}'}`,
  'a query': (name, secret) => `GET /join?a=1&${name}=${secret.replace(/[&#+%]/g, 'x')}&b=2`,
  'an encoded query': (name, secret) => `/join?${name}=${encodeURIComponent(secret)}&b=2`,
  'an encoded assignment': (name, secret) => encodeURIComponent(`${name}=${secret}`),
  'an encoded header': (name, secret) => encodeURIComponent(`${name}: ${secret}`),
  'an encoded JSON member': (name, secret) =>
    encodeURIComponent(JSON.stringify({ [name]: secret })),
  'the authorization header': (_, secret) => `Authorization: Bearer ${secret}`,
  'the authorization header in capitals': (_, secret) => `AUTHORIZATION: BEARER ${secret}`,
  'the authorization header as JSON': (_, secret) =>
    JSON.stringify({ authorization: `Bearer ${secret}` }),
  'an encoded bearer': (_, secret) => `/a?authorization=Bearer%20${encodeURIComponent(secret)}`,
  'a private-key block': (_, secret) =>
    `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----`,
  'a private-key block in JSON': (_, secret) =>
    JSON.stringify({
      pem: `-----BEGIN EC PRIVATE KEY-----\n${secret}\n-----END EC PRIVATE KEY-----\n`,
    }),
  'a private-key block cut short': (_, secret) => `-----BEGIN PRIVATE KEY-----\n${secret}`,
};

for (const [embedding, embed] of Object.entries(EMBEDDINGS)) {
  test(`no secret survives in ${embedding}`, () => {
    const secrets = fc.oneof(...Object.values(SECRETS));
    fc.assert(
      fc.property(NAME, secrets, (name, secret) => {
        const line = `status=200 ${embed(name, secret)} done`;
        assertGone(redact(line), secret);
        assertGone(redact(line), encodeURIComponent(secret));
      }),
      { numRuns: 400 },
    );
  });
}

test('no password survives in JSON, whatever characters it contains', () => {
  const password = fc.string({ minLength: 16, maxLength: 40, unit: 'grapheme-ascii' });
  fc.assert(
    fc.property(NAME, password, (name, secret) => {
      const inner = JSON.stringify({ [name]: secret, after: 1 });
      for (const line of [inner, JSON.stringify({ message: inner })]) {
        const written = redact(line);
        assertGone(written, secret);
        assertGone(written, JSON.stringify(secret).slice(1, -1));
      }
    }),
    { numRuns: 400 },
  );
});

test('no signature survives under the name records and headers give it: sig', () => {
  fc.assert(
    fc.property(SECRETS['base64 signatures'], (sig) => {
      const stamp = '2026-03-01T10:00:00Z';
      for (const line of [
        `X-Mesh-Node-Proof: v=1; key=k; ts=${stamp}; nonce=n; sig=${sig}`,
        JSON.stringify({ signatures: [{ key_id: 'k', sig }] }),
        JSON.stringify({ message: JSON.stringify({ signatures: [{ key_id: 'k', sig }] }) }),
      ]) {
        assertGone(redact(line), sig);
      }
    }),
  );
});

test('several secrets in one line are all removed', () => {
  const secrets = fc.array(fc.tuple(NAME, fc.constantFrom(...formsToJoin()), anySecret()), {
    minLength: 2,
    maxLength: 5,
  });
  fc.assert(
    fc.property(secrets, (parts) => {
      const line = parts.map(([name, form, secret]) => form(name, secret)).join(' and ');
      const written = redact(line);
      for (const [, , secret] of parts) assertGone(written, secret);
    }),
    { numRuns: 300 },
  );
});

test('fingerprints of tokens, ids and everything harmless survive', () => {
  const fingerprint = fc.uint8Array({ minLength: 8, maxLength: 8 }).map(hex);
  fc.assert(
    fc.property(fingerprint, fc.uuid(), SECRETS['hexadecimal tokens'], (print, id, token) => {
      for (const harmless of [
        JSON.stringify({ token_fingerprint: print, cert_id: id }),
        JSON.stringify({ invite_token_fingerprint: print, roles: ['role:client'] }),
        JSON.stringify({ message: JSON.stringify({ token_fingerprint: print, key_id: id }) }),
        `token_fingerprint=${print} request_id=${id} status=200 remote_addr=127.0.0.1`,
        `the token was used, the password was wrong, ${id}`,
      ]) {
        assert.equal(redact(harmless), harmless);
        const mixed = `${harmless} ${JSON.stringify({ invite_token: token })} ${harmless}`;
        const expected = `${harmless} {"invite_token":"[REDACTED]"} ${harmless}`;
        assert.equal(redact(mixed), expected);
      }
    }),
  );
});

test('key files are redacted, and words that only look like them are not', () => {
  for (const [line, expected] of [
    ['cannot read /var/lib/mesh/keys/na.key now', 'cannot read [REDACTED] now'],
    ['{"file":"keys/root.key"}', '{"file":"[REDACTED]"}'],
    ['reads keys/na.pub', 'reads keys/na.pub'],
    ['the monkey and the key', 'the monkey and the key'],
    ['token=', 'token='],
  ] as const) {
    assert.equal(redact(line), expected);
  }
});

test('redaction leaves a JSON line one JSON object', () => {
  fc.assert(
    fc.property(NAME, fc.string({ unit: 'grapheme' }), anySecret(), (name, text, secret) => {
      const message = `${text} ${name}=${secret} ${text} ${JSON.stringify({ [name]: secret })}`;
      const line = `${JSON.stringify({ level: 'INFO', path: text, message, status: 200 })}\n`;
      const written = redact(line);
      const parsed = JSON.parse(written);
      assert.deepEqual(Object.keys(parsed), ['level', 'path', 'message', 'status']);
      assert.equal(written.at(-1), '\n');
      assertGone(written, secret);
    }),
    { numRuns: 400 },
  );
});

for (const [shape, line] of [
  ['one long word', `secret ${'a'.repeat(30_000)}`],
  ['slashes', `.key ${'/'.repeat(30_000)}`],
  ['backslashes', `secret="${'\\'.repeat(30_000)}`],
  ['names without values', 'token '.repeat(5000)],
  ['names and backslashes', 'token\\'.repeat(5000)],
  ['values that never close', 'token="'.repeat(4000)],
  ['blocks that never close', '-----BEGIN PRIVATE KEY-----'.repeat(1000)],
  ['blanks behind bearer', `bearer${'+'.repeat(30_000)}"`],
] as const) {
  test(`redacting 30 kB of ${shape} takes milliseconds`, () => {
    const before = process.cpuUsage();
    redact(line);
    const { user } = process.cpuUsage(before);
    assert.ok(user < 200_000, `${Math.round(user / 1000)} ms`);
  });
}

for (const format of ['text', 'json']) {
  test(`a whole enrollment leaves no token, signature or private key in the ${format} log`, async () => {
    const environment = { MESH_LOG_FORMAT: format, MESH_LOG_LEVEL: 'DEBUG' };
    await using na = await startTestAuthority({ environment });
    const secrets: string[] = [...privateKeysOf(na)];

    const asked = operatorRequest(na, '/admin/invite', { count: 3 });
    secrets.push(asked.init.headers['X-Admin-Signature'] ?? '');
    const { body } = await sendSigned(na, asked);
    const tokens: string[] = body.tokens.map(({ token_id }: { token_id: string }) => token_id);
    secrets.push(...tokens);

    const key = newKey();
    const [first = '', second = ''] = tokens;
    const joining = signedByNode(na, '/join', key, { invite_token: first });
    const { body: certificate } = await sendSigned(na, joining);
    secrets.push(signatureIn(joining.init.body), certificate.signatures[0].sig);
    await sendSigned(na, joining);
    const forged = { signedBy: newKey() };
    const unproven = signedByNode(na, '/join', newKey(), { invite_token: second }, forged);
    secrets.push(signatureIn(unproven.init.body));
    await sendSigned(na, unproven);

    const node = { key, certId: certificate.cert_id };
    await heartbeat(na, node);
    const proven = await provenByNode(na, '/heartbeat', key, { cert_id: node.certId });
    secrets.push(proven.init.headers[NODE_PROOF_HEADER]?.split('sig=')[1] ?? '');
    await sendSigned(na, proven);
    await sendSigned(na, { ...proven, path: '/renew' });
    const renewal = await nodeRequest(na, '/renew', key, { cert_id: node.certId });
    assert.equal(outcome(renewal), '200');
    secrets.push(renewal.body.signatures[0].sig);
    await operate(na, '/admin/revoke', { cert_id: node.certId });
    const { body: crl } = await get(na, '/crl');
    secrets.push(crl.signatures[0].sig);
    await send(na, 'GET', `/join?invite_token=${second}`);
    await send(na, 'GET', `/invite_token=${second}`);
    await send(na, 'POST', '/join', { body: `{"invite_token":"${second}"` });
    await na.stop();

    const log = na.logLines.join('');
    assert.ok(na.logLines.length > 10);
    for (const secret of secrets) {
      assert.ok(secret.length >= 32);
      assert.equal(log.includes(secret), false, secret);
      assert.equal(log.includes(encodeURIComponent(secret)), false, secret);
    }
  });
}

test('the audit log records every step of an enrollment, in order', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  await heartbeat(na, node);
  await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
  await operate(na, '/admin/revoke', { cert_id: node.certId, reason: 'key_compromise' });
  await heartbeat(na, node);
  await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
  const token = await invite(na);
  await nodeRequest(na, '/join', node.key, { invite_token: token });
  await operate(na, '/admin/operator-keys/ops-standard/revoke');
  assert.deepEqual(
    auditEvents(na).map(({ type, details }) => [type, details.reason]),
    [
      ['invite_created', undefined],
      ['certificate_issued', undefined],
      ['certificate_renewed', undefined],
      ['certificate_revoked', 'key_compromise'],
      ['certificate_revoked', 'key_compromise'],
      ['heartbeat_rejected', 'key_compromise'],
      ['renewal_rejected', 'key_compromise'],
      ['invite_created', undefined],
      ['join_rejected', 'node_key_compromised'],
      ['operator_key_revoked', 'unspecified'],
    ],
  );
});

test('a refusal is generic to the client and exact in the log', async () => {
  await using na = await startTestAuthority();
  await operate(na, '/admin/operator-keys/ops-standard/revoke');
  const answer = await operate(na, '/admin/invite', {}, { operator: na.standard });
  assert.equal(answer.text.includes('revoked'), false);
  assert.deepEqual(auditEvents(na).at(-1)?.details.reason, 'revoked_key');
});

test('mesh.audit logs what was refused for its proof as a warning', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  await send(na, 'POST', '/admin/invite');
  await operate(na, '/admin/revoke', {}, { operator: na.standard });
  await heartbeat(na, node, { signedBy: newKey() });
  for (const [event, level] of [
    ['invite_created', 'INFO'],
    ['certificate_issued', 'INFO'],
    ['admin_auth_failed', 'WARNING'],
    ['admin_authz_denied', 'WARNING'],
    ['node_auth_failed', 'WARNING'],
  ] as const) {
    const line = na.logLines.find((candidate) => candidate.includes(` ${event} `)) ?? '';
    assert.match(line, new RegExp(`^\\S+ ${level} mesh\\.audit ${event} \\{`));
  }
});

function startJson(): Promise<TestAuthority> {
  return startTestAuthority({ environment: { MESH_LOG_FORMAT: 'json' } });
}

function linesOf(na: TestAuthority): Line[] {
  return na.logLines.map((line) => JSON.parse(line) as Line);
}

function requestLines(na: TestAuthority): Line[] {
  return linesOf(na).filter(({ logger }) => logger === 'mesh.access');
}

function levelOf(line: string): LogLevel | undefined {
  return LOG_LEVELS.find((level) => line.includes(`at ${level}`) && line.split(level).length === 3);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}

function anySecret() {
  return fc.oneof(...Object.values(SECRETS));
}

function formsToJoin() {
  const names = ['a header', 'double quotes', 'a JSON member', 'JSON within JSON', 'an assignment'];
  return names.map((name) => EMBEDDINGS[name] ?? ((_: string, secret: string) => secret));
}

/** Checks that no eight consecutive characters of the secret remain. */
function assertGone(written: string, secret: string): void {
  for (let start = 0; start + 8 <= secret.length; start += 1) {
    const part = secret.slice(start, start + 8);
    assert.equal(written.includes(part), false, `${part} of ${secret} is left in ${written}`);
  }
}

function signatureIn(body: string | undefined): string {
  return JSON.parse(body ?? '{}').signature;
}

test('a path is logged as it was sent, except for secrets', async () => {
  await using na = await startTestAuthority();
  const forged = '/agents/x%20200%200.01ms%20request_id=forged';
  for (const [path, expected] of [
    [forged, forged],
    ['/a%0Ab', '/a%0Ab'],
    ['/%E2%80%AEtxt', '/%E2%80%AEtxt'],
    ['/a%ZZ', '/a%ZZ'],
    ['/%74oken=abc', '/token=[REDACTED]'],
    ['/x%20%74oken=abc', '/x%20token=[REDACTED]'],
  ] as const) {
    await sendRaw(na, 'GET', path);
    const line = na.logLines.at(-1) ?? '';
    assert.match(
      line,
      /^\S+ INFO mesh\.access GET \S+ \d{3} [\d.]+ms request_id=\S+ remote_addr=\S+\n$/,
    );
    assert.equal(line.split(' ')[4], expected);
  }
});

test('a text line contains no invisible characters that change how it reads', () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const logger = createLogger({ level: 'INFO', format: 'text', destination, now: () => 0 });
  logger.write('INFO', 'http', 'a\u202eb\u200bc\ufeffd\u2066e\u00adf');
  assert.match(lines[0] ?? '', / a\?b\?c\?d\?e\?f\n$/);
});
