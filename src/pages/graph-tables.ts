/** Treaties and revocations as tables: they contain everything that the drawing shows. */
import { displayTime } from '../views/display-time.ts';
import type { BlastRadiusRow, EdgeRow, RevokedMaterial } from '../views/rows/graph.ts';
import { EDGE_STATES, type EdgeState, STATE_WORDS } from './graph-model.ts';
import { atlasLink, nameInCell } from './graph-names.ts';
import { type Html, template } from './templates.ts';

/** The most rows of a table; the underlying documents have all of them. */
export const MOST_ROWS = 1500;

const STATE_TONES: Readonly<Record<EdgeState, string>> = {
  active: 'ok',
  expiring_soon: 'warn',
  expired: 'neutral',
  revoked: 'danger',
  replaced: 'neutral',
};

interface Cell {
  readonly name: string;
  readonly href: string;
}

function sovereignCell(id: string): Cell {
  return { name: nameInCell(id), href: `${atlasLink(id)}#selected` };
}

export interface StateBadge {
  readonly word: string;
  readonly tone: string;
}

export function stateBadge(state: string): StateBadge {
  const known = EDGE_STATES.find((each) => each === state);
  if (known === undefined) return { word: state, tone: 'neutral' };
  return { word: STATE_WORDS[known], tone: STATE_TONES[known] };
}

interface TableFrame {
  readonly caption: string;
  /** The number of omitted rows. */
  readonly left: number;
  readonly source: string;
}

const edges = template<
  TableFrame & {
    readonly id: string;
    readonly rows: readonly {
      readonly from: Cell;
      readonly to: Cell;
      readonly badge: StateBadge;
      readonly begins: string;
      readonly ends: string;
      readonly treatyId: string;
      readonly state: string;
    }[];
  }
>(`<div class="table-box" tabindex="0" role="region" aria-label="<%= it.caption %>">
<table id="<%= it.id %>">
<caption><%= it.caption %><% if (it.left > 0) { %> <%= it.left %> more are in <a href="<%= it.source %>"><%= it.source.slice(2) %></a>.<% } %></caption>
<thead><tr><th scope="col">Recognizes</th><th scope="col">Is recognized</th><th scope="col">State</th><th scope="col">From</th><th scope="col">Until</th><th scope="col">Treaty</th></tr></thead>
<tbody>
<% for (const row of it.rows) { %>
<tr data-state="<%= row.state %>"><th scope="row" class="name"><a href="<%= row.from.href %>"><bdi><%= row.from.name %></bdi></a></th><td class="name"><a href="<%= row.to.href %>"><bdi><%= row.to.name %></bdi></a></td><td><span class="badge <%= row.badge.tone %>"><%= row.badge.word %></span></td><td class="nowrap"><%= row.begins %></td><td class="nowrap"><%= row.ends %></td><td class="id"><%= row.treatyId %></td></tr>
<% } %>
</tbody>
</table>
</div>
`);

export function edgesTable(id: string, caption: string, rows: readonly EdgeRow[]): Html {
  return edges({
    id,
    caption,
    left: Math.max(0, rows.length - MOST_ROWS),
    source: './connectome.json',
    rows: rows.slice(0, MOST_ROWS).map((row) => ({
      from: sovereignCell(row.from),
      to: sovereignCell(row.to),
      badge: stateBadge(row.lifecycle_state),
      begins: displayTime(row.valid_from),
      ends: displayTime(row.expires_at),
      treatyId: nameInCell(row.treaty_id),
      state: row.lifecycle_state,
    })),
  });
}

const material = template<
  TableFrame & {
    readonly rows: readonly {
      readonly kind: string;
      readonly id: string;
      readonly issuer: Cell | null;
      readonly subject: Cell | null;
      readonly reason: string;
      readonly at: string;
    }[];
  }
