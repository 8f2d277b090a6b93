/** Reads long lists from the authority. */

const ROWS_OF_A_PAGE = 1000;

interface PageQuery {
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** Yields the rows of a list page by page; `read` requests one page. */
export async function* pagesOf<Page extends { readonly next_cursor?: string }, Row>(
  read: (query: PageQuery) => Promise<Page>,
  rowsIn: (page: Page) => readonly Row[],
): AsyncGenerator<readonly Row[], void> {
  let cursor: string | undefined;
  do {
    const page = await read({ limit: ROWS_OF_A_PAGE, cursor });
    yield rowsIn(page);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}
