/** Results computed from the recognition graph, cached until a treaty change or the passage of time invalidates them. */
import { sha256Hex } from '../../base/crypto/digest.ts';
import { withoutPause } from '../../base/slices.ts';
import { createSharedWork, type SharedWork } from '../../base/work.ts';
import { nextGraphChange, recognitionGraph } from '../views/recognition-graph.ts';
import type { RecognitionIndex } from '../views/recognition-index.ts';
import { copyGraph, type TrustGraph } from '../views/trust-graph.ts';

export interface GraphCaches {
  readonly digest: GraphDigest;
  readonly copy: TrustGraphCopy;
  /** Builds of the public documents, shared by concurrent readers. */
  readonly builds: SharedWork;
}

export function createGraphCaches(index: RecognitionIndex): GraphCaches {
  return {
    digest: createGraphDigest(index),
    copy: createTrustGraphCopy(index),
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
export interface GraphDigest {
  /** Whether `at` can return a cached digest. */
  isKnown(now: number): boolean;
  /** Computes a missing digest without yielding: call `refreshGraph` first, which works in slices. */
  at(now: number): string;
  /** Caches the digest of a graph that was just built. */
  note(graph: DigestedGraph): void;
}

export function createGraphDigest(index: RecognitionIndex): GraphDigest {
  let newest: DigestedGraph = { digest: '', version: -1, from: 0, until: 0 };

  function isKnown(now: number): boolean {
    const { version, from, until } = newest;
    return version === index.version() && from <= now && now < until;
  }

  return {
    isKnown,
    at(now) {
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
    note(graph) {
      newest = graph;
    },
  };
}

/** A copy of the treaties for long searches, created on demand. */
export interface TrustGraphCopy {
  /** Returns a copy that matches the treaties at the moment it returns. */
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
