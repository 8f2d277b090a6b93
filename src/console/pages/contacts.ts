/**
 * *Last contact*: one cell for each node, so that machines that fell silent together are seen as a shape. In a large
 * network, the authority finds the silent ones, and only they have cells; grouped by a label, a bar for each group.
 * What the others do is not read: a million rows would take a minute.
 */
import type { CertificateFilters } from '../../client/operator-client.ts';
import { shownCount } from '../../pages/counts.ts';
import { emptyState } from '../../pages/empty-state.ts';
import { nameInCell } from '../../pages/graph-names.ts';
import { type Html, html, NO_HTML } from '../../pages/html.ts';
import type { CertificateRow } from '../../protocol/rows/certificate.ts';
import type { Context } from '../context.ts';
import { textIn } from '../fields.ts';
import { definePage } from '../page.ts';
import { filtersFor, nodeQuery, parametersOf } from './node-filter.ts';
import { COLLATOR, nodeAddress, nodeTitle } from './node-rows.ts';

export const MOST_CELLS = 2000;
/** Bars have room for more nodes than cells; reading these takes about half a second. */
const MOST_COUNTED = 10_000;
const ROWS_READ = 1000;
/** A request searches some 40,000 certificates, so this is enough for two million. */
const MOST_REQUESTS = 50;

const HOUR = 3_600_000;

/** How long ago the last contact was, up to `below` milliseconds; the first class is that of active nodes. */
const AGES = [
  { text: 'Active', below: 0 },
  { text: 'Silent for less than an hour', below: HOUR },
  { text: 'Less than a day', below: 24 * HOUR },
  { text: 'Less than a week', below: 168 * HOUR },
  { text: 'Longer', below: Number.POSITIVE_INFINITY },
] as const;

interface Cells {
  readonly rows: readonly CertificateRow[];
  readonly isAll: boolean;
}

export const CONTACTS = definePage({
  path: '/contacts',
  title: 'Last contact',
  isInNavigation: false,
  tier: 'standard',
  async load(context, given) {
    const query = nodeQuery(given);
    const [filters = {}] = filtersFor(query, context.now());
    const group = textIn(given, 'group');
    const all = await cellsOf(context, filters, {
      rows: MOST_CELLS,
      requests: MOST_CELLS / ROWS_READ,
    });
    const silent = all.isAll
      ? null
      : await cellsOf(
          context,
          { ...filters, status: 'silent' },
          { rows: group === '' ? MOST_CELLS : MOST_COUNTED, requests: MOST_REQUESTS },
        );
    const parameters = parametersOf(query, { meaning: 0, cursor: '', sort: null });
    return { cells: silent ?? all, isLarge: silent !== null, group, parameters };
  },
  render({ cells, isLarge, group, parameters }, { now }) {
    const { rows, isAll } = cells;
    const ages = rows.map((row) => ageOf(row, now()));
    const groups = groupsOf(rows, group);
    const areBars = isLarge && group !== '';
    const lede = isLarge
      ? `There are more than ${shownCount(MOST_CELLS)} nodes, so only the silent ones ${areBars ? `are counted, by the label ${group}` : 'have cells; group them by a label to count more'}.`
      : 'Each cell is a node.';
    return {
      lede: isAll
        ? lede
        : `${lede} These are the first ${shownCount(rows.length)} that were found.`,
      body: html`<form class="ask" method="get" action="./contacts" role="search">
${[...parameters].map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}<p class="field"><label for="q">Grouped by the label</label><input type="search" id="q" name="group" value="${group}" autocomplete="off" spellcheck="false"></p>
<p class="field"><button type="submit">Group</button> <a href="./nodes?${parameters.toString()}">As a table</a></p>
</form>
${rows.length === 0 ? emptyState(isLarge ? 'No node is silent.' : 'No node matches.') : legend(ages, isLarge)}${
  areBars
    ? bars(groups, parameters, group, now())
    : groups.map(([name, members]) => drawing(name, members, now()))
}`,
    };
  },
});

