/** The requests of a fleet's nodes, signed: joins, heartbeats and renewals. */
import { SEED_BYTES, signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import { HMAC_BYTES, hmacSha256Into } from '../../src/base/crypto/hmac.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { jsonText } from '../../src/base/json/write.ts';
import { systemRuntime } from '../../src/base/runtime.ts';
import { nodeBodyText } from '../../src/client/signing.ts';
import { beatText, SESSION_HEADER, sessionHeader } from '../../src/protocol/heartbeat-session.ts';
import type { Address } from './connection.ts';

export interface LoadRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
}

/** Where requests go, as they name it. */
export interface Site {
  readonly host: string;
  /** A path in front of every path, which a proxy strips; usually empty. */
  readonly prefix: string;
}

export interface Place {
  readonly target: Address;
  readonly site: Site;
}

/** A heartbeat session; a plain value that can be sent to another thread. */
export interface LoadSession {
  readonly key: Uint8Array;
  readonly expiresAt: string;
}

export interface FleetNode {
  readonly key: Signer;
  readonly certId: string;
  /** Set if its heartbeats are made in a session; otherwise they are signed. */
  readonly session?: LoadSession;
}

interface Stamp {
  readonly timestamp: string;
  readonly nonce: string;
}

const JSON_BODY = { 'Content-Type': 'application/json' };

export function newKey(): Signer {
  return signerFromSeed(systemRuntime.randomBytes(SEED_BYTES));
}

export function joinRequest(
  key: Signer,
  inviteToken: string,
  further: JsonObject = {},
): LoadRequest {
  return signedRequest('/join', key, { invite_token: inviteToken, ...further }, newStamp());
}

export function renewalRequest(
  { key, certId }: FleetNode,
  further: JsonObject = {},
  signedAt = systemRuntime.now(),
): LoadRequest {
  return signedRequest('/renew', key, { cert_id: certId, ...further }, newStamp(signedAt));
}

export function heartbeatRequest(
  { key, certId, session }: FleetNode,
  signedAt: number,
  further: JsonObject = {},
): LoadRequest {
  const body = { cert_id: certId, status: 'healthy', ...further };
  if (session !== undefined) {
    return sessionBeat(session, { node_public_key: key.publicKey, ...body }, signedAt);
  }
  return signedRequest('/heartbeat', key, body, newStamp(signedAt));
}

export function getRequest(path: string): LoadRequest {
  return { method: 'GET', path, headers: {}, body: '' };
}

export function postRequest(path: string, body: string): LoadRequest {
  return { method: 'POST', path, headers: JSON_BODY, body };
}

function signedRequest(path: string, key: Signer, body: JsonObject, stamp: Stamp): LoadRequest {
  const text = nodeBodyText({ node_public_key: key.publicKey, ...body, ...stamp });
  // Cheaper than writing the whole body again with its signature.
  return postRequest(path, `${text.slice(0, -1)},"signature":"${key.sign(text)}"}`);
}

const MAC = Buffer.alloc(HMAC_BYTES);

function sessionBeat(
  { key, expiresAt }: LoadSession,
  members: JsonObject,
  madeAt: number,
): LoadRequest {
  const body = jsonText(members);
  const instant = new Date(madeAt).toISOString();
  hmacSha256Into(MAC, Buffer.from(key), Buffer.from(beatText(instant) + body));
  const header = sessionHeader({ expiresAt, instant, mac: MAC.toString('base64') });
  const { method, path, headers } = postRequest('/heartbeat', body);
  return { method, path, headers: { ...headers, [SESSION_HEADER]: header }, body };
}

export function newStamp(at = systemRuntime.now()): Stamp {
  return { timestamp: new Date(at).toISOString(), nonce: systemRuntime.uuid() };
}

/**
 * Returns the nodes in turn. The signing times of a node increase, because the authority refuses anything older than
 * its window of nonces.
 */
export function nodesInTurn<Node>(
  nodes: readonly Node[],
): () => { readonly node: Node; readonly index: number; readonly signedAt: number } {
  let turn = 0;
  let signedAt = 0;
  return () => {
    const index = turn % nodes.length;
    const node = nodes[index];
    if (node === undefined) throw new Error('There are no nodes to sign for');
    signedAt = Math.max(index === 0 ? signedAt + 1 : signedAt, systemRuntime.now());
    turn += 1;
    return { node, index, signedAt };
  };
}

export function bytesOf({ method, path, headers, body }: LoadRequest, site: Site): Buffer {
  const lines = [
    `${method} ${site.prefix}${path} HTTP/1.1`,
    `Host: ${site.host}`,
    ...(body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
}
