/** The changes that a live page is sent. The server makes these, and the page's script carries them out. */

/** Keys from the outermost keyed element of the page inwards. */
export type KeyPath = readonly string[];

export type Operation =
  /** Gives the element this form. */
  | readonly [kind: 'set', element: KeyPath, markup: string]
  | readonly [kind: 'remove', element: KeyPath]
  /** Adds an element before the one with that key, or at the end. */
  | readonly [kind: 'add', container: KeyPath, before: string | null, markup: string]
  | readonly [kind: 'move', element: KeyPath, before: string | null];

/** A message to viewers that hold a version; without a patch they ask for the page again. */
export interface LiveMessage {
  readonly topic?: string;
  readonly version?: string;
  readonly from?: string;
  readonly patch?: readonly Operation[];
}
