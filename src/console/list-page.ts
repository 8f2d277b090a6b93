/** Pages that are a list of the authority, read by cursor, with a form that filters it; and what such lists share. */

import { type Content, type Html, html, NO_HTML } from '../pages/ui/html.ts';
import { badge, choiceField, emptyState, wordChoices } from '../pages/ui/parts.ts';
import { type Column, table } from '../pages/ui/table.ts';
import type { Context } from './context.ts';
import { newButton, textIn } from './forms.ts';
import { type Action, definePage, isOffered, type Page } from './page.ts';

const ROWS_OF_PAGE = 50;

interface ListDefinition<Row, Status extends string>
  extends Pick<Page, 'path' | 'title' | 'actions'> {
  /** The filter by text: its parameter and label. */
  readonly search: readonly [name: string, label: string];
  /** The choices of the filter by status, if there is one. */
  readonly statuses?: readonly Status[];
  /** The status that is shown unless one is chosen. */
  readonly usualStatus?: Status;
  /** What adds to the list, and what its form begins with. */
  readonly adding: Action;
  readonly defaults?: Readonly<Record<string, string>>;
  /** What an empty list says, and which command adds to it; what a filter that matches nothing says. */
  readonly empty: readonly [text: string, command?: string];
  readonly noMatch: string;
  read(context: Context, given: ListFilter<Status>): Promise<ReadPage<Row>>;
  caption(rows: readonly Row[]): string;
  keyOf(row: Row): string;
  columns(context: Context): Column<Row>[];
  /** What can be done with all rows of a search. */
  ofAll?(searched: string, context: Context): Html;
}

export interface ListFilter<Status> {
  readonly searched: string | undefined;
  readonly status: Status | undefined;
  readonly page: { readonly limit: number; readonly cursor: string | undefined };
}

interface ReadPage<Row> {
  readonly rows: readonly Row[];
  readonly next_cursor?: string | null;
}

export function listPage<Row, Status extends string = never>({
  search: [name, label],
  statuses = [],
  usualStatus,
  adding,
  defaults = {},
  empty,
  noMatch,
  read,
  ofAll = () => NO_HTML,
  ...list
}: ListDefinition<Row, Status>): Page {
  const { path, title, actions } = list;
  const address = `.${path}`;
  return definePage({
    path,
    title,
    async show(context, query) {
      const text = (parameter: string) => textIn(query, parameter) || undefined;
      const searched = text(name);
      const isAsked = query.has('status') || searched !== undefined;
      const status = isAsked ? statuses.find((each) => each === text('status')) : usualStatus;
      const page = { limit: ROWS_OF_PAGE, cursor: text('cursor') };
      const asked = { searched, status, page };
      const { rows, next_cursor: nextCursor = null } = await read(context, asked);
      const pager = cursorPager({
        label: `Pages of ${title.toLowerCase()}`,
        path: address,
        query,
        nextCursor,
      });
      const { caption, keyOf, columns } = list;
      const id = path.slice(1);
      const none = query.size === 0 ? emptyState(...empty) : emptyState(noMatch);
      const listing =
        rows.length === 0
          ? none
          : table({ id, caption: caption(rows), keyOf, rows, columns: columns(context) });
      const statusField =
        statuses.length === 0
          ? NO_HTML
          : choiceField('status', 'Status', wordChoices(statuses), status ?? '');
      const actionsOfAll =
        searched === undefined || rows.length === 0 ? NO_HTML : ofAll(searched, context);
      return {
        body: html`${isOffered(adding, context) ? newButton(adding, defaults) : NO_HTML}<form class="ask" method="get" action="${address}" role="search">
<p class="field"><label for="q">${label}</label><input type="search" id="q" name="${name}" value="${searched ?? ''}" autocomplete="off" spellcheck="false"></p>
${statusField}<p class="field"><button type="submit">Find</button> <a href="${address}">Clear</a></p>
</form>${actionsOfAll}<div class="listing">${listing}${pager}</div>`,
      };
    },
    ...(actions !== undefined && { actions }),
  });
}

/** Links between the pages of a list that is read by cursor, which leads only forward; the browser goes back. */
interface CursorPager {
  readonly label: string;
  /** Of the page, such as `./nodes`. */
  readonly path: string;
  /** The state of the list in its URL. */
  readonly query: URLSearchParams;
  /** Null at the end of the list. */
  readonly nextCursor: string | null;
  /** More links. */
  readonly also?: Html;
}

export function cursorPager({ label, path, query, nextCursor, also = NO_HTML }: CursorPager): Html {
  const link = (cursor: string, text: string) => {
    const parameters = new URLSearchParams(query);
    parameters.delete('cursor');
    if (cursor !== '') parameters.set('cursor', cursor);
    return html`<a href="${path}?${parameters.toString()}">${text}</a>`;
  };
  const first = query.has('cursor') ? link('', 'First page') : NO_HTML;
  const next = nextCursor === null ? NO_HTML : link(nextCursor, 'Next page');
  return html`<nav class="pager" aria-label="${label}">${first}${next}${also}</nav>`;
}

/** The second line is smaller, and left out when it is empty; a cell of nothing is empty. */
export function twoLines(first: Content, second: Content): Html {
  if (first === '' && second === '') return NO_HTML;
  const below =
    second === '' || second === NO_HTML
      ? NO_HTML
      : html`<span class="small muted">${second}</span>`;
  return html`<span class="lines"><span>${first}</span>${below}</span>`;
}

/** A state, and below it when or why it was reached. */
export function stateWith(tone: string, word: string, note: Content): Html {
  return twoLines(badge({ tone, word }), note);
}
