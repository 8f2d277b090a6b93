/** Treaties and revocations as tables: they contain everything that the drawing shows. */
import { displayTime } from '../views/display-time.ts';
import type { BlastRadiusRow, EdgeRow, RevokedMaterial } from '../views/rows/graph.ts';
import { EDGE_STATES, type EdgeState, STATE_WORDS } from './graph-model.ts';
import { atlasLink, nameInCell } from './graph-names.ts';
import { type Html, html } from './html.ts';

/** The most rows of a table; the underlying documents have all of them. */
export const MOST_ROWS = 1500;

const STATE_TONES: Readonly<Record<EdgeState, string>> = {
  active: 'ok',
  expiring_soon: 'warn',
  expired: 'neutral',
  revoked: 'danger',
  replaced: 'neutral',
};

/** A link to a sovereign in the atlas. */
export function sovereignLink(id: string): Html {
  return html`<a href="${atlasLink(id)}#selected"><bdi>${nameInCell(id)}</bdi></a>`;
}

/** A word in the color of its meaning. */
export function badge({ tone, word }: { readonly tone: string; readonly word: string }): Html {
  return html`<span class="badge ${tone}">${word}</span>`;
}

export interface StateBadge {
  readonly word: string;
  readonly tone: string;
}

export function stateBadge(state: string): StateBadge {
  const known = EDGE_STATES.find((each) => each === state);
  if (known === undefined) return { word: state, tone: 'neutral' };
  return { word: STATE_WORDS[known], tone: STATE_TONES[known] };
}

interface TableParts<Row> {
  readonly id: string;
  readonly caption: string;
  readonly heads: readonly string[];
  readonly rows: readonly Row[];
  readonly row: (row: Row) => Html;
}

function table<Row>({ id, caption, heads, rows, row }: TableParts<Row>): Html {
  const left = Math.max(0, rows.length - MOST_ROWS);
  return html`<div class="table-box" tabindex="0" role="region" aria-label="${caption}">
<table id="${id}">
<caption>${caption}${left > 0 ? html` ${left} more are in <a href="./connectome.json">connectome.json</a>.` : ''}</caption>
<thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>
${rows.slice(0, MOST_ROWS).map(row)}</tbody>
</table>
</div>
`;
}

export function edgesTable(id: string, caption: string, rows: readonly EdgeRow[]): Html {
  const heads = ['Recognizes', 'Is recognized', 'State', 'From', 'Until', 'Treaty'];
  return table({ id, caption, heads, rows, row: edgeRow });
}

function edgeRow({ from, to, lifecycle_state, valid_from, expires_at, treaty_id }: EdgeRow): Html {
  return html`<tr data-state="${lifecycle_state}"><th scope="row" class="name">${sovereignLink(from)}</th><td class="name">${sovereignLink(to)}</td><td>${badge(stateBadge(lifecycle_state))}</td><td class="nowrap">${displayTime(valid_from)}</td><td class="nowrap">${displayTime(expires_at)}</td><td class="id">${nameInCell(treaty_id)}</td></tr>
`;
}

export function materialTable(
  caption: string,
  rows: readonly RevokedMaterial[],
  treaties: ReadonlyMap<string, EdgeRow>,
): Html {
  const heads = ['Revoked', 'What', 'Whose', 'Reason', 'Id'];
  const row = (each: RevokedMaterial) => materialRow(each, treaties);
  return table({ id: 'revoked-material', caption, heads, rows, row });
}

function materialRow(row: RevokedMaterial, treaties: ReadonlyMap<string, EdgeRow>): Html {
  const treaty = row.type === 'recognition_treaty' ? treaties.get(row.id) : undefined;
  const issuer = row.type === 'recognition_treaty' ? treaty?.from : row.issuer_sovereign_id;
  return html`<tr><td class="nowrap">${displayTime(row.revoked_at)}</td><td class="nowrap">${kindOf(row)}</td><td class="name">${
    issuer === undefined ? '' : sovereignLink(issuer)
  }${treaty === undefined ? '' : html`, for ${sovereignLink(treaty.to)}`}</td><td class="name"><bdi>${reasonText(row.reason)}</bdi></td><th scope="row" class="id">${nameInCell(row.id)}</th></tr>
`;
}

function kindOf(row: RevokedMaterial): string {
  if (row.type === 'membership_attestation') return 'Attestation';
  return row.lifecycle_state === 'replaced' ? 'Treaty, replaced' : 'Treaty';
}

function reasonText(reason: string | null): string {
  return reason === null ? 'none given' : nameInCell(reason);
}

export function blastRadiusTable(caption: string, rows: readonly BlastRadiusRow[]): Html {
  const heads = [
    'Attestation',
    'Revoked by',
    'Affects, because they recognize it',
    'Reason',
    'Imported',
  ];
  return table({ id: 'blast-radius', caption, heads, rows, row: blastRadiusRow });
}

const MOST_AFFECTED = 12;

function blastRadiusRow(row: BlastRadiusRow): Html {
  return html`<tr><th scope="row" class="id">${nameInCell(row.id)}</th><td class="name">${sovereignLink(row.issuer_sovereign_id)}</td><td class="name">${affected(row.affected_accepting_sovereigns)}</td><td class="name"><bdi>${reasonText(row.reason)}</bdi></td><td class="nowrap">${displayTime(row.revoked_at)}</td></tr>
`;
}

function affected(ids: readonly string[]): Html {
  if (ids.length === 0) return html`<span class="quiet">nobody now</span>`;
  const more = Math.max(0, ids.length - MOST_AFFECTED);
  const links = ids
    .slice(0, MOST_AFFECTED)
    .map((id, index) => html`${index > 0 ? ', ' : ''}${sovereignLink(id)}`);
  return html`${links}${more > 0 ? ` and ${more} more` : ''}`;
}
