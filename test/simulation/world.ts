/**
 * The real authority on a disk that can fail, and the model of what it should have decided and answered. Operators,
 * nodes and readers use it: requests overlap, get lost and are repeated, while the authority settles, dies and is
 * restarted; the two are compared after each turn.
 */
import {
  type CallName,
  type CallOf,
  call,
  type OpenAuthority,
  type Reply,
} from './authority-calls.ts';
import { Decisions, type Pending, type Sent } from './decisions.ts';
import { Followers } from './followers.ts';
import { assertEdgeRefuses } from './forgeries.ts';
import type { InFlight } from './memory-store.ts';
import { dueNow, firstKeys } from './model/authority-keys.ts';
import { Contacts } from './model/contacts.ts';
import { type Agent, emptyState, type Made, type Moment, type State } from './model/state.ts';
import { isConsistent, isKeyChange, isSummary, newIds, storedTitle, titleOf } from './outcomes.ts';
import { type Defect, Process } from './process.ts';
import { PublishedDocuments } from './published-documents.ts';
import { AUTHORITY, OPERATORS, ROOT, type Stamp } from './requests.ts';
import { simulatedRuntime } from './runtime.ts';
import { SentProofs } from './sent-proofs.ts';
import type { KnownSession } from './session-beats.ts';
import { SignatureChecks } from './signatures.ts';
import type { MadeSuccession } from './successions.ts';
import { insist, Violation } from './violation.ts';

export interface KnownInvite {
  readonly token: string;
  readonly id: string;
  isUsed: boolean;
}

interface KnownCertificate {
  readonly id: string;
  readonly nodeKey: string;
  readonly roles: readonly string[];
}

const MAX_TICKS = 1000;
/** As many as it takes to prepare a change of keys. */
const FEW_TICKS = 4;

export class World {
  readonly runtime = simulatedRuntime();
  readonly contacts = new Contacts();
  readonly proofs = new SentProofs(this.runtime);
  readonly signatures = new SignatureChecks();
  readonly documents = new PublishedDocuments((name, record) =>
    this.signatures.assertDocument(name, record, [this.shown.authority, this.decided.authority]),
  );
  readonly process: Process;
  /** What clients have learned from answers, and may name in later requests. */
  readonly known = {
    invites: [] as KnownInvite[],
    certificates: [] as KnownCertificate[],
    sessions: [] as KnownSession[],
    attestations: [] as string[],
    treaties: [] as string[],
    successions: [] as MadeSuccession[],
    /** How many nodes had not followed, according to the authority's last answer. */
    laggards: 0,
  };
  /** What can be sent again. */
  readonly sent: Sent[] = [];
  /** The data-license policy in force; it exists only in memory. */
  license: string | null = null;
  /** Registrations that were seen as expired: they do not return when the clock is set back. */
  readonly lapsedAgents = new Set<Agent>();
  readonly #defect: Defect;
  readonly #decisions: Decisions;
  readonly #followers: Followers;
  #authority!: OpenAuthority;
  /** The liveness flush in progress. */
  #flush: { isDone: boolean } | null = null;
  #stamps = 0;

