/** `/`: who this is, how it stands, and where everything is. */

import type { GenesisBlock } from '../protocol/records/genesis.ts';
import type { RouteDescription } from '../protocol/route-description.ts';
import type { Dashboard } from '../protocol/rows/dashboard.ts';
import { ADDRESS_PLACE, addressNote } from './address.ts';
import { browserScript } from './browser-script.ts';
import { emptyState } from './empty-state.ts';
import { fleetLine } from './fleet-section.ts';
import type { HtmlPage } from './frame.ts';
import { renderPage } from './frame.ts';
import { type Content, type Html, html, NO_HTML } from './html.ts';
import { inlineStyle } from './inline-code.ts';
import { POSTURE_STYLE, postureSection } from './posture-section.ts';
import { anchorOf, type RouteGroup, routeGroups } from './reference/route-groups.ts';
import { ADDED_STYLE, CODE_STYLE, FORM_STYLE } from './style.ts';
import { trustTeaser } from './trust-form.ts';
import { idText, timeText } from './values.ts';

const SCRIPT = browserScript('home');

export interface Identity {
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
    }${identitySection(identity, baseUrl)}${trustTeaser(name)}${startsSection(baseUrl)}${addressNote(publicUrl)}${routesSection(routeGroups(routes).map(linksOf))}`,
    style: HOME_STYLE,
    script: SCRIPT,
  });
}

function identityOf(
  { genesis, fingerprint }: Identity,
  baseUrl: string,
): [term: string, value: Content, kind?: 'id'][] {
  const { public_key, valid_from, valid_to } = genesis.network_authority;
  return [
    ['Fingerprint', fingerprint, 'id'],
    ['Authority key', idText(public_key), 'id'],
    ['Root key', idText(genesis.root_public_key), 'id'],
    ['Valid', html`${timeText(valid_from)} to ${timeText(valid_to)}`],
    ['Address', baseUrl, 'id'],
    ['Network version', genesis.network_version],
  ];
}

function startsAt(baseUrl: string) {
  return [
    {
      title: 'Enroll a node',
      lines: [
        `export MESH_URL=${baseUrl}`,
        'mesh-na invite create --role role:client --out token',
        'mesh-na node join --root-key <root key> --token-file token',
        'mesh-na node heartbeat',
      ],
    },
    {
      title: 'Read public documents',
      lines: ['genesis', 'policy', 'crl', 'readyz'].map((path) => `curl -s ${baseUrl}/${path}`),
    },
  ];
}

/** Links pages and documents directly, and routes that a link alone cannot ask to the reference. */
function linksOf({ id, title, note, routes }: RouteGroup) {
  return {
    id,
    title,
    note,
    links: routes.map((route) => {
      const { method, path, summary, query, exampleNeeds } = route;
      const opens =
        method === 'GET' &&
        route.access.match(/public|internal/) &&
        !path.includes('{') &&
        !query?.required?.length &&
        exampleNeeds === undefined;
      const href = opens ? `.${path}` : `./api-reference#${anchorOf(route)}`;
      return { method, path, summary, href };
    }),
  };
}

function identitySection(identity: Identity, baseUrl: string): Html {
  return html`<section aria-labelledby="identity">
<h2 id="identity" class="visually-hidden">Identity</h2>
<dl class="identity">
${identityOf(identity, baseUrl).map(
  ([term, value, kind]) =>
    html`<div><dt>${term}</dt><dd${kind === 'id' ? ID : NO_HTML}><bdi>${value}</bdi></dd></div>`,
)}</dl>
</section>`;
}

const ID = html` class="id"`;

function startsSection(baseUrl: string): Html {
  return html`<section class="section" aria-labelledby="start">
<h2 id="start">Get started</h2>
<div class="starts">
${startsAt(baseUrl).map(
  ({ title, lines }) =>
    html`<div><h3>${title}</h3><pre class="code" tabindex="0" aria-label="${title}">${lines.join('\n')}</pre></div>`,
)}</div>
</section>`;
}

function routesSection(groups: readonly ReturnType<typeof linksOf>[]): Html {
  return html`<section class="section" aria-labelledby="routes">
<h2 id="routes">Pages and routes</h2>
${groups.map(
  ({ id, title, note, links }) => html`<section class="routes" aria-labelledby="routes-${id}">
<div class="routes-head"><h3 id="routes-${id}">${title}</h3><p class="muted small">${note}</p></div>
<ul>
${links.map(
  ({ href, method, path, summary }) =>
    html`<li><a href="${href}"><span class="verb">${method}</span> ${path}</a><span class="what">${summary}</span></li>`,
)}</ul>
</section>`,
)}</section>`;
}

const HOME_STYLE = inlineStyle(`${POSTURE_STYLE}${FORM_STYLE}${CODE_STYLE}${ADDED_STYLE}
.identity { display: grid; padding: 1rem 1.25rem; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); gap: 0.5rem 1.5rem; }
.identity dd { font-size: 0.9375rem; }
.identity dt { font-size: 0.8125rem; color: var(--muted); }
.starts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.25rem; }
.starts > div { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.5rem; align-content: start; }
.routes { display: grid; grid-template-columns: 11rem minmax(0, 1fr); gap: 0.5rem 2rem; padding-top: 0.75rem; border-top: 1px solid var(--line); }
.routes-head { display: grid; gap: 0.25rem; align-content: start; }
.routes ul { padding: 0; list-style: none; columns: 24rem; column-gap: 2rem; }
.routes li { break-inside: avoid; padding-bottom: 0.3125rem; font-size: 0.8125rem; line-height: 1.4; }
.routes li a { display: block; font-family: var(--mono); text-decoration: none; }
.routes li a:hover { text-decoration: underline; }
.routes .verb, .routes .what { color: var(--muted); }
@media (max-width: 48rem) { .routes { grid-template-columns: minmax(0, 1fr); } }
`);
