/** Rate limit questions whose counts are kept elsewhere: on the authority's thread or by another instance. */

import type { RateLimitSettings, RateLimits } from '../../edge/limits/rate-limit.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { RateBucket } from '../../protocol/route-description.ts';

type LimitQuestion = readonly [bucket: RateBucket, key: string, at: number];

/** The limits, as seen by the thread that asks. */
export function askedLimits(
  settings: RateLimitSettings,
  ask: (name: string, question: LimitQuestion) => Promise<Answer>,
): RateLimits {
  const isOn = (bucket: RateBucket) => settings[bucket] !== null;
  async function seconds(name: string, ...question: LimitQuestion): Promise<number> {
    return Number(textOf(await ask(name, question)));
  }

  return {
    isOn,
    take: (bucket, key, now) => (isOn(bucket) ? seconds('#take', bucket, key, now) : 0),
  };
}

/** The text of the answer; throws if the other instance refused, or is gone. */
export function textOf(answer: Answer): string {
  if (!answer.ok) throw new Refusal(answer.refusal, answer.details);
  return answer.json;
}

/** The answer of the thread that keeps the counts; null if this is not a rate limit question. */
export function answerLimit(
  limits: RateLimits,
  name: string,
  question: unknown,
): Answer | Promise<Answer> | null {
  return name === '#take' ? toAnswer(limits.take(...(question as LimitQuestion))) : null;
}

function toAnswer(seconds: number | Promise<number>): Answer | Promise<Answer> {
  return seconds instanceof Promise ? seconds.then(answered, refused) : answered(seconds);
}

function answered(seconds: number): Answer {
  return { ok: true, json: String(seconds) };
}

/** Another instance keeps the counts, and it may be gone. */
function refused(cause: unknown): Answer {
  if (!(cause instanceof Refusal)) throw cause;
  return { ok: false, refusal: cause.refusal, details: cause.details };
}
