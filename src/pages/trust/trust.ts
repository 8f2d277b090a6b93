/**
 * `/trust`: why one sovereign does or does not trust another [service-read-endpoints], [core-6-3-1]. Every question is
 * a plain URL, so it works without scripts and can be bookmarked and shared.
 */
import { counted, shownCount } from '../../base/counts.ts';
import { MOST_LEFT_OUT } from '../../protocol/api/graph.ts';
import type {
  Candidate,
  EdgeRow,
  ExplainedTrust,
  TreatyEnds,
  TrustCut,
  TrustExplanation,
} from '../../protocol/rows/graph.ts';
import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Content, type Html, html, NO_HTML } from '../ui/html.ts';
import { badge, type StateBadge, stateBadge, type Tone } from '../ui/parts.ts';
import {
  exactTime,
  followedText,
  nameInCell,
  nameInDrawing,
  nameInFull,
  sovereignAddress,
  sovereignLink,
  timeText,
  treatyLink,
} from '../ui/values.ts';
import { type TrustPageQuestion, trustDataLink, trustForm, trustLink } from './form.ts';

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

/**
 * Draws a trust path: sovereigns in a row, with treaties as arrows between them. When there is no trust, the missing
 * link is drawn broken. The drawing consists of text and boxes, so that it fits any width.
 */

/** An explanation adds details to the drawing. */
type DrawnTrust = Pick<ExplainedTrust, 'from' | 'to' | 'trusted' | 'reason' | 'path'> & {
  readonly explanation?: TrustExplanation | null;
};

/** The step to the next sovereign. */
interface Hop {
  readonly to: string;
  readonly tone: string;
  /** The mark across the arrow when it carries no trust. */
  readonly mark: '' | '✕' | '?';
  readonly above: Content;
  readonly below: Content;
}

const MOST_HOPS = 64;
const MOST_ROLES = 2;

function pathDrawing(trust: DrawnTrust): Html {
  if (trust.from === trust.to) return NO_HTML;
  const hops = hopsOf(trust);
  const left = trust.trusted ? trust.path.length - hops.length : 0;
  return html`<figure class="path-drawing" aria-label="The path as a drawing">
<ol>
<li>${end(trust.from)}</li>
${hops.map(hopItem)}${left > 0 ? html`<li class="muted">and ${left} more</li>` : ''}</ol>
</figure>`;
}

function hopsOf(trust: DrawnTrust): Hop[] {
  const { to, trusted, reason, path, explanation } = trust;
  if (trusted) {
    return path
      .slice(0, MOST_HOPS)
      .map((edge, place) => treatyHop(edge, explanation?.terms[place]));
  }
  if (reason === 'indeterminate') {
    const isUnknown = { word: 'not known', tone: 'neutral' };
    return [{ to, tone: 'neutral', mark: '?', above: badge(isUnknown), below: '' }];
  }
  const missing = explanation?.candidates.find(({ hops }) => hops !== null);
  if (missing !== undefined) return hopsOver(missing, trust);
  const [ended] = path;
  const why = ended === undefined ? NO_TREATIES : stateBadge(ended.lifecycle_state);
  return [brokenHop(to, why, '')];
}

const NO_TREATIES: StateBadge = { word: 'no active treaties', tone: 'danger' };

/** The one treaty that would establish the trust, and the existing parts of the path. */
function hopsOver(missing: Candidate, { from, to }: DrawnTrust): Hop[] {
  return [
    ...(missing.from === from ? [] : [activeHop(missing.from)]),
    brokenHop(missing.to, failureOf(missing), sinceWhen(missing)),
    ...(missing.to === to ? [] : [activeHop(to)]),
  ];
}

function treatyHop(
  { to, lifecycle_state, expires_at }: EdgeRow,
  terms: TrustExplanation['terms'][number] | undefined,
): Hop {
  const { tone } = stateBadge(lifecycle_state);
  return {
    to,
    tone,
    mark: '',
    above: terms === undefined ? '' : scopeText(terms),
    below: html`until ${timeText(expires_at)}`,
  };
}

function scopeText({ scope }: TrustExplanation['terms'][number]): string {
  if (scope === null) return 'scope in the treaty';
  const roles = scope.allowed_roles.slice(0, MOST_ROLES).map(nameInDrawing).join(', ');
  const more = scope.allowed_roles.length - MOST_ROLES;
  const claims = Object.keys(scope.claims).length > 0 ? ', further claims' : '';
  return `for ${roles || 'any role'}${more > 0 ? ` and ${more} more` : ''}${claims}`;
}

function activeHop(to: string): Hop {
  return { to, tone: 'ok', mark: '', above: 'active treaties', below: '' };
}

function brokenHop(to: string, { word, tone }: StateBadge, below: Content): Hop {
  return { to, tone, mark: '✕', above: badge({ word, tone }), below };
}

function sinceWhen({ failed_test, valid_from, expires_at, revoked_at }: Candidate): Content {
  switch (failed_test) {
    case 'not_issued':
      return html`issued ${timeText(valid_from)}`;
    case 'expired':
      return html`since ${timeText(expires_at)}`;
    default:
      return revoked_at === null ? '' : html`since ${timeText(revoked_at)}`;
  }
}

function hopItem({ to, tone, mark, above, below }: Hop): Html {
  return html`<li><div class="hop ${tone}"><span class="hop-text">${above}</span><span class="hop-arrow">${ARROW}${mark === '' ? '' : html`<span class="hop-mark" aria-hidden="true">${mark}</span>`}</span><span class="hop-text">${below}</span></div>${end(to)}</li>`;
}

function end(id: string): Html {
  const drawn = nameInDrawing(id);
  const full = drawn === nameInCell(id) ? NO_HTML : html` title="${nameInFull(id)}"`;
  return html`<a class="path-end" href="${sovereignAddress(id)}"${full}><bdi>${drawn}</bdi></a>`;
}

/** Fills the available width: the start of its line is cropped. */
const ARROW = html`<svg viewBox="0 0 400 12" preserveAspectRatio="xMaxYMid slice" aria-hidden="true"><path class="hop-line" d="M0 6H390"/><path class="hop-head" d="M390 1 400 6 390 11z"/></svg>`;

/** Treaties that were considered and rejected, with the test that each one failed. */

/** The data has all that were compared. */
const MOST_LISTED = 24;

function candidatesSection(
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

function failureOf({ failed_test }: Candidate): StateBadge {
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
