/**
 * The real authority on a disk that can fail, beside the model of what it should do. Requests overlap, are
 * lost and are repeated; after each step the two are compared.
 */
import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../../src/base/json/value.ts';
import type { AuthoritySigner } from '../../src/base/signer/authority-signer.ts';
import type { NetworkTrust } from '../../src/client/followed-keys.ts';
import { createHeartbeatSessions, type HeartbeatSessions } from '../../src/edge/auth/session.ts';
import { type KnownAuthorityKeys, publishedAuthorityKeys } from '../../src/edge/authority-keys.ts';
import { documentText } from '../../src/protocol/contract/documents.ts';
import {
  createDocumentCache,
  createDocumentPublisher,
  type DocumentPublisher,
} from '../../src/protocol/contract/publications.ts';
import { followSessionSecret } from '../../src/server/session-secrets.ts';
import type { Store, Unit } from '../../src/store/store.ts';
import {
  type CallName,
  type CallOf,
  call,
  type OpenAuthority,
  open,
  type Reply,
} from './authority-calls.ts';
import { backgroundChange } from './background.ts';
import { Followers } from './followers.ts';
import { assertEdgeRefuses } from './forgeries.ts';
import { KeyFolder } from './key-folder.ts';
import { emptyDisk, type InFlight, type MemoryStore, openMemoryStore } from './memory-store.ts';
import { NONCES_HELD, type Proof, TOLERANCE } from './model/access.ts';
import { type AuthorityKeys, dueNow, firstKeys } from './model/authority-keys.ts';
import { Contacts, FLUSH_INTERVAL, type Snapshot } from './model/contacts.ts';
import { Instants } from './model/instants.ts';
import {
  type Agent,
  type Change,
  copyOf,
  emptyState,
  type Made,
  type Moment,
  type Outcome,
  type State,
} from './model/state.ts';
import { PublishedDocuments } from './published-documents.ts';
import { AUTHORITY, OPERATORS, ROOT, type Stamp } from './requests.ts';
import { type SimulatedRuntime, simulatedRuntime } from './runtime.ts';
import { SESSION_LASTS } from './session-requests.ts';
import { SignatureChecks } from './signatures.ts';
import { Understudy } from './understudy.ts';
import { insist, Violation } from './violation.ts';

/** A request that can be sent again, byte for byte. */
export interface Sent {
  readonly label: string;
  /** Whether it is worth sending again: it is signed. */
  readonly isSigned: boolean;
  /** Of a node. */
  readonly proof?: Proof;
  /** What the edge makes of it: null when it goes no further. */
  judge(edgeNow: number): ((authority: OpenAuthority) => Reply | Promise<Reply>) | null;
  /** All the ways that the request may end. */
  predict(moment: Moment): readonly Outcome[];
  /** Called when the request may succeed, before its answer is looked at. */
  begun?(): void;
  /** What the client, or a reader, knows from a successful answer. */
  learn?(value: unknown, made: Made, decidedAt: number): void;
  refused?(details: JsonObject): void;
}

interface Pending {
  readonly sent: Sent;
  decidedAt: number;
  readonly outcomes: readonly Outcome[];
  readonly made: Made;
  /** The keys of the authority when it was decided. */
  readonly authority: AuthorityKeys;
  reply: Reply | null;
}

/** A change that is decided and waits for the disk. */
interface Waiting {
  readonly write: InFlight;
  readonly change: Change;
  readonly made: Made;
  readonly by: Pending | null;
}

/** A defect that is planted on purpose, around the authority. */
export interface Defect {
  readonly store?: (store: MemoryStore) => Store;
  readonly signer?: (signer: AuthoritySigner) => AuthoritySigner;
  readonly edge?: (keys: KnownAuthorityKeys) => KnownAuthorityKeys;
  readonly sessions?: (sessions: HeartbeatSessions) => HeartbeatSessions;
  /** What readers get in place of a document. */
  readonly published?: (name: string, record: JsonObject) => JsonObject;
  /** A client that follows the keys. */
  readonly client?: (create: () => NetworkTrust) => NetworkTrust;
  readonly authority?: (authority: OpenAuthority) => OpenAuthority;
}

