/**
 * `/trust`: why one sovereign does or does not trust another [service-read-endpoints], [core-6-3-1]. Every question is
 * a plain URL, so it works without scripts and can be bookmarked and shared.
 */

import { counted } from '../../base/counts.ts';
import { MOST_LEFT_OUT } from '../../protocol/api/graph.ts';
import type {
  EdgeRow,
  ExplainedTrust,
  TreatyEnds,
  TrustCut,
  TrustExplanation,
} from '../../protocol/rows/graph.ts';
import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';
import { nameInCell } from '../ui/names.ts';
import { badge, stateBadge } from '../ui/parts.ts';
import { exactTime, followedText, sovereignLink, treatyLink } from '../ui/values.ts';
import { candidatesSection } from './candidates.ts';
import { type TrustPageQuestion, trustDataLink, trustForm, trustLink } from './form.ts';
import { pathDrawing } from './path-drawing.ts';

/** The answer, or why there is none; null when nothing was asked. */
export type TrustPageAnswer = ExplainedTrust | { readonly problem: string } | null;

/** Longer paths are truncated on the page; the JSON has all treaties. */
const MOST_STEPS = 64;

export function trustPage(
  question: TrustPageQuestion,
  answer: TrustPageAnswer,
  networkName: string,
): HtmlPage {
  return renderPage({
    title: 'Why A trusts B',
    lede: 'One sovereign trusts another over a path of active treaties. See through whom, until when, what else was considered, and what would change it.',
    path: '/trust',
    networkName,
    body: html`<section class="section" aria-labelledby="ask">
<h2 id="ask" class="visually-hidden">Question</h2>
${trustForm(question, namesIn(answer, networkName))}</section>
${answerSection(question, answer)}`,
  });
}

function namesIn(answer: TrustPageAnswer, networkName: string): string[] {
  if (answer === null || 'problem' in answer) return [networkName];
  const { path, explanation } = answer;
  const treaties = [...path.slice(0, MOST_STEPS), ...(explanation?.candidates ?? [])];
  return [...new Set([networkName, ...treaties.flatMap(({ from, to }) => [from, to])])];
}

function answerSection(question: TrustPageQuestion, answer: TrustPageAnswer): Html {
  if (answer === null) {
    return html`<p class="small muted" id="answer">Type the names of two sovereigns: the one that trusts, and the one that is trusted. The <a href="./atlas">atlas</a> lists those that treaties name.</p>`;
  }
  if ('problem' in answer) {
    return html`<p class="notice danger" id="answer">${answer.problem}.</p>`;
  }
  const { explanation } = answer;
  return html`<section class="section" aria-labelledby="answer">
${verdict(answer)}${pathDrawing(answer)}${explanation === null ? '' : untilFacts(explanation)}${pathList(question, answer)}</section>
${explanation === null ? '' : html`${cutSection(question, explanation.cut)}${candidatesSection(question, answer, explanation)}`}${evidenceSection(question, answer)}`;
}

function verdict(answer: ExplainedTrust): Html {
  const { trusted, reason } = answer;
  const word = reason === 'indeterminate' ? 'Not known' : trusted ? 'Trusted' : 'Not trusted';
  return html`<div class="posture ${trusted ? 'ok' : 'warn'}"><h2 id="answer">${word}</h2>
<p>${condition(answer)}${sentence(answer)} <code>${reason}</code></p></div>`;
}

/** The time and the treaties that the answer assumes. */
function condition({ as_of, without }: ExplainedTrust): Html {
  const left = counted(without.length, 'treaty', 'treaties');
  if (as_of === null) return without.length === 0 ? NO_HTML : html`Without ${left}: `;
  return html`As of ${exactTime(as_of)}${without.length === 0 ? '' : `, without ${left}`}: `;
}

function sentence({ from, to, reason, hop_count, known_from }: ExplainedTrust): Html {
  const [a, b] = [name(from), name(to)];
  switch (reason) {
    case 'active_treaty_path':
      return html`${a} trusts ${b} over ${counted(Number(hop_count), 'active treaty', 'active treaties')}; no path is shorter.`;
    case 'direct_treaty_revoked':
      return html`${a} does not trust ${b}: no path of active treaties leads there, and the direct treaty has been revoked or replaced.`;
    case 'indeterminate':
      return known_from === null
        ? html`no treaty has ever been issued here, so nothing is known about that time.`
        : html`whether ${a} trusted ${b} is not known. The first treaty was issued at ${exactTime(known_from)}.`;
    default:
      return from === to
        ? html`${a} is both; a path needs two different sovereigns.`
        : html`${a} does not trust ${b}: no path of active treaties leads there.`;
  }
}

