/** Fits bodies to their schemas, and says where they do not fit. */
import Type, { type TObject } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { JsonFloat, type JsonObject, type JsonValue } from '../../base/json/value.ts';

export interface FieldError {
  readonly [name: string]: JsonValue;
  readonly loc: readonly string[];
  readonly msg: string;
  readonly type: string;
}

export interface Fitted {
  /** Without what counts as absent, and with whole numbers as such. */
  readonly body: JsonObject;
  /** Empty if it fits. */
  readonly errors: readonly FieldError[];
}

const NONE: readonly FieldError[] = [];

/** A schema is compiled for its first body: all of them would delay the start. `wholeNumbers` are lenient [core-4-1]. */
export function fitting(
  schema: TObject,
  wholeNumbers: readonly string[],
): (sent: JsonObject) => Fitted {
  let shape: Validator | null = null;
  return (sent) => {
    shape ??= Compile(schema);
    let body = withWholeNumbers(sent, wholeNumbers);
    if (shape.Check(body)) return { body, errors: NONE };
    body = withoutNulls(body, schema);
    return { body, errors: shape.Check(body) ? NONE : shape.Errors(body).flatMap(describe) };
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
  if (fields.length === 0) return body;
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

function describe(error: {
  keyword: string;
  instancePath: string;
  message: string;
  params: object;
}): FieldError[] {
  const at = ['body', ...error.instancePath.split('/').slice(1)];
  if ('requiredProperties' in error.params) {
    const missing = error.params.requiredProperties as readonly string[];
    return missing.map((name) => ({ loc: [...at, name], msg: 'is required', type: 'missing' }));
  }
  return [{ loc: at, msg: error.message, type: error.keyword }];
}
