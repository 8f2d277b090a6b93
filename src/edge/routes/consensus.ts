/** Consensus: vote, assemble, verify [trust-5-8], [trust-5-9], [trust-6-6]. */
import Type from 'typebox';
import { EXAMPLE_KEY } from '../../pages/reference/example.ts';
import { ConsensusVerdict } from '../../protocol/answers/verdicts.ts';
import { assembleConsensus, castVote } from '../../protocol/api/consensus.ts';
import { demandPresent, Keys } from '../../protocol/api/trust-members.ts';
import { MAX_VALIDATORS } from '../../protocol/records/bounds.ts';
import { ConsensusProof } from '../../protocol/records/consensus-proof.ts';
import { judgeConsensus } from '../../protocol/verification.ts';
import type { RouteEntry } from '../route.ts';
import { operationRoutes } from './operations.ts';
import { logging, verificationRoute } from './verification-route.ts';

export const consensusRoutes: readonly RouteEntry[] = [
  ...operationRoutes({ castVote, assembleConsensus }),
  verificationRoute({
    path: '/consensus/verify',
    summary: 'Verify a consensus proof',
    description:
      'Every counted vote must verify under the key given for its validator; each validator counts ' +
      'once; without assembler keys only proofs of this authority are accepted.',
    body: Type.Object({
      proof: ConsensusProof,
      validator_public_keys: Type.Record(Type.String(), Type.String(), {
        minProperties: 1,
        maxProperties: MAX_VALIDATORS,
      }),
      assembler_public_keys: Keys,
    }),
    example: { validator_public_keys: { beta: EXAMPLE_KEY } },
    answer: ConsensusVerdict,
    refusals: ['missing_proof', 'invalid_proof', 'missing_validator_public_keys'],
    event: 'consensus_proof_verified',
    judge(body, by) {
      demandPresent(body, ['proof'], 'missing_proof');
      return logging(judgeConsensus(body, by), 'consensus_id', 'valid');
    },
  }),
];
