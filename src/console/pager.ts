/** Links between the pages of a list that is read by cursor, which leads only forward; the browser goes back. */
import { type Html, html, NO_HTML } from '../pages/ui/html.ts';

export interface CursorPager {
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
