/** *Treaties*: which sovereigns this network recognizes, and until when. */

import { type Content, html } from '../../pages/ui/html.ts';
import { nameInCell, nameInLink } from '../../pages/ui/names.ts';
import { badge, stateBadge, TO_ISSUE } from '../../pages/ui/parts.ts';
import { idText, timeText } from '../../pages/ui/values.ts';
import { type TreatyRow, TreatyStatus } from '../../protocol/rows/treaty.ts';
import { isOffered } from '../action.ts';
import { twoLines } from '../cells.ts';
import type { Context } from '../context.ts';
import { actionColumn, actionLink, renewal } from '../form-view.ts';
import { listPage } from '../list-page.ts';
import {
  FOLLOW_TREATY,
  ISSUE_TREATY,
  RENEW_TREATY,
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
      cell: (row) => twoLines(nameInLink(row.treaty.subject_sovereign_id), addressOf(row, context)),
    },
    {
      head: 'State',
      kind: 'state',
      cell: (row) => twoLines(badge(stateBadge(row.lifecycle.state)), noteOf(row)),
    },
    {
      head: 'Roles',
      kind: 'words',
      cell: ({ treaty }) => treaty.scope.allowed_roles.join(', ') || 'any',
    },
    { head: 'Ends', cell: ({ treaty }) => timeText(treaty.expires_at) },
    ...actionColumn(REVOKE_TREATY, context, (row: TreatyRow) => {
      const { treaty, status, lifecycle } = row;
      if (status !== 'active') return '';
      const { treaty_id, issuer_sovereign_id: issuer } = treaty;
      const renew =
        issuer === context.networkName ? renewal(RENEW_TREATY, { treaty_id }, treaty, context) : '';
      const follow = lifecycle.state === 'expired' ? '' : actionLink(FOLLOW_TREATY, { treaty_id });
      return html`<span class="actions">${renew}${follow} ${actionLink(REVOKE_TREATY, { treaty_id })}</span>`;
    }),
  ],
  actions: [ISSUE_TREATY, RENEW_TREATY, REVOKE_TREATY, FOLLOW_TREATY, SET_TREATY_ENDPOINT],
});

/** Who has issued it, if another sovereign; otherwise where the authority of its subject is. */
function addressOf({ treaty, status, endpoint }: TreatyRow, context: Context): Content {
  const { treaty_id, issuer_sovereign_id: issuer } = treaty;
  if (issuer !== context.networkName) return `issued by ${nameInLink(issuer)}`;
  const host = endpoint === undefined ? '' : nameInCell(new URL(endpoint).host);
  if (status !== 'active' || !isOffered(SET_TREATY_ENDPOINT, context)) return host;
  const query = new URLSearchParams({ action: SET_TREATY_ENDPOINT.name, treaty_id });
  return html`<a href="./do?${query.toString()}">${host || 'Set its address…'}</a>`;
}

/** Why it has ended, or how its subject is fetched. */
function noteOf({ revocation_reason: reason, fetch }: TreatyRow): Content {
  if (reason) return nameInCell(reason);
  if (fetch?.problem) return fetch.problem;
  return fetch?.fetched_at ? html`fetched ${timeText(fetch.fetched_at)}` : '';
}
