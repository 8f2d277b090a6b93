/** The authority did what it must not do. */
export class Violation extends Error {}

export function insist(holds: boolean, problem: () => string): asserts holds {
  if (!holds) throw new Violation(problem());
}
