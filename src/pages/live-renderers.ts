/** Renderers from documents to live pages. */
import type { LiveRenderers } from '../http/live-pages.ts';
import { parseJson } from '../json/parse.ts';
import type { Dashboard } from '../views/rows/dashboard.ts';
import type { Connectome } from '../views/rows/graph.ts';
import { connectomeMain } from './connectome.ts';
import { dashboardMain } from './dashboard.ts';
import { graphModel } from './graph-model.ts';

/** The documents are this authority's own. */
export const LIVE_RENDERERS: LiveRenderers = {
  dashboard: (json) => dashboardMain(parseJson(json) as unknown as Dashboard).text,
  connectome: (json, networkName) =>
    connectomeMain(graphModel(parseJson(json) as unknown as Connectome, networkName)).text,
};
