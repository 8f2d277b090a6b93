/**
 * Replay protection [core-2-3]: no request is accepted twice, no matter what happens to the process, its clock or its
 * state.
 *
 * After the edge has checked that a request is current, the authority may accept it if all of the following hold:
 * - It was signed after the last restore, because nobody knows which requests the lost state had accepted [backup-6].
 * - Its nonce is not in the window of its node, and it was signed after the floor of that window. The floor covers what
 *   the window has dropped, what the node signed before the last start and, after a crash, everything signed before the
 *   start. Joins and operators have no window.
 * - Its nonce is not in the stored ledger, and the ledger has not forgotten the nonces of its signing time. Heartbeats
 *   are checked against the ledger only if an earlier process may have had to store their nonces.
 * - If it is a heartbeat, it was not signed at a time whose nonces were lost in a crash.
 *
 * An accepted request spends its nonce in the same turn of the event loop: in the window, and in the ledger together
 * with the unit that it decides, which is stored before the answer is sent. Only heartbeats are answered before anything
 * is stored, provided that they were signed within a stored range. A crash loses their nonces, and everything signed
 * within the range is then refused. A request that is refused because of its signing time never becomes acceptable by
 * setting back a clock.
 *
 * A heartbeat of a session has no nonce [core-3-4]. It must be made later than everything that its node made with the
 * certificate before; after a crash, which may have lost that instant, also later than the start. Outside of the stored
 * range, its instant is stored in the place of a nonce.
 *
 * A genuine request that is sent again byte for byte, and is marked as a repeat, gets its first answer; nothing is
 * decided again.
 */

import { parseJson } from '../../base/json/parse.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { Answer } from '../../protocol/contract/calls.ts';
import type { RequestIdentity } from '../../protocol/contract/claims.ts';
import { Refusal, type RefusalName } from '../../protocol/refusals.ts';
import type { KeptAnswer, StoreReading, TimeRange } from '../../store/store.ts';
import type { KeptForm, SpentRequest, UnitOfWork } from '../subjects/unit-of-work.ts';
import {
  createEarlierRequests,
  createRefusedTimes,
  createUnstoredTimes,
} from './earlier-requests.ts';
import { createNonceLedger, nonceDigest } from './nonce-ledger.ts';
import { createNonceWindows, type WindowVerdict } from './nonce-window.ts';

/** How requests of one kind are protected from being accepted twice. */
export interface ReplayRule {
  /** A signer must not reuse a nonce within the same scope. */
  readonly scope: 'admin' | 'agent-delete' | 'join' | 'node';
  /** Whether nonces are checked against the signer's window, which exists only in memory. */
  readonly window: boolean;
  /** Whether nonces are always stored, so that they outlive the window. */
  readonly durable: boolean;
}

export interface SignedRequest {
  readonly nonce: string;
  /** Milliseconds since the epoch. */
  readonly signedAt: number;
}

/** A heartbeat of a session. */
interface SessionBeat {
  readonly cert_id?: string;
  readonly node: { readonly publicKey: string; readonly signedAt: number };
}

export interface SentRequest extends SignedRequest {
  /** Null if no answer is kept. */
  readonly identity: RequestIdentity | null;
}

/** Call the methods up to `begin` at startup, in this order; nothing is accepted before. */
export type Replay = ReturnType<typeof createReplay>;

export interface ReplayOptions {
  /** How far in the past or future the signing time of a request may be, in milliseconds. */
  readonly toleranceMs: number;
  readonly flushIntervalMs: number;
  readonly now: () => number;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** The newest known timestamp of the node; 0 if there is none. */
  readonly newestSignedBy: (nodeKey: string) => number;
}

/** How late flushes may be before heartbeats wait for the disk. */
const SLOWEST_FLUSH_MS = 1000;
/** The longest that a start after a crash is delayed. */
const LONGEST_WAIT_MS = 2000;

