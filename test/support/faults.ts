/** Faults of one request or record in the order they are looked for. */

/** What is answered, and what spoils a case so that it is; absent members spoil nothing. */
export type Fault<Draft extends object> = readonly [expected: string, spoil: Draft];

export interface FaultCase<Draft extends object> {
  readonly name: string;
  readonly expected: string;
  readonly draft: Draft;
}

/**
 * Every fault alone, with each that comes after it, and with all that come after it: the earliest is
 * told. Faults that spoil the same member cannot be told apart together; the earlier one is then made.
 */
export function faultsTogether<Draft extends object>(
  faults: readonly Fault<Draft>[],
): FaultCase<Draft>[] {
  return faults.flatMap(([expected, spoil], index) => {
    const later = faults.slice(index + 1);
    const all = Object.assign({}, ...later.map(([, other]) => other).toReversed(), spoil);
    return [
      { name: `${expected}, alone`, expected, draft: spoil },
      ...later.map(([other, also]) => ({
        name: `${expected}, before ${other}`,
        expected,
        draft: { ...also, ...spoil },
      })),
      { name: `${expected}, before all others`, expected, draft: all },
    ];
  });
}
