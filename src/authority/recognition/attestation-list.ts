/** The order in which attestations are listed. */
import type { Attestation } from '../../../machines/attestation.ts';
import type { ListPlace } from '../../contract/pages.ts';
import { compareCodePoints } from '../../json/write.ts';
import { createOrderedList, type OrderedList } from '../../ordered-list.ts';
import type { Subjects } from '../engine/subjects.ts';

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
