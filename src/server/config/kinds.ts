/** The kinds of values that settings have, in the text of a flag or variable and in the configuration file. */
import Type, { type Static, type TSchema } from 'typebox';
import { parseJson } from '../../base/json/parse.ts';

export interface Kind<Schema extends TSchema = TSchema> {
  /** The schema of the value, and of the member in the configuration file. */
  readonly schema: Schema;
  /** The allowed values, in words that follow `must be`. */
  readonly wanted: string;
  /** The same for the configuration file, if it differs. */
  readonly wantedInFile?: string;
  /** Parses a text; invalid text is returned as is, for the schema to refuse. */
  read(text: string): unknown;
}

export type ValueOf<K> = K extends Kind<infer Schema> ? Static<Schema> : never;

const asIs = (text: string) => text;
const inDigits = (text: string) => (/^[0-9]{1,16}$/.test(text) ? Number(text) : text);

export function whole(minimum: number, maximum: number) {
  return {
    schema: Type.Integer({ minimum, maximum }),
    wanted: `a whole number from ${minimum} to ${maximum}`,
    read: inDigits,
  };
}

export function wholeOrOff(minimum: number, maximum: number) {
  return {
    schema: Type.Union([Type.Integer({ minimum, maximum }), Type.Literal('off')]),
    wanted: `a whole number from ${minimum} to ${maximum}, or off`,
    read: inDigits,
  };
}

export function oneOf<const Values extends readonly (string | number)[]>(...values: Values) {
  return {
    schema: Type.Unsafe<Values[number]>({ enum: [...values] }),
    wanted: `one of ${values.join(', ')}`,
    read: (text: string) => values.find((value) => String(value) === text) ?? text,
  };
}

/** A variable is 0 or 1; a flag has no value. */
export const SWITCH = {
  schema: Type.Boolean(),
  wanted: 'one of 0, 1',
  wantedInFile: 'true or false',
  read: (text: string) => (text === '1' ? true : text === '0' ? false : text),
};

export const TEXT = {
  schema: Type.String({ minLength: 1 }),
  wanted: 'a non-empty string',
  read: asIs,
};

export function text(pattern: string, wanted: string) {
  return { schema: Type.String({ pattern }), wanted, read: asIs };
}

export function checkedText(isOne: (text: string) => boolean, wanted: string) {
  return { schema: Type.Refine(Type.String({ minLength: 1 }), isOne), wanted, read: asIs };
}

/** Several values; `separator` separates them in a variable. */
export function list(
  separator: RegExp | null,
  wanted: string,
  isOne: (item: string) => boolean = () => true,
) {
  const items = (text: string) => {
    const parts = separator === null ? [text] : text.split(separator);
    return parts.map((part) => part.trim()).filter((part) => part !== '');
  };
  const Item = Type.Refine(Type.String({ minLength: 1 }), isOne);
  return { schema: Type.Array(Item), wanted, read: items };
}

export const STRINGS_BY_NAME = {
  schema: Type.Record(Type.String(), Type.String()),
  wanted: 'a JSON object of strings, without duplicate names',
  read: jsonOf,
};

/** An object that is checked elsewhere. */
export const JSON_TEXT = {
  schema: Type.Unsafe<string | object>({ type: ['object', 'string'] }),
  wanted: 'an object',
  read: asIs,
};

function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

const DURATION = /^([1-9][0-9]{0,5})([mhd])$/;
const UNITS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Milliseconds; 0 if the text is not a duration. */
export function durationOf(text: string): number {
  const [, count = '', unit = ''] = DURATION.exec(text) ?? [];
  return Number(count) * (UNITS[unit as keyof typeof UNITS] ?? 0);
}

/** A duration up to a day, or off. */
export const SHORT_DURATION_OR_OFF = {
  schema: Type.Refine(
    Type.String({ pattern: `^(off|${DURATION.source.slice(1, -1)})$` }),
    (text) => text === 'off' || (durationOf(text) > 0 && durationOf(text) <= UNITS.d),
  ),
  wanted: 'a duration from 1m to 24h, or off',
  read: asIs,
};

export const DURATION_TEXT = {
  schema: Type.Refine(
    Type.String({ pattern: DURATION.source }),
    (text) => durationOf(text) > 0 && durationOf(text) <= 366 * UNITS.d,
  ),
  wanted: 'a duration from 1m to 366d, such as 30m or 24h',
  read: asIs,
};
