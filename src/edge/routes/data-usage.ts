/**
 * Data usage: license policy, access intent, verification [trust-5-10], [trust-5-11], [trust-6-7],
 * [trust-6-8].
 */
import Type from 'typebox';
import { IntentVerdict } from '../../protocol/answers/verdicts.ts';
import { createLicensePolicy, declareIntent } from '../../protocol/api/data-usage.ts';
import { demandPresent, Keys } from '../../protocol/api/trust-members.ts';
import { DataAccessIntent, DataLicensePolicy } from '../../protocol/records/data-usage.ts';
import { judgeIntent } from '../../protocol/verification.ts';
import { documentReply, refusalReply } from '../reply.ts';
import type { RouteEntry } from '../route.ts';
import { currentDocument } from './documents.ts';
import { operationRoutes } from './operations.ts';
import { verificationRoute } from './verification-route.ts';

export const dataUsageRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/data-usage/policy',
    access: 'public',
    limit: 'POLICY_READ',
    hasEtag: true,
    summary: 'Data-license policy in force',
    description: 'Kept in process memory only: after a restart there is none.',
    answer: DataLicensePolicy,
    refusals: ['no_policy'],
    async handle(request, edge) {
      const policy = await currentDocument('data_license_policy', request.now, edge);
      if (policy === undefined) return refusalReply('no_policy');
      return documentReply(policy, request);
    },
  },
  ...operationRoutes({ createLicensePolicy, declareIntent }),
  verificationRoute({
    path: '/data-usage/verify',
    summary: 'Verify an access intent against a license policy',
    description: "The policy's own signature, and who is licensed by it, are not examined.",
    body: Type.Object({
      intent: DataAccessIntent,
      policy: DataLicensePolicy,
      agent_public_keys: Keys,
    }),
    answer: IntentVerdict,
    refusals: ['missing_verify_fields', 'invalid_input'],
    event: 'data_access_intent_verified',
    judge(body, by) {
      demandPresent(body, ['intent', 'policy'], 'missing_verify_fields');
      const { verdict, intentId } = judgeIntent(body, by);
      const { valid, violation_count } = verdict;
      return { verdict, logged: { intent_id: intentId, valid, violation_count } };
    },
  }),
];
