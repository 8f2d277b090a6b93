/** Names, ids and times as every page shows them. */
import { displayTime } from '../base/timestamp.ts';
import { nameInCell, nameInFull, nameInLink, reference } from './graph-names.ts';
import { type Html, html, NO_HTML } from './html.ts';

/** A link to the page of a sovereign. Relative, like all, so that pages work below a path of a proxy. */
export function sovereignLink(id: string): Html {
  return html`<a href="${sovereignAddress(id)}"${fullText(id, nameInLink)}><bdi>${nameInLink(id)}</bdi></a>`;
}

/** `parameters` begin with an ampersand. */
export function sovereignAddress(id: string, parameters = ''): string {
  return `./sovereign?id=${encodeURIComponent(reference(id))}${parameters}`;
}

/** A link to the page of a treaty that this authority issued. */
export function treatyLink(id: string): Html {
  return html`<a href="./treaty?id=${encodeURIComponent(id)}"${fullText(id)}>${nameInCell(id)}</a>`;
}

/** A link to the page of an attestation that this authority issued. */
export function attestationLink(id: string): Html {
  return html`<a href="./attestation?id=${encodeURIComponent(id)}"${fullText(id)}>${nameInCell(id)}</a>`;
}

/** A link to the agents with the capability. */
export function capabilityLink(tag: string): Html {
  return html`<a href="${capabilityAddress(tag)}"${fullText(tag, nameInLink)}><bdi>${nameInLink(tag)}</bdi></a>`;
}

export function capabilityAddress(tag: string, parameters = ''): string {
  return `./capability?name=${encodeURIComponent(tag)}${parameters}`;
}

const MOST_LISTED = 50;

/** The first of many short texts; `show` renders one. */
export function shortList(texts: readonly string[], show: (text: string) => Html): Html {
  const left = texts.length - MOST_LISTED;
  return html`<ul class="plain">
${texts.slice(0, MOST_LISTED).map(
  (text) => html`<li>${show(text)}</li>
`,
)}${
  left > 0
    ? html`<li class="muted">and ${left} more, which the data has</li>
`
    : ''
}</ul>
`;
}

/** Members of any form, as somebody sent them. */
export function freeForm(members: object): Html {
  if (Object.keys(members).length === 0) return html`<span class="muted">none</span>`;
  return html`<code>${nameInFull(JSON.stringify(members))}</code>`;
}

/** An id or a key, with a button that copies it. */
export function idValue(id: string): Html {
  return html`<span class="id">${idText(id)}</span>`;
}

export function idText(id: string): Html {
  const full = fullText(id);
  return full === NO_HTML ? html`${nameInCell(id)}` : html`<span${full}>${nameInCell(id)}</span>`;
}

/** What is cut is at hand in full. */
function fullText(text: string, shown = nameInCell): Html {
  const full = nameInFull(text);
  return full === shown(text) ? NO_HTML : html` title="${full}"`;
}

/** In UTC; scripts add how far away that is. */
export function timeText(datetime: string): Html {
  return html`<time datetime="${datetime}">${displayTime(datetime)}</time>`;
}

/** To the second: a treaty counts until its last one. */
export function exactTime(instant: string): Html {
  const shown = `${instant.slice(0, 10)} ${instant.slice(11, 19)} UTC`;
  return html`<time datetime="${instant}">${shown}</time>`;
}
