/** `/treaty`: one recognition treaty with its parties, keys, scope and history [core-4-13], [core-6-1]. */

import { counted } from '../../base/counts.ts';
import type { AuthorityKey } from '../../protocol/records/authority-chain.ts';
import { successorIn } from '../../protocol/records/recognition.ts';
import type { TreatyRow } from '../../protocol/rows/recognition.ts';
import type { GraphModel } from '../graph/model.ts';
import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';
import { badge, facts, section, stateBadge } from '../ui/parts.ts';
import {
  freeForm,
  idText,
  idValue,
  type KeyInForce,
  nameInCell,
  nameInFull,
  reference,
  shortList,
  signer,
  sovereignLink,
  timeText,
  treatyLink,
} from '../ui/values.ts';
import { trustLink } from './form.ts';

export function treatyPage(row: TreatyRow, model: GraphModel, key: KeyInForce): HtmlPage {
  const { treaty, lifecycle } = row;
  const { treaty_id: id, issuer_sovereign_id: from, subject_sovereign_id: to, scope } = treaty;
  return renderPage({
    title: `Treaty ${nameInCell(id)}`,
    heading: 'Treaty',
    path: '/treaty',
    networkName: model.ownName,
    status: html`<p class="lede">${sovereignLink(from)} recognizes ${sovereignLink(to)}. ${badge(stateBadge(lifecycle.state))}</p>`,
    body: html`${section(
      'treaty',
      'Terms',
      facts([
        ['Id', idValue(id)],
        ['In force from', timeText(treaty.valid_from)],
        ['Until', timeText(treaty.expires_at)],
        ['Signed with', signer(treaty, key)],
        ['Roles', rolesOf(scope.allowed_roles)],
        ['Accepted attestations', scope.accepted_statuses.join(', ')],
        ['Required claims', freeForm(scope.claims)],
        ['Metadata', freeForm(treaty.metadata)],
        ...fetchFacts(row),
      ]),
    )}${section('keys', 'Keys of the recognized sovereign', keysOf(row))}${section('history', 'History', html`${history(row, model)}${row.status === 'active' ? whatIf(id, from, to) : ''}`)}<p class="small muted">Raw data: <a href="./recognition-treaties/${encodeURIComponent(id)}">the treaty with its signatures</a>, <a href="./connectome.json">connectome.json</a>.</p>`,
  });
}

function fetchFacts({ endpoint, fetch }: TreatyRow): (readonly [string, Html])[] {
  if (endpoint === undefined || fetch === undefined) return [];
  const { fetched_at: fetched, failing_since: since, problem } = fetch;
  return [
    ['Fetched from', html`<bdi>${endpoint}</bdi>`],
    ['Last fetched', fetched === null ? html`not yet` : timeText(fetched)],
    ...(since === null
      ? []
      : [['Problem', html`${problem ?? ''}, since ${timeText(since)}`] as const]),
  ];
}

function keysOf({ treaty, followed }: TreatyRow): Html {
  const states = new Map(followed?.keys.map((key) => [key.public_key, key]));
  const keys = shortList(
    treaty.subject_public_keys,
    (key) => html`${idValue(key)}${stateText(states.get(key))}`,
  );
  if (followed === undefined) return keys;
  return html`${keys}<p class="small muted">The treaty follows this sovereign from one authority key to the next: ${counted(followed.sequence, 'change')} so far, signed by the root key ${idValue(followed.root_public_key)}.</p>`;
}

function stateText(key: AuthorityKey | undefined): Html {
  switch (key?.state) {
    case 'current':
      return html` current${key.since === null ? '' : html` since ${timeText(key.since)}`}`;
    case 'previous':
      return html` previous${key.signs_until === null ? '' : html`, accepted until ${timeText(key.signs_until)}`}`;
    default:
      return key === undefined ? NO_HTML : html` ${key.state}`;
  }
}

/** Asks what would change without it; only for names that fit in a URL. */
function whatIf(id: string, from: string, to: string): Html {
  if (reference(from) !== from || reference(to) !== to) return NO_HTML;
  const link = trustLink({ from, to, asOf: '', without: [id] });
  return html`<p><a href="${link}">What if it ended?</a></p>`;
}

function rolesOf(roles: readonly string[]): Html {
  if (roles.length === 0) return html`any role`;
  return shortList(roles, (role) => html`<bdi>${nameInCell(role)}</bdi>`);
}

function history({ treaty, lifecycle, revoked_at }: TreatyRow, model: GraphModel): Html {
  const { state, revocation_reason: reason, replacement_treaty_id: successor } = lifecycle;
  const isOver = state === 'expired';
  return html`<ol class="history">
<li>Issued at ${timeText(treaty.issued_at)}</li>
${predecessorsOf(model, treaty.treaty_id).map((id) => html`<li>Replaced ${treatyLink(id)}</li>`)}${
  revoked_at === null
    ? html`<li>${isOver ? 'Expired' : 'Expires'} at ${timeText(treaty.expires_at)}</li>`
    : html`<li>${successor === null ? 'Revoked' : 'Replaced'} at ${timeText(revoked_at)}${successor === null ? reasonText(reason) : html` by ${successorText(model, successor)}`}</li>`
}</ol>`;
}

function reasonText(reason: string | null): Html {
  return reason === null
    ? html`; no reason given`
    : html`, because: <bdi>${nameInFull(reason)}</bdi>`;
}

/** An operator may name a treaty that does not exist. */
function successorText(model: GraphModel, id: string): Html {
  return model.treaty(id) === undefined ? idText(id) : treatyLink(id);
}

const MOST_PREDECESSORS = 20;

const predecessors = new WeakMap<GraphModel, ReadonlyMap<string, readonly string[]>>();

/** The treaties that this one replaced, according to their revocation reasons. */
function predecessorsOf(model: GraphModel, id: string): readonly string[] {
  const known = predecessors.get(model) ?? replacedBy(model);
  predecessors.set(model, known);
  return (known.get(id) ?? []).slice(0, MOST_PREDECESSORS);
}

function replacedBy({ document }: GraphModel): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const { type, id, reason } of document.revoked_trust_material) {
    const successor = type === 'recognition_treaty' ? successorIn(reason) : null;
    if (successor === null) continue;
    const ids = found.get(successor);
    if (ids === undefined) found.set(successor, [id]);
    else ids.push(id);
  }
  return found;
}
