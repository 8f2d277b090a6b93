/** Signs requests synchronously with a key of the server's kind; the client's own functions are asynchronous. */

import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { canonicalJson } from '../../src/base/json/write.ts';
import type { SigningKey } from '../../src/client/keys.ts';
import * as node from '../../src/client/signing.ts';
import {
  type Agent,
  type DeleteEnvelope,
  type OperatorRequest,
  operatorPayload,
  unsignedDescriptor,
} from '../../src/client/signing.ts';
import type { AgentDescriptor } from '../../src/protocol/records/agent-descriptor.ts';
import { deleteEnvelopeText } from '../../src/protocol/records/node-proof.ts';
import { type SignedRecord, signedText } from '../../src/protocol/records/signed-record.ts';

interface Stamp {
  readonly timestamp: string;
  readonly nonce: string;
}

/** Converts the signer to the form of the client's keys. */
export function asKey(signer: Signer): SigningKey {
  return {
    publicKey: signer.publicKey,
    sign: (bytes) => Buffer.from(signer.sign(bytes), 'base64'),
  };
}

export function signNodeBody(
  body: JsonObject,
  key: Pick<Signer, 'sign'>,
  { timestamp, nonce }: Stamp,
): JsonObject {
  const signed = { ...body, timestamp, nonce };
  return { ...signed, signature: key.sign(node.nodeBodyText(signed)) };
}

export function nodeProofHeader(request: node.NodeRequest, key: Signer): Promise<string> {
  return node.nodeProofHeader(request, asKey(key));
}

export function operatorHeaders(
  request: OperatorRequest,
  key: Pick<Signer, 'sign'>,
  version: 1 | 2 = 2,
): { readonly [name: string]: string } {
  return {
    'X-Admin-Key-Id': request.keyId,
    'X-Admin-Timestamp': request.timestamp,
    'X-Admin-Nonce': request.nonce,
    'X-Admin-Signature': key.sign(version === 1 ? payloadV1(request) : operatorPayload(request)),
  };
}

/** What only clients of others sign. */
function payloadV1({ body, keyId, timestamp, nonce }: OperatorRequest): string {
  return canonicalJson({ body, key_id: keyId, timestamp, nonce });
}

export function signAgentDescriptor(agent: Agent, key: Signer, now: number): AgentDescriptor {
  const descriptor = unsignedDescriptor(agent, key.publicKey, now);
  const signature = { key_id: key.publicKey, sig: key.sign(canonicalJson(descriptor)) };
  return { ...descriptor, signatures: [signature] };
}

export function signDeleteEnvelope(key: Signer, signedAt: string): DeleteEnvelope {
  const signature = key.sign(deleteEnvelopeText(key.publicKey, signedAt));
  return { version: 'v1', signed_at: signedAt, signature };
}

/** The public keys under which the signatures verify, in order. */
export function signersOf(
  record: JsonObject,
  candidates: readonly string[],
): (string | undefined)[] {
  const { signatures } = record as SignedRecord;
  const text = signedText(record);
  return signatures.map(({ sig }) => candidates.find((key) => verifySignature(key, text, sig)));
}
