import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJsonBytes } from '../src/base/json/bytes.ts';
import { MAX_DEPTH, parseJson } from '../src/base/json/parse.ts';
import { isJsonObject, JsonFloat, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson, compareCodePoints, jsonText } from '../src/base/json/write.ts';
import { anyText } from './support/any-text.ts';
import { readVectors } from './support/vectors.ts';

interface CanonicalVector {
  readonly input: string;
  readonly canonical: string;
}

const vectors = readVectors<{ canonical_json: CanonicalVector[] }>('own_wire_core.json');
const canonical = (text: string) => canonicalJson(parseJson(text));

test('the canonical texts are those of the vectors', () => {
  assert.ok(vectors.canonical_json.length >= 6);
  for (const { input, canonical: expected } of vectors.canonical_json) {
    assert.equal(canonical(input), expected);
    assert.equal(canonical(expected), expected);
  }
});

for (const [token, expected] of [
  ['1.0', '1.0'],
  ['1.00', '1.0'],
  ['1e0', '1.0'],
  ['1', '1'],
  ['-0', '0'],
  ['-0.0', '-0.0'],
  ['0e5', '0.0'],
  ['1e5', '100000.0'],
  ['1E+5', '100000.0'],
  ['0.0001', '0.0001'],
  ['1e-5', '1e-05'],
  ['1e-7', '1e-07'],
  ['-1.5e-100', '-1.5e-100'],
  ['1e15', '1000000000000000.0'],
  ['1e16', '1e+16'],
  ['9999999999999998.0', '9999999999999998.0'],
  ['123456789012345680.0', '1.2345678901234568e+17'],
  ['1e22', '1e+22'],
  ['5e-324', '5e-324'],
  ['1.7976931348623157e308', '1.7976931348623157e+308'],
  ['100.50', '100.5'],
  ['1e-400', '0.0'],
  ['-1e-400', '-0.0'],
  ['9007199254740991', '9007199254740991'],
  ['9007199254740993', '9007199254740993'],
  ['-9007199254740993', '-9007199254740993'],
  [`1${'0'.repeat(400)}`, `1${'0'.repeat(400)}`],
] as const) {
  test(`the number ${token.slice(0, 30)} is written as ${expected.slice(0, 30)} in both forms`, () => {
    assert.equal(canonical(token), expected);
    assert.equal(jsonText(parseJson(token)), expected);
  });
}

test('an integer is a number while safe and a bigint beyond, and a float is neither', () => {
  assert.equal(parseJson('9007199254740991'), 9007199254740991);
  assert.equal(parseJson('9007199254740992'), 9007199254740992n);
  assert.equal(Object.is(parseJson('-0'), 0), true);
  assert.deepEqual(parseJson('1.0'), new JsonFloat(1));
  assert.deepEqual(parseJson('1e0'), new JsonFloat(1));
});

const anyFinite = fc.double({ noNaN: true, noDefaultInfinity: true });

test('every double is written as an independent rule says and reads back as itself', () => {
  const anyDouble = fc.oneof(
    anyFinite,
    fc
      .bigInt({ min: 0n, max: 2n ** 64n - 1n })
      .map(doubleOfBits)
      .filter(Number.isFinite),
    fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: -30, max: 30 })).map(decimalPower),
  );
  fc.assert(
    fc.property(anyDouble, (value) => {
      const text = canonicalJson(new JsonFloat(value));
      assert.equal(text, layoutOf(value));
      const back = parseJson(text);
      assert.ok(back instanceof JsonFloat);
      assert.equal(Object.is(back.value, value), true);
    }),
    { numRuns: 2000 },
  );
});

test('parsing what was written gives the same canonical text again, in either form', () => {
  fc.assert(
    fc.property(jsonValue(), (value) => {
      const text = canonicalJson(value);
      assert.equal(canonical(text), text);
      assert.equal(canonical(jsonText(value)), text);
      assert.match(text, /^[\x20-\x7e]*$/);
      assert.deepEqual(JSON.parse(text), JSON.parse(jsonText(value)));
    }),
    { numRuns: 2000 },
  );
});