function untilFacts({ trusted_until, path_until }: TrustExplanation): Html {
  if (trusted_until === null || path_until === null) return NO_HTML;
  return html`<dl class="facts">
<dt>Trusted until</dt><dd>${exactTime(trusted_until)}, if nothing else changes</dd>
<dt>This path valid until</dt><dd>${exactTime(path_until)}</dd>
</dl>`;
}

function pathList(question: TrustPageQuestion, { path, explanation }: ExplainedTrust): Html {
  if (path.length === 0) return NO_HTML;
  const left = path.length - MOST_STEPS;
  return html`<ol class="path-steps">
${path.slice(0, MOST_STEPS).map((edge, place) => pathStep(question, edge, explanation?.terms[place]))}</ol>
${left > 0 ? html`<p class="small muted">And ${left} more: see the JSON.</p>` : ''}`;
}

type Terms = TrustExplanation['terms'][number];

function pathStep(question: TrustPageQuestion, edge: EdgeRow, terms: Terms | undefined): Html {
  const { from, to, lifecycle_state, valid_from, expires_at, treaty_id, status } = edge;
  return html`<li><p>${sovereignLink(from)} recognizes ${sovereignLink(to)} ${badge(stateBadge(lifecycle_state))}</p>
<p class="small muted">From ${exactTime(valid_from)} until ${exactTime(expires_at)}.${termsText(terms)}${followedText(edge)} Treaty <span class="id">${treatyLink(treaty_id)}</span></p>
${status === 'active' ? whatIf(question, [treaty_id], 'What if it ended?') : ''}</li>`;
}

function termsText(terms: Terms | undefined): string {
  if (terms === undefined) return '';
  if (terms.scope === null) return ' The treaty has its scope.';
  const { allowed_roles, accepted_statuses, claims } = terms.scope;
  const roles = allowed_roles.length === 0 ? 'any role' : allowed_roles.slice(0, 16).join(', ');
  const more = allowed_roles.length > 16 ? ` and ${allowed_roles.length - 16} more` : '';
  const conditions = Object.keys(claims).length > 0 ? ', with further claims required' : '';
  return ` Scope: ${nameInCell(roles)}${more}; attestations that are ${accepted_statuses.join(' or ')}${conditions}.`;
}

function cutSection(question: TrustPageQuestion, { state, size, treaties }: TrustCut): Html {
  if (state === 'none') return NO_HTML;
  return html`<section class="section" aria-labelledby="cut">
<h2 id="cut">What the trust rests on</h2>
${
  state === 'indeterminate'
    ? html`<p>The trust would end only if at least ${size} treaties ended: too many to list.</p>`
    : html`<p>${size === 1 ? 'The trust ends with this treaty:' : `The trust ends only if these ${size} treaties all end:`}</p>
<ul class="treaties" id="cut-treaties">
${treaties.map((treaty) => cutRow(question, treaty))}</ul>
${
  size > 1
    ? whatIf(
        question,
        treaties.map(({ treaty_id }) => treaty_id),
        'What if all of them ended?',
      )
    : ''
}`
}</section>`;
}

function cutRow(question: TrustPageQuestion, { from, to, treaty_id }: TreatyEnds): Html {
  return html`<li><p>${sovereignLink(from)} recognizes ${sovereignLink(to)}</p><p class="small muted">Treaty <span class="id">${treatyLink(treaty_id)}</span></p>${whatIf(question, [treaty_id], 'What if it ended?')}</li>`;
}

function whatIf(question: TrustPageQuestion, ids: readonly string[], text: string): Html {
  const without = [...new Set([...question.without, ...ids])];
  if (without.length > MOST_LEFT_OUT) return NO_HTML;
  return html`<p class="small"><a href="${trustLink({ ...question, without })}">${text}</a></p>`;
}

function evidenceSection(question: TrustPageQuestion, answer: ExplainedTrust): Html {
  const { evaluated_at, known_from, graph_digest } = answer;
  return html`<section class="section" aria-labelledby="evidence">
<h2 id="evidence">Evidence</h2>
<dl class="facts">
<dt>Evaluated at</dt><dd>${exactTime(evaluated_at)}</dd>
<dt>Record begins</dt><dd>${known_from === null ? 'with the first treaty' : exactTime(known_from)}</dd>
<dt>Graph digest</dt><dd class="id">${graph_digest}</dd>
</dl>
<p><a href="${trustDataLink(question)}" download="trust-path.json">Download this answer as JSON</a></p>
<p class="small muted">The digest covers the current canonical <a href="./recognition-graph">recognition-graph</a>, whose rows contain every timestamp that the answer depends on.</p>
</section>`;
}

function name(id: string): Html {
  return html`<bdi>${nameInCell(id)}</bdi>`;
}
