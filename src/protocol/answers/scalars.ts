import Type from 'typebox';

/** Present on a page of a list if there are more rows. */
export const NextCursor = Type.Optional(Type.String());
