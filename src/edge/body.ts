/** Request bodies: from bytes to a JSON object, and from an object to a value that fits its schema. */
import Type, { type Static, type TObject } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { parseJsonBytes } from '../base/json/bytes.ts';
import { isJsonObject, JsonFloat, type JsonObject, type JsonValue } from '../base/json/value.ts';
import { Refusal, type RefusalName } from '../base/refusal.ts';
import { type Input, refused } from '../protocol/api/input.ts';

/** Parses a body as a JSON object; an empty body is `{}`. Refuses anything else with a specific 400. */
export function parseBody(bytes: Uint8Array, maxValues?: number): JsonObject {
  if (bytes.byteLength === 0) return {};
  const value = parsed(bytes, maxValues);
  if (!isJsonObject(value)) throw new Refusal('invalid_json_object');
  return value;
}

function parsed(bytes: Uint8Array, maxValues: number | undefined): JsonValue {
  try {
    return parseJsonBytes(bytes, maxValues);
  } catch (cause) {
    if (cause instanceof SyntaxError) throw new Refusal('invalid_json');
    throw cause;
  }
}

/** Whether this network allows the role name. */
export type RoleRule = (role: string) => boolean;

export interface BodyRules {
  /**
   * The refusal for each invalid field and failed test, in the order of the checks; an invalid field without an entry
   * is a 422.
   */
  readonly codes?: { readonly [fieldOrTest: string]: RefusalName };
  /** Tests that a schema cannot express, by name in `codes`. */
  readonly tests?: {
    readonly [test: string]: (body: JsonObject, isAllowedRole: RoleRule) => boolean;
  };
  /** Fields that also accept an integral float or a string of decimal digits [core-4-1]. */
  readonly wholeNumbers?: readonly string[];
}

export interface BodyReader<Schema extends TObject> {
  readonly schema: Schema;
  read(body: JsonObject, isAllowedRole?: RoleRule): Input<Static<Schema>>;
}

/** The reader of a body. Its schema is compiled for the first body: all of them would delay the start. */
export function bodyReader<Schema extends TObject>(
  schema: Schema,
  { codes = {}, tests = {}, wholeNumbers = [] }: BodyRules = {},
): BodyReader<Schema> {
  let shape: Validator | null = null;
  const order = Object.entries(codes);
  return {
    schema,
    read(body, isAllowedRole = () => true) {
      shape ??= Compile(schema);
      let candidate = wholeNumbers.length === 0 ? body : withWholeNumbers(body, wholeNumbers);
      if (!shape.Check(candidate)) candidate = withoutNulls(candidate, schema);
      const errors = shape.Check(candidate) ? [] : shape.Errors(candidate).flatMap(describe);
      const [, code] =
        order.find(([name]) => {
          const test = tests[name];
          if (test !== undefined) return !test(candidate, isAllowedRole);
          return errors.some(({ loc }) => loc[1] === name);
        }) ?? [];
      if (code !== undefined) return refused(code);
      if (errors.length > 0) return refused('request_validation_failed', { errors });
      return { ok: true, value: candidate as Static<Schema> };
    },
  };
}

/** Null counts as absent for optional members [core-4-1]. */
function withoutNulls(body: JsonObject, { properties }: TObject): JsonObject {
  const isLeftOut = (name: string) => {
    const member = properties[name];
    return body[name] === null && member !== undefined && Type.IsOptional(member);
  };
  return Object.fromEntries(Object.entries(body).filter(([name]) => !isLeftOut(name)));
}

function withWholeNumbers(body: JsonObject, fields: readonly string[]): JsonObject {
  const copy: { [name: string]: JsonValue } = { ...body };
  for (const field of fields) {
    const value = body[field];
    if (value !== undefined) copy[field] = wholeNumber(value);
  }
  return copy;
}

/** An integer beyond the safe range exceeds every limit, so it is read as the largest safe integer. */
function wholeNumber(value: JsonValue): JsonValue {
  if (typeof value === 'string' && /^[0-9]{1,40}$/.test(value)) return capped(Number(value));
  if (typeof value === 'bigint' && value > 0n) return Number.MAX_SAFE_INTEGER;
  if (value instanceof JsonFloat && Number.isInteger(value.value)) return capped(value.value);
  return value;
}

function capped(value: number): number {
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

interface FieldError {
  readonly [name: string]: JsonValue;
  readonly loc: readonly string[];
  readonly msg: string;
  readonly type: string;
}

function describe(error: {
  keyword: string;
  instancePath: string;
  message: string;
  params: object;
}): FieldError[] {
  const at = ['body', ...error.instancePath.split('/').slice(1)];
  if ('requiredProperties' in error.params) {
    const missing = error.params.requiredProperties as readonly string[];
    return missing.map((name) => ({
      loc: [...at, name],
      msg: 'is required',
      type: 'missing',
    }));
  }
  return [{ loc: at, msg: error.message, type: error.keyword }];
}
