/** The dashboard as a page, with the history of the asked time. */
import { HOUR_MS } from '../../base/duration.ts';
import { dashboardPage } from '../../pages/dashboard/dashboard.ts';
import {
  DRAWN_SERIES,
  drawnHistory,
  HISTORY_RANGES,
  type HistoryRange,
  type HistoryView,
} from '../../pages/dashboard/history-section.ts';
import type { HtmlPage } from '../../pages/ui/frame.ts';
import { historyQuestion } from '../../protocol/api/health.ts';
import { HISTORY_RANGE_NAMES } from '../../protocol/api/pages.ts';
import { type PublishedDocument, versionOf } from '../../protocol/contract/documents.ts';
import type { History } from '../../protocol/rows/history.ts';
import { withDocument } from '../documents/documents.ts';
import { cachedBySource } from '../documents/shared-build.ts';
import type { Edge } from '../edge.ts';
import type { EdgeParts } from '../operations/operations.ts';
import { htmlReply } from '../reply.ts';
import { dashboardIn, networkOf } from './published-content.ts';

/** How old a drawn history may be, in milliseconds. */
const FRESH_MS = 2000;

export const dashboardParts = {
  showDashboard: {
    answer: ({ range: named, numbers }, request, edge) =>
      withDocument('dashboard', request, edge, async (document) => {
        const asked = HISTORY_RANGE_NAMES.find((name) => name === named);
        const range = asked ?? '24h';
        const view = { range, isTrimmed: asked === undefined, hasNumbers: numbers === 'shown' };
        const history = await historyOf(edge, range, request.now);
        return htmlReply(pageOf(edge, document, view, history), request);
      }),
  },
} satisfies EdgeParts;

interface Asked {
  readonly at: number;
  /** Null if there was no answer. */
  readonly text: Promise<string | null>;
}

/** The last question for each range, whose answer all viewers who ask meanwhile share. */
const asked = cachedBySource((_edge: Edge) => new Map<HistoryRange, Asked>());

function historyOf(edge: Edge, range: HistoryRange, now: number): Promise<string | null> {
  const known = asked(edge).get(range);
  if (known !== undefined && Math.abs(now - known.at) < FRESH_MS) return known.text;
  const text = readHistory(edge, range, now);
  asked(edge).set(range, { at: now, text });
  return text;
}

async function readHistory(edge: Edge, range: HistoryRange, now: number): Promise<string | null> {
  const { hours, step } = HISTORY_RANGES[range];
  const question = historyQuestion(DRAWN_SERIES, now - hours * HOUR_MS, now, step);
  const answer = await edge.call('readHistory', question);
  return answer.ok ? answer.json : null;
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
  const name = `${view.range} ${view.isTrimmed} ${view.hasNumbers}`;
  const known = rendered(edge).get(name);
  if (known?.etag === etag && known.history === history) return known.page;
  const drawn = drawnHistory(view, history === null ? null : (JSON.parse(history) as History));
  const page = dashboardPage(dashboardIn(document), versionOf(etag), drawn, networkOf(edge));
  rendered(edge).set(name, { etag, history, page });
  return page;
}
