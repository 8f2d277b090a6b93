/**
 * The real authority on a disk that can fail, and the model of what it should have decided and answered: it settles,
 * dies and is restarted, and the two are compared after each turn.
 */
import type { HeartbeatSessions } from '../../src/edge/auth/session.ts';
import type { OpenAuthority } from './authority-calls.ts';
import { Decisions } from './decisions.ts';
import type { KeyFolder } from './key-folder.ts';
import type { MemoryDisk } from './memory-disk.ts';
import { firstKeys } from './model/authority-keys.ts';
import { Contacts } from './model/contacts.ts';
import type { Instants } from './model/instants.ts';
import { type Agent, emptyState, type Moment, type State } from './model/state.ts';
import { type Defect, Process } from './process.ts';
import { PublishedDocuments } from './published-documents.ts';
import { AUTHORITY, OPERATORS, ROOT } from './requests.ts';
import { type SimulatedRuntime, simulatedRuntime } from './runtime.ts';
import { SentProofs } from './sent-proofs.ts';
import { SignatureChecks } from './signatures.ts';
import { insist, Violation } from './violation.ts';

export const MAX_TICKS = 1000;

export class Service {
  readonly runtime: SimulatedRuntime = simulatedRuntime();
  readonly contacts = new Contacts();
  /** The data-license policy in force; it exists only in memory. */
  license: string | null = null;
  readonly signatures = new SignatureChecks();
  readonly documents = new PublishedDocuments((name, record) =>
    this.signatures.assertDocument(name, record, [this.shown.authority, this.decided.authority]),
  );
  /** Registrations that were seen as expired: they do not return when the clock is set back. */
  readonly lapsedAgents = new Set<Agent>();
  protected readonly proofs = new SentProofs(this.runtime);
  readonly #defect: Defect;
  protected readonly decisions: Decisions;
  protected readonly process: Process;
  protected authority!: OpenAuthority;
  /** The liveness flush in progress. */
  protected flush: { isDone: boolean } | null = null;

  constructor(defect: Defect, takesOver: boolean) {
    this.#defect = defect;
    this.decisions = new Decisions({
      state: emptyState(
        OPERATORS.map(({ keyId, tier }) => [keyId, tier]),
        firstKeys(ROOT.publicKey, AUTHORITY.publicKey),
      ),
      signatures: this.signatures,
      store: () => this.process.store,
      moment: () => this.moment(this.now),
    });
    this.process = new Process({
      runtime: this.runtime,
      documents: this.documents,
      defect,
      takesOver,
      clockSet: (byMs) => this.#clockSet(byMs),
    });
  }

  get disk(): MemoryDisk {
    return this.process.disk;
  }

  get folder(): KeyFolder {
    return this.process.folder;
  }

  /** The edge's sessions. */
  get sessions(): HeartbeatSessions {
    return this.process.sessions;
  }

  get instants(): Instants {
    return this.proofs.instants;
  }

  /** Every decision, and everything that was answered. */
  get decided(): State {
    return this.decisions.decided;
  }

  get shown(): State {
    return this.decisions.shown;
  }

  get now(): number {
    return this.runtime.now();
  }

  /** Flushes and answers everything in flight. */
  async settle(): Promise<void> {
    for (let ticks = 0; ticks < MAX_TICKS; ticks += 1) {
      this.process.store.persist();
      this.process.store.answer();
      await this.turn();
      if (this.process.store.inFlight.length === 0) break;
    }
    const { pending } = this.decisions;
    insist(pending.length === 0, () => `${pending[0]?.sent.label} is never answered`);
  }

  persist(count: number): void {
    this.process.store.persist(count);
  }

  /** The process dies; some of what was in flight may have reached the disk. */
  async crash(persisted: number, again: boolean): Promise<void> {
    this.#die(persisted);
    if (again) {
      this.process.begin();
      await tick();
      await tick();
      this.decisions.attributeAll();
      this.#die(persisted);
      this.contacts.startDied(this.now);
    }
    await this.open();
  }

  /** A flush fails: none of it is answered, and the process must end. */
  async failFlush(): Promise<void> {
    const isLost = this.process.store.inFlight.some(({ isDurable }) => !isDurable);
    this.process.store.fail(new Error('The disk is full'));
    await tick();
    const answered = this.decisions.pending.find(({ reply }) => reply?.ok === true);
    insist(answered === undefined, () => `${answered?.sent.label} was answered, and is not stored`);
    insist(
      !isLost || this.process.failure !== null,
      () => 'The authority goes on after a failed flush',
    );
    await this.crash(0, false);
  }

  /** The process that will take over looks at the disk. */
  follow(withLiveness: boolean): void {
    this.process.follow(withLiveness);
  }

  async restart(): Promise<void> {
    await this.settle();
    this.proofs.noteTime();
    this.contacts.flushBegan();
    await this.pump(this.authority.close());
    this.proofs.closed();
    this.contacts.flushStored();
    this.#forgetMemory();
    await this.open();
  }

  protected moment(edgeNow: number): Moment {
    return {
      state: this.decided,
      shown: this.shown,
      edgeNow,
      now: this.now,
      ...this.proofs.known(),
      isHeld: (publicKey) => this.folder.has(publicKey),
      isOperator: (publicKey) => OPERATORS.some(({ key }) => key.publicKey === publicKey),
      laggards: () => ({ least: 0, most: this.#mostLaggards() }),
    };
  }

  /** Counts nodes with a certificate in use; which of them made contact is known only within bounds. */
  #mostLaggards(): number {
    const certificates = [this.decided, this.shown].flatMap((state) => [
      ...state.certificates.values(),
    ]);
    const inUse = certificates.filter(
      ({ revocation, expiresAt }) => revocation === null && expiresAt > this.now,
    );
    return new Set(inUse.map(({ nodeKey }) => nodeKey)).size;
  }

  protected async open(): Promise<void> {
    const opened = await this.pump(this.process.begin());
    this.authority = this.#defect.authority?.(opened) ?? opened;
    await this.turn();
    this.contacts.restart(this.shown, this.now);
    this.proofs.opened();
  }

  /** The service follows a clock that was set, so notes made under the earlier time need not count. */
  #clockSet(byMs: number): void {
    this.authority.clockSet(byMs);
    this.contacts.clockSet(this.now, byMs);
    this.decisions.clockSet(this.now);
    this.proofs.clockSet();
  }

  #die(persisted: number): void {
    this.process.store.persist(persisted);
    this.decisions.died();
    this.process.store.crash();
    this.proofs.died();
    this.#forgetMemory();
  }

  #forgetMemory(): void {
    this.decisions.forget();
    this.license = null;
    this.documents.forgetCurrent();
    this.lapsedAgents.clear();
    this.proofs.forget();
    this.flush = null;
  }

  /** Lets all pending work proceed, and collects the answers. */
  protected async turn(): Promise<void> {
    await tick();
    this.decisions.attributeAll();
    this.decisions.takeAnswers();
    this.#noteFlush();
    if (this.process.failure !== null)
      throw new Violation(`The authority gave up: ${this.process.failure}`);
  }

  /** Waits for the authority's own work while the disk works. */
  protected async pump<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const done = () => {
      isDone = true;
    };
    work.then(done, done);
    for (let ticks = 0; ticks < MAX_TICKS; ticks += 1) {
      await this.turn();
      if (isDone) return work;
      this.process.store.persist();
      this.process.store.answer();
    }
    throw new Violation('Work of the authority does not end');
  }

  #noteFlush(): void {
    if (!this.flush?.isDone) return;
    this.contacts.flushStored();
    this.flush = null;
  }
}

export function tick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
