/** *Treaties*: which sovereigns this network recognizes, and until when. */
import { emptyState, TO_ISSUE } from '../../pages/empty-state.ts';
import { nameInCell, nameInLink } from '../../pages/graph-names.ts';
import { badge, stateBadge } from '../../pages/graph-tables.ts';
import { type Html, html, NO_HTML } from '../../pages/html.ts';
import { table } from '../../pages/table.ts';
import { idText, timeText } from '../../pages/values.ts';
import type { TreatyRow } from '../../protocol/rows/treaty.ts';
import { TreatyStatus } from '../../protocol/rows/treaty.ts';
import { isOffered } from '../action.ts';
import { filterOptions, twoLines } from '../cells.ts';
import type { Context } from '../context.ts';
import { textIn } from '../fields.ts';
import { actionLink, newButton } from '../form-view.ts';
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
    const list = await publicClient.listTreaties({
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
        ? query.size === 0
          ? emptyState('No sovereign is recognized. Recognize one here, or run', TO_ISSUE)
          : emptyState('No treaty matches.')
        : treatiesTable(rows, context);
    return {
      body: html`${isOffered(ISSUE_TREATY, context) ? newButton(ISSUE_TREATY) : NO_HTML}${filterForm(subject, status)}<div class="listing">${listing}${pager}</div>`,
    };
  },
  actions: [ISSUE_TREATY, REVOKE_TREATY, FOLLOW_TREATY],
});

function treatiesTable(rows: readonly TreatyRow[], context: Context): Html {
  return table({
    id: 'treaties',
    caption: 'Oldest first',
    keyOf: ({ treaty }) => treaty.treaty_id,
    rows,
    columns: [
      { head: 'Treaty', kind: 'id', isHead: true, cell: ({ treaty }) => idText(treaty.treaty_id) },
      {
        head: 'Recognizes',
        kind: 'name',
        cell: ({ treaty: { subject_sovereign_id: subject, issuer_sovereign_id: issuer } }) =>
          twoLines(
            nameInLink(subject),
            issuer === context.networkName ? '' : `by ${nameInLink(issuer)}`,
          ),
      },
      {
        head: 'State',
        kind: 'state',
        cell: ({ lifecycle, revocation_reason: reason }) =>
          twoLines(badge(stateBadge(lifecycle.state)), reason ? nameInCell(reason) : ''),
      },
      {
        head: 'Roles',
        kind: 'words',
        cell: ({ treaty }) => treaty.scope.allowed_roles.join(', ') || 'any',
      },
      { head: 'Ends', cell: ({ treaty }) => timeText(treaty.expires_at) },
      ...(isOffered(REVOKE_TREATY, context)
        ? [
            {
              head: 'Action',
              cell: ({ treaty: { treaty_id }, status, lifecycle }: TreatyRow) => {
                if (status !== 'active') return '';
                const follow =
                  lifecycle.state === 'expired' ? '' : actionLink(FOLLOW_TREATY, { treaty_id });
                return html`<span class="actions">${follow} ${actionLink(REVOKE_TREATY, { treaty_id })}</span>`;
              },
            },
          ]
        : []),
    ],
  });
}

function filterForm(subject: string, status: string | undefined): Html {
  return html`<form class="ask" method="get" action="./treaties" role="search">
<p class="field"><label for="q">Recognized sovereign</label><input type="search" id="q" name="subject" value="${subject}" autocomplete="off" spellcheck="false"></p>
<p class="field"><label for="status">Status</label><select id="status" name="status">${filterOptions(TreatyStatus.enum, status ?? '')}</select></p>
<p class="field"><button type="submit">Find</button> <a href="./treaties">Clear</a></p>
</form>`;
}
