/** What a state says of itself, as a reading of it has that. */
import { TRAIL_META, type TrailMeta, type TrailMetaKey } from './ports.ts';

/** The rows that are there. */
export function trailMeta(rowOf: (key: TrailMetaKey) => Buffer | undefined): TrailMeta {
  const meta = new Map<TrailMetaKey, Buffer>();
  for (const key of TRAIL_META) {
    const row = rowOf(key);
    if (row !== undefined) meta.set(key, row);
  }
  return meta;
}
