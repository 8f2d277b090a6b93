/** Results computed from the recognition graph, cached until a treaty change or the passage of time invalidates them. */
import { sha256Hex } from '../../base/crypto/digest.ts';
import { withoutPause } from '../../base/slices.ts';
import { createSharedWork } from '../../base/work.ts';
import { nextGraphChange, recognitionGraph } from './recognition-graph.ts';
import type { RecognitionIndex } from './recognition-index.ts';
import { copyGraph, type TrustGraph } from './trust-graph.ts';

export type GraphCaches = ReturnType<typeof createGraphCaches>;

export function createGraphCaches(index: RecognitionIndex) {
  return {
    digest: createGraphDigest(index),
    copy: createTrustGraphCopy(index),
    /** Builds of the public documents, shared by concurrent readers. */
    builds: createSharedWork(),
  };
}

/** A digest, and the period in which it describes the graph: one version of the index, from `from` until just before `until`. */
export interface DigestedGraph {
  readonly digest: string;
  readonly version: number;
  readonly from: number;
  readonly until: number;
}

/** Digest of the graph as served at a given time; evidence and offers use it to identify their graph. */
export function createGraphDigest(index: RecognitionIndex) {
  let newest: DigestedGraph = { digest: '', version: -1, from: 0, until: 0 };

  function isKnown(now: number): boolean {
    const { version, from, until } = newest;
    return version === index.version() && from <= now && now < until;
  }

  return {
    /** Whether `at` can return a cached digest. */
    isKnown,
    /** Computes a missing digest without yielding: call `refreshGraph` first, which works in slices. */
    at(now: number): string {
      if (!isKnown(now)) {
        const digest = sha256Hex(recognitionGraph(index, now));
        newest = {
          digest,
          version: index.version(),
          from: now,
          until: nextGraphChange(index, now),
        };
      }
      return newest.digest;
    },
    /** Caches the digest of a graph that was just built. */
    note(graph: DigestedGraph) {
      newest = graph;
    },
  };
}

/** If treaties change faster than they can be copied in slices, copy them without a pause. */
const LAST_ATTEMPT = 4;

/** A copy of the treaties for long searches, created on demand. */
function createTrustGraphCopy(index: RecognitionIndex) {
  let newest: TrustGraph | null = null;
  return {
    /** Returns a copy that matches the treaties at the moment it returns. */
    *current(): Generator<void, TrustGraph> {
      for (let attempt = 1; newest?.version !== index.version(); attempt += 1) {
        const copying = copyGraph(index);
        newest = attempt < LAST_ATTEMPT ? yield* copying : withoutPause(copying);
      }
      return newest;
    },
  };
}
