/** The graph documents: built when somebody asks, kept until a treaty, a feed or the clock changes them. */
import { GRAPH_DOCUMENTS, publishedDocument } from '../../contract/documents.ts';
import { sha256Hex } from '../../crypto/digest.ts';
import {
  atlas,
  connectome,
  nextGraphChange,
  recognitionGraph,
} from '../../views/recognition-graph.ts';
import type { RecognitionIndex } from '../../views/recognition-index.ts';
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

/** Digest of the graph as it is served at a time; evidence and offers name the graph they rest on by it. */
export type GraphDigest = (now: number) => string;

export function createGraphDigest(recognition: RecognitionIndex): GraphDigest {
  let version = -1;
  let from = 0;
  let until = 0;
  let digest = '';
  return (now) => {
    const holds = version === recognition.version() && from <= now && now < until;
    if (!holds) {
      digest = sha256Hex(recognitionGraph(recognition, now));
      version = recognition.version();
      from = now;
      until = nextGraphChange(recognition, now);
    }
    return digest;
  };
}

export const trustPath: Handler<'trustPath'> = (na, { from, to }, at) =>
  findTrustPath(na.recognition, from, to, at);
