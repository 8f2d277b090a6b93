/** Selective disclosure: commit, nullify, prove, verify [trust-5-6], [trust-5-7], [trust-6-4], [trust-6-5]. */
import Type from 'typebox';
import { SHA256 } from '../../base/crypto/digest.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { DisclosureVerdict } from '../../protocol/answers/verdicts.ts';
import type { Taken } from '../../protocol/contract/calls.ts';
import { AgreementRecord, readAgreementRecord } from '../../protocol/records/agreement.ts';
import { MAX_CAPABILITIES } from '../../protocol/records/bounds.ts';
import {
  CapabilityCommitment,
  CapabilityMembershipProof,
  CapabilityNullifier,
  proveMembership,
  readCapabilityCommitment,
  readCapabilityMembershipProof,
  verifyMembership,
} from '../../protocol/records/capability-disclosure.ts';
import type { Fresh } from '../../protocol/records/record.ts';
import type { Edge } from '../edge.ts';
import { jsonReply, type Reply } from '../reply.ts';
import type { RouteEntry, RouteRequest } from '../route.ts';
import { recordRoute } from './record-route.ts';
import { Filled } from './scalars.ts';
import {
  areTexts,
  candidateKeys,
  demand,
  demandPresent,
  embedded,
  freshFor,
  isCapabilityList,
  isList,
  refuse,
} from './trust-members.ts';
import { Capabilities, Keys } from './trust-schemas.ts';
import { verdictReply } from './verdict.ts';

const EXAMPLE_PROOF = proveMembership(
  {
    commitmentId: 'commitment-1',
    capability: 'read',
    capabilities: ['audit', 'read', 'write'],
    prover: 'beta',
  },
  'proof-1',
  Date.UTC(2026, 0, 15, 12),
  SHA256,
) as JsonObject | null;

export const disclosureRoutes: readonly RouteEntry[] = [
  recordRoute({
    path: '/admin/disclosure/commit',
    summary: 'Commit to a set of capabilities of an agreement',
    body: Type.Object({ capabilities: Capabilities, agreement: AgreementRecord }),
    exampleNeeds: { what: 'an agreement that this authority signed', otherwise: 'commit_failed' },
    answer: CapabilityCommitment,
    refusals: ['missing_commit_fields', 'commit_failed'],
    command: 'commitCapabilities',
    read: commitInput,
  }),
  recordRoute({
    path: '/admin/disclosure/nullifier',
    summary: 'Issue the one nullifier of a membership proof',
    body: Type.Object({ proof: CapabilityMembershipProof }),
    example: { proof: EXAMPLE_PROOF },
    answer: CapabilityNullifier,
    refusals: ['missing_proof', 'nullifier_failed'],
    command: 'nullifyProof',
    read: nullifierInput,
  }),
  {
    method: 'POST',
    path: '/disclosure/prove',
    access: 'public',
    limit: 'VERIFY',
    summary: 'Prove that a capability is in a list',
    description: 'Computed from the request alone: a list that was not committed to fails later.',
    body: Type.Object({
      capability: Filled,
      capabilities: Type.Array(Type.String(), { maxItems: MAX_CAPABILITIES }),
      commitment: CapabilityCommitment,
      prover_sovereign_id: Filled,
    }),
    answer: CapabilityMembershipProof,
    refusals: ['missing_prove_fields', 'invalid_commitment', 'prove_failed'],
    handle: prove,
  },
  {
    method: 'POST',
    path: '/disclosure/verify',
    access: 'public',
    limit: 'VERIFY',
    summary: 'Verify that a capability was committed to',
    body: Type.Object({
      proof: CapabilityMembershipProof,
      commitment: CapabilityCommitment,
      issuer_public_keys: Keys,
    }),
    answer: DisclosureVerdict,
    refusals: ['missing_verify_fields', 'invalid_input'],
    handle: verify,
  },
];

function commitInput(body: JsonObject, fresh: Fresh): Taken<'commitCapabilities'> {
  const { capabilities } = body;
  const isThere = isCapabilityList(capabilities);
  demand(isThere, 'missing_commit_fields', 'invalid_capabilities');
  demandPresent(body, ['agreement'], 'missing_commit_fields');
  const read = readAgreementRecord(body.agreement, fresh);
  const agreement = embedded(read, 'missing_commit_fields', 'invalid_agreement');
  demand(areTexts(capabilities), 'commit_failed', 'invalid_capabilities');
  return { agreement, capabilities };
}

function nullifierInput(body: JsonObject, fresh: Fresh): Taken<'nullifyProof'> {
  demandPresent(body, ['proof'], 'missing_proof');
  return embedded(
    readCapabilityMembershipProof(body.proof, fresh),
    'missing_proof',
    'invalid_proof',
  );
}

function prove(request: RouteRequest, edge: Edge): Reply {
  const { body, now } = request;
  const { capability, capabilities, prover_sovereign_id: prover } = body;
  const names = ['capability', 'commitment', 'prover_sovereign_id'];
  demandPresent(body, names, 'missing_prove_fields');
  const isBounded = isList(capabilities) && capabilities.length <= MAX_CAPABILITIES;
  demand(isBounded, 'missing_prove_fields', 'invalid_capabilities');
  const commitment = readCapabilityCommitment(body.commitment, freshFor(request, edge));
  if (commitment === null) return refuse('invalid_commitment', 'invalid_commitment');
  demand(areTexts(capabilities), 'prove_failed', 'invalid_capabilities');
  demand(typeof capability === 'string', 'prove_failed', 'invalid_capability');
  demand(typeof prover === 'string', 'prove_failed', 'invalid_prover_sovereign_id');
  const { commitment_id: commitmentId } = commitment;
  const disclosure = { commitmentId, capability, capabilities, prover };
  const proof = proveMembership(disclosure, edge.runtime.uuid(), now, SHA256);
  return jsonReply(200, jsonText(embedded(proof, 'prove_failed', 'capability_not_in_list')));
}

function verify(request: RouteRequest, edge: Edge): Reply {
  const { body } = request;
  demandPresent(body, ['proof', 'commitment'], 'missing_verify_fields');
  const fresh = freshFor(request, edge);
  const proof = readCapabilityMembershipProof(body.proof, fresh);
  if (proof === null) return refuse('invalid_input', 'invalid_proof');
  const commitment = readCapabilityCommitment(body.commitment, fresh);
  if (commitment === null) return refuse('invalid_input', 'invalid_commitment');
  const keys = candidateKeys(body.issuer_public_keys, edge, 'invalid_input');
  const reason = verifyMembership(proof, commitment, keys, verifySignature, SHA256);
  const { commitment_id } = commitment;
  const valid = reason === 'valid';
  const answer = { valid, reason, commitment_id };
  return verdictReply(edge, 'capability_proof_verified', answer, { commitment_id, valid });
}
