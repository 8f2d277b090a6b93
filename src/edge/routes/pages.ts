/** Pages about the service itself: rendered once, then served from the same bytes. */

import { inSlices } from '../../base/slices.ts';
import { apiReferencePage } from '../../pages/api-reference.ts';
import { cliReferencePage } from '../../pages/cli-reference.ts';
import { homePage } from '../../pages/home.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { type Edge, withAnswer } from '../edge.ts';
import { htmlReply } from '../reply.ts';
import { PUBLIC_PAGE, type RouteEntry } from '../route.ts';
import { cachedBySource } from './cached-by-source.ts';

export const pageRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_PAGE,
    path: '/',
    summary: 'Home page with links to the routes',
    refusals: [],
    handle: (request, edge) => htmlReply(home(edge), request),
  },
  {
    ...PUBLIC_PAGE,
    path: '/api-reference',
    summary: 'This HTTP surface to read',
    refusals: [],
    handle: (request, edge) => withAnswer(apiReference(edge), (page) => htmlReply(page, request)),
  },
  {
    ...PUBLIC_PAGE,
    path: '/cli-reference',
    summary: 'The commands of mesh-na to read',
    refusals: [],
    handle: (request, edge) => htmlReply(cliReference(edge), request),
  },
];

const homePages = cachedBySource(({ settings, routes }: Edge) =>
  cachedBySource((genesis: GenesisBlock) => homePage(genesis, routes, settings.publicUrl)),
);

function home(edge: Edge) {
  return homePages(edge)(edge.settings.authorityKeys.genesis);
}

const apiReference = cachedBySource(({ settings, routes }: Edge) =>
  inSlices(apiReferencePage(routes, settings.genesis.network_name, settings.publicUrl)),
);

const cliReference = cachedBySource(({ settings }: Edge) =>
  cliReferencePage(settings.commands, settings.genesis.network_name),
);
