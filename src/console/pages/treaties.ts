/** *Treaties*: which sovereigns this network recognizes, until when, and what an operator can do about it. */
import { counted } from '../../base/counts.ts';
import { type Content, html } from '../../pages/ui/html.ts';
import { badge, stateBadge, TO_ISSUE } from '../../pages/ui/parts.ts';
import { idText, nameInCell, nameInLink, timeText } from '../../pages/ui/values.ts';
import {
  followTreaty,
  issueTreaty,
  renewTreaty,
  revokeTreaty,
  setTreatyEndpoint,
} from '../../protocol/api/treaties.ts';
import { type TreatyRow, TreatyStatus } from '../../protocol/rows/recognition.ts';
import type { Context } from '../context.ts';
import { type AskedField, actionColumn, actionLink, renewal } from '../forms.ts';
import { listPage, twoLines } from '../list-page.ts';
import { isOffered } from '../page.ts';
import { routeAction } from '../route-action.ts';

const TREATY: AskedField = { label: 'Treaty', kind: 'id' };
const ENDPOINT: AskedField = {
  label: 'Address of its authority',
  hint: 'Its feed and keys are fetched from there. Empty for none.',
};

const ISSUE_TREATY = routeAction(issueTreaty, {
  name: 'issue-treaty',
  title: 'Recognize a sovereign',
  label: 'Recognize',
  fields: {
    subject_sovereign_id: { label: 'Sovereign' },
    validity_hours: { label: 'Valid for (hours)' },
    subject_public_keys: {
      label: 'Its public keys',
      kind: 'pasted',
      hint: 'One on each line. Get them from its operators, not only from its address.',
    },
    'scope.allowed_roles': { label: 'Roles it may attest', hint: 'Empty for any.' },
    endpoint: ENDPOINT,
  },
  missing: 'Name the sovereign and at least one of its keys.',
  command: ({ scope }) =>
    `treaty issue {subject_sovereign_id} --key {subject_public_keys} ${scope ? '--role {scope.allowed_roles}' : '--any-role'} --validity-hours {validity_hours} --endpoint {endpoint}`,
  audited: ['recognition_treaty_issued'],
  explain: ({ subject_sovereign_id: subject, subject_public_keys: keys, ...sent }) => ({
    sentence: `Sign a treaty that recognizes ${nameInCell(subject)} for ${sent.validity_hours ?? 168} hours.`,
    effects: [
      `Attestations that these keys sign are accepted here: ${keys.join(', ')}.`,
      sent.scope?.allowed_roles === undefined
        ? 'They may attest any role.'
        : `Only for ${sent.scope.allowed_roles.join(', ')}.`,
      'So are revocation feeds that they sign. The treaty is public.',
    ],
  }),
});

const REVOKE_TREATY = routeAction(revokeTreaty, {
  name: 'revoke-treaty',
  title: 'Revoke a treaty',
  label: 'Revoke',
  isDestructive: true,
  fields: { treaty_id: TREATY, reason: { label: 'Reason', hint: 'Everybody can read it.' } },
  command: 'treaty revoke {treaty_id} --reason {reason}',
  audited: ['recognition_treaty_revoked'],
  async explain({ treaty_id }, context) {
    const { treaty, lifecycle } = await context.publicClient.readTreaty({ treaty_id });
    const { subject_sovereign_id: subject, issuer_sovereign_id: issuer } = treaty;
    return {
      sentence: `Revoke the treaty ${treaty_id}, which recognizes ${nameInCell(subject)}.`,
      effects:
        lifecycle.state === 'expired'
          ? ['It has expired, and is not accepted any more. It no longer counts as expired.']
          : await cutBy(context, treaty_id, issuer, subject),
    };
  },
});

/** What is lost without the treaty, as far as this authority knows. */
async function cutBy(
  { publicClient }: Context,
  id: string,
  issuer: string,
  subject: string,
): Promise<string[]> {
  const { recognition_treaties: others } = await publicClient.listTreaties({
    issuer_sovereign_id: issuer,
    subject_sovereign_id: subject,
    status: 'active',
  });
  const named = nameInCell(subject);
  const left = others.filter(
    ({ treaty, lifecycle }) => treaty.treaty_id !== id && lifecycle.state !== 'expired',
  ).length;
  return [
    '1 treaty is cut. It stays listed, as revoked.',
    left === 0
      ? `Attestations of ${named} are no longer accepted.`
      : `${counted(left, 'other treaty recognizes', 'other treaties recognize')} ${named}: its attestations stay accepted.`,
  ];
}

const RENEW_TREATY = routeAction(renewTreaty, {
  name: 'renew-treaty',
  title: 'Renew a treaty',
  label: 'Renew',
  fields: { treaty_id: TREATY, validity_hours: { label: 'Valid for (hours)' } },
  command: 'treaty renew {treaty_id} --validity-hours {validity_hours}',
  audited: ['recognition_treaty_issued', 'recognition_treaty_revoked'],
  explain: ({ treaty_id, validity_hours: hours }) => ({
    sentence: `Replace the treaty ${treaty_id} by one with the same keys and scope for ${hours ?? 168} hours.`,
    effects: ['This one stays listed, as replaced.'],
  }),
});

const SET_TREATY_ENDPOINT = routeAction(setTreatyEndpoint, {
  name: 'set-treaty-endpoint',
  title: 'Set the address of a sovereign',
  label: 'Address',
  fields: { treaty_id: TREATY, endpoint: ENDPOINT },
  command: ({ endpoint }) => `treaty endpoint {treaty_id} ${endpoint ? '{endpoint}' : 'none'}`,
  audited: ['recognition_treaty_endpoint_set'],
  explain: ({ treaty_id, endpoint }) => ({
    sentence: endpoint
      ? `Fetch the subject of the treaty ${treaty_id} from ${endpoint}.`
      : `Do not fetch the subject of the treaty ${treaty_id} any more.`,
    effects: ['The address is public. The signed treaty stays as it is.'],
  }),
});

const FOLLOW_TREATY = routeAction(followTreaty, {
  name: 'follow-treaty',
  title: 'Follow a sovereign to its new key',
  label: 'Follow',
  fields: {
    treaty_id: TREATY,
    root_public_key: {
      label: 'Its root key',
      kind: 'id',
      hint: 'Only after a theft, unless the treaty names it.',
    },
    authority_keys: { label: 'Its authority keys', hint: 'What it serves at /authority-keys.' },
  },
  command: 'treaty follow {treaty_id} --keys authority-keys.json --root-key {root_public_key}',
  audited: ['recognition_treaty_followed'],
  async explain({ treaty_id }, { publicClient }) {
    const { treaty } = await publicClient.readTreaty({ treaty_id });
    return {
      sentence: `Follow ${nameInCell(treaty.subject_sovereign_id)} from the keys of the treaty ${treaty_id} to its current one.`,
      effects: [
        'The authority verifies the chain first, and refuses one that does not begin with a key it trusts.',
        'A new treaty with the same scope and end replaces this one.',
      ],
    };
  },
});

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
