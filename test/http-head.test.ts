/** How the head of a request is parsed: query, encodings, validators. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { acceptsGzip, documentReply, prefersHtml } from '../src/edge/reply.ts';
import { parseQuery } from '../src/edge/request/parse.ts';
import { sourceAddress } from '../src/edge/request/request-head.ts';
import { decodePath, matchedPath } from '../src/edge/request/route.ts';
import { publishedDocument } from '../src/protocol/contract/documents.ts';
import { sharedAuthority, startTestAuthority } from './support/authority.ts';
import { cpuOf } from './support/cpu.ts';
import { rawConnection } from './support/raw-http.ts';
import {
  operate,
  operatorRequest,
  outcome,
  send,
  sendRaw,
  sendSigned,
} from './support/requests.ts';

const shared = sharedAuthority();

test('a query is read by names, each with its values', () => {
  for (const [text, expected] of [
    ['a=1', { a: ['1'] }],
    ['a=1&a=2&b=', { a: ['1', '2'], b: [''] }],
    ['a', { a: [''] }],
    ['a&&b', { a: [''], b: [''] }],
    ['=1', { '': ['1'] }],
    ['a=b=c', { a: ['b=c'] }],
    ['a+b=c+d', { 'a b': ['c d'] }],
    ['a%2Bb=%26', { 'a+b': ['&'] }],
    ['%C3%BC=%E2%9C%93', { ü: ['✓'] }],
    ['a=%zz&b=%', { a: ['%zz'], b: ['%'] }],
    ['a=%ff%zz', { a: ['\ufffd%zz'] }],
  ] as const) {
    assert.deepEqual({ ...parseQuery(text) }, expected, text);
  }
  assert.deepEqual(Object.entries(parseQuery('__proto__=a&constructor=b')), [
    ['__proto__', ['a']],
    ['constructor', ['b']],
  ]);
});

test('a query is read as URLSearchParams reads it', () => {
  const parameters = fc.array(fc.tuple(fc.string({ minLength: 1 }), fc.string()), { maxLength: 9 });
  fc.assert(
    fc.property(parameters, (pairs) => {
      const sent = new URLSearchParams(pairs);
      const read = parseQuery(sent.toString());
      for (const name of sent.keys()) assert.deepEqual(read[name], sent.getAll(name));
    }),
  );
});

test('exactly the unreserved characters of a path are decoded before the route lookup', () => {
  for (let code = 0; code < 0x80; code += 1) {
    const character = String.fromCharCode(code);
    const encoded = `%${code.toString(16).padStart(2, '0')}`;
    for (const spelling of [encoded, encoded.toUpperCase()]) {
      const isUnreserved = /[A-Za-z0-9._~-]/.test(character);
      assert.equal(matchedPath(`/a${spelling}`), `/a${isUnreserved ? character : spelling}`);
    }
  }
  fc.assert(
    fc.property(fc.webPath(), (path) => {
      assert.equal(decodePath(matchedPath(path)), decodePath(path));
      assert.equal(matchedPath(path).split('/').length, path.split('/').length);
    }),
  );
});

test('a path is matched by its unreserved characters, and a method by its exact spelling', async () => {
  const na = await shared();
  for (const [request, expected] of [
    ['GET /genesis', 200],
    ['GET /%67enesi%73', 200],
    ['HEAD /%67enesis', 200],
    ['get /genesis', 405],
    ['Get /genesis', 405],
    ['head /genesis', 405],
    ['GET /%2Fgenesis', 404],
    ['GET /%2567enesis', 404],
    ['GET /agents/%2e%2e/genesis', 404],
    ['GET /Genesis', 404],
    ['GET /%67%ff', 400],
  ] as const) {
    using connection = await rawConnection(na.url);
    connection.write(`${request} HTTP/1.1\r\nHost: na\r\nConnection: close\r\n\r\n`);
    assert.match(await connection.closed(), new RegExp(`^HTTP/1.1 ${expected} `), request);
  }
});

test('an encoded slash stays within its segment, and the decoded path is signed', async () => {
  const na = await shared();
  const signed = operatorRequest(na, '/admin/operator-keys/ops%2Fwest/revoke', {});
  assert.equal(outcome(await sendSigned(na, signed)), '404 unknown_operator_key');
  for (const path of [
    '/admin/operator-keys/ops/west/revoke',
    '/admin%2Foperator-keys/ops/revoke',
  ]) {
    assert.equal(outcome(await send(na, 'POST', path)), '404 not_found');
  }
  const { init } = operatorRequest(na, '/admin/operator-keys/ops-standard/revoke', {});
  const path = '/%61dmin/operator-%6Beys/ops%2dstandar%64/revoke';
  assert.equal(outcome(await sendSigned(na, { method: 'POST', path, init })), '200');
});

test('a query has at most 100 parameters, regardless of their names', async () => {
  const na = await shared();
  const query = (count: number) => Array.from({ length: count }, (_, i) => `a=${i}`).join('&');
  assert.equal(outcome(await send(na, 'GET', `/nodes?${query(100)}`)), '200');
  for (const between of ['', '&'.repeat(101)]) {
    const many = `/nodes?${between}${query(101)}`;
    assert.equal(outcome(await send(na, 'GET', many)), '400 bad_request');
    const { body } = await send(na, 'GET', `/agents?${between}capability=x`);
    assert.equal(body.capability, 'x');
  }
  const signed = await operate(na, `/nodes?${query(100)}`, {}, { method: 'GET' });
  assert.equal(outcome(signed), '200');
});

test('Accept-Encoding accepts gzip by its name or by *, unless its weight is 0', () => {
  const accepted = [
    'gzip',
    'gzip, deflate, br',
    'GZIP',
    'br, gzip;q=0.5',
    '*',
    'br;q=1.0, *;q=0.1',
  ];
  for (const header of accepted) assert.equal(acceptsGzip(header), true, header);
  const others = [
    '',
    'gzip;q=0',
    'gzip;q=0.0, *',
    '*;q=0',
    'identity',
    'gzip;q=nonsense',
    ',,;q=,',
  ];
  for (const header of others) assert.equal(acceptsGzip(header), false, header);
});

test('a document is compressed from 1,025 bytes on, and only then varies by encoding', async () => {
  for (const [bytes, encoding] of [
    [1024, null],
    [1025, 'gzip'],
  ] as const) {
    const document = publishedDocument('x'.repeat(bytes));
    const { headerLines } = await documentReply(document, { ifNoneMatch: '', acceptsGzip: true });
    const headers = new Headers(
      headerLines.split('\r\n').map((line) => line.split(': ') as [string, string]),
    );
    assert.equal(headers.get('Content-Encoding'), encoding);
    assert.equal(headers.get('Vary'), encoding && 'Accept-Encoding');
  }
});

/** As long as a head can be that arrives at once. */
const LONG = 58 * 1024;
/** Parsing without a bound takes milliseconds, or with brackets in an address, seconds. */
const MOST_CPU_MS = 0.5;

