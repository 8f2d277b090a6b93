import { openApiText } from '../../pages/reference/openapi.ts';
import { addressedDocument } from '../addressed-document.ts';
import type { Edge } from '../edge.ts';
import { addressedReply } from '../reply.ts';
import { PUBLIC_DOCUMENT, type RouteEntry } from '../route.ts';
import { cachedBySource } from './cached-by-source.ts';

export const referenceRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_DOCUMENT,
    path: '/swagger.json',
    summary: 'This HTTP surface as OpenAPI 3.0.3',
    answer: { contentType: 'application/json' },
    refusals: [],
    handle: (request, edge) => addressedReply(description(edge), request.baseUrl, request),
  },
];

const description = cachedBySource(({ routes, settings }: Edge) =>
  addressedDocument(openApiText(routes, settings.genesis.network_name)),
);
