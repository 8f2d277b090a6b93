/** Parameters of queries: each reads the texts that were sent, and says in the references what they may be. */
import Type, { type TSchema, type TSchemaOptions } from 'typebox';
import { parseRequestDatetime } from '../../base/timestamp.ts';
import type { RefusalName } from '../refusals.ts';

export interface Parameter<Value = unknown, Sent = unknown> {
  readonly schema: TSchema;
  /** The refusal of texts for which `read` returns undefined; null if it takes any. */
  readonly refusal: RefusalName | null;
  /** Reads the texts that are not empty: one at most, unless the schema is a list. */
  read(texts: readonly string[]): Value | undefined;
  /** Whether the references call it required; `read` or `derive` refuses its absence. */
  readonly isRequired?: true;
  /** Another name, under which older clients send it. */
  readonly alias?: string;
  /** Never set; it only carries the type that clients send. */
  readonly sent?: Sent;
}

export interface Query {
  readonly [parameter: string]: Parameter;
}

/** The most values of a parameter that may be repeated: as many as a node has labels. */
export const MOST_VALUES = 16;

/** Reads one text; null if none was sent. */
function single<Value, Sent = string>(
  schema: TSchema,
  refusal: RefusalName | null,
  read: (text: string) => Value | undefined,
): Parameter<Value | null, Sent> {
  return {
    schema,
    refusal,
    read: ([text]) => (text === undefined ? null : read(text)),
  };
}

/** One text that must be sent. */
export function needed<Value>(
  schema: TSchema,
  refusal: RefusalName,
  read: (text: string) => Value | undefined,
): Parameter<Value, string> {
  return {
    schema,
    refusal,
    isRequired: true,
    read: ([given]) => (given === undefined ? undefined : read(given)),
  };
}

/** Any text that passes the test. */
export function text(
  description: string,
  refusal: RefusalName | null = null,
  isValid: (given: string) => boolean = () => true,
): Parameter<string | null, string> {
  return single(Type.String({ description }), refusal, (given) =>
    isValid(given) ? given : undefined,
  );
}

/** A parameter of a page that chooses a page of one of its tables. */
export function pageOf(what: string): Parameter<string | null, number> {
  const schema = Type.Integer({ minimum: 1, default: 1, description: `Which page of ${what}` });
  return single<string, number>(schema, null, (given) => given);
}

/** Any number of texts that each pass the test. */
export function texts(
  description: string,
  refusal: RefusalName,
  isValid: (given: string) => boolean,
): Parameter<readonly string[], string | readonly string[]> {
  return {
    schema: Type.Array(Type.String(), { maxItems: MOST_VALUES, description }),
    refusal,
    read: (given) => (given.length <= MOST_VALUES && given.every(isValid) ? given : undefined),
  };
}

/** One of a few words. */
export function choice<Word extends string>(
  words: readonly Word[],
  refusal: RefusalName,
  description: string,
  shown: TSchemaOptions = {},
): Parameter<Word | null, Word> {
  const schema = Type.Enum([...words], { ...shown, description });
  return single<Word, Word>(schema, refusal, (given) => words.find((word) => word === given));
}

/** One of a few words as a filter: no row has any other. */
export function word<Word extends string>(
  words: readonly Word[],
  description: string,
  shown: TSchemaOptions = {},
): Parameter<string | null, Word> {
  return single(Type.Enum([...words], { ...shown, description }), null, (given) => given);
}

/** The number of a version or an entry, in decimal digits. */
export function sequence(
  refusal: RefusalName,
  description: string,
): Parameter<number | null, number> {
  return single<number, number>(Type.String({ description }), refusal, (given) => {
    const number = Number(given);
    return /^\d{1,16}$/.test(given) && Number.isSafeInteger(number) ? number : undefined;
  });
}

/** An instant of a year that timestamps have in UTC, too, read as milliseconds since the epoch. */
export function instant(
  refusal: RefusalName,
  description: string,
): Parameter<number | null, string> {
  return single(
    Type.String({ description }),
    refusal,
    (given) => parseRequestDatetime(given)?.instant,
  );
}
