import type { JsonObject } from '../json/value.ts';

export interface AuthorityErrorFacts {
  readonly status: number;
  readonly code: string;
  readonly details?: JsonObject;
  readonly requestId?: string | null;
  readonly retryAfter?: number | null;
}

/** The one error a client throws: a refusal of the authority, or the want of an answer from one. */
export class AuthorityError extends Error {
  /** HTTP status; 0 when no answer came. */
  readonly status: number;
  /** The envelope's code; `unreachable` without an answer, `unreadable_answer` without an envelope. */
  readonly code: string;
  readonly details: JsonObject;
  readonly requestId: string | null;
  /** Seconds to wait before another try, when the authority says so. */
  readonly retryAfter: number | null;

  constructor(message: string, facts: AuthorityErrorFacts) {
    super(message);
    this.name = 'AuthorityError';
    this.status = facts.status;
    this.code = facts.code;
    this.details = facts.details ?? {};
    this.requestId = facts.requestId ?? null;
    this.retryAfter = facts.retryAfter ?? null;
  }
}

/** True when nobody decided on the request: no answer, a failing server, or something else answering. */
export function isUnreachable(error: AuthorityError): boolean {
  return error.status === 0 || error.status >= 500 || error.code === 'unreadable_answer';
}
