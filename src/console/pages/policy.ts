/** *Policy*: the versions of the network's policy, what changed between two of them, and which one is active. */

import { counted } from '../../base/counts.ts';
import { type Html, html, NO_HTML } from '../../pages/ui/html.ts';
import { badge, choiceField, emptyState, section } from '../../pages/ui/parts.ts';
import { table } from '../../pages/ui/table.ts';
import { nameInCell, timeText } from '../../pages/ui/values.ts';
import type { PolicyHistory } from '../../protocol/answers/recognition.ts';
import { publishPolicy, rollBackPolicy } from '../../protocol/api/policies.ts';
import type { PolicyManifest } from '../../protocol/records/policy-manifest.ts';
import type { Context } from '../context.ts';
import { actionColumn, actionForm, actionLink } from '../forms.ts';
import { cursorPager } from '../list-page.ts';
import { definePage, isOffered } from '../page.ts';
import { routeAction } from '../route-action.ts';

const HIGHEST_PORT = 65_535;

/** The form that publishes the policy again as it is. */
function formOf(policy: PolicyManifest): URLSearchParams {
  const { min_client_version, allowed_ports, allowed_services, routing } = policy;
  return new URLSearchParams({
    min_client_version,
    allowed_ports: allowed_ports.join('\n'),
    allowed_services: allowed_services.join('\n'),
    'routing.preferred_transports': routing.preferred_transports.join('\n'),
    'routing.max_hops': String(routing.max_hops),
  });
}

const PUBLISH_POLICY = routeAction(publishPolicy, {
  name: 'publish-policy',
  title: 'Publish a policy',
  label: 'Publish',
  fields: {
    policy_id: { label: 'Id', hint: 'Empty for a new one. An id in use is replaced.' },
    min_client_version: { label: 'Oldest client', isRequired: true },
    'routing.max_hops': { label: 'Maximum hops', what: 'hops', isRequired: true },
    allowed_ports: { label: 'Ports', hint: 'One on each line.', what: 'port', most: HIGHEST_PORT },
    allowed_services: { label: 'Services', hint: 'One on each line.' },
    'routing.preferred_transports': { label: 'Transports', hint: 'The preferred one first.' },
  },
  command: 'policy publish --file policy.json',
  audited: ['policy_published'],
  async explain({ policy_id: id, ...sent }, { publicClient }) {
    const before = await publicClient.readPolicy();
    return {
      sentence: `Publish a policy${id ? ` with the id ${id}` : ''}, and make it active.`,
      effects: [
        // The form may have been filled in before another operator published one.
        ...changesBetween(before, { ...before, ...sent } as PolicyManifest),
        `It takes the place of ${before.policy_id}, which stays in the list of versions${id === before.policy_id ? ', replaced' : ''}.`,
        'Nodes apply it the next time they read it.',
      ],
    };
  },
});

const ROLL_BACK_POLICY = routeAction(rollBackPolicy, {
  name: 'roll-back-policy',
  title: 'Return to an earlier policy',
  label: 'Activate again',
  fields: { policy_id: { label: 'Id' } },
  command: 'policy rollback {policy_id}',
  audited: ['policy_rolled_back'],
  async explain({ policy_id }, { publicClient }) {
    const before = await publicClient.readPolicy();
    return {
      sentence: `Make the policy ${policy_id} active again.`,
      effects: [
        `${before.policy_id} is no longer active.`,
        'Nodes apply it the next time they read it.',
      ],
    };
  },
});

type Version = PolicyHistory['versions'][number];

const VERSIONS_OF_PAGE = 20;

export const POLICY = definePage({
  path: '/policy',
  title: 'Policy',
  async show(context, query) {
    const { client, publicClient } = context;
    const cursor = query.get('cursor') ?? '';
    const page = { limit: VERSIONS_OF_PAGE, ...(cursor !== '' && { cursor }) };
    // The first version is issued when somebody asks for it, and would not be among the others yet.
    const active = await publicClient.readPolicy();
    const { versions, next_cursor: nextCursor = null } = await client.readPolicyHistory(page);
    const pager = cursorPager({ label: 'Pages of versions', path: './policy', query, nextCursor });
    return {
      body: html`${section('versions', 'Versions', html`${versionsTable(versions, context)}${pager}`)}${comparison(
        versions,
        query,
      )}${
        isOffered(PUBLISH_POLICY, context)
          ? section('publish', 'Publish a policy', actionForm(PUBLISH_POLICY, formOf(active)))
          : NO_HTML
      }`,
    };
  },
  actions: [PUBLISH_POLICY, ROLL_BACK_POLICY],
});

