/**
 * *Last contact*: one cell for each node, so that machines that fell silent together are seen as a shape. In a large
 * network, the authority counts them in bins, by a label or by how names and addresses begin, and a cell is a bin.
 */
import { shownCount } from '../../base/counts.ts';
import { HOUR_MS } from '../../base/duration.ts';
import { COLLATOR } from '../../base/ordered-list.ts';
import { type Html, html, NO_HTML } from '../../pages/ui/html.ts';
import { emptyState, textField } from '../../pages/ui/parts.ts';
import { nameInCell, timeText } from '../../pages/ui/values.ts';
import {
  BIN_KINDS,
  type CertificateRow,
  type ContactBin,
  type ContactCounts,
  type Contacts,
} from '../../protocol/rows/certificate.ts';
import type { Context } from '../context.ts';
import { textIn } from '../forms.ts';
import { definePage } from '../page.ts';
import { filtersFor, type NodeQuery, nodeQuery, parametersOf, searchesFor } from './node-filter.ts';
import { eachNode, nodeAddress, nodeTitle } from './node-rows.ts';
import { noNode } from './nodes.ts';

/** Of a larger network, the nodes are counted in bins. */
const MOST_CELLS = 2000;

/** How long ago the last contact was, up to `below` milliseconds; the first class is that of active nodes. */
const AGES = [
  { text: 'Active', member: 'active', below: 0 },
  { text: 'Silent for less than an hour', member: 'silent_under_hour', below: HOUR_MS },
  { text: 'Less than a day', member: 'silent_under_day', below: 24 * HOUR_MS },
  { text: 'Less than a week', member: 'silent_under_week', below: 168 * HOUR_MS },
  { text: 'Longer', member: 'silent_longer', below: Number.POSITIVE_INFINITY },
] as const;

interface Cell {
  /** Null if the list of nodes has no filter for it. */
  readonly href: string | null;
  readonly title: string;
  /** How many nodes of each age. */
  readonly ages: readonly number[];
}

interface Bin extends Cell {
  readonly name: string;
  readonly counts: ContactCounts;
}

export const CONTACTS = definePage({
  path: '/contacts',
  title: 'Last contact',
  isInNavigation: false,
  async show(context, given) {
    // Other certificates are not expected to be in contact.
    const query: NodeQuery = { ...nodeQuery(given), status: 'in_use' };
    const group = textIn(given, 'group');
    const found = await countedFor(context, query, group);
    const rows = found === null ? [] : await rowsOf(context, found);
    const parameters = parametersOf(query, { meaning: 0, cursor: '', sort: null });
    return {
      ...(found !== null && { lede: rows === null ? ledeOfBins(group) : 'Each cell is a node.' }),
      body: html`<form class="ask" method="get" action="./contacts" role="search">
${[...parameters].map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}${textField('group', 'Grouped by the label', group, labelsIn(rows ?? []))}
<p class="field"><button type="submit">Group</button> <a href="./nodes?${parameters.toString()}">As a table</a></p>
</form>
${found === null ? (parameters.size === 0 ? noNode(context) : emptyState('No node matches.')) : html`${legend(found.contacts.total)}${rows === null ? binned(found.contacts, query) : nodesByLabel(rows, group, context.now())}`}`,
    };
  },
});

/** The nodes of the first meaning of the search that has any, as in the list of nodes; null if none has. */
async function countedFor(context: Context, query: NodeQuery, group: string) {
  for (const { status, ...filters } of filtersFor(query, context.now())) {
    const grouped = { ...filters, ...(group !== '' && { group }) };
    const contacts = await context.client.countContacts(grouped);
    if (contacts.total.count > 0) return { contacts, filters };
  }
  return null;
}

type Counted = NonNullable<Awaited<ReturnType<typeof countedFor>>>;

