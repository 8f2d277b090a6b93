/** Treaties and revocations as tables: they contain everything that the drawing shows. */
import { displayTime } from '../views/display-time.ts';
import type { BlastRadiusRow, EdgeRow, RevokedMaterial } from '../views/rows/graph.ts';
import { EDGE_STATES, type EdgeState, STATE_WORDS } from './graph-model.ts';
import { atlasLink, nameInCell } from './graph-names.ts';
import { type Html, html } from './html.ts';
import { MOST_ROWS, table } from './table.ts';

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

/** The first rows of a table that may have too many, and the sentence about it. */
function firstRows<Row>(sentence: string, all: readonly Row[]) {
  const left = Math.max(0, all.length - MOST_ROWS);
  const rest =
    left === 0 ? '' : html` ${left} more are in <a href="./connectome.json">connectome.json</a>.`;
  return { caption: html`${sentence}${rest}`, rows: all.slice(0, MOST_ROWS) };
}

export function edgesTable(id: string, caption: string, rows: readonly EdgeRow[]): Html {
  return table({
    id,
    ...firstRows(caption, rows),
    columns: EDGE_COLUMNS,
    keyOf: ({ treaty_id }) => treaty_id,
    row: edgeRow,
  });
}

const EDGE_COLUMNS = ['Recognizes', 'Is recognized', 'State', 'From', 'Until', 'Treaty'].map(
  (head) => ({ head }),
);

function edgeRow({ from, to, lifecycle_state, valid_from, expires_at, treaty_id }: EdgeRow): Html {
  return html`<tr data-state="${lifecycle_state}"><th scope="row" class="name">${sovereignLink(from)}</th><td class="name">${sovereignLink(to)}</td><td>${badge(stateBadge(lifecycle_state))}</td><td class="nowrap">${displayTime(valid_from)}</td><td class="nowrap">${displayTime(expires_at)}</td><td class="id">${nameInCell(treaty_id)}</td></tr>
`;
}

export function materialTable(
  caption: string,
  rows: readonly RevokedMaterial[],
  treaties: ReadonlyMap<string, EdgeRow>,
): Html {
  return table({
    id: 'revoked-material',
    ...firstRows(caption, rows),
    columns: MATERIAL_COLUMNS,
    keyOf: (row) => `${row.id} ${row.type === 'recognition_treaty' ? '' : row.issuer_sovereign_id}`,
    row: (row) => materialRow(row, treaties),
  });
}

const MATERIAL_COLUMNS = ['Revoked', 'What', 'Whose', 'Reason', 'Id'].map((head) => ({ head }));

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
  return table({
    id: 'blast-radius',
    ...firstRows(caption, rows),
    columns: BLAST_COLUMNS,
    keyOf: ({ id, issuer_sovereign_id }) => `${id} ${issuer_sovereign_id}`,
    row: blastRadiusRow,
  });
}

const BLAST_COLUMNS = [
  'Attestation',
  'Revoked by',
  'Affects, because they recognize it',
  'Reason',
  'Imported',
].map((head) => ({ head }));

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
