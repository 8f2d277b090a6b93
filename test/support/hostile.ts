/** Nearly valid values: one shared list for every boundary. */
import { JsonFloat, type JsonValue } from '../../src/base/json/value.ts';

/** JSON values by their name in test titles. */
const VALUES = {
  null: null,
  true: true,
  false: false,
  'the integer 7': 7,
  'the float 7.5': new JsonFloat(7.5),
  'an empty string': '',
  'a string': 'text',
  'an empty list': [],
  'a list': ['text'],
  'an empty object': {},
  'an object': { name: 'text' },
} satisfies { readonly [name: string]: JsonValue };

type ValueName = keyof typeof VALUES;

/** Every kind of value except those that a field accepts. */
export function valuesExcept(...taken: readonly ValueName[]): [string, JsonValue][] {
  const names: readonly string[] = taken;
  return Object.entries(VALUES).filter(([name]) => !names.includes(name));
}

/** Refused for `*_hours` regardless of the upper bound; null counts as absent [core-4-1]. */
export const WRONG_HOURS: readonly (readonly [string, JsonValue])[] = [
  ['0', 0],
  ['-1', -1],
  ['1.5', new JsonFloat(1.5)],
  ['0.0', new JsonFloat(0)],
  ['-1.0', new JsonFloat(-1)],
  ['an integer far below zero', -(2n ** 80n)],
  ['the string "0"', '0'],
  ['the string "-1"', '-1'],
  ['the string "+1"', '+1'],
  ['the string "1.0"', '1.0'],
  ['the string " 1"', ' 1'],
  ['the string "1_000"', '1_000'],
  ['the string "1e1"', '1e1'],
  ['the string "0x10"', '0x10'],
  ['an Arabic-Indic digit', '\u0661'],
  ...valuesExcept('the integer 7', 'the float 7.5', 'null'),
];

/** The same 32 bytes, or nearly, in spellings that are not canonical base64 [core-1-5]. */
export function misspelledKeys(publicKey: string): [string, string][] {
  const bytes = Buffer.from(publicKey, 'base64');
  return [
    ['without its padding', publicKey.slice(0, -1)],
    ['in its second spelling', respelled(publicKey)],
    ['in the URL alphabet', publicKey.replaceAll('+', '-').replaceAll('/', '_')],
    ['cut to 31 bytes', bytes.subarray(0, 31).toString('base64')],
    ['with a 33rd byte', Buffer.concat([bytes, Buffer.alloc(1)]).toString('base64')],
    ['behind a blank', ` ${publicKey}`],
    ['before a line break', `${publicKey}\n`],
    ['in hexadecimal', bytes.toString('hex')],
    ['in words', 'not a key'],
  ];
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Base64 with other unused bits in its last character: lenient decoders read the same bytes. */
export function respelled(base64: string): string {
  const end = base64.indexOf('=');
  const last = ALPHABET[ALPHABET.indexOf(base64.charAt(end - 1)) + 1] ?? '';
  return base64.slice(0, end - 1) + last + base64.slice(end);
}

/** Encodings of points of small order, and of no point at all [core-1-5], as base64. */
export const WEAK_KEYS: readonly string[] = [
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
  `01${'00'.repeat(30)}80`,
].map((hex) => Buffer.from(hex, 'hex').toString('base64'));

/** Verifies under the key `01 00..` for every message unless small order is refused. */
export const FORGED_SIGNATURE = Buffer.from(`01${'00'.repeat(63)}`, 'hex').toString('base64');

/** Texts that are not valid timestamps of a signed request [core-1-3], [core-1-6]. */
export const WRONG_TIMESTAMPS: readonly string[] = [
  'yesterday',
  '1767225600',
  '1767225600.5',
  '2026-01-01T00',
  '2026-01-01T00:00:00.Z',
  '2026-01-01T24:00:00Z',
  '2026-01-01T00:00:60Z',
  '2026-02-29T00:00:00Z',
  '2026-01-01T00:00:00+24:00',
  '2026-01-01T00:00:00+12:60',
  '2026-01-01T00:00:00+02:00:30',
  '20260101T000000Z',
  '2026-W01-1T00:00:00Z',
  '0000-01-01T00:00:00Z',
];

/** The same instant in every spelling a signed request may use [core-1-6]. */
export function timestampSpellings(instant: number): [string, string][] {
  const utc = new Date(instant).toISOString();
  const shifted = new Date(instant + 2 * 3_600_000).toISOString().slice(0, -1);
  return [
    ['milliseconds and Z', utc],
    ['microseconds and +00:00', `${utc.slice(0, -1)}000+00:00`],
    ['nanoseconds', `${utc.slice(0, -1)}000000Z`],
    ['an offset', `${shifted}+02:00`],
    ['an offset without colon', `${shifted}+0200`],
    ['an offset of hours alone', `${shifted}+02`],
    ['no offset, which is UTC', utc.slice(0, -1)],
    ['small letters', utc.toLowerCase()],
    ['a blank for the T', utc.replace('T', ' ')],
    ['a decimal comma', utc.replace('.', ',')],
  ];
}