function repeated(text: string): string {
  return text.repeat(Math.floor(LONG / text.length));
}

function headWith(name: string, value: string, target: { path?: string; query?: string } = {}) {
  const has = (asked: string) => asked === name;
  return {
    method: 'GET',
    path: '/genesis',
    query: '',
    header: (asked: string) => (has(asked) ? value : ''),
    headerLines: (asked: string) => (has(asked) ? [value] : []),
    peerAddress: () => '192.0.2.1',
    isForwarded: false,
    ...target,
  };
}

for (const [what, read] of [
  ['Accept-Encoding', () => acceptsGzip(repeated('a,'))],
  ['Accept', () => prefersHtml(`text/html,${repeated('a/b,')}`)],
  ['X-Forwarded-For', () => sourceAddress(headWith('x-forwarded-for', repeated('1,')), 1)],
  [
    'X-Forwarded-For in brackets',
    () => sourceAddress(headWith('x-forwarded-for', `[${repeated(':')}`), 1),
  ],
] as const) {
  test(`58 KB of ${what} are not parsed`, async () => {
    const times: number[] = [];
    for (let round = 0; round < 20; round += 1) times.push(await cpuOf(read));
    assert.ok(Math.min(...times) < MOST_CPU_MS, `${Math.min(...times)} ms`);
  });
}

const PEER = '127.0.0.1';

