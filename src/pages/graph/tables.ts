/** Tables of treaties and revocations, with everything that the drawing shows. */

import type { BlastRadiusRow, EdgeRow, RevokedMaterial } from '../../protocol/rows/graph.ts';
import { LIFECYCLE_STATES } from '../../protocol/rows/recognition.ts';
import { choiceField, wordChoices } from '../ui/fields.ts';
import { type Content, type Html, html, NO_HTML } from '../ui/html.ts';
import { nameInCell } from '../ui/names.ts';
import { badge, stateBadge } from '../ui/parts.ts';
import { type Column, sovereignColumn, table, timeColumn } from '../ui/table.ts';
import { idText, linksInLine, sovereignLink, treatyLink } from '../ui/values.ts';
import type { EdgeState, GraphModel } from './model.ts';
import type { TreatyOrder } from './treaty-query.ts';

/** Chooses among the states of treaties. */
export function stateField(chosen: EdgeState | null): Html {
  return choiceField('state', 'Treaty state', wordChoices(LIFECYCLE_STATES), chosen ?? '');
}

/** Returns how a column of the treaty table is sorted. */
export type Sorting = (order: TreatyOrder) => NonNullable<Column<EdgeRow>['sorting']>;

/** `without` leaves out the column of the sovereign whose treaties these all are; the first column names the row. */
export function edgesTable(
  id: string,
  caption: Content,
  rows: readonly EdgeRow[],
  { sorting, without }: { readonly sorting?: Sorting; readonly without?: 'from' | 'to' } = {},
): Html {
  const [head, ...rest] = EDGE_COLUMNS.filter(({ order }) => order !== without).map(
    ({ order, ...column }) =>
      sorting === undefined ? column : { ...column, sorting: sorting(order) },
  );
  const columns = head === undefined ? [] : [{ ...head, isHead: true }, ...rest];
  // Only the sorted table is on a live page.
  if (sorting === undefined) return table({ id, caption, rows, columns });
  return table({ id, caption, rows, columns, keyOf: ({ treaty_id }) => treaty_id });
}

const EDGE_COLUMNS: readonly (Column<EdgeRow> & { readonly order: TreatyOrder })[] = [
  { ...sovereignColumn('Issuer', (row) => row.from), order: 'from' },
  { ...sovereignColumn('Subject', (row) => row.to), order: 'to' },
  {
    head: 'State',
    order: 'state',
    kind: 'first',
    cell: ({ lifecycle_state }) => badge(stateBadge(lifecycle_state)),
  },
  { ...timeColumn('From', (row) => row.valid_from), order: 'begins' },
  { ...timeColumn('Until', (row) => row.expires_at, 'nowrap first'), order: 'ends' },
  { head: 'Treaty', order: 'id', kind: 'id', cell: ({ treaty_id }) => treatyLink(treaty_id) },
];

export function materialTable(
  caption: string,
  rows: readonly RevokedMaterial[],
  treatyOf: GraphModel['treaty'],
): Html {
  return table({
    id: 'revoked-material',
    caption,
    rows,
    columns: [
      timeColumn('Revoked', (row: RevokedMaterial) => row.revoked_at, 'nowrap first'),
      { head: 'What', kind: 'nowrap first', cell: kindOf },
      { head: 'Whose', kind: 'name', cell: (row) => partiesOf(row, treatyOf) },
      { head: 'Reason', kind: 'name', cell: ({ reason }) => reasonText(reason) },
      { head: 'Id', kind: 'id', isHead: true, cell: materialId },
    ],
    keyOf: (row) => `${row.id} ${row.type === 'recognition_treaty' ? '' : row.issuer_sovereign_id}`,
  });
}

function partiesOf(row: RevokedMaterial, treatyOf: GraphModel['treaty']): Html {
  if (row.type !== 'recognition_treaty') return sovereignLink(row.issuer_sovereign_id);
  const treaty = treatyOf(row.id);
  if (treaty === undefined) return NO_HTML;
  return html`<span>${sovereignLink(treaty.from)}, for ${sovereignLink(treaty.to)}</span>`;
}

/** Attestations of other sovereigns have no page here. */
function materialId({ type, id }: RevokedMaterial): Html {
  return type === 'recognition_treaty' ? treatyLink(id) : idText(id);
}

function kindOf(row: RevokedMaterial): string {
  if (row.type === 'membership_attestation') return 'Attestation';
  return row.lifecycle_state === 'replaced' ? 'Treaty, replaced' : 'Treaty';
}

function reasonText(reason: string | null): Html {
  return html`<bdi>${reason === null ? 'none given' : nameInCell(reason)}</bdi>`;
}

export function blastRadiusTable(caption: Content, rows: readonly BlastRadiusRow[]): Html {
  return table({
    id: 'blast-radius',
    caption,
    rows,
    columns: BLAST_COLUMNS,
    keyOf: ({ id, issuer_sovereign_id }) => `${id} ${issuer_sovereign_id}`,
  });
}

const BLAST_COLUMNS: readonly Column<BlastRadiusRow>[] = [
  { head: 'Attestation', kind: 'id', isHead: true, cell: ({ id }) => idText(id) },
  sovereignColumn('Revoked by', (row) => row.issuer_sovereign_id),
  {
    head: 'Affected',
    kind: 'name',
    cell: ({ affected_accepting_sovereigns: ids }) =>
      ids.length === 0
        ? html`<span class="muted">none now</span>`
        : linksInLine(ids, sovereignLink),
  },
  { head: 'Reason', kind: 'name', cell: ({ reason }) => reasonText(reason) },
  timeColumn('Imported', (row) => row.revoked_at, 'nowrap first'),
];
