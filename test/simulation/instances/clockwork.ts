/**
 * Simulated time for several machines in one process. Nothing waits: time jumps to the next event, which then runs.
 * Each machine has its own monotonic clock and timers, so it can be suspended or die between two events.
 */
import TinyQueue from 'tinyqueue';

interface Event {
  readonly at: number;
  /** Breaks ties between events at the same time: the one scheduled first runs first. */
  readonly number: number;
  readonly work: () => void;
}

const ROUNDING_MS = 1e-3;

/**
 * Lets all pending promises settle; uses the real `setImmediate`, because the machines' timers replace the global one.
 */
const realImmediate = setImmediate;
const settled = () => new Promise<void>((resolve) => void realImmediate(resolve));

export class Clockwork {
  /** Milliseconds since the history began. */
  now = 0;
  readonly #events = new TinyQueue<Event>([], (a, b) => a.at - b.at || a.number - b.number);
  #number = 0;

  at(time: number, work: () => void): void {
    this.#number += 1;
    this.#events.push({ at: Math.max(time, this.now), number: this.#number, work });
  }

  async runUntil(time: number): Promise<void> {
    await settled();
    for (let next = this.#events.peek(); next !== undefined && next.at <= time; ) {
      this.#events.pop();
      this.now = next.at;
      next.work();
      await settled();
      next = this.#events.peek();
    }
    this.now = time;
  }
}

export interface MachineClock {
  /** For the monotonic clock. */
  readonly rate: number;
  readonly offset: number;
  /** For the wall clock, in milliseconds. */
  readonly ahead: number;
}

/** Runs one process at a time; its clock may run slightly fast or slow. */
export class Machine {
  readonly name: string;
  readonly clockwork: Clockwork;
  /** How far its wall clock is ahead, in milliseconds. */
  readonly ahead: number;
  readonly #rate: number;
  readonly #offset: number;
  /** The number of the current process; pending events of ended processes never run. */
  #life = 0;
  #isRunning = false;
  #suspended: (() => void)[] | null = null;
  /** When its clock stopped; null while it runs. */
  #stoppedAt: number | null = null;
  /** How long its clock has been stopped in total. */
  #stood = 0;

  constructor(name: string, clockwork: Clockwork, clock: MachineClock) {
    this.name = name;
    this.clockwork = clockwork;
    this.ahead = clock.ahead;
    this.#rate = clock.rate;
    this.#offset = clock.offset;
  }

  /** Keeps running while the process is suspended, but stops while the machine is paused. */
  readonly elapsed = (): number => {
    const now = this.#stoppedAt ?? this.clockwork.now;
    return this.#offset + (now - this.#stood) * this.#rate;
  };

  get isRunning(): boolean {
    return this.#isRunning;
  }

  get isSuspended(): boolean {
    return this.#suspended !== null;
  }

  start(main: () => void): void {
    this.#life += 1;
    this.#isRunning = true;
    this.#suspended = null;
    this.run(this.#life, main);
  }

  /** Ends the process immediately. */
  kill(): void {
    this.#life += 1;
    this.#isRunning = false;
    this.#suspended = null;
  }

  suspend(): void {
    if (this.#isRunning) this.#suspended ??= [];
  }

  pause(): void {
    this.suspend();
    this.#stoppedAt ??= this.clockwork.now;
  }

  resume(): void {
    if (this.#stoppedAt !== null) this.#stood += this.clockwork.now - this.#stoppedAt;
    this.#stoppedAt = null;
    const waiting = this.#suspended ?? [];
    this.#suspended = null;
    const life = this.#life;
    for (const work of waiting) this.clockwork.at(this.clockwork.now, () => this.run(life, work));
  }

  /** Identifies the current process, so that events of ended processes can be dropped. */
  get life(): number {
    return this.#life;
  }

  /** Runs an event of that process. */
  run(life: number, work: () => void): void {
    if (life !== this.#life || !this.#isRunning) return;
    if (this.#suspended !== null) {
      this.#suspended.push(work);
      return;
    }
    running = this;
    work();
  }

  /** Schedules an event of the current process, after this many milliseconds on its own clock. */
  after(milliseconds: number, work: () => void): () => void {
    const life = this.#life;
    const due = this.elapsed() + milliseconds;
    let isCanceled = false;
    const wait = () => {
      const left = Math.max(0, due - this.elapsed()) / this.#rate;
      this.clockwork.at(this.clockwork.now + left, ring);
    };
    const ring = () => {
      if (isCanceled || life !== this.#life) return;
      // Its clock was stopped in the meantime.
      if (due - this.elapsed() > ROUNDING_MS) wait();
      else this.run(life, () => isCanceled || work());
    };
    wait();
    return () => {
      isCanceled = true;
    };
  }
}

/** The machine whose event is running, until everything that follows from the event has happened. */
let running: Machine | null = null;

class Timer {
  readonly cancel: () => void;

  constructor(cancel: () => void) {
    this.cancel = cancel;
  }

  unref(): this {
    return this;
  }

  ref(): this {
    return this;
  }
}

function after(milliseconds: number, work: () => void): Timer {
  if (running === null) throw new Error('A timer belongs to no machine');
  return new Timer(running.after(milliseconds, work));
}

function every(milliseconds: number, work: () => void): Timer {
  const machine = running;
  if (machine === null) throw new Error('A timer belongs to no machine');
  let cancel = machine.after(milliseconds, tick);
  function tick(): void {
    cancel = (machine as Machine).after(milliseconds, tick);
    work();
  }
  return new Timer(() => cancel());
}

function cancel(timer: unknown): void {
  if (timer instanceof Timer) timer.cancel();
}

/** While `work` runs, timers that the program sets belong to the machine on which it is running. */
export async function withTimersOfMachines(work: () => Promise<void>): Promise<void> {
  const { setTimeout, setInterval, setImmediate } = globalThis;
  const { clearTimeout, clearInterval, clearImmediate } = globalThis;
  Object.assign(globalThis, {
    setTimeout: (what: () => void, milliseconds = 0) => after(milliseconds, what),
    setInterval: (what: () => void, milliseconds: number) => every(milliseconds, what),
    setImmediate: (what: () => void) => after(0, what),
    clearTimeout: cancel,
    clearInterval: cancel,
    clearImmediate: cancel,
  });
  try {
    await work();
  } finally {
    running = null;
    Object.assign(globalThis, {
      setTimeout,
      setInterval,
      setImmediate,
      clearTimeout,
      clearInterval,
      clearImmediate,
    });
  }
}
