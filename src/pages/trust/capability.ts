/** `/capability`: the registered agents with one capability [core-4-6]. */

import { counted } from '../../base/counts.ts';
import type { AgentDescriptor } from '../../protocol/records/agent-descriptor.ts';
import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';
import { emptyState, section } from '../ui/parts.ts';
import { type Column, table, timeColumn } from '../ui/table.ts';
import {
  capabilityAddress,
  capabilityLink,
  idText,
  linksInLine,
  nameInCell,
  nameInLink,
} from '../ui/values.ts';

export interface AgentsPage {
  readonly agents: readonly AgentDescriptor[];
  /** The cursor of the next page; null on the last one. */
  readonly cursor: string | null;
}

/** `page` is null until a capability is requested. */
export function capabilityPage(
  tag: string,
  page: AgentsPage | null,
  networkName: string,
): HtmlPage {
  return renderPage({
    title: tag === '' ? 'Agents by capability' : `Agents with ${nameInCell(tag)}`,
    path: '/capability',
    networkName,
    body: html`${form(tag)}${page === null ? NO_HTML : section('agents', 'Agents', agentsTable(tag, page))}`,
  });
}

const LONGEST_SHOWN = 512;

function form(tag: string): Html {
  return html`<form class="ask" method="get" action="./capability" role="search">
<p class="field"><label for="name">Capability</label><input type="text" id="name" name="name" value="${tag.length > LONGEST_SHOWN ? '' : tag}" placeholder="the whole tag, such as llm:chat" required autocomplete="off" spellcheck="false"></p>
<p class="field"><button type="submit">Find</button></p>
</form>`;
}

function agentsTable(tag: string, { agents, cursor }: AgentsPage): Html {
  const data = html`<p class="small muted">Raw data: <a href="./agents?capability=${encodeURIComponent(tag)}">agents</a>.</p>`;
  if (agents.length === 0) {
    return html`${emptyState('No agent is registered with exactly this capability. To register one:', 'agent register')}${data}`;
  }
  const more =
    cursor === null
      ? NO_HTML
      : html`<p><a href="${capabilityAddress(tag, `&cursor=${cursor}`)}" rel="next">More agents</a></p>`;
  return html`${table({
    id: 'agents',
    caption: `${counted(agents.length, 'agent')}, newest first${cursor === null ? '' : '; more follow'}.`,
    columns: COLUMNS,
    rows: agents,
    keyOf: ({ node_public_key }) => node_public_key,
  })}${more}${data}`;
}

const COLUMNS: readonly Column<AgentDescriptor>[] = [
  {
    head: 'Agent',
    kind: 'name',
    isHead: true,
    cell: ({ agent_id }) => html`<bdi>${nameInLink(agent_id)}</bdi>`,
  },
  { head: 'Address', kind: 'name', cell: addressOf },
  {
    head: 'Capabilities',
    kind: 'name',
    cell: ({ capabilities }) => linksInLine(capabilities, capabilityLink),
  },
  timeColumn('Registered', (row) => row.registered_at, 'nowrap first'),
  timeColumn('Until', (row) => row.expires_at),
  { head: 'Node key', kind: 'id', cell: ({ node_public_key }) => idText(node_public_key) },
];

/** Text rather than a link: anybody may have registered this external address. */
function addressOf({ endpoint: { scheme, host, port } }: AgentDescriptor): Html {
  return html`<bdi>${nameInCell(`${scheme}://${host}:${port}`)}</bdi>`;
}