/** Null if there are too many to draw each of them. */
async function rowsOf(context: Context, { contacts, filters }: Counted) {
  const { count } = contacts.total;
  if (count > MOST_CELLS) return null;
  const rows: CertificateRow[] = [];
  for await (const row of eachNode(context, { ...filters, status: 'in_use' })) {
    rows.push(row);
    if (rows.length === count) break;
  }
  return rows;
}

function labelsIn(rows: readonly CertificateRow[]): string[] {
  return [...new Set(rows.flatMap(({ labels = {} }) => Object.keys(labels)))].toSorted();
}

function ledeOfBins(group: string): string {
  const bin =
    group === ''
      ? 'has the nodes whose names or addresses begin alike; group them by a label to see more'
      : `is a value of the label ${group}`;
  return `There are more than ${shownCount(MOST_CELLS)} nodes, so each cell ${bin}. Its colors are in proportion to its nodes.`;
}

function agesIn(counts: ContactCounts): number[] {
  return AGES.map(({ member }) => counts[member]);
}

function ageOf({ status, last_contact: contact }: CertificateRow, now: number): number {
  if (status === 'active') return 0;
  const ago = now - Date.parse(contact);
  return AGES.findIndex(({ below }, index) => index > 0 && ago < below);
}

function legend(total: ContactCounts): Html {
  return html`<ul class="ages">
${AGES.map(({ text, member }, age) => {
  return html`<li><svg viewBox="0 0 10 10" width="12" height="12" aria-hidden="true"><rect class="age${age.toString()}" width="10" height="10"/></svg> ${text}: ${shownCount(total[member])}</li>`;
})}</ul>`;
}

/** By the value of the label, the nodes in each by name; all in one drawing without a label. */
function nodesByLabel(rows: readonly CertificateRow[], label: string, now: number): Html[] {
  const groups = new Map<string, CertificateRow[]>();
  for (const row of rows) {
    const name = label === '' ? '' : (row.labels?.[label] ?? 'without it');
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [row]);
    else group.push(row);
  }
  const titled = (row: CertificateRow) => row.name ?? row.hostname ?? row.node_public_key;
  return [...groups]
    .sort(([a], [b]) => COLLATOR.compare(a, b))
    .map(([name, members]) => {
      members.sort((a, b) => COLLATOR.compare(titled(a), titled(b)));
      return html`<div class="cells">${heading(label === '' ? '' : nameInCell(name))}${drawing(members.map((row) => cellOf(row, now)))}</div>`;
    });
}

function cellOf(row: CertificateRow, now: number): Cell {
  const age = ageOf(row, now);
  return {
    href: nodeAddress(row.node_public_key),
    title: `${nodeTitle(row)}: ${row.status}, ${row.last_contact}`,
    ages: AGES.map((_, index) => (index === age ? 1 : 0)),
  };
}

const KINDS: Readonly<Record<ContactBin['by'], string>> = {
  label: '',
  name: 'By name',
  hostname: 'By host name, without a name',
  remote_addr: 'By address, without a name',
};

/** A list has what the cells show, for readers who do not see them. */
function binned({ bins, unlabeled, other }: Contacts, query: NodeQuery): Html[] {
  const rest = (name: string, counts: ContactCounts | null) =>
    counts === null ? [] : [binOf(name, null, counts)];
  return BIN_KINDS.map((kind) => {
    const own = bins
      .filter(({ by }) => by === kind)
      .map((bin) => binOf(nameOf(bin), addressOf(bin, query), bin))
      .sort((a, b) => COLLATOR.compare(a.name, b.name));
    const all =
      kind === 'label'
        ? [...own, ...rest('further values', other), ...rest('without it', unlabeled)]
        : own;
    if (all.length === 0) return NO_HTML;
    return html`<div class="cells">${heading(KINDS[kind])}${drawing(all)}<details><summary>As a list</summary>
<ul class="bars">
${all.map(bar)}</ul>
</details></div>`;
  });
}

