/** The fleet: how many nodes are healthy, unwell, silent and lapsing, as a whole and by role. Only counts are public. */

import { counted, shownCount } from '../../base/counts.ts';
import type { Fleet, NodeCounts, RoleCounts } from '../../protocol/rows/dashboard.ts';
import type { SeriesName } from '../../protocol/rows/history.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';
import { bar, emptyState, type Stat, section, stats, type Tone } from '../ui/parts.ts';
import { type Column, table } from '../ui/table.ts';
import { capital, nameInCell } from '../ui/values.ts';
import type { DrawnHistory } from './history-section.ts';

export function fleetSection(
  fleet: Fleet | null,
  active: number,
  tracked: number,
  sparks: DrawnHistory['sparks'],
): Html {
  const figures = stats(fleetStats(fleet, active, tracked, sparks));
  return section('fleet', 'Fleet', html`${fleetBar(fleet)}${figures}${rolesTable(fleet)}`);
}

/** The fleet in one line. */
export function fleetLine(fleet: Fleet | null): Html {
  if (fleet === null || fleet.expected === 0) return html`<p>No node has reported yet.</p>`;
  const { expected, healthy, unwell, silent, lapsing } = fleet;
  const parts = [
    healthy === null ? 'silent not known yet' : `${shownCount(healthy)} healthy`,
    `${shownCount(unwell)} unwell`,
    ...(silent === null ? [] : [`${shownCount(silent)} silent`]),
    `${shownCount(lapsing)} lapsing`,
  ];
  return html`<p><strong>${counted(expected, 'node')}:</strong> ${parts.join(', ')}. <a href="./dashboard">Dashboard</a></p>`;
}

export function fleetBar(fleet: Fleet | null): Html {
  const { expected = 0, healthy = null, silent = null } = fleet ?? {};
  if (expected === 0 || healthy === null || silent === null) return NO_HTML;
  const ok = Math.round((100 * healthy) / expected);
  // Nodes that are unwell and silent are drawn as silent; the parts cannot be wider than what is left.
  const bad = Math.min(100 - ok, Math.round((100 * (expected - healthy - silent)) / expected));
  return bar([
    ['ok', 0, ok],
    ['danger', ok, bad],
    ['warn', ok + bad, 100 - ok - bad],
  ]);
}

function fleetStats(
  fleet: Fleet | null,
  active: number,
  tracked: number,
  sparks: DrawnHistory['sparks'],
): Stat[] {
  const expected = fleet?.expected ?? 0;
  const reporting = `of ${counted(expected, 'node')} that ${expected === 1 ? 'reports' : 'report'}`;
  /** The tone is that of any number but 0; the series shows how the number changed. */
  const rows: readonly (readonly [keyof NodeCounts | 'lapsed', string, Tone, SeriesName?])[] = [
    ['healthy', reporting, 'ok'],
    ['unwell', 'last report not healthy', 'danger', 'unhealthy_nodes'],
    ['silent', 'no recent contact', 'warn', 'silent_nodes'],
    ['lapsing', 'not renewed yet', 'warn'],
    ['lapsed', 'not renewed in time', 'danger'],
  ];
  return [
    ...rows.map(([name, note, tone, series]): Stat => {
      const value = fleet?.[name] ?? null;
      const field = `fleet.${name}`;
      const spark = series && sparks.get(series);
      return { label: capital(name), field, value, note, tone: value ? tone : 'neutral', spark };
    }),
    {
      label: 'Active nodes',
      field: 'nodes.active',
      value: active,
      note: html`of <span data-field="nodes.tracked">${shownCount(tracked)}</span> enrolled`,
      spark: sparks.get('active_nodes'),
    },
  ];
}

function rolesTable(fleet: Fleet | null): Html {
  const { roles = [], more_roles: more = 0 } = fleet ?? {};
  if (roles.length === 0) {
    return emptyState(
      'No node has reported yet. A node joins with an invite, and then reports:',
      'invite create --role ROLE',
    );
  }
  const rest = more === 0 ? '' : ` ${counted(more, 'role')} with fewer nodes not shown.`;
  return table({
    id: 'roles',
    caption: `Nodes by role; a node with several roles counts in each.${rest}`,
    columns: ROLE_COLUMNS,
    rows: roles,
    keyOf: ({ role }) => role,
  });
}

const number = (head: string, field: keyof NodeCounts): Column<RoleCounts> => ({
  head,
  kind: 'number',
  cell: (row) => {
    const count = row[field];
    if (count === null) return html`<span class="muted">–</span>`;
    return count === 0 && field !== 'healthy'
      ? html`<span class="muted">0</span>`
      : shownCount(count);
  },
});

const ROLE_COLUMNS: readonly Column<RoleCounts>[] = [
  {
    head: 'Role',
    kind: 'name',
    isHead: true,
    cell: ({ role }) => html`<bdi>${nameInCell(role)}</bdi>`,
  },
  number('Nodes', 'expected'),
  number('Healthy', 'healthy'),
  number('Unwell', 'unwell'),
  number('Silent', 'silent'),
  number('Lapsing', 'lapsing'),
];
