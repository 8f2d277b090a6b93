import Type from 'typebox';

export const Timestamp = Type.String({ format: 'date-time' });

/** Present on a page of a list if there are more rows. */
export const NextCursor = Type.Optional(Type.String());
