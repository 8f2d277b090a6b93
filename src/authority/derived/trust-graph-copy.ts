/** A copy of the treaties for long searches, made when one is needed and cached until a treaty changes. */

import { withoutPause } from '../../base/slices.ts';
import type { RecognitionIndex } from '../views/recognition-index.ts';
import { copyGraph, type TrustGraph } from '../views/trust-graph.ts';

export interface TrustGraphCopy {
  /** Ends with a copy of the treaties as they are then. */
  current(): Generator<void, TrustGraph>;
}

/** If treaties change faster than they can be copied in slices, copy them without a pause. */
const LAST_ATTEMPT = 4;

export function createTrustGraphCopy(index: RecognitionIndex): TrustGraphCopy {
  let newest: TrustGraph | null = null;
  return {
    *current() {
      for (let attempt = 1; newest?.version !== index.version(); attempt += 1) {
        const copying = copyGraph(index);
        newest = attempt < LAST_ATTEMPT ? yield* copying : withoutPause(copying);
      }
      return newest;
    },
  };
}
