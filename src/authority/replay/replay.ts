/**
 * Replay protection [core-2-3]: no request is accepted twice, whatever becomes of the process, its clock or its state.
 *
 * A request may be accepted when all of this holds; it is the authority's part, after the edge has found it current:
 * - It was signed after the last restore: nobody knows what the state that was lost had accepted [backup-6].
 * - Its nonce is not in the window of its node, and it was signed after the floor of that window: what the window has
 *   dropped, what the node signed before the last start, and after a crash all that was signed before the start.
 *   Joins and operators have no window.
 * - Its nonce is not in the ledger, which is stored, and the ledger has not forgotten the nonces of that time.
 *   Heartbeats look there only when an earlier process may have had to store their nonces.
 * - A heartbeat was not signed at a time of which a crash has lost the nonces.
 *
 * An accepted request spends its nonce in the same turn: in the window, and in the ledger with the unit that it decides,
 * which is stored before the answer is sent. Only heartbeats are answered before anything is stored, if they were
 * signed within a range that is: a crash loses their nonces, and everything that was signed within the range is then
 * refused. Nothing that is refused for its time becomes acceptable when a clock is set back.
 *
 * A genuine request that is sent again byte for byte, and says so, gets its first answer; nothing is decided anew.
 */
import { Refusal } from '../../base/refusal.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { RequestIdentity } from '../../protocol/contract/claims.ts';
import { DELETE_ENVELOPE_TOLERANCE } from '../../protocol/contract/delete-envelope.ts';
import type { KeptAnswer, StoreReading, TimeRange } from '../../store/store.ts';
import type { KeptForm, SpentRequest, UnitOfWork } from '../subjects/unit-of-work.ts';
import { createEarlierRequests } from './earlier-requests.ts';
import { createKeptAnswers, type FoundAnswer, foundAnswer, keptText } from './kept-answers.ts';
import { createNonceLedger, nonceDigest } from './nonce-ledger.ts';
import { createNonceWindows, type WindowVerdict } from './nonce-window.ts';
import { createRefusedTimes } from './refused-times.ts';
import { createUnstoredTimes } from './unstored-times.ts';

/** What keeps requests of one kind from being accepted twice. */
export interface ReplayRule {
  /** Nonces of one signer must not repeat within it. */
  readonly scope: 'admin' | 'agent-delete' | 'join' | 'node';
  /** Whether nonces are checked against the window of the signer, which is in memory. */
  readonly window: boolean;
  /** Whether nonces are always stored, and so outlive the window. */
  readonly durable: boolean;
}

export interface SignedRequest {
  readonly nonce: string;
  /** Milliseconds since the epoch. */
  readonly signedAt: number;
}

interface SentRequest extends SignedRequest {
  /** Null where no answer is kept. */
  readonly sending: RequestIdentity | null;
}

/** The methods up to `begin` are for the start, in this order; nothing is accepted before. */
export interface Replay {
  /** Takes over what is stored; again for each change that another process stores. */
  restore(stored: Pick<StoreReading, 'nonces' | 'answers' | 'forgottenTimes'>): Promise<void>;
  /**
   * The process before this one crashed, and had stored these ranges for that case. Returns how many milliseconds to
   * wait before `begin`: then requests that are signed from now on are not in a range.
   */
  afterCrash(unstoredTimes: readonly TimeRange[]): number;
  /** Requests may come. `lastContactAt` is when an earlier process last heard of a node. */
  begin(startedAt: number, lastContactAt: number): void;

  /**
   * Whether a request may be accepted; spends nothing. Throws `restored_recently` for a genuine one that a restore bars,
   * so that its sender learns why, and for how long.
   */
  check(
    rule: ReplayRule,
    signer: string,
    request: SignedRequest,
    isGenuine: boolean,
  ): WindowVerdict;
  /** Spends the nonce of a genuine request, in the unit as well if it has to be stored. */
  spend(unit: UnitOfWork, rule: ReplayRule, signer: string, request: SentRequest): void;
  /** The first answer to a genuine request that is sent again; null when none is known. */
  answerTo(rule: ReplayRule, signer: string, request: SentRequest): FoundAnswer | null;
  /** Keeps the answer to a request that has spent its nonce, and returns what to store of it. */
  keepAnswer(request: SpentRequest, answer: Answer, form: KeptForm | null): KeptAnswer;

  /** Whether a heartbeat has to wait for the disk only because the range was stored too long ago. */
  isBeyondStoredRange(signedAt: number, now: number): boolean;
  /** The ranges to store with contacts. Call `rangesStored` once they are on disk, and one after the other. */
  rangesToStore(now: number): readonly TimeRange[];
  rangesStored(): void;

  /** Forgets what has expired; returns the instant before which the store may forget nonces and answers, too. */
  forget(now: number): number;
  /** The signing times of requests whose nonces are forgotten, to be stored when they are. */
  forgottenTimes(): readonly TimeRange[];
  /** The clock was set back to `now`: what was signed under the old time must not bar current requests. */
  clockSetBack(now: number): void;
  /** Until when whatever is signed now is refused because of a restore; null when it is not. */
  refusedUntil(now: number): number | null;
  /** Whether what a crash lost can still be replayed: then the next start must take this stop for a crash. */
  mustStartAsCrashed(): boolean;
  /** The number of nodes that have a window. */
  windowCount(): number;
}

