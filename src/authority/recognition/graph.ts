/** The graph documents: built on request, and cached until a treaty, a feed or the passage of time changes them. */

import { createHash } from 'node:crypto';
import { sha256Hex } from '../../base/crypto/digest.ts';
import { createSharedWork, inSlices, withoutPause } from '../../base/work.ts';
import {
  createDocumentMemory,
  type DocumentPublisher,
  GRAPH_DOCUMENTS,
  type PublishedDocument,
} from '../../protocol/contract/documents.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import type { ListThreading } from '../lists/list-rendering.ts';
import {
  atlasText,
  connectomeText,
  nextGraphChange,
  recognitionGraph,
  recognitionGraphText,
} from './recognition-graph.ts';
import type { RecognitionIndex } from './recognition-index.ts';
import { copyGraph, type TrustGraph } from './trust-graph.ts';
import { findTrustPath } from './trust-path.ts';

export const refreshGraph: Handler<'refreshGraph'> = (na, unit) => {
  const { at } = unit;
  if (areCurrent(na.publisher, at)) return null;
  unit.whenCommitted(() => na.graph.builds.share(() => inSlices(publishGraph(na))));
  return null;
};

/** Publishes all three documents together, built for the same instant, so that they are consistent. */
export function* publishGraph(na: Authority): Generator<void, undefined> {
  const { recognition: index, publisher } = na;
  const { memory } = na.graph;
  const { now } = na.runtime;
  for (let attempt = 1; !areCurrent(publisher, now()); attempt += 1) {
    const version = index.version();
    const at = now();
    // If the graph changes during the build, the build mixes two states; and once the clock is set back, its time was wrong.
    const hasChanged = () => index.version() !== version || now() < at;
    const taken: number[] = [];
    const work = buildDocuments(na, at, taken);
    const documents = yield* whole(work, attempt === LAST_ATTEMPT ? null : hasChanged);
    if (documents === null) {
      memory.release(taken);
      continue;
    }
    for (const name of GRAPH_DOCUMENTS) publisher.publish(name, documents[name]);
    memory.show(taken);
    // Time may have changed the graph meanwhile, and could do so faster than it can be built.
    return;
  }
}

/** If the graph changes faster than it can be built or copied in slices, this is done without a pause. */
const LAST_ATTEMPT = 4;

/** The result of the work, or null as soon as it is stale. If `isStale` is null, the work runs without a pause. */
function* whole<T>(
  work: Generator<void, T>,
  isStale: (() => boolean) | null,
): Generator<void, T | null> {
  if (isStale === null) return withoutPause(work);
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    yield;
    if (isStale()) return null;
  }
}

/** The characters rendered per slice, which takes the authority a few milliseconds. */
const CHARACTERS_PER_SLICE = 128 * 1024;

/** The bytes copied per slice; copying is much cheaper than rendering. */
const COPIED_PER_SLICE = 1024 * 1024;

/** Builds the documents for this instant, in memory whose numbers are added to `taken`. */
function* buildDocuments(
  na: Authority,
  at: number,
  taken: number[],
): Generator<void, Record<(typeof GRAPH_DOCUMENTS)[number], PublishedDocument>> {
  const { recognition: index } = na;
  const version = index.version();
  const until = nextGraphChange(index, at);
  const graph = yield* rendered(recognitionGraphText(index, at));
  na.graph.digest.note({ version, from: at, until, digest: graph.digest });
  const connectome = yield* rendered(connectomeText(index, at));
  const atlas = yield* rendered(atlasText(index, at, graph.digest));

  function* inMemory({ parts, length, digest }: Rendered): Generator<void, PublishedDocument> {
    const { buffer, bytes } = na.graph.memory.take(length);
    taken.push(buffer);
    yield* copy(parts, bytes);
    return { bytes, etag: `"${digest.slice(0, 32)}"`, freshUntil: until };
  }

  return {
    recognition_graph: yield* inMemory(graph),
    connectome: yield* inMemory(connectome),
    atlas: yield* inMemory(atlas),
  };
}

interface Rendered {
  readonly parts: readonly Buffer[];
  /** In bytes. */
  readonly length: number;
  /** Hex SHA-256 of all parts. */
  readonly digest: string;
}

/** Renders a document from pieces of its text, yielding after each slice. */
function* rendered(pieces: Iterable<string>): Generator<void, Rendered> {
  const hash = createHash('sha256');
  const parts: Buffer[] = [];
  let length = 0;
  let inSlice = 0;
  for (const piece of pieces) {
    const part = Buffer.from(piece, 'utf8');
    hash.update(part);
    parts.push(part);
    length += part.length;
    inSlice += part.length;
    if (inSlice < CHARACTERS_PER_SLICE) continue;
    inSlice = 0;
    yield;
  }
  return { parts, length, digest: hash.digest('hex') };
}

function* copy(parts: readonly Buffer[], bytes: Buffer): Generator<void, void> {
  let at = 0;
  let copied = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
    copied += part.length;
    if (copied < COPIED_PER_SLICE) continue;
    copied = 0;
    yield;
  }
}

function areCurrent(publisher: DocumentPublisher, now: number): boolean {
  return GRAPH_DOCUMENTS.every((name) => publisher.isCurrent(name, now));
}

export const trustPath: Handler<'trustPath'> = (na, { from, to }, at) =>
  findTrustPath(na.recognition, from, to, at);

/** Results computed from the recognition graph, cached until a treaty change or the passage of time invalidates them. */
export function createGraphCaches(
  index: RecognitionIndex,
  edgesCaughtUp: ListThreading['edgesCaughtUp'] = () => Promise.resolve(),
) {
  return {
    memory: createGraphMemory(edgesCaughtUp),
    digest: createGraphDigest(index),
    copy: createTrustGraphCopy(index),
    /** Builds of the public documents, shared by concurrent readers. */
    builds: createSharedWork(),
  };
}

/** The memory of the published documents, and of those before them while an edge can still be reading these. */
function createGraphMemory(edgesCaughtUp: ListThreading['edgesCaughtUp']) {
  const memory = createDocumentMemory();
  let shown: readonly number[] = [];

  function release(buffers: readonly number[]): void {
    for (const buffer of buffers) memory.release(buffer);
  }

  return {
    take: memory.take,
    release,
    /** These are published now, instead of the ones before. */
    show(buffers: readonly number[]): void {
      const before = shown;
      shown = buffers;
      void edgesCaughtUp().then(() => release(before));
    },
  };
}

/** A digest, and the period in which it describes the graph: one version of the index, from `from` until just before `until`. */
interface DigestedGraph {
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
