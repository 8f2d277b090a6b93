/** Reads long lists from the authority. */
import { AuthorityError } from './authority-error.ts';

const ROWS_OF_A_PAGE = 1000;

interface PageQuery {
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** Yields the rows of a list page by page; `read` requests one page. Throws when a cursor comes again. */
export async function* pagesOf<Page extends { readonly next_cursor?: string }, Row>(
  read: (query: PageQuery) => Promise<Page>,
  rowsIn: (page: Page) => readonly Row[],
): AsyncGenerator<readonly Row[], void> {
  const followed = new Set<string>();
  let cursor: string | undefined;
  for (;;) {
    const page = await read({ limit: ROWS_OF_A_PAGE, cursor });
    yield rowsIn(page);
    cursor = page.next_cursor;
    if (cursor === undefined) return;
    if (followed.has(cursor)) throw endless(cursor);
    followed.add(cursor);
  }
}

const LONGEST_SHOWN = 100;

function endless(cursor: string): AuthorityError {
  const message = `The list has no end: its next_cursor ${cursor.slice(0, LONGEST_SHOWN)} came before`;
  return new AuthorityError(message, { status: 200, code: 'unreadable_answer' });
}
