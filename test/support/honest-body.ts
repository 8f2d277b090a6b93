/** An honest body, the records in it that are signed, and the places in which it can grow. */
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject } from '../../src/base/json/value.ts';

/** What a place allows: any JSON, a list of texts, a list of more items like the first, or a text. */
export type SlotKind = 'free' | 'texts' | 'items' | 'text';

export interface SignedPlace {
  /** The path of members to the record; `*` means each item of a list. */
  readonly at: readonly string[];
  /** The text that its signatures cover; null if it is no longer a valid record. */
  text(record: JsonObject): string | null;
  readonly form: 'list' | 'single';
  readonly signer: (record: JsonObject) => Signer;
}

export interface HonestBody {
  readonly path: string;
  readonly body: JsonObject;
  /** Names of the members that are lists of keys. */
  readonly keyLists: readonly string[];
  /** Inner records first, because outer signatures cover them. */
  readonly signed: readonly SignedPlace[];
  readonly slots: readonly (readonly [path: string, kind: SlotKind])[];
}

type TextOf = SignedPlace['text'];

export function listed(at: string, key: Signer, text: TextOf): SignedPlace {
  return { at: [at], form: 'list', signer: () => key, text };
}

export function single(at: readonly string[], key: Signer, text: TextOf): SignedPlace {
  return { at, form: 'single', signer: () => key, text };
}
