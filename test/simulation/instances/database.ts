/**
 * The database of the instances as PostgreSQL keeps it: one row of the lease, and what was committed. Each question is
 * carried out at one moment, between its way there and its way back; whoever has given up waiting does not prevent it.
 */
import type { Chance } from './chance.ts';
import type { Clockwork, Machine } from './clockwork.ts';

/** What an instance has committed. */
export interface Entry {
  readonly epoch: number;
  readonly id: string;
  /** The invite that was used; null for a revocation. */
  readonly invite: string | null;
}

export interface StoredEntry extends Entry {
  /** Who held the lease when it was stored. */
  readonly under: number;
}

export interface LeaseRow {
  epoch: number;
  holder: string | null;
  holderName: string;
  configuration: string | null;
  link: string | null;
  released: boolean;
  expiresAt: number;
  lasts: number;
}

/** Milliseconds of one way. */
const QUICK = 0.3;
const SLOW = 8;
/** How long what is sent is held up when something is. */
const MOMENT_MS = 50;
/** How long anyone waits for an answer. */
const TIMEOUT_MS = 500;

/** As the client of the database calls it. */
const NO_ANSWER = 'Query read timeout';

export class Fenced extends Error {}

export class Database {
  readonly lease: LeaseRow = {
    epoch: 0,
    holder: null,
    holderName: '',
    configuration: null,
    link: null,
    released: true,
    expiresAt: 0,
    lasts: 0,
  };
  readonly entries: StoredEntry[] = [];
  readonly #clockwork: Clockwork;
  readonly #chance: Chance;
  readonly #listeners: { machine: Machine; life: number; told: () => void }[] = [];
  readonly #unreachable = new Set<Machine>();
  /** Added to each way. */
  delay = 0;
  /** By how much its clock was set, milliseconds. */
  clockSet = 0;
  /** When what each machine has just sent arrives, at the earliest. */
  readonly #heldUp = new Map<Machine, number>();

  constructor(clockwork: Clockwork, chance: Chance) {
    this.#clockwork = clockwork;
    this.#chance = chance;
  }

  cut(machine: Machine): void {
    this.#unreachable.add(machine);
  }

  heal(machine: Machine): void {
    this.#unreachable.delete(machine);
  }

  /** What the machine sends in the next moment arrives so much later, although it has given up waiting. */
  delayNext(machine: Machine, milliseconds: number): void {
    const until = this.#clockwork.now + milliseconds;
    this.#heldUp.set(machine, until);
    this.#clockwork.at(this.#clockwork.now + MOMENT_MS, () => this.#heldUp.delete(machine));
  }

  /** Rejects when no answer has come in time: whether it was carried out is unknown then. */
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

  /** As long as the process lives. */
  listen(machine: Machine, told: () => void): void {
    this.#listeners.push({ machine, life: machine.life, told });
  }

  tell(): void {
    for (const { machine, life, told } of this.#listeners) {
      this.#travel(machine, 0, () => machine.run(life, told));
    }
  }

  isReleased(): boolean {
    return this.lease.released;
  }

  /** How long the lease lasts without a renewal. */
  lasts(): number {
    return this.lease.lasts;
  }

  /** Milliseconds until its end, by the clock of the database. */
  remaining(): number {
    return this.lease.expiresAt - this.#clockwork.now - this.clockSet;
  }

  extend(milliseconds: number): void {
    this.lease.expiresAt = this.#clockwork.now + this.clockSet + milliseconds;
    this.lease.lasts = milliseconds;
  }

  commit(entry: Entry): void {
    if (entry.epoch !== this.lease.epoch)
      throw new Fenced('Another process has taken over the database');
    this.store(entry);
  }

  store(entry: Entry): void {
    this.entries.push({ ...entry, under: this.lease.epoch });
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
