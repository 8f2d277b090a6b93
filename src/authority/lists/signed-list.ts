/**
 * A signed list that others rely on: the certificate revocation list, or a feed of revoked attestations. This file
 * follows the life of a list in order: entries are decided and committed, a version is decided in the unit that
 * changes the list, and the version is published once that unit is on disk, and again after a restart.
 *
 * The entries are separate subjects, so a stored version consists only of its head and a digest of the entries. A
 * sequence number never names two different contents: a version that cannot be rebuilt after a restart exactly as it
 * was signed is not served at all.
 */
import type { SequenceEvent, SequenceVersion } from '../../../machines/signed-sequence.ts';
import type { Emitted } from '../../../machines/step.ts';
import type { RecordSigner } from '../../base/crypto/primitives.ts';
import { compareCodePoints } from '../../base/json/write.ts';
import { withoutPause } from '../../base/work.ts';
import type { DocumentPublisher, PublishedDocument } from '../../protocol/contract/documents.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import type { ListEntry, ListForm, ListHead } from './list-document.ts';
import { createListRendering, type ListThreads } from './list-rendering.ts';

/** An entry, and the first version that contains it; 0 if the order of entries does not matter. */
export interface NumberedEntry {
  readonly sequence: number;
  readonly entry: ListEntry;
}

/** The kinds of subjects whose revocations a list has. */
export type Revocable<Own extends 'certificate' | 'attestation'> = Own | 'restored-revocation';

/** An incremental digest over entries. */
export interface EntryDigest {
  add(entry: ListEntry): void;
  /** The digest over the entries so far plus the given ones, of a list that this key issues; by default the current one. */
  value(added: readonly ListEntry[], issuer?: string): string;
}

/** What all lists use. */
export interface ListServices {
  readonly signer: RecordSigner;
  readonly publisher: DocumentPublisher;
  readonly threads: ListThreads | null;
  uuid(): string;
  /**
   * Throws `signer_unavailable`. A version is signed only once it is on disk, when it is too late to refuse it, so this
   * is checked first.
   */
  assertSigner(): void;
}

/** The differences between lists. */
export interface SignedListOptions<Version extends SequenceVersion> extends ListServices {
  readonly form: ListForm;
  /** The error text if the entries are not the ones that were signed. */
  readonly damage: string;
  readonly digest: EntryDigest;
  /** The sequence number of the first version. */
  first(unit: UnitOfWork): number;
  current(unit: UnitOfWork): Version | undefined;
  send(unit: UnitOfWork, event: SequenceEvent<Version>): readonly Emitted[];
  /** The next version, issued at the time of the unit. */
  next(unit: UnitOfWork, sequence: number, digest: string): Version;
  headOf(version: Version): ListHead;
  /** Called when entries have become part of the list, in its order. */
  appended?(entries: readonly NumberedEntry[]): void;
  publish(document: PublishedDocument, head: ListHead): void;
  /** Marks the published document as outdated. */
  withdraw(): void;
}

export type SignedList = ReturnType<typeof createSignedList>;

/** The number of entries that one slice adds to the list, which takes a millisecond or two. */
const TAKEN_AT_ONCE = 1000;

