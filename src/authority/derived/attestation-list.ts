/** Keeps attestations in the order in which they are listed. */
import type { Attestation } from '../../../machines/attestation.ts';
import { compareCodePoints } from '../../base/json/write.ts';
import { createOrderedList } from '../../base/ordered-list.ts';
import type { ListPlace } from '../../protocol/contract/pages.ts';
import type { SubjectFollower } from '../subjects/subjects.ts';

export interface Attestations {
  /** Every committed attestation, oldest first. */
  items(): readonly ListPlace[];
  readonly follow: SubjectFollower;
}

export function createAttestations(): Attestations {
  const inOrder = createOrderedList(comparePlaces);
  const known = new Set<string>();
  return {
    items: inOrder.items,
    follow(kind, id, { context }) {
      if (kind !== 'attestation' || known.has(id)) return;
      known.add(id);
      inOrder.add({ at: (context as Attestation).issuedAt, id });
    },
  };
}

export function comparePlaces(a: ListPlace, b: ListPlace): number {
  return a.at - b.at || compareCodePoints(a.id, b.id);
}
