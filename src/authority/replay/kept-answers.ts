/**
 * Answers to commands, kept for requests that are sent again byte for byte [core-2-5]: after a lost connection or a
 * crash, senders cannot know whether their requests were executed. Answers are kept as long as the nonces that the
 * requests spent, and are stored in the same transaction.
 */

import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { RefusalName } from '../../protocol/refusals.ts';
import type { KeptAnswer } from '../../store/store.ts';
import type { KeptForm } from '../subjects/unit-of-work.ts';

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
export type FoundAnswer = Answer | Extract<KeptForm, { readonly certificate: string }>;

export function foundAnswer(text: string): FoundAnswer {
  if (text.startsWith(ANSWER)) return { ok: true, json: text.slice(ANSWER.length, -1) };
  const kept = JSON.parse(text) as KeptForm | { refusal: RefusalName; details: JsonObject };
  if ('refusal' in kept) return { ok: false, ...kept };
  if ('done' in kept) return { ok: false, refusal: 'already_done', details: kept.done };
  return kept;
}
