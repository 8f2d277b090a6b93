/** What scripts add to ids and times. */
import { addIdButtons, offerCopies } from './copy-ids.ts';
import { keepTimes, relateTimes } from './relative-times.ts';

export function prepare(root: ParentNode): void {
  addIdButtons(root);
  relateTimes(root);
}

export function prepareValues(): void {
  prepare(document);
  offerCopies();
  keepTimes();
}