test('JSON.parse reads the canonical text as the same value', () => {
  const leaves = [anyText(), fc.boolean(), fc.constant(null), fc.integer(), anyFinite];
  fc.assert(
    fc.property(fc.anything({ key: anyText(), values: leaves }), (value) => {
      const text = JSON.stringify(value);
      assert.deepEqual(JSON.parse(canonical(text)), JSON.parse(text));
    }),
    { numRuns: 1000 },
  );
});

test('names are ordered by code point at every level', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ unit: 'grapheme' }), { minLength: 2 }), (names) => {
      const object = Object.fromEntries(names.map((name) => [name, 0]));
      const written = parseJson(canonicalJson({ outer: object })) as { outer: object };
      const text = canonicalJson({ outer: object });
      const expected = [...names].sort(byCodePoints);
      assert.equal(
        text,
        `{"outer":{${expected.map((name) => `${canonicalJson(name)}:0`).join(',')}}}`,
      );
      assert.deepEqual(new Set(Object.keys(written.outer)), new Set(names));
    }),
  );
});

test('U+E000 is ordered before U+1F600, which JavaScript puts first', () => {
  assert.equal(canonicalJson({ '😀': 1, '\ue000': 2 }), '{"\\ue000":2,"\\ud83d\\ude00":1}');
  assert.ok(compareCodePoints('\ue000', '😀') < 0);
  assert.ok('\ue000' > '😀');
});

test('every code unit outside printable ASCII is escaped in lower case, and slashes are not', () => {
  for (let unit = 0; unit < 0xd800; unit += 1) {
    const text = canonicalJson(String.fromCharCode(unit));
    assert.equal(text, `"${escapeOf(unit)}"`, unit.toString(16));
  }
  assert.equal(canonicalJson('</&>'), '"</&>"');
});

test('only the excluded top-level member is missing from the signed text', () => {
  const record = { signature: 'x', inner: { signature: 'y' }, a: [{ signature: 'z' }] };
  assert.equal(
    canonicalJson(record, 'signature'),
    '{"a":[{"signature":"z"}],"inner":{"signature":"y"}}',
  );
});

test('a member named __proto__ is an ordinary member', () => {
  const value = parseJson('{"__proto__":{"a":1},"b":2}');
  assert.ok(isJsonObject(value));
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.equal(canonicalJson(value), '{"__proto__":{"a":1},"b":2}');
  assert.equal(jsonText(value), '{"__proto__":{"a":1},"b":2}');
  assert.throws(() => parseJson('{"__proto__":1,"__proto__":2}'), SyntaxError);
});

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

test('64 levels are accepted, counted from the outermost value', () => {
  assert.equal(MAX_DEPTH, 64);
  assert.equal(canonical(nested(64)), nested(64));
  assert.equal(canonical(`[${nested(63)},${nested(63)}]`), `[${nested(63)},${nested(63)}]`);
});

