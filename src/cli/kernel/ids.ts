/** Short ids and keys: unique prefixes, which commands expand to the full value. */
import { Argument } from 'commander';
import { isPublicKey } from '../../base/crypto/public-key.ts';
import { saysPrivate } from '../../base/keys/read-key.ts';
import { isNodeName } from '../../protocol/rows/node-description.ts';
import { EXIT, failure, usageFailure } from './errors.ts';
import { publicKey } from './options.ts';

const SHORTEST = 8;
const MOST_CANDIDATES = 10;

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const isUuid = (text: string) => UUID.test(text);
const BEGINNING_OF_ID = /^[0-9a-f][0-9a-f-]*$/;

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

const CHARACTERS_OF_KEY = /^[A-Za-z0-9+/]*$/;

const OR_BEGINNING = 'or at least its first 8 characters';

/** What commands expand: how help names it, which text is whole, and which one may be its beginning. */
const KINDS = {
  certificate: {
    name: 'cert-id',
    about: `certificate id, ${OR_BEGINNING}, or the name of a node`,
    isWhole: isUuid,
    beginning: BEGINNING_OF_ID,
  },
  'node key': {
    name: 'node',
    about: 'name or key of the node, or at least the first 8 characters of the key',
    isWhole: isPublicKey,
    beginning: CHARACTERS_OF_KEY,
  },
  treaty: {
    name: 'treaty-id',
    about: `treaty id, ${OR_BEGINNING}`,
    isWhole: isUuid,
    beginning: BEGINNING_OF_ID,
  },
  attestation: {
    name: 'attestation-id',
    about: `attestation id, ${OR_BEGINNING}`,
    isWhole: isUuid,
    beginning: BEGINNING_OF_ID,
  },
  invite: {
    name: 'fingerprint',
    about: `fingerprint from invite list, ${OR_BEGINNING}`,
    isWhole: ({ length }: string) => length === 16,
    beginning: BEGINNING_OF_ID,
  },
} as const;

export type Kind = keyof typeof KINDS;

/** The argument for an id that the command expands. */
export function idArgument(kind: Kind, { isOptional = false } = {}): Argument {
  const { name, about } = KINDS[kind];
  const argument = new Argument(isOptional ? `[${name}]` : `<${name}>`, about);
  return kind === 'node key' ? argument.argParser(nodeOrKey) : argument;
}

/** Parses what names a node; a private key must not be sent. */
export function nodeOrKey(text: string): string {
  return isNodeName(text) && !saysPrivate(text) ? text : publicKey(text);
}

/**
 * Expands `given` to the only id that begins with it, or that is among those of the nodes with this name. All ids are
 * checked, so that a command never acts on the wrong one. A full id is returned unchanged, and so is text that is
 * neither the beginning of an id nor a name.
 */
export async function onlyId(
  given: string,
  what: Kind,
  ids: AsyncIterable<string>,
  named: AsyncIterable<string> | null = null,
): Promise<string> {
  const { isWhole, beginning } = KINDS[what];
  const mayBegin = beginning.test(given);
  if (isWhole(given) || (!mayBegin && named === null)) return given;
  const found = new Set<string>();
  for await (const id of named ?? []) found.add(id);
  const isUnnamed = named === null ? '' : ', and no node has this name';
  if (mayBegin && given.length >= SHORTEST) {
    for await (const id of ids) if (id.startsWith(given)) found.add(id);
  } else if (mayBegin && found.size === 0) {
    const message = `${given} is too short: give at least the first ${SHORTEST} characters of the ${what}${isUnnamed}`;
    throw usageFailure(message);
  }
  const [only] = found;
  if (only === undefined) {
    throw failure(EXIT.refused, 'not_found', `No ${what} begins with ${given}${isUnnamed}`);
  }
  if (found.size === 1) return only;
  const shown = [...found].slice(0, MOST_CANDIDATES).join(', ');
  const more = found.size > MOST_CANDIDATES ? ` and ${found.size - MOST_CANDIDATES} more` : '';
  const message = `${given} is ambiguous, so nothing was done: it matches ${shown}${more}; give more characters of the ${what}`;
  throw failure(EXIT.refused, 'ambiguous_id', message);
}
