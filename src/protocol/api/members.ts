/** Members of bodies: what fits, what is refused how, and what counts if nothing was sent. */
import type { Static, TObject, TSchema } from 'typebox';
import type { JsonObject } from '../../base/json/value.ts';
import type { RefusalName } from '../refusals.ts';

export interface Member<Value = unknown, IsRequired extends boolean = boolean> {
  readonly schema: TSchema;
  /** Null answers 422 `request_validation_failed` with every place. */
  readonly refusal: RefusalName | null;
  readonly isRequired: IsRequired;
  /** Undefined if required. */
  readonly otherwise: Value | undefined;
  readonly checks: MemberChecks;
}

interface MemberChecks {
  /** A whole number may also be an integral float or a string of decimal digits [core-4-1]. */
  readonly isLenient?: true;
  /** What is checked before the schema of the member, whose answer is then the more helpful one. */
  readonly before?: readonly BodyCheck[];
  /** What a schema cannot express. */
  readonly after?: readonly BodyCheck[];
}

/** A check of a body; types are those of its schema, or anything else. */
export interface BodyCheck {
  readonly refusal: RefusalName;
  passes(body: JsonObject, context: ReadContext): boolean;
}

export interface Body {
  readonly [member: string]: Member;
}

/** A body that a function of its own reads, where members depend on each other; its schema only documents it. */
export interface ReadBody<Schema extends TObject = TObject, Value extends object = object> {
  readonly schema: Schema;
  readonly refusals: readonly RefusalName[];
  /** Throws the refusal of a body that does not fit. */
  readonly read: (body: JsonObject, context: ReadContext) => Value;
}

export function readBy<Schema extends TObject, Value extends object>(
  schema: Schema,
  refusals: readonly RefusalName[],
  read: (body: JsonObject, context: ReadContext) => Value,
): ReadBody<Schema, Value> {
  return { schema, refusals, read };
}

/** What a reader may need besides the request. */
export interface ReadContext {
  /** Milliseconds since the epoch. */
  readonly now: number;
  uuid(): string;
  /** Whether this network allows the role name. */
  isAllowedRole(role: string): boolean;
  /** The most entries of a feed that this network imports. */
  readonly maxFeedEntries: number;
}

export function required<Schema extends TSchema>(
  schema: Schema,
  refusal: RefusalName | null = null,
  checks: MemberChecks = {},
): Member<Static<Schema>, true> {
  return { schema, refusal, isRequired: true, otherwise: undefined, checks };
}

/** A member that may be left out, or null, and then counts as `otherwise`. */
export function optional<Schema extends TSchema, Otherwise extends Static<Schema> | null>(
  schema: Schema,
  otherwise: Otherwise,
  refusal: RefusalName | null = null,
  checks: MemberChecks = {},
): Member<Static<Schema> | (null extends Otherwise ? null : never), false> {
  const shown = otherwise === null ? schema : withDefault(schema, otherwise);
  return { schema: shown, refusal, isRequired: false, otherwise: otherwise as never, checks };
}

/** The refinements of a schema are not enumerable, so a spread would drop them. */
function withDefault(schema: TSchema, otherwise: unknown): TSchema {
  return Object.defineProperties(
    {},
    {
      ...Object.getOwnPropertyDescriptors(schema),
      default: { value: otherwise, enumerable: true },
    },
  );
}
