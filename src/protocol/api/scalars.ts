/** Schemas that several routes share. */
import Type, { type TInteger, type TSchema, type TUnknown } from 'typebox';
import { isPublicKey } from '../../base/crypto/public-key.ts';
import type { JsonObject, JsonValue } from '../../base/json/value.ts';
import { MAX_TEXT_LENGTH } from '../records/bounds.ts';
import type { RefusalName } from '../refusals.ts';
import type { BodyCheck } from './members.ts';

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
