/**
 * Carries messages between machines: delayed, in order within each connection, and not at all while a link is cut. As
 * with TLS, the connecting side proves that it has a secret that the other side accepts.
 */
import { deserialize, serialize } from 'node:v8';
import type { FrameListener, Frames } from '../../../src/server/link/frames.ts';
import type { LinkKeys } from '../../../src/server/link/keys.ts';
import type { Connecting, Wire, Wires } from '../../../src/server/link/wires.ts';
import type { Chance } from './chance.ts';
import type { Clockwork, Machine } from './clockwork.ts';

/** Milliseconds that a message takes. */
const QUICK = 0.2;
const SLOW = 5;
const CONNECT_MS = 1000;

interface End {
  readonly machine: Machine;
  readonly life: number;
  other: End | null;
  listener: FrameListener<unknown> | null;
  /** Messages that arrived before anyone listened. */
  early: unknown[];
  isEnded: boolean;
  /** When the last message to it arrives. */
  lastAt: number;
  stopListening: () => void;
}

interface Listener {
  readonly machine: Machine;
  readonly life: number;
  readonly keys: LinkKeys;
  readonly accept: (wire: Wire) => void;
  /** The key that proved each connection. */
  readonly proven: Map<End, string>;
}

interface Caller {
  readonly machine: Machine;
  readonly keys: LinkKeys;
  /** Failed attempts so far; each attempt tries the next key. */
  failures: number;
}

export class Network {
  readonly #clockwork: Clockwork;
  readonly #chance: Chance;
  readonly #listeners = new Map<string, Listener>();
  readonly #ends = new Set<End>();
  /** Links that are cut, as `from to`, with the messages that wait meanwhile. */
  readonly #cuts = new Map<string, (() => void)[]>();

  readonly #tamper: (message: object) => object[];

  /** `tamper` changes messages in transit, to plant a defect. */
  constructor(clockwork: Clockwork, chance: Chance, tamper = (message: object) => [message]) {
    this.#clockwork = clockwork;
    this.#chance = chance;
    this.#tamper = tamper;
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
    for (const end of this.#ends) {
      if (end.machine === machine && !end.machine.isRunning) this.#end(end);
    }
  }

  wires(machine: Machine, keys: LinkKeys): Wires {
    const caller: Caller = { machine, keys, failures: 0 };
    return {
      listen: async (_address, accept) => {
        const { life } = machine;
        const address = `${machine.name}:${life}`;
        const proven = new Map<End, string>();
        this.#listeners.set(address, { machine, life, keys, accept, proven });
        return {
          address,
          endUnaccepted: () => {
            for (const [end, publicKey] of proven) {
              if (!keys.isAccepted(publicKey)) this.#end(end);
            }
          },
          close: () => void this.#listeners.delete(address),
        };
      },
      connect: (address, outcome) => this.#connect(caller, address, outcome),
    };
  }

  #connect(caller: Caller, address: string, { opened, ended }: Connecting) {
    const { machine, keys } = caller;
    const offered = keys.offered();
    const key = offered[caller.failures % offered.length];
    let isOver = false;
    function end(): void {
      if (isOver) return;
      isOver = true;
      caller.failures += 1;
      ended();
    }
    machine.after(CONNECT_MS, end);
    const listener = this.#listeners.get(address);
    if (listener === undefined || key === undefined) machine.after(1, end);
    else {
      const [near, far] = [this.#newEnd(machine), this.#newEnd(listener.machine, listener.life)];
      near.other = far;
      far.other = near;
      this.#send(near, far, () => {
        const isProven = listener.keys.accepted(key.publicKey)?.equals(key.secret) === true;
        if (isProven) {
          listener.proven.set(far, key.publicKey);
          listener.accept(this.#wire(far));
        }
        this.#send(far, near, () => {
          if (isOver) this.#end(near);
          else if (near.isEnded || !isProven) end();
          else {
            isOver = true;
            opened(this.#wire(near));
          }
        });
      });
    }
    return { end };
  }

  #newEnd(machine: Machine, life = machine.life): End {
    const stopListening = () => undefined;
    const end = {
      machine,
      life,
      other: null,
      listener: null,
      early: [],
      isEnded: false,
      lastAt: 0,
    };
    const made: End = { ...end, stopListening };
    this.#ends.add(made);
    return made;
  }

  #wire(end: End): Wire {
    return {
      open: (silence, listener) => this.#open(end, silence, listener as FrameListener<unknown>),
      end: () => this.#end(end),
    };
  }

  #open<Sent>(end: End, silence: number, listener: FrameListener<unknown>): Frames<Sent> {
    let hasHeard = true;
    end.listener = {
      take(message) {
        hasHeard = true;
        listener.take(message);
      },
      closed: listener.closed,
    };
    const look = (): void => {
      if (end.isEnded) return;
      if (hasHeard) end.stopListening = end.machine.after(silence, look);
      else this.#end(end);
      hasHeard = false;
    };
    end.stopListening = end.machine.after(silence, look);
    for (const message of end.early.splice(0)) end.listener.take(message);
    return {
      send: (message) => {
        const { other } = end;
        if (end.isEnded || other === null) return;
        for (const sent of this.#tamper(message as object)) {
          const bytes = serialize(sent);
          this.#send(end, other, () => this.#take(other, deserialize(bytes)));
        }
      },
      waiting: () => 0,
      onceDrained: () => undefined,
      end: () => this.#end(end),
    };
  }

  #take(end: End, message: unknown): void {
    if (end.isEnded) return;
    if (end.listener === null) end.early.push(message);
    else end.listener.take(message);
  }

  /** This end notices immediately, the other when the message arrives. */
  #end(end: End): void {
    if (end.isEnded) return;
    end.isEnded = true;
    end.stopListening();
    this.#ends.delete(end);
    const { listener } = end;
    if (listener !== null) end.machine.run(end.life, () => listener.closed(null));
    const { other } = end;
    if (other !== null) this.#send(end, other, () => this.#end(other));
  }

  #send(from: End, to: End, arrive: () => void): void {
    const waiting = this.#cuts.get(`${from.machine.name} ${to.machine.name}`);
    if (waiting !== undefined) {
      waiting.push(() => this.#send(from, to, arrive));
      return;
    }
    const at = Math.max(to.lastAt, this.#clockwork.now + this.#chance.between(QUICK, SLOW));
    to.lastAt = at;
    this.#clockwork.at(at, () => to.machine.run(to.life, arrive));
  }
}
