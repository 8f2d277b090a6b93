/** The part of a page that changes while it is open: the page fetches itself when there is another version. */

import { type Html, html } from './html.ts';

export interface LiveRegion {
  /** The topic of the socket that names versions, or the address of a stream of events. */
  readonly source: string;
  /** Of the document that the page shows, as the messages about it name it; empty if it does not say. */
  readonly version: string;
  /** The least spread of its requests. */
  readonly spreadMs?: number;
  /** The least time between two of its requests. */
  readonly pauseMs?: number;
  /** How often it fetches itself besides, for what changes without another version. */
  readonly everyMs?: number;
}

export function liveRegion(
  { source, version, spreadMs = 0, pauseMs = 0, everyMs = 0 }: LiveRegion,
  content: Html,
): Html {
  return html`<div class="live-region" data-live="${source}" data-version="${version}" data-spread="${spreadMs}" data-pause="${pauseMs}" data-every="${everyMs}">
${content}</div>`;
}

/** The line at the top that says whether the page is live; its space is reserved so that nothing shifts. */
export const LIVE_STATUS = html`<div class="live-line needs-js"><p class="live-status" role="status" data-live-status="waiting">Connecting</p></div>`;

/** Marks a heading that would mislead once the connection is lost. */
export const WHEN_LOST = html`<span data-when-lost hidden></span>`;
