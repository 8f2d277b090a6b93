/**
 * Any Unicode text. The unit `binary` of fast-check generates the same, but first builds a map of all 1.1 million code
 * points in each process, which takes longer than most tests.
 */
import fc from 'fast-check';

const SURROGATES = { from: 0xd800, count: 0x800 };

const character = fc
  .nat({ max: 0x10ffff - SURROGATES.count })
  .map((point) => String.fromCodePoint(point < SURROGATES.from ? point : point + SURROGATES.count));

export function anyText(length: fc.StringConstraints = {}): fc.Arbitrary<string> {
  return fc.string({ ...length, unit: character });
}
