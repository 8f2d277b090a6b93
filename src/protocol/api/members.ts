/** Members of bodies: what fits, what is refused how, and what counts if nothing was sent. */
import Type, {
  type Static,
  type TInteger,
  type TObject,
  type TSchema,
  type TUnknown,
} from 'typebox';
import { isPublicKey } from '../../base/crypto/public-key.ts';
import type { JsonObject, JsonValue } from '../../base/json/value.ts';
import { MAX_TEXT_LENGTH } from '../records/record.ts';
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

/** Schemas that several routes share. */

export const PUBLIC_KEY_PATTERN = '^[A-Za-z0-9+/]{43}=$';

/** Base64 of 32 bytes in its one canonical spelling. */
export const PublicKey = Type.Refine(
  Type.String({ pattern: PUBLIC_KEY_PATTERN, description: 'Base64 Ed25519 public key' }),
  isPublicKey,
);

/** Keys as a list, or as an object whose member names are key ids. */
export const KeysOfAnyForm = Type.Optional(
  Type.Union([Type.Array(Type.String()), Type.Record(Type.String(), Type.String()), Type.Null()]),
);

export const Filled = Type.String({ minLength: 1 });

/** Free text that is stored and therefore bounded. */
export const Text = Type.String({ maxLength: MAX_TEXT_LENGTH });
export const FilledText = Type.String({ minLength: 1, maxLength: MAX_TEXT_LENGTH });

/** A name that becomes a key of the store: its length is bounded. */
export const Name = Type.String({ minLength: 1, maxLength: 256 });

export const MAX_VALIDITY_HOURS = 87_600;

/** A whole number of hours, in the spellings of a lenient member. */
export function hours(maximum?: number, description?: string): TInteger {
  return Type.Integer({
    minimum: 1,
    ...(maximum !== undefined && { maximum }),
    ...(description !== undefined && { description }),
  });
}

/** A value that is checked elsewhere, so anything passes here; the schema only documents it. */
export function judgedElsewhere(described: TSchema): TUnknown {
  return Type.Unknown({ described });
}

/** Members of a body that proves possession of a node key; the header form replaces all three. */
export const NodeProofMembers = {
  timestamp: Type.Optional(
    judgedElsewhere(Type.String({ description: 'ISO 8601; part of the signed text' })),
  ),
  nonce: Type.Optional(
    judgedElsewhere(
      Type.String({ minLength: 1, maxLength: 128, description: 'Unique for each request' }),
    ),
  ),
  signature: Type.Optional(
    judgedElsewhere(
      Type.String({ description: 'Base64 signature over the canonical body without this member' }),
    ),
  ),
};

/** Refuses a list that is absent or empty; other types are checked elsewhere. */
export function someItems(
  refusal: RefusalName,
  listIn: (body: JsonObject) => JsonValue | undefined,
): BodyCheck {
  return {
    refusal,
    passes(body) {
      const list = listIn(body);
      return list !== undefined && !(Array.isArray(list) && list.length === 0);
    },
  };
}

/** Refuses roles that this network does not allow; anything but a list of strings is checked elsewhere. */
export function allowedRoles(rolesIn: (body: JsonObject) => JsonValue | undefined): BodyCheck {
  return {
    refusal: 'invalid_role',
    passes(body, { isAllowedRole }) {
      const roles = rolesIn(body);
      if (!Array.isArray(roles)) return true;
      return roles.every((role) => typeof role !== 'string' || isAllowedRole(role));
    },
  };
}
