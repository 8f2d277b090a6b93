/**
 * The frame of all pages: head, navigation, landmarks, and, for those of the service, one style sheet, one script, and a
 * policy that allows nothing from elsewhere and nothing inline. Links are relative, so that pages also work behind a proxy
 * with a path prefix; for that, all routed pages are one segment deep.
 */
import { ownDocument, type PublishedDocument } from '../../protocol/contract/documents.ts';
import { SCRIPT, STYLE } from '../assets.ts';
import { type Html, html, NO_HTML } from './html.ts';

export interface PageParts {
  /** The title of the window; also the heading of the page unless `heading` is set. */
  readonly title: string;
  /** The only `<h1>` of the page: a body starts its headings with `<h2>`. */
  readonly heading?: string;
  /** One sentence below the heading. */
  readonly lede?: string;
  /** A line below the heading. */
  readonly status?: Html;
  /** Path of the route, such as `/dashboard`. */
  readonly path: string;
  /** Relative path from this page to the top of the site, without a trailing slash; `.` by default. */
  readonly top?: string;
  readonly networkName: string;
  /** No element may have a `style` attribute or one with an event handler. */
  readonly body: Html;
  /** Whether scripts send requests or open a WebSocket to this server. */
  readonly connects?: boolean;
}

/** Pages that belong together, and what they are called together. */
export interface NavigationGroup {
  readonly name?: string;
  readonly pages: readonly (readonly [path: string, label: string])[];
}

/** What all pages of a site share. */
export interface Site {
  /** Shown below the name of the network. */
  readonly kind: string;
  readonly navigation: readonly NavigationGroup[];
  /** The rest of the head: styles and scripts. */
  readonly head: Html;
  /** After the navigation. */
  readonly tools: Html;
  readonly footer: string;
  /** The theme that was chosen, if the server knows it. */
  readonly theme?: 'light' | 'dark' | null;
}

const PAGES = [
  ['/', 'Home'],
  ['/trust', 'Trust'],
  ['/dashboard', 'Dashboard'],
  ['/connectome', 'Connectome'],
  ['/atlas', 'Atlas'],
  ['/api-reference', 'API'],
  ['/cli-reference', 'CLI'],
] as const;

/** A rendered page, with the policy that says what it may load. */
export interface HtmlPage {
  readonly document: PublishedDocument;
  readonly contentSecurityPolicy: string;
}

export function renderPage({ connects = false, ...parts }: PageParts): HtmlPage {
  const { top = '.' } = parts;
  const page = framed(parts, {
    kind: 'Network Authority',
    navigation: [{ pages: PAGES }],
    head: head(top),
    tools: html`${searchLink(top)}${THEME_BUTTON}`,
    footer: 'All pages are read-only and load nothing from other sites.',
  });
  return {
    document: ownDocument(page.text),
    contentSecurityPolicy: connects ? `${POLICY}; connect-src 'self'` : POLICY,
  };
}

/** The script is not deferred, so that the chosen theme applies before anything is drawn. */
function head(top: string): Html {
  return html`<link rel="stylesheet" href="${top}${STYLE.path}"><script src="${top}${SCRIPT.path}"></script>`;
}

const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** What a frame encloses; `end` is the last element of the page. */
export type FramedParts = Omit<PageParts, 'connects'> & {
  readonly end?: Html;
};

export function framed(parts: FramedParts, site: Site): Html {
  const { title, networkName, heading = title, lede, status = NO_HTML, body } = parts;
  const { top = '.', end = NO_HTML } = parts;
  const { theme = null } = site;
  return html`<!doctype html>
<html lang="en"${theme === null ? NO_HTML : html` data-theme="${theme}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title} · ${isolate(networkName)}</title>
<link rel="icon" href="data:,">
${site.head}</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header class="top">
<div class="top-row">
<p class="brand"><a href="${top}/">${MARK}<span class="brand-text"><bdi class="brand-name">${networkName}</bdi><span class="brand-kind">${site.kind}</span></span></a></p>
<nav class="pages" aria-label="Pages">
${site.navigation.map(
  ({ name, pages }) =>
    html`<ul${name === undefined ? NO_HTML : html` aria-label="${name}"`}>${pages.map(
      ([path, label]) =>
        html`<li><a href="${top}${path}"${path === parts.path ? CURRENT : NO_HTML}>${label}</a></li>`,
    )}</ul>`,
)}</nav>
${site.tools}
</div>
</header>
<main id="content" tabindex="-1">
<div class="page-head">
<h1><bdi>${heading}</bdi></h1>
${lede === undefined ? '' : html`<p class="lede">${lede}</p>`}${status}</div>
${body}</main>
<footer class="bottom"><p>${site.footer}</p></footer>
${end}</body>
</html>`;
}

const MARK = html`<svg class="mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true"><path d="M12 3 4 17.5h16z"/><circle cx="12" cy="4" r="2.5"/><circle cx="4.5" cy="17.5" r="2.5"/><circle cx="19.5" cy="17.5" r="2.5"/></svg>`;

function searchLink(top: string): Html {
  return html`<a class="tool search-link" href="${top}/search#q" aria-keyshortcuts="/ Control+K">Search<kbd class="needs-js">/</kbd></a>`;
}

const THEME_BUTTON = html`<button class="tool theme needs-js" type="button" aria-label="Switch theme"></button>`;

const CURRENT = html` aria-current="page"`;

/** Isolates text of unknown direction where no element can do it. */
function isolate(text: string): string {
  return `\u2068${text}\u2069`;
}

/**
 * Clients choose the Host header that they send, so pages are not rendered for it. Where no public URL is configured,
 * the page shows this placeholder, and its script replaces it with the address of the page.
 */
export const ADDRESS_PLACE = 'https://authority.example';

/** Names the placeholder, for the script and for readers without scripts. */
export function addressNote(publicUrl: string | null): Html {
  if (publicUrl !== null) return NO_HTML;
  return html`<p class="small muted" data-address="${ADDRESS_PLACE}">Replace ${ADDRESS_PLACE} with the address of this page.</p>`;
}
