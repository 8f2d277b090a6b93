/** Names, ids and times as every page shows them. */
import { displayTime } from '../views/display-time.ts';
import { atlasLink, nameInCell, nameInFull } from './graph-names.ts';
import { type Html, html, NO_HTML } from './html.ts';

/** A link to a sovereign in the atlas. */
export function sovereignLink(id: string): Html {
  return html`<a href="${atlasLink(id)}#selected"${fullText(id)}><bdi>${nameInCell(id)}</bdi></a>`;
}

export function idText(id: string): Html {
  const full = fullText(id);
  return full === NO_HTML ? html`${nameInCell(id)}` : html`<span${full}>${nameInCell(id)}</span>`;
}

/** What is cut is at hand in full. */
function fullText(text: string): Html {
  const full = nameInFull(text);
  return full === nameInCell(text) ? NO_HTML : html` title="${full}"`;
}

/** In UTC; scripts add how far away that is. */
export function timeText(datetime: string): Html {
  return html`<time datetime="${datetime}">${displayTime(datetime)}</time>`;
}