function versionsTable(versions: readonly Version[], context: Context): Html {
  if (versions.length === 0) return emptyState('No policy has been published.');
  return table({
    id: 'versions',
    caption: 'Newest first',
    keyOf: ({ policy_id }) => policy_id,
    rows: versions,
    columns: [
      {
        head: 'Policy',
        isHead: true,
        kind: 'name first',
        cell: ({ policy_id: id, active }) =>
          html`<span>${nameInCell(id)} ${active ? badge({ tone: 'ok', word: 'active' }) : ''}</span>`,
      },
      { head: 'Published', cell: ({ created_at }) => timeText(created_at) },
      ...MEMBERS.map(([head, read]) => ({ head, cell: (row: Version) => read(row.policy) })),
      ...(versions.length > 1
        ? actionColumn(ROLL_BACK_POLICY, context, ({ policy_id, active }: Version) =>
            active ? '' : actionLink(ROLL_BACK_POLICY, { policy_id }),
          )
        : []),
    ],
  });
}

const MEMBERS: readonly (readonly [name: string, (policy: PolicyManifest) => string])[] = [
  ['Oldest client', ({ min_client_version: version }) => version],
  ['Ports', ({ allowed_ports: ports }) => ports.join(', ') || 'none'],
  ['Services', ({ allowed_services: services }) => services.join(', ') || 'none'],
  ['Transports', ({ routing }) => routing.preferred_transports.join(', ') || 'none'],
  ['Hops', ({ routing }) => String(routing.max_hops)],
];

function changesBetween(before: PolicyManifest, after: PolicyManifest): string[] {
  const changes = MEMBERS.map(([name, read]) => [name, read(before), read(after)] as const)
    .filter(([, was, becomes]) => was !== becomes)
    .map(([name, was, becomes]) => `${name}: ${becomes} in place of ${was}.`);
  return changes.length === 0 ? ['It says the same as the active one.'] : changes;
}

/** Two versions side by side: those that the URL names, or the active one and the one published before it. */
function comparison(versions: readonly Version[], query: URLSearchParams): Html {
  if (versions.length < 2) return NO_HTML;
  const named = (name: string) => versions.find(({ policy_id: id }) => id === query.get(name));
  const after = named('after') ?? versions.find(({ active }) => active) ?? versions[0];
  const before = named('before') ?? versions.find((version) => version !== after);
  if (after === undefined || before === undefined) return NO_HTML;
  const rows = MEMBERS.map(([name, read]) => ({
    name,
    before: read(before.policy),
    after: read(after.policy),
  })).filter((row) => row.before !== row.after);
  const differences =
    rows.length === 0
      ? emptyState('They say the same.')
      : table({
          id: 'differences',
          caption: counted(rows.length, 'setting differs', 'settings differ'),
          keyOf: ({ name }) => name,
          rows,
          columns: [
            { head: 'Setting', isHead: true, kind: 'first', cell: ({ name }) => name },
            { head: 'Before', kind: 'words', cell: (row) => row.before },
            { head: 'After', kind: 'words', cell: (row) => row.after },
          ],
        });
  return section(
    'compare',
    'Difference between two',
    html`${choice(versions, before, after)}${differences}`,
  );
}

function choice(versions: readonly Version[], before: Version, after: Version): Html {
  const choices = versions.map(({ policy_id: id }) => [id, nameInCell(id)] as const);
  return html`<form class="ask" method="get" action="./policy">
${choiceField('before', 'Before', choices, before.policy_id)}${choiceField('after', 'After', choices, after.policy_id)}
<p class="field"><button type="submit">Compare</button></p>
</form>`;
}
