/** *Invites*: created, listed and withdrawn. */

import { section } from '../../pages/details-page.ts';
import { emptyState } from '../../pages/empty-state.ts';
import { nameInCell } from '../../pages/graph-names.ts';
import { badge } from '../../pages/graph-tables.ts';
import { type Content, type Html, html, NO_HTML } from '../../pages/html.ts';
import { table } from '../../pages/table.ts';
import { idText, timeText } from '../../pages/values.ts';
import { INVITE_STATUSES, type InviteRow } from '../../protocol/rows/invite.ts';
import { labelTexts } from '../../protocol/rows/node-description.ts';
import { isOffered } from '../action.ts';
import type { Context } from '../context.ts';
import { textIn } from '../fields.ts';
import { actionForm, actionLink } from '../form-view.ts';
import { definePage } from '../page.ts';
import { cursorPager } from '../pager.ts';
import { CREATE_INVITES, WITHDRAW_BATCH, WITHDRAW_INVITE } from './invite-actions.ts';

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
    const { invites, next_cursor: next = null } = await client.invites({
      limit: ROWS_OF_PAGE,
      ...(status !== undefined && { status }),
      ...(batch !== '' && { batch }),
      ...(cursor !== '' && { cursor }),
    });
    return { invites, next, status, batch };
  },
  render({ invites, next, status = '', batch }, context, query) {
    const creation = isOffered(CREATE_INVITES, context)
      ? section('create', 'New invites', actionForm(CREATE_INVITES, DEFAULTS))
      : NO_HTML;
    const rows =
      invites.length === 0
        ? emptyState('No invite matches.')
        : table({
            id: 'invites',
            caption: `${invites.length} invites on this page, without their tokens`,
            keyOf: ({ token_fingerprint: id }) => id,
            rows: invites,
            columns: columns(context),
          });
    const withdrawal =
      batch !== '' && isOffered(WITHDRAW_BATCH, context)
        ? html`<p class="actions">${actionLink(WITHDRAW_BATCH, { batch })}</p>
`
        : NO_HTML;
    const pager = cursorPager({
      label: 'Pages of invites',
      path: './invites',
      query,
      nextCursor: next,
    });
    return {
      body: html`${creation}${section(
        'list',
        'Invites',
        html`${filterForm(status, batch)}${withdrawal}<div class="listing">${rows}${pager}</div>
`,
      )}`,
    };
  },
  actions: [CREATE_INVITES, WITHDRAW_INVITE, WITHDRAW_BATCH],
});

const DEFAULTS = new URLSearchParams({
  role: 'role:client',
  count: '1',
  expiry: '24',
  validity: '168',
});

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
      cell: ({ status }: InviteRow) => badge({ tone: TONES[status], word: status }),
    },
    {
      head: 'Node',
      cell: ({ name = '', labels = {} }: InviteRow) =>
        html`<bdi>${name === '' ? '' : nameInCell(name)}</bdi> <span class="small muted">${labelTexts(labels).join(', ')}</span>`,
    },
    {
      head: 'Batch',
      cell: ({ batch }: InviteRow) =>
        batch === null
          ? ''
          : html`<a href="./invites?${new URLSearchParams({ batch }).toString()}">${batch}</a>`,
    },
    { head: 'Roles', cell: ({ roles }: InviteRow) => roles.join(', ') },
    { head: 'Created', cell: (row: InviteRow) => timeText(row.created_at) },
    { head: 'Expires', cell: (row: InviteRow) => timeText(row.expires_at) },
    {
      head: 'Ended by',
      kind: 'id',
      cell: ({ used_by: node, withdrawn_by: operator }: InviteRow) => ended(node ?? operator),
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

function ended(by: string | null): Content {
  return by === null ? '' : idText(by);
}

const TONES: Readonly<Record<InviteRow['status'], string>> = {
  unused: 'warn',
  consumed: 'ok',
  expired: 'neutral',
  withdrawn: 'neutral',
};

function filterForm(status: string, batch: string): Html {
  return html`<form class="ask" method="get" action="./invites" role="search">
<p class="field"><label for="q">Batch</label><input type="search" id="q" name="batch" value="${batch}" autocomplete="off" spellcheck="false"></p>
<p class="field"><label for="status">Status</label><select id="status" name="status"><option value="">Any</option>${INVITE_STATUSES.map(
    (each) =>
      html`<option value="${each}"${each === status ? html` selected` : NO_HTML}>${each}</option>`,
  )}</select></p>
<p class="field"><button type="submit">Find</button> <a href="./invites">All</a></p>
</form>
`;
}
