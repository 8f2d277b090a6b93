/** Requests that are sent again byte for byte [core-2-5], answered from what was kept of the first answer. */

import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import type { RefusalName } from '../../base/refusal.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { RequestIdentity } from '../../protocol/contract/claims.ts';
import { ANSWER, type KeptForm } from '../replay/kept-answers.ts';
import { nonceDigest } from '../replay/nonce-ledger.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import type { Authority } from './authority.ts';
import { storedCertificate } from './signed-certificate.ts';

/** The answer to a request that has arrived before; nothing is decided. */
export class Repeated {
  readonly answer: Answer;

  constructor(answer: Answer) {
    this.answer = answer;
  }
}

/**
 * The first answer to a genuine request that is sent again, once it is on disk; null when the request is
 * not known to have had one.
 */
export function repeatedAnswer(
  na: Authority,
  unit: UnitOfWork,
  scope: string,
  { nonce, sending }: { readonly nonce: string; readonly sending: RequestIdentity | null },
): Repeated | null {
  if (sending?.isRepeat !== true) return null;
  const text = na.keptAnswers.find(nonceDigest(scope, nonce), sending.request);
  if (text === undefined) return null;
  unit.awaitEarlierCommits();
  return new Repeated({ ...answerOf(na, text), isRepeated: true });
}

function answerOf(na: Authority, text: string): Answer {
  if (text.startsWith(ANSWER)) return { ok: true, json: text.slice(ANSWER.length, -1) };
  const kept = JSON.parse(text) as KeptForm | { refusal: RefusalName; details: JsonObject };
  if ('refusal' in kept) return { ok: false, ...kept };
  if ('done' in kept) return { ok: false, refusal: 'already_done', details: kept.done };
  const certificate = storedCertificate(na, kept.certificate);
  return certificate === null
    ? { ok: false, refusal: 'already_done', details: {} }
    : { ok: true, json: jsonText(certificate) };
}
