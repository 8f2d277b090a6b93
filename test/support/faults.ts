/** Faults of one request or record, in the order of their checks. */

/** An expected answer, and the change of a case that causes it; absent members change nothing. */
export type Fault<Draft extends object> = readonly [expected: string, spoil: Draft];

export interface FaultCase<Draft extends object> {
  readonly name: string;
  readonly expected: string;
  readonly draft: Draft;
}

/**
 * Every fault alone, with each later one, and with all later ones: the earliest is reported. Faults of the
 * same member cannot be combined; the earlier one is then applied.
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