>(`<div class="table-box" tabindex="0" role="region" aria-label="<%= it.caption %>">
<table>
<caption><%= it.caption %><% if (it.left > 0) { %> <%= it.left %> more are in <a href="<%= it.source %>"><%= it.source.slice(2) %></a>.<% } %></caption>
<thead><tr><th scope="col">Revoked</th><th scope="col">What</th><th scope="col">Whose</th><th scope="col">Reason</th><th scope="col">Id</th></tr></thead>
<tbody>
<% for (const row of it.rows) { %>
<tr><td class="nowrap"><%= row.at %></td><td class="nowrap"><%= row.kind %></td><td class="name"><% if (row.issuer) { %><a href="<%= row.issuer.href %>"><bdi><%= row.issuer.name %></bdi></a><% } %><% if (row.subject) { %>, for <a href="<%= row.subject.href %>"><bdi><%= row.subject.name %></bdi></a><% } %></td><td class="name"><bdi><%= row.reason %></bdi></td><th scope="row" class="id"><%= row.id %></th></tr>
<% } %>
</tbody>
</table>
</div>
`);

function kindOf(row: RevokedMaterial): string {
  if (row.type === 'membership_attestation') return 'Attestation';
  return row.lifecycle_state === 'replaced' ? 'Treaty, replaced' : 'Treaty';
}

export function materialTable(
  caption: string,
  rows: readonly RevokedMaterial[],
  treaties: ReadonlyMap<string, EdgeRow>,
): Html {
  return material({
    caption,
    left: Math.max(0, rows.length - MOST_ROWS),
    source: './connectome.json',
    rows: rows.slice(0, MOST_ROWS).map((row) => {
      const treaty = row.type === 'recognition_treaty' ? treaties.get(row.id) : undefined;
      const issuer = row.type === 'recognition_treaty' ? treaty?.from : row.issuer_sovereign_id;
      return {
        kind: kindOf(row),
        id: nameInCell(row.id),
        issuer: issuer === undefined ? null : sovereignCell(issuer),
        subject: treaty === undefined ? null : sovereignCell(treaty.to),
        reason: row.reason === null ? 'none given' : nameInCell(row.reason),
        at: displayTime(row.revoked_at),
      };
    }),
  });
}

const blast = template<
  TableFrame & {
    readonly rows: readonly {
      readonly id: string;
      readonly issuer: Cell;
      readonly affected: readonly Cell[];
      readonly more: number;
      readonly reason: string;
      readonly at: string;
    }[];
  }
>(`<div class="table-box" tabindex="0" role="region" aria-label="<%= it.caption %>">
<table>
<caption><%= it.caption %><% if (it.left > 0) { %> <%= it.left %> more are in <a href="<%= it.source %>"><%= it.source.slice(2) %></a>.<% } %></caption>
<thead><tr><th scope="col">Attestation</th><th scope="col">Revoked by</th><th scope="col">Affects, because they recognize it</th><th scope="col">Reason</th><th scope="col">Imported</th></tr></thead>
<tbody>
<% for (const row of it.rows) { %>
<tr><th scope="row" class="id"><%= row.id %></th><td class="name"><a href="<%= row.issuer.href %>"><bdi><%= row.issuer.name %></bdi></a></td><td class="name"><% if (row.affected.length === 0) { %><span class="quiet">nobody now</span><% } %><% row.affected.forEach((each, index) => { %><% if (index > 0) { %>, <% } %><a href="<%= each.href %>"><bdi><%= each.name %></bdi></a><% }); %><% if (row.more > 0) { %> and <%= row.more %> more<% } %></td><td class="name"><bdi><%= row.reason %></bdi></td><td class="nowrap"><%= row.at %></td></tr>
<% } %>
</tbody>
</table>
</div>
`);

const MOST_AFFECTED = 12;

export function blastRadiusTable(caption: string, rows: readonly BlastRadiusRow[]): Html {
  return blast({
    caption,
    left: Math.max(0, rows.length - MOST_ROWS),
    source: './connectome.json',
    rows: rows.slice(0, MOST_ROWS).map((row) => ({
      id: nameInCell(row.id),
      issuer: sovereignCell(row.issuer_sovereign_id),
      affected: row.affected_accepting_sovereigns.slice(0, MOST_AFFECTED).map(sovereignCell),
      more: Math.max(0, row.affected_accepting_sovereigns.length - MOST_AFFECTED),
      reason: row.reason === null ? 'none given' : nameInCell(row.reason),
      at: displayTime(row.revoked_at),
    })),
  });
}