for (const [fault, text] of [
  ['a name twice in one object', '{"a":1,"b":2,"a":1}'],
  ['a name twice, once escaped', '{"a":1,"\\u0061":2}'],
  ['a name twice in an inner object', '[{"x":{"a":1,"a":1}}]'],
  ['65 nested arrays', nested(65)],
  ['8000 nested arrays', nested(8000)],
  ['65 levels of objects', `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`],
  ['an escaped lone high surrogate', '"\\ud83d"'],
  ['an escaped lone low surrogate', '"\\ude00"'],
  ['surrogates in the wrong order', '"\\ude00\\ud83d"'],
  ['a raw lone surrogate', '"\ud83d"'],
  ['a lone surrogate in a name', '{"\\ud83d":1}'],
  ['the token NaN', '[NaN]'],
  ['the token Infinity', 'Infinity'],
  ['the token -Infinity', '[-Infinity]'],
  ['a float that overflows', '1e400'],
  ['a negative float that overflows', '[-1.0e400]'],
  ['text behind the value', '{} {}'],
  ['a comma behind the value', '1,'],
  ['a byte-order mark', '\ufeff{}'],
  ['a byte-order mark at the end', '{}\ufeff'],
  ['nothing', ''],
  ['blanks only', ' \n\t'],
  ['a trailing comma in an object', '{"a":1,}'],
  ['a trailing comma in an array', '[1,]'],
  ['a missing comma', '[1 2]'],
  ['a missing colon', '{"a" 1}'],
  ['a bare name', '{a:1}'],
  ['a number as a name', '{1:1}'],
  ['single quotes', "{'a':1}"],
  ['a comment', '{/**/}'],
  ['an object that is not closed', '{"a":1'],
  ['an array that is not closed', '[1'],
  ['brackets that do not match', '[1}'],
  ['a string that is not closed', '"abc'],
  ['a string that ends in a backslash', '"abc\\'],
  ['a raw line feed in a string', '"a\nb"'],
  ['a raw tab in a string', '"a\tb"'],
  ['a raw NUL in a string', '"a\0b"'],
  ['an unknown escape', '"\\x41"'],
  ['a short \\u escape', '"\\u12"'],
  ['a leading zero', '01'],
  ['a negative leading zero', '-01'],
  ['a plus sign', '+1'],
  ['a lone minus', '-'],
  ['no digit before the point', '.5'],
  ['no digit after the point', '1.'],
  ['no digit in the exponent', '1e'],
  ['no digit behind the sign of the exponent', '1e+'],
  ['a hexadecimal number', '0x10'],
  ['an underscore in a number', '1_000'],
  ['digits that are not ASCII', '１'],
  ['a word in capitals', 'True'],
  ['a word cut short', 'tru'],
  ['a word too long', 'nulll'],
  ['a no-break space between tokens', '[1,\u00a02]'],
  ['a form feed between tokens', '[1,\f2]'],
] as const) {
  test(`${fault} is refused, and the next text is read as if nothing had happened`, () => {
    assert.throws(() => parseJson(text), SyntaxError);
    assert.equal(canonical(nested(64)), nested(64));
  });
}

for (const [fault, bytes] of [
  ['a stray continuation byte', [0x22, 0x80, 0x22]],
  ['an overlong encoding', [0x22, 0xc0, 0xaf, 0x22]],
  ['an encoded surrogate', [0x22, 0xed, 0xa0, 0xbd, 0x22]],
  ['a sequence cut short', [0x22, 0xe2, 0x9c, 0x22]],
  ['a code point beyond U+10FFFF', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
  ['the byte FF', [0xff]],
  ['a byte-order mark', [0xef, 0xbb, 0xbf, 0x7b, 0x7d]],
  ['UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ['nothing', []],
] as const) {
  test(`bytes with ${fault} are refused`, () => {
    assert.throws(() => parseJsonBytes(Uint8Array.from(bytes)), SyntaxError);
  });
}

test('bytes are read as UTF-8, even from the middle of a larger buffer', () => {
  const bytes = Buffer.from('xx{"é":"✓😀"}yy');
  const view = new Uint8Array(bytes.buffer, bytes.byteOffset + 2, bytes.byteLength - 4);
  assert.deepEqual(parseJsonBytes(view), { é: '✓😀' });
  const ascii = Buffer.from('xx{"e":"v"}yy');
  const asciiView = new Uint8Array(ascii.buffer, ascii.byteOffset + 2, ascii.byteLength - 4);
  assert.deepEqual(parseJsonBytes(asciiView), { e: 'v' });
});

test('everything that JSON.parse refuses is refused, and everything that both read is the same', () => {
  const fragment = fc.constantFrom(
    ...['{', '}', '[', ']', ',', ':', '"', '\\', '"a"', '"a":', '1', '-', '.5', 'e3', '0'],
    ...['true', 'null', ' ', '\n', '\u2028', 'é', '😀', '\\u00e9', '\\ud83d', '\\n', '1.0', 'NaN'],
  );
  const text = fc.array(fragment, { maxLength: 12 }).map((parts) => parts.join(''));
  let read = 0;
  fc.assert(
    fc.property(text, (candidate) => {
      let value: JsonValue;
      try {
        value = parseJson(candidate);
      } catch (error) {
        assert.ok(error instanceof SyntaxError);
        return;
      }
      read += 1;
      assert.deepEqual(withoutMinusZero(canonicalJson(value)), withoutMinusZero(candidate));
    }),
    { numRuns: 10_000 },
  );
  assert.ok(read > 100, 'the fragments make enough texts that are JSON');
});

/** JSON.parse has no integers, so it alone distinguishes `-0` from `0`. */
function withoutMinusZero(text: string): unknown {
  return JSON.parse(JSON.stringify(JSON.parse(text)));
}

/** Digits and point of the shortest form, derived from how JavaScript prints the number. */
function layoutOf(value: number): string {
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  if (value === 0) return `${sign}0.0`;
  const [printed = '', power = '0'] = String(Math.abs(value)).split('e');
  const [whole = '', fraction = ''] = printed.split('.');
  const leading = /^0*/.exec(whole + fraction)?.[0].length ?? 0;
  const digits = (whole + fraction).slice(leading).replace(/0+$/, '');
  const exponent = whole.length - leading - 1 + Number(power);
  if (exponent < -4 || exponent >= 16) {
    const rest = digits.length > 1 ? `.${digits.slice(1)}` : '';
    const size = Math.abs(exponent) < 10 ? `0${Math.abs(exponent)}` : Math.abs(exponent);
    return `${sign}${digits.charAt(0)}${rest}e${exponent < 0 ? '-' : '+'}${size}`;
  }
  const padded = '0'.repeat(Math.max(0, -exponent)) + digits;
  const point = Math.max(exponent, 0) + 1;
  const before = padded.slice(0, point).padEnd(point, '0');
  return `${sign}${before}.${padded.slice(point) || '0'}`;
}

function doubleOfBits(bits: bigint): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits);
  return view.getFloat64(0);
}

