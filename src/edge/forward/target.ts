/** Where an instance forwards requests to, as plain values for every thread. */

/** A secret that two instances share, and the authority key that it is derived from, which names it. */
export interface SharedKey {
  readonly publicKey: string;
  readonly secret: Uint8Array;
}

/** The active instance. */
export interface ForwardTarget {
  /** The number of its term. */
  readonly term: number;
  /** As `host:port`. */
  readonly address: string;
  /** The keys that it may accept, at least one. */
  readonly keys: readonly SharedKey[];
}

/** Which instance is active, as far as this one knows. */
export type Active = 'this instance' | ForwardTarget | null;

/** The instance to which a forwarded request belongs, in the headers between instances [link-3]. */
export const FORWARDED_FOR = 'x-mesh-forwarded-for';
export const BASE_URL = 'x-mesh-base-url';
export const RETRY = 'x-mesh-retry';
export const NOT_BEGUN = 'x-mesh-not-begun';
