/** Thrown when the authority does something that it must not. */
export class Violation extends Error {}

export function insist(condition: boolean, problem: () => string): asserts condition {
  if (!condition) throw new Violation(problem());
}