  private constructor(defect: Defect, takesOver: boolean) {
    this.#defect = defect;
    this.#decisions = new Decisions({
      state: emptyState(
        OPERATORS.map(({ keyId, tier }) => [keyId, tier]),
        firstKeys(ROOT.publicKey, AUTHORITY.publicKey),
      ),
      signatures: this.signatures,
      store: () => this.process.store,
      moment: () => this.#moment(this.now),
    });
    const { runtime, documents } = this;
    const clockSet = (byMs: number) => this.#clockSet(byMs);
    this.process = new Process({ runtime, documents, defect, takesOver, clockSet });
    this.#followers = new Followers(() => this.now, defect.client);
  }

  /** `takesOver`: each start continues with a followed state instead of reading it. */
  static async start(defect: Defect, takesOver: boolean): Promise<World> {
    const world = new World(defect, takesOver);
    await world.#open();
    return world;
  }

  /** Includes every decision. */
  get decided(): State {
    return this.#decisions.decided;
  }

  /** Includes everything that was answered. */
  get shown(): State {
    return this.#decisions.shown;
  }

  get now(): number {
    return this.runtime.now();
  }

  get isKeyDue(): boolean {
    return dueNow(this.#moment(this.now)) !== null;
  }

  /** Whether nothing is decided at present, because the authority's keys are changing. */
  get isChangingKeys(): boolean {
    return this.process.store.inFlight.some(isKeyChange);
  }

  /** Addressed to the key that is published as the current one. */
  stamp(): Stamp {
    this.#stamps += 1;
    const edge = () => this.process.edge;
    const authorityKeys = {
      get audiences() {
        return edge().audiences;
      },
    };
    return {
      now: this.now,
      nonce: `nonce-${this.#stamps}`,
      audience: edge().current,
      authorityKeys,
    };
  }

  /** Sends a request, and leaves it in flight if it must be stored. */
  async send(sent: Sent, late: number): Promise<void> {
    const edgeNow = this.now;
    const perform = sent.judge(edgeNow);
    if (perform === null) return;
    this.runtime.advance(late);
    this.proofs.noteTime();
    const possible = sent.predict(this.#moment(edgeNow));
    const { authority } = this.decided;
    if (sent.proof !== undefined) this.proofs.noteTried(sent.proof);
    const before = new Set(this.process.store.inFlight);
    const reply = perform(this.#authority);
    const write = await this.#decision(sent, reply, before);
    const made: Made = (kind) => newIds(write?.unit ?? null, kind);
    const outcomes = possible.filter((one) => isConsistent(one, write, reply));
    insist(
      outcomes.length > 0,
      () =>
        `${sent.label} ended otherwise than ${possible.map(titleOf).join(' or ')}: ${storedTitle(write, reply)}`,
    );
    const pending: Pending = { sent, outcomes, made, authority, decidedAt: this.now, reply: null };
    this.#decisions.add(pending, write);
    if (outcomes.some(({ refusal }) => refusal === null)) sent.begun?.();
    if (reply instanceof Promise) {
      reply.then(
        (value) => {
          pending.reply = value;
        },
        () => undefined,
      );
    } else {
      pending.reply = reply;
    }
    await this.#turn();
  }

  /** The unit that decides a request, if any. Some take a few ticks to prepare, and all wait while the keys change. */
  async #decision(
    { label }: Sent,
    reply: Reply | Promise<Reply>,
    before: ReadonlySet<InFlight>,
  ): Promise<InFlight | null> {
    const { store } = this.process;
    const written = () => store.inFlight.filter((one) => one.unit !== null && !before.has(one));
    const isOver = reply instanceof Promise ? whetherOver(reply) : () => true;
    if ([...before].some(isKeyChange)) {
      await tick();
      const isWaiting = !isOver() && written().length === 0;
      insist(isWaiting, () => `${label} did not wait for a change of keys`);
      store.persist();
      store.answer();
    }
    for (let ticks = 0; ticks < MAX_TICKS && !isOver() && written().length === 0; ticks += 1) {
      if (ticks === FEW_TICKS && store.inFlight.length > 0) break;
      await tick();
    }
    const all = written();
    const own = all.length > 1 ? all.filter((one) => !isSummary(one)) : all;
    insist(own.length <= 1, () => `${label} was stored in ${own.length} units`);
    return own[0] ?? null;
  }

  /** Makes a call that has no effect. */
  async ask<Name extends CallName>(name: Name, given: CallOf<Name>): Promise<Reply> {
    const made = call(this.#authority, name, given);
    const reply = await (made instanceof Promise ? this.#pump(made) : made);
    if (reply.ok) this.signatures.assertAnswer(name, reply.value, this.decided.authority);
    return reply;
  }

  /** Begins a liveness flush, which stays in flight until everything settles. */
  async flushLiveness(): Promise<void> {
    if (this.#flush !== null) return;
    await this.begin((authority) => {
      this.proofs.noteTime();
      const flush = { isDone: false };
      this.#flush = flush;
      this.contacts.flushBegan();
      return authority.flush().then(() => {
        flush.isDone = true;
      });
    });
  }

  /** Begins work of the authority that no request causes; it stays in flight until everything settles. */
  async begin(work: (authority: OpenAuthority) => Promise<void>): Promise<void> {
    if (this.isChangingKeys) await this.settle();
    work(this.#authority).catch(() => undefined);
    await this.#turn();
  }

  /** Performs the key change that is due, or leaves it in flight. */
  async keepKeys(): Promise<void> {
    if (this.isChangingKeys) await this.settle();
    const { isKeyDue } = this;
    const before = new Set(this.process.store.inFlight);
    await this.begin(({ keepKeys }) => keepKeys());
    for (let ticks = 1; ticks < FEW_TICKS; ticks += 1) await this.#turn();
    const isDone = this.process.store.inFlight.some((one) => !before.has(one) && isKeyChange(one));
    insist(isDone === isKeyDue, () => `${isDone ? 'A' : 'No'} change of keys came when due`);
  }

  /** Followers check what is published, and thieves try what they can. */
  async lookAtKeys(isLast = false): Promise<void> {
    const { now, documents } = this;
    const { authority: keys } = this.shown;
    const genesis = documents.current('genesis');
    const authorityKeys = documents.current('authority_keys');
    const crl = documents.current('crl');
    if (genesis === null || authorityKeys === null || crl === null) return;
    const published = { now, keys, genesis, authorityKeys, crl };
    this.#followers.look(published);
    if (!isLast) return;
    this.#followers.lookFirst(published);
    await assertEdgeRefuses(keys, () => this.process.edge.trusted, now);
  }

  /** Flushes and answers everything in flight. */
  async settle(): Promise<void> {
    for (let ticks = 0; ticks < MAX_TICKS; ticks += 1) {
      this.process.store.persist();
      this.process.store.answer();
      await this.#turn();
      if (this.process.store.inFlight.length === 0) break;
    }
    const { pending } = this.#decisions;
    insist(pending.length === 0, () => `${pending[0]?.sent.label} is never answered`);
  }

  /** The process dies; some of what was in flight may have reached the disk. `again`: the next one dies at its start. */
  async crash(persisted: number, again: boolean): Promise<void> {
    this.#die(persisted);
    if (again) {
      this.process.begin();
      await tick();
      await tick();
      this.#decisions.attributeAll();
      this.#die(persisted);
      this.contacts.startDied(this.now);
    }
    await this.#open();
  }

  /** A flush fails: none of it is answered, and the process must end. */
  async failFlush(): Promise<void> {
    const { store } = this.process;
    const isLost = store.inFlight.some(({ isDurable }) => !isDurable);
    store.fail(new Error('The disk is full'));
    await tick();
    const answered = this.#decisions.pending.find(({ reply }) => reply?.ok === true);
    insist(answered === undefined, () => `${answered?.sent.label} was answered, and is not stored`);
    const hasEnded = !isLost || this.process.failure !== null;
    insist(hasEnded, () => 'The authority goes on after a failed flush');
    await this.crash(0, false);
  }

  async restart(): Promise<void> {
    await this.settle();
    this.proofs.noteTime();
    this.contacts.flushBegan();
    await this.#pump(this.#authority.close());
    this.proofs.closed();
    this.contacts.flushStored();
    this.#forgetMemory();
    await this.#open();
  }

  #moment(edgeNow: number): Moment {
    const { folder } = this.process;
    return {
      state: this.decided,
      shown: this.shown,
      edgeNow,
      now: this.now,
      ...this.proofs.known(),
      isHeld: (publicKey) => folder.has(publicKey),
      isOperator: (publicKey) => OPERATORS.some(({ key }) => key.publicKey === publicKey),
      laggards: () => ({ least: 0, most: this.#mostLaggards() }),
    };
  }

  /** Counts nodes with a certificate in use; which of them made contact is known only within bounds. */
  #mostLaggards(): number {
    const inUse = [this.decided, this.shown]
      .flatMap((state) => [...state.certificates.values()])
      .filter(({ revocation, expiresAt }) => revocation === null && expiresAt > this.now);
    return new Set(inUse.map(({ nodeKey }) => nodeKey)).size;
  }

  async #open(): Promise<void> {
    const opened = await this.#pump(this.process.begin());
    this.#authority = this.#defect.authority?.(opened) ?? opened;
    await this.#turn();
    this.contacts.restart(this.shown, this.now);
    this.proofs.opened();
  }

  /** The service follows a clock that was set, so notes made under the earlier time need not count. */
  #clockSet(byMs: number): void {
    this.#authority.clockSet(byMs);
    this.contacts.clockSet(this.now, byMs);
    this.#decisions.clockSet(this.now);
    this.proofs.clockSet();
  }

  #die(persisted: number): void {
    this.process.store.persist(persisted);
    this.#decisions.died();
    this.process.store.crash();
    this.proofs.died();
    this.#forgetMemory();
  }

  #forgetMemory(): void {
    this.#decisions.forget();
    this.license = null;
    this.documents.forgetCurrent();
    this.lapsedAgents.clear();
    this.proofs.forget();
    this.#flush = null;
  }

  /** Lets all pending work proceed, and collects the answers. */
  async #turn(): Promise<void> {
    await tick();
    this.#decisions.attributeAll();
    this.#decisions.takeAnswers();
    if (this.#flush?.isDone) {
      this.contacts.flushStored();
      this.#flush = null;
    }
    const { failure } = this.process;
    if (failure !== null) throw new Violation(`The authority gave up: ${failure}`);
  }

  /** Waits for the authority's own work while the disk works. */
  async #pump<T>(work: Promise<T>): Promise<T> {
    const isOver = whetherOver(work);
    for (let ticks = 0; ticks < MAX_TICKS; ticks += 1) {
      await this.#turn();
      if (isOver()) return work;
      this.process.store.persist();
      this.process.store.answer();
    }
    throw new Violation('Work of the authority does not end');
  }
}

function whetherOver(work: Promise<unknown>): () => boolean {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  work.then(over, over);
  return () => isOver;
}

function tick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
