/** Changes JSON values in single places. */
import {
  isJsonObject,
  JsonFloat,
  type JsonObject,
  type JsonValue,
} from '../../src/base/json/value.ts';
import { FAR } from './trust-drafts.ts';

export type Path = readonly (string | number)[];

export interface Node {
  readonly path: Path;
  readonly value: JsonValue;
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

export function isLeaf(value: JsonValue): boolean {
  return !isList(value) && !isJsonObject(value);
}

/** The value and all values inside it. */
export function nodesOf(value: JsonValue, path: Path = []): Node[] {
  const members = isList(value)
    ? [...value.entries()]
    : isJsonObject(value)
      ? Object.entries(value)
      : [];
  return [
    { path, value },
    ...members.flatMap(([step, member]) => nodesOf(member, [...path, step])),
  ];
}

/** Replaces the value at the path; undefined removes it. */
export function put(
  value: JsonValue,
  path: Path,
  change: JsonValue | undefined,
): JsonValue | undefined {
  const [step, ...rest] = path;
  if (step === undefined) return change;
  const changed = (key: string | number, member: JsonValue) =>
    key === step ? put(member, rest, change) : member;
  if (isList(value)) {
    return value.map((item, index) => changed(index, item)).filter((item) => item !== undefined);
  }
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).map(([name, member]) => [name, changed(name, member)]);
  return Object.fromEntries(members.filter(([, member]) => member !== undefined));
}

const A_SIGNATURE: JsonObject = { key_id: 'k', sig: 's' };
const A_FRESHNESS_PROOF: JsonObject = {
  proof_id: 'f',
  feed_sovereign_id: 'f',
  feed_sequence: 1,
  feed_digest: 'f',
  attested_at: FAR[0],
  proof_valid_until: FAR[0],
  issuer_sovereign_id: 'f',
};

/** Small variations of a value; its place determines which of them still yield a valid record. */
export function variantsOf(value: JsonValue): JsonValue[] {
  if (typeof value === 'string') return [`${value}!`, ...FAR.filter((other) => other !== value)];
  if (typeof value === 'number') return [value + 1, new JsonFloat(value)];
  if (typeof value === 'bigint') return [value + 1n, new JsonFloat(Number(value))];
  if (typeof value === 'boolean') return [!value];
  if (value === null) return ['!', 1, A_SIGNATURE, A_FRESHNESS_PROOF];
  if (value instanceof JsonFloat) return floatVariants(value);
  if (isList(value)) return listVariants(value);
  return [{ ...value, '!': '!' }, {}];
}

function listVariants(items: readonly JsonValue[]): JsonValue[] {
  return [items.slice(1), [...items.slice(0, 1), ...items], [...items, '!'], items.toReversed()];
}

function floatVariants({ value }: JsonFloat): JsonValue[] {
  const other = new JsonFloat(value === 0 ? 1 : value / 2);
  return Number.isSafeInteger(value) ? [other, value] : [other];
}

/** Rebuilds a value from its leaves up; `change` sees each node with its members already rebuilt. */
export function rebuilt(
  value: JsonValue,
  change: (node: Node) => JsonValue,
  path: Path = [],
): JsonValue {
  if (isList(value)) {
    const items = value.map((item, index) => rebuilt(item, change, [...path, index]));
    return change({ path, value: items });
  }
  if (!isJsonObject(value)) return change({ path, value });
  const members = Object.entries(value).map(([name, member]) => [
    name,
    rebuilt(member, change, [...path, name]),
  ]);
  return change({ path, value: Object.fromEntries(members) });
}
