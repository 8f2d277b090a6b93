/** Thrown when the authority does something that it must not. */
export class Violation extends Error {}

export function insist(holds: boolean, problem: () => string): asserts holds {
  if (!holds) throw new Violation(problem());
}
