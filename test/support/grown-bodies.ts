/**
 * Honest bodies that are grown up to a limit in ways that are as expensive as possible to read: many small values,
 * deep ones, texts that have to be escaped, many signatures, many keys.
 */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { parseJson } from '../../src/base/json/parse.ts';
import type { JsonObject, JsonValue } from '../../src/base/json/value.ts';
import { jsonText } from '../../src/base/json/write.ts';
import type { HonestBody, SignedPlace, SlotKind } from './honest-bodies.ts';
import { newKey } from './requests.ts';

/** Values to repeat where any JSON is allowed; `MEMBERS` are repeated as members of an object. */
const VALUES: readonly ((index: number) => string)[] = [
  () => '0',
  () => '1e15',
  () => '-1.5e-7',
  () => '9007199254740993',
  () => '9'.repeat(4300),
  () => '""',
  () => '"\x7f"',
  () => '"\\n"',
  () => '[]',
  () => '{}',
  () => '{"":0}',
  (index) => `{"${index.toString(36)}":0}`,
  (index) => `{"${index.toString(36)}${'name'.repeat(4)}":0}`,
  () => '1.2345678901e15',
  () => '"\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f"',
  (index) => `{"\x7f${index.toString(36)}":0,"a":1}`,
  () => `${'['.repeat(55)}${']'.repeat(55)}`,
  () => `${'{"":'.repeat(55)}0${'}'.repeat(55)}`,
  () => '{"__proto__":0}',
  () => `{${Array.from({ length: 24 }, (_, k) => `"${String.fromCharCode(120 - k)}":0`)}}`,
];
const MEMBERS: readonly ((index: number) => string)[] = [
  (index) => `"${index.toString(36)}k":0`,
  (index) => `"${index.toString(36)}\x7f":0`,
  (index) => `"${index * 65_536}":0`,
  (index) => `"${'\x7f'.repeat(700)}${index}":0`,
  (index) => `"${'\x7f'.repeat(8)}${index}":0`,
];
const CHARACTERS = ['a', '\x7f', 'é', '☃', '🚀', '\\n', '\\u00e9', '\\"', '\\u0000'];
/** Texts for a list, distinct by their index. */
const TEXTS: readonly ((index: number, character: string) => string)[] = [
  (index) => index.toString(36),
  (index) => String((index % 300) * 32_768 + Math.floor(index / 300)),
  (index, character) => `${index}${character}`,
  (index, character) => character.repeat(10) + index,
  (index, character) => character.repeat(100) + index,
];

interface Growth {
  /** The index of the slot, modulo the number of slots. */
  readonly slot: number;
  readonly unit: number;
  readonly other: number;
  readonly character: number;
}

/** How a body grows. */
export interface Shape {
  readonly route: number;
  readonly growths: readonly Growth[];
  readonly isGenuine: boolean;
  readonly hasManyKeys: boolean;
  readonly hasManySignatures: boolean;
}

const number = fc.nat(1000);
const growth: fc.Arbitrary<Growth> = fc.record({
  slot: number,
  unit: number,
  other: number,
  character: number,
});

export const shapes: fc.Arbitrary<Shape> = fc.record({
  route: number,
  growths: fc.array(growth, { minLength: 1, maxLength: 2 }),
  isGenuine: fc.boolean(),
  hasManyKeys: fc.boolean(),
  hasManySignatures: fc.boolean(),
});

/** Every way of growing a single slot, with as many keys and signatures as possible. */
export function plainShapes(bodies: readonly HonestBody[]): Shape[] {
  return bodies.flatMap(({ slots }, route) =>
    slots.flatMap(([, kind], slot) =>
      Array.from({ length: unitsOf(kind) }, (_, unit) => ({
        route,
        growths: [{ slot, unit, other: unit, character: unit }],
        isGenuine: unit % 2 === 0,
        hasManyKeys: true,
        hasManySignatures: true,
      })),
    ),
  );
}

