/** The requests of a fleet, signed beforehand: invites by an operator, joins and heartbeats by nodes. */

import { SEED_BYTES, signerFromSeed } from '../src/base/crypto/ed25519.ts';
import type { Signer } from '../src/base/crypto/primitives.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import type { Query } from '../src/client/http.ts';
import { operatorHeaders, signNodeBody } from '../test/support/signing.ts';

/** What clients of an authority need to know, as a plain value that can be sent between processes. */
export type Network = {
  /** The authority's public key. */
  readonly audience: string;
  readonly operatorKeyId: string;
  /** Base64 of the operator's seed. */
  readonly operatorSeed: string;
};

export interface FleetNode {
  readonly key: Signer;
  readonly certId: string;
}

/** The most tokens of one invite request. */
export const MAX_INVITES = 1000;

export function newKeys(count: number): Signer[] {
  return Array.from({ length: count }, () => signerFromSeed(systemRuntime.randomBytes(SEED_BYTES)));
}

/** Creates signed invite requests with the given body. */
export function inviteSigner(network: Network): (body: JsonObject) => Buffer {
  const sign = operatorSigner(network, 'POST', '/admin/invite');
  return (body) => httpRequest('POST', '/admin/invite', sign(body), jsonText(body));
}

/** Creates the headers with which the network's operator signs requests to one route. */
export function operatorSigner(network: Network, method: string, path: string, query: Query = {}) {
  const key = signerFromSeed(Buffer.from(network.operatorSeed, 'base64'));
  const { audience, operatorKeyId: keyId } = network;
  return (body: JsonObject) =>
    operatorHeaders({ method, path, query, ...newStamp(), audience, keyId, body }, key);
}

export function joinRequest(key: Signer, inviteToken: string, further: JsonObject = {}): Buffer {
  const body = { node_public_key: key.publicKey, invite_token: inviteToken, ...further };
  return httpRequest('POST', '/join', {}, jsonText(signNodeBody(body, key, newStamp())));
}

/**
 * Signs heartbeats of all nodes in turn. The timestamps of a node increase across all calls, because the authority
 * refuses anything older than its window of nonces.
 */
export function heartbeatSigner(
  nodes: readonly FleetNode[],
): (count: number, further?: JsonObject) => Buffer[] {
  let turn = 0;
  let signedAt = 0;

  function nextRequest(further: JsonObject): Buffer {
    const node = nodes[turn % nodes.length];
    if (node === undefined) throw new Error('There are no nodes to sign for');
    if (turn % nodes.length === 0) signedAt += 1;
    turn += 1;
    return heartbeatRequest(node, signedAt, further);
  }

  return (count, further = {}) => {
    signedAt = Math.max(signedAt, systemRuntime.now());
    return Array.from({ length: count }, () => nextRequest(further));
  };
}

export function renewalRequest({ key, certId }: FleetNode, further: JsonObject = {}): Buffer {
  const body = { node_public_key: key.publicKey, cert_id: certId, ...further };
  return httpRequest('POST', '/renew', {}, jsonText(signNodeBody(body, key, newStamp())));
}

export function heartbeatRequest(
  { key, certId }: FleetNode,
  signedAt: number,
  further: JsonObject = {},
): Buffer {
  const body = { node_public_key: key.publicKey, cert_id: certId, status: 'healthy', ...further };
  const signed = signNodeBody(body, key, newStamp(signedAt));
  return httpRequest('POST', '/heartbeat', {}, jsonText(signed));
}

export function getRequest(path: string): Buffer {
  return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: mesh-na.bench\r\n\r\n`, 'latin1');
}

function newStamp(at = systemRuntime.now()) {
  return { timestamp: new Date(at).toISOString(), nonce: systemRuntime.uuid() };
}

export function httpRequest(
  method: string,
  path: string,
  headers: { readonly [name: string]: string },
  body: string,
): Buffer {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: mesh-na.bench',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
}
