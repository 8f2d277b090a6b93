/** Stores the columns of a table in blocks, so that memory grows by one block at a time and nothing is ever copied. */
export interface Blocks<Block> {
  /** The block that contains the number, allocated on first use. */
  of(number: number): Block;
  rowOf(number: number): number;
}

export const ROWS_BITS = 12;

/** A block has 2^`rowsBits` rows. */
export function createBlocks<Block>(
  make: (rows: number) => Block,
  rowsBits = ROWS_BITS,
): Blocks<Block> {
  const blocks: Block[] = [];
  const rows = 1 << rowsBits;
  return {
    of(number) {
      while (number >>> rowsBits >= blocks.length) blocks.push(make(rows));
      return blocks[number >>> rowsBits] as Block;
    },
    rowOf: (number) => number & (rows - 1),
  };
}
