/** The part of a page that changes while it is open, with a version that identifies what a viewer has. */

import { sha256Hex } from '../base/crypto/digest.ts';
import type { LIVE_TOPICS } from '../protocol/api/pages.ts';
import { type Html, html, NO_HTML } from './html.ts';

export type LiveTopic = (typeof LIVE_TOPICS)[number];

export interface LiveContent {
  readonly markup: Html;
  readonly version: string;
}

export function liveContent(markup: Html): LiveContent {
  return { markup, version: sha256Hex(markup.text).slice(0, 32) };
}

/** `isView` says that the content has its own URL: it is fetched again some time after each change. */
export function liveRegion(
  topic: LiveTopic,
  { markup, version }: LiveContent,
  isView = false,
): Html {
  return html`<div class="live-region" data-live="${topic}" data-version="${version}"${isView ? VIEW : NO_HTML}>
${markup}</div>`;
}

const VIEW = html` data-view`;

/** The line at the top that says whether the page is live; its space is reserved so that nothing shifts. */
export const LIVE_STATUS = html`<div class="live-line needs-js"><p class="live-status" role="status" data-live-status="waiting">Connecting</p></div>`;

/** Marks a heading that would mislead once the connection is lost. */
export const WHEN_LOST = html`<span data-when-lost hidden></span>`;

/** Once the connection is lost, content turns gray and the line becomes a fixed bar. */
export const LIVE_STYLE = `
.live-region { display: contents; }
.live-line { min-height: 1.35rem; }
.live-status { font-size: .875rem; color: var(--muted); }
.live-status::before { content: ""; display: inline-block; width: .6em; height: .6em; margin-inline-end: .5em; border-radius: 50%; background: var(--line-strong); }
.live-status[data-live-status="live"]::before { background: var(--ok); }
.live-status[data-live-status="stale"] { position: fixed; inset: auto 0 0 0; z-index: 3; padding: .75rem clamp(1rem, 4vw, 2rem); background: var(--warn-soft); color: var(--warn); font-weight: 600; border-top: 2px solid currentColor; }
.live-status[data-live-status="stale"]::before { background: currentColor; }
[data-live-state="stale"] .live-region > * { filter: grayscale(1); }
[data-live-state="stale"] .posture { background: var(--sunken); color: var(--muted); }
`;
