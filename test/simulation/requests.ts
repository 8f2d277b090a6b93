/** Requests as clients sign them, and the edge's verdicts on them. */

import { sha256Hex } from '../../src/base/crypto/digest.ts';
import { signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { canonicalJson } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import type { KnownAuthorityKeys } from '../../src/edge/auth/known-keys.ts';
import { judgeNode } from '../../src/edge/auth/node.ts';
import {
  judgeOperatorHeaders,
  judgeSignature,
  operatorPayload,
} from '../../src/edge/auth/operator.ts';
import type { SignedRequest } from '../../src/edge/auth/signed-request.ts';
import type { NodeClaim, OperatorClaim } from '../../src/protocol/contract/claims.ts';
import type { GenesisBlock } from '../../src/protocol/records/genesis.ts';
import { signRecord, soleSigner } from '../../src/protocol/records/signed-record.ts';
import { unsignedGenesis } from '../support/unsigned-genesis.ts';
import { type Proof, TOLERANCE } from './model/access.ts';
import type { Tier } from './model/state.ts';

export const ROOT = signer('root');
export const AUTHORITY = signer('authority');
/** The key id of its signatures; later keys use their public key. */
export const FIRST_KEY_ID = 'first-key';
/** The keys that may become the authority's, one after the other. */
export const NEXT_KEYS: readonly Signer[] = Array.from({ length: 8 }, (_, i) =>
  signer(`next ${i}`),
);
export const NETWORK = 'alpha';
export const GENESIS = signedGenesis();

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

function signedGenesis(): GenesisBlock {
  const { signatures: _, ...unsigned } = unsignedGenesis(NETWORK, AUTHORITY.publicKey);
  const { signatures, ...genesis } = signRecord(
    { ...unsigned, root_public_key: ROOT.publicKey },
    soleSigner(ROOT),
  );
  return { ...genesis, signatures: [...signatures] };
}

export function signer(name: string): Signer {
  return signerFromSeed(Buffer.from(sha256Hex(`simulation ${name}`), 'hex'));
}

/** What is wrong with a signature, if anything. */
export type Flaw = 'none' | 'forged' | 'stale' | 'from_the_future' | 'ahead' | 'old';

const SIGNED_AT: Readonly<Record<Flaw, number>> = {
  none: 0,
  forged: 0,
  stale: -TOLERANCE - 1,
  from_the_future: TOLERANCE + 1,
  ahead: TOLERANCE,
  old: -TOLERANCE,
};

/** One stamp per request: a clock reading, a nonce used only once, and the key that it is addressed to. */
export interface Stamp {
  readonly now: number;
  readonly nonce: string;
  readonly audience: string;
  /** The keys as the edge knows them when it checks the request. */
  readonly authorityKeys: Pick<KnownAuthorityKeys, 'audiences'>;
}

export interface OperatorRequest {
  readonly proof: Proof;
  judge(now: number): OperatorClaim;
}

export function signAsOperator(
  operator: Operator,
  path: string,
  body: JsonObject,
  { now, nonce, audience, authorityKeys }: Stamp,
  flaw: Flaw,
): OperatorRequest {
  const signedAt = now + SIGNED_AT[flaw];
  const { keyId } = operator;
  const timestamp = formatInstant(signedAt);
  const request = post(path, body);
  const signer = flaw === 'forged' ? FORGER : operator.key;
  const unsigned = { keyId, timestamp, nonce, signature: '' };
  const text = operatorPayload(unsigned, request, canonicalJson(body), audience);
  const headers = { ...unsigned, signature: signer.sign(text) };
  const settings = {
    keys: new Map(OPERATORS.map(({ keyId: id, key }) => [id, key.publicKey])),
    authorityKeys,
    toleranceMs: TOLERANCE,
    acceptV1: false,
  };
  return {
    proof: { holder: keyId, isGenuine: flaw !== 'forged', signedAt, nonce, audience },
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
        identity: null,
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
  { now, nonce, authorityKeys }: Stamp,
  flaw: Flaw,
): NodeRequest {
  const signedAt = now + SIGNED_AT[flaw];
  const signed = { ...body, timestamp: formatInstant(signedAt), nonce };
  const signature = (flaw === 'forged' ? FORGER : key).sign(canonicalJson(signed));
  const request = { ...post(path, { ...signed, signature }), remoteAddr: '192.0.2.2' };
  const settings = { authorityKeys, toleranceMs: TOLERANCE };
  return {
    proof: {
      holder: key.publicKey,
      isGenuine: flaw !== 'forged',
      signedAt,
      nonce,
      audience: null,
    },
    judge: (at) => judgeNode(key.publicKey, '', { ...request, now: at }, null, NO_BODY, settings),
  };
}

function post(path: string, body: JsonObject): SignedRequest {
  return { method: 'POST', path, query: {}, body };
}

/** Raw bodies are signed only in the header form. */
const NO_BODY = Buffer.alloc(0);
