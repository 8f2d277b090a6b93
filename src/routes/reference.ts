import { addressedDocument } from '../http/addressed-document.ts';
import { oncePerEdge } from '../http/edge.ts';
import { addressedReply } from '../http/reply.ts';
import type { RouteEntry } from '../http/route.ts';
import { openApiText } from '../views/openapi.ts';

export const referenceRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/swagger.json',
    access: 'public',
    limit: 'none',
    hasEtag: true,
    summary: 'This HTTP surface as OpenAPI 3.0.3',
    answer: { contentType: 'application/json' },
    refusals: [],
    handle: (request, edge) => addressedReply(description(edge), request.baseUrl, request),
  },
];

const description = oncePerEdge(({ routes, settings }) =>
  addressedDocument(openApiText(routes, settings.genesis.network_name)),
);
