/** *Treaties*: which sovereigns this network recognizes, and until when. */

import { html } from '../../pages/ui/html.ts';
import { nameInCell, nameInLink } from '../../pages/ui/names.ts';
import { badge, stateBadge, TO_ISSUE } from '../../pages/ui/parts.ts';
import { idText, timeText } from '../../pages/ui/values.ts';
import { type TreatyRow, TreatyStatus } from '../../protocol/rows/treaty.ts';
import { twoLines } from '../cells.ts';
import { actionColumn, actionLink, renewal } from '../form-view.ts';
import { listPage } from '../list-page.ts';
import {
  FOLLOW_TREATY,
  ISSUE_TREATY,
  REVOKE_TREATY,
  SET_TREATY_ENDPOINT,
} from './treaty-actions.ts';

export const TREATIES = listPage<TreatyRow, TreatyRow['status']>({
  path: '/treaties',
  title: 'Treaties',
  search: ['subject', 'Subject'],
  statuses: TreatyStatus.enum,
  adding: ISSUE_TREATY,
  empty: ['No sovereign is recognized. Recognize one here, or run', TO_ISSUE],
  noMatch: 'No treaty matches.',
  async read({ publicClient }, { searched, status, page }) {
    const filter = { subject_sovereign_id: searched, status };
    const list = await publicClient.listTreaties({ ...filter, ...page });
    return { ...list, rows: list.recognition_treaties };
  },
  caption: () => 'Oldest first',
  keyOf: ({ treaty }) => treaty.treaty_id,
  columns: (context) => [
    { head: 'Treaty', kind: 'id', isHead: true, cell: ({ treaty }) => idText(treaty.treaty_id) },
    {
      head: 'Subject',
      kind: 'name',
      cell: ({ treaty: { subject_sovereign_id: subject, issuer_sovereign_id: issuer } }) =>
        twoLines(
          nameInLink(subject),
          issuer === context.networkName ? '' : `issued by ${nameInLink(issuer)}`,
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
    {
      head: 'Fetched',
      cell: ({ fetch }) =>
        fetch === undefined
          ? ''
          : twoLines(
              fetch.fetched_at === null ? '' : timeText(fetch.fetched_at),
              fetch.problem ?? '',
            ),
    },
    { head: 'Ends', cell: ({ treaty }) => timeText(treaty.expires_at) },
    ...actionColumn(REVOKE_TREATY, context, (row: TreatyRow) => {
      const { treaty, status, lifecycle } = row;
      if (status !== 'active') return '';
      const { treaty_id, issuer_sovereign_id: issuer } = treaty;
      const renew =
        issuer === context.networkName ? renewal(ISSUE_TREATY, termsOf(row), treaty, context) : '';
      const follow = lifecycle.state === 'expired' ? '' : actionLink(FOLLOW_TREATY, { treaty_id });
      const address = actionLink(SET_TREATY_ENDPOINT, { treaty_id });
      return html`<span class="actions">${renew}${follow} ${address} ${actionLink(REVOKE_TREATY, { treaty_id })}</span>`;
    }),
  ],
  actions: [ISSUE_TREATY, REVOKE_TREATY, FOLLOW_TREATY, SET_TREATY_ENDPOINT],
});

/** As the form of a treaty has them. */
function termsOf({ treaty, endpoint }: TreatyRow) {
  const { subject_sovereign_id, subject_public_keys, scope } = treaty;
  return {
    subject_sovereign_id,
    subject_public_keys: subject_public_keys.join('\n'),
    'scope.allowed_roles': scope.allowed_roles.join('\n'),
    endpoint: endpoint ?? '',
  };
}
