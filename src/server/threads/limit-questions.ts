/** Rate limit questions, whose counts are kept on the authority's thread. */

import type {
  LocalRateLimits,
  RateLimitSettings,
  RateLimits,
} from '../../edge/limits/rate-limit.ts';
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

/** The text of the answer; throws a refusal. */
export function textOf(answer: Answer): string {
  if (!answer.ok) throw new Refusal(answer.refusal, answer.details);
  return answer.json;
}

/** The answer of the thread that keeps the counts; null if this is not a rate limit question. */
export function answerLimit(
  limits: LocalRateLimits,
  name: string,
  question: unknown,
): Answer | null {
  if (name !== '#take') return null;
  return { ok: true, json: String(limits.take(...(question as LimitQuestion))) };
}
