/**
 * Values between threads. Structured cloning keeps everything a command holds except the class of a
 * `JsonFloat`, so a float travels as a boxed number, which occurs nowhere else.
 */
import { JsonFloat } from '../json/value.ts';

export function toCloneable(value: unknown): unknown {
  return holdsFloat(value) ? mapDeep(value, (leaf) => (isFloat(leaf) ? boxed(leaf) : leaf)) : value;
}

/** Looks at values that came from `toCloneable` only. */
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
  // Own members whatever they are called: `__proto__` is an ordinary name in a free-form object.
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, mapDeep(member, leaf)]),
  );
}
