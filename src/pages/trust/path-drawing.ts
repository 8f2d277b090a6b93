/**
 * Draws a trust path: sovereigns in a row, with treaties as arrows between them. When there is no trust, the missing
 * link is drawn broken. The drawing consists of text and boxes, so that it fits any width.
 */
import type {
  Candidate,
  EdgeRow,
  ExplainedTrust,
  TrustExplanation,
} from '../../protocol/rows/graph.ts';
import { type Content, type Html, html, NO_HTML } from '../ui/html.ts';
import { nameInCell, nameInDrawing, nameInFull } from '../ui/names.ts';
import { badge, type StateBadge, stateBadge } from '../ui/parts.ts';
import { sovereignAddress, timeText } from '../ui/values.ts';
import { failureOf } from './candidates.ts';

/** An explanation adds details to the drawing. */
export type DrawnTrust = Pick<ExplainedTrust, 'from' | 'to' | 'trusted' | 'reason' | 'path'> & {
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

export function pathDrawing(trust: DrawnTrust): Html {
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
