/** The keys of the authority [authority-keys-9]. */
import * as operations from '../../protocol/api/authority-keys.ts';
import { AuthorityKeys } from '../../protocol/records/authority-chain.ts';
import { PUBLIC_DOCUMENT, type RouteEntry } from '../route.ts';
import { serveDocument } from './documents.ts';
import { operationRoutes } from './operations.ts';

export const authorityKeyRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_DOCUMENT,
    path: '/authority-keys',
    summary: 'The keys of the authority, and the statements by which they replaced each other',
    answer: AuthorityKeys,
    refusals: [],
    handle: (request, edge) => serveDocument('authority_keys', request, edge),
  },
  ...operationRoutes(operations),
];
