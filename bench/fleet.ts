/** The requests of a fleet as bytes, and those of its operator. */

import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import type { Signer } from '../src/base/crypto/primitives.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import type { Query } from '../src/client/http.ts';
import { operatorHeaders } from '../test/support/signing.ts';
import * as requests from './load/requests.ts';

export type FleetNode = requests.FleetNode;

/** What clients of an authority need to know, as a plain value that can be sent between processes. */
export type Network = {
  /** The authority's public key. */
  readonly audience: string;
  readonly operatorKeyId: string;
  /** Base64 of the operator's seed. */
  readonly operatorSeed: string;
};

/** The most tokens of one invite request. */
export const MAX_INVITES = 1000;

export const SITE = { host: 'mesh-na.bench', prefix: '' };

export function newKeys(count: number): Signer[] {
  return Array.from({ length: count }, requests.newKey);
}

/** Creates signed invite requests with the given body. */
export function inviteSigner(network: Network): (body: JsonObject) => Buffer {
  return commandSigner(network, '/admin/invite');
}

/** Creates signed commands of the network's operator to one route. */
export function commandSigner(network: Network, path: string): (body: JsonObject) => Buffer {
  const sign = operatorSigner(network, 'POST', path);
  return (body) => httpRequest('POST', path, sign(body), jsonText(body));
}

/** Creates the headers with which the network's operator signs requests to one route. */
export function operatorSigner(network: Network, method: string, path: string, query: Query = {}) {
  const key = signerFromSeed(Buffer.from(network.operatorSeed, 'base64'));
  const { audience, operatorKeyId: keyId } = network;
  return (body: JsonObject) => {
    const stamp = requests.newStamp();
    return operatorHeaders({ method, path, query, ...stamp, audience, keyId, body }, key);
  };
}

export function joinRequest(key: Signer, inviteToken: string, further?: JsonObject): Buffer {
  return requests.bytesOf(requests.joinRequest(key, inviteToken, further), SITE);
}

/** Signs heartbeats of all nodes in turn. */
export function heartbeatSigner(
  nodes: readonly FleetNode[],
): (count: number, further?: JsonObject) => Buffer[] {
  const next = requests.nodesInTurn(nodes);
  return (count, further) =>
    Array.from({ length: count }, () => {
      const { node, signedAt } = next();
      return heartbeatRequest(node, signedAt, further);
    });
}

export function renewalRequest(node: FleetNode, further?: JsonObject): Buffer {
  return requests.bytesOf(requests.renewalRequest(node, further), SITE);
}

export function heartbeatRequest(node: FleetNode, signedAt: number, further?: JsonObject): Buffer {
  return requests.bytesOf(requests.heartbeatRequest(node, signedAt, further), SITE);
}

export function getRequest(path: string): Buffer {
  return requests.bytesOf(requests.getRequest(path), SITE);
}

export function httpRequest(
  method: string,
  path: string,
  headers: { readonly [name: string]: string },
  body = '',
): Buffer {
  const all = { 'Content-Type': 'application/json', ...headers };
  return requests.bytesOf({ method, path, headers: all, body }, SITE);
}
