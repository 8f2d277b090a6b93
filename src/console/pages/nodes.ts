/** *Nodes*: the certificates of the network, found by what an operator knows of a machine. */
import { counted, shownCount } from '../../base/counts.ts';
import { isPublicKey } from '../../base/crypto/public-key.ts';
import { isList } from '../../base/json/value.ts';
import { type CertificateFilters, isStillMeant } from '../../client/nodes.ts';
import { type Html, html, NO_HTML } from '../../pages/ui/html.ts';
import { choiceField, emptyState, textField, wordChoices } from '../../pages/ui/parts.ts';
import { type Column, table } from '../../pages/ui/table.ts';
import { idText, timeText } from '../../pages/ui/values.ts';
import { revokeCertificate } from '../../protocol/api/certificates.ts';
import {
  CERTIFICATE_STATUSES,
  type CertificateRow,
  isAccepted,
} from '../../protocol/rows/certificate.ts';
import { labelTexts } from '../../protocol/rows/node-description.ts';
import type { Context } from '../context.ts';
import { actionLink } from '../forms.ts';
import { cursorPager } from '../list-page.ts';
import { definePage, FormProblem, isOffered } from '../page.ts';
import { routeAction } from '../route-action.ts';
import { problemLine } from '../shell.ts';
import { CREATE_INVITES } from './invites.ts';
import { REASON, REVOCATION_EVENTS } from './node-actions.ts';
import { filtersFor, type NodeQuery, nodeQuery, parametersOf } from './node-filter.ts';
import {
  agentOf,
  eachFound,
  eachNode,
  type FoundNodes,
  findNodes,
  labelChips,
  nodeLink,
  nodeTitle,
  worstState,
} from './node-rows.ts';

function listing(query: NodeQuery, found: FoundNodes, context: Context): Html {
  const { rows, nextCursor, isUnsorted, meaning } = found;
  const note = isUnsorted
    ? html`<p class="notice">There are too many certificates to sort, so they are sorted by id. Narrow the filter, such as by the status, to sort them otherwise.</p>`
    : NO_HTML;
  const shown =
    rows.length === 0
      ? nothing(query, nextCursor, context)
      : table({
          id: 'nodes',
          caption: captionOf(query, found),
          keyOf: ({ cert_id: id }) => id,
          rows,
          columns: columns(query),
        });
  return html`<div class="listing">${note}${shown}${cursorPager({
    label: 'Pages of nodes',
    path: './nodes',
    query: parametersOf(query, { meaning }),
    nextCursor,
    also: html`<a href="./nodes.csv?${parametersOf(query, { meaning: 0, cursor: '', sort: null }).toString()}">All as CSV</a><a href="./contacts?${parametersOf(query, { meaning: 0, cursor: '', sort: null }).toString()}">Last contact of each</a>`,
  })}</div>`;
}

function captionOf(query: NodeQuery, { rows, nextCursor, isUnsorted }: FoundNodes) {
  const nodes = new Set(rows.map(({ node_public_key: key }) => key)).size;
  const count =
    query.status === 'in_use' ? counted(nodes, 'node') : counted(rows.length, 'certificate');
  const isWhole = query.cursor === '' && nextCursor === null;
  return `${count}${isWhole ? '' : ' on this page'}${isUnsorted ? ', sorted by id' : orderOf(query)}`;
}

function orderOf({ sort, status, health }: NodeQuery): string {
  if (sort !== null) return '';
  return status === 'in_use' && health === '' ? ', worst first' : ', sorted by id';
}

function nothing(query: NodeQuery, nextCursor: string | null, context: Context): Html {
  if (nextCursor !== null) return emptyState('None matches so far: the next page searches on.');
  if (parametersOf(query, { sort: null }).size === 0) return noNode(context);
  if (query.status !== 'in_use') return emptyState('No certificate matches.');
  const any = address(query, { status: null, meaning: 0, cursor: '' });
  return emptyState(html`No node in use matches. <a href="${any}">Search nodes of any status</a>.`);
}

/** What the first look at a new network finds. */
export function noNode(context: Context): Html {
  const invite = isOffered(CREATE_INVITES, context)
    ? html`<a href="./invites">Invite one</a>, or run`
    : 'Invite one with';
  return emptyState(html`No node is in use. ${invite}`, 'invite create');
}

const NODE = { isHead: true, kind: 'name first', cell: nodeLink } as const;
const CONTACT = {
  kind: 'brief',
  cell: (row: CertificateRow) => timeText(row.last_contact),
} as const;
const DESCRIBED: readonly Column<CertificateRow>[] = [
  { head: 'State', kind: 'state', cell: worstState },
  { head: 'Labels', cell: labelChips },
  { head: 'Roles', kind: 'words', cell: ({ roles }) => roles.join(', ') },
];

function columns(query: NodeQuery): Column<CertificateRow>[] {
  const sortable = (sort: NodeQuery['sort'], head: string) => ({
    head,
    sorting: {
      href: address(query, {
        sort,
        isDescending: query.sort === sort && !query.isDescending,
        meaning: 0,
        cursor: '',
      }),
      now: query.sort !== sort ? null : query.isDescending ? 'descending' : 'ascending',
    } as const,
  });
  return [
    { ...sortable('name', 'Node'), ...NODE },
    ...DESCRIBED,
    // Of nodes in use, each has one.
    ...(query.status === 'in_use'
      ? []
      : [{ head: 'Certificate', kind: 'id', cell: (row: CertificateRow) => idText(row.cert_id) }]),
    { ...sortable('contact', 'Last contact'), ...CONTACT },
    { ...sortable('expires', 'Expires'), kind: 'brief', cell: (row) => timeText(row.expires_at) },
  ];
}

