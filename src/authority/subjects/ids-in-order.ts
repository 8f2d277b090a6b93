/** The ids of the committed subjects of one kind, in order: what long lists of them are read by. */
import { createSortedTexts, type SortedTexts } from '../tables/sorted-texts.ts';
import type { SubjectKind } from './kinds.ts';
import type { Subjects } from './subjects.ts';

export type IdsInOrder = Pick<SortedTexts, 'after'>;

export function idsInOrder(subjects: Subjects, followed: SubjectKind): IdsInOrder {
  const ids = createSortedTexts();
  subjects.onAdded((kind, id) => kind === followed && ids.add(id));
  subjects.onRemoved((kind, id) => kind === followed && ids.remove(id));
  return ids;
}
