/** Answers requests that are sent again byte for byte [core-2-5] from what was kept of the first answer. */

import { jsonText } from '../../base/json/write.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { Authority } from '../authority.ts';
import type { ReplayRule, SentRequest } from '../replay/replay.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import { storedCertificate } from './issuer.ts';

/** The answer to a repeated request, for which nothing is decided. */
export class Repeated {
  readonly answer: Answer;

  constructor(answer: Answer) {
    this.answer = answer;
  }
}

/**
 * The first answer to a genuine request that is sent again, which waits until that answer is on disk; null if no
 * earlier answer is known.
 */
export function repeatedAnswer(
  na: Authority,
  unit: UnitOfWork,
  rule: ReplayRule,
  signer: string,
  request: SentRequest,
): Repeated | null {
  const found = na.replay.answerTo(rule, signer, request);
  if (found === null) return null;
  unit.awaitEarlierCommits();
  const answer = 'certificate' in found ? certificateAnswer(na, found.certificate) : found;
  return new Repeated({ ...answer, isRepeated: true });
}

function certificateAnswer(na: Authority, certId: string): Answer {
  const certificate = storedCertificate(na, certId);
  return certificate === null
    ? { ok: false, refusal: 'already_done', details: {} }
    : { ok: true, json: jsonText(certificate) };
}
