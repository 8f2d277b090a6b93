/**
 * A signed list that others rely on: the certificate revocation list, or a feed of revoked attestations. What
 * happens to it stands here in order: its entries are decided and committed, a version is decided inside the unit
 * that changes the list, it is published when that unit is on disk, and again after a start.
 *
 * The entries are subjects of their own, so a stored version is only its head with a digest of them. One sequence
 * number never names two contents: a version that a restart cannot rebuild exactly as it was signed is not served
 * at all.
 */
import type { SequenceEvent, SequenceVersion } from '../../../machines/signed-sequence.ts';
import type { Emitted } from '../../../machines/step.ts';
import { compareCodePoints } from '../../base/json/write.ts';
import { withoutPause } from '../../base/slices.ts';
import type { PublishedDocument } from '../../protocol/contract/documents.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import type { ListEntry, ListHead } from './list-document.ts';
import type { ListRendering, ShowVersion } from './list-rendering.ts';

/** An entry, with the first version that has it; 0 where the order of entries does not matter. */
export interface NumberedEntry {
  readonly sequence: number;
  readonly entry: ListEntry;
}

/** An incremental digest over entries. */
export interface EntryDigest {
  add(entry: ListEntry): void;
  /** The digest over the entries so far and the added ones. */
  value(added: readonly ListEntry[]): string;
}

/** What differs between lists. */
export interface SignedListOptions<Version extends SequenceVersion> {
  /** The message when the entries are not the signed ones. */
  readonly damage: string;
  readonly digest: EntryDigest;
  /** How its documents are rendered, which are then passed to `show`. */
  rendering(show: ShowVersion): ListRendering;
  /** The sequence number of the first version. */
  first(unit: UnitOfWork): number;
  current(unit: UnitOfWork): Version | undefined;
  send(unit: UnitOfWork, event: SequenceEvent<Version>): readonly Emitted[];
  /** The next version, issued at the time of the unit. */
  next(unit: UnitOfWork, sequence: number, digest: string): Version;
  headOf(version: Version): ListHead;
  /** Entries have become part of the list, in its order. */
  appended?(entries: readonly NumberedEntry[]): void;
  publish(document: PublishedDocument, head: ListHead): void;
  /** Throws `signer_unavailable`: a version is signed once it is on disk, when it can no longer be refused. */
  assertSigner(): void;
}

export interface SignedList {
  /** An entry was decided, or read from the store: the next version includes it. */
  decided(numbered: NumberedEntry): void;
  /** The entry with this id is on disk. */
  committed(id: string): void;
  /** Entries decided so far. */
  count(): number;
  has(id: string): boolean;
  /**
   * Takes what was read from the store so far into the list, in slices. Call when a revision is read whole, and as often
   * as wanted.
   */
  takeLoaded(): Generator<void, void>;
  /** Takes what was read last. Call before anything is decided. */
  endLoading(): void;
  /** The sequence number that the next version will have. */
  nextNumber(unit: UnitOfWork): number;
  /** Decides the next version; `added` are the entries that this same unit decides, in the order of their ids. */
  issue(unit: UnitOfWork, added?: readonly ListEntry[]): void;
  /** Issues the list when there is none yet, and re-issues it at half of its lifetime. */
  renew(unit: UnitOfWork): void;
  /** Makes the answer wait until the newest decided version is published. */
  awaitShown(unit: UnitOfWork): void;
  /** Publishes the stored version again after a start. */
  restore(unit: UnitOfWork): void;
  ready(): Promise<void>;
  settled(): Promise<void>;
}

/** Entries that a slice takes into the list; a millisecond or two. */
const TAKEN_AT_ONCE = 1000;

export function createSignedList<Version extends SequenceVersion>(
  options: SignedListOptions<Version>,
): SignedList {
  const { digest } = options;
  const rendering = options.rendering(show);
  const ids = new Set<string>();
  /** Read from the store, and not part of the list yet; null once entries are decided here. */
  let loaded: NumberedEntry[] | null = [];
  /** Decided entries that are not on disk yet. */
  const pending = new Map<string, NumberedEntry>();
  let shownSequence = -1;
  let waiting: { readonly sequence: number; readonly resolve: () => void }[] = [];

  function decided(numbered: NumberedEntry): void {
    const { entry } = numbered;
    if (ids.has(entry.id)) return;
    ids.add(entry.id);
    if (loaded !== null) {
      loaded.push(numbered);
    } else {
      digest.add(entry);
      pending.set(entry.id, numbered);
    }
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

  /** What is read later has later sequences, so it follows what was taken before. */
  function* takeLoaded(): Generator<void, void> {
    const numbered = (loaded ?? []).sort(inListOrder);
    loaded = [];
    for (let from = 0; from === 0 || from < numbered.length; from += TAKEN_AT_ONCE) {
      if (from > 0) yield;
      const slice = numbered.slice(from, from + TAKEN_AT_ONCE);
      for (const { entry } of slice) digest.add(entry);
      append(slice);
    }
  }

  function nextNumber(unit: UnitOfWork): number {
    const last = options.current(unit)?.sequence;
    return last === undefined ? options.first(unit) : last + 1;
  }

  function issue(unit: UnitOfWork, added: readonly ListEntry[] = []): void {
    options.assertSigner();
    const version = options.next(unit, nextNumber(unit), digest.value(added));
    options.send(unit, { type: 'publish', version });
    unit.whenCommitted(() => publish(version));
  }

  function renew(unit: UnitOfWork): void {
    const emitted = options.send(unit, { type: 'lapse', at: unit.at });
    if (emitted.some(({ type }) => type === 'lapsed')) issue(unit);
    // It may have been issued a moment ago: answer when that version is on disk.
    else awaitShown(unit);
  }

  function awaitShown(unit: UnitOfWork): void {
    const sequence = nextNumber(unit) - 1;
    unit.whenCommitted(() => shown(sequence));
  }

  /** What committed a version is answered when that version, or a later one, is published. */
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
    decided,
    committed,
    count: () => ids.size,
    has: (id) => ids.has(id),
    takeLoaded,
    endLoading() {
      withoutPause(takeLoaded());
      loaded = null;
    },
    nextNumber,
    issue,
    renew,
    awaitShown,
    restore,
    ready: rendering.ready,
    settled: rendering.settled,
  };
}

/** Entries of one version are sorted by id. */
export function inListOrder(a: NumberedEntry, b: NumberedEntry): number {
  return a.sequence - b.sequence || compareCodePoints(a.entry.id, b.entry.id);
}