/** All pairs of text lists in a body, grown in the same way, to reveal quadratic comparisons. */
export function pairedShapes(bodies: readonly HonestBody[]): Shape[] {
  return bodies.flatMap(({ slots }, route) => {
    const lists = slots.flatMap(([, kind], slot) => (kind === 'texts' ? [slot] : []));
    return lists.flatMap((one, index) =>
      lists.slice(index + 1).map((other) => ({
        route,
        growths: [one, other].map((slot) => ({ slot, unit: 0, other: 0, character: 0 })),
        isGenuine: true,
        hasManyKeys: true,
        hasManySignatures: true,
      })),
    );
  });
}

function unitsOf(kind: SlotKind): number {
  if (kind === 'free') return VALUES.length + MEMBERS.length;
  return kind === 'texts' ? TEXTS.length : CHARACTERS.length;
}

const SIGNATURE_LENGTH = 88;
const MANY_KEYS = Array.from({ length: 31 }, () => newKey().publicKey);

export interface Grown {
  readonly path: string;
  readonly text: string;
}

/** A body of this shape that fits the limits. */
export function grownBody(bodies: readonly HonestBody[], shape: Shape, max: Room): Grown {
  const honest = bodies[shape.route % bodies.length] as HonestBody;
  const opened = withSignatures(withKeys(honest.body, honest, shape), honest, shape);
  const places = shape.growths.map((one) => ({
    ...one,
    place: honest.slots[one.slot % honest.slots.length] as HonestBody['slots'][number],
  }));
  let body = opened;
  places.forEach(({ place: [path] }, index) => {
    body = changed(body, path.split('.'), () => mark(index)) as JsonObject;
  });
  let text = jsonText(body);
  const toSign = text.split('@signature').length - 1;
  const bytesLeft = max.bytes - Buffer.byteLength(text) - toSign * SIGNATURE_LENGTH - 1000;
  const valuesLeft = max.values - valuesIn(text);
  places.forEach(({ place: [path, kind], unit, other, character }, index) => {
    const count = text.split(jsonText(mark(index))).length - 1;
    const share = places.length * Math.max(1, count);
    const room = {
      bytes: Math.max(0, Math.floor(bytesLeft / share)),
      values: Math.max(0, Math.floor(valuesLeft / share)),
    };
    const first = firstItem(opened, path);
    const filled = filling(kind, room, { unit, other, character, first });
    text = text.replaceAll(jsonText(mark(index)), () => filled);
  });
  return { path: honest.path, text: signed(text, honest, shape) };
}

function mark(index: number): string {
  return `@grown ${index}@`;
}

/** How much a body, or a place in one, can hold. */
export interface Room {
  readonly bytes: number;
  readonly values: number;
}

interface Filling extends Omit<Growth, 'slot'> {
  readonly first: JsonValue;
}

function filling(kind: SlotKind, room: Room, { unit, other, character, first }: Filling): string {
  const letter = CHARACTERS[character % CHARACTERS.length] as string;
  if (kind === 'text')
    return `"${letter.repeat(Math.floor(room.bytes / Buffer.byteLength(letter)))}"`;
  if (kind === 'items') {
    const item = jsonText(first);
    return `[${repeated(room, () => item)}]`;
  }
  if (kind === 'texts') {
    const textOf = TEXTS[unit % TEXTS.length] as (typeof TEXTS)[number];
    return `[${repeated(room, (index) => `"${textOf(index, letter)}"`)}]`;
  }
  const membersOf = MEMBERS[(unit % (VALUES.length + MEMBERS.length)) - VALUES.length];
  if (membersOf !== undefined) return `{${repeated(room, membersOf)}}`;
  const one = VALUES[unit % VALUES.length] as (typeof VALUES)[number];
  const two = VALUES[other % VALUES.length] as (typeof VALUES)[number];
  return `{"x":[${repeated(room, (index) => (index % 2 === 0 ? one : two)(index))}]}`;
}

