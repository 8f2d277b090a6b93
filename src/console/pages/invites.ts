/** *Invites*: created, listed and withdrawn. */
import { counted } from '../../pages/counts.ts';
import { emptyState } from '../../pages/empty-state.ts';
import { nameInCell } from '../../pages/graph-names.ts';
import { type Content, type Html, html, NO_HTML } from '../../pages/html.ts';
import { table } from '../../pages/table.ts';
import { idText, timeText } from '../../pages/values.ts';
import { INVITE_STATUSES, type InviteRow } from '../../protocol/rows/invite.ts';
import { labelTexts } from '../../protocol/rows/node-description.ts';
import { isOffered } from '../action.ts';
import { filterOptions, stateWith, twoLines } from '../cells.ts';
import type { Context } from '../context.ts';
import { textIn } from '../fields.ts';
import { actionLink, newButton } from '../form-view.ts';
import { definePage } from '../page.ts';
import { cursorPager } from '../pager.ts';
import { CREATE_INVITES, WITHDRAW_BATCH, WITHDRAW_INVITE } from './invite-actions.ts';
import { nodeAddress, nodeTitle } from './node-rows.ts';

const ROWS_OF_PAGE = 50;

export const INVITES = definePage({
  path: '/invites',
  title: 'Invites',
  isInNavigation: true,
  tier: 'standard',
  async load({ client }, query) {
    const text = (name: string) => textIn(query, name);
    const status = INVITE_STATUSES.find((each) => each === text('status'));
    const [batch, cursor] = [text('batch'), text('cursor')];
    const { invites, next_cursor: next = null } = await client.listInvites({
      limit: ROWS_OF_PAGE,
      ...(status !== undefined && { status }),
      ...(batch !== '' && { batch }),
      ...(cursor !== '' && { cursor }),
    });
    return { invites, next, status, batch };
  },
  render({ invites, next, status = '', batch }, context, query) {
    const creation = isOffered(CREATE_INVITES, context)
      ? newButton(CREATE_INVITES, DEFAULTS)
      : NO_HTML;
    const rows =
      invites.length === 0
        ? emptyState(query.size === 0 ? 'There are no invites.' : 'No invite matches.')
        : table({
            id: 'invites',
            caption: `${counted(invites.length, 'invite')} on this page`,
            keyOf: ({ token_fingerprint: id }) => id,
            rows: invites,
            columns: columns(context),
          });
    const withdrawal =
      batch !== '' && invites.length > 0 && isOffered(WITHDRAW_BATCH, context)
        ? html`<div class="actions">${actionLink(WITHDRAW_BATCH, { batch })}</div>`
        : NO_HTML;
    const pager = cursorPager({
      label: 'Pages of invites',
      path: './invites',
      query,
      nextCursor: next,
    });
    return {
      body: html`${creation}${filterForm(status, batch)}${withdrawal}<div class="listing">${rows}${pager}</div>`,
    };
  },
  actions: [CREATE_INVITES, WITHDRAW_INVITE, WITHDRAW_BATCH],
});

const DEFAULTS = { role: 'role:client', count: '1', expiry: '24', validity: '168' };

function columns(context: Context) {
  const mayWithdraw = isOffered(WITHDRAW_INVITE, context);
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
    ...(mayWithdraw
      ? [
          {
            head: 'Action',
            cell: ({ status, token_fingerprint: fingerprint }: InviteRow) =>
              status === 'unused' ? actionLink(WITHDRAW_INVITE, { fingerprint }) : '',
          },
        ]
      : []),
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
  const title = nodeTitle({ ...(name !== undefined && { name }), node_public_key: key });
  return html`<a href="${nodeAddress(key)}"><bdi>${title}</bdi></a>`;
}

const TONES: Readonly<Record<InviteRow['status'], string>> = {
  unused: 'ok',
  consumed: 'neutral',
  expired: 'neutral',
  withdrawn: 'neutral',
};

function filterForm(status: string, batch: string): Html {
  return html`<form class="ask" method="get" action="./invites" role="search">
<p class="field"><label for="q">Batch</label><input type="search" id="q" name="batch" value="${batch}" autocomplete="off" spellcheck="false"></p>
<p class="field"><label for="status">Status</label><select id="status" name="status">${filterOptions(INVITE_STATUSES, status)}</select></p>
<p class="field"><button type="submit">Find</button> <a href="./invites">Clear</a></p>
</form>`;
}