function binOf(name: string, href: string | null, counts: ContactCounts): Bin {
  const { count, active, silent_since: since } = counts;
  const ages = agesIn(counts);
  const silent = since === null ? 'none silent' : `${shownCount(count - active)} silent`;
  const title = `${nameInCell(name)}: ${silent} of ${shownCount(count)}${since === null ? '' : `, the longest since ${since}`}`;
  return { name, href, title, counts, ages };
}

function nameOf({ by, value }: ContactBin): string {
  return by === 'label' ? value.slice(value.indexOf('=') + 1) : value.replace(/\*$/, '…');
}

/** The list of its nodes, those that have been silent the longest first; null if no search finds them. */
function addressOf({ by, value }: ContactBin, query: NodeQuery): string | null {
  const sorted = { sort: 'contact', isDescending: false, cursor: '' } as const;
  if (by === 'label') {
    const label = `${query.label} ${value}`.trim();
    return listOf(parametersOf(query, { ...sorted, label, meaning: 0 }));
  }
  const search = by === 'remote_addr' ? value : value.replace(/\*?$/, '*');
  const meaning = searchesFor(search).findIndex((each) => each[by] !== undefined);
  return meaning === -1 ? null : listOf(parametersOf(query, { ...sorted, search, meaning }));
}

function listOf(parameters: URLSearchParams): string {
  return `./nodes?${parameters.toString()}`;
}

function bar({ name, href, counts, ages }: Bin): Html {
  const { count, active, silent_since: since } = counts;
  const shown = html`<bdi>${nameInCell(name)}</bdi>`;
  const longest = since === null ? NO_HTML : html`, the longest since ${timeText(since)}`;
  return html`<li>${href === null ? shown : html`<a href="${href}">${shown}</a>`}: ${shownCount(count - active)} of ${shownCount(count)} silent${longest}<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false">${colors(ages, { x: 0, y: 0, width: 100, height: 8 })}</svg></li>`;
}

function heading(name: string): Html {
  if (name === '') return NO_HTML;
  return html`<h2>${name}</h2>`;
}

const CELLS_OF_ROW = 50;
const STEP = 12;

/** The legend says the numbers to readers who do not see the cells; the table has what a cell leads to. */
function drawing(cells: readonly Cell[]): Html {
  const width = CELLS_OF_ROW * STEP;
  const height = Math.ceil(cells.length / CELLS_OF_ROW) * STEP;
  const drawn = cells.map(({ href, title, ages }, index) => {
    const x = (index % CELLS_OF_ROW) * STEP;
    const y = Math.floor(index / CELLS_OF_ROW) * STEP;
    const inside = html`<title>${title}</title>${colors(ages, { x, y, width: 10, height: 10 })}`;
    return href === null
      ? html`<g>${inside}</g>`
      : html`<a href="${href}" tabindex="-1">${inside}</a>`;
  });
  return html`<svg viewBox="0 0 ${width.toString()} ${height.toString()}" aria-hidden="true">${drawn}</svg>`;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The part of a box that even a single silent node of many gets, so that it is seen. */
const LEAST_PART = 0.1;

/** Fills the box from the left with those that have been silent the longest; what is left is active. */
function colors(ages: readonly number[], { x, y, width, height }: Box): Html[] {
  const all = ages.reduce((sum, count) => sum + count, 0);
  let left = width;
  return [...ages.entries()].reverse().map(([age, count]) => {
    if (count === 0 || left === 0) return NO_HTML;
    const wanted = age === 0 ? left : Math.max(count / all, LEAST_PART) * width;
    const start = x + width - left;
    const part = Math.min(wanted, left);
    left -= part;
    return html`<rect class="age${age.toString()}" x="${shownLength(start)}" y="${y.toString()}" width="${shownLength(part)}" height="${height.toString()}"/>`;
  });
}

function shownLength(length: number): string {
  return Number(length.toFixed(1)).toString();
}
