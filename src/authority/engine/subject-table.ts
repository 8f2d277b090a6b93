/** Subjects at rest, and the tables that hold them. */
import type { Resting } from '../../../machines/step.ts';
import type { SubjectKind, SubjectTypes } from './kinds.ts';

export interface Subject<Kind extends SubjectKind = SubjectKind> extends Resting {
  /** 0 for a subject that is configured, not stored. */
  readonly version: number;
  readonly context: SubjectTypes[Kind]['context'];
}

/** Subjects of one kind at rest, by their ids: a `Map`, or what takes less memory than one. */
export interface SubjectTable<Kind extends SubjectKind> {
  readonly size: number;
  get(id: string): Subject<Kind> | undefined;
  set(id: string, subject: Subject<Kind>): unknown;
  delete(id: string): boolean;
  /** Goes on through whatever is set or deleted meanwhile. */
  entries(): IterableIterator<[string, Subject<Kind>]>;
}
