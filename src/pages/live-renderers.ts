/** Renderers from documents to the content of live pages. */
import type { LiveRenderers } from '../http/live-pages.ts';
import { parseJson } from '../json/parse.ts';
import type { Dashboard } from '../views/rows/dashboard.ts';
import type { Connectome } from '../views/rows/graph.ts';
import { connectomeMain } from './connectome.ts';
import { dashboardMain } from './dashboard.ts';
import { graphModel } from './graph-model.ts';
import { LivePageContent } from './live-content.ts';

/** The documents are this authority's own. */
export const LIVE_RENDERERS: LiveRenderers = {
  dashboard: (json) => new LivePageContent(dashboardMain(parseJson(json) as unknown as Dashboard)),
  connectome: (json, networkName) => {
    const document = parseJson(json) as unknown as Connectome;
    return new LivePageContent(connectomeMain(graphModel(document, networkName)));
  },
};
