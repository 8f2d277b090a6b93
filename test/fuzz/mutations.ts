/** Bodies that are almost right: a genuine one with a few of its values changed, moved or dropped. */
import {
  isJsonObject,
  JsonFloat,
  type JsonObject,
  type JsonValue,
} from '../../src/base/json/value.ts';
import type { Random } from './random.ts';

const ODD_VALUES: readonly JsonValue[] = [
  null,
  true,
  false,
  0,
  -1,
  2 ** 53 - 1,
  2n ** 70n,
  -(2n ** 64n),
  new JsonFloat(0.1),
  new JsonFloat(-0),
  new JsonFloat(1e308),
  '',
  ' ',
  '\u0000',
  '\ud800',
  '\u202e',
  'constructor',
  '__proto__',
  '../../etc',
  '9999-12-31T23:59:59.999999Z',
  '0001-01-01T00:00:00Z',
  '2026-01-01T00:00:00+23:59',
  'A'.repeat(44),
  `${'A'.repeat(43)}=`,
  'x'.repeat(5000),
  [],
  {},
  [[[[[[[[]]]]]]]],
  { constructor: { prototype: null } },
  ['a', 'a', 'a'],
];

/** The body with one to four random changes. */
export function mutated(body: JsonObject, random: Random): JsonObject {
  let changed: JsonValue = body;
  for (let left = 1 + random.below(4); left > 0; left -= 1)
    changed = changedOnce(changed, random, 0);
  return isJsonObject(changed) ? changed : { value: changed };
}

function changedOnce(value: JsonValue, random: Random, depth: number): JsonValue {
  const goesDeeper = depth === 0 || random.next() < 0.7;
  if (goesDeeper && isJsonObject(value)) return changedObject(value, random, depth);
  if (goesDeeper && isList(value) && value.length > 0) return changedList(value, random, depth);
  return replacement(value, random);
}

function changedObject(object: JsonObject, random: Random, depth: number): JsonObject {
  const names = Object.keys(object);
  if (names.length === 0)
    return { [random.one(['name', '__proto__', ''])]: random.one(ODD_VALUES) };
  const name = random.one(names);
  const entries = Object.entries(object);
  switch (random.below(8)) {
    case 0:
      return Object.fromEntries(entries.filter(([other]) => other !== name));
    case 1:
      return Object.fromEntries([...entries, [`${name}x`, object[name] ?? null]]);
    case 2:
      return Object.fromEntries(
        entries.map(([other, value]) => [other, other === name ? random.one(ODD_VALUES) : value]),
      );
    default:
      return Object.fromEntries(
        entries.map(([other, value]) => [
          other,
          other === name ? changedOnce(value, random, depth + 1) : value,
        ]),
      );
  }
}

function changedList(list: readonly JsonValue[], random: Random, depth: number): JsonValue {
  const at = random.below(list.length);
  switch (random.below(5)) {
    case 0:
      return list.filter((_, index) => index !== at);
    case 1:
      return [...list, ...list];
    case 2:
      return Array.from({ length: 40 }, () => list[at] ?? null);
    default:
      return list.map((item, index) =>
        index === at ? changedOnce(item, random, depth + 1) : item,
      );
  }
}

function replacement(value: JsonValue, random: Random): JsonValue {
  if (typeof value === 'string' && value !== '' && random.next() < 0.5) {
    const at = random.below(value.length);
    const swapped = String.fromCharCode(value.charCodeAt(at) ^ (1 << random.below(7)));
    return value.slice(0, at) + swapped + value.slice(at + 1);
  }
  if (typeof value === 'number' && random.next() < 0.5) return value + random.one([-1, 1, 1000]);
  return random.one(ODD_VALUES);
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
