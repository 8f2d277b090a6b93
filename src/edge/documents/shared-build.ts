/**
 * Values that are built once: for as long as their source is in use, in slices for each version of a document, or for
 * all who ask in one turn of the event loop.
 */

import { inSlices } from '../../base/work.ts';
import type { DocumentName, PublishedDocument } from '../../protocol/contract/documents.ts';
import type { Edge } from '../edge.ts';

/**
 * Returns the value, or a promise if it must be built. If the document changes meanwhile, a newer version may be built
 * instead.
 */
export function builtOnce<Made>(
  name: DocumentName,
  build: (edge: Edge, document: PublishedDocument) => Generator<void, Made>,
): (edge: Edge, document: PublishedDocument) => Made | Promise<Made> {
  const buildOf = cachedBySource((edge: Edge) =>
    createSharedBuild(
      (version) => build(edge, version),
      () => edge.documents.latest(name),
    ),
  );
  return (edge, document) => buildOf(edge)(document);
}

export type SharedBuild<Made> = (document: PublishedDocument) => Made | Promise<Made>;

/**
 * Concurrent callers share a build. While one is running, all callers that need another version share the next one,
 * which uses the newest version at that time, so at most one build is waiting no matter how often the document
 * changes.
 */
export function createSharedBuild<Made>(
  build: (document: PublishedDocument) => Generator<void, Made>,
  newest: () => PublishedDocument | undefined,
): SharedBuild<Made> {
  let kept: { readonly etag: string; readonly made: Made } | null = null;
  let underWay: { readonly etag: string; readonly made: Promise<Made> } | null = null;
  let next: Promise<Made> | null = null;

  function start(document: PublishedDocument): Made | Promise<Made> {
    const { etag } = document;
    const made = inSlices(build(document));
    if (!(made instanceof Promise)) {
      kept = { etag, made };
      return made;
    }
    const whole = made
      .then((late) => {
        kept = { etag, made: late };
        return late;
      })
      .finally(() => {
        underWay = null;
      });
    underWay = { etag, made: whole };
    return whole;
  }

  async function startNext(earlier: Promise<unknown>, document: PublishedDocument): Promise<Made> {
    // The callers of that build handle its failure.
    await earlier.catch(() => undefined);
    next = null;
    return current(newest() ?? document);
  }

  function current(document: PublishedDocument): Made | Promise<Made> {
    if (kept?.etag === document.etag) return kept.made;
    if (underWay === null) return start(document);
    if (underWay.etag === document.etag) return underWay.made;
    next ??= startNext(underWay.made, document);
    return next;
  }

  return current;
}

/** All callers in one turn of the event loop share one answer, which is requested when the turn ends. */
export function oncePerTurn<Made>(ask: () => Made | Promise<Made>): () => Promise<Made> {
  let gathering: Promise<Made> | null = null;
  return () => {
    gathering ??= new Promise((resolve, reject) => {
      setImmediate(() => {
        gathering = null;
        // A failure that is thrown rejects like any other.
        Promise.resolve().then(ask).then(resolve, reject);
      });
    });
    return gathering;
  };
}

/** Caches a result computed from a value for as long as the value is in use. */
export function cachedBySource<Source extends object, Made>(make: (source: Source) => Made) {
  const kept = new WeakMap<Source, Made>();
  return (source: Source): Made => {
    const known = kept.get(source);
    if (known !== undefined) return known;
    const made = make(source);
    kept.set(source, made);
    return made;
  };
}
