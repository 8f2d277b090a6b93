/**
 * The value below which a part of all measurements lies, by how many fell into each bucket: interpolated within the
 * bucket, as Prometheus does. Null without measurements; the last bound if it lies beyond.
 */
export function quantile(
  counts: readonly number[],
  bounds: readonly number[],
  part: number,
): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = part * total;
  let below = 0;
  for (const [index, bound] of bounds.entries()) {
    const count = counts[index] ?? 0;
    if (count > 0 && below + count >= rank) {
      const lowest = bounds[index - 1] ?? 0;
      return lowest + ((bound - lowest) * (rank - below)) / count;
    }
    below += count;
  }
  return bounds.at(-1) ?? null;
}
