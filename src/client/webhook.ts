/** Verifies webhook requests for a receiver [events-7]. */

import { parseRequestTimestamp } from '../base/timestamp.ts';
import { readWebhookProof, webhookProofText } from '../protocol/records/webhook-proof.ts';
import { type Authority, keysNow } from './authority-signers.ts';
import {
  BEFORE_FIRST,
  EventChainError,
  type EventPlace,
  type EventProblem,
  type LoggedEvent,
  nextEvent,
} from './events.ts';
import { verifyText } from './keys.ts';
import { CLOCK_TOLERANCE_MS, type VerifierOptions } from './offline.ts';
import { portableSha256 } from './sha256.ts';

export { WEBHOOK_PROOF_HEADER } from '../protocol/records/webhook-proof.ts';

export interface WebhookRequest {
  /** The value of the `X-Mesh-Authority-Proof` header; not a string when it is missing or repeated. */
  readonly proof: unknown;
  /** The body exactly as received. */
  readonly body: string | Uint8Array;
}

export interface WebhookExpectations extends VerifierOptions {
  /** Base64 of the authority's public key, from a verified genesis, or the keys that were followed from it. */
  readonly authorityKey: Authority;
  /** The position of the last accepted event; null to accept any first event. */
  readonly after: EventPlace | null;
  /** Maximum clock difference of a request, in milliseconds; 300,000 by default. */
  readonly toleranceMs?: number;
}

export type WebhookReason =
  /** The proof is missing or malformed. */
  | 'missing_proof'
  /** The proof names a key other than the authority's, or one that no longer signs. */
  | 'wrong_key'
  | 'stale'
  | 'invalid_signature'
  | EventProblem;

export type WebhookVerdict =
  /** The new events in order; empty when all were accepted before. */
  | { readonly valid: true; readonly events: readonly LoggedEvent[] }
  | { readonly valid: false; readonly reason: WebhookReason };

/** Returns the events of a request after checking its origin, its age and the event chain. */
export function readWebhook(
  { proof, body }: WebhookRequest,
  expected: WebhookExpectations,
): WebhookVerdict {
  const reason = problemOfProof(proof, body, expected);
  if (reason !== null) return { valid: false, reason };
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  try {
    return { valid: true, events: newEvents(text, expected.after) };
  } catch (error) {
    if (!(error instanceof EventChainError)) throw error;
    return { valid: false, reason: error.problem };
  }
}

function problemOfProof(
  proof: unknown,
  body: string | Uint8Array,
  { authorityKey, toleranceMs = CLOCK_TOLERANCE_MS, ...options }: WebhookExpectations,
): WebhookReason | null {
  const { verify = verifyText, sha256 = portableSha256, now = Date.now } = options;
  const read = typeof proof === 'string' ? readWebhookProof(proof) : null;
  const signedAt = read && parseRequestTimestamp(read.timestamp);
  if (read === null || signedAt === null) return 'missing_proof';
  if (!keysNow(authorityKey).includes(read.key)) return 'wrong_key';
  if (Math.abs(now() - signedAt) > toleranceMs) return 'stale';
  const text = webhookProofText(sha256.hex(body), read);
  return verify(read.key, text, read.signature) ? null : 'invalid_signature';
}

/** Events that are posted again precede the new ones. */
function newEvents(text: string, after: EventPlace | null): LoggedEvent[] {
  const lines = text.split('\n');
  if (lines.pop() !== '' || lines.length === 0) {
    throw new EventChainError('malformed', (after?.index ?? 0) + 1);
  }
  let last = placeBefore(lines[0] ?? '', after);
  const events: LoggedEvent[] = [];
  for (const line of lines) {
    const event = nextEvent(line, last);
    if (after === null || event.index > after.index) events.push(event);
    else if (event.index === after.index && event.hash !== after.hash) {
      throw new EventChainError('broken_link', event.index);
    }
    last = event;
  }
  return events;
}

/** The position that the first line must continue. */
function placeBefore(line: string, after: EventPlace | null) {
  const index = Number(/"index":([0-9]{1,16})\}$/.exec(line)?.[1]);
  if (index === 1) return BEFORE_FIRST;
  const isRepeat = after === null || index <= after.index;
  return isRepeat ? { index: index - 1, hash: null } : after;
}
