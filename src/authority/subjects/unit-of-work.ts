/**
 * Everything that one command decides: next snapshots, spent nonces and audit entries. A command runs synchronously, so
 * no other command sees or disturbs an incomplete decision. The unit is then stored in one transaction. If the command
 * is refused, its changes to subjects are dropped with their audit entries, but the effects of the refusal itself (its
 * audit entry, the nonce of a genuine request) are stored.
 */
import { detached } from '../../base/detached.ts';
import type { JsonObject } from '../../base/json/value.ts';
import type { RequestIdentity } from '../../protocol/contract/claims.ts';
import type { AuditEvent } from '../../protocol/rows/audit-event.ts';
import type { KeptAnswer, SpentNonce, SubjectRemoval, SubjectWrite } from '../../store/store.ts';
import type { AuditDraft } from '../audit/audit.ts';
import {
  addressOf,
  type Subject,
  type SubjectKind,
  type SubjectTypes,
  transition,
} from './kinds.ts';
import { type Subjects, toSubject } from './subjects.ts';

/** A request that spent a nonce and whose answer is kept. */
export type SpentRequest = Omit<KeptAnswer, 'answer'>;

/** What is kept instead of the answer itself. */
export type KeptForm =
  /** The answer is a certificate, which can be rebuilt from its stored state. */
  | { readonly certificate: string }
  /** The answer contained secrets; this is the part that may be disclosed. */
  | { readonly done: JsonObject };

/** An effect that runs after the commit. If it returns a promise, the answer waits for it. */
export type Effect = () => Promise<void> | void;

/**
 * This is a class because every heartbeat creates one: methods on a prototype cost nothing per instance. The lists are
 * created on demand, because most units never need them.
 */
export class UnitOfWork {
  /** The time of the command, which reads the clock only once, in milliseconds since the epoch. */
  readonly at: number;
  readonly #subjects: Subjects;
  #staged: Map<string, SubjectWrite> | null = null;
  /** The staged writes as a list, cached after the first request. */
  #writes: readonly SubjectWrite[] | null = null;
  #removals: SubjectRemoval[] | null = null;
  #nonces: SpentNonce[] | null = null;
  #request: SpentRequest | null = null;
  #keptForm: KeptForm | null = null;
  #auditDrafts: AuditDraft[] | null = null;
  #refusalDraft: AuditDraft | null = null;
  #effects: Effect[] | null = null;
  #actorKeyId: string | null = null;
  #isExclusive = false;

  constructor(subjects: Subjects, at: number) {
    this.#subjects = subjects;
    this.at = at;
  }

  /** The subject, including the changes made by this command. */
  current<Kind extends SubjectKind>(kind: Kind, id: string): Subject<Kind> | undefined {
    const write = this.#staged?.get(addressOf(kind, id));
    return write === undefined
      ? this.#subjects.current(kind, id)
      : (toSubject(write) as Subject<Kind>);
  }

  /** The context of a subject that is known to exist because it has just accepted an event. */
  existing<Kind extends SubjectKind>(kind: Kind, id: string): SubjectTypes[Kind]['context'] {
    const subject = this.current(kind, id);
    if (subject === undefined) throw new Error(`${addressOf(kind, id)} does not exist`);
    return subject.context;
  }

  /** Sends an event to a subject and stages the result; returns what the machine emitted. */
  send<Kind extends SubjectKind>(
    kind: Kind,
    id: string,
    event: SubjectTypes[Kind]['event'],
  ): readonly SubjectTypes[Kind]['emitted'][] {
    const before = this.#subjects.current(kind, id);
    const staged = this.#staged?.get(addressOf(kind, id));
    const current = staged === undefined ? before : (toSubject(staged) as Subject<Kind>);
    const { next, emitted, changed } = transition(kind, current, event);
    if (changed) {
      const replaces = before?.version ?? 0;
      this.#staged ??= new Map();
      const snapshot = { ...next, context: ownTexts(kind, next.context, before?.context) };
      const write = { kind, id: detached(id), version: replaces + 1, replaces, snapshot };
      this.#staged.set(addressOf(kind, id), write);
      this.#writes = null;
    }
    return emitted;
  }

