import type { Invite } from '../../../machines/invite.ts';
import type { StoredSubject, SubjectRemoval, SubjectWrite } from '../../store/store.ts';
import { NOT_STORED } from '../../store/units.ts';
import { createCertificateTable } from './certificate-table.ts';
import { addressOf, KINDS, type Subject, type SubjectKind, type SubjectTable } from './kinds.ts';
import type { CertificateNumbers } from './numbering.ts';

/** Keeps what is known in memory of the subjects of one kind (indexes, counts, lists) up to date when one changes. */
export interface Follower<Kind extends SubjectKind> {
  /** Called when a change was decided, which may not be on disk yet. */
  decided?(id: string, subject: Subject<Kind>): void;
  committed?(id: string, subject: Subject<Kind>): void;
  /** Called when a committed subject is new, or may be new. */
  added?(id: string): void;
  /** Called when a removal was decided; the subject can still be read. */
  removed?(id: string, subject: Subject<Kind>): void;
}

export type Followers = { readonly [Kind in SubjectKind]?: Follower<Kind> };

export type Subjects = ReturnType<typeof createSubjects>;

/** The changes of one unit; each subject appears only once, in the writes or in the removals. */
interface SubjectChanges {
  readonly writes: readonly SubjectWrite[];
  readonly removals: readonly SubjectRemoval[];
}

/** Marks a subject whose removal was decided. */
const REMOVED = null;

export function createSubjects(numbers: CertificateNumbers) {
  const committed = new Map<string, SubjectTable<SubjectKind>>();
  for (const kind of KINDS) committed.set(kind, new Map());
  const certificates = createCertificateTable(numbers);
  committed.set('certificate', certificates as SubjectTable<SubjectKind>);
  committed.set('invite', new InviteTable() as SubjectTable<SubjectKind>);
  committed.set('revocation-import', new ImportTable() as SubjectTable<SubjectKind>);
  const pending = new Map<string, Subject | typeof REMOVED>();
  let followers: { readonly [kind: string]: Follower<SubjectKind> | undefined } = {};

  function ofKind<Kind extends SubjectKind>(kind: Kind): SubjectTable<Kind> {
    return committed.get(kind) as SubjectTable<Kind>;
  }

  function remove({ kind, id }: SubjectRemoval): void {
    const key = addressOf(kind, id);
    const subject = pending.get(key) ?? ofKind(kind as SubjectKind).get(id);
    if (subject === undefined) throw new Error(`${key} does not exist`);
    followers[kind]?.removed?.(id, subject);
    pending.set(key, REMOVED);
  }

  return {
    /** The subject including all decisions so far, whether or not they are on disk. */
    current<Kind extends SubjectKind>(kind: Kind, id: string): Subject<Kind> | undefined {
      const decided = pending.size > 0 ? pending.get(addressOf(kind, id)) : undefined;
      if (decided === REMOVED) return undefined;
      return (decided as Subject<Kind> | undefined) ?? ofKind(kind).get(id);
    },
    /** The subject as stored on disk. */
    committed: <Kind extends SubjectKind>(kind: Kind, id: string) => ofKind(kind).get(id),
    allCommitted: <Kind extends SubjectKind>(kind: Kind) => ofKind(kind).entries(),
    countCommitted: (kind: SubjectKind) => ofKind(kind).size,
    /** Whether a decision is not on disk yet. */
    hasPending: () => pending.size > 0,
    /** The node key of the committed certificate with this number, without the rest of it; empty if there is none. */
    keyOfCertificate: certificates.keyOf,
    /** The committed certificates that are neither revoked, expired nor superseded, as `CertificateTable.accepted`. */
    acceptedCertificates: certificates.accepted,
    /** Adds a subject from the store or from the configuration as committed. */
    restore(kind: SubjectKind, id: string, subject: Subject) {
      ofKind(kind).set(id, subject);
      const follower = followers[kind];
      follower?.decided?.(id, subject);
      follower?.committed?.(id, subject);
      follower?.added?.(id);
    },
    decide({ writes, removals }: SubjectChanges) {
      for (const write of writes) {
        const kind = kindOf(write);
        const subject = toSubject(write);
        pending.set(addressOf(kind, write.id), subject);
        followers[kind]?.decided?.(write.id, subject);
      }
      for (const removal of removals) remove(removal);
    },
    /** Marks the changes as committed. */
    settle({ writes, removals }: SubjectChanges) {
      for (const write of writes) {
        const kind = kindOf(write);
        const key = addressOf(kind, write.id);
        if (pending.get(key)?.version === write.version) pending.delete(key);
        const subject = toSubject(write);
        ofKind(kind).set(write.id, subject);
        followers[kind]?.committed?.(write.id, subject);
        if (write.replaces === NOT_STORED) followers[kind]?.added?.(write.id);
      }
      for (const { kind, id } of removals) {
        const key = addressOf(kind, id);
        if (pending.get(key) === REMOVED) pending.delete(key);
        ofKind(kind as SubjectKind).delete(id);
      }
    },
    /** Call once, before anything is restored or decided. */
    follow(given: Followers) {
      followers = given as typeof followers;
    },
  };
}

export function toSubject({ version, snapshot }: StoredSubject): Subject {
  return { version, value: snapshot.value, context: snapshot.context as Subject['context'] };
}

function kindOf({ kind }: StoredSubject): SubjectKind {
  return kind as SubjectKind;
}

/**
 * Invites of one request have the same roles and labels, which may take several kilobytes: they share them, also after a
 * restart, when invites are read in the order of their ids.
 */
class InviteTable extends Map<string, Subject<'invite'>> {
  readonly #roles = createSharedLists();
  readonly #labels = createSharedLists();

  override set(id: string, { version, value, context }: Subject<'invite'>): this {
    // A copy of one object is compact; one that is put together takes half as much memory again.
    const own: { -readonly [Member in keyof Invite]: Invite[Member] } = { ...context };
    own.roles = this.#roles(own.roles);
    if (own.labels !== undefined) own.labels = this.#labels(own.labels);
    return super.set(id, { version, value, context: own });
  }
}

/** How many lists are known at a time: invites of more batches that are read in turn share less. */
const MOST_LISTS = 256;

/** Returns an equal list that was given before. */
function createSharedLists() {
  const lists = new Map<string, readonly string[]>();
  let last: { readonly given?: readonly string[]; readonly shared: readonly string[] } = {
    shared: [],
  };

  function shared(list: readonly string[]): readonly string[] {
    const text = JSON.stringify(list);
    const known = lists.get(text);
    if (known !== undefined) return known;
    if (lists.size === MOST_LISTS) lists.clear();
    lists.set(text, list);
    return list;
  }

  return (given: readonly string[]): readonly string[] => {
    // To write the same long list for each invite of a request would take as long as to store them.
    if (given !== last.given) last = { given, shared: shared(given) };
    return last.shared;
  };
}

/** Without the revoked ids, which may take megabytes: the recognition graph has them. */
class ImportTable extends Map<string, Subject<'revocation-import'>> {
  override set(id: string, subject: Subject<'revocation-import'>): this {
    return super.set(id, { ...subject, context: { ...subject.context, rows: [] } });
  }
}
