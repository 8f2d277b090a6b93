import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatInstant, parseDatetime, parseRequestTimestamp } from '../src/base/timestamp.ts';
import { readJoinCertificate } from '../src/protocol/records/join-certificate.ts';
import { readVectors } from './support/vectors.ts';

interface DatetimeVector {
  readonly input: string;
  readonly canonical: string | null;
}

const vectors = readVectors<{ record_datetimes: DatetimeVector[] }>('own_wire_core.json');

test('the 29 datetimes of the vectors have their canonical spelling, or none', () => {
  assert.equal(vectors.record_datetimes.length, 29);
  for (const { input, canonical } of vectors.record_datetimes) {
    assert.equal(parseDatetime(input)?.text ?? null, canonical, input);
  }
});

for (const [input, canonical] of [
  ['2026-01-01T00:00:00\u221203:30', '2026-01-01T00:00:00-03:30'],
  ['2026-01-01T00:00:00\u221200:00', '2026-01-01T00:00:00Z'],
  ['2026-01-01T00:00:00+23:59', '2026-01-01T00:00:00+23:59'],
  ['2026-01-01T00:00:00-2359', '2026-01-01T00:00:00-23:59'],
  ['2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00Z'],
  ['2026-01-01T00:00:00.0000001Z', '2026-01-01T00:00:00Z'],
  ['2026-01-01T00:00:00.12Z', '2026-01-01T00:00:00.120000Z'],
  ['2026-01-01t02:30+02:00', '2026-01-01T02:30:00+02:00'],
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
  ['9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59.999999Z'],
  ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00Z'],
  ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00Z'],
] as const) {
  test(`the record datetime ${JSON.stringify(input)} becomes ${canonical}`, () => {
    assert.equal(parseDatetime(input)?.text, canonical);
  });
}

for (const [fault, input] of [
  ['year 0', '0000-01-01T00:00:00Z'],
  ['a year of five digits', '10000-01-01T00:00:00Z'],
  ['a signed year', '+2026-01-01T00:00:00Z'],
  ['month 13', '2026-13-01T00:00:00Z'],
  ['month 0', '2026-00-01T00:00:00Z'],
  ['day 0', '2026-01-00T00:00:00Z'],
  ['31 April', '2026-04-31T00:00:00Z'],
  ['29 February of a common year', '2026-02-29T00:00:00Z'],
  ['29 February of 1900', '1900-02-29T00:00:00Z'],
  ['minute 60', '2026-01-01T00:60:00Z'],
  ['offset minutes of 60', '2026-01-01T00:00:00+12:60'],
  ['an offset with seconds', '2026-01-01T00:00:00+02:00:30'],
  ['an offset of one digit', '2026-01-01T00:00:00+2'],
  ['a blank behind it', '2026-01-01T00:00:00Z '],
  ['a line feed behind it', '2026-01-01T00:00:00Z\n'],
  ['two blanks instead of T', '2026-01-01  00:00:00Z'],
  ['a week date', '2026-W01-1T00:00:00Z'],
  ['an ordinal date', '2026-001T00:00:00Z'],
  ['a date with an offset', '2026-01-01Z'],
  ['a fraction of a minute', '2026-01-01T00:00.5Z'],
  ['two zones', '2026-01-01T00:00:00Z+00:00'],
  ['a zone name', '2026-01-01T00:00:00 UTC'],
  ['digits that are not ASCII', '２026-01-01T00:00:00Z'],
  ['a decimal number', '1767225600'],
  ['nothing', ''],
] as const) {
  test(`${fault} is not a datetime, in a record or a request`, () => {
    assert.equal(parseDatetime(input), null);
    assert.equal(parseRequestTimestamp(input), null);
  });
}

for (const [what, value] of [
  ['without an offset', '2026-01-01T00:00:00'],
  ['that is only a date', '2026-01-01'],
  ['that is a number', 1767225600],
  ['that is a number in a string', '1767225600'],
  ['that is true', true],
  ['that is null', null],
  ['that is a list', ['2026-01-01T00:00:00Z']],
] as const) {
  test(`a record with a datetime ${what} is invalid`, () => {
    const record = {
      cert_id: 'c',
      node_public_key: 'k',
      network_name: 'alpha',
      issued_at: '2026-01-01T00:00:00Z',
      expires_at: '2026-01-02T00:00:00Z',
      issued_by: 'na',
    };
    assert.notEqual(readJoinCertificate(record), null);
    assert.equal(readJoinCertificate({ ...record, issued_at: value }), null);
  });
}

test('a datetime without offset is naive and its instant is that of UTC', () => {
  assert.deepEqual(parseDatetime('2026-01-01T00:00:00.5'), {
    instant: Date.UTC(2026, 0, 1) + 500,
    text: '2026-01-01T00:00:00.500000',
    naive: true,
  });
  assert.equal(parseDatetime('2026-01-01T00:00:00Z')?.naive, false);
});

for (const [text, instant] of [
  ['2026-01-01T00:00:00Z', Date.UTC(2026, 0, 1)],
  ['2026-01-01T00:00:00', Date.UTC(2026, 0, 1)],
  ['2026-01-01', Date.UTC(2026, 0, 1)],
  ['2026-01-01T02:00:00+02:00', Date.UTC(2026, 0, 1)],
  ['2026-01-01T02:00:00+0200', Date.UTC(2026, 0, 1)],
  ['2026-01-01T02:00:00+02', Date.UTC(2026, 0, 1)],
  ['2025-12-31T20:30:00-03:30', Date.UTC(2026, 0, 1)],
  ['2026-01-01T00:00:00.250Z', Date.UTC(2026, 0, 1) + 250],
  ['2026-01-01T00:00:00.000250+00:00', Date.UTC(2026, 0, 1) + 0.25],
  ['0001-01-01T00:00:00Z', Date.parse('0001-01-01T00:00:00Z')],
] as const) {
  test(`the request timestamp ${text} is read as one instant`, () => {
    assert.equal(parseRequestTimestamp(text), instant);
  });
}

