import type { Answer } from '../../protocol/contract/answers.ts';
import { documentText, type PublishedDocument } from '../../protocol/contract/documents.ts';
import type { Edge } from '../edge.ts';
import { keptBeside } from './kept-beside.ts';

/** The answer to a heartbeat with the published bulletin as its last member: the same text for all nodes. */
export function withBulletin(answer: Answer, { documents }: Edge): Answer {
  const bulletin = documents.latest('bulletin');
  if (!answer.ok || bulletin === undefined) return answer;
  return { ...answer, json: `${answer.json.slice(0, -1)}${memberOf(bulletin)}` };
}

const memberOf = keptBeside(
  (bulletin: PublishedDocument) => `,"bulletin":${documentText(bulletin)}}`,
);
