/** Schemas that requests of the trust protocol share. */
import Type, { type TNull, type TOptional, type TSchema, type TUnion } from 'typebox';
import { MAX_CAPABILITIES, MAX_KEYS } from '../../protocol/records/bounds.ts';

/** The keys that verify a record; by default the key of this authority. */
export const Keys = optional(
  Type.Array(Type.String(), {
    maxItems: MAX_KEYS,
    description: 'Base64 Ed25519 public keys; an empty list accepts nothing',
  }),
);

/** Keys as a list, or as an object whose member names are key ids. */
export const KeysOfAnyForm = Type.Optional(
  Type.Union([Type.Array(Type.String()), Type.Record(Type.String(), Type.String()), Type.Null()]),
);

/** A member that may be absent or null, with the same meaning. */
export function optional<T extends TSchema>(schema: T): TOptional<TUnion<[T, TNull]>> {
  return Type.Optional(Type.Union([schema, Type.Null()]));
}

export const Capabilities = Type.Array(Type.String({ minLength: 1 }), {
  minItems: 1,
  maxItems: MAX_CAPABILITIES,
});

export const RequestTimestamp = Type.String({
  description: 'ISO 8601; without an offset it is UTC',
});
