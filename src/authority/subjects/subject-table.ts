/** Subjects at rest, and the tables that hold them. */
import type { Resting } from '../../../machines/step.ts';
import type { SubjectKind, SubjectTypes } from './kinds.ts';

export interface Subject<Kind extends SubjectKind = SubjectKind> extends Resting {
  /** 0 for a subject that comes from the configuration and is not stored. */
  readonly version: number;
  readonly context: SubjectTypes[Kind]['context'];
}

/** Subjects of one kind at rest, by id: a `Map`, or a structure that needs less memory. */
export interface SubjectTable<Kind extends SubjectKind> {
  readonly size: number;
  get(id: string): Subject<Kind> | undefined;
  set(id: string, subject: Subject<Kind>): unknown;
  delete(id: string): boolean;
  /** The iterator remains valid while subjects are set or deleted. */
  entries(): IterableIterator<[string, Subject<Kind>]>;
}
