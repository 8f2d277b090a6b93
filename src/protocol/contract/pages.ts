/** Requests for one page of a long list. */

/** A row's position in its list. */
export interface ListPlace {
  /** Milliseconds since the epoch by which the list is sorted. */
  readonly at: number;
  /** Sorts rows of the same instant. */
  readonly id: string;
}

export interface PageRequest {
  /** The position after which the page begins; null for the first page. */
  readonly after: ListPlace | null;
  /** The most rows to return; a page may have fewer, or none, and still not be the last. */
  readonly limit: number;
}