export function createReplay(options: ReplayOptions) {
  const { toleranceMs, now, elapsed } = options;
  /** How far ahead of the clock a heartbeat may be signed and answered before it is stored. */
  const reserveMs = options.flushIntervalMs + SLOWEST_FLUSH_MS;
  const ledger = createNonceLedger(toleranceMs, elapsed);
  const answers = createKeptAnswers();
  const earlier = createEarlierRequests({ ...options, reserveMs });
  const windows = createNonceWindows(toleranceMs, earlier.floorOf);
  const unstored = createUnstoredTimes({ toleranceMs, reserveMs, lostTimes: earlier.lostTimes });

  function refuseRestored(signedAt: number): void {
    const restoredUntil = earlier.restoredUntil();
    if (restoredUntil === null || signedAt > restoredUntil) return;
    throw new Refusal('restored_recently', {
      accepts_signed_after: formatInstant(restoredUntil),
      retry_after: Math.max(1, Math.floor((restoredUntil - now()) / 1000) + 1),
    });
  }

  return {
    /** Loads stored data; also called for each change that another process stores. */
    async restore(
      stored: Pick<StoreReading, 'nonces' | 'answers' | 'forgottenTimes'>,
    ): Promise<void> {
      ledger.restoreForgotten(stored.forgottenTimes);
      for await (const batch of stored.nonces) for (const nonce of batch) ledger.restore(nonce);
      for await (const batch of stored.answers) for (const answer of batch) answers.keep(answer);
    },
    /**
     * Call if the previous process crashed; it had stored these ranges for that case. Returns how many milliseconds to
     * wait before `begin`, so that requests signed from then on are not within a range.
     */
    afterCrash(unstoredTimes: readonly TimeRange[]): number {
      earlier.afterCrash(unstoredTimes);
      const ahead = unstoredTimes.map(([, until]) => until - now());
      const moment = Math.min(reserveMs, LONGEST_WAIT_MS);
      return Math.max(0, ...ahead.filter((wait) => wait <= moment));
    },
    /** Call in its place if the previous process stored everything. */
    afterStop: earlier.afterStop,
    /** Starts accepting requests. `lastContactAt` is when a node last contacted an earlier process. */
    begin(startedAt: number, lastContactAt: number) {
      earlier.begin(startedAt, lastContactAt);
      unstored.noteAccepted(startedAt);
    },
    /**
     * Checks whether a request may be accepted, without spending its nonce. Throws `restored_recently` for a genuine
     * request that is refused because of a restore, so that the sender learns why, and for how long.
     */

    check(
      rule: ReplayRule,
      signer: string,
      { nonce, signedAt }: SignedRequest,
      isGenuine: boolean,
    ): WindowVerdict {
      if (isGenuine) refuseRestored(signedAt);
      if (rule.window) {
        const found = windows.check(signer, nonce, signedAt);
        if (found !== 'fresh') return found;
        if (!rule.durable && earlier.mayBeLost(signedAt)) return 'stale_timestamp';
      }
      if (!rule.durable && !ledger.isInDoubt(signedAt)) return 'fresh';
      if (ledger.isForgotten(signedAt)) return 'stale_timestamp';
      return ledger.isSpent(scopeOf(rule, signer), nonce) ? 'nonce_replay' : 'fresh';
    },
    /**
     * Whether a heartbeat of a session may be accepted; `newest` is the newest instant of its certificate. Throws
     * `restored_recently` like `check`.
     */
    isNewInstant(rule: ReplayRule, beat: SessionBeat, newest: number): boolean {
      const { publicKey, signedAt } = beat.node;
      refuseRestored(signedAt);
      if (signedAt <= Math.max(newest, earlier.crashFloor())) return false;
      if (earlier.mayBeLost(signedAt) || ledger.isForgotten(signedAt)) return false;
      if (!ledger.isInDoubt(signedAt)) return true;
      return !ledger.isSpent(scopeOf(rule, publicKey), instantNonce(beat));
    },
    /** Adds the instant of a heartbeat of a session to the unit if it must be stored. */
    spendInstant(unit: UnitOfWork, rule: ReplayRule, beat: SessionBeat) {
      const { publicKey, signedAt } = beat.node;
      unstored.noteAccepted(signedAt);
      if (unstored.covers(signedAt)) return;
      const scope = scopeOf(rule, publicKey);
      unit.spend(ledger.spend(scope, instantNonce(beat), signedAt), null);
    },
    /** Spends the nonce of a genuine request, and adds it to the unit if it must be stored. */
    spend(
      unit: UnitOfWork,
      rule: ReplayRule,
      signer: string,
      { nonce, signedAt, identity }: SentRequest,
    ) {
      if (rule.window) {
        unstored.noteAccepted(signedAt);
        windows.claim(signer, nonce, signedAt, unit.at);
      }
      if (!rule.durable && unstored.covers(signedAt)) return;
      unit.spend(ledger.spend(scopeOf(rule, signer), nonce, signedAt), identity);
    },
    /** The first answer to a genuine request that is sent again; null if none is known. */
    answerTo(
      rule: ReplayRule,
      signer: string,
      { nonce, identity }: SentRequest,
    ): FoundAnswer | null {
      if (identity?.isRepeat !== true) return null;
      const text = answers.find(nonceDigest(scopeOf(rule, signer), nonce), identity.request);
      return text === undefined ? null : foundAnswer(text);
    },
    /** Keeps the answer to a request that has spent its nonce, and returns the row to store. */
    keepAnswer(request: SpentRequest, answer: Answer, form: KeptForm | null): KeptAnswer {
      const kept = { ...request, answer: keptText(answer, form) };
      answers.keep(kept);
      return kept;
    },
    /** Whether a heartbeat must wait for the disk only because the range was stored too long ago. */

    isBeyondStoredRange: unstored.isBeyondStoredRange,
    /** The ranges to store with contacts. Call `rangesStored` once they are on disk, before the next call. */
    rangesToStore: unstored.next,
    rangesStored: unstored.stored,
    /** Forgets expired data; returns the instant before which the store may also forget nonces and answers. */

    forget(at: number): number {
      const before = ledger.forget(at);
      answers.forget(before);
      windows.forgetIdle(at);
      return before;
    },
    /** The signing times of requests whose nonces were forgotten; store them when the store forgets the nonces. */
    forgottenTimes: ledger.forgottenTimes,
    /** Call when the clock was set back to `now`: requests signed under the old time must not block current ones. */
    clockSetBack(at: number) {
      earlier.clockSetBack(at);
      windows.clockSetBack(at);
    },
    /** When the refusal of requests signed now because of a restore ends; null if they are not refused. */
    refusedUntil(at: number): number | null {
      const until = earlier.restoredUntil();
      return until !== null && at <= until ? until : null;
    },
    /** Whether requests lost in a crash can still be replayed; the next start must then treat this stop as a crash. */
    mustStartAsCrashed: earlier.mustStartAsCrashed,
    /** The number of nodes that have a window. */
    windowCount: windows.count,
  };
}

