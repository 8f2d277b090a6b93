/**
 * The name of a sovereign is arbitrary signed text and must not break a page: invisible characters and direction
 * overrides are shown by their code points, and long names are truncated.
 */
import { sha256Hex } from '../../base/crypto/digest.ts';

/** Controls, formats (direction overrides, joiners), line ends, lone surrogates and private characters. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}]/gu;

/** Maximum lengths for a name in a list, for text in a table, and for the page of a single sovereign. */
const LINK = 48;
const CELL = 96;
const FULL = 600;

export function nameInLink(name: string): string {
  return shortened(visible(name), LINK);
}

export function nameInCell(name: string): string {
  return shortened(visible(name), CELL);
}

export function nameInFull(name: string): string {
  return shortened(visible(name), FULL);
}

export function nameInDrawing(name: string): string {
  return shortened(visible(name), 26);
}

function visible(name: string): string {
  if (name.trim() === '') return `“${name.slice(0, 40)}”`;
  // Longer texts are truncated before any further work.
  const bounded =
    name.length <= 4 * FULL ? name : `${name.slice(0, 2 * FULL)}${name.slice(-2 * FULL)}`;
  return bounded.replace(UNSEEN, numbered);
}

function numbered(character: string): string {
  return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

/** Truncates in the middle: long names often differ at their ends. */
function shortened(text: string, room: number): string {
  if (text.length <= room) return text;
  const characters = [...text];
  if (characters.length <= room) return text;
  const last = Math.floor(room / 3);
  const first = characters.slice(0, room - 1 - last);
  return `${first.join('')}…${characters.slice(-last).join('')}`;
}

/** In URLs, longer names are replaced by a digest. */
const LONGEST_IN_ADDRESS = 512;
/** Encoded, a character has at most nine. */
const SHORT = Math.floor(LONGEST_IN_ADDRESS / 9);

/** Names the sovereign in a query: by its name, or by the digest of a name that is too long. */
export function reference(name: string): string {
  const isShort =
    name.length <= SHORT ||
    (name.length <= LONGEST_IN_ADDRESS && encodeURIComponent(name).length <= LONGEST_IN_ADDRESS);
  return isShort ? name : `sha256:${sha256Hex(name)}`;
}

/** Relative, so that pages work behind a proxy with a path prefix. */
export function atlasLink(name: string): string {
  return `./atlas?sovereign=${encodeURIComponent(reference(name))}`;
}
