import type { LiveTopic } from '../http/live-pages.ts';
import { type Html, html } from './html.ts';

/** The part of a page that is replaced on changes, and the line that says whether it is live. */
export function liveRegion(topic: LiveTopic, content: Html): Html {
  return html`<p class="live-status" role="status" data-live-status="waiting" hidden></p>
<div class="live-region" data-live="${topic}">
${content}</div>
`;
}

export const LIVE_STYLE = `
.live-region { display: contents; }
.live-status { margin: -1.5rem 0 -1rem; font-size: .875rem; color: var(--muted); }
.live-status::before { content: ""; display: inline-block; width: .6em; height: .6em; margin-inline-end: .5em; border-radius: 50%; background: var(--line-strong); }
.live-status[data-live-status="live"]::before { background: var(--ok); }
.live-status[data-live-status="stale"] { color: var(--warn); font-weight: 600; }
.live-status[data-live-status="stale"]::before { background: var(--warn); }
`;
