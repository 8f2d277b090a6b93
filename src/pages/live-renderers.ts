/** What live pages show of their documents. */
import type { LiveRenderers } from '../http/live-pages.ts';
import { parseJson } from '../json/parse.ts';
import { connectomeMain } from './connectome.ts';
import { type DashboardDocument, dashboardMain } from './dashboard.ts';
import { type ConnectomeDocument, graphModel } from './graph-model.ts';

/** The documents are what this authority published itself. */
export const LIVE_RENDERERS: LiveRenderers = {
  dashboard: (json) => dashboardMain(parseJson(json) as unknown as DashboardDocument),
  connectome: (json, networkName) =>
    connectomeMain(graphModel(parseJson(json) as unknown as ConnectomeDocument, networkName)),
};
