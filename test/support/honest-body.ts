/** An honest body, the records in it that are signed, and the places in which it can grow. */
import type { Signer } from '../../src/crypto/primitives.ts';
import type { JsonObject } from '../../src/json/value.ts';

/** What may stand in a place: any JSON, a list of texts, a list of more items like the first, or a text. */
export type SlotKind = 'free' | 'texts' | 'items' | 'text';

export interface SignedPlace {
  /** Members on the way to the record; `*` is each item of a list. */
  readonly at: readonly string[];
  /** The text its signatures cover; null when it is no such record any more. */
  text(record: JsonObject): string | null;
  readonly form: 'list' | 'single';
  readonly signer: (record: JsonObject) => Signer;
}

export interface HonestBody {
  readonly path: string;
  readonly body: JsonObject;
  /** Names of the members that are lists of keys. */
  readonly keyLists: readonly string[];
  /** Inner records first, for what signs over them. */
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
