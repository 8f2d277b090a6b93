/** Names, ids, words and times as every page shows them. */
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { displayTime } from '../../base/timestamp.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type { EdgeRow } from '../../protocol/rows/graph.ts';
import { type Html, html, NO_HTML } from './html.ts';

/**
 * The name of a sovereign is arbitrary signed text and must not break a page: invisible characters and direction
 * overrides are shown by their code points, and long names are truncated.
 */

/** Controls, formats (direction overrides, joiners), line ends, lone surrogates and private characters. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}]/gu;

/** Maximum lengths for a name in a list, for text in a table, and for the page of a single sovereign. */
const LINK = 48;
const CELL = 96;
const FULL = 600;

export function nameInLink(name: string): string {
  return shortened(visible(name), LINK);
}

export function nameInCell(name: string): string {
  return shortened(visible(name), CELL);
}

export function nameInFull(name: string): string {
  return shortened(visible(name), FULL);
}

export function nameInDrawing(name: string): string {
  return shortened(visible(name), 26);
}

function visible(name: string): string {
  if (name.trim() === '') return `“${name.slice(0, 40)}”`;
  // Longer texts are truncated before any further work.
  const bounded =
    name.length <= 4 * FULL ? name : `${name.slice(0, 2 * FULL)}${name.slice(-2 * FULL)}`;
  return bounded.replace(UNSEEN, numbered);
}

function numbered(character: string): string {
  return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

/** Truncates in the middle: long names often differ at their ends. */
function shortened(text: string, room: number): string {
  if (text.length <= room) return text;
  const characters = [...text];
  if (characters.length <= room) return text;
  const last = Math.floor(room / 3);
  const first = characters.slice(0, room - 1 - last);
  return `${first.join('')}…${characters.slice(-last).join('')}`;
}

/** In URLs, longer names are replaced by a digest. */
const LONGEST_IN_ADDRESS = 512;
/** Encoded, a character has at most nine. */
const SHORT = Math.floor(LONGEST_IN_ADDRESS / 9);

/** Names the sovereign in a query: by its name, or by the digest of a name that is too long. */
export function reference(name: string): string {
  const isShort =
    name.length <= SHORT ||
    (name.length <= LONGEST_IN_ADDRESS && encodeURIComponent(name).length <= LONGEST_IN_ADDRESS);
  return isShort ? name : `sha256:${sha256Hex(name)}`;
}

/** Relative, so that pages work behind a proxy with a path prefix. */
export function atlasLink(name: string): string {
  return `./atlas?sovereign=${encodeURIComponent(reference(name))}`;
}

/** Links to the page of a sovereign. All links are relative, so that pages work behind a proxy with a path prefix. */
export function sovereignLink(id: string): Html {
  return nameLink(sovereignAddress(id), id);
}

export function nameLink(address: string, name: string): Html {
  return html`<a href="${address}"${fullText(name, nameInLink)}><bdi>${nameInLink(name)}</bdi></a>`;
}

/** `parameters` begin with an ampersand. */
export function sovereignAddress(id: string, parameters = ''): string {
  return `./sovereign?id=${encodeURIComponent(reference(id))}${parameters}`;
}

/** The address of the question whether one sovereign trusts another. */
export function trustAddress(from: string, to: string): string {
  const given = Object.entries({ from, to }).filter(([, name]) => name !== '');
  return `./trust?${new URLSearchParams(given)}#answer`;
}

/** A link to the page of a treaty that this authority issued. */
export function treatyLink(id: string): Html {
  return html`<a href="./treaty?id=${encodeURIComponent(id)}">${partsOfId(id)}</a>`;
}

/** A link to the page of an attestation that this authority issued. */
export function attestationLink(id: string): Html {
  return html`<a href="./attestation?id=${encodeURIComponent(id)}">${partsOfId(id)}</a>`;
}

/** A link to the agents with the capability. */
export function capabilityLink(tag: string): Html {
  return nameLink(capabilityAddress(tag), tag);
}

export function capabilityAddress(tag: string, parameters = ''): string {
  return `./capability?name=${encodeURIComponent(tag)}${parameters}`;
}

const MOST_IN_LINE = 12;

/** Lists the first of many links in one line. */
export function linksInLine(texts: readonly string[], link: (text: string) => Html): Html {
  const left = texts.length - MOST_IN_LINE;
  const links = texts
    .slice(0, MOST_IN_LINE)
    .map((text, index) => html`${index > 0 ? ', ' : ''}${link(text)}`);
  return html`<span>${links}${left > 0 ? ` and ${left} more` : ''}</span>`;
}

const MOST_LISTED = 50;

/** Lists the first of many short texts; `show` renders each of them. */
export function shortList(texts: readonly string[], show: (text: string) => Html): Html {
  const left = texts.length - MOST_LISTED;
  return html`<ul class="plain">
${texts.slice(0, MOST_LISTED).map((text) => html`<li>${show(text)}</li>`)}${
  left > 0 ? html`<li class="muted">and ${left} more in the JSON</li>` : ''
}</ul>`;
}

/** Shows free-form members as they were sent. */
export function freeForm(members: JsonObject): Html {
  if (Object.keys(members).length === 0) return html`<span class="muted">none</span>`;
  return html`<code>${nameInFull(jsonText(members))}</code>`;
}

/** Shows an id or a key in full, with a copy button. */
export function idValue(id: string): Html {
  const full = fullText(id, nameInCell);
  return full === NO_HTML
    ? html`<span class="id">${nameInCell(id)}</span>`
    : html`<span class="id"><span${full}>${nameInCell(id)}</span></span>`;
}

/** Shortening would save too little of one that is not longer. */
const LONGEST_ID = 24;

/** Shows an id or a key among others; one element, because narrow tables lay out each. */
export function idText(id: string): Html {
  const parts = partsOfId(id);
  return id.length <= LONGEST_ID ? parts : html`<span>${parts}</span>`;
}

/** The beginning and the end distinguish it. The style hides the middle, which is found and copied with the rest. */
function partsOfId(id: string): Html {
  const seen = [...nameInFull(id)];
  const part = (from: number, to?: number) => seen.slice(from, to).join('');
  if (seen.length <= LONGEST_ID) return html`${part(0)}`;
  return html`${part(0, 11)}<i>${part(11, -6)}</i>${part(-6)}`;
}

/** Truncated text is available in full as its title. */
function fullText(text: string, shown: typeof nameInCell): Html {
  const full = nameInFull(text);
  return full === shown(text) ? NO_HTML : html` title="${full}"`;
}

/** A word of a document, where it stands alone. */
export function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1).replaceAll('_', ' ');
}

