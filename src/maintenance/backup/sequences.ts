/** The numbers of the published lists. */
import type { StoredLists } from '../../authority/lists/stored-lists.ts';

/** Before the first version. */
export const UNPUBLISHED = -1;

/** The certificate revocation list, and the network's own feed. */
export function sequencesOf(lists: StoredLists, networkName: string) {
  return {
    crlSequence: lists.crl()?.sequence ?? UNPUBLISHED,
    feedSequence: lists.feeds().get(networkName)?.version?.sequence ?? UNPUBLISHED,
  };
}
