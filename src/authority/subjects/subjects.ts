import type { StoredSubject, SubjectRemoval, SubjectWrite } from '../../store/store.ts';
import { NOT_STORED } from '../../store/units.ts';
import type { CertificateNumbers } from '../tables/certificate-numbers.ts';
import { createCertificateTable } from './certificate-table.ts';
import { addressOf, KINDS, type SubjectKind } from './kinds.ts';
import type { Subject, SubjectTable } from './subject-table.ts';

/** Called with each subject when it is decided and, separately, when it is committed. */
export type SubjectListener = (kind: SubjectKind, id: string, subject: Subject) => void;

export type AdditionListener = (kind: SubjectKind, id: string) => void;

/** Called with each subject as its removal is decided, while it can still be read. */
export type RemovalListener = (kind: SubjectKind, id: string, subject: Subject) => void;

export interface Subjects {
  /** The subject as decided so far, whether or not it is on disk. */
  current<Kind extends SubjectKind>(kind: Kind, id: string): Subject<Kind> | undefined;
  /** The subject as it is on disk. */
  committed<Kind extends SubjectKind>(kind: Kind, id: string): Subject<Kind> | undefined;
  allCommitted<Kind extends SubjectKind>(kind: Kind): IterableIterator<[string, Subject<Kind>]>;
  countCommitted(kind: SubjectKind): number;
  /** When the committed certificates end that are neither revoked nor renewed, some thousands at a time. */
  certificateEnds(): IterableIterator<readonly number[]>;
  /** Adds a subject from the store, or from the configuration, as committed. */
  restore(kind: SubjectKind, id: string, subject: Subject): void;
  decide(changes: SubjectChanges): void;
  /** Marks the changes as committed. */
  settle(changes: SubjectChanges): void;
  onDecided(listener: SubjectListener): void;
  onCommitted(listener: SubjectListener): void;
  /** Called when a subject is committed that was not there before, or may not have been. */
  onAdded(listener: AdditionListener): void;
  onRemoved(listener: RemovalListener): void;
}

/** What one unit changes; each subject appears once, among the writes or the removals. */
export interface SubjectChanges {
  readonly writes: readonly SubjectWrite[];
  readonly removals: readonly SubjectRemoval[];
}

/** Marks a subject whose removal is decided. */
const REMOVED = null;

export function createSubjects(numbers: CertificateNumbers): Subjects {
  const committed = new Map<string, SubjectTable<SubjectKind>>();
  for (const kind of KINDS) committed.set(kind, new Map());
  const certificates = createCertificateTable(numbers);
  committed.set('certificate', certificates as SubjectTable<SubjectKind>);
  const pending = new Map<string, Subject | typeof REMOVED>();
  const removalListeners: RemovalListener[] = [];
  const decidedListeners: SubjectListener[] = [];
  const committedListeners: SubjectListener[] = [];
  const additionListeners: AdditionListener[] = [];

  function ofKind<Kind extends SubjectKind>(kind: Kind): SubjectTable<Kind> {
    return committed.get(kind) as SubjectTable<Kind>;
  }

  function remove({ kind, id }: SubjectRemoval): void {
    const key = addressOf(kind, id);
    const subject = pending.get(key) ?? ofKind(kind as SubjectKind).get(id);
    if (subject === undefined) throw new Error(`${key} does not exist`);
    for (const listener of removalListeners) listener(kind as SubjectKind, id, subject);
    pending.set(key, REMOVED);
  }

  return {
    current<Kind extends SubjectKind>(kind: Kind, id: string) {
      const decided = pending.size > 0 ? pending.get(addressOf(kind, id)) : undefined;
      if (decided === REMOVED) return undefined;
      return (decided as Subject<Kind> | undefined) ?? ofKind(kind).get(id);
    },
    committed: (kind, id) => ofKind(kind).get(id),
    allCommitted: (kind) => ofKind(kind).entries(),
    countCommitted: (kind) => ofKind(kind).size,
    certificateEnds: certificates.ends,
    restore(kind, id, subject) {
      ofKind(kind).set(id, subject);
      for (const listener of decidedListeners) listener(kind, id, subject);
      for (const listener of committedListeners) listener(kind, id, subject);
      for (const listener of additionListeners) listener(kind, id);
    },
    decide({ writes, removals }) {
      for (const write of writes) {
        const kind = kindOf(write);
        const subject = toSubject(write);
        pending.set(addressOf(kind, write.id), subject);
        for (const listener of decidedListeners) listener(kind, write.id, subject);
      }
      for (const removal of removals) remove(removal);
    },
    settle({ writes, removals }) {
      for (const write of writes) {
        const kind = kindOf(write);
        const key = addressOf(kind, write.id);
        if (pending.get(key)?.version === write.version) pending.delete(key);
        const subject = toSubject(write);
        ofKind(kind).set(write.id, subject);
        for (const listener of committedListeners) listener(kind, write.id, subject);
        if (write.replaces !== NOT_STORED) continue;
        for (const listener of additionListeners) listener(kind, write.id);
      }
      for (const { kind, id } of removals) {
        const key = addressOf(kind, id);
        if (pending.get(key) === REMOVED) pending.delete(key);
        ofKind(kind as SubjectKind).delete(id);
      }
    },
    onDecided: (listener) => decidedListeners.push(listener),
    onCommitted: (listener) => committedListeners.push(listener),
    onAdded: (listener) => additionListeners.push(listener),
    onRemoved: (listener) => removalListeners.push(listener),
  };
}

export function toSubject({ version, snapshot }: StoredSubject): Subject {
  return { version, value: snapshot.value, context: snapshot.context as Subject['context'] };
}

function kindOf({ kind }: StoredSubject): SubjectKind {
  return kind as SubjectKind;
}
