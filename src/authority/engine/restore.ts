/** Takes subjects and liveness from the store at a start, in one pass over both. */
import type { Certificate } from '../../../machines/certificate.ts';
import type { StoreContents, StoredLiveness, StoredSubject } from '../../store/store.ts';
import type { LastContact, Liveness, StoredContact } from '../liveness/last-contact.ts';
import type { SubjectKind } from './kinds.ts';
import { type Subject, type Subjects, toSubject } from './subjects.ts';

export interface RestoreTarget {
  readonly subjects: Subjects;
  readonly liveness: Liveness;
  /** Ids of the operator keys that are configured; others that were stored no longer count. */
  readonly operatorKeys: { has(id: string): boolean };
  /** Certificates heard of after this instant are active. */
  readonly activeSince: number;
}

export function restoreSubjects(
  stored: Pick<StoreContents, 'subjects' | 'liveness'>,
  { subjects, liveness, operatorKeys, activeSince }: RestoreTarget,
): void {
  const contacts = contactsInOrder(stored.liveness);
  const active: LastContact[] = [];
  for (const row of stored.subjects) {
    if (row.kind === 'certificate') {
      const certificate = toCertificate(row);
      subjects.restore('certificate', row.id, certificate);
      const contact = liveness.restore(row.id, contacts.of(row.id) ?? firstContact(certificate));
      if (isActive(certificate, contact, activeSince)) active.push(contact);
    } else if (row.kind !== 'operator-key' || operatorKeys.has(row.id)) {
      subjects.restore(row.kind as SubjectKind, row.id, toSubject(row));
    }
  }
  contacts.close();
  liveness.activate(active);
}

/**
 * As `toSubject`, but apart from it: V8 puts what that makes where long-lived objects go, once it has seen
 * that they live long. These do not, and a million of them would lie there with all that they refer to.
 */
function toCertificate({ version, snapshot }: StoredSubject): Subject<'certificate'> {
  return { version, value: snapshot.value, context: snapshot.context as Certificate };
}

/** Contacts and certificates both come in the order of their ids, so one pass over each is enough. */
function contactsInOrder(stored: Iterable<StoredLiveness>) {
  const rows = stored[Symbol.iterator]();
  let next = rows.next();
  return {
    of(id: string): StoredContact | undefined {
      while (next.done !== true && next.value.id < id) next = rows.next();
      return next.done !== true && next.value.id === id ? next.value : undefined;
    },
    close: () => rows.return?.(),
  };
}

/** Joining and renewing are contacts too; they are stored with the certificate. */
function firstContact({ context }: Subject<'certificate'>): StoredContact {
  return {
    lastSeen: context.issuedAt,
    status: context.renewedFrom === null ? 'joined' : 'renewed',
    remoteAddr: context.remoteAddr,
    newestSignedAt: 0,
  };
}

/** A renewed certificate counts only if it was heard of since its renewal (wire rules 4.15). */
function isActive(
  { value, context }: Subject<'certificate'>,
  { lastSeen }: LastContact,
  activeSince: number,
): boolean {
  if (value === 'revoked' || lastSeen <= activeSince) return false;
  return context.renewedAt === null || lastSeen > context.renewedAt;
}
