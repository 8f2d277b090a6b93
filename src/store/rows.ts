/**
 * Rows in the database: the value, followed by a checksum over table, key, version and value. Reading a row
 * detects a changed bit, and a row stored under a wrong key.
 *
 * CRC-32 of zlib costs 0.2 s for a million rows of 300 bytes, the key another 0.05 s; a table-driven
 * CRC-32C in JavaScript takes three times as long.
 */
import { createRequire } from 'node:module';
import { crc32 } from 'node:zlib';

/** Required, because LMDB requires it, so that it is loaded only once. */
const { Packr }: typeof import('msgpackr') = createRequire(import.meta.url)('msgpackr');

/** In the order of a full read; `meta` identifies the network of the other tables. */
export const TABLES = [
  'meta',
  'subjects',
  'nonces',
  'answers',
  'audit',
  'liveness',
  'history',
] as const;
export type TableName = (typeof TABLES)[number];
export type RowKey = string | number | readonly [string, string] | readonly [number, number];

/** What was read is not what was written. The message is a sentence for the operator. */
export class DamagedState extends Error {
  /** What is damaged, without the rest of the sentence. */
  readonly what: string;

  constructor(what: string) {
    super(`The stored state is damaged: ${what}; restore it from a backup`);
    this.what = what;
  }
}

/** The state has the layout of another version of the program. The message is a sentence that says what to do. */
export class OtherSchema extends Error {
  constructor(
    place: string,
    found: number,
    read: number,
    cure = 'start the program that wrote it',
  ) {
    super(`${place} has schema version ${found}; this program reads version ${read}: ${cure}`);
  }
}

const packr = new Packr({ useRecords: false });

const CHECKSUM_BYTES = 4;
/** Longer keys are truncated in messages. */
const SHOWN_KEY = 120;

const TABLE_SEEDS: { readonly [Name in TableName]: number } = {
  meta: 1,
  subjects: 2,
  nonces: 3,
  audit: 4,
  liveness: 5,
  answers: 6,
  history: 7,
};

/** Encodes a value to be stored under this key. Tables without versions use version 0. */
export function encodeRow(table: TableName, key: RowKey, value: unknown, version = 0): Buffer {
  return seal(packr.pack(value), seedOf(table, key, version));
}

/** Like `encodeRow`, for rows of text. */
export function encodeText(table: TableName, key: RowKey, text: string): Buffer {
  return seal(Buffer.from(text), seedOf(table, key, 0));
}

/** The bytes of a value that stays in memory; they have no checksum, and an allocation of their own. */
export function packValue(value: unknown): Uint8Array {
  return Uint8Array.from(packr.pack(value));
}

export function unpackValue(bytes: Uint8Array): unknown {
  return packr.unpack(bytes);
}

export function decodeRow(table: TableName, key: RowKey, row: Buffer, version = 0): unknown {
  return packr.unpack(unseal(table, key, row, version));
}

export function decodeText(table: TableName, key: RowKey, row: Buffer): string {
  return unseal(table, key, row, 0).toString();
}

function seal(value: Buffer, seed: number): Buffer {
  const row = Buffer.allocUnsafe(value.length + CHECKSUM_BYTES);
  row.set(value);
  row.writeUInt32LE(crc32(value, seed), value.length);
  return row;
}

function unseal(table: TableName, key: RowKey, row: Buffer, version: number): Buffer {
  const end = row.length - CHECKSUM_BYTES;
  // The seed has no room for a fraction, which a flipped bit in a version may produce.
  if (end > 0 && isKey(key) && Number.isSafeInteger(version)) {
    const value = row.subarray(0, end);
    if (crc32(value, seedOf(table, key, version)) === row.readUInt32LE(end)) return value;
  }
  throw new DamagedState(`the row ${shown(key)} of table ${table} does not match its checksum`);
}

/**
 * Keys and versions are the seed of the checksum. Two keys of one table that differ in one bit never have
 * the same seed, because each step is reversible.
 */
function seedOf(table: TableName, key: RowKey, version: number): number {
  let seed = mixNumber(TABLE_SEEDS[table], version);
  if (typeof key === 'string') seed = mixText(seed, key);
  else if (typeof key === 'number') seed = mixNumber(seed, key);
  else
    for (const part of key)
      seed = typeof part === 'string' ? mixText(seed, part) : mixNumber(seed, part);
  return seed >>> 0;
}

const FNV_PRIME = 0x01000193;
/** Ends a text: greater than any character code. */
const END_OF_TEXT = 0x10000;

function mixText(seed: number, text: string): number {
  let mixed = seed;
  for (let i = 0; i < text.length; i += 1) {
    mixed = Math.imul(mixed ^ text.charCodeAt(i), FNV_PRIME);
  }
  return Math.imul(mixed ^ END_OF_TEXT, FNV_PRIME);
}

function mixNumber(seed: number, number: number): number {
  const high = Math.floor(number / 0x1_0000_0000);
  return Math.imul(Math.imul(seed ^ number, FNV_PRIME) ^ high, FNV_PRIME);
}

/** Keys are decoded before anything is checked, so a damaged one may be of any type. */
function isKey(key: unknown): boolean {
  if (Array.isArray(key)) return key.length === 2 && key.every(isKeyPart);
  return isKeyPart(key);
}

function isKeyPart(part: unknown): boolean {
  return typeof part === 'string' || Number.isSafeInteger(part);
}

function shown(key: unknown): string {
  const text = isKey(key) ? JSON.stringify(key) : 'of an unreadable key';
  return text.length > SHOWN_KEY ? `${text.slice(0, SHOWN_KEY)}…` : text;
}

/** Row counts of the tables: written with every unit, so that a missing row is detected. */
export interface Totals {
  readonly revision: number;
  readonly subjects: number;
  /** The number of rows in the table, each with nonces of one flush. */
  readonly nonceRows: number;
  readonly auditEntries: number;
}

export const NOTHING: Totals = { revision: 0, subjects: 0, nonceRows: 0, auditEntries: 0 };

export function assertTotal(table: string, found: number, total: number): void {
  if (found !== total) {
    throw new DamagedState(`table ${table} holds ${found} entries where ${total} were stored`);
  }
}
