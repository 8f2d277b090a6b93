/** Answers trust questions beyond the current path: why, at another time, or without certain treaties [core-6-3-1]. */

import type { Writable } from '../../base/json/write.ts';
import { formatInstant, formatInstantIfAny } from '../../base/timestamp.ts';
import type { RevocationKnowledge } from '../../protocol/api/verification.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { ConsideredTrust } from '../../protocol/rows/graph.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { Sliced } from '../subjects/sliced.ts';
import { isRevokedHere } from './attestations.ts';
import { publishGraph } from './graph.ts';
import { isTreatyRevoked, ownTreatyKeys } from './treaties.ts';
import { explainTrust } from './trust-explanation.ts';
import { findTrustPathIn, trustView } from './trust-path.ts';

export const considerTrust: Handler<'considerTrust'> = (na, question, at) => {
  assertAnswerable(na, question, at);
  if (!question.explain || isUnknown(na, question)) return answerTo(na, question, at);
  return new Sliced(explained(na, question));
};

function assertAnswerable(
  na: Authority,
  { asOf, without }: CallInput<'considerTrust'>,
  at: number,
): void {
  if (asOf !== null && asOf > at) throw new Refusal('invalid_as_of');
  const unknown = without.find((id) => na.recognition.edge(id) === undefined);
  if (unknown !== undefined) throw new Refusal('treaty_not_found', { treaty_id: unknown });
}

/** If the graph keeps changing while it is built in slices, its digest is computed without a pause. */
const MOST_ATTEMPTS = 4;

/** Path, digest and explanation all describe the same state of the treaties, even though the work pauses in between. */
function* explained(
  na: Authority,
  question: CallInput<'considerTrust'>,
): Generator<void, Writable> {
  let graph = yield* na.graph.copy.current();
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
    if (na.graph.digest.isKnown(na.runtime.now())) break;
    yield* publishGraph(na);
    graph = yield* na.graph.copy.current();
  }
  const now = na.runtime.now();
  const answer = answerTo(na, question, now);
  const { trusted, path, hop_count } = answer;
  const explanation = yield* explainTrust({
    graph,
    view: trustView(now, question.asOf, new Set(question.without)),
    found: { trusted, path, hop_count },
    source: na.recognition.sovereign(question.from)?.number ?? null,
    target: na.recognition.sovereign(question.to)?.number ?? null,
  });
  return { ...answer, explanation };
}

/** The answer is unknown before the first treaty was issued, because there are no records of that time. */
function isUnknown(na: Authority, { asOf }: CallInput<'considerTrust'>): boolean {
  if (asOf === null) return false;
  const first = na.recognition.edges()[0];
  return first === undefined || asOf < first.treaty.issuedAt;
}

function answerTo(
  na: Authority,
  question: CallInput<'considerTrust'>,
  now: number,
): ConsideredTrust {
  const { from, to, asOf, without, explain } = question;
  const first = na.recognition.edges()[0];
  const isIndeterminate = isUnknown(na, question);
  const view = trustView(now, asOf, new Set(without));
  return {
    ...(isIndeterminate
      ? { from, to, trusted: false, reason: 'indeterminate', path: [], hop_count: 0 }
      : findTrustPathIn(view, na.recognition, from, to)),
    as_of: formatInstantIfAny(asOf),
    evaluated_at: formatInstant(view.at),
    known_from: formatInstantIfAny(first?.treaty.issuedAt ?? null),
    without: [...without],
    graph_digest: na.graph.digest.at(now),
    ...(explain && isIndeterminate && { explanation: null }),
  };
}

export const askRevocations: Handler<'askRevocations'> = (na, { attestation, treaty }, at) => {
  const named = new Set(treaty === null ? [] : ownTreatyKeys(na, treaty.issuer, at));
  const knowledge: RevocationKnowledge = {
    attestation_revoked_here: attestation !== null && isRevokedHere(na, attestation.id),
    attestation_revoked_by_feed:
      attestation !== null && na.recognition.isRevoked(attestation.issuer, attestation.id),
    treaty_revoked: treaty !== null && isTreatyRevoked(na, treaty.id),
    treaty_keys: treaty === null ? [] : treaty.issuerKeys.filter((key) => named.has(key)),
  };
  return { ...knowledge };
};
