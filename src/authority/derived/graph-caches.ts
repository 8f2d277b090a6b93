/** Results computed from the recognition graph, cached until a treaty change or the passage of time invalidates them. */
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
  /** Builds of the public documents, shared by concurrent readers. */
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

/** A period in which the graph does not change: one version of the index, from `from` until just before `until`. */
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

/** A digest, and the period in which it describes the graph. */
export interface DigestedGraph extends GraphSpan {
  readonly digest: string;
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

/** Finds trust paths, and caches the results for clients that ask the same question. */
export type TrustPaths = (from: string, to: string, at: number) => TrustPath;

/** The limit for all cached paths, counting one row per path and one per hop; a row takes a few hundred bytes. */
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
    // A search with an unknown end is cheap, and caching it would let made-up names fill the cache.
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
