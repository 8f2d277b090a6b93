/**
 * What clients sign: proofs of nodes in the body [core-3-1] or the header `X-Mesh-Node-Proof` [core-3-3], requests of
 * operators [core-2-2], and the descriptor and delete envelope of an agent [core-3-2], [core-5-6].
 */
import type { JsonObject } from '../base/json/value.ts';
import { canonicalJson } from '../base/json/write.ts';
import type { AgentDescriptor } from '../protocol/records/agent-descriptor.ts';
import { deleteEnvelopeText, headerProofText } from '../protocol/records/node-proof.ts';
import type { Query } from './http.ts';
import { type SigningKey, signText } from './keys.ts';
import type { Headers, Stamp } from './options.ts';
import { asRead } from './received.ts';
import { portableSha256 } from './sha256.ts';

export const NODE_PROOF_HEADER = 'X-Mesh-Node-Proof';

export interface NodeRequest extends Stamp {
  readonly method: string;
  /** Path as the authority reads it: percent-decoded, without query. */
  readonly path: string;
  readonly query: Query;
  /** The authority's public key. */
  readonly audience: string;
  /** The request body exactly as sent; empty when there is none. */
  readonly bodyText: string;
}

/** Returns the body with a timestamp, a nonce and the signature over all other members. */
export async function signNodeBody(
  body: JsonObject,
  key: SigningKey,
  { timestamp, nonce }: Stamp,
): Promise<JsonObject> {
  const signed = { ...body, timestamp, nonce };
  return { ...signed, signature: await signText(key, nodeBodyText(signed)) };
}

/** The text that the signature of a stamped body covers. */
export function nodeBodyText(stamped: JsonObject): string {
  return canonicalJson(stamped, 'signature');
}

/** Returns the value of the proof header; the body then needs no signature. */
export async function nodeProofHeader(request: NodeRequest, key: SigningKey): Promise<string> {
  const { bodyText, ...signed } = request;
  const { timestamp, nonce } = signed;
  const bodyDigest = portableSha256.hex(bodyText);
  const text = headerProofText({ ...signed, bodyDigest, key: key.publicKey });
  const sig = await signText(key, text);
  return `v=1; key=${key.publicKey}; ts=${timestamp}; nonce=${nonce}; sig=${sig}`;
}

export interface OperatorRequest extends Stamp {
  readonly keyId: string;
  readonly method: string;
  /** The path as the authority reads it: percent-decoded, without query. */
  readonly path: string;
  readonly query: Query;
  /** The authority's public key. */
  readonly audience: string;
  readonly body: JsonObject;
}

/** The four headers that carry an operator's signature. */
export async function operatorHeaders(request: OperatorRequest, key: SigningKey): Promise<Headers> {
  return {
    'X-Admin-Key-Id': request.keyId,
    'X-Admin-Timestamp': request.timestamp,
    'X-Admin-Nonce': request.nonce,
    'X-Admin-Signature': await signText(key, operatorPayload(request)),
  };
}

/** The text an operator signs. */
export function operatorPayload({ keyId, ...request }: OperatorRequest): string {
  const { body, timestamp, nonce, method, path, query, audience } = request;
  const signed = { v: 2, body, key_id: keyId, timestamp, nonce, method, path, query, audience };
  return canonicalJson(signed);
}

/** The lifetime that the network's clients use; they refresh after half of it. */
const DEFAULT_LIFETIME_SECONDS = 600;

export interface Agent {
  readonly agent_id: string;
  readonly network_name: string;
  readonly capabilities?: readonly string[];
  readonly endpoint: { readonly host: string; readonly port: number; readonly scheme?: string };
  readonly metadata?: JsonObject;
  /** Validity of the descriptor in seconds; 600 by default. */
  readonly lifetimeSeconds?: number;
}

export type DeleteEnvelope = {
  readonly version: 'v1';
  readonly signed_at: string;
  readonly signature: string;
};

/** The descriptor with every default present, valid from `now` (milliseconds since the epoch). */
export async function signAgentDescriptor(
  agent: Agent,
  key: SigningKey,
  now: number,
): Promise<AgentDescriptor> {
  const descriptor = unsignedDescriptor(agent, key.publicKey, now);
  const signature = { key_id: key.publicKey, sig: await signText(key, canonicalJson(descriptor)) };
  return { ...descriptor, signatures: [signature] };
}

export function unsignedDescriptor(
  agent: Agent,
  publicKey: string,
  now: number,
): Omit<AgentDescriptor, 'signatures'> {
  const { host, port, scheme = 'ws' } = agent.endpoint;
  const { lifetimeSeconds = DEFAULT_LIFETIME_SECONDS } = agent;
  return {
    agent_id: agent.agent_id,
    node_public_key: publicKey,
    network_name: agent.network_name,
    capabilities: [...(agent.capabilities ?? [])],
    endpoint: { host, port, scheme },
    registered_at: datetime(now),
    expires_at: datetime(now + lifetimeSeconds * 1000),
    metadata: asRead(agent.metadata ?? {}),
  };
}

/** Returns the body that removes the registration of the key; `signedAt` is signed verbatim. */
export async function signDeleteEnvelope(
  key: SigningKey,
  signedAt: string,
): Promise<DeleteEnvelope> {
  const signature = await signText(key, deleteEnvelopeText(key.publicKey, signedAt));
  return { version: 'v1', signed_at: signedAt, signature };
}

/** The canonical timestamp of a record: six fractional digits, or none when they are all zero [core-1-3]. */
function datetime(instant: number): string {
  const [whole, fraction] = new Date(instant).toISOString().slice(0, -1).split('.');
  return fraction === '000' ? `${whole}Z` : `${whole}.${fraction}000Z`;
}
