/** Creating and withdrawing invites. */

import { Value } from 'typebox/value';
import { pagesOf } from '../../client/list-pages.ts';
import type { Sent } from '../../client/operations.ts';
import { shownCount } from '../../pages/counts.ts';
import { type Html, html } from '../../pages/html.ts';
import { Invite } from '../../protocol/answers/operators.ts';
import { withdrawInvite } from '../../protocol/api/invites.ts';
import { isBatchLabel, numberedName } from '../../protocol/rows/invite.ts';
import { isNodeName } from '../../protocol/rows/node-description.ts';
import { type Action, FormProblem } from '../action.ts';
import type { Context } from '../context.ts';
import { textIn, wholeIn } from '../fields.ts';
import { routeAction } from '../route-action.ts';
import { labelsIn } from './node-actions.ts';

const MOST_TOKENS = 1000;

export const CREATE_INVITES: Action = {
  name: 'create-invites',
  title: 'Create invites',
  label: 'Create',
  tier: 'standard',
  fields: [
    { name: 'role', label: 'Roles', kind: 'text', hint: 'Separated by spaces.' },
    { name: 'count', label: 'How many', kind: 'number', isRequired: true },
    {
      name: 'name',
      label: 'Node name',
      kind: 'text',
      hint: '{n} becomes 1, 2, 3 and so on.',
    },
    { name: 'batch', label: 'Batch', kind: 'text', hint: 'To list and withdraw them together.' },
    { name: 'expiry', label: 'Token expires after (hours)', kind: 'number' },
    { name: 'validity', label: 'Certificates last at most (hours)', kind: 'number' },
    { name: 'recipient', label: 'Only for this node key', kind: 'id' },
    { name: 'labels', label: 'Labels', kind: 'lines', hint: 'One key=value on each line.' },
  ],
  async plan(_context, form) {
    const request = inviteIn(form);
    const { count = 1, roles = [], name, batch, labels = {} } = request;
    const many = count === 1 ? 'one invite' : `${shownCount(count)} invites`;
    return {
      sentence: `Create ${many} with ${roles.length === 0 ? 'no role' : roles.join(', ')}.`,
      requests: [{ path: '/admin/invite', body: request }],
      effects: [
        `Nodes that can join: ${shownCount(count)}. Anyone with a token can use it once, until it expires.`,
        ...(name === undefined ? [] : [`The nodes are named ${namesOf(name, count)}.`]),
        'The tokens are shown right after this, until you have stored them.',
      ],
      typedNumber: null,
      command: [
        ...['invite', 'create'],
        ...roles.flatMap((role) => ['--role', role]),
        ...option('--count', count === 1 ? undefined : count),
        ...option('--name', name),
        ...option('--batch', batch),
        ...option('--token-expiry-hours', request.token_expiry_hours),
        ...option('--max-validity-hours', request.max_validity_hours),
        ...option('--recipient', request.recipient_public_key),
        ...Object.entries(labels).flatMap(([key, value]) => ['--label', `${key}=${value}`]),
      ],
      audited: ['invite_created'],
      answer: (answer) => (Value.Check(Invite, answer) ? tokens(answer) : html``),
      isSecret: true,
      back: './invites',
    };
  },
};

function option(flag: string, value: string | number | undefined): string[] {
  return value === undefined ? [] : [flag, String(value)];
}

function namesOf(name: string, count: number): string {
  const [first, last] = [numberedName(name, 1), numberedName(name, count)];
  return first === last ? first : `${first} to ${last}`;
}

function inviteIn(form: URLSearchParams) {
  const text = (name: string) => textIn(form, name);
  const count = wholeIn(form, 'count', 'The number of invites') ?? 1;
  if (count > MOST_TOKENS) throw new FormProblem(`At most ${MOST_TOKENS} invites at a time.`);
  const [name, batch, recipient] = [text('name'), text('batch'), text('recipient')];
  if (name !== '' && !isNodeName(numberedName(name, count))) {
    throw new FormProblem('A name is 1 to 64 printable characters.');
  }
  if (batch !== '' && !isBatchLabel(batch)) {
    throw new FormProblem('A batch is 1 to 64 printable ASCII characters.');
  }
  const labels = labelsIn(form, 'labels');
  const expiry = wholeIn(form, 'expiry', 'The hours of a token');
  const validity = wholeIn(form, 'validity', 'The hours of a certificate');
  return {
    roles: text('role')
      .split(/[\s,]+/)
      .filter((role) => role !== ''),
    ...(expiry !== null && { token_expiry_hours: expiry }),
    ...(validity !== null && { max_validity_hours: validity }),
    ...(count > 1 && { count }),
    ...(name !== '' && { name }),
    ...(batch !== '' && { batch }),
    ...(recipient !== '' && { recipient_public_key: recipient }),
    ...(Object.keys(labels).length > 0 && { labels }),
  } satisfies Sent<'createInvites'>;
}

function tokens(invite: Invite): Html {
  const all = invite.tokens ?? [invite];
  return html`<p>The authority does not show these again. On the node:<br><code>mesh-na node join --root-key &lt;root key&gt; --token-file &lt;file&gt;</code></p>
<pre class="code" tabindex="0">${all.map(({ token_id: token }) => token).join('\n')}</pre>`;
}

export const WITHDRAW_INVITE = routeAction(withdrawInvite, {
  name: 'withdraw-invite',
  title: 'Withdraw an invite',
  label: 'Withdraw',
  isDestructive: true,
  fields: [{ name: 'fingerprint', label: 'Fingerprint', kind: 'id' }],
  command: 'invite withdraw {fingerprint}',
  audited: ['invite_withdrawn'],
  back: './invites',
  explain: ({ fingerprint }) => ({
    sentence: `Withdraw the invite ${fingerprint}.`,
    effects: [
      'Its token admits nobody from then on. A node that has joined with it is not affected.',
    ],
  }),
});

/** How many invites the authority withdraws for one request. */
const WITHDRAWN_AT_ONCE = 1000;

export const WITHDRAW_BATCH: Action = {
  name: 'withdraw-batch',
  title: 'Withdraw a batch',
  label: 'Withdraw the batch',
  tier: 'standard',
  isDestructive: true,
  fields: [{ name: 'batch', label: 'Batch', kind: 'text', isRequired: true }],
  async plan(context, form) {
    const batch = textIn(form, 'batch');
    const count = await unusedIn(context, batch);
    if (count === 0) throw new FormProblem(`The batch ${batch} has no unused invite.`);
    const request = { path: '/admin/invites/withdraw', body: { batch } };
    return {
      sentence: `Withdraw the unused invites of the batch ${batch}.`,
      requests: Array.from({ length: Math.ceil(count / WITHDRAWN_AT_ONCE) }, () => request),
      effects: [
        `Invites withdrawn: ${shownCount(count)}. Their tokens admit nobody from then on.`,
        'Nodes that have joined with an invite of the batch are not affected.',
      ],
      typedNumber: count,
      command: ['invite', 'withdraw', '--batch', batch],
      audited: ['invite_withdrawn'],
      back: `./invites?${new URLSearchParams({ batch })}`,
    };
  },
};

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
