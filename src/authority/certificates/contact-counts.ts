/** Counts when the nodes with a certificate in use were last heard from, for operators [core-4-23]. */
import type { Writable } from '../../base/json/write.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { Sliced } from '../subjects/sliced.ts';
import { certificateSearch } from './certificate-list.ts';
import { createContactBins } from './contact-bins.ts';

export const countContacts: Handler<'countContacts'> = (na, question, at) =>
  new Sliced(contacts(na, question, at));

function* contacts(
  na: Authority,
  { group, ...filters }: CallInput<'countContacts'>,
  at: number,
): Generator<void, Writable> {
  const isFiltered = Object.values(filters)
    .flat()
    .some((wanted) => wanted !== null);
  // Searching reads whole certificates, which takes several times as long.
  const found = isFiltered ? certificateSearch(na, { ...filters, status: 'in_use' }, at) : null;
  const bins = createContactBins(group, at);
  for (const certificates of na.subjects.acceptedCertificates(at)) {
    for (const { id, number, isRenewed } of certificates) {
      const contact = na.liveness.contactAt(number, at);
      if (!contact.isActive && isRenewed) continue;
      if (found !== null && found(id) === null) continue;
      bins.add(contact, na.certificates.descriptionAt(number));
    }
    yield;
  }
  return bins.counted();
}