/** A flush of liveness that is under way. */
interface Flush {
  readonly began: Snapshot;
  /** Null until it has written. */
  wrote: Snapshot | null;
  isDone: boolean;
}

const MAX_TICKS = 1000;
/** As long as it takes to prepare a change of keys. */
const FEW_TICKS = 4;

export class World {
  readonly runtime: SimulatedRuntime = simulatedRuntime();
  readonly disk = emptyDisk();
  readonly folder = new KeyFolder();
  readonly contacts = new Contacts();
  readonly instants = new Instants();
  /** Those of the edge. */
  sessions!: HeartbeatSessions;
  /** All that was decided, and all that was answered for. */
  decided: State = emptyState(
    OPERATORS.map(({ keyId, tier }) => [keyId, tier]),
    firstKeys(ROOT.publicKey, AUTHORITY.publicKey),
  );
  shown: State = copyOf(this.decided);
  /** The data-license policy in force; it lives in memory only. */
  license: string | null = null;
  readonly signatures = new SignatureChecks();
  readonly documents = new PublishedDocuments((name, record) =>
    this.signatures.assertDocument(name, record, [this.shown.authority, this.decided.authority]),
  );
  /** Registrations that were seen to be expired: they do not come back when the clock is set back. */
  readonly lapsedAgents = new Set<Agent>();
  /** `scope nonce` of accepted requests that are not durable, such as heartbeats. */
  readonly #accepted = new Set<string>();
  /** Nonces of all that nodes have sent. */
  readonly #tried = new Set<string>();
  /** Per node key, the newest instant that a request was signed at. */
  readonly #newestSigned = new Map<string, number>();
  readonly #forgottenUntil = new Map<string, number>();
  /** How long heartbeats that a crash made unknown can be sent again. */
  #lost: { readonly until: number; readonly untilElapsed: number } | null = null;
  /** Node requests that were signed up to this instant may be refused, although nobody sent them before. */
  #signedBeforeStart = 0;
  /** The latest time that the service has gone by. */
  #latest = 0;
  readonly #followers: Followers;
  readonly #defect: Defect;
  #store!: MemoryStore;
  #edge!: KnownAuthorityKeys;
  #authority!: OpenAuthority;
  #pending: Pending[] = [];
  #waiting: Waiting[] = [];
  #attributed = new WeakSet<InFlight>();
  #flush: Flush | null = null;
  /** Null where each start reads the state. */
  #understudy: Understudy | null = null;
  #failure: unknown = null;
  #stamps = 0;

  private constructor(defect: Defect, takesOver: boolean) {
    this.#defect = defect;
    this.#followers = new Followers(() => this.now, defect.client);
    if (takesOver) this.#understudy = this.#newUnderstudy();
  }

  /** `takesOver`: each start goes on with a state that was followed. */
  static async start(defect: Defect = {}, takesOver = false): Promise<World> {
    const world = new World(defect, takesOver);
    await world.#open();
    return world;
  }

  get now(): number {
    return this.runtime.now();
  }

  /** Signed for the key that is published as the current one. */
  stamp(): Stamp {
    this.#stamps += 1;
    const authorityKeys = {
      get audiences() {
        return edge().audiences;
      },
    };
    const edge = () => this.#edge;
    const audience = this.#edge.current;
    return { now: this.now, nonce: `nonce-${this.#stamps}`, audience, authorityKeys };
  }