  /** Removes a subject that this unit does not otherwise change; its state machine is not involved. */
  remove(kind: SubjectKind, id: string): void {
    const subject = this.#subjects.current(kind, id);
    if (subject === undefined) throw new Error(`${kind} ${id} does not exist`);
    this.#removals ??= [];
    this.#removals.push({ kind, id, replaces: subject.version });
  }

  /** Attributes all further audit entries to the operator, who has proven possession of this key. */
  actAs(operatorKeyId: string): void {
    this.#actorKeyId = operatorKeyId;
  }

  audit(type: AuditEvent, details: JsonObject): void {
    this.#auditDrafts ??= [];
    this.#auditDrafts.push({ type, details, actorKeyId: this.#actorKeyId });
  }

  /** Audits why the command is about to be refused. */
  auditRefusal(type: AuditEvent, details: JsonObject): void {
    this.#refusalDraft = { type, details, actorKeyId: this.#actorKeyId };
  }

  /** Spends the nonce of the request; `identity` is null if no answer is kept. */
  spend(nonce: SpentNonce, identity: RequestIdentity | null): void {
    this.#nonces ??= [];
    this.#nonces.push(nonce);
    if (identity !== null) this.#request = { ...nonce, request: identity.request };
  }

  /** Sets what is kept for a repeated request instead of the answer's text. */
  keepAs(form: KeptForm): void {
    this.#keptForm = form;
  }

  /** Adds an effect that runs once the unit is on disk, before the answer is sent. */
  whenCommitted(effect: Effect): void {
    this.#effects ??= [];
    this.#effects.push(effect);
  }

  /** No other unit is decided before this one is on disk and has taken effect. */
  exclude(): void {
    this.#isExclusive = true;
  }

  /** Makes the answer wait for all earlier decisions to be on disk, even if this unit stores nothing itself. */
  awaitEarlierCommits(): void {
    this.whenCommitted(() => undefined);
  }

  /** Drops the changes to subjects, their audit entries and their effects. */
  refuse(): void {
    this.#staged = null;
    this.#writes = null;
    this.#removals = null;
    this.#auditDrafts = this.#refusalDraft && [this.#refusalDraft];
    this.#effects = null;
    this.#keptForm = null;
    this.#isExclusive = false;
  }

  get isExclusive(): boolean {
    return this.#isExclusive;
  }

  get isEmpty(): boolean {
    return (
      this.#staged === null &&
      this.#removals === null &&
      this.#nonces === null &&
      this.#auditDrafts === null
    );
  }

  get removals(): readonly SubjectRemoval[] {
    return this.#removals ?? [];
  }

  get writes(): readonly SubjectWrite[] {
    this.#writes ??= this.#staged === null ? [] : [...this.#staged.values()];
    return this.#writes;
  }

  get nonces(): readonly SpentNonce[] {
    return this.#nonces ?? [];
  }

  /** The request whose answer is kept, if any. */
  get request(): SpentRequest | null {
    return this.#request;
  }

  get keptForm(): KeptForm | null {
    return this.#keptForm;
  }

  get auditDrafts(): readonly AuditDraft[] {
    return this.#auditDrafts ?? [];
  }

  get effects(): readonly Effect[] {
    return this.#effects ?? [];
  }
}

/** Kinds with lists that come from requests. Certificates get theirs from invites, and many share one list. */
const HAVE_LISTS: ReadonlySet<SubjectKind> = new Set<SubjectKind>([
  'invite',
  'node-description',
  'agent-registration',
  'recognition-treaty',
]);

/** A copy of the context that does not keep the body of the request in memory. */
function ownTexts(kind: SubjectKind, context: object, before: object = {}): object {
  const own: { [member: string]: unknown } = { ...context };
  const known = before as { readonly [member: string]: unknown };
  for (const name in own) {
    const value = own[name];
    if (value === known[name]) continue;
    if (typeof value === 'string') own[name] = detached(value);
    else if (Array.isArray(value) && HAVE_LISTS.has(kind)) own[name] = ownList(value);
  }
  return own;
}

/** By the lists of requests: each is copied once for all invites of a request. */
const ownLists = new WeakMap<readonly unknown[], readonly unknown[]>();

function ownList(given: readonly unknown[]): readonly unknown[] {
  const known = ownLists.get(given);
  if (known !== undefined) return known;
  const own = given.map((item) => (typeof item === 'string' ? detached(item) : item));
  ownLists.set(given, own);
  return own;
}
