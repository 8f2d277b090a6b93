/**
 * Time for several machines in one process. Nothing waits: the next event is carried out, and time jumps to it. Each
 * machine has its own monotonic clock and its own timers, so that it can be suspended, or die, between two events.
 */
import TinyQueue from 'tinyqueue';

interface Event {
  readonly at: number;
  /** Of two events at one time, the earlier one comes first. */
  readonly number: number;
  readonly work: () => void;
}

const ROUNDING_MS = 1e-3;

/** Lets everything that is already decided happen; the timers of the machines are others. */
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
  /** Of the monotonic clock. */
  readonly rate: number;
  readonly offset: number;
  /** Of the wall clock. */
  readonly ahead: number;
}

/** Runs a process, whose clock may be a little fast or slow. */
export class Machine {
  readonly name: string;
  readonly clockwork: Clockwork;
  /** By how much its wall clock is ahead, milliseconds. */
  readonly ahead: number;
  readonly #rate: number;
  readonly #offset: number;
  /** Every process on it so far; what an ended one still waits for never happens. */
  #life = 0;
  #isRunning = false;
  #suspended: (() => void)[] | null = null;
  /** When its clock has stopped; null while it goes. */
  #stoppedAt: number | null = null;
  /** For how long its clock has stood still. */
  #stood = 0;

  constructor(name: string, clockwork: Clockwork, clock: MachineClock) {
    this.name = name;
    this.clockwork = clockwork;
    this.ahead = clock.ahead;
    this.#rate = clock.rate;
    this.#offset = clock.offset;
  }

  /** Goes on while the process is suspended, and stands still while the machine is paused. */
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

  /** The process ends at once. */
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

  /** What the process of now will be asked by; ended processes ask nobody. */
  get life(): number {
    return this.#life;
  }

  /** An event of that process. */
  run(life: number, work: () => void): void {
    if (life !== this.#life || !this.#isRunning) return;
    if (this.#suspended !== null) {
      this.#suspended.push(work);
      return;
    }
    running = this;
    work();
  }

  /** An event of the process of now, after these milliseconds of its own clock. */
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
      // Its clock has stood still meanwhile.
      if (due - this.elapsed() > ROUNDING_MS) wait();
      else this.run(life, () => isCanceled || work());
    };
    wait();
    return () => {
      isCanceled = true;
    };
  }
}

/** Whose event is being carried out, until everything that follows from it has happened. */
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

/** While `work` runs, the timers that the program asks for are those of the machine that it runs on. */
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
