/** The treaties of an authority, page by page. */

import { pagesOf } from '../../client/list-pages.ts';
import type { Sent } from '../../client/operations.ts';
import type { PublicClient } from '../../client/public-client.ts';
import { eachOf } from '../kernel/list.ts';
import { wholeId } from '../kernel/short-id.ts';

export function treatyPages(client: PublicClient, filters: Sent<'listTreaties'>) {
  return pagesOf(
    (page) => client.listTreaties({ ...filters, ...page }),
    ({ recognition_treaties }) => recognition_treaties,
  );
}

/** Returns the full treaty id for an id or unique prefix. */
export function wholeTreatyId(client: PublicClient, given: string): Promise<string> {
  const ids = eachOf('Treaties', treatyPages(client, {}), ({ treaty }) => treaty.treaty_id);
  return wholeId(given, 'treaty', ids);
}