/** As many items as fit the bounds on bytes and values. */
function repeated({ bytes, values }: Room, item: (index: number) => string): string {
  const items: string[] = [];
  let [bytesLeft, valuesLeft] = [bytes, values];
  for (let index = 0; ; index += 1) {
    const text = item(index);
    bytesLeft -= Buffer.byteLength(text) + 1;
    valuesLeft -= valuesIn(text);
    if (bytesLeft < 0 || valuesLeft < 0) return items.join(',');
    items.push(text);
  }
}

/** The approximate number of JSON values in a text, never too low. */
function valuesIn(text: string): number {
  return text.length === 0 ? 0 : 1 + (text.match(/[[{:,]/g)?.length ?? 0);
}

/** The first item of the list at the path; null if there is none. */
function firstItem(body: JsonObject, path: string): JsonValue {
  let value: JsonValue | undefined = body;
  for (const name of [...path.split('.'), '0']) {
    if (typeof value !== 'object' || value === null) return null;
    value = (value as JsonObject)[name];
  }
  return value ?? null;
}

/** Changes the value at the path; `*` means each item of a list. */
function changed(
  value: JsonValue,
  [name, ...rest]: readonly string[],
  change: (value: JsonValue) => JsonValue,
): JsonValue {
  if (name === undefined) return change(value);
  if (Array.isArray(value)) {
    return value.map((item, index) =>
      name === '*' || name === String(index) ? changed(item, rest, change) : item,
    );
  }
  const object = value as JsonObject;
  return { ...object, [name]: changed(object[name] ?? null, rest, change) };
}

function withKeys(body: JsonObject, { keyLists }: HonestBody, shape: Shape): JsonObject {
  if (!shape.hasManyKeys) return body;
  return keyLists.reduce(
    (grown, path) =>
      changed(grown, path.split('.'), (keys) => [
        ...MANY_KEYS,
        ...(keys as readonly string[]),
      ]) as JsonObject,
    body,
  );
}

/** Adds invalid signatures, which cost as much to check as valid ones, and a last one to fill in later. */
function withSignatures(body: JsonObject, { signed }: HonestBody, shape: Shape): JsonObject {
  const count = shape.hasManySignatures ? 16 : 1;
  return signed.reduce(
    (grown, { at, form }) =>
      changed(grown, at, (record) =>
        form === 'single'
          ? { ...(record as JsonObject), signature: openSignature() }
          : {
              ...(record as JsonObject),
              signatures: Array.from({ length: count }, (_, index) =>
                index === count - 1 ? openSignature() : { key_id: 'na', sig: nobodysSignature() },
              ),
            },
      ) as JsonObject,
    body,
  );
}

let opened = 0;

function openSignature(): JsonObject {
  opened += 1;
  return { key_id: 'na', sig: `@signature ${opened}@` };
}

/** 64 bytes with a reduced scalar, so that no check ends early. */
function nobodysSignature(): string {
  const bytes = randomBytes(64);
  bytes[63] = 0;
  return bytes.toString('base64');
}

/** Fills in the open signatures: genuine ones of the signers where requested, else invalid ones. */
function signed(text: string, honest: HonestBody, { isGenuine }: Shape): string {
  let filled = text;
  for (const place of honest.signed) {
    const body = isGenuine ? (parseJson(filled) as JsonObject) : null;
    const records = body === null ? [] : recordsAt(body, place.at);
    for (const record of records) filled = fillIn(filled, record, place);
  }
  return filled.replace(/@signature \d+@/g, nobodysSignature);
}

function fillIn(text: string, record: JsonObject, { form, signer, text: textOf }: SignedPlace) {
  const covered = textOf(record);
  if (covered === null) return text;
  const last = form === 'single' ? record.signature : (record.signatures as JsonValue[]).at(-1);
  const open = String((last as JsonObject).sig);
  return text.replace(open, () => signer(record).sign(covered));
}

function recordsAt(value: JsonValue, [name, ...rest]: readonly string[]): JsonObject[] {
  if (name === undefined) return [value as JsonObject];
  if (name === '*') return (value as readonly JsonValue[]).flatMap((item) => recordsAt(item, rest));
  return recordsAt((value as JsonObject)[name] ?? null, rest);
}
