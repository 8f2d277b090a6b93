/**
 * The instances' database as PostgreSQL behaves: one lease row, and what was committed. Each query executes at one
 * instant, after a trip there and before the trip back; a client that has given up waiting does not stop it.
 */
import type { Holding } from '../../../src/store/postgresql/lease-table.ts';
import { GENESIS_HASH, type StatePosition } from '../../../src/store/store.ts';
import type { Random } from '../../fuzz/random.ts';
import { copyOfDisk, type MemoryDisk, positionOf, type Write } from '../memory-disk.ts';
import type { Clockwork, Machine } from './clockwork.ts';

/** A commit by an instance. */
export interface Change {
  readonly by: Holding;
  /** The preceding revision, as far as the instance knows. */
  readonly after: number;
  /** What becomes true with this commit. */
  readonly facts: readonly string[];
  readonly write: Write;
}

export interface StoredChange extends Change {
  /** The lease number and holder when it was stored. */
  readonly under: Pick<LeaseRow, 'term' | 'holder'>;
}

/** What an instance has written about itself. */
export interface SeenRow {
  readonly name: string;
  /** The staged authority key, if it holds that. */
  readonly nextKey: string | null;
}

export interface LeaseRow {
  term: number;
  holder: string | null;
  holderName: string;
  configuration: string | null;
  link: string | null;
  released: boolean;
  expiresAt: number;
  lasts: number;
}

/** Milliseconds for a one-way trip. */
const QUICK = 0.3;
const SLOW = 8;
/** For how long a machine's messages are held up after `delayNext`. */
const MOMENT_MS = 50;
/** How long clients wait for an answer. */
const TIMEOUT_MS = 500;

/** An instance that was not seen for this long does not count. */
const COUNTS_MS = 3000;
/** More than are ever lost at once. */
const MOST_PAST = 20;

/** The message of the database client. */
export const NO_ANSWER = 'Query read timeout';

export class Fenced extends Error {}

