import { publishedDocument } from '../authority/documents.ts';
import { keptByBaseUrl } from '../http/kept.ts';
import { documentReply } from '../http/reply.ts';
import type { Route } from '../http/route.ts';
import { jsonText } from '../json/write.ts';
import { openApiDocument } from '../views/openapi.ts';

export const referenceRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/swagger.json',
    access: 'public',
    limit: 'none',
    summary: 'This HTTP surface as OpenAPI 3.0.3',
    answer: { contentType: 'application/json' },
    refusals: [],
    handle: (request, edge) => documentReply(descriptionOf(edge, request.baseUrl), request),
  },
];

const descriptionOf = keptByBaseUrl(({ routes, settings }, baseUrl) =>
  publishedDocument(jsonText(openApiDocument(routes, settings.genesis.network_name, baseUrl))),
);
