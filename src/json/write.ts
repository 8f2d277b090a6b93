/**
 * JSON text in two forms. `canonicalJson` is what is signed and digested (wire rules 1.1: names sorted
 * by code point, no blanks, ASCII only); `jsonText` is what is answered and stored. Both write integers
 * as digits and floats by the one rule of 1.2, so no number changes between what came in and goes out.
 */
import { JsonFloat, type JsonValue } from './value.ts';

const PRINTABLE = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
const BEYOND_PRINTABLE = /[\x7f-\uffff]/g;

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
  let members = '';
  for (const name of names) {
    if (name === leaveOut) continue;
    const member = value[name];
    if (member === undefined) continue;
    const quoted = arePrintable ? `"${name}"` : quoteAscii(name);
    members += `${members === '' ? '' : ','}${quoted}:${canonicalJson(member)}`;
  }
  return `{${members}}`;
}

/**
 * A value that is JSON text already, such as a signed record whose very bytes are stored. `jsonText`
 * writes it as it is.
 */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** What can be answered: a JSON value, parts of which may be JSON text already. */
export type Writable =
  | JsonValue
  | JsonText
  | readonly Writable[]
  | { readonly [name: string]: Writable | undefined };

/** JSON text with members in their own order; text outside ASCII is written as it is. */
export function jsonText(value: Writable): string {
  if (typeof value === 'string') return quote(value);
  if (typeof value !== 'object' || value === null || value instanceof JsonFloat) {
    return scalarText(value);
  }
  if (value instanceof JsonText) return value.text;
  if (isArray(value)) return listText(value, jsonText);
  let members = '';
  for (const name of Object.keys(value)) {
    const member = value[name];
    if (member === undefined) continue;
    members += `${members === '' ? '' : ','}${quote(name)}:${jsonText(member)}`;
  }
  return `{${members}}`;
}

function listText<Item>(list: readonly Item[], textOf: (item: Item) => string): string {
  let items = '';
  for (const item of list) items += `${items === '' ? '' : ','}${textOf(item)}`;
  return `[${items}]`;
}

function isArray<Item>(value: Item | readonly Item[]): value is readonly Item[] {
  return Array.isArray(value);
}

function scalarText(value: null | boolean | number | bigint | JsonFloat): string {
  return value instanceof JsonFloat ? floatText(value.value) : String(value);
}

/** Shortest digits that read back as the same double, laid out as the existing network does (1.2). */
function floatText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const [mantissa = '', exponentText = ''] = Math.abs(value).toExponential().split('e');
  const sign = value < 0 ? '-' : '';
  const digits = mantissa.replace('.', '');
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16) return sign + exponentForm(digits, exponent);
  return sign + positionalForm(digits, exponent);
}

function exponentForm(digits: string, exponent: number): string {
  const fraction = digits.length > 1 ? `.${digits.slice(1)}` : '';
  const power = String(Math.abs(exponent)).padStart(2, '0');
  return `${digits[0]}${fraction}e${exponent < 0 ? '-' : '+'}${power}`;
}

function positionalForm(digits: string, exponent: number): string {
  if (exponent < 0) return `0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  return `${whole}.${digits.slice(exponent + 1) || '0'}`;
}

function isPrintable(text: string): boolean {
  return PRINTABLE.test(text);
}

function quote(value: string): string {
  return isPrintable(value) ? `"${value}"` : JSON.stringify(value);
}

function quoteAscii(value: string): string {
  if (isPrintable(value)) return `"${value}"`;
  return JSON.stringify(value).replace(BEYOND_PRINTABLE, escapeUnit);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Insertion sort: records have a dozen members, where it beats the generic sort several times. */
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