/** What a filter proposes; it takes other texts, too. */
const DURATIONS = ['15m', '1h', '1d', '7d', '30d'];

function filterForm(query: NodeQuery, { fleet }: Context): Html {
  const roles = fleet?.roles.map((row) => row.role) ?? [];
  const { role, health, label, silent, lapsing } = query;
  const isNarrowed = [role, health, label, silent, lapsing].some((text) => text !== '');
  return html`<form class="ask" method="get" action="./nodes" role="search">
${searchField(query.search)}
${choiceField('status', 'Status', wordChoices(['in_use', ...CERTIFICATE_STATUSES], 'any'), query.status ?? 'any')}
${
  query.sort === null
    ? NO_HTML
    : html`<input type="hidden" name="sort" value="${parametersOf(query).get('sort') ?? ''}">`
}<p class="field"><button type="submit">Find</button> <a href="./nodes">Clear</a></p>
<details class="wide"${isNarrowed ? html` open` : NO_HTML}><summary>More filters</summary><div class="ask">
${textField('role', 'Roles', role, roles)}${textField('health', 'Health', health, ['well', 'unwell'])}${textField('label', 'Labels, such as env=prod rack=r3', label)}${textField('silent', 'Silent for', silent, DURATIONS)}${textField('lapsing', 'Expires within', lapsing, DURATIONS)}</div></details>
</form>`;
}

export function searchField(searched: string): Html {
  return html`<p class="field"><label for="q">Name, id, key, address, label or role</label><input type="search" id="q" name="q" value="${searched}" autocomplete="off" spellcheck="false"></p>`;
}

function address(query: NodeQuery, changed: Partial<NodeQuery>): string {
  return `./nodes?${parametersOf(query, changed)}`;
}

const CSV_COLUMNS = [
  'cert_id',
  'node_public_key',
  'name',
  'labels',
  'hostname',
  'roles',
  'status',
  'node_status',
  'last_contact',
  'remote_addr',
  'issued_at',
  'expires_at',
  'revoked_at',
  'revocation_reason',
] as const;

function csvValue(row: CertificateRow, column: (typeof CSV_COLUMNS)[number]): string {
  if (column === 'roles') return row.roles.join(' ');
  if (column === 'labels') return labelTexts(row.labels ?? {}).join(' ');
  return row[column] ?? '';
}

export function csvLine(values: readonly string[]): string {
  return `${values.map(field).join(',')}\r\n`;
}

/**
 * Spreadsheets treat text that begins like this as a formula, some of them in full width, too, and strangers choose
 * these names. Keys are read by programs, and stay as they are.
 */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;

function field(text: string): string {
  const harmless = FORMULA.test(text) && !isPublicKey(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** More than this is not one decision. */
const MOST_REVOKED = 10_000;
/** Agents are looked up one by one. */
const MOST_AGENTS_LOOKED_UP = 100;

/** Revoking all nodes that match a filter: one request for each certificate, as `mesh-na certificate revoke` does. */
const REVOKE_MATCHING = routeAction(revokeCertificate, {
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
      isDone({ body }, last) {
        const ended = last?.revoked_cert_ids;
        return isList(ended) && ended.includes(String(body.cert_id));
      },
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
    columns: [{ head: 'Node', ...NODE }, ...DESCRIBED, { head: 'Last contact', ...CONTACT }],
  });
}

/** Whether a search is for less than all nodes that are well, which nobody means to revoke together. */
function isNarrowed(query: NodeQuery): boolean {
  const status = query.status === 'silent' ? query.status : 'in_use';
  return parametersOf(query, { meaning: 0, cursor: '', sort: null, status }).size > 0;
}

async function matching(context: Context, query: NodeQuery) {
  if (!isNarrowed(query)) {
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
    // Those of one key follow each other, because a compromised one ends them all.
    rows.sort((a, b) => (a.node_public_key < b.node_public_key ? -1 : 1));
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

export const NODES = definePage({
  path: '/nodes',
  title: 'Nodes',
  async show(context, given) {
    const query = nodeQuery(given);
    const found = await findNodes(context, query).catch((error: unknown) => {
      if (error instanceof FormProblem) return error;
      throw error;
    });
    if (found instanceof FormProblem) {
      return { body: html`${problemLine(found.message)}${filterForm(query, context)}` };
    }
    const filter = parametersOf(query, { meaning: 0, cursor: '', sort: null });
    const bulk =
      isNarrowed(query) && found.rows.length > 0 && isOffered(REVOKE_MATCHING, context)
        ? html`<div class="actions">${actionLink(REVOKE_MATCHING, Object.fromEntries(filter))}</div>`
        : NO_HTML;
    return { body: html`${filterForm(query, context)}${listing(query, found, context)}${bulk}` };
  },
  actions: [REVOKE_MATCHING],
  streams: [
    {
      path: '/nodes.csv',
      type: 'text/csv; charset=utf-8',
      fileName: 'nodes.csv',
      async *pieces(context, given) {
        const rows = eachFound(context, nodeQuery(given));
        // Read first, because what goes wrong can be said only before anything is sent.
        let next = await rows.next();
        yield csvLine(CSV_COLUMNS);
        for (; !next.done; next = await rows.next()) {
          const { value: row } = next;
          yield csvLine(CSV_COLUMNS.map((column) => csvValue(row, column)));
        }
      },
    },
  ],
});
