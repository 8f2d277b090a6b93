/**
 * Converts values sent between threads. Structured cloning preserves everything in a command except the class of a
 * `JsonFloat`, so a float is sent as a boxed number, which occurs nowhere else.
 */
import { JsonFloat } from '../../base/json/value.ts';

export function toCloneable(value: unknown): unknown {
  return holdsFloat(value) ? mapDeep(value, (leaf) => (isFloat(leaf) ? boxed(leaf) : leaf)) : value;
}

/** Only for values that came from `toCloneable`. */
export function fromCloneable(value: unknown): unknown {
  return holdsBox(value)
    ? mapDeep(value, (leaf) => (isBox(leaf) ? new JsonFloat(Number(leaf)) : leaf))
    : value;
}

function holdsFloat(value: unknown): boolean {
  return isFloat(value) || (isTree(value) && Object.values(value).some(holdsFloat));
}

function holdsBox(value: unknown): boolean {
  return isBox(value) || (isTree(value) && Object.values(value).some(holdsBox));
}

function isFloat(value: unknown): value is JsonFloat {
  return value instanceof JsonFloat;
}

function isBox(value: unknown): value is number {
  return value instanceof Number;
}

function boxed({ value }: JsonFloat): number {
  return Object(value) as number;
}

function isTree(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function mapDeep(value: unknown, leaf: (value: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => mapDeep(item, leaf));
  if (!isTree(value) || isFloat(value) || isBox(value)) return leaf(value);
  // Defines own members even for `__proto__`, which is an ordinary name in a free-form object.
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, mapDeep(member, leaf)]),
  );
}
