/**
 * The only way to execute a call: the call is decided synchronously, its unit of work is stored in one transaction,
 * and only then is the answer sent.
 */

import type { Policy } from '../../../machines/policy.ts';
import { jsonText, type Writable } from '../../base/json/write.ts';
import type { Answer } from '../../protocol/contract/calls.ts';
import { GRAPH_DOCUMENTS, publishedDocument } from '../../protocol/contract/documents.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { KeptAnswer, SealedEntry, SubjectWrite } from '../../store/store.ts';
import { changesDashboard } from '../audit/recent-changes.ts';
import type { Authority } from '../authority.ts';
import type { ReplayRule, SentRequest } from '../replay/replay.ts';
import { Sliced } from '../subjects/sliced.ts';
import { UnitOfWork } from '../subjects/unit-of-work.ts';
import { signedAgain, storedCertificate } from './issuer.ts';

/** Returned by a query whose answer is not available yet: it must be read from the store, or has yet to happen. */
export class AsyncResult {
  readonly made: Promise<Writable>;

  constructor(made: Promise<Writable>) {
    this.made = made;
  }
}

/**
 * Decides one call; its result is sent as the answer once the unit is stored. Only queries, which stage nothing,
 * return sliced or asynchronous work.
 */
export type Run<Call> = (
  na: Authority,
  unit: UnitOfWork,
  call: Call,
) => Writable | Sliced | AsyncResult | Repeated;

/** Executes one call; returns a promise only if something must reach the disk first, or the answer takes longer. */
export function execute<Call>(na: Authority, run: Run<Call>, call: Call): Answer | Promise<Answer> {
  const { exclusive } = na;
  if (exclusive !== null) return exclusive.then(() => execute(na, run, call));
  const unit = new UnitOfWork(na.subjects, na.runtime.now());
  const answer = decide(na, unit, run, call);
  if (!unit.isEmpty) {
    const committed = commit(na, unit, answersToKeep(na, unit, answer));
    na.lastCommit = committed;
    if (unit.isExclusive) excludeUntil(na, committed);
    return committed.then((effects) => onceDone(effects, answer));
  }
  if (unit.effects.length === 0) return answer;
  // The command may have read state that is not on disk yet; its answer waits until it is.
  return na.lastCommit.then(() => onceDone(takeEffect(unit), answer));
}

/** A commit that fails ends the process. */
function excludeUntil(na: Authority, committed: Promise<unknown>): void {
  const over = () => {
    na.exclusive = null;
  };
  na.exclusive = committed.then(over, over);
}

/** Effects that have not finished yet. */
type Pending = readonly Promise<void>[];

const NONE: Pending = [];

function onceDone(effects: Pending, answer: Answer | Promise<Answer>): Answer | Promise<Answer> {
  return effects.length === 0 ? answer : Promise.all(effects).then(() => answer);
}

/** Runs the effects of a unit, and returns those that have not finished yet. */
function takeEffect({ effects }: UnitOfWork): Pending {
  let pending = NONE;
  for (const effect of effects) {
    const done = effect();
    if (done instanceof Promise) pending = [...pending, done];
  }
  return pending;
}

function decide<Call>(
  na: Authority,
  unit: UnitOfWork,
  run: Run<Call>,
  call: Call,
): Answer | Promise<Answer> {
  try {
    const made = run(na, unit, call);
    if (made instanceof Repeated) return made.answer;
    if (made instanceof AsyncResult) return later(made.made);
    return made instanceof Sliced ? later(na.sliceQueue.run(made)) : answered(made);
  } catch (cause) {
    const answer = refused(cause);
    unit.refuse();
    // The reason may be a decision that is not on disk yet.
    if (na.subjects.hasPending()) unit.awaitEarlierCommits();
    return answer;
  }
}

function later(made: Promise<Writable>): Promise<Answer> {
  const answer = made.then(answered, refused);
  // The answer waits for the commit of a spent nonce. If it fails before, nobody is listening yet, which is no reason to
  // end the process.
  answer.catch(() => undefined);
  return answer;
}

function answered(made: Writable): Answer {
  return { ok: true, json: jsonText(made) };
}