/** In UTC; scripts add the relative time. */
export function timeText(datetime: string): Html {
  return html`<time datetime="${datetime}">${displayTime(datetime)}</time>`;
}

/** A sentence in which timestamps are shown as times. */
export function withTimes(sentence: string): Html {
  const parts = sentence.split(/(\d{4}-\d\d-\d\dT[\d:.]+Z)/);
  return html`${parts.map((part, index) => (index % 2 === 1 ? timeText(part) : html`${part}`))}`;
}

/** Shown to the second, because a treaty counts until its last second. */
export function exactTime(instant: string): Html {
  const shown = `${instant.slice(0, 10)} ${instant.slice(11, 19)} UTC`;
  return html`<time datetime="${instant}">${shown}</time>`;
}

/** The key to which a treaty has followed its subject, if it has followed any change. */
export function followedText({ followed_key: key }: EdgeRow): Html {
  return key === undefined ? NO_HTML : html` It follows its subject, to the key ${idText(key)}.`;
}

/** The key of the authority, and since when it is in force; null for the first one. */
export interface KeyInForce {
  readonly current: string;
  readonly since: string | null;
}

/** After a change of the key, records that were issued before are signed again [authority-keys-10]. */
export function signer(
  { issued_by: id, issued_at: issued }: { readonly issued_by: string; readonly issued_at: string },
  { current, since }: KeyInForce,
): Html {
  const isSignedAgain = id === current && since !== null && instantOf(issued) < instantOf(since);
  if (!isSignedAgain) return idValue(id);
  return html`${idValue(id)} <span class="muted">again, since it replaced the key of the first signature at ${timeText(since)}</span>`;
}
