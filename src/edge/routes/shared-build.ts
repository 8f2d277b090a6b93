/** Values that are built from a published document in slices, once for each of its versions. */

import { inSlices } from '../../base/slices.ts';
import type { DocumentName, PublishedDocument } from '../../protocol/contract/documents.ts';
import type { Edge } from '../edge.ts';
import { cachedBySource } from './cached-by-source.ts';

/**
 * Returns the value, or a promise of it when it has to be built. A newer version may be built instead if the
 * document changes meanwhile.
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
 * Concurrent callers share a build. While one is under way, all who need another version share the next one,
 * which is of the version that is newest then: at most one build waits, however often the document changes.
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
    // Anyone who waits for that build learns of its failure.
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