/** The scope in which nonces must not repeat. */
export function scopeOf({ scope }: ReplayRule, signer: string): string {
  return `${scope}:${signer}`;
}

function instantNonce({ cert_id: certId = '', node }: SessionBeat): string {
  return `session ${certId} ${node.signedAt}`;
}

/** The times that a restored state stores, so that everything signed up to `until` is refused. */
export function refusedAfterRestore(
  forgottenTimes: readonly TimeRange[],
  until: number,
  now: number,
): Pick<StoreReading, 'forgottenTimes' | 'unstoredTimes'> {
  const refused = createRefusedTimes(forgottenTimes);
  refused.add([0, until], now);
  return { forgottenTimes: refused.all(), unstoredTimes: [[0, until]] };
}

/** The maximum size of all answers in memory, in characters plus overhead. Beyond it, the oldest are forgotten. */
const MOST_KEPT = 64 * 1024 * 1024;
/**
 * Answers are forgotten one generation at a time, and memory is divided into this many generations. Deleting the oldest
 * entries of a map one by one would take longer per entry than dropping a complete generation.
 */
const GENERATIONS = 16;
/** Size of an entry without its texts, in bytes. */
const OVERHEAD = 200;

/** Answers that were kept one after another. */
interface Generation {
  /** Keyed by the digest of the nonce. */
  readonly answers: Map<string, KeptAnswer>;
  size: number;
  /** When all of the answers may be forgotten. */
  forgetAt: number;
}

