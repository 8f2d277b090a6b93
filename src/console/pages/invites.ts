/** *Invites*: created, listed and withdrawn. */
import { pagesOf } from '../../client/list-pages.ts';
import { counted } from '../../pages/ui/counts.ts';
import { type Content, html, NO_HTML } from '../../pages/ui/html.ts';
import { nameInCell } from '../../pages/ui/names.ts';
import { idText, timeText } from '../../pages/ui/values.ts';
import { INVITE_STATUSES, type InviteRow } from '../../protocol/rows/invite.ts';
import { labelTexts } from '../../protocol/rows/node-description.ts';
import { isOffered } from '../action.ts';
import { stateWith, twoLines } from '../cells.ts';
import type { Context } from '../context.ts';
import { actionColumn, actionLink } from '../form-view.ts';
import { type ListFilter, listPage } from '../list-page.ts';
import { CREATE_INVITES, WITHDRAW_BATCH, WITHDRAW_INVITE } from './invite-actions.ts';
import { nodeLink } from './node-rows.ts';

const DEFAULTS = {
  roles: 'role:client',
  count: '1',
  token_expiry_hours: '24',
  max_validity_hours: '168',
};

export const INVITES = listPage<InviteRow, InviteRow['status']>({
  path: '/invites',
  title: 'Invites',
  search: ['batch', 'Batch'],
  statuses: INVITE_STATUSES,
  usualStatus: 'unused',
  adding: CREATE_INVITES,
  defaults: DEFAULTS,
  empty: ['There is no unused invite.'],
  noMatch: 'No invite matches.',
  read: newestFirst,
  caption: ({ length }) => `${counted(length, 'invite')} on this page`,
  keyOf: ({ token_fingerprint: id }) => id,
  columns,
  ofAll: (batch, context) =>
    isOffered(WITHDRAW_BATCH, context)
      ? html`<div class="actions">${actionLink(WITHDRAW_BATCH, { batch })}</div>`
      : NO_HTML,
  actions: [CREATE_INVITES, WITHDRAW_INVITE, WITHDRAW_BATCH],
});

/** Beyond these, invites are in the order in which the authority reads them. */
const MOST_SORTED = 1000;
const MOST_PAGES = 5;

/** Unused ones first. */
async function newestFirst(
  { client }: Context,
  { searched: batch, status, page }: ListFilter<InviteRow['status']>,
) {
  const rows: InviteRow[] = [];
  const { limit, cursor = '0' } = page;
  const start = /^\d{1,4}$/.test(cursor) ? Number(cursor) : null;
  const pages = pagesOf(
    (each) => client.listInvites({ batch, status, ...each }),
    ({ invites }) => invites,
  );
  let read = 0;
  for await (const found of start === null ? [] : pages) {
    rows.push(...found);
    read += 1;
    if (rows.length > MOST_SORTED || read > MOST_PAGES) break;
  }
  if (start === null || rows.length > MOST_SORTED || read > MOST_PAGES) {
    const further = start === null ? { cursor } : {};
    const list = await client.listInvites({ batch, status, limit, ...further });
    return { ...list, rows: list.invites };
  }
  const isUsed = (row: InviteRow) => Number(row.status !== 'unused');
  rows.sort((a, b) => isUsed(a) - isUsed(b) || (a.created_at < b.created_at ? 1 : -1));
  const end = start + limit;
  return { rows: rows.slice(start, end), next_cursor: end < rows.length ? String(end) : null };
}

function columns(context: Context) {
  return [
    {
      head: 'Invite',
      cell: (row: InviteRow) => idText(row.token_fingerprint),
      kind: 'id',
      isHead: true,
    },
    {
      head: 'Status',
      cell: ({ status, withdrawn_by: operator }: InviteRow) =>
        stateWith(TONES[status], status, operator === null ? '' : `by ${operator}`),
    },
    {
      head: 'Node',
      kind: 'name',
      cell: (row: InviteRow) => twoLines(nodeOf(row), batchAndLabels(row)),
    },
    { head: 'Roles', kind: 'words', cell: ({ roles }: InviteRow) => roles.join(', ') },
    { head: 'Created', cell: (row: InviteRow) => timeText(row.created_at) },
    {
      head: 'Expires',
      cell: ({ status, expires_at: end }: InviteRow) =>
        status === 'consumed' || status === 'withdrawn' ? '' : timeText(end),
    },
    ...actionColumn(
      WITHDRAW_INVITE,
      context,
      ({ status, token_fingerprint: fingerprint }: InviteRow) =>
        status === 'unused' ? actionLink(WITHDRAW_INVITE, { fingerprint }) : '',
    ),
  ];
}

function batchAndLabels({ batch, labels = {} }: InviteRow): Content {
  const texts = labelTexts(labels).join(', ');
  if (batch === null) return texts;
  const path = `./invites?${new URLSearchParams({ batch })}`;
  return html`Batch <a href="${path}">${batch}</a>${texts === '' ? '' : `, ${texts}`}`;
}

/** The node that has joined, or the name of the one that is expected. */
function nodeOf({ name, used_by: key }: InviteRow): Content {
  if (key === null) return name === undefined ? '' : html`<bdi>${nameInCell(name)}</bdi>`;
  return nodeLink({ ...(name !== undefined && { name }), node_public_key: key });
}

const TONES: Readonly<Record<InviteRow['status'], string>> = {
  unused: 'ok',
  consumed: 'neutral',
  expired: 'neutral',
  withdrawn: 'neutral',
};
