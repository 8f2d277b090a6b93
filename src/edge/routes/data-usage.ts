import { createLicensePolicy, declareIntent } from '../../protocol/api/data-usage.ts';
import { DataLicensePolicy } from '../../protocol/records/data-usage.ts';
import { documentReply, refusalReply } from '../reply.ts';
import type { RouteEntry } from '../route.ts';
import { currentDocument } from './documents.ts';
import { operationRoutes } from './operations.ts';

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
];
