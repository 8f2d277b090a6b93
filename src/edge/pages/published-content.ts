/** Content for pages from the published documents, read once per version of a document. */

import { MOST_URGENT } from '../../pages/dashboard/dashboard.ts';
import { type DrawnGraph, drawnGraph } from '../../pages/graph/drawing.ts';
import { graphModel, readDashboard, readGraph } from '../../pages/graph/model.ts';
import { type PublishedDocument, versionOf } from '../../protocol/contract/documents.ts';
import { withDocument } from '../documents/documents.ts';
import { builtOnce, cachedBySource } from '../documents/shared-build.ts';
import { type Edge, inTurn } from '../edge.ts';
import type { Reply } from '../reply.ts';
import type { RouteRequest } from '../request/route.ts';

export const dashboardIn = cachedBySource(({ bytes }: PublishedDocument) =>
  readDashboard(bytes, MOST_URGENT),
);

/** The recognition graph of one version of the published documents. */
export interface PublishedGraph extends DrawnGraph {
  readonly version: string;
  /** Null while the atlas is not published. */
  readonly digest: string | null;
}

export function withGraph(
  request: RouteRequest,
  edge: Edge,
  next: (graph: PublishedGraph) => Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  return withDocument('connectome', request, edge, (document) =>
    inTurn(edge, graphIn(edge, document), next),
  );
}

export const graphIn = builtOnce('connectome', function* (edge, { bytes, etag }): Generator<
  void,
  PublishedGraph
> {
  // Published together with the Connectome, so that the cached one belongs to the same graph.
  const atlas = edge.documents.latest('atlas');
  const digest = atlas === undefined ? null : digestIn(atlas);
  const document = yield* readGraph(bytes);
  const graph = yield* drawnGraph(yield* graphModel(document, networkOf(edge)));
  return { ...graph, version: versionOf(etag), digest };
});

/** The digest is the second member, after a number. */
const DIGEST = /"graph_digest":"([0-9a-f]{64})"/;
const BEGINNING = 200;

function digestIn({ bytes }: PublishedDocument): string | null {
  const beginning = Buffer.from(bytes.subarray(0, BEGINNING)).toString();
  return DIGEST.exec(beginning)?.[1] ?? null;
}

export function networkOf({ settings }: Edge): string {
  return settings.genesis.network_name;
}
