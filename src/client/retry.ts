/** Retries requests that are safe to resend, with back-off. */
import { AuthorityError } from './authority-error.ts';
import type { CallOptions, ServerOptions } from './options.ts';
import { pause } from './waiting.ts';

const DEFAULT_RETRIES = 2;
const FIRST_WAIT_MS = 250;
/** Longer waits are left to the caller. */
const LONGEST_WAIT_MS = 30_000;

export interface Repeatable {
  /** Whether the request is idempotent: reads, verifications, heartbeats. */
  readonly repeatable: boolean;
  /** Whether the authority keeps its answer and returns it again for the same bytes [core-2-5]. */
  readonly answerIsKept?: boolean;
}

export async function withRetries<T>(
  { retries = DEFAULT_RETRIES, patienceMs = 0, onLimited, wait = pause }: ServerOptions,
  request: Repeatable,
  { signal }: CallOptions,
  /** `isResent`: send the bytes of the last attempt again, because its outcome is unknown. */
  attempt: (isResent: boolean) => Promise<T>,
): Promise<T> {
  let isResent = false;
  let failures = 0;
  let waited = 0;
  const leftMs = () => (typeof patienceMs === 'function' ? patienceMs() : patienceMs - waited);
  for (let attempts = 0; ; attempts += 1) {
    try {
      return await attempt(isResent);
    } catch (error) {
      if (!maySendAgain(error, request)) throw error;
      isResent = request.answerIsKept === true && (isResent || !isUndone(error));
      const ms = waitFor(error, attempts);
      if (isAskedToWait(error) && ms <= leftMs()) {
        waited += ms;
        onLimited?.(ms);
      } else {
        if (failures >= retries || ms > LONGEST_WAIT_MS) {
          throw patienceMs === 0 ? error : error.afterWaiting(waited / 1000);
        }
        failures += 1;
      }
      await wait(ms, signal).catch(() => {
        throw new AuthorityError(error.message, { status: 0, code: 'aborted', cause: error });
      });
    }
  }
}

function maySendAgain(
  error: unknown,
  { repeatable, answerIsKept = false }: Repeatable,
): error is AuthorityError {
  if (!(error instanceof AuthorityError) || !error.retryable) return false;
  return repeatable || answerIsKept || isUndone(error);
}

/** The authority is working and says when it will accept the request. */
function isAskedToWait({ status, code }: AuthorityError): boolean {
  return status === 429 || code === 'restored_recently';
}

const UNDONE: ReadonlySet<string> = new Set([
  'shutting_down',
  'overloaded',
  'authority_unavailable',
  'signer_unavailable',
  'restored_recently',
]);

/** Whether the authority itself says that it did nothing. */
export function isUndone({ status, code }: AuthorityError): boolean {
  return UNDONE.has(code) || (status === 429 && code !== 'unreadable_answer');
}

/** As long as the authority asks, else doubling; randomized, so that a fleet does not return all at once. */
function waitFor({ retryAfter }: AuthorityError, attempts: number): number {
  const spread = 0.5 + Math.random() / 2;
  return (retryAfter ?? 0) * 1000 + FIRST_WAIT_MS * 2 ** attempts * spread;
}
