/** What is read of a request's head: query, encodings, validators. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseQuery } from '../src/http/query.ts';
import { acceptsGzip } from '../src/http/reply.ts';
import { startTestAuthority } from './support/authority.ts';
import { operate, outcome, send, sendRaw } from './support/requests.ts';

function plain(text: string): { [name: string]: readonly string[] } {
  return { ...parseQuery(text) };
}

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
] as const) {
  test(`the query ${text} is read as ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(plain(text), expected);
  });
}

test('names that every object has are parameters like any other', () => {
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

test('a query has at most 100 parameters, whatever their names', async () => {
  await using na = await startTestAuthority();
  const query = (count: number) => Array.from({ length: count }, (_, i) => `a=${i}`).join('&');
  assert.equal(outcome(await send(na, 'GET', `/nodes?${query(100)}`)), '200');
  assert.equal(outcome(await send(na, 'GET', `/nodes?${query(101)}`)), '400 bad_request');
  const signed = await operate(na, `/nodes?${query(100)}`, {}, { method: 'GET' });
  assert.equal(outcome(signed), '200');
});

for (const [header, expected] of [
  ['', false],
  ['gzip', true],
  ['gzip, deflate, br', true],
  ['GZIP', true],
  ['br, gzip;q=0.5', true],
  ['gzip;q=0', false],
  ['gzip;q=0.0, *', false],
  ['*', true],
  ['*;q=0', false],
  ['identity', false],
  ['br;q=1.0, *;q=0.1', true],
  ['gzip;q=nonsense', false],
  [',,;q=,', false],
] as const) {
  test(`Accept-Encoding: ${header} ${expected ? 'takes' : 'does not take'} gzip`, () => {
    assert.equal(acceptsGzip(header), expected);
  });
}

test('If-None-Match compares weakly, in lists, and with *', async () => {
  await using na = await startTestAuthority();
  const etag = (await sendRaw(na, 'GET', '/crl')).headers.get('etag') ?? '';
  const statusFor = async (ifNoneMatch: string) =>
    (await sendRaw(na, 'GET', '/crl', { headers: { 'If-None-Match': ifNoneMatch } })).status;
  for (const held of [etag, `W/${etag}`, `"a", ${etag}`, `"a" , W/${etag},"b"`, '*']) {
    assert.equal(await statusFor(held), 304, held);
  }
  for (const other of ['"a"', etag.slice(1, -1), `${etag.slice(0, -1)}x"`, 'W/"a", "b"', ',']) {
    assert.equal(await statusFor(other), 200, other);
  }
});
