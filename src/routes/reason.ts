import Type from 'typebox';
import { bodyReader, mapped } from '../http/body.ts';
import type { JsonObject } from '../json/value.ts';
import { Text } from './scalars.ts';

const reader = bodyReader(Type.Object({ reason: Type.Optional(Text) }));

/** The body of revocations whose reason is free text, `unspecified` when none is given. */
export const reasonBody = {
  schema: reader.schema,
  read: (body: JsonObject) =>
    mapped(reader.read(body), ({ reason = 'unspecified' }) => ({ reason })),
};
