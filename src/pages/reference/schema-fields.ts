/** Flattens the members of a schema into a list of named fields for the reference. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { type Direction, demandedOf } from './openapi-schemas.ts';

export interface Field {
  /** For example `signatures[].key_id`; `<name>` stands for any name. */
  readonly path: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly notes: readonly string[];
}

/** Nesting beyond this depth would clutter the reference. */
const DEEPEST = 4;

/** Clients may omit members with a default; answers always have them. */
export function fieldsOf(schema: unknown, direction: Direction = 'answered'): Field[] {
  if (!isJsonObject(schema)) return [];
  const { anyOf } = schema;
  return Array.isArray(anyOf) ? fieldsOfAny(anyOf, direction) : membersOf(schema, '', 1, direction);
}

/** Merges the fields of all forms; a field is required if every form requires it. */
function fieldsOfAny(forms: readonly JsonValue[], direction: Direction): Field[] {
  const ofForms = forms.map((form) => fieldsOf(form, direction));
  const byPath = new Map(ofForms.flat().map((field) => [field.path, field]));
  const isInAll = (path: string) =>
    ofForms.every((fields) => fields.some((field) => field.path === path && field.isRequired));
  return [...byPath.values()].map((field) => ({ ...field, isRequired: isInAll(field.path) }));
}

/** The path and query parameters of a request. */
export function parameterFields(path: string, query: unknown): Field[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    path: name,
    type: 'string',
    isRequired: true,
    notes: ['in the path'],
  }));
  const inQuery = fieldsOf(query).map((field) => ({
    ...field,
    notes: ['in the query', ...field.notes],
  }));
  return [...inPath, ...inQuery];
}

function membersOf(
  schema: JsonObject,
  prefix: string,
  depth: number,
  direction: Direction,
): Field[] {
  if (depth > DEEPEST) return [];
  const { properties } = schema;
  if (!isJsonObject(properties)) return [];
  const demanded = new Set(demandedOf(schema, direction));
  return Object.entries(properties).flatMap(([name, member]) => {
    if (!isJsonObject(member)) return [];
    const value = isJsonObject(member.described) ? member.described : member;
    const path = `${prefix}${name}`;
    const field = {
      path,
      type: typeText(value),
      isRequired: demanded.has(name),
      notes: notesOf(value),
    };
    return [field, ...below(value, path, depth, direction)];
  });
}

/** The nested members: of an object, of the items of a list, or of an object with any names. */
function below(schema: JsonObject, path: string, depth: number, direction: Direction): Field[] {
  const { items, anyOf, properties } = schema;
  if (isJsonObject(properties)) return membersOf(schema, `${path}.`, depth + 1, direction);
  if (isJsonObject(items)) return below(items, `${path}[]`, depth, direction);
  const named = namedValues(schema);
  if (named !== null) return below(named, `${path}.<name>`, depth, direction);
  if (Array.isArray(anyOf)) {
    return anyOf.filter(isJsonObject).flatMap((branch) => below(branch, path, depth, direction));
  }
  return [];
}

/** The schema of the values of an object with any names; null for other schemas. */
function namedValues({ patternProperties }: JsonObject): JsonObject | null {
  if (!isJsonObject(patternProperties)) return null;
  const [values] = Object.values(patternProperties);
  return isJsonObject(values) ? values : null;
}

function typeText(schema: JsonObject): string {
  const { type, format, items, anyOf, const: constant, enum: values, natural } = schema;
  if (constant !== undefined) return JSON.stringify(constant);
  if (Array.isArray(values)) return 'string';
  if (natural === true) return 'integer';
  if (format === 'date-time') return 'ISO 8601 time';
  if (Array.isArray(anyOf)) {
    const branches = anyOf.filter(isJsonObject).map(typeText);
    return [...new Set(branches)].join(' or ');
  }
  if (type === 'array') return `list of ${isJsonObject(items) ? typeText(items) : 'anything'}`;
  if (type === 'object' && namedValues(schema) !== null) return 'object with any names';
  return typeof type === 'string' ? type : 'anything';
}

function notesOf(schema: JsonObject): string[] {
  const { description, enum: values, default: fallback } = schema;
  const { minimum, maximum, minLength, maxLength, minItems, maxItems } = schema;
  const notes = [
    typeof description === 'string' ? description : '',
    Array.isArray(values) ? `one of ${values.map(String).join(', ')}` : '',
    bounds(minimum, maximum, ''),
    minLength === 1 && maxLength === undefined
      ? 'not empty'
      : bounds(minLength, maxLength, 'characters'),
    bounds(minItems, maxItems, 'items'),
    isShown(fallback) ? `default ${JSON.stringify(fallback)}` : '',
    ...nestedNotes(schema),
  ];
  return [...new Set(notes)].filter((note) => note !== '');
}

/** Notes on the items of a list, or on the branches of a union, that have no members. */
function nestedNotes({ items, anyOf }: JsonObject): string[] {
  const nested = [items, ...(Array.isArray(anyOf) ? anyOf : [])];
  return nested.filter(isJsonObject).flatMap(notesOf);
}

/** Records have a default for every member; empty ones are noise. */
function isShown(fallback: JsonValue | undefined): fallback is JsonValue {
  return (
    typeof fallback === 'number' ||
    typeof fallback === 'boolean' ||
    (typeof fallback === 'string' && fallback !== '')
  );
}

function bounds(least: JsonValue | undefined, most: JsonValue | undefined, unit: string): string {
  const tail = unit === '' ? '' : ` ${unit}`;
  if (least !== undefined && most !== undefined) return `${text(least)} to ${text(most)}${tail}`;
  if (least !== undefined) return `at least ${text(least)}${tail}`;
  if (most !== undefined) return `at most ${text(most)}${tail}`;
  return '';
}

function text(value: JsonValue): string {
  return String(value);
}
