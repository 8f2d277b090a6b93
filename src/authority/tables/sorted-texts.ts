/**
 * Stores millions of texts in order. They are kept in blocks, so that adding or removing one moves at most one block of
 * others; positions are found by binary search. The first characters of each text are also stored as a number, because
 * numbers are compared in place, while texts are scattered across memory.
 */

export type SortedTexts = ReturnType<typeof createSortedTexts>;

/** Both lists are sorted and have the same length. */
interface Block {
  readonly beginnings: number[];
  readonly texts: string[];
}

const MOST_IN_BLOCK = 512;
/** The most characters that fit exactly into a number, at one byte each. */
const CHARACTERS_IN_BEGINNING = 6;
const LARGEST_BYTE = 0xff;

export function createSortedTexts(mostInBlock = MOST_IN_BLOCK) {
  /** The blocks in order; none is empty. */
  const blocks: Block[] = [];
  /** The first beginning and the first text of each block. */
  const firsts: Block = { beginnings: [], texts: [] };
  let size = 0;

  /** The index of the only block that may contain the text. */
  function blockFor(beginning: number, text: string): number {
    const place = placeIn(firsts, beginning, text);
    return firsts.texts[place] === text ? place : Math.max(place - 1, 0);
  }

  /** Splits a full block. At startup, all texts are added in order, so an append keeps the full block intact. */
  function split(index: number, block: Block, added: number): void {
    const { beginnings, texts } = block;
    const isAppended = index === blocks.length - 1 && added === texts.length - 1;
    const from = isAppended ? added : texts.length >>> 1;
    insert(index + 1, { beginnings: beginnings.splice(from), texts: texts.splice(from) });
  }

  function insert(index: number, block: Block): void {
    blocks.splice(index, 0, block);
    firsts.beginnings.splice(index, 0, block.beginnings[0] as number);
    firsts.texts.splice(index, 0, block.texts[0] as string);
  }

  function noteFirst(index: number, { beginnings, texts }: Block): void {
    firsts.beginnings[index] = beginnings[0] as number;
    firsts.texts[index] = texts[0] as string;
  }

  return {
    /** Does nothing if the text is already present. */
    add(text: string) {
      const beginning = beginningOf(text);
      const index = blockFor(beginning, text);
      const block = blocks[index];
      if (block === undefined) {
        insert(0, { beginnings: [beginning], texts: [text] });
        size += 1;
        return;
      }
      const place = placeIn(block, beginning, text);
      if (block.texts[place] === text) return;
      size += 1;
      block.beginnings.splice(place, 0, beginning);
      block.texts.splice(place, 0, text);
      if (place === 0) noteFirst(index, block);
      if (block.texts.length > mostInBlock) split(index, block, place);
    },
    remove(text: string) {
      const beginning = beginningOf(text);
      const index = blockFor(beginning, text);
      const block = blocks[index];
      if (block === undefined) return;
      const place = placeIn(block, beginning, text);
      if (block.texts[place] !== text) return;
      size -= 1;
      block.beginnings.splice(place, 1);
      block.texts.splice(place, 1);
      if (block.texts.length > 0) {
        if (place === 0) noteFirst(index, block);
        return;
      }
      for (const list of [blocks, firsts.beginnings, firsts.texts]) list.splice(index, 1);
    },
    size: () => size,
    /** The texts after this one, which need not be present. Read them before any text is added or removed. */
    *after(text: string): Iterable<string> {
      const beginning = beginningOf(text);
      const first = blockFor(beginning, text);
      for (let index = first; index < blocks.length; index += 1) {
        const block = blocks[index] as Block;
        let place = index === first ? placeIn(block, beginning, text) : 0;
        if (block.texts[place] === text) place += 1;
        for (; place < block.texts.length; place += 1) yield block.texts[place] as string;
      }
    },
  };
}

/** The index of the first text that is not before this one, or the number of texts if there is none. */
function placeIn({ beginnings, texts }: Block, beginning: number, text: string): number {
  let low = 0;
  let high = texts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = beginnings[middle] as number;
    if (other < beginning || (other === beginning && (texts[middle] as string) < text)) {
      low = middle + 1;
    } else high = middle;
  }
  return low;
}

/** The first characters as a number, which is never larger than the number of a later text. */
function beginningOf(text: string): number {
  let beginning = 0;
  for (let index = 0; index < CHARACTERS_IN_BEGINNING; index += 1) {
    const unit = index < text.length ? text.charCodeAt(index) : 0;
    beginning = beginning * (LARGEST_BYTE + 1) + Math.min(unit, LARGEST_BYTE);
  }
  return beginning;
}

/** Of ASCII texts, those that begin with `beginning` and come after `after`, in order. */
export function* beginningWith(
  beginning: string,
  texts: Pick<SortedTexts, 'after'>,
  after: string,
): Generator<string> {
  const before = textBefore(beginning);
  for (const text of texts.after(after > before ? after : before)) {
    if (!text.startsWith(beginning)) return;
    yield text;
  }
}

/** A text before all those that begin with this one, with no text that begins otherwise in between. */
function textBefore(beginning: string): string {
  const last = beginning.length - 1;
  if (last < 0) return '';
  return `${beginning.slice(0, last)}${String.fromCharCode(beginning.charCodeAt(last) - 1)}\uffff`;
}
