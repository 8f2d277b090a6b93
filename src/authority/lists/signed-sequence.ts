/**
 * A signed sequence: the versions of a list that others rely on, such as the certificate revocation list or
 * a revocation feed. Its entries are subjects of their own, so a stored version is only its head with a
 * digest of the entries. A version is decided inside the unit that changes the list, and published when
 * that unit is on disk. One sequence number never names two contents: a version that a restart cannot
 * rebuild exactly as it was signed is not served at all.
 */
import type { SequenceEvent, SequenceVersion } from '../../../machines/signed-sequence.ts';
import type { Emitted } from '../../../machines/step.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import type { ListEntry, ListHead } from './list-document.ts';
import type { ListRenderer } from './list-renderer.ts';

/** An incremental digest over entries. */
export interface EntryDigest {
  add(entry: ListEntry): void;
  /** The digest over the entries so far and the added ones. */
  value(added: readonly ListEntry[]): string;
}

/** What differs between kinds of sequences. */
export interface SequenceOptions<Version extends SequenceVersion> {
  /** The message when the entries are not the signed ones. */
  readonly damage: string;
  readonly digest: EntryDigest;
  readonly renderer: ListRenderer;
  /** The sequence number of the first version. */
  first(unit: UnitOfWork): number;
  /** Whether the entries are those that the stored version covers. */
  matches(stored: Version): boolean;
  current(unit: UnitOfWork): Version | undefined;
  send(unit: UnitOfWork, event: SequenceEvent<Version>): readonly Emitted[];
  /** The next version, issued at the time of the unit. */
  next(unit: UnitOfWork, sequence: number, digest: string): Version;
  headOf(version: Version): ListHead;
  /** Throws `signer_unavailable`: a version is signed once it is on disk, when it can no longer be refused. */
  assertSigner(): void;
}

export interface SignedSequence {
  /** An entry was decided: the next version includes it. */
  decided(entry: ListEntry): void;
  /** Entries were committed. */
  committed(entries: readonly ListEntry[]): void;
  /** The sequence number that the next version will have. */
  nextNumber(unit: UnitOfWork): number;
  /** Decides the next version; `added` are the entries that this same unit decides. */
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

export function createSignedSequence<Version extends SequenceVersion>(
  options: SequenceOptions<Version>,
): SignedSequence {
  const { digest, renderer } = options;
  let entries = 0;

  function nextNumber(unit: UnitOfWork): number {
    const last = options.current(unit)?.sequence;
    return last === undefined ? options.first(unit) : last + 1;
  }

  function issue(unit: UnitOfWork, added: readonly ListEntry[] = []): void {
    options.assertSigner();
    const version = options.next(unit, nextNumber(unit), digest.value(added));
    options.send(unit, { type: 'publish', version });
    unit.whenCommitted(() => renderer.render(options.headOf(version)));
  }

  function awaitShown(unit: UnitOfWork): void {
    const sequence = nextNumber(unit) - 1;
    unit.whenCommitted(() => renderer.shown(sequence));
  }

  function renew(unit: UnitOfWork): void {
    const emitted = options.send(unit, { type: 'lapse', at: unit.at });
    if (emitted.some(({ type }) => type === 'lapsed')) issue(unit);
    // It may have been issued a moment ago: answer when that version is on disk.
    else awaitShown(unit);
  }

  return {
    decided(entry) {
      digest.add(entry);
      entries += 1;
    },
    committed: (entries) => renderer.add(entries),
    nextNumber,
    issue,
    renew,
    awaitShown,
    restore(unit) {
      const stored = options.current(unit);
      if (stored === undefined ? entries > 0 : !options.matches(stored)) {
        throw new Error(`The stored state is damaged: ${options.damage}; restore it from a backup`);
      }
      if (stored !== undefined) {
        unit.whenCommitted(() => renderer.render(options.headOf(stored)));
      }
    },
    ready: renderer.ready,
    settled: renderer.settled,
  };
}
