/** One node: its certificates, its description, its agent, and what the audit log says of it. */
import { shownCount } from '../../base/counts.ts';
import { type Content, type Html, html, NO_HTML } from '../../pages/ui/html.ts';
import { emptyState, facts, section } from '../../pages/ui/parts.ts';
import { table } from '../../pages/ui/table.ts';
import { idText, idValue, nameInCell, nameInFull, timeText } from '../../pages/ui/values.ts';
import type { AgentDescriptor } from '../../protocol/records/agent-descriptor.ts';
import { type CertificateRow, isAccepted } from '../../protocol/rows/certificate.ts';
import { labelTexts } from '../../protocol/rows/node-description.ts';
import type { Context } from '../context.ts';
import { ENTRIES_LOOKED_AT, entriesTable, recentEntriesOf } from '../entries.ts';
import { actionColumn, actionForm, actionLink } from '../forms.ts';
import { twoLines } from '../list-page.ts';
import { definePage, isOffered } from '../page.ts';
import { DESCRIBE_NODE, effectsOf, REVOKE_CERTIFICATE, REVOKE_NODE } from './node-actions.ts';
import { agentOf, certificatesOf, nodeTitle, statusBadge } from './node-rows.ts';

export const NODE = definePage({
  path: '/node',
  title: 'Node',
  isInNavigation: false,
  async show(context, query) {
    const key = query.get('key') ?? '';
    const rows = await certificatesOf(context, key);
    const [newest] = rows;
    if (newest === undefined) {
      return { title: 'No such node', body: emptyState('No certificate of this key is stored.') };
    }
    const [agent, entries] = await Promise.all([
      agentOf(context, key),
      recentEntriesOf(context, [key, ...rows.map(({ cert_id: id }) => id)]),
    ]);
    return {
      title: nodeTitle(newest),
      body: html`${section('node', 'Node', nodeFacts(newest))}${section(
        'certificates',
        'Certificates',
        chain(rows, context),
      )}${agent === null ? NO_HTML : section('agent', 'Agent', agentFacts(agent))}${description(newest, context)}${ifRevoked(key, rows, agent, context)}${section(
        'audit',
        'Audit log',
        entries.length === 0
          ? emptyState(`None of the last ${shownCount(ENTRIES_LOOKED_AT)} entries names it.`)
          : entriesTable(
              'entries',
              `Newest first, of the last ${shownCount(ENTRIES_LOOKED_AT)} entries of the log`,
              entries,
            ),
      )}<p class="small muted">All entries: <code>${context.commandLine(['events', '--subject', key])}</code></p>`,
    };
  },
  actions: [REVOKE_NODE, REVOKE_CERTIFICATE, DESCRIBE_NODE],
});

function nodeFacts(row: CertificateRow): Html {
  return facts([
    ['Status', statusBadge(row)],
    ['Key', idValue(row.node_public_key)],
    ['Name', row.name === undefined ? html`<span class="muted">none</span>` : nameInFull(row.name)],
    ['Labels', labelTexts(row.labels ?? {}).join(', ') || html`<span class="muted">none</span>`],
    [
      'Host name',
      row.hostname === undefined
        ? html`<span class="muted">none</span>`
        : `${row.hostname} (as reported)`,
    ],
    ['Roles', row.roles.join(', ') || 'none'],
    ['Last contact', html`${timeText(row.last_contact)} from ${row.remote_addr}`],
    ['Reported health', nameInCell(row.node_status)],
  ]);
}

/** The newest first; each names the one that it succeeds. */
function chain(rows: readonly CertificateRow[], context: Context): Html {
  return table({
    id: 'certificates',
    caption: 'Newest first',
    keyOf: ({ cert_id: id }) => id,
    rows,
    columns: [
      {
        head: 'Certificate',
        kind: 'id',
        isHead: true,
        cell: ({ cert_id: id, renewed_from: before }) =>
          twoLines(idText(id), before === null ? '' : `renews ${before.slice(0, 8)}`),
      },
      { head: 'Status', kind: 'state', cell: (row) => twoLines(statusBadge(row), endOf(row)) },
      { head: 'Issued', cell: (row) => timeText(row.issued_at) },
      { head: 'Expires', cell: (row) => timeText(row.expires_at) },
      { head: 'Last contact', cell: (row) => timeText(row.last_contact) },
      ...actionColumn(REVOKE_CERTIFICATE, context, (row: CertificateRow) =>
        isAccepted(row.status) ? actionLink(REVOKE_CERTIFICATE, { cert_id: row.cert_id }) : '',
      ),
    ],
  });
}

/** When it stopped being accepted, and why. */
function endOf({
  revoked_at: revoked,
  revocation_reason: reason,
  superseded_from: superseded,
}: CertificateRow): Content {
  if (revoked !== null) return html`${timeText(revoked)} ${reason ?? ''}`;
  return superseded === null ? '' : timeText(superseded);
}

function agentFacts(agent: AgentDescriptor): Html {
  const { scheme, host, port } = agent.endpoint;
  return facts([
    ['Agent', nameInFull(agent.agent_id)],
    ['Address', nameInFull(`${scheme}://${host}:${port}`)],
    ['Capabilities', agent.capabilities.map(nameInCell).join(', ') || 'none'],
    ['Registered', timeText(agent.registered_at)],
    ['Expires', timeText(agent.expires_at)],
  ]);
}

function ifRevoked(
  key: string,
  rows: readonly CertificateRow[],
  agent: AgentDescriptor | null,
  context: Context,
): Html {
  // A key that is compromised cannot be revoked any further.
  if (rows.some(({ revocation_reason: reason }) => reason === 'key_compromise')) return NO_HTML;
  const effects = effectsOf(
    agent,
    rows.filter(({ status }) => isAccepted(status)),
    0,
    'unspecified',
  );
  return section(
    'revoked',
    'If it were revoked',
    html`<ul class="effects">
${effects.map((effect) => html`<li>${effect}</li>`)}</ul>
${
  isOffered(REVOKE_NODE, context)
    ? html`<div class="actions">${actionLink(REVOKE_NODE, { node_public_key: key })}</div>`
    : NO_HTML
}`,
  );
}

function description(row: CertificateRow, context: Context): Html {
  if (!isOffered(DESCRIBE_NODE, context)) return NO_HTML;
  const values = new URLSearchParams({
    node_public_key: row.node_public_key,
    name: row.name ?? '',
    labels: labelTexts(row.labels ?? {}).join('\n'),
  });
  return section('describe', 'Name and labels', actionForm(DESCRIBE_NODE, values));
}
