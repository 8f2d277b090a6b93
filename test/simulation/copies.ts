/** A copy with its own maps and sets, whose values are never mutated. */
export function copyOf<State extends object>(state: State): State {
  const members = Object.entries(state).map(([name, held]) => {
    if (held instanceof Map) return [name, new Map(held)];
    return [name, held instanceof Set ? new Set(held) : held];
  });
  return Object.fromEntries(members) as State;
}