test('the grammar of a request allows an offset of hours alone, that of a record does not', () => {
  assert.equal(parseRequestTimestamp('2026-01-01T02:00:00+02'), Date.UTC(2026, 0, 1));
  assert.equal(parseDatetime('2026-01-01T02:00:00+02'), null);
  assert.equal(parseRequestTimestamp('2026-01-01T02:00:00+24'), null);
});

for (const [instant, text] of [
  [Date.UTC(2026, 2, 1, 10), '2026-03-01T10:00:00Z'],
  [Date.UTC(2026, 2, 1, 10, 0, 0, 120), '2026-03-01T10:00:00.120000Z'],
  [Date.UTC(2026, 2, 1, 10) + 0.001, '2026-03-01T10:00:00.000001Z'],
  [Date.UTC(2026, 2, 1, 10) + 999.999, '2026-03-01T10:00:00.999999Z'],
  [Date.UTC(2026, 2, 1, 10) + 0.9996, '2026-03-01T10:00:00.001000Z'],
  [Date.UTC(2026, 2, 1, 10) - 0.0004, '2026-03-01T10:00:00Z'],
  [0, '1970-01-01T00:00:00Z'],
  [-0.5, '1969-12-31T23:59:59.999500Z'],
] as const) {
  test(`the instant ${instant} is written ${text}`, () =>
    assert.equal(formatInstant(instant), text));
}

const microseconds = fc
  .tuple(
    fc.integer({ min: Date.UTC(1950, 0, 1), max: Date.UTC(2100, 0, 1) }),
    fc.oneof(fc.integer({ min: 0, max: 999 }), fc.double({ min: 999, max: 1000, noNaN: true })),
  )
  .map(([whole, micros]) => whole + micros / 1000);

test('a written instant reads back the same, to the microsecond', () => {
  fc.assert(
    fc.property(microseconds, (instant) => {
      const text = formatInstant(instant);
      assert.match(text, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$/);
      assert.doesNotMatch(text, /\.0{6}Z$/);
      assert.equal(parseDatetime(text)?.text, text);
      assert.equal(formatInstant(parseDatetime(text)?.instant ?? 0), text);
      assert.ok(Math.abs((parseRequestTimestamp(text) ?? 0) - instant) < 0.001);
    }),
    { numRuns: 2000 },
  );
});

test('the canonical spelling of a datetime is its own canonical spelling, at the same instant', () => {
  const digits = (low: number, high: number) =>
    fc.integer({ min: low, max: high }).map((value) => String(value).padStart(2, '0'));
  const zone = fc.oneof(
    fc.constantFrom('Z', 'z', '+00:00', '-0000', ''),
    fc.tuple(
      fc.constantFrom('+', '-', '\u2212'),
      digits(0, 23),
      fc.constantFrom(':', ''),
      digits(0, 59),
    ),
  );
  const spelling = fc
    .tuple(
      fc.integer({ min: 1000, max: 9999 }),
      digits(1, 12),
      digits(1, 28),
      fc.constantFrom('T', 't', ' ', '_'),
      digits(0, 23),
      digits(0, 59),
      fc.option(fc.tuple(digits(0, 59), fc.constantFrom('', '.5', ',25', '.123456789', '.000'))),
      zone,
    )
    .map(([year, month, day, separator, hour, minute, second, offset]) => {
      const seconds = second === null ? '' : `:${second.join('')}`;
      const suffix = typeof offset === 'string' ? offset : offset.join('');
      return `${year}-${month}-${day}${separator}${hour}:${minute}${seconds}${suffix}`;
    });
  fc.assert(
    fc.property(spelling, (text) => {
      const read = parseDatetime(text);
      assert.ok(read !== null, text);
      assert.deepEqual(parseDatetime(read.text), read);
      const zoned = read.naive ? `${read.text}Z` : read.text;
      assert.ok(Math.abs(Date.parse(zoned.replace(/(\.\d{3})\d{3}/, '$1')) - read.instant) < 1);
    }),
    { numRuns: 2000 },
  );
});

test('a datetime in a common spelling is read as in any other', () => {
  const part = (max: number) => fc.integer({ min: 0, max }).map((n) => String(n).padStart(2, '0'));
  const parts = fc.tuple(
    fc.integer({ min: 0, max: 9999 }).map((year) => String(year).padStart(4, '0')),
    part(13),
    part(32),
    part(24),
    part(60),
    part(60),
    fc.constantFrom('', '.000000', '.000001', '.999999', '.000', '.007', '.999'),
  );
  fc.assert(
    fc.property(parts, ([year, month, day, hour, minute, second, fraction]) => {
      const clock = `${hour}:${minute}:${second}${fraction}`;
      const canonical = parseDatetime(`${year}-${month}-${day}T${clock}Z`);
      assert.deepEqual(canonical, parseDatetime(`${year}-${month}-${day} ${clock}+00:00`));
    }),
    { numRuns: 2000 },
  );
});
