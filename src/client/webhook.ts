/** What the receiver of a webhook checks before it takes the events that were posted to it [events-7]. */

import { parseRequestTimestamp } from '../base/timestamp.ts';
import { readWebhookProof, webhookProofText } from '../protocol/records/webhook-proof.ts';
import {
  BEFORE_FIRST,
  EventChainError,
  type EventPlace,
  type EventProblem,
  type LoggedEvent,
  nextEvent,
} from './event-chain.ts';
import { verifyText } from './keys.ts';
import type { VerifierOptions } from './offline.ts';
import { portableSha256 } from './sha256.ts';

export { WEBHOOK_PROOF_HEADER } from '../protocol/records/webhook-proof.ts';

export interface WebhookRequest {
  /** The value of the header `X-Mesh-Authority-Proof`; anything but a text when there is none, or several. */
  readonly proof: unknown;
  /** Exactly as received. */
  readonly body: string | Uint8Array;
}

export interface WebhookExpectations extends VerifierOptions {
  /** Base64 of the authority's public key, from a genesis that was verified. */
  readonly authorityKey: string;
  /** The place of the last event that was taken; null to take what comes, when none was. */
  readonly after: EventPlace | null;
  /** How old or ahead a request may be, in milliseconds; 300,000 when absent. */
  readonly toleranceMs?: number;
}

export type WebhookReason =
  /** There is no proof, or it has another form. */
  | 'missing_proof'
  /** It names another key than that of the authority. */
  | 'wrong_key'
  | 'stale'
  | 'invalid_signature'
  | EventProblem;

export type WebhookVerdict =
  /** What is new, in order; none when all of them were taken before. */
  | { readonly valid: true; readonly events: readonly LoggedEvent[] }
  | { readonly valid: false; readonly reason: WebhookReason };

const TOLERANCE_MS = 300_000;

/** The events of a request, once its origin, its age and their chain are checked. */
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
  { authorityKey, toleranceMs = TOLERANCE_MS, ...options }: WebhookExpectations,
): WebhookReason | null {
  const { verify = verifyText, sha256 = portableSha256, now = Date.now } = options;
  const read = typeof proof === 'string' ? readWebhookProof(proof) : null;
  const signedAt = read && parseRequestTimestamp(read.timestamp);
  if (read === null || signedAt === null) return 'missing_proof';
  if (read.key !== authorityKey) return 'wrong_key';
  if (Math.abs(now() - signedAt) > toleranceMs) return 'stale';
  const text = webhookProofText(sha256.hex(body), read);
  return verify(authorityKey, text, read.signature) ? null : 'invalid_signature';
}

/** Events that are posted again come before those that are new. */
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

/** What the first line has to follow on. */
function placeBefore(line: string, after: EventPlace | null) {
  const index = Number(/"index":([0-9]{1,16})\}$/.exec(line)?.[1]);
  if (index === 1) return BEFORE_FIRST;
  const isRepeat = after === null || index <= after.index;
  return isRepeat ? { index: index - 1, hash: null } : after;
}
