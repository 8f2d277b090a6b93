import { sha256Hex } from '../../crypto/digest.ts';
import { nextGraphChange, recognitionGraph } from '../../views/recognition-graph.ts';
import type { RecognitionIndex } from '../../views/recognition-index.ts';

/** Digest of the graph as served at a given time; evidence and offers refer to their graph by it. */
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