export function createSignedList<Version extends SequenceVersion>(
  options: SignedListOptions<Version>,
) {
  const { form, signer, threads, digest } = options;
  const rendering = createListRendering({ form, signer, threads, show });
  /** Of the entries decided so far, in the order of the list. */
  const ids = new Set<string>();
  /** Entries read from the store that are not part of the list yet, by id; null once loading is done. */
  let loaded: Map<string, NumberedEntry> | null = new Map();
  /** Decided entries that are not on disk yet. */
  const pending = new Map<string, NumberedEntry>();
  let shownSequence = -1;
  let shownIssuedAt = 0;
  let waiting: { readonly sequence: number; readonly resolve: () => void }[] = [];

  function has(id: string): boolean {
    return ids.has(id) || loaded?.has(id) === true;
  }

  function decided(numbered: NumberedEntry): void {
    const { entry } = numbered;
    if (has(entry.id)) return;
    if (loaded !== null) {
      loaded.set(entry.id, numbered);
    } else {
      include(entry);
      pending.set(entry.id, numbered);
    }
  }

  function include(entry: ListEntry): void {
    digest.add(entry);
    ids.add(entry.id);
  }

  function committed(id: string): void {
    const numbered = pending.get(id);
    if (numbered === undefined) return;
    pending.delete(id);
    append([numbered]);
  }

  function append(entries: readonly NumberedEntry[]): void {
    rendering.add(entries.map(({ entry }) => entry));
    options.appended?.(entries);
  }

  /** Entries that are read later have later sequences, so they can be appended to those already added. */
  function* takeLoaded(): Generator<void, void> {
    const numbered = [...(loaded?.values() ?? [])].sort(inListOrder);
    for (let from = 0; from === 0 || from < numbered.length; from += TAKEN_AT_ONCE) {
      if (from > 0) yield;
      const slice = numbered.slice(from, from + TAKEN_AT_ONCE);
      for (const { entry } of slice) {
        loaded?.delete(entry.id);
        include(entry);
      }
      append(slice);
    }
  }

  function nextNumber(unit: UnitOfWork): number {
    const last = options.current(unit)?.sequence;
    return last === undefined ? options.first(unit) : last + 1;
  }

  function issue(unit: UnitOfWork, added: readonly ListEntry[] = [], issuer?: string): void {
    options.assertSigner();
    const version = options.next(unit, nextNumber(unit), digest.value(added, issuer));
    options.send(unit, { type: 'publish', version });
    unit.whenCommitted(() => publish(version));
  }

  function renew(unit: UnitOfWork): void {
    const emitted = options.send(unit, { type: 'lapse', at: unit.at });
    if (emitted.some(({ type }) => type === 'lapsed')) issue(unit);
    // It may have been issued a moment ago, so wait until that version is on disk.
    else awaitShown(unit);
  }

  function awaitShown(unit: UnitOfWork): void {
    const sequence = nextNumber(unit) - 1;
    unit.whenCommitted(() => shown(sequence));
  }

  /** The call that committed a version is answered when that version, or a later one, is published. */
  function publish(version: Version): Promise<void> | undefined {
    rendering.render(options.headOf(version));
    return shown(version.sequence);
  }

  function shown(sequence: number): Promise<void> | undefined {
    if (sequence <= shownSequence) return undefined;
    return new Promise((resolve) => waiting.push({ sequence, resolve }));
  }

  function show(document: PublishedDocument, head: ListHead): void {
    const { sequence } = head;
    options.publish(document, head);
    shownSequence = sequence;
    shownIssuedAt = head.issuedAt;
    for (const { resolve } of waiting.filter((one) => one.sequence <= sequence)) resolve();
    waiting = waiting.filter((one) => one.sequence > sequence);
  }

  function restore(unit: UnitOfWork): void {
    const stored = options.current(unit);
    if (stored === undefined ? ids.size > 0 : stored.digest !== digest.value([])) {
      throw new Error(`The stored state is damaged: ${options.damage}; restore it from a backup`);
    }
    if (stored !== undefined) unit.whenCommitted(() => publish(stored));
  }

  return {
    /** Notes an entry that was decided or read from the store; the next version includes it. */
    decided,
    /** Notes that the entry with this id is on disk. */
    committed,
    /** The ids of the entries decided so far, in the order of the list. */
    ids: (): ReadonlySet<string> => ids,
    has,
    /**
     * Adds the entries read from the store so far to the list, in slices. May be called repeatedly, each time after a
     * revision was read completely.
     */
    takeLoaded,
    /** Adds the last entries that were read. Call before anything is decided. */
    endLoading() {
      withoutPause(takeLoaded());
      loaded = null;
    },
    /** The sequence number of the next version. */
    nextNumber,
    /**
     * Decides the next version; `added` are the entries decided in the same unit, sorted by id. `issuer` is the key that
     * takes over in this unit.
     */
    issue,
    /** Issues the list if there is none yet, and re-issues it after half of its lifetime. */
    renew,
    /** Delays the answer until the newest decided version is published. */
    awaitShown,
    /** The clock was set. A published version that is dated ahead of it is outdated: the next renewal replaces it. */
    clockSet(now: number) {
      if (shownIssuedAt > now) options.withdraw();
    },
    /** Publishes the stored version again after a restart. */
    restore,
    ready: rendering.ready,
    settled: rendering.settled,
  };
}

/** Orders entries by version; the entries of one version are sorted by id. */
export function inListOrder(a: NumberedEntry, b: NumberedEntry): number {
  return a.sequence - b.sequence || compareCodePoints(a.entry.id, b.entry.id);
}
