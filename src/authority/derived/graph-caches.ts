/** What is computed of the recognition graph, and kept until treaties or the time change it. */
import { sha256Hex } from '../../base/crypto/digest.ts';
import { withoutPause } from '../../base/slices.ts';
import { createSharedWork, type SharedWork } from '../../base/work.ts';
import type { TrustPath } from '../../protocol/rows/graph.ts';
import { nextGraphChange, recognitionGraph } from '../views/recognition-graph.ts';
import type { RecognitionIndex } from '../views/recognition-index.ts';
import { copyGraph, type TrustGraph } from '../views/trust-graph.ts';
import { findTrustPath } from '../views/trust-path.ts';

export interface GraphCaches {
  readonly digest: GraphDigest;
  readonly paths: TrustPaths;
  readonly copy: TrustGraphCopy;
  /** Builds of the public documents, which concurrent readers share. */
  readonly builds: SharedWork;
}

export function createGraphCaches(index: RecognitionIndex): GraphCaches {
  return {
    digest: createGraphDigest(index),
    paths: createTrustPaths(index),
    copy: createTrustGraphCopy(index),
    builds: createSharedWork(),
  };
}

/** The graph while it is the same: one version of the index, from one instant until before another. */
interface GraphSpan {
  readonly version: number;
  readonly from: number;
  readonly until: number;
}

const NEVER: GraphSpan = { version: -1, from: 0, until: 0 };

function spanAt(index: RecognitionIndex, now: number): GraphSpan {
  return { version: index.version(), from: now, until: nextGraphChange(index, now) };
}

function isIn({ version, from, until }: GraphSpan, index: RecognitionIndex, now: number): boolean {
  return version === index.version() && from <= now && now < until;
}

/** The graph that a digest was made of. */
export interface DigestedGraph extends GraphSpan {
  readonly digest: string;
}

/** Digest of the graph as served at a given time; evidence and offers refer to their graph by it. */
export interface GraphDigest {
  /** Whether `at` costs nothing now. */
  isKnown(now: number): boolean;
  /** Makes the digest in one go where it is not known: call `refreshGraph` before, which works in slices. */
  at(now: number): string;
  /** Takes the digest of a graph that was built. */
  note(graph: DigestedGraph): void;
}

export function createGraphDigest(index: RecognitionIndex): GraphDigest {
  let newest: DigestedGraph = { ...NEVER, digest: '' };

  function isKnown(now: number): boolean {
    return isIn(newest, index, now);
  }

  return {
    isKnown,
    at(now) {
      if (!isKnown(now)) {
        newest = { ...spanAt(index, now), digest: sha256Hex(recognitionGraph(index, now)) };
      }
      return newest.digest;
    },
    note(graph) {
      newest = graph;
    },
  };
}

/** Trust paths that were searched for, kept for the next client that asks the same. */
export type TrustPaths = (from: string, to: string, at: number) => TrustPath;

/** Of all paths together, with one for each path itself; some hundred bytes each. */
const MOST_ROWS = 20_000;

export function createTrustPaths(index: RecognitionIndex, mostRows = MOST_ROWS): TrustPaths {
  const kept = new Map<string, TrustPath>();
  let rows = 0;
  let span = NEVER;

  function forget(): void {
    kept.clear();
    rows = 0;
  }

  return (source, target, at) => {
    const ends = [index.sovereign(source)?.number, index.sovereign(target)?.number];
    // Nothing is searched where nobody is known; names that are made up are not kept.
    if (ends.includes(undefined)) return findTrustPath(index, source, target, at);
    if (!isIn(span, index, at)) {
      forget();
      span = spanAt(index, at);
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

/** A copy of the treaties for long searches, made when one is needed. */
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
