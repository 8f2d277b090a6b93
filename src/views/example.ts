/**
 * Example values for the reference, made from a schema in the words of OpenAPI. Members with a meaning of
 * their own have a value by their name; everything else shows its type.
 */
import { isJsonObject, JsonFloat, type JsonObject, type JsonValue } from '../json/value.ts';

const KEY = '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=';
const SIGNATURE =
  'kQ4rM0sK2p1m4Gv3vX0w8bq3K1dVZ5n1rT0bq2n3m4Gv3vX0w8bq3K1dVZ5n1rT0bq2n3m4Gv3vX0w8bq3K1dQ==';
const DIGEST = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const MOMENT = '2026-01-15T12:00:00Z';
const ID = '7d0f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00';
const DEEPEST = 8;

/** By the end of a member's name, the first that fits. */
const BY_NAME: readonly (readonly [RegExp, string])[] = [
  [/public_key$|^issuer$|^key$/, KEY],
  [/public_keys$/, KEY],
  [/^sig$|signature$/, SIGNATURE],
  [/digest$|hash$|_root$|^nonce$/, DIGEST],
  [/sovereign_id$|sovereign_ids$/, 'beta'],
  [/_id$|_ids$/, ID],
  [/_at$|timestamp$|^valid_|_until$|server_time$|_update$|completed/, MOMENT],
  [/^roles$|_roles$/, 'role:client'],
  [/capabilit/, 'read'],
  [/access_types$/, 'read'],
  [/network_name$/, 'alpha'],
  [/token$/, 'mesh-invite-token'],
  [/url$|endpoint$/, 'https://na.example'],
];

/** A value the schema allows, as far as its keywords say. */
export function exampleOf(schema: JsonValue | undefined, name = '', depth = 0): JsonValue {
  if (!isJsonObject(schema)) return {};
  if (schema.default !== undefined && !isEmptyList(schema.default)) return schema.default;
  if (Array.isArray(schema.enum)) return (schema.enum as readonly JsonValue[])[0] ?? null;
  if (Array.isArray(schema.anyOf)) {
    return exampleOf((schema.anyOf as readonly JsonValue[])[0], name, depth);
  }
  if (schema.type === 'object') return exampleObject(schema, depth);
  if (schema.type === 'array')
    return depth < DEEPEST ? [exampleOf(schema.items, name, depth + 1)] : [];
  if (schema.type === 'integer') return integerWithin(schema);
  if (schema.type === 'number') return new JsonFloat(0.5);
  if (schema.type === 'boolean') return true;
  return textFor(name, schema);
}

function exampleObject({ properties }: JsonObject, depth: number): JsonObject {
  if (!isJsonObject(properties) || depth >= DEEPEST) return {};
  const members = Object.entries(properties).map(
    ([name, member]) => [name, exampleOf(member, name, depth + 1)] as const,
  );
  return Object.fromEntries(members);
}

function integerWithin({ minimum, maximum }: JsonObject): JsonValue {
  const least = typeof minimum === 'number' ? minimum : 1;
  return typeof maximum === 'number' ? Math.min(Math.max(least, 1), maximum) : Math.max(least, 1);
}

function textFor(name: string, { format }: JsonObject): string {
  if (format === 'date-time') return MOMENT;
  return BY_NAME.find(([pattern]) => pattern.test(name))?.[1] ?? 'text';
}

function isEmptyList(value: JsonValue): boolean {
  return Array.isArray(value) && value.length === 0;
}
