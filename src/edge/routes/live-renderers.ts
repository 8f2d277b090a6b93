/** The content of live pages, which the pages themselves show too. */

import { connectomeMain } from '../../pages/connectome.ts';
import { dashboardMain } from '../../pages/dashboard.ts';
import type { DrawnGraph } from '../../pages/graph-drawing.ts';
import { LivePageContent } from '../../pages/live-content.ts';
import { type LiveRenderers, withAnswer } from '../edge.ts';
import { dashboardIn, graphIn, keptByEtag } from './published-content.ts';
import { cachedBySource } from './shared-build.ts';

export const dashboardContent = keptByEtag(
  (edge, document) => new LivePageContent(dashboardMain(dashboardIn(edge, document))),
);

export const connectomeContent = cachedBySource(
  (graph: DrawnGraph) => new LivePageContent(connectomeMain(graph)),
);

export const LIVE_RENDERERS: LiveRenderers = {
  dashboard: dashboardContent,
  connectome: (edge, document) => withAnswer(graphIn(edge, document), connectomeContent),
};
