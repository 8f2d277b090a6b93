/**
 * Example requests and answers of a route, generated from its schemas: the only source of examples that are shown or
 * sent. Members with a known name get a realistic value; all others show their type.
 */
import { isJsonObject, JsonFloat, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import type { RouteDescription } from '../../protocol/route-description.ts';
import { inFull } from './openapi-schemas.ts';

/** A path or query parameter with its example. */
export type NamedExample = readonly [name: string, value: string];

/** The `{names}` of a path template in their order. */
export function pathExamples({ path }: RouteDescription): NamedExample[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, textExample({}, name)]);
}

/** The required query parameters, and those with an example. */
export function queryExamples({ query }: RouteDescription): NamedExample[] {
  const required = new Set(query?.required ?? []);
  return Object.entries(query?.properties ?? {}).flatMap(([name, member]): NamedExample[] => {
    const { example, ...schema } = inFull(member, 'sent');
    if (example !== undefined) return [[name, String(example)]];
    return required.has(name) ? [[name, textExample(schema, name)]] : [];
  });
}

function textExample(schema: JsonObject, name: string): string {
  return String(exampleOf({ type: 'string', ...schema }, name));
}

/** Undefined when the route takes no body. */
export function bodyExample(
  { body, example = {} }: RouteDescription,
  networkName: string,
): JsonObject | undefined {
  if (body === undefined) return undefined;
  const made = exampleOf(inFull(body, 'sent'), '', networkName) as JsonObject;
  return withMembers(made, example);
}

function withMembers(made: JsonObject, given: JsonObject): JsonObject {
  const members = Object.entries(given).map(([name, value]) => {
    const other = made[name];
    const areObjects = isJsonObject(other) && isJsonObject(value);
    return [name, areObjects ? withMembers(other, value) : value] as const;
  });
  return { ...made, ...Object.fromEntries(members) };
}

/** Undefined when the answer is a page or plain text. */
export function answerExample(
  { answer }: RouteDescription,
  networkName: string,
): JsonValue | undefined {
  if ('contentType' in answer) return undefined;
  return exampleOf(inFull(answer, 'answered'), '', networkName);
}

/** A public key that belongs to nobody. */
export const EXAMPLE_KEY = '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=';
const SIGNATURE =
  '5VZDAMNgrHKQhuLMgG6CioSHfx64500UVttSTHJItO+fRoYX61lBCJ+1vqlV+9e7HATXB8ZaYJKPe/FYQU8BCg==';
const DIGEST = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const PAST = '2026-01-15T12:00:00Z';
const FUTURE = '2036-01-15T12:00:00Z';
const ID = '7d0f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00';
const DEEPEST = 8;

/** Values by the end of a member's name; the first match applies. */
const BY_NAME: readonly (readonly [RegExp, string])[] = [
  [/public_keys?$|^issuer$|^key$|^(from|to|followed)_key$/, EXAMPLE_KEY],
  [/^sig$|signature$|^proof_of_possession$/, SIGNATURE],
  [/digest$|hash$|_root$|^nonce$/, DIGEST],
  [/^(local|issuer|source|offerer|licensor|expected_issuer|from)(_sovereign_id)?$/, 'alpha'],
  [/sovereign_ids?$|^to$/, 'beta'],
  [/_ids?$/, ID],
  [/^expires_at$|^valid_(until|to)$/, FUTURE],
  [/_at$|timestamp$|^valid_|server_time$|_update$|completed/, PAST],
  [/^roles$|_roles$/, 'role:client'],
  [/capabilit/, 'read'],
  [/access_types$/, 'read'],
  [/^batch$/, 'field-team-7'],
  [/^fingerprints?$/, '5f3c2b1a00de9c4e'],
  [/^scheme$/, 'wss'],
  [/^host$/, 'node.example'],
  [/^q$/, 'beta'],
  [/^reason$/, 'unspecified'],
  [/token$/, 'mesh-invite-token'],
  [/^status$/, 'healthy'],
  [/url$|endpoint$/, 'https://na.example'],
];

/** Returns a value that the schema allows; `networkName` fills in members that must name the network. */
export function exampleOf(schema: JsonValue | undefined, name = '', networkName = ''): JsonValue {
  return exampleAt(schema, name, networkName, 0);
}

function exampleAt(
  schema: JsonValue | undefined,
  name: string,
  networkName: string,
  depth: number,
): JsonValue {
  if (!isJsonObject(schema)) return {};
  const inner = (member: JsonValue | undefined, memberName: string) =>
    exampleAt(member, memberName, networkName, depth + 1);
  if (schema.default !== undefined && showsForm(schema.default)) return schema.default;
  if (Array.isArray(schema.enum)) return (schema.enum as readonly JsonValue[])[0] ?? null;
  if (Array.isArray(schema.anyOf)) {
    return exampleAt((schema.anyOf as readonly JsonValue[])[0], name, networkName, depth);
  }
  if (schema.type === 'object') return exampleObject(schema, inner, depth);
  if (schema.type === 'array') return depth < DEEPEST ? [inner(schema.items, name)] : [];
  if (schema.type === 'integer') return integerWithin(schema);
  if (schema.type === 'number') return new JsonFloat(0.5);
  if (schema.type === 'boolean') return true;
  if (name === 'network_name') return networkName;
  return textFor(name, schema);
}

function exampleObject(
  { properties }: JsonObject,
  inner: (member: JsonValue, name: string) => JsonValue,
  depth: number,
): JsonObject {
  if (!isJsonObject(properties) || depth >= DEEPEST) return {};
  const members = Object.entries(properties).map(
    ([name, member]) => [name, inner(member, name)] as const,
  );
  return Object.fromEntries(members);
}

function integerWithin({ minimum, maximum }: JsonObject): JsonValue {
  const least = typeof minimum === 'number' ? minimum : 1;
  return typeof maximum === 'number' ? Math.min(Math.max(least, 1), maximum) : Math.max(least, 1);
}

function textFor(name: string, { format }: JsonObject): string {
  const text = BY_NAME.find(([pattern]) => pattern.test(name))?.[1];
  if (format === 'date-time') return text === FUTURE ? text : PAST;
  return text ?? 'text';
}

/** An empty default makes a poor example. */
function showsForm(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== null && (!isJsonObject(value) || Object.keys(value).length > 0);
}
