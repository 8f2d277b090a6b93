/** Pages about the service itself: rendered once, then served from the same bytes. */

import { inSlices } from '../../base/slices.ts';
import { apiReferencePage } from '../../pages/api-reference.ts';
import { cliReferencePage } from '../../pages/cli-reference.ts';
import { homePage } from '../../pages/home.ts';
import type { Dashboard } from '../../protocol/rows/dashboard.ts';
import { type Edge, withAnswer } from '../edge.ts';
import { keyFingerprint } from '../instance.ts';
import { htmlReply } from '../reply.ts';
import { PUBLIC_PAGE, type RouteEntry } from '../route.ts';
import { cachedBySource } from './cached-by-source.ts';
import { currentDocument } from './documents.ts';
import { dashboardIn, keptByEtag } from './published-content.ts';

export const pageRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_PAGE,
    path: '/',
    summary: 'Home page with links to the routes',
    refusals: [],
    handle: (request, edge) =>
      withAnswer(currentDocument('dashboard', request.now, edge), (dashboard) =>
        htmlReply(dashboard === undefined ? homeOf(edge, null) : home(edge, dashboard), request),
      ),
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

const home = keptByEtag((edge, dashboard) => homeOf(edge, dashboardIn(edge, dashboard)));

function homeOf({ settings, routes }: Edge, dashboard: Dashboard | null) {
  const { authorityKeys, publicUrl } = settings;
  const { genesis, current } = authorityKeys;
  return homePage({ genesis, fingerprint: keyFingerprint(current), publicUrl }, routes, dashboard);
}

const apiReference = cachedBySource(({ settings, routes }: Edge) =>
  inSlices(apiReferencePage(routes, settings.genesis.network_name, settings.publicUrl)),
);

const cliReference = cachedBySource(({ settings }: Edge) =>
  cliReferencePage(settings.commands, settings.genesis.network_name),
);
