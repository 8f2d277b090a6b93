/** Restores subjects and liveness from the store, in one pass over both. */
import type { Certificate } from '../../machines/certificate.ts';
import type { StoreChanges, StoreContents, StoredLiveness, StoredSubject } from '../store/store.ts';
import type { Liveness, StoredContact, Use } from './certificates/last-contact.ts';
import type { OperatorRegistry } from './operator-keys.ts';
import type { Subject, SubjectKind } from './subjects/kinds.ts';
import { type Subjects, toSubject } from './subjects/subjects.ts';

export interface RestoreTarget {
  readonly subjects: Subjects;
  readonly liveness: Liveness;
  /** A stored operator key as this process uses it; null if it is not used. */
  readonly operatorKey: OperatorRegistry['restored'];
  /** Certificates are active if their last contact was after this instant. */
  readonly activeSince: number;
  /** A contact after this instant, by a clock that was ahead, does not show that it came after a renewal before it. */
  readonly now: number;
}

export async function restoreSubjects(
  stored: Pick<StoreContents, 'subjects' | 'liveness'>,
  { subjects, liveness, operatorKey, ...times }: RestoreTarget,
): Promise<void> {
  const contacts = contactsInOrder(stored.liveness);
  const active: number[] = [];
  const quiet: number[] = [];
  for await (const batch of stored.subjects) {
    for (const row of batch) {
      if (row.kind === 'certificate') {
        const certificate = toCertificate(row);
        subjects.restore('certificate', row.id, certificate);
        while (contacts.mustRead(row.id)) await contacts.read();
        const contact = contacts.of(row.id) ?? firstContact(certificate);
        const number = liveness.restore(row.id, contact);
        const use = useOf(certificate, contact, times);
        if (use === 'active') active.push(number);
        else if (use === 'quiet') quiet.push(number);
      } else restoreOther(row, subjects, operatorKey);
    }
  }
  while (contacts.mustRead(null)) await contacts.read();
  liveness.activate(active, quiet);
}

function restoreOther(
  row: StoredSubject,
  subjects: Subjects,
  operatorKey: RestoreTarget['operatorKey'],
): void {
  if (row.kind === 'operator-key') {
    const key = operatorKey(row.id, toSubject(row) as Subject<'operator-key'>);
    if (key !== null) subjects.restore('operator-key', row.id, key);
  } else {
    subjects.restore(row.kind as SubjectKind, row.id, toSubject(row));
  }
}

/** Updates restored subjects and liveness to what is stored now. */
export async function applyChanges(
  changes: Pick<StoreChanges, 'subjects' | 'removals' | 'liveness'>,
  { subjects, liveness, operatorKey, ...times }: RestoreTarget,
): Promise<void> {
  for await (const batch of changes.subjects) {
    for (const row of batch) {
      if (row.kind !== 'certificate') {
        restoreOther(row, subjects, operatorKey);
        continue;
      }
      const certificate = toCertificate(row);
      const isNew = subjects.committed('certificate', row.id) === undefined;
      subjects.restore('certificate', row.id, certificate);
      const contact = isNew ? firstContact(certificate) : null;
      const lastSeen = contact?.lastSeen ?? liveness.lastSeen(row.id);
      liveness.follow(row.id, contact, useOf(certificate, { lastSeen }, times));
    }
  }
  for (const { kind, id } of changes.removals()) {
    const replaced = subjects.committed(kind as SubjectKind, id);
    if (replaced === undefined) continue;
    const removal = { writes: [], removals: [{ kind, id, replaces: replaced.version }] };
    subjects.decide(removal);
    subjects.settle(removal);
  }
  for await (const batch of changes.liveness) {
    for (const { id, ...contact } of [...batch].sort((a, b) => a.lastSeen - b.lastSeen)) {
      const certificate = subjects.committed('certificate', id);
      if (certificate === undefined) continue;
      liveness.follow(id, contact, useOf(certificate, contact, times));
    }
  }
}

/**
 * Same as `toSubject`, but a separate function on purpose: once V8 sees that objects allocated at a call site live
 * long, it allocates them in the old generation. These objects are short-lived, and a million of them would remain
 * there along with everything they reference.
 */
function toCertificate({ version, snapshot }: StoredSubject): Subject<'certificate'> {
  return { version, value: snapshot.value, context: snapshot.context as Certificate };
}

/**
 * Contacts and certificates are both ordered by id, so one pass over each is enough. Certificate ids are
 * ASCII, so byte order equals JavaScript's string order.
 */
function contactsInOrder(stored: AsyncIterable<readonly StoredLiveness[]>) {
  const batches = stored[Symbol.asyncIterator]();
  let batch: readonly StoredLiveness[] = [];
  let position = 0;
  let isDone = false;
  return {
    /**
     * Whether the contact of this certificate may be in a later batch. If `id` is null, whether there may be a later
     * batch at all.
     */
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

/** Joins and renewals are contacts too, but they are stored with the certificate. */
function firstContact({ context }: Subject<'certificate'>): StoredContact {
  return {
    lastSeen: context.issuedAt,
    status: context.renewedFrom === null ? 'joined' : 'renewed',
    remoteAddr: context.remoteAddr,
    newestSignedAt: 0,
  };
}

/** A renewed certificate is active only if it was used after its renewal [core-4-15]. */
function useOf(
  { value, context }: Subject<'certificate'>,
  { lastSeen }: Pick<StoredContact, 'lastSeen'>,
  { activeSince, now }: Pick<RestoreTarget, 'activeSince' | 'now'>,
): Use {
  if (value === 'revoked') return 'none';
  const { renewedAt, expiresAt } = context;
  if (lastSeen <= activeSince) return renewedAt === null && expiresAt > now ? 'quiet' : 'none';
  const isUsed =
    renewedAt === null || (lastSeen > renewedAt && (lastSeen <= now || renewedAt > now));
  return isUsed ? 'active' : 'none';
}
