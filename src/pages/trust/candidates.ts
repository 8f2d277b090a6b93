/** Treaties that were considered and rejected, with the test that each one failed. */

import { shownCount } from '../../base/counts.ts';
import type { Candidate, ExplainedTrust, TrustExplanation } from '../../protocol/rows/graph.ts';
import { type Content, type Html, html } from '../ui/html.ts';
import { nameInCell } from '../ui/names.ts';
import { badge, type StateBadge, type Tone } from '../ui/parts.ts';
import { exactTime, sovereignLink, treatyLink } from '../ui/values.ts';
import { type TrustPageQuestion, trustLink } from './form.ts';

/** The data has all that were compared. */
const MOST_LISTED = 24;

export function candidatesSection(
  question: TrustPageQuestion,
  { trusted }: ExplainedTrust,
  { candidates, more_candidates }: TrustExplanation,
): Html {
  const more = Math.max(0, candidates.length - MOST_LISTED) + more_candidates;
  return html`<section class="section" aria-labelledby="considered">
<h2 id="considered">What else was considered</h2>
${
  candidates.length === 0
    ? html`<p class="empty">No ${trusted ? 'other ' : ''}treaty is relevant.</p>`
    : html`<ul class="treaties" id="candidates">
${candidates.slice(0, MOST_LISTED).map((candidate) => candidateRow(question, candidate, trusted))}</ul>`
}${more > 0 ? html`<p class="small muted">And ${shownCount(more)} more that are less closely related.</p>` : ''}</section>`;
}

/** The label, tone and meaning of each test that a treaty may fail. */
const FAILED: Readonly<
  Record<Candidate['failed_test'], readonly [string, Tone, (candidate: Candidate) => Content]>
> = {
  left_out: ['left out', 'neutral', () => 'The question excludes it.'],
  not_issued: [
    'not issued',
    'neutral',
    (each) => html`It was issued at ${exactTime(each.valid_from)}.`,
  ],
  revoked: ['revoked', 'danger', ended],
  replaced: ['replaced', 'neutral', ended],
  expired: ['expired', 'neutral', (each) => html`It expired at ${exactTime(each.expires_at)}.`],
  not_reached: ['not reached', 'neutral', () => 'No path leads to its issuer.'],
  leads_elsewhere: ['leads elsewhere', 'neutral', () => 'No path leads on from there.'],
  longer: ['longer', 'ok', ({ hops }) => `A path over it takes ${hops} treaties.`],
  later: ['as short', 'ok', () => 'It is on an equally short path that comes later in the order.'],
};

function ended({ revoked_at, revocation_reason }: Candidate): Html {
  const at = revoked_at === null ? '' : html` at ${exactTime(revoked_at)}`;
  return html`It ended${at}${revocation_reason === null ? '' : `: ${nameInCell(revocation_reason)}`}.`;
}

export function failureOf({ failed_test }: Candidate): StateBadge {
  const [word, tone] = FAILED[failed_test];
  return { word, tone };
}

function candidateRow(question: TrustPageQuestion, candidate: Candidate, trusted: boolean): Html {
  const { from, to, treaty_id, failed_test, hops } = candidate;
  const [word, tone, meaning] = FAILED[failed_test];
  const isMissing = !trusted && hops !== null;
  return html`<li><p>${sovereignLink(from)} recognizes ${sovereignLink(to)} ${badge({ tone, word })}</p>
<p class="small">${meaning(candidate)}${isMissing ? ' On its own, it would establish the trust.' : ''} <span class="muted">Treaty <span class="id">${treatyLink(treaty_id)}</span>${failed_test === 'left_out' ? html` · <a href="${trustLink(putBack(question, treaty_id))}">Put it back</a>` : ''}</span></p></li>`;
}

function putBack(question: TrustPageQuestion, treatyId: string): TrustPageQuestion {
  return { ...question, without: question.without.filter((id) => id !== treatyId) };
}
