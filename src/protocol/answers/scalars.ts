import Type from 'typebox';

export const Timestamp = Type.String({ format: 'date-time' });

/** Of a page of a list, when there are more rows. */
export const NextCursor = Type.Optional(Type.String());
