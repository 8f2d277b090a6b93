/** Revoking all nodes that match a filter: one request for each certificate, as `mesh-na certificate revoke` does. */

import { counted, shownCount } from '../../base/counts.ts';
import { type CertificateFilters, isStillMeant } from '../../client/certificate-search.ts';
import type { Html } from '../../pages/ui/html.ts';
import { table } from '../../pages/ui/table.ts';
import { timeText } from '../../pages/ui/values.ts';
import { revokeCertificate } from '../../protocol/api/certificates.ts';
import { type CertificateRow, isAccepted } from '../../protocol/rows/certificate.ts';
import type { Context } from '../context.ts';
import { FormProblem } from '../page.ts';
import { routeAction } from '../route-action.ts';
import { REASON, REVOCATION_EVENTS } from './node-actions.ts';
import { filtersFor, type NodeQuery, nodeQuery, parametersOf } from './node-filter.ts';
import { agentOf, eachNode, labelChips, nodeLink, nodeTitle, worstState } from './node-rows.ts';

/** More than this is not one decision. */
const MOST_REVOKED = 10_000;
/** Agents are looked up one by one. */
const MOST_AGENTS_LOOKED_UP = 100;

export const REVOKE_MATCHING = routeAction(revokeCertificate, {
  name: 'revoke-matching',
  title: 'Revoke all that match',
  label: 'Revoke all that match',
  isDestructive: true,
  further: {
    q: { label: 'Name, address, label or role' },
    status: { label: 'Status' },
    role: { label: 'Roles' },
    health: { label: 'Health' },
    label: { label: 'Labels' },
    silent: { label: 'Silent for' },
    lapsing: { label: 'Expires within' },
  },
  fields: { reason: REASON },
  command: 'certificate revoke',
  audited: REVOCATION_EVENTS,
  async explain({ reason = 'unspecified' }, context, form) {
    const query = nodeQuery(form);
    const { filters, rows } = await matching(context, query);
    const keys = [...new Set(rows.map(({ node_public_key: key }) => key))];
    const options = optionsOf(filters);
    return {
      sentence: `Revoke all certificates that match ${options.join(' ')}, with the reason ${reason}.`,
      bodies: rows.map(({ cert_id }) => ({ cert_id, reason })),
      effects: [
        `${counted(rows.length, 'certificate')} of ${counted(keys.length, 'node')} no longer accepted.`,
        await evicted(context, keys),
        'Each is revoked by a request of its own, if it still matches then.',
        ...(reason === 'key_compromise'
          ? ['All other certificates of these nodes end, too, and their keys can never join again.']
          : []),
      ],
      typed: String(rows.length),
      touched: nodesTable(rows),
      subjects: rows.map(nodeTitle),
      command: ['certificate', 'revoke', ...options, '--reason', String(reason)],
      isStillMeant: ({ body }) => isStillMeant(context.client, String(body.cert_id), filters),
      back: `./nodes?${parametersOf(query)}`,
    };
  },
});

/** The most that a person looks through. */
const MOST_LISTED = 500;

function nodesTable(rows: readonly CertificateRow[]): Html {
  const left = rows.length - MOST_LISTED;
  return table({
    id: 'touched',
    caption: `What ends${left > 0 ? `; the first ${shownCount(MOST_LISTED)} of ${shownCount(rows.length)}` : ''}`,
    keyOf: ({ cert_id: id }) => id,
    rows: rows.slice(0, MOST_LISTED),
    columns: [
      { head: 'Node', isHead: true, kind: 'name first', cell: nodeLink },
      { head: 'State', kind: 'state', cell: worstState },
      { head: 'Labels', cell: labelChips },
      { head: 'Roles', kind: 'words', cell: ({ roles }) => roles.join(', ') },
      { head: 'Last contact', kind: 'brief', cell: (row) => timeText(row.last_contact) },
    ],
  });
}

async function matching(context: Context, query: NodeQuery) {
  if (parametersOf(query, { meaning: 0, cursor: '', sort: null, status: 'in_use' }).size === 0) {
    throw new FormProblem('Give a filter: this would revoke every node.');
  }
  // A certificate that was renewed is accepted for a while, and has to end with its successor.
  const accepted = query.status === 'in_use' ? { ...query, status: null } : query;
  for (const filters of filtersFor(accepted, context.now())) {
    // One certificate or node is revoked on its own page.
    if (filters.cert_id !== undefined || filters.key !== undefined) continue;
    const rows: CertificateRow[] = [];
    for await (const row of eachNode(context, filters)) {
      if (isAccepted(row.status)) rows.push(row);
      if (rows.length > MOST_REVOKED) {
        const most = shownCount(MOST_REVOKED);
        throw new FormProblem(`More than ${most} certificates match: narrow the filter.`);
      }
    }
    if (rows.length > 0) return { filters, rows };
  }
  throw new FormProblem('No accepted certificate matches.');
}

async function evicted(context: Context, keys: readonly string[]): Promise<string> {
  if (keys.length > MOST_AGENTS_LOOKED_UP)
    return 'Agents that are registered with these keys are evicted.';
  let count = 0;
  for (const key of keys) if ((await agentOf(context, key)) !== null) count += 1;
  return `${counted(count, 'agent')} ${count === 1 ? 'is' : 'are'} evicted.`;
}

/** The options of the command with the same effect; times are those of now. */
function optionsOf(filters: CertificateFilters): string[] {
  return Object.entries(filters).flatMap(([name, value]) => {
    const flag = name === 'remote_addr' ? '--address' : `--${name.replaceAll('_', '-')}`;
    const values = Array.isArray(value) ? value : [value];
    return values.flatMap((each) => [flag, String(each)]);
  });
}
