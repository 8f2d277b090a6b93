/** Trust paths that were searched for, kept for the next client that asks the same, until treaties or the time change the graph. */

import type { TrustPath } from '../../protocol/rows/graph.ts';
import { nextGraphChange } from '../views/recognition-graph.ts';
import type { RecognitionIndex } from '../views/recognition-index.ts';
import { findTrustPath } from '../views/trust-path.ts';

export type TrustPaths = (from: string, to: string, at: number) => TrustPath;

/** Of all paths together, with one for each path itself; some hundred bytes each. */
const MOST_ROWS = 20_000;

export function createTrustPaths(index: RecognitionIndex, mostRows = MOST_ROWS): TrustPaths {
  const kept = new Map<string, TrustPath>();
  let rows = 0;
  let version = -1;
  let from = 0;
  let until = 0;

  function forget(): void {
    kept.clear();
    rows = 0;
  }

  return (source, target, at) => {
    const ends = [index.sovereign(source)?.number, index.sovereign(target)?.number];
    // Nothing is searched where nobody is known; names that are made up are not kept.
    if (ends.includes(undefined)) return findTrustPath(index, source, target, at);
    if (index.version() !== version || at < from || at >= until) {
      forget();
      version = index.version();
      from = at;
      until = nextGraphChange(index, at);
    }
    const key = ends.join(' ');
    const known = kept.get(key);
    if (known !== undefined) return known;
    const found = findTrustPath(index, source, target, at);
    rows += 1 + found.path.length;
    if (rows > mostRows) {
      forget();
      rows = 1 + found.path.length;
    }
    kept.set(key, found);
    return found;
  };
}
