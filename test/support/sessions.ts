/** Heartbeat sessions as a node written from the contract alone would use them [core-3-4]. */
import { createHmac } from 'node:crypto';
import nacl from 'tweetnacl';
import type { JsonObject } from '../../src/base/json/value.ts';
import { jsonText } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import type { SessionOffer } from '../../src/protocol/answers/enrollment.ts';
import type { TestAuthority } from './authority.ts';
import { nodeRequest, type Received, send, type TestNode } from './requests.ts';

export interface TestSession {
  readonly node: TestNode;
  readonly offer: SessionOffer;
  readonly key: Buffer;
}

export interface BeatCall {
  readonly instant?: string;
  readonly expiresAt?: string;
  readonly key?: Buffer;
  /** Authenticated instead of the body that is sent. */
  readonly over?: string;
  readonly body?: JsonObject;
  /** Changes the header. */
  readonly alter?: (header: string) => string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly path?: string;
}

export function bytes(text: string): Buffer {
  return Buffer.from(text, 'base64');
}

/** Signs a heartbeat that requests a session, and opens the box. */
export async function openSession(na: TestAuthority, node: TestNode): Promise<TestSession> {
  const keys = nacl.box.keyPair();
  const answer = await askForSession(na, node, Buffer.from(keys.publicKey).toString('base64'));
  const offer = answer.body.session as SessionOffer;
  const { key_box, nonce, public_key } = offer;
  const key = nacl.box.open(bytes(key_box), bytes(nonce), bytes(public_key), keys.secretKey);
  if (key === null) throw new Error('The box does not open');
  // The next instant must be later than that of the signed heartbeat.
  if (na.clock.shared !== null) na.clock.advance(1);
  return { node, offer, key: Buffer.from(key) };
}

export function askForSession(
  na: TestAuthority,
  node: TestNode,
  sessionKey: unknown,
  further: JsonObject = {},
): Promise<Received> {
  const body = { cert_id: node.certId, session_public_key: sessionKey, ...further } as JsonObject;
  return nodeRequest(na, '/heartbeat', node.key, body);
}

export function beatBody({ node }: TestSession): JsonObject {
  return { cert_id: node.certId, node_public_key: node.key.publicKey, status: 'healthy' };
}

export function beatRequest(na: TestAuthority, session: TestSession, call: BeatCall = {}) {
  const { instant = formatInstant(na.clock.now()), alter = (header: string) => header } = call;
  const body = jsonText(call.body ?? beatBody(session));
  const mac = createHmac('sha256', call.key ?? session.key)
    .update(`POST\n/heartbeat\n${instant}\n${call.over ?? body}`)
    .digest('base64');
  const header = alter(`v1 ${call.expiresAt ?? session.offer.expires_at} ${instant} ${mac}`);
  return { body, headers: { 'X-Mesh-Session': header, ...call.headers } };
}

export function beat(na: TestAuthority, session: TestSession, call: BeatCall = {}) {
  return send(na, 'POST', call.path ?? '/heartbeat', beatRequest(na, session, call));
}
