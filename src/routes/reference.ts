import { publishedDocument } from '../authority/documents.ts';
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
    handle({ baseUrl, ifNoneMatch }, edge) {
      const document = openApiDocument(edge.routes, edge.settings.genesis.network_name, baseUrl);
      return documentReply(publishedDocument(jsonText(document)), ifNoneMatch);
    },
  },
];
