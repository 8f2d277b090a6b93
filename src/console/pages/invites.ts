/** *Invites*: created, listed and withdrawn. */
import { Value } from 'typebox/value';
import { counted } from '../../base/counts.ts';
import { pagesOf } from '../../client/operations.ts';
import { type Content, type Html, html, NO_HTML } from '../../pages/ui/html.ts';
import { type Column, table } from '../../pages/ui/table.ts';
import { idText, nameInCell, timeText } from '../../pages/ui/values.ts';
import { Invite, type InviteToken } from '../../protocol/answers/operators.ts';
import { createInvites, withdrawInvite, withdrawInviteBatch } from '../../protocol/api/invites.ts';
import {
  INVITE_STATUSES,
  type InviteRow,
  joinCommand,
  numberedName,
} from '../../protocol/rows/invite.ts';
import { labelTexts } from '../../protocol/rows/node-description.ts';
import type { Context } from '../context.ts';
import { actionColumn, actionLink } from '../forms.ts';
import { type ListFilter, listPage, stateWith, twoLines } from '../list-page.ts';
import { FormProblem, isOffered } from '../page.ts';
import { routeAction } from '../route-action.ts';
import { nodeLink } from './node-rows.ts';

export const CREATE_INVITES = routeAction(createInvites, {
  name: 'create-invites',
  title: 'Create invites',
  label: 'Create',
  fields: {
    roles: { label: 'Roles', kind: 'text', hint: 'Separated by spaces.' },
    count: { label: 'How many', what: 'invites', isRequired: true, none: '1' },
    name: {
      label: 'Node name',
      hint: '{n} becomes 1, 2, 3 and so on.',
      problem: 'A name is 1 to 64 printable characters.',
    },
    batch: {
      label: 'Batch',
      hint: 'To list and withdraw them together.',
      problem: 'A batch is 1 to 64 printable ASCII characters.',
    },
    token_expiry_hours: { label: 'Token expires after (hours)' },
    max_validity_hours: { label: 'Certificates last at most (hours)' },
    recipient_public_key: { label: 'Only for this node key', kind: 'id' },
    labels: { label: 'Labels', hint: 'One key=value on each line.' },
  },
  command:
    'invite create --role {roles} --count {count} --name {name} --batch {batch} --token-expiry-hours {token_expiry_hours} --max-validity-hours {max_validity_hours} --recipient {recipient_public_key} --label {labels}',
  audited: ['invite_created'],
  isSecret: true,
  async explain({ count, roles, name }, { publicClient, url }) {
    const number = count ?? 1;
    const { root_public_key: rootKey } = await publicClient.readGenesis();
    const many = number === 1 ? 'one invite' : counted(number, 'invite');
    return {
      sentence: `Create ${many} with ${roles?.join(', ') || 'no role'}.`,
      effects: [
        `${counted(number, 'node')} can join. Anyone with a token can use it once, until it expires.`,
        ...(name ? [`The nodes are named ${namesOf(name, number)}.`] : []),
        'The tokens are shown right after this, until you have stored them.',
      ],
      answer: (answer) =>
        Value.Check(Invite, answer) ? tokens(answer, joinCommand(url, rootKey, 'token')) : NO_HTML,
    };
  },
});

function namesOf(name: string, count: number): string {
  const [first, last] = [numberedName(name, 1), numberedName(name, count)];
  return first === last ? first : `${first} to ${last}`;
}

/** Tokens of named nodes are listed with the names. */
function tokens(invite: Invite, command: string): Html {
  const all = invite.tokens ?? [invite];
  return html`<p>The authority does not show ${all.length === 1 ? 'this token' : 'these tokens'} again:</p>
${
  invite.name === undefined
    ? html`<pre class="code" tabindex="0">${all.map(({ token_id: token }) => token).join('\n')}</pre>`
    : table({ id: 'tokens', caption: 'Each for the node of this name', rows: all, columns: TOKENS })
}<p>On the node, with its token in the file <code>token</code>:</p>
<pre class="code" tabindex="0">${command}</pre>`;
}

const TOKENS: readonly Column<InviteToken>[] = [
  { head: 'Node', kind: 'name first', isHead: true, cell: ({ name }) => nameInCell(name ?? '') },
  { head: 'Token', kind: 'id', cell: ({ token_id: token }) => html`${token}` },
];

const WITHDRAW_INVITE = routeAction(withdrawInvite, {
  name: 'withdraw-invite',
  title: 'Withdraw an invite',
  label: 'Withdraw',
  isDestructive: true,
  fields: { fingerprint: { label: 'Fingerprint', kind: 'id' } },
  command: 'invite withdraw {fingerprint}',
  audited: ['invite_withdrawn'],
  explain: ({ fingerprint }) => ({
    sentence: `Withdraw the invite ${fingerprint}.`,
    effects: [
      'Its token admits nobody from then on. A node that has joined with it is not affected.',
    ],
  }),
});

/** How many invites the authority withdraws for one request. */
const WITHDRAWN_AT_ONCE = 1000;

const WITHDRAW_BATCH = routeAction(withdrawInviteBatch, {
  name: 'withdraw-batch',
  title: 'Withdraw a batch',
  label: 'Withdraw the batch',
  isDestructive: true,
  fields: { batch: { label: 'Batch' } },
  command: 'invite withdraw --batch {batch}',
  audited: ['invite_withdrawn'],
  async explain({ batch }, context) {
    const unused = await unusedIn(context, batch);
    const { length: count } = unused;
    if (count === 0) throw new FormProblem(`The batch ${batch} has no unused invite.`);
    return {
      sentence: `Withdraw the unused invites of the batch ${batch}.`,
      // Others may join the batch before it is confirmed.
      bodies: Array.from({ length: Math.ceil(count / WITHDRAWN_AT_ONCE) }, (_, index) => {
        const start = index * WITHDRAWN_AT_ONCE;
        return { batch, fingerprints: unused.slice(start, start + WITHDRAWN_AT_ONCE) };
      }),
      effects: [
        `${counted(count, 'invite')} withdrawn. ${count === 1 ? 'Its token admits' : 'Their tokens admit'} nobody from then on.`,
        'Nodes that have joined with an invite of the batch are not affected.',
      ],
      typed: String(count),
      back: `./invites?${new URLSearchParams({ batch })}`,
    };
  },
});

/** The fingerprints of unused ones, also of those that have expired: they are withdrawn as well. */
async function unusedIn({ client }: Context, batch: string): Promise<string[]> {
  const fingerprints: string[] = [];
  for (const status of ['unused', 'expired'] as const) {
    const pages = pagesOf(
      (page) => client.listInvites({ batch, status, ...page }),
      ({ invites }) => invites,
    );
    for await (const rows of pages) {
      for (const { token_fingerprint: id } of rows) fingerprints.push(id);
    }
  }
  return fingerprints;
}

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