/**
 * Answers to commands, kept for requests that are sent again byte for byte [core-2-5]: after a lost connection or a
 * crash, senders cannot know whether their requests were executed. Answers are kept as long as the nonces that the
 * requests spent, and are stored in the same transaction.
 */
export function createKeptAnswers(mostKept = MOST_KEPT) {
  /** Oldest first. */
  let generations: Generation[] = [];
  let size = 0;

  function newest(): Generation {
    const last = generations.at(-1);
    if (last !== undefined && last.size < mostKept / GENERATIONS) return last;
    const begun = { answers: new Map(), size: 0, forgetAt: 0 };
    generations.push(begun);
    return begun;
  }

  return {
    /** The answer to the request that spent the nonce, if it was this request and the answer is still kept. */
    find(nonceDigest: string, request: string): string | undefined {
      for (const { answers } of generations) {
        const kept = answers.get(nonceDigest);
        if (kept?.request === request) return kept.answer;
      }
      return undefined;
    },
    keep(answer: KeptAnswer) {
      const generation = newest();
      generation.answers.set(answer.digest, answer);
      generation.size += sizeOf(answer);
      generation.forgetAt = Math.max(generation.forgetAt, answer.forgetAt);
      size += sizeOf(answer);
      while (size > mostKept) size -= generations.shift()?.size ?? size;
    },
    /** Forgets answers that may be forgotten before this instant. */
    forget(before: number) {
      generations = generations.filter(({ forgetAt }) => forgetAt > before);
      size = generations.reduce((sum, generation) => sum + generation.size, 0);
    },
  };
}

function sizeOf({ request, answer }: KeptAnswer): number {
  return request.length + answer.length + OVERHEAD;
}

/** Longer answers are not kept. */
const MOST_KEPT_BYTES = 4096;

const ANSWER = '{"answer":';

/** The text that is kept for an answer. */
export function keptText(answer: Answer, form: KeptForm | null): string {
  const text = wholeText(answer, form);
  return isShort(text) ? text : NOTHING_KEPT;
}

/** Avoids counting bytes when possible: a UTF-16 code unit takes at most three bytes in UTF-8. */
function isShort(text: string): boolean {
  return 3 * text.length <= MOST_KEPT_BYTES || Buffer.byteLength(text) <= MOST_KEPT_BYTES;
}

const NOTHING_KEPT = jsonText({ done: {} } satisfies KeptForm);

function wholeText(answer: Answer, form: KeptForm | null): string {
  if (!answer.ok) return jsonText({ refusal: answer.refusal, details: answer.details });
  return form === null ? `${ANSWER}${answer.json}}` : jsonText(form);
}

/** A first answer that was found: the answer itself, or the id of the certificate that it contained. */
type FoundAnswer = Answer | Extract<KeptForm, { readonly certificate: string }>;

function foundAnswer(text: string): FoundAnswer {
  if (text.startsWith(ANSWER)) return { ok: true, json: text.slice(ANSWER.length, -1) };
  // The details of a refused feed contain its sequence, which may be of any size.
  const kept = parseJson(text) as unknown as
    | KeptForm
    | { refusal: RefusalName; details: JsonObject };
  if ('refusal' in kept) return { ok: false, ...kept };
  if ('done' in kept) return { ok: false, refusal: 'already_done', details: kept.done };
  return kept;
}