/** The source of a request with these X-Forwarded-For headers, behind this number of proxies. */
const SOURCES: readonly (readonly [hops: string, forwarded: readonly string[], source: string])[] =
  [
    ['0', ['192.0.2.1'], PEER],
    ['0', [], PEER],
    ['1', [], PEER],
    ['1', ['192.0.2.1'], '192.0.2.1'],
    ['1', ['198.51.100.9, 192.0.2.1'], '192.0.2.1'],
    ['2', ['198.51.100.9, 192.0.2.1, 10.0.0.1'], '192.0.2.1'],
    ['2', ['192.0.2.1'], '192.0.2.1'],
    ['1', ['198.51.100.9,192.0.2.1 '], '192.0.2.1'],
    ['1', ['198.51.100.9', '192.0.2.1'], '192.0.2.1'],
    ['2', ['198.51.100.9, 192.0.2.1', '10.0.0.1'], '192.0.2.1'],
    ['1', ['2001:DB8::0:1'], '2001:db8::1'],
    ['1', ['::ffff:192.0.2.1'], '192.0.2.1'],
    ['1', ['7.7.7.7:1234'], '7.7.7.7'],
    ['1', ['[2001:db8::1]:80'], '2001:db8::1'],
    ['1', ['[2001:db8::1]'], '2001:db8::1'],
    ['1', ['[::ffff:192.0.2.1]:65535'], '192.0.2.1'],
    ['1', ['fe80::1%eth0'], 'fe80::1'],
    ['2', ['fe80::1%eth0.100'], 'fe80::1'],
    ['1', ['::ffff:192.0.2.1%a-b'], '192.0.2.1'],
    ['1', ['[fe80::1%eth0.100]:80'], 'fe80::1'],
    ['1', ['7.7.7.7%eth0'], PEER],
    ['1', ['7.7.7.7:'], PEER],
    ['1', ['7.7.7.7:123456'], PEER],
    ['1', ['[2001:db8::1]:123456'], PEER],
    ['1', ['7.7.7.7:80:80'], PEER],
    ['1', ['[2001:db8::1'], PEER],
    ['1', ['[7.7.7.7]:80'], PEER],
    ['1', ['not an address'], PEER],
    ['1', ['0x7f.1'], PEER],
    ['1', ['1'], PEER],
    ['1', ['192.0.2.1, '], PEER],
  ];

test('the source of a request is what the outermost trusted proxy has added, if that is an address', async () => {
  for (const [hops, forwarded, source] of SOURCES) {
    const head = {
      ...headWith('', ''),
      headerLines: () => [...forwarded],
      peerAddress: () => PEER,
    };
    assert.equal(sourceAddress(head, Number(hops)), source, `${hops}: ${forwarded.join()}`);
  }
  for (const [hops, source] of [
    ['0', PEER],
    ['1', '192.0.2.1'],
    ['2', '198.51.100.9'],
  ] as const) {
    await using na = await startTestAuthority({ environment: { MESH_PROXY_HOPS: hops } });
    const headers = { 'X-Forwarded-For': ['198.51.100.9', '192.0.2.1'] };
    await sendRaw(na, 'GET', '/healthz', { headers });
    assert.match(na.logLines.at(-1) ?? '', new RegExp(` remote_addr=${source}\\s*$`));
  }
});

test('the address that a trusted proxy has added to a long X-Forwarded-For is the source', () => {
  const head = headWith('x-forwarded-for', `${repeated('198.51.100.1, ')}203.0.113.7`);
  assert.equal(sourceAddress(head, 1), '203.0.113.7');
});

test('a long list of validators is not compared, and a target above 4,096 characters is refused', async () => {
  const na = await shared();
  const { headers } = await sendRaw(na, 'GET', '/crl');
  const etag = headers.get('etag') ?? '';
  const asked = (held: string) =>
    sendRaw(na, 'GET', '/crl', { headers: { 'If-None-Match': held } });
  assert.equal((await asked(`${'"a", '.repeat(100)}${etag}`)).status, 304);
  assert.equal((await asked(`${'"a", '.repeat(300)}${etag}`)).status, 200);
  assert.equal(outcome(await send(na, 'GET', `/nodes?${'a'.repeat(3800)}`)), '200');
  for (const [target, expected] of [
    [`/nodes?${'a'.repeat(4090)}`, '200'],
    [`/nodes?${'a'.repeat(4091)}`, '400 bad_request'],
    [`/${'a'.repeat(4096)}`, '400 bad_request'],
  ] as const) {
    // From Node.js 22 on, uWebSockets.js itself refuses a head of more than 4 KiB.
    const isRead = process.version.startsWith('v20.');
    assert.equal(outcome(await send(na, 'GET', target)), isRead ? expected : '431');
  }
});
