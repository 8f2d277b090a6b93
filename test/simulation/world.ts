/** What operators, nodes and readers do with the authority: requests overlap, get lost and are repeated. */
import { type CallName, type CallOf, call, type Reply } from './authority-calls.ts';
import type { Pending } from './decisions.ts';
import { Followers } from './followers.ts';
import { assertEdgeRefuses } from './forgeries.ts';
import type { InFlight } from './memory-store.ts';
import { dueNow } from './model/authority-keys.ts';
import type { Made } from './model/state.ts';
import { isConsistent, isKeyChange, isSummary, newIds, storedTitle, titleOf } from './outcomes.ts';
import type { Defect } from './process.ts';
import type { Stamp } from './requests.ts';
import type { Sent } from './sent.ts';
import { MAX_TICKS, Service, tick } from './service.ts';
import { insist } from './violation.ts';

/** As many as it takes to prepare a change of keys. */
const FEW_TICKS = 4;

export class World extends Service {
  readonly #followers: Followers;
  #stamps = 0;

  private constructor(defect: Defect, takesOver: boolean) {
    super(defect, takesOver);
    this.#followers = new Followers(() => this.now, defect.client);
  }

  /** `takesOver`: each start continues with a followed state instead of reading it. */
  static async start(defect: Defect = {}, takesOver = false): Promise<World> {
    const world = new World(defect, takesOver);
    await world.open();
    return world;
  }

  /** Addressed to the key that is published as the current one. */
  stamp(): Stamp {
    this.#stamps += 1;
    const authorityKeys = {
      get audiences() {
        return edge().audiences;
      },
    };
    const edge = () => this.process.edge;
    const audience = this.process.edge.current;
    return { now: this.now, nonce: `nonce-${this.#stamps}`, audience, authorityKeys };
  }

  /** Sends a request, and leaves it in flight if it must be stored. */
  async send(sent: Sent, late: number): Promise<void> {
    const edgeNow = this.now;
    const perform = sent.judge(edgeNow);
    if (perform === null) return;
    this.runtime.advance(late);
    this.proofs.noteTime();
    const possible = sent.predict(this.moment(edgeNow));
    const { authority } = this.decided;
    if (sent.proof !== undefined) this.proofs.noteTried(sent.proof);
    const before = new Set(this.process.store.inFlight);
    const reply = perform(this.authority);
    const write = await this.#decision(sent, reply, before);
    const made: Made = (kind) => newIds(write?.unit ?? null, kind);
    const outcomes = possible.filter((one) => isConsistent(one, write, reply));
    insist(
      outcomes.length > 0,
      () =>
        `${sent.label} ended otherwise than ${possible.map(titleOf).join(' or ')}: ${storedTitle(write, reply)}`,
    );
    const pending: Pending = { sent, outcomes, made, authority, decidedAt: this.now, reply: null };
    this.decisions.add(pending, write);
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
    await this.turn();
  }

  /** The unit that decides a request, if any. Some take a few ticks to prepare, and all wait while the keys change. */
  async #decision(
    { label }: Sent,
    reply: Reply | Promise<Reply>,
    before: ReadonlySet<InFlight>,
  ): Promise<InFlight | null> {
    const written = () =>
      this.process.store.inFlight.filter((one) => one.unit !== null && !before.has(one));
    let isOver = !(reply instanceof Promise);
    if (reply instanceof Promise) {
      const over = () => {
        isOver = true;
      };
      reply.then(over, over);
    }
    if ([...before].some(isKeyChange)) {
      await tick();
      insist(!isOver && written().length === 0, () => `${label} did not wait for a change of keys`);
      this.process.store.persist();
      this.process.store.answer();
    }
    for (let ticks = 0; ticks < MAX_TICKS && !isOver && written().length === 0; ticks += 1) {
      if (ticks === FEW_TICKS && this.process.store.inFlight.length > 0) break;
      await tick();
    }
    const all = written();
    const own = all.length > 1 ? all.filter((one) => !isSummary(one)) : all;
    insist(own.length <= 1, () => `${label} was stored in ${own.length} units`);
    return own[0] ?? null;
  }

  /** Whether nothing is decided at present, because the authority's keys are changing. */
  get isChangingKeys(): boolean {
    return this.process.store.inFlight.some(isKeyChange);
  }

  /** Begins a liveness flush, which stays in flight until everything settles. */
  async flushLiveness(): Promise<void> {
    if (this.flush !== null) return;
    await this.#afterKeyChange();
    this.proofs.noteTime();
    const flush = { isDone: false };
    this.flush = flush;
    this.contacts.flushBegan();
    void this.authority.flush().then(
      () => {
        flush.isDone = true;
      },
      () => undefined,
    );
    await this.turn();
  }

  /** Removes what ended long ago; the removal stays in flight until everything settles. */
  async sweep(): Promise<void> {
    await this.#afterKeyChange();
    this.authority.sweep().catch(() => undefined);
    await this.turn();
  }

  /** Republishes lists in time; this stays in flight until everything settles. */
  async renewLists(): Promise<void> {
    await this.#afterKeyChange();
    this.authority.renewLists().catch(() => undefined);
    await this.turn();
  }

  /** Performs the key change that is due, or leaves it in flight. */
  async keepKeys(): Promise<void> {
    await this.#afterKeyChange();
    const due = dueNow(this.moment(this.now));
    const before = new Set(this.process.store.inFlight);
    this.authority.keepKeys().catch(() => undefined);
    for (let ticks = 0; ticks < FEW_TICKS; ticks += 1) await this.turn();
    const isDone = this.process.store.inFlight.some((one) => !before.has(one) && isKeyChange(one));
    insist(isDone === (due !== null), () => `${isDone ? 'A' : 'No'} change of keys came when due`);
  }

  get isKeyDue(): boolean {
    return dueNow(this.moment(this.now)) !== null;
  }

  async #afterKeyChange(): Promise<void> {
    if (this.isChangingKeys) await this.settle();
  }

  /** Makes a call that has no effect. */
  async ask<Name extends CallName>(name: Name, given: CallOf<Name>): Promise<Reply> {
    const made = call(this.authority, name, given);
    const reply = await (made instanceof Promise ? this.pump(made) : made);
    if (reply.ok) this.signatures.assertAnswer(name, reply.value, this.decided.authority);
    return reply;
  }

  /** Followers check what is published, and thieves try what they can. */
  async lookAtKeys(isLast = false): Promise<void> {
    const { now, documents } = this;
    const { authority: keys } = this.shown;
    const [genesis, authorityKeys, crl] = [
      documents.current('genesis'),
      documents.current('authority_keys'),
      documents.current('crl'),
    ];
    if (genesis === null || authorityKeys === null || crl === null) return;
    const published = { now, keys, genesis, authorityKeys, crl };
    this.#followers.look(published);
    if (!isLast) return;
    this.#followers.lookFirst(published);
    await assertEdgeRefuses(keys, () => this.process.edge.trusted, now);
  }

  noteAccepted(scope: string, nonce: string): void {
    this.proofs.noteAccepted(scope, nonce);
  }
}
