/** Requests as clients sign them, and the verdicts of the edge on them. */

import { sha256Hex } from '../../src/base/crypto/digest.ts';
import { signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { canonicalJson } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { judgeNode } from '../../src/edge/auth/node.ts';
import {
  judgeOperatorHeaders,
  judgeSignature,
  operatorPayload,
} from '../../src/edge/auth/operator.ts';
import type { SignedRequest } from '../../src/edge/auth/signed-request.ts';
import type { NodeClaim, OperatorClaim } from '../../src/protocol/contract/claims.ts';
import { type Proof, TOLERANCE } from './model/access.ts';
import type { Tier } from './model/state.ts';

export const AUTHORITY = signer('authority');
export const NETWORK = 'alpha';

export interface Operator {
  readonly keyId: string;
  readonly tier: Tier;
  readonly key: Signer;
}

export const OPERATORS: readonly Operator[] = [
  { keyId: 'chief', tier: 'privileged', key: signer('chief') },
  { keyId: 'deputy', tier: 'privileged', key: signer('deputy') },
  { keyId: 'clerk', tier: 'standard', key: signer('clerk') },
];
/** Signs correctly, but its key is not configured. */
export const STRANGER: Operator = {
  keyId: 'stranger',
  tier: 'privileged',
  key: signer('stranger'),
};

export const NODES: readonly Signer[] = ['n1', 'n2', 'n3'].map(signer);

export interface Peer {
  readonly name: string;
  readonly key: Signer;
}
export const PEERS: readonly Peer[] = ['beta', 'gamma'].map((name) => ({
  name,
  key: signer(name),
}));

export const FORGER = signer('forger');

function signer(name: string): Signer {
  return signerFromSeed(Buffer.from(sha256Hex(`simulation ${name}`), 'hex'));
}

/** What is wrong with a signature, or nothing. */
export type Flaw = 'none' | 'forged' | 'stale' | 'from_the_future' | 'ahead' | 'old';

const SIGNED_AT: Readonly<Record<Flaw, number>> = {
  none: 0,
  forged: 0,
  stale: -TOLERANCE - 1,
  from_the_future: TOLERANCE + 1,
  ahead: TOLERANCE,
  old: -TOLERANCE,
};

/** One stamp per request: a clock reading and a nonce that comes once. */
export interface Stamp {
  readonly now: number;
  readonly nonce: string;
}

export interface OperatorRequest {
  readonly proof: Proof;
  judge(now: number): OperatorClaim;
}

export function signAsOperator(
  operator: Operator,
  path: string,
  body: JsonObject,
  { now, nonce }: Stamp,
  flaw: Flaw,
): OperatorRequest {
  const signedAt = now + SIGNED_AT[flaw];
  const { keyId } = operator;
  const timestamp = formatInstant(signedAt);
  const request = post(path, body);
  const signer = flaw === 'forged' ? FORGER : operator.key;
  const unsigned = { keyId, timestamp, nonce, signature: '' };
  const text = operatorPayload(unsigned, request, canonicalJson(body), AUTHORITY.publicKey);
  const headers = { ...unsigned, signature: signer.sign(text) };
  const settings = {
    keys: new Map(OPERATORS.map(({ keyId: id, key }) => [id, key.publicKey])),
    authorityKeys: { audiences: [AUTHORITY.publicKey] },
    toleranceMs: TOLERANCE,
    acceptV1: false,
  };
  return {
    proof: { holder: keyId, isGenuine: flaw !== 'forged', signedAt, nonce },
    judge(at) {
      const found = judgeOperatorHeaders(headers, settings, at);
      const { verdict, version } =
        found.verdict === 'valid'
          ? judgeSignature(headers, request, settings)
          : { verdict: found.verdict, version: null };
      return {
        keyId,
        signedAt: found.signedAt,
        nonce,
        verdict,
        signatureVersion: version,
        scope: path,
        remoteAddr: '192.0.2.1',
        sending: null,
      };
    },
  };
}

export interface NodeRequest {
  readonly proof: Proof;
  judge(now: number): NodeClaim;
}

export function signAsNode(
  key: Signer,
  path: string,
  body: JsonObject,
  { now, nonce }: Stamp,
  flaw: Flaw,
): NodeRequest {
  const signedAt = now + SIGNED_AT[flaw];
  const signed = { ...body, timestamp: formatInstant(signedAt), nonce };
  const signature = (flaw === 'forged' ? FORGER : key).sign(canonicalJson(signed));
  const request = { ...post(path, { ...signed, signature }), remoteAddr: '192.0.2.2' };
  const settings = { authorityKeys: { audiences: [AUTHORITY.publicKey] }, toleranceMs: TOLERANCE };
  return {
    proof: { holder: key.publicKey, isGenuine: flaw !== 'forged', signedAt, nonce },
    judge: (at) => judgeNode(key.publicKey, '', { ...request, now: at }, null, NO_BODY, settings),
  };
}

function post(path: string, body: JsonObject): SignedRequest {
  return { method: 'POST', path, query: {}, body };
}

/** Raw bodies are signed in the header form only. */
const NO_BODY = Buffer.alloc(0);
