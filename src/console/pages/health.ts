/** *Health*: what is wrong with the authority, as it says itself and as it looks from this machine. */
import { section } from '../../pages/details-page.ts';
import { emptyState } from '../../pages/empty-state.ts';
import { badge } from '../../pages/graph-tables.ts';
import { type Html, html } from '../../pages/html.ts';
import { instancesSection } from '../../pages/instances-table.ts';
import { table } from '../../pages/table.ts';
import { Dashboard } from '../../protocol/rows/dashboard.ts';
import type { Check } from '../context.ts';
import { definePage } from '../page.ts';

export const HEALTH = definePage({
  path: '/health',
  title: 'Health',
  isInNavigation: true,
  tier: 'standard',
  async load({ checks, publicCalls }) {
    const [found, dashboard] = await Promise.all([
      checks(),
      publicCalls.get(Dashboard, '/dashboard.json').catch(() => null),
    ]);
    return { found, dashboard };
  },
  render({ found, dashboard }, { url }) {
    return {
      body: html`${section('posture', 'What the authority says', posture(dashboard))}${section(
        'checks',
        'What this machine sees',
        checksTable(found),
      )}${instancesSection(dashboard?.instances)}<p class="small muted">History, as drawings: <a href="${url}/dashboard">the dashboard of the authority</a>.</p>
`,
    };
  },
});

function posture(dashboard: Dashboard | null): Html {
  if (dashboard === null) return emptyState('The authority does not answer.');
  const { findings, unknown } = dashboard.posture;
  const sentences = [...findings, ...unknown].map(({ sentence }) => sentence);
  if (sentences.length === 0)
    return html`<p>${badge({ tone: 'ok', word: 'ok' })} All is well.</p>
`;
  return html`<ul class="effects">
${sentences.map(
  (sentence) => html`<li>${sentence}</li>
`,
)}</ul>
`;
}

const TONES: Readonly<Record<Check['outcome'], string>> = {
  ok: 'ok',
  warning: 'warn',
  wrong: 'danger',
  unknown: 'neutral',
};
const WORST_FIRST = ['wrong', 'warning', 'unknown', 'ok'];

function checksTable(found: readonly Check[]): Html {
  return table({
    id: 'checks',
    caption: 'The checks of mesh-na doctor that need only its address',
    keyOf: ({ check }) => check,
    rows: found.toSorted((a, b) => WORST_FIRST.indexOf(a.outcome) - WORST_FIRST.indexOf(b.outcome)),
    columns: [
      { head: 'Check', isHead: true, cell: ({ check }) => check.replaceAll('_', ' ') },
      {
        head: 'Outcome',
        cell: ({ outcome }) => badge({ tone: TONES[outcome], word: outcome }),
      },
      { head: 'Found', kind: 'first', cell: ({ found: sentence }) => sentence },
      { head: 'What to do', kind: 'first', cell: ({ cure }) => cure ?? '' },
    ],
  });
}
