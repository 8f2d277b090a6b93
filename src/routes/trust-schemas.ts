/** Schemas that requests of the trust protocol share. */
import Type from 'typebox';

/** What keys verify a record; left out, that of this authority. */
export const Keys = Type.Array(Type.String(), {
  description: 'Base64 Ed25519 public keys; an empty list accepts nothing',
});

export const RequestTimestamp = Type.String({
  description: 'ISO 8601; without an offset it is UTC',
});
