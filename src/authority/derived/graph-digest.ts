/** Digest of the graph as served at a given time; evidence and offers refer to their graph by it. */
import { sha256Hex } from '../../base/crypto/digest.ts';
import { nextGraphChange, recognitionGraph } from '../views/recognition-graph.ts';
import type { RecognitionIndex } from '../views/recognition-index.ts';

/** The graph that a digest was made of: one version of the index, from one instant until before another. */
export interface DigestedGraph {
  readonly version: number;
  readonly from: number;
  readonly until: number;
  readonly digest: string;
}

export interface GraphDigest {
  /** Whether `at` costs nothing now. */
  isKnown(now: number): boolean;
  /** Makes the digest in one go where it is not known: call `refreshGraph` before, which works in slices. */
  at(now: number): string;
  /** Takes the digest of a graph that was built. */
  note(graph: DigestedGraph): void;
}

export function createGraphDigest(recognition: RecognitionIndex): GraphDigest {
  let newest: DigestedGraph = { version: -1, from: 0, until: 0, digest: '' };

  function isKnown(now: number): boolean {
    return newest.version === recognition.version() && newest.from <= now && now < newest.until;
  }

  return {
    isKnown,
    at(now) {
      if (!isKnown(now)) {
        newest = {
          version: recognition.version(),
          from: now,
          until: nextGraphChange(recognition, now),
          digest: sha256Hex(recognitionGraph(recognition, now)),
        };
      }
      return newest.digest;
    },
    note(graph) {
      newest = graph;
    },
  };
}
