/** The forms in which answers and heartbeats cross between threads, most of which are strings and numbers. */
import { JsonFloat } from '../../base/json/value.ts';
import type { Answer, CallInput } from '../../protocol/contract/calls.ts';
import type { NodeProofVerdict } from '../../protocol/contract/claims.ts';

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

/**
 * Converts values sent between threads. Structured cloning preserves everything in a command except the class of a
 * `JsonFloat`, so a float is sent as a boxed number, which occurs nowhere else.
 */
export function toCloneable(value: unknown): unknown {
  return holdsFloat(value) ? mapDeep(value, (leaf) => (isFloat(leaf) ? boxed(leaf) : leaf)) : value;
}

/** Only for values that came from `toCloneable`. */
export function fromCloneable(value: unknown): unknown {
  return holdsBox(value)
    ? mapDeep(value, (leaf) => (isBox(leaf) ? new JsonFloat(Number(leaf)) : leaf))
    : value;
}

function holdsFloat(value: unknown): boolean {
  return isFloat(value) || (isTree(value) && Object.values(value).some(holdsFloat));
}

function holdsBox(value: unknown): boolean {
  return isBox(value) || (isTree(value) && Object.values(value).some(holdsBox));
}

function isFloat(value: unknown): value is JsonFloat {
  return value instanceof JsonFloat;
}

function isBox(value: unknown): value is number {
  return value instanceof Number;
}

function boxed({ value }: JsonFloat): number {
  return Object(value) as number;
}

function isTree(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function mapDeep(value: unknown, leaf: (value: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => mapDeep(item, leaf));
  if (!isTree(value) || isFloat(value) || isBox(value)) return leaf(value);
  // Defines own members even for `__proto__`, which is an ordinary name in a free-form object.
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, mapDeep(member, leaf)]),
  );
}
