import type { JsonObject } from '../base/json/value.ts';
import { REFUSALS, type RefusalName } from '../protocol/refusals.ts';

/** Error codes of an authority. */
export type RefusalCode = (typeof REFUSALS)[RefusalName]['code'];

/**
 * `unreachable`, `timeout` and `aborted`: no answer arrived. `unreadable_answer`: the answer did not come from an
 * authority. `unknown_code`: this version does not know the error code, which is in `wireCode`.
 */
export type ErrorCode = RefusalCode | (typeof OWN_CODES)[number];

const OWN_CODES = [
  'unreachable',
  'timeout',
  'aborted',
  'unreadable_answer',
  'unknown_code',
] as const;

const CODES: ReadonlySet<string> = new Set([
  ...Object.values(REFUSALS).map(({ code }) => code),
  ...OWN_CODES,
]);

/** Transient statuses that say nothing about the request, from the authority or a proxy in front of it. */
const PASSING = new Set([408, 429, 502, 503, 504]);

export interface AuthorityErrorFacts {
  readonly status: number;
  /** The code of the error envelope, or one of the client's own codes. */
  readonly code: string;
  readonly details?: JsonObject;
  readonly requestId?: string | null;
  readonly retryAfter?: number | null;
  readonly waited?: number | null;
  readonly answeredAt?: number | null;
  readonly cause?: unknown;
}

/** An id that cannot be part of an address; nothing was sent. */
export class AddressError extends TypeError {}

/** The authority refused, or no usable answer arrived. */
export class AuthorityError extends Error {
  /** HTTP status; 0 when no answer arrived. */
  readonly status: number;
  readonly code: ErrorCode;
  /** The code as received. */
  readonly wireCode: string;
  readonly details: JsonObject;
  readonly requestId: string | null;
  /** Seconds to wait before retrying; null unless the authority says so. */
  readonly retryAfter: number | null;
  /** Seconds spent waiting for rate limits; null when waiting was not enabled. */
  readonly waited: number | null;
  /** The authority's time from the `Date` header of its answer, in milliseconds since the epoch. */
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

  /** The same error after waiting this many seconds in vain. */
  afterWaiting(waited: number): AuthorityError {
    return new AuthorityError(this.message, { ...this, code: this.wireCode, waited });
  }

  /**
   * Whether the same request may succeed later. It does not say that resending is safe: without an answer, the
   * authority may have carried out the request.
   */
  get retryable(): boolean {
    return this.status === 0 ? this.code !== 'aborted' : PASSING.has(this.status);
  }
}

/** True when the authority did not decide on the request: no answer, a server failure, or another server answered. */
export function isUnreachable(error: AuthorityError): boolean {
  return error.status === 0 || error.status >= 500 || error.code === 'unreadable_answer';
}

function isErrorCode(code: string): code is ErrorCode {
  return CODES.has(code);
}
