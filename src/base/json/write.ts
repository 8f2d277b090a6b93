/**
 * JSON text in two forms. `canonicalJson` is what is signed and digested ([core-1-1]: names sorted by code
 * point, no blanks, ASCII only); `jsonText` is what is answered and stored. Both write integers as digits
 * and floats by the one rule of [core-1-2], so no number changes between input and output.
 */
import { floatText, JsonFloat, type JsonValue } from './value.ts';

const PRINTABLE = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** The canonical text of `value`; the top-level member named `leaveOut` is skipped. */
export function canonicalJson(value: JsonValue, leaveOut?: string): string {
  if (typeof value === 'string') return quoteAscii(value);
  if (typeof value !== 'object' || value === null || value instanceof JsonFloat) {
    return scalarText(value);
  }
  if (isArray(value)) return listText(value, canonicalJson);
  const names = Object.keys(value);
  const arePrintable = names.every(isPrintable);
  if (arePrintable) sortShort(names);
  else names.sort(compareCodePoints);
  let text = '{';
  for (const name of names) {
    if (name === leaveOut) continue;
    const member = value[name];
    if (member === undefined) continue;
    const comma = text === '{' ? '' : ',';
    text += arePrintable ? `${comma}"${name}":` : `${comma}${quoteAscii(name)}:`;
    text += canonicalJson(member);
  }
  return `${text}}`;
}

/** A value that is already JSON text, such as a stored signed record. `jsonText` writes it unchanged. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A row with one member that is already JSON text. */
export type WithText<Row, Member extends keyof Row> = Omit<Row, Member> & {
  readonly [Name in Member]: JsonText;
};

/** A JSON value, parts of which may already be JSON text. */
export type Writable =
  | JsonValue
  | JsonText
  | readonly Writable[]
  | { readonly [name: string]: Writable | undefined };

/** JSON text with members in their own order; characters outside ASCII are not escaped. */
export function jsonText(value: Writable): string {
  if (typeof value === 'string') return quote(value);
  if (typeof value !== 'object' || value === null || value instanceof JsonFloat) {
    return scalarText(value);
  }
  if (value instanceof JsonText) return value.text;
  if (isArray(value)) return listText(value, jsonText);
  let text = '{';
  for (const name of Object.keys(value)) {
    const member = value[name];
    if (member === undefined) continue;
    text += text === '{' ? `${quote(name)}:` : `,${quote(name)}:`;
    text += jsonText(member);
  }
  return `${text}}`;
}

function listText<Item>(list: readonly Item[], textOf: (item: Item) => string): string {
  let text = '[';
  for (const item of list) text += text === '[' ? textOf(item) : `,${textOf(item)}`;
  return `${text}]`;
}

function isArray<Item>(value: Item | readonly Item[]): value is readonly Item[] {
  return Array.isArray(value);
}

function scalarText(value: null | boolean | number | bigint | JsonFloat): string {
  return value instanceof JsonFloat ? floatText(value.value) : String(value);
}

function isPrintable(text: string): boolean {
  return PRINTABLE.test(text);
}

function quote(value: string): string {
  return isPrintable(value) ? `"${value}"` : JSON.stringify(value);
}

function quoteAscii(value: string): string {
  if (isPrintable(value)) return `"${value}"`;
  return `"${value.length > LONG_TEXT ? escapedInBytes(value) : escapedPiecewise(value)}"`;
}

/** From this length on, writing bytes in place is faster than joining strings. */
const LONG_TEXT = 100;

/** The escaped form of each character up to DEL. */
const ESCAPED = Array.from({ length: 0x80 }, (_, code) =>
  code === 0x7f ? '\\u007f' : JSON.stringify(String.fromCharCode(code)).slice(1, -1),
);
const HEX = Array.from({ length: 0x100 }, (_, byte) => byte.toString(16).padStart(2, '0'));

function escapedPiecewise(value: string): string {
  let text = '';
  for (let i = 0; i < value.length; i += 1) {
    const code = value.charCodeAt(i);
    text += ESCAPED[code] ?? `\\u${HEX[code >> 8]}${HEX[code & 0xff]}`;
  }
  return text;
}

const LONGEST_ESCAPE = 6;
const HEX_DIGITS = Uint8Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0));
const ascii = new TextDecoder();

/** The same for long texts. */
function escapedInBytes(value: string): string {
  const bytes = new Uint8Array(value.length * LONGEST_ESCAPE);
  let at = 0;
  for (let i = 0; i < value.length; i += 1) {
    const code = value.charCodeAt(i);
    if (code < 0x7f) {
      const escaped = ESCAPED[code] as string;
      for (let j = 0; j < escaped.length; j += 1) bytes[at + j] = escaped.charCodeAt(j);
      at += escaped.length;
    } else {
      bytes[at] = 0x5c;
      bytes[at + 1] = 0x75;
      bytes[at + 2] = HEX_DIGITS[code >> 12] as number;
      bytes[at + 3] = HEX_DIGITS[(code >> 8) & 0xf] as number;
      bytes[at + 4] = HEX_DIGITS[(code >> 4) & 0xf] as number;
      bytes[at + 5] = HEX_DIGITS[code & 0xf] as number;
      at += LONGEST_ESCAPE;
    }
  }
  return ascii.decode(bytes.subarray(0, at));
}

/** Insertion sort: for the dozen members of a record it is several times as fast as the generic sort. */
function sortShort(names: string[]): void {
  if (names.length > 24) {
    names.sort();
    return;
  }
  for (let i = 1; i < names.length; i += 1) {
    const name = names[i] as string;
    let j = i - 1;
    for (; j >= 0 && (names[j] as string) > name; j -= 1) names[j + 1] = names[j] as string;
    names[j + 1] = name;
  }
}

/** Order by code point. It differs from JavaScript's order only where a surrogate meets U+E000..U+FFFF. */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return codePointRank(x) - codePointRank(y);
  }
  return a.length - b.length;
}

function codePointRank(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}
