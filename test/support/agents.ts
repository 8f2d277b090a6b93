/** Requests for tests of the agent registry. */
import assert from 'node:assert/strict';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject, JsonValue } from '../../src/base/json/value.ts';
import { jsonText } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import type { Agent } from '../../src/client/signing.ts';
import type { TestAuthority } from './authority.ts';
import {
  get,
  invite,
  joinedNode,
  nodeRequest,
  operate,
  outcome,
  type Received,
  send,
  type TestNode,
} from './requests.ts';
import { signAgentDescriptor, signDeleteEnvelope } from './signing.ts';

export const TAG = 'llm:chat';
export const LIFETIME = 600;

export function members(na: TestAuthority, key: Signer): JsonObject {
  const { signatures: _, ...record } = describe(na, key) as Record<string, JsonValue>;
  return record;
}

export function describe(na: TestAuthority, key: Signer, changes: Partial<Agent> = {}): JsonObject {
  return signAgentDescriptor(
    {
      agent_id: 'agent-1',
      network_name: 'alpha',
      capabilities: [TAG],
      endpoint: { host: '127.0.0.1', port: 7448 },
      lifetimeSeconds: LIFETIME,
      ...changes,
    },
    key,
    na.clock.now(),
  );
}

export function register(na: TestAuthority, descriptor: JsonObject): Promise<Received> {
  return send(na, 'POST', '/agents', { body: jsonText(descriptor) });
}

/** Joins with the key and a new invite; returns the key. */
export async function joinedKey(na: TestAuthority, key: Signer): Promise<Signer> {
  const invite_token = await invite(na);
  assert.equal(outcome(await nodeRequest(na, '/join', key, { invite_token })), '200');
  return key;
}

export async function registeredNode(
  na: TestAuthority,
  changes: Partial<Agent> = {},
): Promise<TestNode> {
  const node = await joinedNode(na);
  assert.equal(outcome(await register(na, describe(na, node.key, changes))), '200');
  return node;
}

export function pathOf({ publicKey }: Signer): string {
  return `/agents/${encodeURIComponent(publicKey)}`;
}

export async function countOf(na: TestAuthority, tag: string): Promise<number> {
  const { body } = await get(na, `/agents?capability=${encodeURIComponent(tag)}`);
  assert.equal(body.agents.length, body.count);
  return body.count;
}

export function envelopeOf(na: TestAuthority, key: Signer): JsonObject {
  return signDeleteEnvelope(key, formatInstant(na.clock.now()));
}

export function remove(na: TestAuthority, key: Signer, envelope: JsonObject): Promise<Received> {
  return send(na, 'DELETE', pathOf(key), { body: jsonText(envelope) });
}

export async function revokeCertificate(na: TestAuthority, cert_id: string, reason: string) {
  const answer = await operate(na, '/admin/revoke', { cert_id, reason });
  assert.equal(outcome(answer), '200');
}
