/** The graph documents: built when somebody asks, kept until a treaty, a feed or the clock changes them. */
import { sha256Hex } from '../crypto/digest.ts';
import { jsonText } from '../json/write.ts';
import {
  atlas,
  connectome,
  nextGraphChange,
  recognitionGraph,
} from '../views/recognition-graph.ts';
import { findTrustPath } from '../views/trust-path.ts';
import type { Handler } from './authority.ts';
import { GRAPH_DOCUMENTS, publishedDocument } from './documents.ts';

/** Publishes all three at once, from one reading of the clock, so that they agree. */
export const refreshGraph: Handler<null> = (na, unit) => {
  const { at } = unit;
  const graph = recognitionGraph(na.recognition, at);
  const freshUntil = nextGraphChange(na.recognition, at);
  const texts = {
    recognition_graph: graph,
    connectome: connectome(na.recognition, at),
    atlas: atlas(na.recognition, at, sha256Hex(graph)),
  };
  for (const name of GRAPH_DOCUMENTS) na.publish(name, publishedDocument(texts[name], freshUntil));
  return '{}';
};

export const trustPath: Handler<{ readonly from: string; readonly to: string }> = (
  na,
  unit,
  { from, to },
) => jsonText(findTrustPath(na.recognition, from, to, unit.at));
