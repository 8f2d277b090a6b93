/** When nodes were last heard from, counted [core-4-23]. */
import Type, { type Static } from 'typebox';
import { Datetime } from '../records/record.ts';

export const ContactCounts = Type.Object({
  count: Type.Integer({ description: 'The sum of the five counts after it' }),
  active: Type.Integer(),
  silent_under_hour: Type.Integer(),
  silent_under_day: Type.Integer({ description: 'For an hour or longer' }),
  silent_under_week: Type.Integer({ description: 'For a day or longer' }),
  silent_longer: Type.Integer({ description: 'For a week or longer' }),
  silent_since: Type.Union([Datetime, Type.Null()], {
    description: 'The last contact of the one that has been silent the longest',
  }),
});

export const BIN_KINDS = ['label', 'name', 'hostname', 'remote_addr'] as const;

export const ContactBin = Type.Object({
  by: Type.Enum([...BIN_KINDS], {
    description: 'The filter of GET /admin/certificates that finds the certificates of the bin',
  }),
  value: Type.String({ description: 'The value of that filter' }),
  ...ContactCounts.properties,
});

export const Contacts = Type.Object({
  as_of: Datetime,
  total: ContactCounts,
  bins: Type.Array(ContactBin),
  unlabeled: Type.Union([ContactCounts, Type.Null()], {
    description: 'Those without the label; null if there are none, or no label was asked for',
  }),
  other: Type.Union([ContactCounts, Type.Null()], {
    description: 'Those with values of the label beyond the first 1,000; null if there are none',
  }),
});

export type ContactCounts = Static<typeof ContactCounts>;
export type ContactBin = Static<typeof ContactBin>;
export type Contacts = Static<typeof Contacts>;
