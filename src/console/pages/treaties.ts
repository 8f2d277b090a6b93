/** *Treaties*: which sovereigns this network recognizes, and until when. */
import { section } from '../../pages/details-page.ts';
import { emptyState } from '../../pages/empty-state.ts';
import { nameInCell } from '../../pages/graph-names.ts';
import { badge, stateBadge } from '../../pages/graph-tables.ts';
import { type Html, html, NO_HTML } from '../../pages/html.ts';
import { table } from '../../pages/table.ts';
import { idText, timeText } from '../../pages/values.ts';
import type { TreatyRow } from '../../protocol/rows/treaty.ts';
import { TreatyStatus } from '../../protocol/rows/treaty.ts';
import { isOffered } from '../action.ts';
import type { Context } from '../context.ts';
import { textIn } from '../fields.ts';
import { actionForm, actionLink } from '../form-view.ts';
import { definePage } from '../page.ts';
import { cursorPager } from '../pager.ts';
import { FOLLOW_TREATY, ISSUE_TREATY, REVOKE_TREATY } from './treaty-actions.ts';

const ROWS_OF_PAGE = 50;

export const TREATIES = definePage({
  path: '/treaties',
  title: 'Treaties',
  isInNavigation: true,
  tier: 'standard',
  async load({ publicClient }, query) {
    const text = (name: string) => textIn(query, name);
    const [subject, cursor] = [text('subject'), text('cursor')];
    const status = TreatyStatus.enum.find((each) => each === text('status'));
    const list = await publicClient.treaties({
      limit: ROWS_OF_PAGE,
      ...(status !== undefined && { status }),
      ...(subject !== '' && { subject_sovereign_id: subject }),
      ...(cursor !== '' && { cursor }),
    });
    return { ...list, subject, status };
  },
  render(model, context, query) {
    const { recognition_treaties: rows, next_cursor: nextCursor = null, subject, status } = model;
    const pager = cursorPager({
      label: 'Pages of treaties',
      path: './treaties',
      query,
      nextCursor,
    });
    const listing =
      rows.length === 0
        ? emptyState(
            'No treaty matches. Recognize a sovereign with the form below, or with mesh-na treaty issue.',
          )
        : treatiesTable(rows, context);
    return {
      body: html`${filterForm(subject, status)}<div class="listing">${listing}${pager}</div>
${isOffered(ISSUE_TREATY, context) ? section('issue', 'Recognize a sovereign', actionForm(ISSUE_TREATY, new URLSearchParams())) : NO_HTML}`,
    };
  },
  actions: [ISSUE_TREATY, REVOKE_TREATY, FOLLOW_TREATY],
});

function treatiesTable(rows: readonly TreatyRow[], context: Context): Html {
  return table({
    id: 'treaties',
    caption: 'The oldest first',
    keyOf: ({ treaty }) => treaty.treaty_id,
    rows,
    columns: [
      { head: 'Treaty', kind: 'id', isHead: true, cell: ({ treaty }) => idText(treaty.treaty_id) },
      { head: 'Recognizes', cell: ({ treaty }) => nameInCell(treaty.subject_sovereign_id) },
      { head: 'State', cell: ({ lifecycle }) => badge(stateBadge(lifecycle.state)) },
      { head: 'Roles', cell: ({ treaty }) => treaty.scope.allowed_roles.join(', ') || 'any' },
      { head: 'Ends', cell: ({ treaty }) => timeText(treaty.expires_at) },
      {
        head: 'Reason',
        cell: ({ revocation_reason: reason }) => (reason ? nameInCell(reason) : ''),
      },
      ...(isOffered(REVOKE_TREATY, context)
        ? [
            {
              head: 'Action',
              cell: ({ treaty: { treaty_id }, status }: TreatyRow) =>
                status === 'active'
                  ? html`<span class="actions">${actionLink(FOLLOW_TREATY, { treaty_id })} ${actionLink(REVOKE_TREATY, { treaty_id })}</span>`
                  : '',
            },
          ]
        : []),
    ],
  });
}

function filterForm(subject: string, status: string | undefined): Html {
  return html`<form class="ask" method="get" action="./treaties" role="search">
<p class="field"><label for="q">Recognized sovereign</label><input type="search" id="q" name="subject" value="${subject}" autocomplete="off" spellcheck="false"></p>
<p class="field"><label for="status">Status</label><select id="status" name="status"><option value="">Any</option>${TreatyStatus.enum.map(
    (each) =>
      html`<option value="${each}"${each === status ? html` selected` : NO_HTML}>${each}</option>`,
  )}</select></p>
<p class="field"><button type="submit">Find</button> <a href="./treaties">All</a></p>
</form>
`;
}
