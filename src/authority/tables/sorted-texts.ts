/**
 * Texts in order, by the million. They are held in blocks, so that adding or removing one moves at most a
 * block of others; a place in the order is found by halving.
 */
import { firstIndex } from '../../ordered-list.ts';

export interface SortedTexts {
  /** Does nothing when the text is there already. */
  add(text: string): void;
  remove(text: string): void;
  /** The texts after this one, which need not be there. Read them before any is added or removed. */
  after(text: string): Iterable<string>;
}

const MOST_IN_BLOCK = 1024;

export function createSortedTexts(mostInBlock = MOST_IN_BLOCK): SortedTexts {
  /** In order; none is empty. */
  const blocks: string[][] = [];

  /** The index of the only block that may hold the text. */
  function blockFor(text: string): number {
    return Math.max(firstIndex(blocks, ([first = '']) => first > text) - 1, 0);
  }

  /** A start adds all texts in their order, and must leave full blocks behind. */
  function split(index: number, block: string[], added: number): void {
    const isAppended = index === blocks.length - 1 && added === block.length - 1;
    blocks.splice(index + 1, 0, block.splice(isAppended ? added : block.length >>> 1));
  }

  return {
    add(text) {
      const index = blockFor(text);
      const block = blocks[index];
      if (block === undefined) {
        blocks.push([text]);
        return;
      }
      const place = firstIndex(block, (other) => other >= text);
      if (block[place] === text) return;
      block.splice(place, 0, text);
      if (block.length > mostInBlock) split(index, block, place);
    },
    remove(text) {
      const index = blockFor(text);
      const block = blocks[index] ?? [];
      const place = firstIndex(block, (other) => other >= text);
      if (block[place] !== text) return;
      block.splice(place, 1);
      if (block.length === 0) blocks.splice(index, 1);
    },
    *after(text) {
      const first = blockFor(text);
      for (let index = first; index < blocks.length; index += 1) {
        const block = blocks[index] as string[];
        const start = index === first ? firstIndex(block, (other) => other > text) : 0;
        for (let place = start; place < block.length; place += 1) yield block[place] as string;
      }
    },
  };
}
