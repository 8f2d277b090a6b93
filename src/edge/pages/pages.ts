/** Pages about the service itself, rendered once and then served from the same bytes, and the ends of live pages. */

import { keyFingerprint } from '../../base/crypto/digest.ts';
import { inSlices } from '../../base/work.ts';
import { type PageAsset, SCRIPT, STYLE } from '../../pages/assets.ts';
import { apiReferencePage } from '../../pages/reference/api-reference.ts';
import { cliReferencePage } from '../../pages/reference/cli-reference.ts';
import { openApiText } from '../../pages/reference/openapi.ts';
import { homePage } from '../../pages/site/home.ts';
import { searchEntries, searchPage } from '../../pages/site/search.ts';
import { SCRIPT_TYPE, STYLE_TYPE } from '../../protocol/api/pages.ts';
import type { PublishedDocument } from '../../protocol/contract/documents.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Dashboard } from '../../protocol/rows/dashboard.ts';
import { addressedDocument } from '../addressed-document.ts';
import { currentDocument } from '../documents/documents.ts';
import { cachedBySource } from '../documents/shared-build.ts';
import { type Edge, inTurn } from '../edge.ts';
import type { EdgeParts } from '../operations/operations.ts';
import { addressedReply, assetReply, htmlReply, refusalReply } from '../reply.ts';
import type { RouteRequest } from '../request/route.ts';
import { dashboardIn, withGraph } from './published-content.ts';

export const pageParts = {
  showHome: {
    answer: (_asked, request, edge) =>
      inTurn(edge, knownDashboard(request.now, edge), (dashboard) =>
        htmlReply(dashboard === undefined ? homeOf(edge, null) : home(edge)(dashboard), request),
      ),
  },
  showApiReference: {
    answer: (_asked, request, edge) =>
      inTurn(edge, apiReference(edge), (page) => htmlReply(page, request)),
  },
  showCliReference: {
    answer: (_asked, request, edge) => htmlReply(cliReference(edge), request),
  },
  search: {
    answer: ({ q }, request, edge) =>
      withGraph(request, edge, (graph) =>
        htmlReply(searchPage(q ?? '', entriesOf(edge), graph), request),
      ),
  },
  getStyle: assetPart(STYLE, STYLE_TYPE),
  getScript: assetPart(SCRIPT, SCRIPT_TYPE),
  describeApi: {
    answer: (_asked, request, edge) => addressedReply(description(edge), request.baseUrl, request),
  },
  // `edge/http/viewers.ts` handles the upgrade to a WebSocket.
  watchPage: {
    answer: () => refusalReply('upgrade_required', {}, 'Upgrade', 'websocket'),
  },
} satisfies EdgeParts;

/** An instance of another version may have the file that a page of that version names. */
function assetPart({ digest, document }: PageAsset, contentType: string) {
  return {
    answer: (asked: { digest: string }, request: RouteRequest) =>
      asked.digest === digest
        ? assetReply(contentType, document, request)
        : refusalReply('not_found'),
    knows: (params: RouteRequest['params']) => params.digest === digest,
  };
}

/** The home page is shown without a state, too. */
function knownDashboard(now: number, edge: Edge) {
  const dashboard = currentDocument('dashboard', now, edge);
  if (!(dashboard instanceof Promise)) return dashboard;
  return dashboard.catch((cause) => {
    if (cause instanceof Refusal && cause.refusal === 'restore_pending') return undefined;
    throw cause;
  });
}

const home = cachedBySource((edge: Edge) =>
  cachedBySource((dashboard: PublishedDocument) => homeOf(edge, dashboardIn(dashboard))),
);

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

const entriesOf = cachedBySource(({ routes, settings }: Edge) =>
  searchEntries(routes, settings.commands),
);

const description = cachedBySource(({ routes, settings }: Edge) =>
  addressedDocument(openApiText(routes, settings.genesis.network_name)),
);