export interface ReplayOptions {
  /** How old or how far ahead a signed request may be, in milliseconds. */
  readonly toleranceMs: number;
  readonly flushIntervalMs: number;
  readonly now: () => number;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** The newest known timestamp of the node; 0 when there is none. */
  readonly newestSignedBy: (nodeKey: string) => number;
}

/** Flushes may be late by this much before heartbeats wait for the disk. */
const SLOWEST_FLUSH_MS = 1000;
/** A start after a crash is not delayed by more than this. */
const LONGEST_WAIT_MS = 2000;

export function createReplay(options: ReplayOptions): Replay {
  const { toleranceMs, now, elapsed } = options;
  /** How far ahead of the clock a heartbeat may be signed and answered before it is stored. */
  const reserveMs = options.flushIntervalMs + SLOWEST_FLUSH_MS;
  // Twice the larger tolerance and a minute, so a nonce outlives every timestamp it could be replayed with.
  const keepMs = 2 * Math.max(toleranceMs, DELETE_ENVELOPE_TOLERANCE) + 60_000;
  const ledger = createNonceLedger(keepMs, elapsed);
  const answers = createKeptAnswers();
  const earlier = createEarlierRequests({ ...options, reserveMs });
  const windows = createNonceWindows(toleranceMs, earlier.floorOf);
  const unstored = createUnstoredTimes({ toleranceMs, reserveMs, lostTimes: earlier.lostTimes });

  return {
    async restore(stored) {
      ledger.restoreForgotten(stored.forgottenTimes);
      for await (const batch of stored.nonces) for (const nonce of batch) ledger.restore(nonce);
      for await (const batch of stored.answers) for (const answer of batch) answers.keep(answer);
    },
    afterCrash(unstoredTimes) {
      earlier.afterCrash(unstoredTimes);
      const ahead = unstoredTimes.map(([, until]) => until - now());
      const moment = Math.min(reserveMs, LONGEST_WAIT_MS);
      return Math.max(0, ...ahead.filter((wait) => wait <= moment));
    },
    begin(startedAt, lastContactAt) {
      earlier.begin(startedAt, lastContactAt);
      unstored.noteAccepted(startedAt);
    },

    check(rule, signer, { nonce, signedAt }, isGenuine) {
      const restoredUntil = earlier.restoredUntil();
      if (isGenuine && restoredUntil !== null && signedAt <= restoredUntil) {
        throw new Refusal('restored_recently', {
          accepts_signed_after: formatInstant(restoredUntil),
          retry_after: Math.max(1, Math.floor((restoredUntil - now()) / 1000) + 1),
        });
      }
      if (rule.window) {
        const found = windows.check(signer, nonce, signedAt);
        if (found !== 'fresh') return found;
        if (!rule.durable && earlier.mayBeLost(signedAt)) return 'stale_timestamp';
      }
      if (!rule.durable && !ledger.isInDoubt(signedAt)) return 'fresh';
      if (ledger.isForgotten(signedAt)) return 'stale_timestamp';
      return ledger.isSpent(scopeOf(rule, signer), nonce) ? 'nonce_replay' : 'fresh';
    },
    spend(unit, rule, signer, { nonce, signedAt, sending }) {
      if (rule.window) {
        unstored.noteAccepted(signedAt);
        windows.claim(signer, nonce, signedAt, unit.at);
      }
      if (!rule.durable && unstored.covers(signedAt)) return;
      unit.spend(ledger.spend(scopeOf(rule, signer), nonce, signedAt), sending);
    },
    answerTo(rule, signer, { nonce, sending }) {
      if (sending?.isRepeat !== true) return null;
      const text = answers.find(nonceDigest(scopeOf(rule, signer), nonce), sending.request);
      return text === undefined ? null : foundAnswer(text);
    },
    keepAnswer(request, answer, form) {
      const kept = { ...request, answer: keptText(answer, form) };
      answers.keep(kept);
      return kept;
    },

    isBeyondStoredRange: unstored.isBeyondStoredRange,
    rangesToStore: unstored.next,
    rangesStored: unstored.stored,

    forget(at) {
      const before = ledger.forget(at);
      answers.forget(before);
      windows.forgetIdle(at);
      return before;
    },
    forgottenTimes: ledger.forgottenTimes,
    clockSetBack: windows.clockSetBack,
    refusedUntil(at) {
      const until = earlier.restoredUntil();
      return until !== null && at <= until ? until : null;
    },
    mustStartAsCrashed: earlier.mustStartAsCrashed,
    windowCount: windows.count,
  };
}

/** Within what nonces must not repeat. */
export function scopeOf({ scope }: ReplayRule, signer: string): string {
  return `${scope}:${signer}`;
}

/** What a restored state stores, so that whatever was signed up to this instant is refused. */
export function refusedAfterRestore(
  forgottenTimes: readonly TimeRange[],
  until: number,
  now: number,
): Pick<StoreReading, 'forgottenTimes' | 'unstoredTimes'> {
  const refused = createRefusedTimes(forgottenTimes);
  refused.add([0, until], now);
  return { forgottenTimes: refused.all(), unstoredTimes: [[0, until]] };
}
