/** The forms in which answers and heartbeats cross between threads, most of which are strings and numbers. */
import type { Answer } from '../../protocol/contract/answers.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import type { NodeProofVerdict } from '../../protocol/contract/claims.ts';
import { fromCloneable, toCloneable } from './cloneable.ts';

/** The text of most answers, others in a cloneable form. */
export type CrossedAnswer = string | Answer;

export type HeartbeatRow = Parameters<typeof heartbeatIn>;

export function crossing(answer: Answer | Promise<Answer>): CrossedAnswer | Promise<CrossedAnswer> {
  return answer instanceof Promise ? answer.then(crossingAnswer) : crossingAnswer(answer);
}

function crossingAnswer(answer: Answer): CrossedAnswer {
  return answer.ok && answer.isRepeated !== true ? answer.json : (toCloneable(answer) as Answer);
}

export function arrivedAnswer(answer: CrossedAnswer): Answer {
  if (typeof answer === 'string') return { ok: true, json: answer };
  return fromCloneable(answer) as Answer;
}

/** Most calls are heartbeats, so their members are sent one by one. */
export function heartbeatRow({
  node,
  cert_id,
  status,
  bulletin,
  authority_keys_digest,
}: CallInput<'heartbeat'>): HeartbeatRow {
  const { publicKey, signedAt, nonce, verdict, remoteAddr } = node;
  const proof = [publicKey, signedAt, nonce, verdict, remoteAddr] as const;
  return [cert_id, status, ...proof, bulletin, authority_keys_digest];
}

export function heartbeatIn(
  cert_id: string,
  status: string,
  publicKey: string,
  signedAt: number,
  nonce: string | null,
  verdict: NodeProofVerdict,
  remoteAddr: string,
  bulletin: boolean,
  authority_keys_digest: string | null,
): CallInput<'heartbeat'> {
  const node = { publicKey, signedAt, nonce, verdict, remoteAddr, identity: null };
  return { cert_id, status, bulletin, authority_keys_digest, node };
}
