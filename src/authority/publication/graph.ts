/** The graph documents: built when somebody asks, kept until a treaty, a feed or the clock changes them. */
import { GRAPH_DOCUMENTS, publishedDocument } from '../../contract/documents.ts';
import { sha256Hex } from '../../crypto/digest.ts';
import {
  atlas,
  connectome,
  nextGraphChange,
  recognitionGraph,
} from '../../views/recognition-graph.ts';
import { findTrustPath } from '../../views/trust-path.ts';
import type { Handler } from '../engine/admission.ts';

/** Publishes all three at once, from one reading of the clock, so that they agree. */
export const refreshGraph: Handler<'refreshGraph'> = (na, unit) => {
  const { at } = unit;
  if (GRAPH_DOCUMENTS.every((name) => na.publisher.isCurrent(name, at))) return null;
  const graph = recognitionGraph(na.recognition, at);
  const freshUntil = nextGraphChange(na.recognition, at);
  const texts = {
    recognition_graph: graph,
    connectome: connectome(na.recognition, at),
    atlas: atlas(na.recognition, at, sha256Hex(graph)),
  };
  for (const name of GRAPH_DOCUMENTS)
    na.publisher.publish(name, publishedDocument(texts[name], freshUntil));
  return null;
};

export const trustPath: Handler<'trustPath'> = (na, { from, to }, at) =>
  findTrustPath(na.recognition, from, to, at);
