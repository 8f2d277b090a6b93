/** Lists the linked instances [core-6-5]: which one writes, and which could take over at once. */

import { counted } from '../../base/counts.ts';
import type { Dashboard, DashboardInstance } from '../../protocol/rows/dashboard.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';
import { badge } from '../ui/parts.ts';
import { type Column, table } from '../ui/table.ts';
import { idText } from '../ui/values.ts';

/** Returns nothing when this instance is not linked to others. */
export function instancesSection(instances: Dashboard['instances']): Html {
  if (instances === undefined) return NO_HTML;
  return html`<section class="section" aria-labelledby="instances-heading">
<h2 id="instances-heading">Instances</h2>
${instancesTable(instances)}</section>`;
}

function instancesTable(instances: readonly DashboardInstance[]): Html {
  return table({
    id: 'instances',
    caption: 'All instances answer requests. When the active one stops, a standby takes over.',
    columns: COLUMNS,
    rows: instances,
    keyOf: ({ instance }) => instance,
  });
}

const COLUMNS: readonly Column<DashboardInstance>[] = [
  { head: 'Instance', kind: 'id', isHead: true, cell: ({ instance }) => idText(instance) },
  { head: 'Role', kind: 'first', cell: ({ role }) => role },
  { head: 'State', kind: 'first', cell: keptState },
];

function keptState({ role, lag_revisions: lag }: DashboardInstance): Html {
  if (role === 'active') return badge({ word: 'written here', tone: 'neutral' });
  if (lag === null) return badge({ word: 'not read yet', tone: 'warn' });
  if (lag === 0) return badge({ word: 'up to date', tone: 'ok' });
  return badge({ word: `${counted(lag, 'revision')} behind`, tone: 'warn' });
}
