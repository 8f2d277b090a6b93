/**
 * What a node signs to register and unregister its agent: descriptor and delete envelope [core-3-2],
 * [core-5-6].
 */
import type { JsonObject } from '../base/json/value.ts';
import { canonicalJson } from '../base/json/write.ts';
import type { AgentDescriptor } from '../protocol/records/agent-descriptor.ts';
import { type SigningKey, signText } from './keys.ts';
import { asRead } from './received.ts';

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

export function deleteEnvelopeText(publicKey: string, signedAt: string): string {
  return `delete-agent|v1|${publicKey}|${signedAt}`;
}

/** The canonical timestamp of a record: six fractional digits, or none when they are all zero [core-1-3]. */
function datetime(instant: number): string {
  const [whole, fraction] = new Date(instant).toISOString().slice(0, -1).split('.');
  return fraction === '000' ? `${whole}Z` : `${whole}.${fraction}000Z`;
}
