/** The order in which attestations are listed. */
import type { Attestation } from '../../../machines/attestation.ts';
import { compareCodePoints } from '../../base/json/write.ts';
import { createOrderedList, type OrderedList } from '../../base/ordered-list.ts';
import type { ListPlace } from '../../protocol/contract/pages.ts';
import type { Subjects } from '../subjects/subjects.ts';

/** Every committed attestation, oldest first. */
export type Attestations = OrderedList<ListPlace>;

export function createAttestations(subjects: Subjects): Attestations {
  const inOrder = createOrderedList(comparePlaces);
  const known = new Set<string>();
  subjects.onCommitted((kind, id, { context }) => {
    if (kind !== 'attestation' || known.has(id)) return;
    known.add(id);
    inOrder.add({ at: (context as Attestation).issuedAt, id });
  });
  return inOrder;
}

export function comparePlaces(a: ListPlace, b: ListPlace): number {
  return a.at - b.at || compareCodePoints(a.id, b.id);
}
