/** Selective disclosure: commit, nullify, prove, verify [trust-5-6], [trust-5-7], [trust-6-4], [trust-6-5]. */
import Type from 'typebox';
import { SHA256 } from '../../base/crypto/digest.ts';
import { areTexts, isList } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { demand, refuse } from '../../base/refusal.ts';
import * as operations from '../../protocol/api/disclosure.ts';
import { Filled } from '../../protocol/api/scalars.ts';
import { demandPresent } from '../../protocol/api/trust-members.ts';
import { MAX_CAPABILITIES } from '../../protocol/records/bounds.ts';
import {
  CapabilityCommitment,
  CapabilityMembershipProof,
  proveMembership,
  readCapabilityCommitment,
} from '../../protocol/records/capability-disclosure.ts';
import type { Edge } from '../edge.ts';
import { jsonReply, type Reply } from '../reply.ts';
import type { RouteEntry, RouteRequest } from '../route.ts';
import { operationRoutes } from './operations.ts';

export const disclosureRoutes: readonly RouteEntry[] = [
  ...operationRoutes(operations),
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
];

function prove(request: RouteRequest, edge: Edge): Reply {
  const { body, now } = request;
  const { capability, capabilities, prover_sovereign_id: prover } = body;
  const names = ['capability', 'commitment', 'prover_sovereign_id'];
  demandPresent(body, names, 'missing_prove_fields');
  const isBounded = isList(capabilities) && capabilities.length <= MAX_CAPABILITIES;
  demand(isBounded, 'missing_prove_fields', 'invalid_capabilities');
  const commitment =
    readCapabilityCommitment(body.commitment, { now, uuid: edge.runtime.uuid }) ??
    refuse('invalid_commitment', 'invalid_commitment');
  demand(areTexts(capabilities), 'prove_failed', 'invalid_capabilities');
  demand(typeof capability === 'string', 'prove_failed', 'invalid_capability');
  demand(typeof prover === 'string', 'prove_failed', 'invalid_prover_sovereign_id');
  const { commitment_id: commitmentId } = commitment;
  const disclosure = { commitmentId, capability, capabilities, prover };
  const proof = proveMembership(disclosure, edge.runtime.uuid(), now, SHA256);
  return jsonReply(200, jsonText(proof ?? refuse('prove_failed', 'capability_not_in_list')));
}
