/** Agreements: offer, counter, accept, verify [trust-5-1] to [trust-5-3], [trust-6-1]. */
import Type from 'typebox';
import { AgreementVerdict } from '../../protocol/answers/verdicts.ts';
import { acceptAgreement, counterOffer, offerCapabilities } from '../../protocol/api/agreements.ts';
import { demandPresent, Keys } from '../../protocol/api/trust-members.ts';
import { AgreementRecord } from '../../protocol/records/agreement.ts';
import { judgeAgreement } from '../../protocol/verification.ts';
import type { RouteEntry } from '../route.ts';
import { operationRoutes } from './operations.ts';
import { logging, verificationRoute } from './verification-route.ts';

export const agreementRoutes: readonly RouteEntry[] = [
  ...operationRoutes({ offerCapabilities, counterOffer, acceptAgreement }),
  verificationRoute({
    path: '/agreements/verify',
    summary: 'Verify who signed an agreement',
    description: 'Keys left out are those of this authority; neither age nor evidence is judged.',
    body: Type.Object({
      agreement: AgreementRecord,
      offerer_public_keys: Keys,
      responder_public_keys: Keys,
    }),
    answer: AgreementVerdict,
    refusals: ['missing_agreement', 'invalid_agreement'],
    event: 'agreement_verified',
    judge(body, by) {
      demandPresent(body, ['agreement'], 'missing_agreement');
      return logging(judgeAgreement(body, by), 'agreement_id', 'accepted');
    },
  }),
];
