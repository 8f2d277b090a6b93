/** The operations of live updates. The server creates them, and the page's script applies them. */

/** Keys from the outermost keyed element inward. */
export type KeyPath = readonly string[];

export type Operation =
  /** Gives the element this form. */
  | readonly [kind: 'set', element: KeyPath, markup: string]
  | readonly [kind: 'remove', element: KeyPath]
  /** Adds an element before the one with that key, or at the end. */
  | readonly [kind: 'add', container: KeyPath, before: string | null, markup: string]
  | readonly [kind: 'move', element: KeyPath, before: string | null];

/** A message about a new version; without a patch, viewers fetch the page again. */
export interface LiveMessage {
  readonly topic?: string;
  readonly version?: string;
  readonly from?: string;
  readonly patch?: readonly Operation[];
}
