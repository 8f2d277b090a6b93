/** Selective disclosure: commit, nullify, prove, verify [trust-5-6], [trust-5-7], [trust-6-4], [trust-6-5]. */
import Type from 'typebox';
import { SHA256 } from '../../base/crypto/digest.ts';
import { areTexts, isList, type JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { demand, refuse } from '../../base/refusal.ts';
import { DisclosureVerdict } from '../../protocol/answers/verdicts.ts';
import { Filled } from '../../protocol/api/scalars.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import { AgreementRecord, readAgreementRecord } from '../../protocol/records/agreement.ts';
import { MAX_CAPABILITIES } from '../../protocol/records/bounds.ts';
import {
  CapabilityCommitment,
  CapabilityMembershipProof,
  CapabilityNullifier,
  proveMembership,
  readCapabilityCommitment,
  readCapabilityMembershipProof,
} from '../../protocol/records/capability-disclosure.ts';
import type { Fresh } from '../../protocol/records/record.ts';
import { judgeMembership } from '../../protocol/verification.ts';
import type { Edge } from '../edge.ts';
import { jsonReply, type Reply } from '../reply.ts';
import type { RouteEntry, RouteRequest } from '../route.ts';
import {
  Capabilities,
  demandPresent,
  freshFor,
  isCapabilityList,
  Keys,
  recordRoute,
} from './trust-requests.ts';
import { logging, verificationRoute } from './verification-route.ts';

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
  verificationRoute({
    path: '/disclosure/verify',
    summary: 'Verify that a capability was committed to',
    body: Type.Object({
      proof: CapabilityMembershipProof,
      commitment: CapabilityCommitment,
      issuer_public_keys: Keys,
    }),
    answer: DisclosureVerdict,
    refusals: ['missing_verify_fields', 'invalid_input'],
    event: 'capability_proof_verified',
    judge(body, by) {
      demandPresent(body, ['proof', 'commitment'], 'missing_verify_fields');
      return logging(judgeMembership(body, by), 'commitment_id', 'valid');
    },
  }),
];

function commitInput(body: JsonObject, fresh: Fresh): CallInput<'commitCapabilities'> {
  const { capabilities } = body;
  const isThere = isCapabilityList(capabilities);
  demand(isThere, 'missing_commit_fields', 'invalid_capabilities');
  demandPresent(body, ['agreement'], 'missing_commit_fields');
  const read = readAgreementRecord(body.agreement, fresh);
  const agreement = read ?? refuse('missing_commit_fields', 'invalid_agreement');
  demand(areTexts(capabilities), 'commit_failed', 'invalid_capabilities');
  return { agreement, capabilities };
}

function nullifierInput(body: JsonObject, fresh: Fresh): CallInput<'nullifyProof'> {
  demandPresent(body, ['proof'], 'missing_proof');
  return (
    readCapabilityMembershipProof(body.proof, fresh) ?? refuse('missing_proof', 'invalid_proof')
  );
}

function prove(request: RouteRequest, edge: Edge): Reply {
  const { body, now } = request;
  const { capability, capabilities, prover_sovereign_id: prover } = body;
  const names = ['capability', 'commitment', 'prover_sovereign_id'];
  demandPresent(body, names, 'missing_prove_fields');
  const isBounded = isList(capabilities) && capabilities.length <= MAX_CAPABILITIES;
  demand(isBounded, 'missing_prove_fields', 'invalid_capabilities');
  const commitment =
    readCapabilityCommitment(body.commitment, freshFor(request, edge)) ??
    refuse('invalid_commitment', 'invalid_commitment');
  demand(areTexts(capabilities), 'prove_failed', 'invalid_capabilities');
  demand(typeof capability === 'string', 'prove_failed', 'invalid_capability');
  demand(typeof prover === 'string', 'prove_failed', 'invalid_prover_sovereign_id');
  const { commitment_id: commitmentId } = commitment;
  const disclosure = { commitmentId, capability, capabilities, prover };
  const proof = proveMembership(disclosure, edge.runtime.uuid(), now, SHA256);
  return jsonReply(200, jsonText(proof ?? refuse('prove_failed', 'capability_not_in_list')));
}
