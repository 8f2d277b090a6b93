import type { JsonObject } from '../base/json/value.ts';
import { REFUSALS, type RefusalName } from '../base/refusal.ts';

/** Codes that an authority refuses with. */
export type RefusalCode = (typeof REFUSALS)[RefusalName]['code'];

/**
 * `unreachable`, `timeout` and `aborted`: no answer came. `unreadable_answer`: it was not one of an authority.
 * `unknown_code`: a refusal with a code that this version does not know, which is in `wireCode`.
 */
export type ErrorCode =
  | RefusalCode
  | 'unreachable'
  | 'timeout'
  | 'aborted'
  | 'unreadable_answer'
  | 'unknown_code';

const REFUSAL_CODES: ReadonlySet<string> = new Set(Object.values(REFUSALS).map(({ code }) => code));

/** Statuses of answers that say nothing of the request itself, from the authority or a proxy before it. */
const PASSING = new Set([408, 429, 502, 503, 504]);

export interface AuthorityErrorFacts {
  readonly status: number;
  /** The envelope's code, or one of the client's own. */
  readonly code: string;
  readonly details?: JsonObject;
  readonly requestId?: string | null;
  readonly retryAfter?: number | null;
  readonly waited?: number | null;
  readonly answeredAt?: number | null;
  readonly cause?: unknown;
}

/** The one error a client throws: a refusal of the authority, or the want of an answer from one. */
export class AuthorityError extends Error {
  /** HTTP status; 0 when no answer came. */
  readonly status: number;
  readonly code: ErrorCode;
  /** The code as it was received. */
  readonly wireCode: string;
  readonly details: JsonObject;
  readonly requestId: string | null;
  /** Seconds to wait before another try, when the authority says so. */
  readonly retryAfter: number | null;
  /** Seconds that were waited because limits asked for it; null when no wait was wanted. */
  readonly waited: number | null;
  /** The time of the authority by the header `Date` of its answer, in milliseconds since the epoch. */
  readonly answeredAt: number | null;

  constructor(message: string, facts: AuthorityErrorFacts) {
    super(message, { cause: facts.cause });
    this.name = 'AuthorityError';
    this.status = facts.status;
    this.code = isErrorCode(facts.code) ? facts.code : 'unknown_code';
    this.wireCode = facts.code;
    this.details = facts.details ?? {};
    this.requestId = facts.requestId ?? null;
    this.retryAfter = facts.retryAfter ?? null;
    this.waited = facts.waited ?? null;
    this.answeredAt = facts.answeredAt ?? null;
  }

  /** The same, when even waiting that many seconds did not help. */
  afterWaiting(waited: number): AuthorityError {
    return new AuthorityError(this.message, { ...this, code: this.wireCode, waited });
  }

  /**
   * Whether the same request may succeed later. It says nothing of whether it is safe to send again: without an
   * answer the authority may have done what it was asked.
   */
  get retryable(): boolean {
    return this.status === 0 ? this.code !== 'aborted' : PASSING.has(this.status);
  }
}

/** True when nobody decided on the request: no answer, a failing server, or something else answering. */
export function isUnreachable(error: AuthorityError): boolean {
  return error.status === 0 || error.status >= 500 || error.code === 'unreadable_answer';
}

function isErrorCode(code: string): code is ErrorCode {
  return (
    REFUSAL_CODES.has(code) ||
    code === 'unreachable' ||
    code === 'timeout' ||
    code === 'aborted' ||
    code === 'unreadable_answer'
  );
}