/** Reads no more rows than a few requests return, and than cells that a reader can distinguish. */
async function cellsOf(
  { client }: Context,
  filters: CertificateFilters,
  most: { readonly rows: number; readonly requests: number },
): Promise<Cells> {
  const rows: CertificateRow[] = [];
  let cursor: string | undefined;
  for (let requests = 0; requests < most.requests && rows.length < most.rows; requests += 1) {
    const limit = Math.min(ROWS_READ, most.rows - rows.length);
    const page = await client.certificates({
      ...filters,
      limit,
      ...(cursor !== undefined && { cursor }),
    });
    rows.push(...page.certificates);
    cursor = page.next_cursor;
    if (cursor === undefined) return { rows, isAll: true };
  }
  return { rows, isAll: false };
}

function ageOf({ status, last_contact: contact }: CertificateRow, now: number): number {
  if (status === 'active') return 0;
  const ago = now - Date.parse(contact);
  return AGES.findIndex(({ below }, index) => index > 0 && ago < below);
}

function legend(ages: readonly number[], isLarge: boolean): Html {
  return html`<ul class="ages">
${AGES.map(({ text }, age) => {
  if (isLarge && age === 0) return NO_HTML;
  const count = ages.filter((each) => each === age).length;
  return html`<li><svg viewBox="0 0 10 10" width="12" height="12" aria-hidden="true"><rect class="age${age.toString()}" width="10" height="10"/></svg> ${text}: ${shownCount(count)}</li>
`;
})}</ul>
`;
}

/** By the value of the label, the nodes in each by name; all in one group without a label. */
function groupsOf(rows: readonly CertificateRow[], label: string): Group[] {
  const groups = new Map<string, CertificateRow[]>();
  for (const row of rows) {
    const name = label === '' ? '' : (row.labels?.[label] ?? 'without it');
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [row]);
    else group.push(row);
  }
  const titled = (row: CertificateRow) => row.name ?? row.hostname ?? row.node_public_key;
  for (const group of groups.values()) {
    group.sort((a, b) => COLLATOR.compare(titled(a), titled(b)));
  }
  return [...groups].sort(([a], [b]) => COLLATOR.compare(a, b));
}

type Group = readonly [name: string, rows: readonly CertificateRow[]];

/** As long as the group has silent nodes, and in the color of the one that is silent the longest. */
function bars(
  groups: readonly Group[],
  parameters: URLSearchParams,
  label: string,
  now: number,
): Html {
  const largest = Math.max(...groups.map(([, rows]) => rows.length));
  return html`<ul class="bars">
${groups.slice(0, MOST_CELLS).map(([name, rows]) => {
  const age = Math.max(...rows.map((row) => ageOf(row, now)));
  const width = ((100 * rows.length) / largest).toFixed(1);
  const query = new URLSearchParams(parameters);
  query.set('status', 'silent');
  query.set('label', `${label}=${name}`);
  const named =
    rows[0]?.labels?.[label] === undefined
      ? name
      : html`<a href="./nodes?${query.toString()}"><bdi>${nameInCell(name)}</bdi></a>`;
  return html`<li>${named}: ${shownCount(rows.length)}<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false"><rect class="age${age.toString()}" width="${width}" height="8"/></svg></li>
`;
})}</ul>
`;
}

const CELLS_OF_ROW = 50;
const STEP = 12;

/** The legend says the numbers to readers who do not see the cells; the table has what a cell leads to. */
function drawing(name: string, rows: readonly CertificateRow[], now: number): Html {
  const width = CELLS_OF_ROW * STEP;
  const height = Math.ceil(rows.length / CELLS_OF_ROW) * STEP;
  const heading =
    name === ''
      ? NO_HTML
      : html`<h2>${nameInCell(name)}</h2>
`;
  const cells = rows.map((row, index) => {
    const x = ((index % CELLS_OF_ROW) * STEP).toString();
    const y = (Math.floor(index / CELLS_OF_ROW) * STEP).toString();
    const title = `${nodeTitle(row)}: ${row.status}, ${row.last_contact}`;
    return html`<a href="${nodeAddress(row.node_public_key)}" tabindex="-1"><rect class="age${ageOf(row, now).toString()}" x="${x}" y="${y}" width="10" height="10"><title>${title}</title></rect></a>`;
  });
  return html`<div class="cells">${heading}<svg viewBox="0 0 ${width.toString()} ${height.toString()}" aria-hidden="true">${cells}</svg></div>
`;
}
