/** `/`: who this is, how it stands, and where everything is. */
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import type { RouteDescription } from '../../protocol/route-description.ts';
import type { Dashboard } from '../../protocol/rows/dashboard.ts';
import { fleetLine } from '../dashboard/fleet-section.ts';
import { postureSection } from '../dashboard/posture-section.ts';
import { anchorOf, type RouteGroup, routeGroups } from '../reference/contents.ts';
import { trustTeaser } from '../trust/form.ts';
import { ADDRESS_PLACE, addressNote, type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Content, type Html, html } from '../ui/html.ts';
import { emptyState } from '../ui/parts.ts';
import { idText, timeText } from '../ui/values.ts';

interface Identity {
  readonly genesis: GenesisBlock;
  /** Of the current authority key, as in `/readyz`. */
  readonly fingerprint: string;
  readonly publicUrl: string | null;
}

/** `dashboard` is null if the authority could not be asked. */
export function homePage(
  identity: Identity,
  routes: readonly RouteDescription[],
  dashboard: Pick<Dashboard, 'posture' | 'fleet'> | null,
): HtmlPage {
  const { genesis, publicUrl } = identity;
  const { network_name: name } = genesis;
  const baseUrl = publicUrl ?? ADDRESS_PLACE;
  return renderPage({
    title: 'Home',
    heading: name,
    lede: 'The authority of this sovereign trust network.',
    path: '/',
    networkName: name,
    body: html`${
      dashboard === null
        ? emptyState('The authority does not answer at the moment.')
        : postureSection(dashboard.posture, fleetLine(dashboard.fleet))
    }${startsSection(baseUrl)}${addressNote(publicUrl)}${identitySection(identity, baseUrl)}${trustTeaser(name)}${routesSection(routeGroups(routes))}`,
  });
}

function identitySection({ genesis, fingerprint }: Identity, baseUrl: string): Html {
  const { public_key, valid_from, valid_to } = genesis.network_authority;
  return html`<section aria-labelledby="identity">
<h2 id="identity" class="visually-hidden">Identity</h2>
<dl class="identity">
${idFact('Fingerprint of the authority key', fingerprint)}${idFact('Authority key', idText(public_key))}${idFact('Root key', idText(genesis.root_public_key))}
<div><dt>Valid</dt><dd><bdi>${timeText(valid_from)} to ${timeText(valid_to)}</bdi></dd></div>
${idFact('Address', baseUrl)}<div><dt>Network version</dt><dd><bdi>${genesis.network_version}</bdi></dd></div>
</dl>
</section>`;
}

function idFact(term: string, value: Content): Html {
  return html`<div><dt>${term}</dt><dd class="id"><bdi>${value}</bdi></dd></div>`;
}

function startsSection(baseUrl: string): Html {
  return html`<section class="section" aria-labelledby="start">
<h2 id="start">Get started</h2>
<div class="starts">
${commandLines('Enroll a node', [
  `export MESH_URL=${baseUrl}`,
  'mesh-na invite create --role role:client --out token',
  'mesh-na node join --root-key <root key> --token-file token',
  'mesh-na node heartbeat',
])}${commandLines(
  'Read public documents',
  ['genesis', 'policy', 'crl', 'readyz'].map((path) => `curl -s ${baseUrl}/${path}`),
)}</div>
</section>`;
}

function commandLines(title: string, lines: readonly string[]): Html {
  return html`<div><h3>${title}</h3><pre class="code" tabindex="0" aria-label="${title}">${lines.join('\n')}</pre></div>`;
}

function routesSection(groups: readonly RouteGroup[]): Html {
  const all = groups.reduce((sum, { routes }) => sum + routes.length, 0);
  return html`<section class="section" aria-labelledby="routes">
<h2 id="routes">Pages and routes</h2>
<details><summary>All ${all}, with what each is for</summary>
${groups.map(
  ({ id, title, note, routes }) => html`<section class="routes" aria-labelledby="routes-${id}">
<div class="routes-head"><h3 id="routes-${id}">${title}</h3><p class="muted small">${note}</p></div>
<ul>${routes.map(routeItem)}</ul>
</section>`,
)}</details></section>`;
}

function routeItem(route: RouteDescription): Html {
  const { method, path, summary } = route;
  const href = opensByLink(route) ? `.${path}` : `./api-reference#${anchorOf(route)}`;
  return html`<li><a href="${href}"><span class="verb">${method}</span> ${path}</a><span class="what">${summary}</span></li>`;
}

/** Pages and documents are linked directly, and routes that a link alone cannot ask to the reference. */
function opensByLink({ method, path, access, query, exampleNeeds }: RouteDescription): boolean {
  return (
    method === 'GET' &&
    /public|internal/.test(access) &&
    !path.includes('{') &&
    !query?.required?.length &&
    exampleNeeds === undefined
  );
}

/** The page for a path that does not exist. */

/** Nobody types deeper paths, but clients may send paths of any depth. */
const DEEPEST = 16;

/** Renders the page once for each depth of a path; null for one that is too deep. */
export function notFoundPages(networkName: string): (path: string) => HtmlPage | null {
  const pages = new Map<number, HtmlPage>();
  return (path) => {
    const depth = path.split('/', DEEPEST + 2).length - 2;
    if (depth >= DEEPEST) return null;
    const page = pages.get(depth) ?? notFoundPage(networkName, depth);
    pages.set(depth, page);
    return page;
  };
}

/** Links climb to the top of the site, so that they also work behind a proxy with a path prefix. */
function notFoundPage(networkName: string, depth: number): HtmlPage {
  const top = depth === 0 ? '.' : Array(depth).fill('..').join('/');
  return renderPage({
    title: 'Page not found',
    lede: 'There is nothing at this address. It may be misspelled, or belong to another version.',
    path: '',
    top,
    networkName,
    body: html`<form class="ask" action="${top}/search" role="search">
<p class="field"><label for="q">Search everything public</label><input id="q" name="q" type="search" placeholder="name, id, path or command" autocomplete="off" spellcheck="false"></p>
<p class="field"><button type="submit">Search</button></p>
</form>
<p>Or start from the <a href="${top}/">home page</a>, the <a href="${top}/dashboard">dashboard</a>, the <a href="${top}/api-reference">API reference</a> or the <a href="${top}/cli-reference">CLI reference</a>.</p>`,
  });
}
