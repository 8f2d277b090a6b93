import { openApiText } from '../../pages/reference/openapi.ts';
import { addressedDocument } from '../addressed-document.ts';
import { oncePerEdge } from '../edge.ts';
import { addressedReply } from '../reply.ts';
import type { RouteEntry } from '../route.ts';

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
