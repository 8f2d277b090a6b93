import Type from 'typebox';
import type { JsonObject } from '../../base/json/value.ts';
import { bodyReader, mapped } from '../body.ts';
import { Text } from './scalars.ts';

const reader = bodyReader(Type.Object({ reason: Type.Optional(Text) }));

/** The body of revocations with a free-text reason; `unspecified` if absent. */
export const reasonBody = {
  schema: reader.schema,
  read: (body: JsonObject) =>
    mapped(reader.read(body), ({ reason = 'unspecified' }) => ({ reason })),
};