  /** Sends a request, and leaves it in flight where it has to be stored. */
  async send(sent: Sent, late: number): Promise<void> {
    const edgeNow = this.now;
    this.#noteTime();
    const perform = sent.judge(edgeNow);
    if (perform === null) return;
    this.runtime.advance(late);
    const possible = sent.predict(this.#moment(edgeNow));
    const { authority } = this.decided;
    if (sent.proof !== undefined) this.#noteTried(sent.proof);
    const before = new Set(this.#store.inFlight);
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
    if (write !== null) this.#attribute(write, outcomes[0]?.change ?? null, made, pending);
    this.#pending.push(pending);
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

  /** The unit by which a request is decided, if any. A few are prepared before, and all wait while the keys change. */
  async #decision(
    { label }: Sent,
    reply: Reply | Promise<Reply>,
    before: ReadonlySet<InFlight>,
  ): Promise<InFlight | null> {
    const written = () =>
      this.#store.inFlight.filter((one) => one.unit !== null && !before.has(one));
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
      this.#store.persist();
      this.#store.answer();
    }
    for (let ticks = 0; ticks < MAX_TICKS && !isOver && written().length === 0; ticks += 1) {
      if (ticks === FEW_TICKS && this.#store.inFlight.length > 0) break;
      await tick();
    }
    const all = written();
    const own = all.length > 1 ? all.filter((one) => !isSummary(one)) : all;
    insist(own.length <= 1, () => `${label} was stored in ${own.length} units`);
    return own[0] ?? null;
  }

  /** Whether nothing is decided, because the keys of the authority change. */
  get isChangingKeys(): boolean {
    return this.#store.inFlight.some(isKeyChange);
  }

  /** Everything in flight reaches the disk and is answered. */
  async settle(): Promise<void> {
    for (let ticks = 0; ticks < MAX_TICKS; ticks += 1) {
      this.#store.persist();
      this.#store.answer();
      await this.#turn();
      if (this.#store.inFlight.length === 0) break;
    }
    insist(this.#pending.length === 0, () => `${this.#pending[0]?.sent.label} is never answered`);
  }

  persist(count: number): void {
    this.#store.persist(count);
  }

  /** Begins a flush of liveness, which is in flight until everything settles. */
  async flushLiveness(): Promise<void> {
    if (this.#flush !== null) return;
    await this.#afterKeyChange();
    this.#noteTime();
    const flush: Flush = { began: this.contacts.snapshot(), wrote: null, isDone: false };
    this.#flush = flush;
    void this.#authority.flush().then(
      () => {
        flush.isDone = true;
      },
      () => undefined,
    );
    await this.#turn();
  }

  /** What has ended for long is removed; that is in flight until everything settles. */
  async sweep(): Promise<void> {
    await this.#afterKeyChange();
    this.#authority.sweep().catch(() => undefined);
    await this.#turn();
  }

  /** Lists are published again in time; that is in flight until everything settles. */
  async renewLists(): Promise<void> {
    await this.#afterKeyChange();
    this.#authority.renewLists().catch(() => undefined);
    await this.#turn();
  }

  /** What is due for the keys of the authority is done, or in flight. */
  async keepKeys(): Promise<void> {
    await this.#afterKeyChange();
    const due = dueNow(this.#moment(this.now));
    const before = new Set(this.#store.inFlight);
    this.#authority.keepKeys().catch(() => undefined);
    for (let ticks = 0; ticks < FEW_TICKS; ticks += 1) await this.#turn();
    const isDone = this.#store.inFlight.some((one) => !before.has(one) && isKeyChange(one));
    insist(isDone === (due !== null), () => `${isDone ? 'A' : 'No'} change of keys came when due`);
  }

  get isKeyDue(): boolean {
    return dueNow(this.#moment(this.now)) !== null;
  }

  async #afterKeyChange(): Promise<void> {
    if (this.isChangingKeys) await this.settle();
  }

  /** The process dies; some of what was in flight may have reached the disk. */
  async crash(persisted: number, again: boolean): Promise<void> {
    this.#die(persisted);
    if (again) {
      this.#begin();
      await tick();
      await tick();
      this.#attributeAll();
      this.#die(persisted);
      this.contacts.startDied(this.now);
    }
    await this.#open();
  }

  /** A flush fails: nothing of it is answered, and the process has to end. */
  async failFlush(): Promise<void> {
    const isLost = this.#store.inFlight.some(({ isDurable }) => !isDurable);
    this.#store.fail(new Error('The disk is full'));
    await tick();
    const answered = this.#pending.find(({ reply }) => reply?.ok === true);
    insist(answered === undefined, () => `${answered?.sent.label} was answered, and is not stored`);
    insist(!isLost || this.#failure !== null, () => 'The authority goes on after a failed flush');
    await this.crash(0, false);
  }

  /** Whoever is to take over looks at the disk. */
  follow(withLiveness: boolean): void {
    this.#understudy?.follow(withLiveness);
  }

  async restart(): Promise<void> {
    await this.settle();
    this.#noteTime();
    const snapshot = this.contacts.snapshot();
    await this.#pump(this.#authority.close());
    const { until = -1, untilElapsed = -1 } = this.#lost ?? {};
    if (this.now > until && this.runtime.elapsed() > untilElapsed) this.#lost = null;
    this.contacts.save(snapshot, snapshot);
    this.#forgetMemory();
    await this.#open();
  }

  /** Asks what has no effect. */
  async ask<Name extends CallName>(name: Name, given: CallOf<Name>): Promise<Reply> {
    const made = call(this.#authority, name, given);
    const reply = await (made instanceof Promise ? this.#pump(made) : made);
    if (reply.ok) this.signatures.assertAnswer(name, reply.value, this.decided.authority);
    return reply;
  }

  /** Those who follow the keys look at what is published, and thieves try what they can. */
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
    await assertEdgeRefuses(keys, () => this.#edge.trusted, now);
  }

  noteAccepted(scope: string, nonce: string): void {
    this.#accepted.add(`${scope} ${nonce}`);
  }

  #noteTime(): void {
    this.#latest = Math.max(this.#latest, this.now);
  }

  #noteTried({ holder, nonce, signedAt }: Proof): void {
    this.#tried.add(nonce);
    this.#newestSigned.set(holder, Math.max(this.#newestSigned.get(holder) ?? 0, signedAt));
  }

  #moment(edgeNow: number): Moment {
    return {
      state: this.decided,
      shown: this.shown,
      edgeNow,
      now: this.now,
      mayBeForgotten: (signedAt) => signedAt <= this.#latest - NONCES_HELD,
      forgottenUntil: (nodeKey) =>
        Math.max(
          this.#signedBeforeStart,
          this.#forgottenUntil.get(nodeKey) ?? 0,
          this.instants.newestInSessions(nodeKey),
        ),
      wasTried: (nonce) => this.#tried.has(nonce),
      wasAccepted: (scope, nonce) => this.#accepted.has(`${scope} ${nonce}`),
      isHeld: (publicKey) => this.folder.has(publicKey),
      isOperator: (publicKey) => OPERATORS.some(({ key }) => key.publicKey === publicKey),
      laggards: () => ({ least: 0, most: this.decided.certificates.size }),
    };
  }

  #begin(): Promise<OpenAuthority> {
    const { lastOwner } = this.disk;
    const ready = this.#understudy?.ready(lastOwner) ?? null;
    const documents = this.#understudy?.publisher ?? createDocumentPublisher();
    const signer = this.#understudy?.signer ?? this.#newSigner();
    const memory = openMemoryStore(this.disk, 'by_hand');
    this.#store = memory;
    if (this.#understudy !== null) this.#understudy = this.#newUnderstudy();
    this.#failure = null;
    this.runtime.restart(() => this.#clockSet());
    const cache = createDocumentCache(documents.versions);
    documents.follow(cache.take);
    const { genesis } = this.folder;
    const edge = publishedAuthorityKeys(genesis, genesis.network_authority.public_key, cache);
    this.#edge = this.#defect.edge?.(edge) ?? edge;
    documents.follow(({ name, document }) => {
      const record = JSON.parse(documentText(document)) as JsonObject;
      this.documents.take(name, this.#defect.published?.(name, record) ?? record);
    });
    this.sessions = this.#newSessions(signer, documents);
    const surroundings = {
      signer,
      folder: this.folder,
      store: this.#defect.store?.(memory) ?? memory,
      runtime: this.runtime,
      publisher: documents,
      fatal: (_where: string, cause: unknown) => {
        this.#failure = cause;
      },
    };
    const opening = open(surroundings, ready);
    opening.catch(() => undefined);
    return opening;
  }

  #newSessions(signer: AuthoritySigner, publisher: DocumentPublisher): HeartbeatSessions {
    const created = createHeartbeatSessions({ lastsMs: SESSION_LASTS, runtime: this.runtime });
    const sessions = this.#defect.sessions?.(created) ?? created;
    const { genesis } = this.folder;
    followSessionSecret({ signer, genesis, publisher, use: sessions.use });
    return sessions;
  }

  #newSigner(): AuthoritySigner {
    const signer = this.folder.signer();
    return this.#defect.signer?.(signer) ?? signer;
  }

  #newUnderstudy(): Understudy {
    return new Understudy(this.disk, this.runtime, this.folder, this.#newSigner());
  }

  async #open(): Promise<void> {
    const opened = await this.#pump(this.#begin());
    this.#authority = this.#defect.authority?.(opened) ?? opened;
    await this.#turn();
    this.contacts.restart(this.shown, this.now);
    this.#noteLost();
    this.instants.start(this.now, this.#lost === null ? -Infinity : this.#signedBeforeStart);
    this.#noteTime();
  }

  /** As long as what a crash lost could be sent again, the next start takes care, too. */
  #noteLost(): void {
    if (this.#lost === null) return;
    const { now, runtime } = this;
    const isBehind = now < this.#latest;
    this.#signedBeforeStart = isBehind ? this.#latest + 2 * FLUSH_INTERVAL : now;
    this.#lost = { until: now + TOLERANCE, untilElapsed: runtime.elapsed() + TOLERANCE };
  }

  /** The service follows a clock that was set: what was noted under the other time need not count. */
  #clockSet(): void {
    this.#authority.clockSet();
    this.contacts.clockSet(this.now);
    for (const one of this.#pending) one.decidedAt = Math.min(one.decidedAt, this.now);
    this.#signedBeforeStart = Math.max(this.#latest, this.now) + TOLERANCE;
  }

  #die(persisted: number): void {
    this.#store.persist(persisted);
    for (const { write, change, made } of this.#waiting) {
      if (write.isDurable) change(this.shown, made);
    }
    const saved = this.#store.inFlight.find(({ what }) => what === 'liveness')?.isDurable;
    if (saved === true) this.#saveContacts();
    this.#store.crash();
    this.#lost = { until: Infinity, untilElapsed: Infinity };
    this.instants.crash();
    this.#forgetMemory();
  }

  #forgetMemory(): void {
    this.decided = copyOf(this.shown);
    this.license = null;
    this.documents.forgetCurrent();
    this.lapsedAgents.clear();
    for (const [key, at] of this.#newestSigned) this.#forgottenUntil.set(key, at);
    this.#pending = [];
    this.#waiting = [];
    this.#flush = null;
  }

  /** Lets everything that can go on do so, and takes what was answered. */
  async #turn(): Promise<void> {
    await tick();
    this.#attributeAll();
    this.#takeAnswers();
    if (this.#failure !== null) throw new Violation(`The authority gave up: ${this.#failure}`);
  }

  /** Waits for work of the authority itself, on a disk that works. */
  async #pump<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const done = () => {
      isDone = true;
    };
    work.then(done, done);
    for (let ticks = 0; ticks < MAX_TICKS; ticks += 1) {
      await this.#turn();
      if (isDone) return work;
      this.#store.persist();
      this.#store.answer();
    }
    throw new Violation('Work of the authority does not end');
  }

  #attribute(write: InFlight, change: Change | null, made: Made, by: Pending | null): void {
    this.#attributed.add(write);
    const { unit } = write;
    if (unit === null) return;
    const applied = change ?? backgroundChange(unit, this.#moment(this.now));
    applied(this.decided, made);
    this.#waiting.push({ write, change: applied, made, by });
  }

  #attributeAll(): void {
    for (const write of this.#store.inFlight) {
      if (this.#attributed.has(write)) continue;
      const { unit } = write;
      this.#attribute(write, null, (kind) => newIds(unit, kind), null);
    }
  }

  /** What was answered is from now on what every reader sees, also after a crash. */
  #takeAnswers(): void {
    const inFlight = new Set(this.#store.inFlight);
    const last = this.#waiting.findLastIndex(
      ({ write, by }) => !inFlight.has(write) || (by !== null && by.reply !== null),
    );
    for (const { change, made } of this.#waiting.splice(0, last + 1)) change(this.shown, made);
    const answered = this.#pending.filter(({ reply }) => reply !== null);
    this.#pending = this.#pending.filter(({ reply }) => reply === null);
    for (const pending of answered) this.#check(pending);
    if (
      this.#flush?.wrote === null &&
      this.#store.inFlight.some(({ what }) => what === 'liveness')
    ) {
      this.#flush.wrote = this.contacts.snapshot();
    }
    if (this.#flush?.isDone) this.#saveContacts();
  }

  #saveContacts(): void {
    if (this.#flush === null) return;
    const { began, wrote } = this.#flush;
    if (wrote !== null) this.contacts.save(began, wrote);
    this.#flush = null;
  }

  #check({ sent, outcomes, reply, made, decidedAt, authority }: Pending): void {
    if (reply === null) return;
    if (reply.ok) this.signatures.assertAnswer(sent.label, reply.value, authority);
    else sent.refused?.(reply.details);
    const fitting = outcomes.find((outcome) => fits(outcome, reply, made));
    insist(
      fitting !== undefined,
      () =>
        `${sent.label}: ${JSON.stringify(reply)} instead of ${outcomes.map(titleOf).join(' or ')}`,
    );
    if (reply.ok) sent.learn?.(reply.value, made, decidedAt);
  }
}

/** Also the only change during which nothing else is decided. */
function isKeyChange({ unit }: InFlight): boolean {
  const kinds = unit?.subjects.map(({ kind }) => kind) ?? [];
  return kinds.includes('authority-key') && kinds.includes('crl');
}

function fits({ refusal, answer }: Outcome, reply: Reply, made: Made): boolean {
  if (!reply.ok) return reply.refusal === refusal;
  if (refusal !== null) return false;
  const value = reply.value as { readonly [member: string]: unknown };
  return Object.entries(answer(made)).every(([name, wanted]) =>
    isDeepStrictEqual(value[name], wanted),
  );
}

/** Whether what was stored, or answered at once, can be this outcome. */
function isConsistent(
  { refusal, change, changesSigners }: Outcome,
  write: InFlight | null,
  reply: Reply | Promise<Reply>,
): boolean {
  if ((changesSigners === true) !== (write !== null && isKeyChange(write))) return false;
  const unit = write?.unit ?? null;
  if (change !== null) return unit !== null && unit.subjects.length + unit.nonces.length > 0;
  if (!(reply instanceof Promise)) return reply.ok === (refusal === null);
  // The nonce of a genuine request may be stored although the request is refused.
  return refusal === null || unit === null || unit.subjects.length === 0;
}

function newIds(unit: Unit | null, kind: string): readonly string[] {
  if (unit === null) return [];
  return unit.subjects
    .filter((subject) => subject.kind === kind && subject.version === 1)
    .map(({ id }) => id);
}

function titleOf({ refusal, change }: Outcome): string {
  return `${refusal ?? 'success'}${change === null ? '' : ', stored'}`;
}

function storedTitle(write: InFlight | null, reply: Reply | Promise<Reply>): string {
  const unit = write?.unit ?? null;
  const names = unit?.subjects.map(({ kind, snapshot }) => `${kind} ${snapshot.value}`) ?? [];
  const answer = reply instanceof Promise ? 'later' : JSON.stringify(reply);
  return `stored [${names.join(', ')}], ${unit?.nonces.length ?? 0} nonces; answered ${answer}`;
}

function tick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Whether it only counts earlier refusals: the authority writes it by itself, also after waiting for the same change. */
function isSummary({ unit }: InFlight): boolean {
  const events = unit?.audit.map(({ entry }) => entry.event_type) ?? [];
  return events.length > 0 && events.every((event) => event === 'refusals_summarized');
}
