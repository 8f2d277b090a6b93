/** What pages show of the published documents: read once for each version of a document. */
import { type DocumentName, documentText, type PublishedDocument } from '../contract/documents.ts';
import { type Edge, withAnswer } from '../http/edge.ts';
import { type Reply, refusalReply } from '../http/reply.ts';
import type { RouteRequest } from '../http/route.ts';
import { parseJson } from '../json/parse.ts';
import { type GraphDocument, type GraphModel, graphModel } from '../pages/graph-model.ts';
import { currentDocument } from './documents.ts';

export function withDocument(
  name: DocumentName,
  { now }: RouteRequest,
  edge: Edge,
  next: (document: PublishedDocument) => Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  return withAnswer(currentDocument(name, now, edge), (document) =>
    document === undefined ? refusalReply('service_not_ready') : next(document),
  );
}

/** Caches the last result computed from a document, as long as the document does not change. */
export function keptByEtag<Made>(make: (edge: Edge, document: PublishedDocument) => Made) {
  const kept = new WeakMap<Edge, { readonly etag: string; readonly made: Made }>();
  return (edge: Edge, document: PublishedDocument): Made => {
    const known = kept.get(edge);
    if (known?.etag === document.etag) return known.made;
    const made = make(edge, document);
    kept.set(edge, { etag: document.etag, made });
    return made;
  };
}

/** The recognition graph of the published Connectome. */
export const modelOf = keptByEtag(
  (edge, document): GraphModel => graphModel(graphIn(documentText(document)), networkOf(edge)),
);

const EDGES = '],"recognition_edges":[';

/**
 * The whole treaties come first and are most of the text, but no page shows them. Nothing after them has
 * members of free form, and the quotes inside a string would be escaped.
 */
function graphIn(text: string): GraphDocument {
  return parseJson(`{${text.slice(text.lastIndexOf(EDGES) + 2)}`) as unknown as GraphDocument;
}

/** The document is this authority's own. */
export function contentOf<Content>(document: PublishedDocument): Content {
  return parseJson(documentText(document)) as Content;
}

export function networkOf({ settings }: Edge): string {
  return settings.genesis.network_name;
}
