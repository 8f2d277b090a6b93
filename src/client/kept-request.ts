/**
 * Requests whose answers the authority keeps [core-2-5], over any number of attempts. When an answer is lost, the same
 * bytes are resent, marked as such, and get the first answer. Signing again would make a new request, which would find
 * the invite used, or renew a second time.
 */
import Type from 'typebox';
import { Value } from 'typebox/value';
import { AuthorityError, isUnreachable } from './authority-error.ts';
import { CLOCK_TOLERANCE_MS } from './offline.ts';
import { type CallOptions, newStamp, type SigningOptions } from './options.ts';
import { parsed } from './received.ts';
import { portableSha256 } from './sha256.ts';

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

/** Where the stamp of the last request survives this process; it is written before the request is sent. */
export interface StampStorage {
  read(): Promise<string | null> | string | null;
  write(text: string): Promise<void> | void;
}

const AGAIN: CallOptions = { headers: { 'x-mesh-retry': '1' } };

/** Handles one request at a time. Only a digest of `what` is stored, which can have an invite token. */
export function createKeptRequests(
  options: Pick<SigningOptions, 'now' | 'nonce'>,
  storage: StampStorage | null = null,
): SendKept {
  const { now = Date.now } = options;
  let unanswered: Unanswered | null = null;
  let isRead = storage === null;

  /** An earlier process may have ended before it had the answer, or had stored it. */
  async function readStored(what: string): Promise<void> {
    if (isRead) return;
    isRead = true;
    const stored = stampIn((await storage?.read()) ?? '');
    if (stored?.digest !== portableSha256.hex(what)) return;
    unanswered = { what, now: () => stored.signed_at, nonce: () => stored.nonce };
  }

  async function store({ what, now: at, nonce }: Unanswered): Promise<void> {
    const stamp = { digest: portableSha256.hex(what), signed_at: at(), nonce: nonce() };
    await storage?.write(`${JSON.stringify(stamp)}\n`);
  }

  function signedNow(what: string): Unanswered {
    const { timestamp, nonce } = newStamp(options);
    const at = Date.parse(timestamp);
    return { what, now: () => at, nonce: () => nonce };
  }

  return async (what, attempt) => {
    async function answerTo(request: Unanswered, call: CallOptions) {
      unanswered = request;
      await store(request);
      try {
        const answer = await attempt(request, call);
        unanswered = null;
        return answer;
      } catch (error) {
        if (!isLost(error)) unanswered = null;
        throw error;
      }
    }

    await readStored(what);
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

function stampIn(text: string) {
  const stamp = parsed(text);
  return Value.Check(Stamp, stamp) ? stamp : null;
}

const Stamp = Type.Object({
  digest: Type.String(),
  signed_at: Type.Integer(),
  nonce: Type.String(),
});

/** Whether the request may have been carried out despite the error. */
export function isLost(error: unknown): error is AuthorityError {
  return error instanceof AuthorityError && (isUnreachable(error) || error.retryable);
}

/** The proof was refused: it is too old, or names an authority key that was replaced. */
export function isUnproven(error: unknown): boolean {
  return error instanceof AuthorityError && error.status === 401;
}
