/** Proofs that a capability is in a list, computed from the request alone [trust-6-4]. */
import { SHA256 } from '../../base/crypto/digest.ts';
import { jsonText } from '../../base/json/write.ts';
import { proveMembership } from '../../protocol/records/capability-disclosure.ts';
import { refuse } from '../../protocol/refusals.ts';
import type { EdgeParts } from '../operations/operations.ts';
import { jsonReply } from '../reply.ts';

export const disclosureParts = {
  proveMembership: {
    answer({ capability, capabilities, commitment, prover_sovereign_id: prover }, { now }, edge) {
      const { commitment_id: commitmentId } = commitment;
      const disclosure = { commitmentId, capability, capabilities, prover };
      const proof = proveMembership(disclosure, edge.runtime.uuid(), now, SHA256);
      return jsonReply(200, jsonText(proof ?? refuse('prove_failed', 'capability_not_in_list')));
    },
  },
} satisfies EdgeParts;
