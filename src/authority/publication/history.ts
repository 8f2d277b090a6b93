/** The history of the service [core-4-22]. */
import type { Handler } from '../engine/admission.ts';
import { AsyncResult } from '../engine/execute.ts';

export const recordHistory: Handler<'recordHistory'> = (na, unit, part) => {
  unit.whenCommitted(() => na.history.add(part));
  return null;
};

export const readHistory: Handler<'readHistory'> = (na, question) =>
  new AsyncResult(na.history.read(question, na.sliceQueue.run));
