/** How long lists are asked for: a page at a time. */

/** A row's place in its list. */
export interface ListPlace {
  /** Milliseconds since the epoch by which the list is sorted. */
  readonly at: number;
  /** Sorts rows of the same instant. */
  readonly id: string;
}

export interface PageRequest {
  /** The place that the page follows; null for the beginning. */
  readonly after: ListPlace | null;
  /** Rows at most; a page may have fewer, or none, and still not be the last. */
  readonly limit: number;
}

/** A request for one page of a list that is filtered. */
export interface FilteredPage<Filter> extends PageRequest {
  readonly filter: Filter;
}
