/** *Overview*: whether something is wrong, since when, who changed what, and what ends soon and needs a person. */

import { counted, shownCount } from '../../base/counts.ts';
import { DAY_MS } from '../../base/duration.ts';
import { fleetBar } from '../../pages/dashboard/fleet-section.ts';
import { postureSection } from '../../pages/dashboard/posture-section.ts';
import { type Html, html, NO_HTML } from '../../pages/ui/html.ts';
import { emptyState, section } from '../../pages/ui/parts.ts';
import type { Fleet } from '../../protocol/rows/dashboard.ts';
import { entriesTable, lastChanges } from '../entries.ts';
import { newButton } from '../forms.ts';
import { definePage, isOffered } from '../page.ts';
import { kindsTable, needingPerson } from './horizon.ts';
import { CREATE_INVITES } from './invites.ts';
import { noNode, searchField } from './nodes.ts';

const MOST_CHANGES = 8;
const SOON_MS = 30 * DAY_MS;

export const OVERVIEW = definePage({
  path: '/overview',
  title: 'Overview',
  async show(context) {
    const [{ posture, fleet }, { lapsing }, changes] = await Promise.all([
      context.publicClient.readDashboard(),
      context.client.readHorizon(),
      lastChanges(context, MOST_CHANGES),
    ]);
    const ending = needingPerson(lapsing, context.now() + SOON_MS);
    return {
      body: html`${postureSection(posture, fleetCounts(fleet) ?? noNode(context), (rule) => PAGES[rule] ?? './health')}<form class="ask" method="get" action="./nodes" role="search">
${searchField('')}<p class="field"><button type="submit">Find</button></p>
</form>${isOffered(CREATE_INVITES, context) ? newButton(CREATE_INVITES) : NO_HTML}${section(
        'ending',
        'Ends within thirty days and needs a person',
        ending.length === 0
          ? emptyState('Nothing. Nodes renew by themselves.')
          : kindsTable(ending),
      )}${section(
        'changes',
        'Last changes',
        changes.length === 0
          ? emptyState('No operator has changed anything lately.')
          : entriesTable('changes', 'By operators, newest first', changes),
      )}<p class="small muted"><a href="./audit">All entries</a></p>`,
    };
  },
});

/** The page about what each rule of the posture finds; *Health* is about the others. */
const PAGES: Readonly<Record<string, string>> = {
  nodes_silent: './nodes?status=silent',
  nodes_unwell: './nodes?health=unwell',
  certificates_lapsing: './nodes?lapsing=3d&sort=expires',
  certificates_lapsed: './nodes?status=expired',
  delegation: './horizon',
  tls: './horizon',
  succession_due: './succession',
  succession_laggards: './succession',
  operator_keys: './operators',
  authentication: './audit',
  treaties_expired: './treaties',
  treaties_expiring: './treaties',
  treaties_behind: './treaties',
  partners: './treaties',
  feeds_stale: './feeds',
  trust_cycle: './audit?type=trust_cycle_completed',
};

/** Each node once, by the worst that is known of it, and each count leads to its nodes; null without any node. */
function fleetCounts(fleet: Fleet | null): Html | null {
  if (fleet === null) return html`<p>The nodes are being counted.</p>`;
  const { expected, healthy, silent, unwell } = fleet;
  if (expected === 0) return null;
  const link = (count: number, word: string, query: string) =>
    html`<a href="./nodes?${query}">${shownCount(count)} ${word}</a>`;
  const parts =
    silent === null || healthy === null
      ? html`${link(unwell, 'unwell', 'health=unwell')}; silent ones are not known yet`
      : html`${link(silent, 'silent', 'status=silent')}, ${link(expected - silent - healthy, 'unwell', 'status=active&health=unwell')}, ${link(healthy, 'healthy', 'status=active&health=well')}`;
  return html`<p><strong>${counted(expected, 'node')}:</strong> ${parts}</p>${fleetBar(fleet)}`;
}