export class Database {
  readonly lease: LeaseRow = {
    term: 0,
    holder: null,
    holderName: '',
    configuration: null,
    link: null,
    released: true,
    expiresAt: 0,
    lasts: 0,
  };
  disk: MemoryDisk;
  readonly #rows = new Map<string, SeenRow & { readonly seen: number }>();
  readonly changes: StoredChange[] = [];
  /** Facts that were committed and then lost. */
  readonly lost = new Set<string>();
  /** Whether it has ever lost its last changes. */
  hasLost = false;
  /** Earlier states of the database, which an asynchronous standby may still have. */
  readonly #past: {
    readonly lease: LeaseRow;
    readonly disk: MemoryDisk;
    readonly changes: number;
  }[] = [];
  readonly #clockwork: Clockwork;
  readonly #chance: Random;
  readonly #listeners: { machine: Machine; life: number; notified: () => void }[] = [];
  readonly #unreachable = new Set<Machine>();
  /** Added to each one-way trip. */
  delay = 0;
  /** How far its clock was moved, in milliseconds. */
  clockSet = 0;
  /** The earliest arrival of what each held-up machine sends. */
  readonly #heldUp = new Map<Machine, number>();

  constructor(clockwork: Clockwork, chance: Random, disk: MemoryDisk) {
    this.#clockwork = clockwork;
    this.#chance = chance;
    this.disk = disk;
  }

  cut(machine: Machine): void {
    this.#unreachable.add(machine);
  }

  heal(machine: Machine): void {
    this.#unreachable.delete(machine);
  }

  /** Delays what the machine sends in the next few milliseconds, even after it has given up waiting. */
  delayNext(machine: Machine, milliseconds: number): void {
    const until = this.#clockwork.now + milliseconds;
    this.#heldUp.set(machine, until);
    this.#clockwork.at(this.#clockwork.now + MOMENT_MS, () => this.#heldUp.delete(machine));
  }

  /** Rejects if no answer arrives in time; whether the query was executed is then unknown. */
  ask<Result>(machine: Machine, question: () => Result): Promise<Result> {
    const { life } = machine;
    return new Promise((resolve, reject) => {
      if (!machine.isRunning) return;
      const endWaiting = machine.after(TIMEOUT_MS, () => reject(new Error(NO_ANSWER)));
      this.#travel(machine, this.#heldUp.get(machine) ?? 0, () => {
        const outcome = attempt(question);
        this.#travel(machine, 0, () => {
          machine.run(life, () => {
            endWaiting();
            if (outcome.ok) resolve(outcome.result);
            else reject(outcome.cause);
          });
        });
      });
    });
  }

  #travel(machine: Machine, earliest: number, arrive: () => void): void {
    if (this.#unreachable.has(machine)) return;
    const takes = this.delay + this.#chance.between(QUICK, SLOW);
    this.#clockwork.at(Math.max(earliest, this.#clockwork.now + takes), () => {
      if (!this.#unreachable.has(machine)) arrive();
    });
  }

  /** Lasts as long as the process lives. */
  listen(machine: Machine, notified: () => void): void {
    this.#listeners.push({ machine, life: machine.life, notified });
  }

  notify(): void {
    for (const { machine, life, notified } of this.#listeners) {
      this.#travel(machine, 0, () => machine.run(life, notified));
    }
  }

  /** Stores the row of an instance, and returns those of all that were seen lately. */
  writeRow(own: SeenRow): SeenRow[] {
    const seen = this.#clockwork.now;
    this.#rows.set(own.name, { ...own, seen });
    return [...this.#rows.values()].filter((row) => row.seen > seen - COUNTS_MS);
  }

  isReleased(): boolean {
    return this.lease.released;
  }

  /** Reverts to the state before the last `changes` changes, as if a lagging standby had taken over. */
  loseEnd(changes: number): void {
    const before = this.#past.at(-1 - changes);
    if (before === undefined) return;
    // Lost states do not come back with the next loss.
    this.#past.splice(-changes);
    Object.assign(this.lease, before.lease);
    this.disk = copyOfDisk(before.disk);
    for (const { facts } of this.changes.splice(before.changes)) {
      for (const fact of facts) this.lost.add(fact);
    }
    this.hasLost = true;
  }

  #note(): void {
    const { lease, disk, changes } = this;
    this.#past.push({
      lease: { ...lease },
      disk: copyOfDisk(disk),
      changes: changes.length,
    });
    if (this.#past.length > MOST_PAST) this.#past.shift();
  }

  /** How long the lease lasts without a renewal. */
  lasts(): number {
    return this.lease.lasts;
  }

  /** Milliseconds until the lease ends, by the clock of the database. */
  remaining(): number {
    return this.lease.expiresAt - this.#clockwork.now - this.clockSet;
  }

  extend(milliseconds: number): void {
    this.lease.expiresAt = this.#clockwork.now + this.clockSet + milliseconds;
    this.lease.lasts = milliseconds;
    this.#note();
  }

  /**
   * Whether the lease has this number and this holder: after the database has lost its last changes, either may belong
   * to another holder.
   */
  isHeldBy({ term, holder }: Holding): boolean {
    return this.lease.term === term && this.lease.holder === holder;
  }

  commit(change: Change): number {
    if (!this.isHeldBy(change.by)) throw new Fenced('Another process has taken over the database');
    if (change.after !== this.disk.revision) {
      throw new Fenced('The database is at another revision than this process');
    }
    return this.store(change);
  }

  store(change: Change): number {
    const { term, holder } = this.lease;
    const revision = change.write(this.disk);
    this.changes.push({ ...change, under: { term, holder } });
    // Liveness is stored so often that a standby does not lag by that alone.
    if (revision !== change.after) this.#note();
    return revision;
  }
}

type Outcome<Result> = { ok: true; result: Result } | { ok: false; cause: unknown };

function attempt<Result>(question: () => Result): Outcome<Result> {
  try {
    return { ok: true, result: question() };
  } catch (cause) {
    return { ok: false, cause };
  }
}

/** The stored position, or the one read before if the database no longer has it. */
export function furthest(seen: StatePosition | null, disk: MemoryDisk): StatePosition {
  if (seen === null) return positionOf(disk);
  const { hash = GENESIS_HASH } = disk.audit[seen.auditLength - 1] ?? {};
  const isThere = seen.revision <= disk.revision && hash === seen.auditHead;
  return isThere ? positionOf(disk) : seen;
}
