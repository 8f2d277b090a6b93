/**
 * Names of sovereigns are any text that somebody signed. In a page they must not run away with it: what
 * draws nothing or turns the direction of writing is shown by its number, and long names are cut.
 */
import { sha256Hex } from '../crypto/digest.ts';

/** Controls, formats (direction overrides, joiners), line ends, lone surrogates and private characters. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}]/gu;

/** Room in a table, and where one sovereign is told of alone. */
const CELL = 96;
const FULL = 600;

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
  // No reader sees more, so no more is worked on.
  return name.slice(0, 4 * FULL).replace(UNSEEN, numbered);
}

function numbered(character: string): string {
  return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

function shortened(text: string, room: number): string {
  const characters = [...text.slice(0, 2 * room + 2)];
  return characters.length <= room ? text : `${characters.slice(0, room - 1).join('')}…`;
}

/** Longer names do not fit into an address: there a digest stands for them. */
const LONGEST_IN_ADDRESS = 512;

/** What names the sovereign in a query: its name, or the digest of a name that is too long for one. */
export function reference(name: string): string {
  const isShort =
    name.length <= LONGEST_IN_ADDRESS && encodeURIComponent(name).length <= LONGEST_IN_ADDRESS;
  return isShort ? name : `sha256:${sha256Hex(name)}`;
}

/** Relative, so that pages work below a path of a proxy. */
export function atlasLink(name: string): string {
  return `./atlas?sovereign=${encodeURIComponent(reference(name))}`;
}
