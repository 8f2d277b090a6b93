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
  /** The newest instant of each node key that may have passed the proof check. */
  readonly #newestPassed = new Map<string, number>();
  /** Heartbeats of a node key that were signed after this instant may count once more [core-2-3]. */
  readonly #countsAgainAfter = new Map<string, number>();
  /** How long heartbeats that a crash made unknown can be replayed. */
  #lost: { readonly until: number; readonly untilElapsed: number } | null = null;
  /** Node requests signed up to this instant may be refused, even if nobody sent them before. */
  #signedBeforeStart = 0;
  /** The latest time that the service has used. */
  #latest = 0;

  constructor(runtime: SimulatedRuntime) {
    this.#runtime = runtime;
  }

  known(): Pick<
    Moment,
    'mayBeForgotten' | 'forgottenUntil' | 'wasTried' | 'wasAccepted' | 'mayCountAgain'
  > {
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
      mayCountAgain: (nodeKey, signedAt) =>
        signedAt > (this.#countsAgainAfter.get(nodeKey) ?? Infinity),
    };
  }

  noteTime(): void {
    this.#latest = Math.max(this.#latest, this.#runtime.now());
  }

  noteTried({ holder, nonce, signedAt, isGenuine }: Proof): void {
    this.#tried.add(nonce);
    raise(this.#newestSigned, holder, signedAt);
    if (isGenuine && signedAt <= this.#runtime.now() + TOLERANCE) {
      raise(this.#newestPassed, holder, signedAt);
    }
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
    this.#noteTooFarAhead();
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
    this.#noteTooFarAhead();
  }

  /** A node is not shut out until the clock reaches a timestamp again that is too far ahead of it now. */
  #noteTooFarAhead(): void {
    const now = this.#runtime.now();
    for (const [key, passed] of this.#newestPassed) {
      const newest = Math.max(passed, this.instants.newestInSessions(key));
      if (newest <= now + TOLERANCE) continue;
      const earlier = this.#countsAgainAfter.get(key) ?? Infinity;
      this.#countsAgainAfter.set(key, Math.min(earlier, now));
    }
  }
}

function raise(newest: Map<string, number>, key: string, instant: number): void {
  newest.set(key, Math.max(newest.get(key) ?? 0, instant));
}
