/**
 * Strict, token-preserving JSON [core-1-2]: integers and floats stay apart, and duplicate names, lone
 * surrogates, a byte-order mark, trailing text, invalid UTF-8, overflowing floats and nesting deeper than
 * 64 are refused.
 *
 * Almost every string is a plain slice between two quotes: one regular expression establishes that nothing in the whole
 * text needs special treatment, and the position of the next backslash is known. Only the remaining strings are
 * examined character by character.
 */
import { JsonFloat, type JsonValue } from './value.ts';

export const MAX_DEPTH = 64;
/** Longer integers would only add cost; other parsers in the network have the same limit. */
const MAX_INTEGER_DIGITS = 4300;

/** The default bound: more values than any answer or record has, in less than a gigabyte of memory. */
const MOST_VALUES = 2 ** 24;

/** Control characters, which a string must not contain, and surrogates, which it must not contain alone. */
const NEEDS_CARE = /[^\x20-\ud7ff\ue000-\uffff]/;
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

let text = '';
let at = 0;
let depth = 0;
let valuesLeft = 0;
/** Whether some string may need special treatment; blanks between values also match. */
let careful = false;
/** The position of the next backslash, or of one already passed. */
let escapeAt = 0;

/**
 * Parses one JSON document; throws `SyntaxError` for anything that the rules above refuse and for more than `maxValues`
 * values, counting each item and each member.
 */
export function parseJson(source: string, maxValues = MOST_VALUES): JsonValue {
  text = source;
  valuesLeft = maxValues;
  at = 0;
  depth = 0;
  careful = NEEDS_CARE.test(source);
  escapeAt = nextEscape(0);
  skipBlanks();
  const value = readValue();
  skipBlanks();
  if (at !== text.length) fail('Text follows the JSON value');
  return value;
}

function readValue(): JsonValue {
  valuesLeft -= 1;
  if (valuesLeft < 0) fail('There are too many values');
  switch (text.charCodeAt(at)) {
    case 0x7b:
      return readObject();
    case 0x5b:
      return readArray();
    case QUOTE:
      return readString();
    case 0x74:
      return readWord('true', true);
    case 0x66:
      return readWord('false', false);
    case 0x6e:
      return readWord('null', null);
    default:
      return readNumber();
  }
}

function readObject(): JsonValue {
  enter();
  const object: { [name: string]: JsonValue } = {};
  if (next() === 0x7d) return leave(object);
  for (;;) {
    if (text.charCodeAt(at) !== QUOTE) fail('A member name is expected');
    const name = readString();
    if (Object.hasOwn(object, name)) fail('A member name occurs twice');
    skipBlanks();
    if (text.charCodeAt(at) !== 0x3a) fail('A colon is expected');
    next();
    const value = readValue();
    if (name === '__proto__') defineMember(object, name, value);
    else object[name] = value;
    skipBlanks();
    const separator = text.charCodeAt(at);
    if (separator === 0x7d) return leave(object);
    if (separator !== 0x2c) fail('A comma or a closing brace is expected');
    next();
  }
}

/** Assigning `__proto__` would change the prototype instead of adding a member. */
function defineMember(object: object, name: string, value: JsonValue): void {
  Object.defineProperty(object, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}

function readArray(): JsonValue {
  enter();
  if (next() === 0x5d) return leave([]);
  // Unlike an empty array literal, one with its first item does not reserve room for many more.
  const items = [readValue()];
  for (;;) {
    skipBlanks();
    const separator = text.charCodeAt(at);
    if (separator === 0x5d) return leave(items);
    if (separator !== 0x2c) fail('A comma or a closing bracket is expected');
    next();
    items.push(readValue());
  }
}

function enter(): void {
  depth += 1;
  if (depth > MAX_DEPTH) fail(`Nesting is deeper than ${MAX_DEPTH}`);
}

function leave<T>(container: T): T {
  depth -= 1;
  at += 1;
  return container;
}

function readString(): string {
  const start = at + 1;
  const end = text.indexOf('"', start);
  if (end < 0) fail('A string is not closed');
  if (escapeAt < start) escapeAt = nextEscape(start);
  if (escapeAt < end) return readCarefulString(start);
  const value = text.slice(start, end);
  if (careful && NEEDS_CARE.test(value)) return readCarefulString(start);
  at = end + 1;
  return value;
}

function nextEscape(from: number): number {
  const found = text.indexOf('\\', from);
  return found < 0 ? text.length : found;
}

function readCarefulString(start: number): string {
  let escaped = false;
  for (at = start; ; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) break;
    if (code === BACKSLASH) {
      escaped = true;
      at += 1;
    } else if (code < 0x20 || Number.isNaN(code)) {
      fail('A string is not closed or holds a control character');
    }
  }
  at += 1;
  const value = escaped ? decodeEscapes(text.slice(start - 1, at)) : text.slice(start, at - 1);
  if (LONE_SURROGATE.test(value)) fail('A string holds a lone surrogate');
  return value;
}

function decodeEscapes(literal: string): string {
  try {
    return JSON.parse(literal) as string;
  } catch {
    return fail('A string holds an unknown escape');
  }
}

/** This many digits are always a safe integer. */
const SHORT_INTEGER_DIGITS = 15;

function readNumber(): JsonValue {
  const start = at;
  let code = text.charCodeAt(at);
  let value = 0;
  // A leading zero must be the entire integer; the pattern handles that case and the sign.
  if (code > 0x30 && code <= 0x39) {
    do {
      value = value * 10 + code - 0x30;
      at += 1;
      code = text.charCodeAt(at);
    } while (code >= 0x30 && code <= 0x39 && at - start < SHORT_INTEGER_DIGITS);
    if (!continuesNumber(code)) return value;
    at = start;
  }
  return readAnyNumber();
}

/** Whether the number continues after its first digits, with more digits, a fraction or an exponent. */
function continuesNumber(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || code === 0x2e || code === 0x65 || code === 0x45;
}

function readAnyNumber(): JsonValue {
  NUMBER.lastIndex = at;
  const match = NUMBER.exec(text);
  if (match === null) return fail('A value is expected');
  at = NUMBER.lastIndex;
  const token = match[0];
  if (match[1] === undefined && match[2] === undefined) return integerOf(token);
  const value = Number(token);
  if (!Number.isFinite(value)) fail('A number is too large');
  return new JsonFloat(value);
}

function integerOf(token: string): number | bigint {
  const value = Number(token);
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
  if (token.length > MAX_INTEGER_DIGITS) fail('An integer is too long');
  return BigInt(token);
}

function readWord<T>(word: string, value: T): T {
  if (!text.startsWith(word, at)) fail('A value is expected');
  at += word.length;
  return value;
}

/** Skips one character and the blanks after it; returns the next character. */
function next(): number {
  at += 1;
  skipBlanks();
  return text.charCodeAt(at);
}

function skipBlanks(): void {
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
    at += 1;
  }
}

function fail(problem: string): never {
  throw new SyntaxError(`${problem} at position ${at}`);
}
