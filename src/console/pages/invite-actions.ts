/** Creating and withdrawing invites. */
import { Value } from 'typebox/value';
import { pagesOf } from '../../client/list-pages.ts';
import { shownCount } from '../../pages/ui/counts.ts';
import { type Html, html, NO_HTML } from '../../pages/ui/html.ts';
import { nameInCell } from '../../pages/ui/names.ts';
import { type Column, table } from '../../pages/ui/table.ts';
import { Invite, type InviteToken } from '../../protocol/answers/operators.ts';
import { createInvites, withdrawInvite, withdrawInviteBatch } from '../../protocol/api/invites.ts';
import { numberedName } from '../../protocol/rows/invite.ts';
import { FormProblem } from '../action.ts';
import type { Context } from '../context.ts';
import { routeAction } from '../route-action.ts';

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
    const many = number === 1 ? 'one invite' : `${shownCount(number)} invites`;
    return {
      sentence: `Create ${many} with ${roles?.join(', ') || 'no role'}.`,
      effects: [
        `Nodes that can join: ${shownCount(number)}. Anyone with a token can use it once, until it expires.`,
        ...(name ? [`The nodes are named ${namesOf(name, number)}.`] : []),
        'The tokens are shown right after this, until you have stored them.',
      ],
      answer: (answer) =>
        Value.Check(Invite, answer)
          ? tokens(
              answer,
              `mesh-na node join --url ${url} --root-key ${rootKey} --token-file token`,
            )
          : NO_HTML,
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

export const WITHDRAW_INVITE = routeAction(withdrawInvite, {
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

export const WITHDRAW_BATCH = routeAction(withdrawInviteBatch, {
  name: 'withdraw-batch',
  title: 'Withdraw a batch',
  label: 'Withdraw the batch',
  isDestructive: true,
  fields: { batch: { label: 'Batch' } },
  command: 'invite withdraw --batch {batch}',
  audited: ['invite_withdrawn'],
  async explain({ batch }, context) {
    const count = await unusedIn(context, batch);
    if (count === 0) throw new FormProblem(`The batch ${batch} has no unused invite.`);
    return {
      sentence: `Withdraw the unused invites of the batch ${batch}.`,
      bodies: Array.from({ length: Math.ceil(count / WITHDRAWN_AT_ONCE) }, () => ({ batch })),
      effects: [
        `Invites withdrawn: ${shownCount(count)}. Their tokens admit nobody from then on.`,
        'Nodes that have joined with an invite of the batch are not affected.',
      ],
      typed: String(count),
      back: `./invites?${new URLSearchParams({ batch })}`,
    };
  },
});

/** Unused ones, also those that have expired: they are withdrawn as well. */
async function unusedIn({ client }: Context, batch: string): Promise<number> {
  let count = 0;
  for (const status of ['unused', 'expired'] as const) {
    const pages = pagesOf(
      (page) => client.listInvites({ batch, status, ...page }),
      ({ invites }) => invites,
    );
    for await (const rows of pages) count += rows.length;
  }
  return count;
}
