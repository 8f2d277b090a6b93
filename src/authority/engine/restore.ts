/** Takes subjects and liveness from the store at a start, in one pass over both. */
import type { Certificate } from '../../../machines/certificate.ts';
import type { StoreContents, StoredLiveness, StoredSubject } from '../../store/store.ts';
import type { StoredContact } from '../liveness/contact-columns.ts';
import type { Liveness } from '../liveness/last-contact.ts';
import type { SubjectKind } from './kinds.ts';
import type { Subject } from './subject-table.ts';
import { type Subjects, toSubject } from './subjects.ts';

export interface RestoreTarget {
  readonly subjects: Subjects;
  readonly liveness: Liveness;
  /** Ids of the operator keys that are configured; others that were stored no longer count. */
  readonly operatorKeys: { has(id: string): boolean };
  /** Certificates heard of after this instant are active. */
  readonly activeSince: number;
}

export async function restoreSubjects(
  stored: Pick<StoreContents, 'subjects' | 'liveness'>,
  { subjects, liveness, operatorKeys, activeSince }: RestoreTarget,
): Promise<void> {
  const contacts = contactsInOrder(stored.liveness);
  const active: number[] = [];
  for await (const batch of stored.subjects) {
    for (const row of batch) {
      if (row.kind === 'certificate') {
        const certificate = toCertificate(row);
        subjects.restore('certificate', row.id, certificate);
        while (contacts.mustRead(row.id)) await contacts.read();
        const contact = contacts.of(row.id) ?? firstContact(certificate);
        const number = liveness.restore(row.id, contact);
        if (isActive(certificate, contact, activeSince)) active.push(number);
      } else if (row.kind !== 'operator-key' || operatorKeys.has(row.id)) {
        subjects.restore(row.kind as SubjectKind, row.id, toSubject(row));
      }
    }
  }
  while (contacts.mustRead(null)) await contacts.read();
  liveness.activate(active);
}

/**
 * As `toSubject`, but apart from it: V8 puts what that makes where long-lived objects go, once it has seen
 * that they live long. These do not, and a million of them would lie there with all that they refer to.
 */
function toCertificate({ version, snapshot }: StoredSubject): Subject<'certificate'> {
  return { version, value: snapshot.value, context: snapshot.context as Certificate };
}

/**
 * Contacts and certificates both come in the order of their ids, so one pass over each is enough. Ids of
 * certificates are ASCII, where the order of bytes is that of JavaScript.
 */
function contactsInOrder(stored: AsyncIterable<readonly StoredLiveness[]>) {
  const batches = stored[Symbol.asyncIterator]();
  let batch: readonly StoredLiveness[] = [];
  let position = 0;
  let isDone = false;
  return {
    /** Whether the contact of this certificate may be in a later batch; null asks whether there is one. */
    mustRead(id: string | null): boolean {
      const last = batch.at(-1);
      return !isDone && (last === undefined || id === null || last.id < id);
    },
    async read(): Promise<void> {
      const next = await batches.next();
      isDone = next.done === true;
      batch = next.done === true ? [] : next.value;
      position = 0;
    },
    of(id: string): StoredContact | undefined {
      let contact = batch[position];
      while (contact !== undefined && contact.id < id) {
        position += 1;
        contact = batch[position];
      }
      return contact?.id === id ? contact : undefined;
    },
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

/** A renewed certificate counts only if it was heard of since its renewal [core-4-15]. */
function isActive(
  { value, context }: Subject<'certificate'>,
  { lastSeen }: StoredContact,
  activeSince: number,
): boolean {
  if (value === 'revoked' || lastSeen <= activeSince) return false;
  return context.renewedAt === null || lastSeen > context.renewedAt;
}
