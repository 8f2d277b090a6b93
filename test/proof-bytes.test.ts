/** Proofs over the bytes of a body, while threads have to ask each other about limits. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { NODE_PROOF_HEADER } from '../src/client/signing.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import {
  freshNonce,
  joinedNode,
  newKey,
  nodeRequest,
  outcome,
  type Received,
  sendRaw,
  type TestNode,
} from './support/requests.ts';
import { nodeProofHeader, signAgentDescriptor } from './support/signing.ts';

const ROUTES = ['/heartbeat', '/renew', '/agents'] as const;
type Path = (typeof ROUTES)[number];

/** How many forgeries of one node are judged; the next are refused unread. */
const FAILURES = 2;

/** One node has failed too often; each route has the given limit. */
async function startLimited(threads: string, limit: string): Promise<TestAuthority> {
  const na = await startTestAuthority({
    flags: { threads },
    environment: {
      MESH_RATE_LIMIT_HEARTBEAT: limit,
      MESH_RATE_LIMIT_RENEW: limit,
      MESH_RATE_LIMIT_AGENTS: limit,
      MESH_RATE_LIMIT_NODE_FAILURES: `${FAILURES}/60`,
    },
  });
  const forgery = { cert_id: 'c', node_public_key: newKey().publicKey };
  const call = { signedBy: newKey() };
  for (let tries = 0; tries < 3; tries += 1) {
    await nodeRequest(na, '/heartbeat', newKey(), forgery, call);
  }
  return na;
}

function bodyFor(na: TestAuthority, path: Path, { key, certId }: TestNode): JsonObject {
  if (path !== '/agents') return { node_public_key: key.publicKey, cert_id: certId };
  const agent = {
    agent_id: 'agent-1',
    network_name: 'alpha',
    capabilities: ['tag'],
    endpoint: { host: '127.0.0.1', port: 7448 },
    lifetimeSeconds: 600,
  };
  return signAgentDescriptor(agent, key, na.clock.now());
}

/** A request whose header proves `signedText`, on its own connection. */
async function proving(
  na: TestAuthority,
  path: Path,
  { key }: TestNode,
  bodyText: string,
  signedText: string,
): Promise<Received> {
  const header = await nodeProofHeader(
    {
      method: 'POST',
      path,
      query: {},
      audience: na.audience,
      bodyText: signedText,
      timestamp: formatInstant(na.clock.now()),
      nonce: freshNonce(),
    },
    key,
  );
  const headers = { [NODE_PROOF_HEADER]: header, 'Content-Length': Buffer.byteLength(bodyText) };
  return sendRaw(na, 'POST', path, { headers, pieces: [bodyText] });
}

for (const [threads, limit] of [
  ['1', 'off'],
  ['3', 'off'],
  ['3', '1000/60'],
] as const) {
  test(`with ${threads} threads and limit ${limit} 10 of 10 header proofs pass on every route, and none over other bytes`, async () => {
    await using na = await startLimited(threads, limit);
    for (const path of ROUTES) {
      const node = await joinedNode(na);
      for (let round = 0; round < 10; round += 1) {
        na.clock.advance(1);
        const text = jsonText(bodyFor(na, path, node));
        assert.equal(outcome(await proving(na, path, node, text, text)), '200', path);
      }
      const forger = await joinedNode(na);
      for (let round = 0; round < 10; round += 1) {
        const text = jsonText(bodyFor(na, path, forger));
        const forged = await proving(na, path, forger, text, '');
        const refused = round < FAILURES ? '401 node_auth_failed' : '429 rate_limit_exceeded';
        assert.equal(outcome(forged), refused, path);
      }
    }
  });
}
