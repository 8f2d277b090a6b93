/** The dashboard as a page: the live content, and the history of the asked time. */
import Type from 'typebox';
import { dashboardPage } from '../../pages/dashboard.ts';
import type { HtmlPage } from '../../pages/frame.ts';
import {
  DRAWN_SERIES,
  drawnHistory,
  HISTORY_RANGES,
  type HistoryRange,
  type HistoryView,
  RANGE_NAMES,
} from '../../pages/history-section.ts';
import type { PublishedDocument } from '../../protocol/contract/documents.ts';
import type { History } from '../../protocol/rows/history.ts';
import type { Edge } from '../edge.ts';
import { firstValue, type Query } from '../query.ts';
import { htmlReply } from '../reply.ts';
import { PUBLIC_PAGE, type RouteEntry } from '../route.ts';
import { questionFor } from './history.ts';
import { dashboardContent, networkOf, withDocument } from './published-content.ts';
import { cachedBySource } from './shared-build.ts';

const HOUR_MS = 3_600_000;
/** How old a drawn history may be, in milliseconds. */
const FRESH_MS = 2000;

export const dashboardRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_PAGE,
    path: '/dashboard',
    query: Type.Object({
      range: Type.Optional(
        Type.Enum([...RANGE_NAMES], { default: '24h', description: 'How much history to draw' }),
      ),
      numbers: Type.Optional(
        Type.Enum(['shown'], { description: 'Whether the numbers of the history are shown, too' }),
      ),
    }),
    summary: 'Health, trust and history of this sovereign, as a page',
    refusals: ['service_not_ready'],
    handle: (request, edge) =>
      withDocument('dashboard', request, edge, async (document) => {
        const view = {
          range: rangeIn(request.query),
          hasNumbers: firstValue(request.query, 'numbers') === 'shown',
        };
        const history = await historyOf(edge, view.range, request.now);
        return htmlReply(pageOf(edge, document, view, history), request);
      }),
  },
];

function rangeIn(query: Query): HistoryRange {
  const asked = firstValue(query, 'range');
  return RANGE_NAMES.find((name) => name === asked) ?? '24h';
}

/** The text of the last answer for each range; null if there was none. */
const kept = cachedBySource(
  (_edge: Edge) => new Map<HistoryRange, { readonly at: number; readonly text: string | null }>(),
);

async function historyOf(edge: Edge, range: HistoryRange, now: number): Promise<string | null> {
  const known = kept(edge).get(range);
  if (known !== undefined && Math.abs(now - known.at) < FRESH_MS) return known.text;
  const { hours, step } = HISTORY_RANGES[range];
  const question = questionFor(DRAWN_SERIES, now - hours * HOUR_MS, now, step);
  const answer = await edge.call('readHistory', question);
  const text = answer.ok ? answer.json : null;
  kept(edge).set(range, { at: now, text });
  return text;
}

interface Rendered {
  readonly etag: string;
  readonly history: string | null;
  readonly page: HtmlPage;
}

const rendered = cachedBySource((_edge: Edge) => new Map<string, Rendered>());

/** Rendered again only if the document or the history has changed. */
function pageOf(
  edge: Edge,
  document: PublishedDocument,
  view: HistoryView,
  history: string | null,
): HtmlPage {
  const { etag } = document;
  const name = `${view.range} ${view.hasNumbers}`;
  const known = rendered(edge).get(name);
  if (known?.etag === etag && known.history === history) return known.page;
  const drawn = drawnHistory(view, history === null ? null : (JSON.parse(history) as History));
  const page = dashboardPage(dashboardContent(edge, document), drawn, networkOf(edge));
  rendered(edge).set(name, { etag, history, page });
  return page;
}