function decimalPower([digit, power]: [number, number]): number {
  return Number(`${digit}e${power}`);
}

/** Any JSON value that this program can represent: integers of any size, floats, text outside ASCII. */
function jsonValue(): fc.Arbitrary<JsonValue> {
  const text = anyText({ maxLength: 12 });
  const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(null, true, false),
      text,
      fc.maxSafeInteger().map((integer) => (integer === 0 ? 0 : integer)),
      fc.bigInt({ min: 2n ** 53n, max: 2n ** 200n }),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((double) => new JsonFloat(double)),
      fc.array(tie('value'), { maxLength: 5 }),
      fc.dictionary(text, tie('value'), { maxKeys: 5 }),
    ),
  }));
  return value;
}

function byCodePoints(a: string, b: string): number {
  const left = Array.from(a, (point) => point.codePointAt(0) ?? 0);
  const right = Array.from(b, (point) => point.codePointAt(0) ?? 0);
  const at = left.findIndex((point, index) => point !== right[index]);
  if (at === -1) return left.length - right.length;
  return (left[at] ?? 0) - (right[at] ?? -1);
}

function escapeOf(unit: number): string {
  const short: { readonly [code: number]: string } = {
    8: '\\b',
    9: '\\t',
    10: '\\n',
    12: '\\f',
    13: '\\r',
    34: '\\"',
    92: '\\\\',
  };
  if (short[unit] !== undefined) return short[unit];
  if (unit >= 0x20 && unit <= 0x7e) return String.fromCharCode(unit);
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

test('a text is escaped in the same way regardless of its length', () => {
  const unit = fc.constantFrom('a', '"', '\\', '\n', '\u0000', '\u007f', 'é', '☃', '🚀', '\ud800');
  fc.assert(
    fc.property(fc.array(unit, { minLength: 1, maxLength: 40 }), fc.nat(20), (units, times) => {
      const text = units.join('').repeat(times);
      const expected = JSON.stringify(text).replace(
        /[\u007f-\uffff]/g,
        (code) => `\\u${code.charCodeAt(0).toString(16).padStart(4, '0')}`,
      );
      assert.equal(canonicalJson(text), expected);
    }),
  );
});

test('an integer and a float keep their value and their kind, however many digits they have', () => {
  for (const digits of ['1', '123456789012345', '1234567890123456', '9007199254740993']) {
    assert.equal(canonicalJson(parseJson(`[${digits},-${digits}]`)), `[${digits},-${digits}]`);
    assert.equal(canonicalJson(parseJson(`[${digits}.5]`)).includes('.'), true);
    assert.throws(() => parseJson(`[0${digits}]`), SyntaxError);
    assert.throws(() => parseJson(`[${digits}.]`), SyntaxError);
  }
});
