/**
 * Requests whose answers the authority keeps [core-2-5], over any number of attempts. When an answer is lost, the same
 * bytes are resent, marked as such, and get the first answer. Signing again would make a new request, which would find
 * the invite used, or renew a second time.
 */
import { AuthorityError, isUnreachable } from './authority-error.ts';
import { CLOCK_TOLERANCE_MS } from './offline.ts';
import { type CallOptions, newStamp, type SigningOptions } from './options.ts';

/** Signatures are deterministic: signing with the same stamp again gives the same bytes. */
export type SameStamp = Required<Pick<SigningOptions, 'now' | 'nonce'>>;

/** Sends one request, which `what` identifies; rejects as `attempt` does. */
export type SendKept = <Answer>(
  what: string,
  attempt: (stamp: SameStamp, call: CallOptions) => Promise<Answer>,
) => Promise<Answer>;

interface Unanswered extends SameStamp {
  readonly what: string;
}

const AGAIN: CallOptions = { headers: { 'x-mesh-retry': '1' } };

/** Handles one request at a time. */
export function createKeptRequests(options: Pick<SigningOptions, 'now' | 'nonce'>): SendKept {
  const { now = Date.now } = options;
  let unanswered: Unanswered | null = null;

  function signedNow(what: string): Unanswered {
    const { timestamp, nonce } = newStamp(options);
    const at = Date.parse(timestamp);
    return { what, now: () => at, nonce: () => nonce };
  }

  return async (what, attempt) => {
    async function answerTo(request: Unanswered, call: CallOptions) {
      unanswered = request;
      try {
        const answer = await attempt(request, call);
        unanswered = null;
        return answer;
      } catch (error) {
        if (!isLost(error)) unanswered = null;
        throw error;
      }
    }

    const last = unanswered;
    if (last?.what === what && Math.abs(now() - last.now()) <= CLOCK_TOLERANCE_MS) {
      try {
        return await answerTo(last, AGAIN);
      } catch (error) {
        // It was not carried out, and is now too old for an authority that crashed in between [core-2-3].
        if (!isUnproven(error)) throw error;
      }
    }
    return answerTo(signedNow(what), {});
  };
}

/** Whether the request may have been carried out despite the error. */
export function isLost(error: unknown): error is AuthorityError {
  return error instanceof AuthorityError && (isUnreachable(error) || error.retryable);
}

function isUnproven(error: unknown): boolean {
  return error instanceof AuthorityError && error.status === 401;
}
