/**
 * What was signed when, and what a service still knows of it after a crash: which requests may be refused as replays.
 */
import { NONCES_HELD, type Proof, TOLERANCE } from './model/access.ts';
import { FLUSH_INTERVAL } from './model/contacts.ts';
import { Instants } from './model/instants.ts';
import type { Moment } from './model/state.ts';
import type { SimulatedRuntime } from './runtime.ts';

export class SentProofs {
  readonly instants = new Instants();
  readonly #runtime: SimulatedRuntime;
  /** `scope nonce` of accepted requests that are not durable, such as heartbeats. */
  readonly #accepted = new Set<string>();
  /** Nonces of everything that nodes have sent. */
  readonly #tried = new Set<string>();
  /** The newest instant at which each node key signed a request. */
  readonly #newestSigned = new Map<string, number>();
  readonly #forgottenUntil = new Map<string, number>();
  /** How long heartbeats that a crash made unknown can be replayed. */
  #lost: { readonly until: number; readonly untilElapsed: number } | null = null;
  /** Node requests signed up to this instant may be refused, even if nobody sent them before. */
  #signedBeforeStart = 0;
  /** The latest time that the service has used. */
  #latest = 0;

  constructor(runtime: SimulatedRuntime) {
    this.#runtime = runtime;
  }

  known(): Pick<Moment, 'mayBeForgotten' | 'forgottenUntil' | 'wasTried' | 'wasAccepted'> {
    return {
      mayBeForgotten: (signedAt) => signedAt <= this.#latest - NONCES_HELD,
      forgottenUntil: (nodeKey) =>
        Math.max(
          this.#signedBeforeStart,
          this.#forgottenUntil.get(nodeKey) ?? 0,
          this.instants.newestInSessions(nodeKey),
        ),
      wasTried: (nonce) => this.#tried.has(nonce),
      wasAccepted: (scope, nonce) => this.#accepted.has(`${scope} ${nonce}`),
    };
  }

  noteTime(): void {
    this.#latest = Math.max(this.#latest, this.#runtime.now());
  }

  noteTried({ holder, nonce, signedAt }: Proof): void {
    this.#tried.add(nonce);
    this.#newestSigned.set(holder, Math.max(this.#newestSigned.get(holder) ?? 0, signedAt));
  }

  noteAccepted(scope: string, nonce: string): void {
    this.#accepted.add(`${scope} ${nonce}`);
  }

  died(): void {
    this.#lost = { until: Infinity, untilElapsed: Infinity };
    this.instants.crash();
  }

  closed(): void {
    const { until = -1, untilElapsed = -1 } = this.#lost ?? {};
    const { now, elapsed } = this.#runtime;
    if (now() > until && elapsed() > untilElapsed) this.#lost = null;
  }

  /** The next process knows only what was stored. */
  forget(): void {
    for (const [key, at] of this.#newestSigned) this.#forgottenUntil.set(key, at);
  }

  opened(): void {
    this.#noteLost();
    const floor = this.#lost === null ? -Infinity : this.#signedBeforeStart;
    this.instants.start(this.#runtime.now(), floor);
    this.noteTime();
  }

  /** As long as heartbeats lost in a crash could be replayed, the next start must guard against them, too. */
  #noteLost(): void {
    if (this.#lost === null) return;
    const now = this.#runtime.now();
    const isBehind = now < this.#latest;
    this.#signedBeforeStart = isBehind ? this.#latest + 2 * FLUSH_INTERVAL : now;
    this.#lost = { until: now + TOLERANCE, untilElapsed: this.#runtime.elapsed() + TOLERANCE };
  }

  /** Notes made under the earlier time need not count. */
  clockSet(): void {
    this.#signedBeforeStart = Math.max(this.#latest, this.#runtime.now()) + TOLERANCE;
  }
}
