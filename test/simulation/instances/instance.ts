/** One instance: a machine, its key folder, and the process that runs on it, which is restarted when it ends. */
import { OlderState } from '../../../src/authority/open.ts';
import type { Answer } from '../../../src/protocol/contract/calls.ts';
import type { KeyFolder } from '../key-folder.ts';
import { Violation } from '../violation.ts';
import type { Machine } from './clockwork.ts';
import { Fenced, NO_ANSWER } from './database.ts';
import { type Running, type Surroundings, startProcess } from './process.ts';
import type { Shown } from './shown.ts';

/** How soon a supervisor restarts a process that has ended. */
const RESTART_MS = 200;

export class Instance {
  readonly machine: Machine;
  readonly folder: KeyFolder;
  readonly #surroundings: Surroundings;
  #running: Running | null = null;
  readonly #inFlight = new Set<Promise<unknown>>();

  constructor(machine: Machine, surroundings: Surroundings) {
    this.machine = machine;
    this.folder = surroundings.folders.get(machine.name) as KeyFolder;
    this.#surroundings = surroundings;
  }

  start(): void {
    if (this.machine.isRunning) return;
    this.machine.start(() => {
      const { life } = this.machine;
      startProcess(this.machine, this.#surroundings, (cause) => this.#end(life, cause)).then(
        (running) => {
          if (this.machine.life === life) this.#running = running;
        },
        (cause) => this.#end(life, cause),
      );
    });
  }

  /** The process dies, and the kernel closes its connections. */
  kill(): void {
    this.machine.kill();
    this.#running = null;
    this.#inFlight.clear();
    this.#surroundings.network.died(this.machine);
  }

  #end(life: number, cause: unknown): void {
    if (this.machine.life !== life || !this.machine.isRunning) return;
    if (!isExpected(cause)) this.#surroundings.found(cause);
    this.kill();
    this.#startLater();
  }

  #startLater(): void {
    const { clockwork } = this.machine;
    clockwork.at(clockwork.now + RESTART_MS, () => this.start());
  }

  /** Hands over, ends, and is restarted. */
  stop(): void {
    const { machine } = this;
    const running = this.#running;
    const { life } = machine;
    if (running === null) return;
    machine.run(life, () => {
      // Its listeners are closed, so requests no longer reach it.
      this.#running = null;
      running.stop(this.#inFlight).then(
        () => this.#end(life, null),
        (cause) => this.#end(life, cause),
      );
    });
  }

  /** Null if no process answers, or if nothing is asked. */
  ask(
    question: (running: Running) => Answer | Promise<Answer> | null,
  ): Promise<Answer | null> | null {
    return this.#asked((running) => running.ask(question));
  }

  /** Rejects with a violation if this instance is active and shows less than before its turn. */
  read(): Promise<Shown | null> | null {
    return this.#asked((running) => running.read());
  }

  #asked<Result>(ask: (running: Running) => Result | Promise<Result>): Promise<Result> | null {
    const running = this.#running;
    if (running === null || !this.machine.isRunning) return null;
    const { life } = this.machine;
    const answered = new Promise<Result>((resolve, reject) => {
      this.machine.run(life, () => {
        try {
          Promise.resolve(ask(running)).then(resolve, reject);
        } catch (cause) {
          reject(cause);
        }
      });
    });
    const ended: Promise<unknown> = answered.then(
      () => this.#inFlight.delete(ended),
      () => this.#inFlight.delete(ended),
    );
    this.#inFlight.add(ended);
    return answered;
  }
}

/** Whether this is a legitimate reason for a process to end. */
function isExpected(cause: unknown): boolean {
  if (cause instanceof Violation) return false;
  // It has handed over or lost the lease.
  if (cause === null || typeof cause === 'string') return true;
  if (cause instanceof Fenced || cause instanceof OlderState) return true;
  return cause instanceof Error && EXPECTED.test(cause.message);
}

const EXPECTED = new RegExp(`^${NO_ANSWER}$|is not here, although it|is not held here$`);