function refused(cause: unknown): Answer {
  if (!(cause instanceof Refusal)) throw cause;
  return { ok: false, refusal: cause.refusal, details: cause.details };
}

/** Only queries are answered asynchronously, and their answers are never kept. */
function answersToKeep(
  na: Authority,
  { request, keptForm }: UnitOfWork,
  answer: Answer | Promise<Answer>,
): readonly KeptAnswer[] {
  if (request === null || answer instanceof Promise) return NOTHING_KEPT;
  return [na.replay.keepAnswer(request, answer, keptForm)];
}

const NOTHING_KEPT: readonly KeptAnswer[] = [];

async function commit(
  na: Authority,
  unit: UnitOfWork,
  answers: readonly KeptAnswer[],
): Promise<Pending> {
  const { writes, removals, nonces } = unit;
  const audit = na.audit.extend(unit.auditDrafts, unit.at);
  na.subjects.decide(unit);
  try {
    await na.store.commit({ subjects: writes, removals, nonces, answers, audit });
  } catch (cause) {
    na.fatal('commit', cause);
    throw cause;
  }
  // If memory lacks something that is on disk, every later decision is wrong.
  const failed = (cause: unknown) => na.fatal('effects of a commit', cause);
  try {
    const pending = afterCommit(na, unit, audit);
    for (const effect of pending) effect.catch(failed);
    return pending;
  } catch (cause) {
    failed(cause);
    throw cause;
  }
}

/**
 * Everything that happens after a commit, in order: memory (`authority/state.ts` lists what follows the subjects),
 * documents, the effects of the command, the log, and the dashboard.
 */
function afterCommit(na: Authority, unit: UnitOfWork, audit: readonly SealedEntry[]): Pending {
  na.subjects.settle(unit);
  publishChanges(na, unit.writes);
  const pending = takeEffect(unit);
  for (const { entry } of audit) {
    na.recentAudit.add(entry);
    na.log(entry.event_type, entry.details);
  }
  na.bulletin.logged(audit.length);
  na.eventTail.add(audit);
  if (changesDashboard(unit.writes, audit)) na.publisher.withdraw('dashboard');
  return pending;
}

/** Publishes a newly active policy, and withdraws outdated graph documents; the next reader waits for new ones. */
function publishChanges(na: Authority, writes: readonly SubjectWrite[]): void {
  for (const { kind, snapshot } of writes) {
    if (kind === 'policy') publishIfActive(na, snapshot);
    else if (kind === 'recognition-treaty') {
      for (const name of GRAPH_DOCUMENTS) na.publisher.withdraw(name);
    }
  }
}

function publishIfActive(na: Authority, { value, context }: SubjectWrite['snapshot']): void {
  if (value !== 'active') return;
  const { manifest, createdAt } = context as Policy;
  const signed = manifest && signedAgain(na, manifest, createdAt);
  na.publisher.publish('policy', publishedDocument(jsonText(signed)));
}

/** Publishes the active policy, signed by the keys that sign now. */
export function publishActivePolicy(na: Authority): void {
  for (const [, policy] of na.subjects.allCommitted('policy')) publishIfActive(na, policy);
}

/** The answer to a repeated request, for which nothing is decided. */
export class Repeated {
  readonly answer: Answer;

  constructor(answer: Answer) {
    this.answer = answer;
  }
}

/**
 * The first answer to a genuine request that is sent again byte for byte [core-2-5], which waits until that answer is on
 * disk; null if no earlier answer is known.
 */
export function repeatedAnswer(
  na: Authority,
  unit: UnitOfWork,
  rule: ReplayRule,
  signer: string,
  request: SentRequest,
): Repeated | null {
  const found = na.replay.answerTo(rule, signer, request);
  if (found === null) return null;
  unit.awaitEarlierCommits();
  const answer = 'certificate' in found ? certificateAnswer(na, found.certificate) : found;
  return new Repeated({ ...answer, isRepeated: true });
}

function certificateAnswer(na: Authority, certId: string): Answer {
  const certificate = storedCertificate(na, certId);
  return certificate === null
    ? { ok: false, refusal: 'already_done', details: {} }
    : { ok: true, json: jsonText(certificate) };
}
