/**
 * Carries requests and answers between machines: delayed, in order in each direction, and not at all while a link is
 * cut. As with TLS, the asking side proves that it has a secret that the other side accepts.
 */
import type { Attempt } from '../../../src/edge/forward/forwarder.ts';
import type { ForwardTarget } from '../../../src/edge/forward/target.ts';
import type { ForwardKeys } from '../../../src/server/forward/keys.ts';
import type { Random } from '../../fuzz/random.ts';
import type { Clockwork, Machine } from './clockwork.ts';

/** Milliseconds that a message takes. */
const QUICK = 0.2;
const SLOW = 5;
/** How often the other instance is asked whether it answers, and for how long it may be silent. */
const ASK_MS = 250;
const SILENCE_MS = 1000;

interface Server<Asked> {
  readonly machine: Machine;
  readonly life: number;
  readonly keys: ForwardKeys;
  /** Null if it refuses before any work begins. */
  readonly answer: (asked: Asked) => Promise<unknown>;
}

/** A request in flight. */
interface Flight {
  readonly to: Machine;
  /** Ends it without an answer. */
  readonly lose: () => void;
}

export class Network<Asked> {
  readonly #clockwork: Clockwork;
  readonly #chance: Random;
  readonly #servers = new Map<string, Server<Asked>>();
  readonly #flights = new Set<Flight>();
  /** Links that are cut, as `from to`, with the messages that wait meanwhile. */
  readonly #cuts = new Map<string, (() => void)[]>();
  readonly #arrivals = new Map<string, number>();

  constructor(clockwork: Clockwork, chance: Random) {
    this.#clockwork = clockwork;
    this.#chance = chance;
  }

  cut(from: Machine, to: Machine): void {
    const name = `${from.name} ${to.name}`;
    if (!this.#cuts.has(name)) this.#cuts.set(name, []);
  }

  /** Messages sent in the meantime arrive, as with TCP retransmission. */
  heal(from: Machine, to: Machine): void {
    const name = `${from.name} ${to.name}`;
    const waiting = this.#cuts.get(name) ?? [];
    this.#cuts.delete(name);
    for (const send of waiting) send();
  }

  /** The kernel of a machine whose process died closes its connections, so the other ends notice. */
  died(machine: Machine): void {
    for (const { to, lose } of this.#flights) if (to === machine) lose();
  }

  /** Returns the address. */
  serve(
    machine: Machine,
    keys: ForwardKeys,
    answer: (asked: Asked) => Promise<unknown>,
  ): { readonly address: string; close(): void } {
    const { life } = machine;
    const address = `${machine.name}:${life}`;
    this.#servers.set(address, { machine, life, keys, answer });
    return { address, close: () => void this.#servers.delete(address) };
  }

  ask<Result>(
    from: Machine,
    { address, keys }: ForwardTarget,
    asked: Asked,
  ): Promise<Attempt<Result>> {
    const server = this.#servers.get(address);
    return new Promise((resolve) => {
      const { life } = from;
      const settle = (outcome: Attempt<Result>) => {
        this.#flights.delete(flight);
        stopAsking();
        from.run(life, () => resolve(outcome));
      };
      let stopAsking: () => void = () => undefined;
      if (server === undefined) {
        from.after(1, () => resolve({ kind: 'not begun' }));
        return;
      }
      const { machine: to } = server;
      const flight: Flight = {
        to,
        lose: () => this.#send(to, from, () => settle({ kind: 'lost' })),
      };
      this.#flights.add(flight);
      stopAsking = this.#whileHeard(from, server, () => settle({ kind: 'lost' }));
      const isAccepted = () =>
        keys.some(({ publicKey, secret }) =>
          server.keys
            .accepted()
            .some((key) => key.publicKey === publicKey && Buffer.from(secret).equals(key.secret)),
        );
      this.#send(from, to, () => {
        const notBegun = () => this.#send(to, from, () => settle({ kind: 'not begun' }));
        if (to.life !== server.life || !isAccepted()) return notBegun();
        to.run(server.life, () => {
          server.answer(asked).then(
            (answer) => {
              if (answer === NOT_BEGUN) notBegun();
              else {
                this.#send(to, from, () => settle({ kind: 'answered', answer: answer as Result }));
              }
            },
            () => this.#send(to, from, () => settle({ kind: 'lost' })),
          );
        });
      });
    });
  }

  /** Calls back if the server has not answered for too long; returns a function that stops that. */
  #whileHeard(from: Machine, { machine: to, life }: Server<Asked>, silent: () => void): () => void {
    let heardAt = from.elapsed();
    let isOver = false;
    const look = (): void => {
      if (isOver) return;
      if (from.elapsed() - heardAt > SILENCE_MS) {
        silent();
        return;
      }
      this.#send(from, to, () =>
        to.run(life, () =>
          this.#send(to, from, () => {
            heardAt = from.elapsed();
          }),
        ),
      );
      from.after(ASK_MS, look);
    };
    from.after(ASK_MS, look);
    return () => {
      isOver = true;
    };
  }

  #send(from: Machine, to: Machine, arrive: () => void): void {
    const name = `${from.name} ${to.name}`;
    const waiting = this.#cuts.get(name);
    if (waiting !== undefined) {
      waiting.push(() => this.#send(from, to, arrive));
      return;
    }
    const last = this.#arrivals.get(name) ?? 0;
    const at = Math.max(last, this.#clockwork.now + this.#chance.between(QUICK, SLOW));
    this.#arrivals.set(name, at);
    this.#clockwork.at(at, arrive);
  }
}

/** The answer of an instance that is not active, or is stopping. */
export const NOT_BEGUN = Symbol('not begun');
