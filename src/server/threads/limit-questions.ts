/** Questions about rate limits whose counts are elsewhere: on the thread of the authority, or with another instance. */
import { Refusal } from '../../base/refusal.ts';
import type { RateLimitSettings, RateLimits } from '../../edge/rate-limit.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { RateBucket } from '../../protocol/route-description.ts';

type LimitQuestion = readonly [bucket: RateBucket, key: string, at: number];

/** The limits as seen by the one that asks. */
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
    wait: (bucket, key, now) => (isOn(bucket) ? seconds('#wait', bucket, key, now) : 0),
    giveBack(bucket, key, counted) {
      // A count too many harms less than a request that waits for it.
      if (isOn(bucket)) seconds('#give_back', bucket, key, counted).catch(() => undefined);
    },
  };
}

/** Throws what another instance refuses, or what is refused because it is gone. */
export function textOf(answer: Answer): string {
  if (!answer.ok) throw new Refusal(answer.refusal, answer.details);
  return answer.json;
}

/** The answer of the one that counts; null when the question is another one. */
export function answerLimit(
  limits: RateLimits,
  name: string,
  question: unknown,
): Answer | Promise<Answer> | null {
  switch (name) {
    case '#take':
      return toAnswer(limits.take(...(question as LimitQuestion)));
    case '#wait':
      return toAnswer(limits.wait(...(question as LimitQuestion)));
    case '#give_back':
      limits.giveBack(...(question as LimitQuestion));
      return toAnswer(0);
    default:
      return null;
  }
}

function toAnswer(seconds: number | Promise<number>): Answer | Promise<Answer> {
  return seconds instanceof Promise ? seconds.then(answered, refused) : answered(seconds);
}

function answered(seconds: number): Answer {
  return { ok: true, json: String(seconds) };
}

/** The counts are with another instance, which may be gone. */
function refused(cause: unknown): Answer {
  if (!(cause instanceof Refusal)) throw cause;
  return { ok: false, refusal: cause.refusal, details: cause.details };
}
