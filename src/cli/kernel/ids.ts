/** Short ids and keys: unique prefixes, which commands expand to the full value. */
import { isPublicKey } from '../../base/crypto/public-key.ts';
import { EXIT, failure } from './errors.ts';
import { publicKey } from './options.ts';

const SHORTEST = 8;
const MOST_CANDIDATES = 10;

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const BEGINNING_OF_ID = /^[0-9a-f][0-9a-f-]*$/;
const BEGINNING_OF_KEY = /^[A-Za-z0-9+/]{8,43}$/;

/** The short form of each id or key; other text is unchanged. */
export function shortForms(ids: readonly string[]): ReadonlyMap<string, string> {
  const sorted = [...new Set(ids)].filter((id) => UUID.test(id) || isPublicKey(id)).sort();
  return new Map(
    sorted.map((id, index) => {
      const shared = Math.max(
        commonLength(id, sorted[index - 1] ?? ''),
        commonLength(id, sorted[index + 1] ?? ''),
      );
      return [id, id.slice(0, Math.max(SHORTEST, shared + 1))];
    }),
  );
}

/** Whether the text is an id or key that equals or begins with `given`. */
export function isNamedBy(text: string, given: string): boolean {
  if (text === given) return true;
  return (
    given.length >= SHORTEST && text.startsWith(given) && (UUID.test(text) || isPublicKey(text))
  );
}

function commonLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length += 1;
  return length;
}

/** Parses a public key, or a prefix as shown in lists. */
export function keyOrBeginning(text: string): string {
  return BEGINNING_OF_KEY.test(text) ? text : publicKey(text);
}

/** What commands expand, and whether a text is whole, or not the beginning of one. */
const KINDS = {
  certificate: isWholeId,
  treaty: isWholeId,
  attestation: isWholeId,
  invite: (text: string) => text.length === FINGERPRINT_LENGTH || !BEGINNING_OF_ID.test(text),
  'node key': isPublicKey,
} as const;

export type Kind = keyof typeof KINDS;

const FINGERPRINT_LENGTH = 16;

function isWholeId(text: string): boolean {
  return UUID.test(text) || !BEGINNING_OF_ID.test(text);
}

/**
 * Expands the prefix `given` to the only id that begins with it. All ids are checked, so that a command never acts on
 * the wrong one. A full id, or text that is not a prefix of an id, is returned unchanged.
 */
export async function onlyId(given: string, what: Kind, ids: AsyncIterable<string>) {
  if (KINDS[what](given)) return given;
  if (given.length < SHORTEST) {
    const message = `${given} is too short: give at least the first ${SHORTEST} characters of the ${what}`;
    throw failure(EXIT.usage, 'usage', message);
  }
  const found = new Set<string>();
  for await (const id of ids) if (id.startsWith(given)) found.add(id);
  const [only] = found;
  if (only === undefined) {
    throw failure(EXIT.refused, 'not_found', `No ${what} begins with ${given}`);
  }
  if (found.size === 1) return only;
  const shown = [...found].slice(0, MOST_CANDIDATES).join(', ');
  const more = found.size > MOST_CANDIDATES ? ` and ${found.size - MOST_CANDIDATES} more` : '';
  const message = `${given} is ambiguous, so nothing was done: it matches ${shown}${more}; give more characters of the ${what}`;
  throw failure(EXIT.refused, 'ambiguous_id', message);
}
