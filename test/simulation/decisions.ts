/** What the authority has decided, what it has answered, and the requests in between. */
import type { JsonObject } from '../../src/base/json/value.ts';
import type { OpenAuthority, Reply } from './authority-calls.ts';
import { backgroundChange } from './background.ts';
import { copyOf } from './copies.ts';
import type { InFlight, MemoryStore } from './memory-store.ts';
import type { Proof } from './model/access.ts';
import type { AuthorityKeys } from './model/authority-keys.ts';
import type { Change, Made, Moment, Outcome, State } from './model/state.ts';
import { fits, newIds, titleOf } from './outcomes.ts';
import type { SignatureChecks } from './signatures.ts';
import { insist } from './violation.ts';

/** A request that can be sent again, byte for byte, and what the model predicts for it. */
export interface Sent {
  readonly label: string;
  /** Whether replaying it is useful, which requires a signature. */
  readonly isSigned: boolean;
  /** For requests of nodes. */
  readonly proof?: Proof;
  /** What the edge forwards; null if it refuses the request. */
  judge(edgeNow: number): ((authority: OpenAuthority) => Reply | Promise<Reply>) | null;
  /** All the ways in which the request may end. */
  predict(moment: Moment): readonly Outcome[];
  /** Called when the request may succeed, before its answer is checked. */
  begun?(): void;
  /** What the client, or a reader, learns from a successful answer. */
  learn?(value: unknown, made: Made, decidedAt: number): void;
  refused?(details: JsonObject): void;
}

export interface Pending {
  readonly sent: Sent;
  decidedAt: number;
  readonly outcomes: readonly Outcome[];
  readonly made: Made;
  /** The authority's keys when the request was decided. */
  readonly authority: AuthorityKeys;
  reply: Reply | null;
}

/** A decided change that is not on disk yet. */
interface Waiting {
  readonly write: InFlight;
  readonly change: Change;
  readonly made: Made;
  readonly by: Pending | null;
}

export interface DecisionsOptions {
  /** The initial state. */
  readonly state: State;
  readonly signatures: SignatureChecks;
  store(): MemoryStore;
  moment(): Moment;
}

export class Decisions {
  /** `decided` includes every decision, `shown` only those that readers can already see. */
  decided: State;
  shown: State;
  readonly #options: DecisionsOptions;
  #pending: Pending[] = [];
  #waiting: Waiting[] = [];
  readonly #attributed = new WeakSet<InFlight>();

  constructor(options: DecisionsOptions) {
    this.#options = options;
    this.decided = options.state;
    this.shown = copyOf(options.state);
  }

  /** The requests that have no answer yet. */
  get pending(): readonly Pending[] {
    return this.#pending;
  }

  /** Records that a request was decided; `write` is what was stored for it, if anything. */
  add(pending: Pending, write: InFlight | null): void {
    const { outcomes, made } = pending;
    if (write !== null) this.#attribute(write, outcomes[0]?.change ?? null, made, pending);
    this.#pending.push(pending);
  }

  #attribute(write: InFlight, change: Change | null, made: Made, by: Pending | null): void {
    this.#attributed.add(write);
    const { unit } = write;
    if (unit === null) return;
    const applied = change ?? backgroundChange(unit, this.#options.moment());
    applied(this.decided, made);
    this.#waiting.push({ write, change: applied, made, by });
  }

  /** Attributes every write that no request caused to the authority itself. */
  attributeAll(): void {
    for (const write of this.#options.store().inFlight) {
      if (this.#attributed.has(write)) continue;
      const { unit } = write;
      this.#attribute(write, null, (kind) => newIds(unit, kind), null);
    }
  }

  /** Applies answered changes to what every reader must see from now on, even after a crash. */
  takeAnswers(): void {
    const inFlight = new Set(this.#options.store().inFlight);
    const last = this.#waiting.findLastIndex(
      ({ write, by }) => !inFlight.has(write) || (by !== null && by.reply !== null),
    );
    for (const { change, made } of this.#waiting.splice(0, last + 1)) change(this.shown, made);
    const answered = this.#pending.filter(({ reply }) => reply !== null);
    this.#pending = this.#pending.filter(({ reply }) => reply === null);
    for (const pending of answered) this.#check(pending);
  }

  #check({ sent, outcomes, reply, made, decidedAt, authority }: Pending): void {
    if (reply === null) return;
    if (reply.ok) this.#options.signatures.assertAnswer(sent.label, reply.value, authority);
    else sent.refused?.(reply.details);
    const fitting = outcomes.find((outcome) => fits(outcome, reply, made));
    insist(
      fitting !== undefined,
      () =>
        `${sent.label}: ${JSON.stringify(reply)} instead of ${outcomes.map(titleOf).join(' or ')}`,
    );
    if (reply.ok) sent.learn?.(reply.value, made, decidedAt);
  }

  clockSet(now: number): void {
    for (const one of this.#pending) one.decidedAt = Math.min(one.decidedAt, now);
  }

  /** Changes that reached the disk survive. */
  died(): void {
    for (const { write, change, made } of this.#waiting) {
      if (write.isDurable) change(this.shown, made);
    }
  }

  forget(): void {
    this.decided = copyOf(this.shown);
    this.#pending = [];
    this.#waiting = [];
  }
}
