/** `/`: introduces this network, its pages and routes, and how to get started. */

import type { GenesisBlock } from '../protocol/records/genesis.ts';
import type { RouteDescription } from '../protocol/route-description.ts';
import { ADDRESS_PLACE, addressNote } from './address.ts';
import { browserScript } from './browser-script.ts';
import { FORM_STYLE } from './form-style.ts';
import type { HtmlPage } from './frame.ts';
import { renderPage } from './frame.ts';
import { type Content, type Html, html, NO_HTML } from './html.ts';
import { inlineCode } from './inline-code.ts';
import { anchorOf, isPage, type RouteGroup, routeGroups } from './reference/route-groups.ts';
import { trustTeaser } from './trust-form.ts';
import { timeText } from './values.ts';

const SCRIPT = browserScript('home');

export function homePage(
  genesis: GenesisBlock,
  routes: readonly RouteDescription[],
  publicUrl: string | null,
): HtmlPage {
  const { network_name: name } = genesis;
  const baseUrl = publicUrl ?? ADDRESS_PLACE;
  const groups = routeGroups(routes.filter((route) => !isPage(route))).map(linksOf);
  return renderPage({
    title: 'Home',
    heading: name,
    lede: 'The authority of this sovereign trust network: it enrolls nodes, tracks their liveness, renews and revokes their certificates, and publishes whom the network recognizes.',
    path: '/',
    networkName: name,
    body: html`${trustTeaser(name)}${identitySection(genesis, baseUrl)}${VIEWS_SECTION}${startsSection(baseUrl)}${addressNote(publicUrl)}${routesSection(groups)}`,
    style: HOME_STYLE,
    forms: true,
    script: SCRIPT,
  });
}

function identityOf(
  { network_name, network_authority, ...genesis }: GenesisBlock,
  baseUrl: string,
): [term: string, value: Content, kind?: 'id'][] {
  const { public_key, valid_from, valid_to } = network_authority;
  return [
    ['Sovereign', network_name],
    ['Authority key', public_key, 'id'],
    ['Network version', genesis.network_version],
    ['Root key', genesis.root_public_key, 'id'],
    ['Address', baseUrl, 'id'],
    ['Authority valid', html`${timeText(valid_from)} to ${timeText(valid_to)}`],
  ];
}

const VIEWS = [
  [
    './trust',
    'Trust',
    'Why one sovereign trusts another: through whom, until when, and what would change it.',
  ],
  ['./dashboard', 'Dashboard', 'Readiness, nodes, treaties at risk, and what changed last.'],
  ['./connectome', 'Connectome', 'Who recognizes whom, what is revoked, and whom that affects.'],
  ['./atlas', 'Atlas', 'Explore the recognition graph and its evidence.'],
  ['./capability', 'Capabilities', 'Which agents have a capability, and how to reach them.'],
  ['./api-reference', 'API reference', 'Every route: fields, limits and refusals.'],
  ['./cli-reference', 'CLI reference', 'Every command: options and examples.'],
  ['./swagger.json', 'OpenAPI', 'Machine-readable description of the same routes.'],
] as const;

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
      title: 'Operate the network',
      lines: [
        `export MESH_URL=${baseUrl}`,
        'mesh-na node list',
        'mesh-na certificate revoke <certificate> --reason key_compromise',
        'mesh-na treaty list',
      ],
    },
    {
      title: 'Read public documents',
      lines: ['genesis', 'policy', 'crl'].map((document) => `curl -s ${baseUrl}/${document}`),
    },
    {
      title: 'Check its health',
      lines: ['readyz', 'health', 'metrics'].map((path) => `curl -s ${baseUrl}/${path}`),
    },
  ];
}

/** Links pages and documents directly, and other routes to the reference. */
function linksOf({ id, title, note, routes }: RouteGroup) {
  return {
    id,
    title,
    note,
    links: routes.map((route) => {
      const { method, path, summary } = route;
      const opens =
        method === 'GET' && route.access.match(/public|internal/) && !path.includes('{');
      const href = opens ? `.${path}` : `./api-reference#${anchorOf(route)}`;
      return { method, path, summary, href };
    }),
  };
}

function identitySection(genesis: GenesisBlock, baseUrl: string): Html {
  return html`<section class="section" aria-labelledby="identity">
<h2 id="identity">Identity</h2>
<dl class="card identity">
${identityOf(genesis, baseUrl).map(
  ([
    term,
    value,
    kind,
  ]) => html`<div><dt>${term}</dt><dd${kind === 'id' ? ID : NO_HTML}><bdi>${value}</bdi></dd></div>
`,
)}</dl>
</section>
`;
}

const ID = html` class="id"`;

const VIEWS_SECTION = html`<section class="section" aria-labelledby="views">
<h2 id="views">Where to look</h2>
<ul class="cards wide views">
${VIEWS.map(
  ([
    href,
    title,
    text,
  ]) => html`<li class="card"><a href="${href}">${title}</a><p class="card-note">${text}</p></li>
`,
)}</ul>
</section>
`;

function startsSection(baseUrl: string): Html {
  return html`<section class="section" aria-labelledby="start">
<h2 id="start">Get started</h2>
<div class="starts">
${startsAt(baseUrl).map(
  ({
    title,
    lines,
  }) => html`<div><h3>${title}</h3><pre class="code" tabindex="0" aria-label="${title}">${lines.join('\n')}</pre></div>
`,
)}</div>
</section>
`;
}

function routesSection(groups: readonly ReturnType<typeof linksOf>[]): Html {
  return html`<section class="section" aria-labelledby="routes">
<h2 id="routes">Routes</h2>
${groups.map(
  ({ id, title, note, links }) => html`<section class="routes" aria-labelledby="routes-${id}">
<div class="routes-head"><h3 id="routes-${id}">${title}</h3><p class="muted small">${note}</p></div>
<ul>
${links.map(
  ({
    href,
    method,
    path,
    summary,
  }) => html`<li><a href="${href}"><span class="verb">${method}</span> ${path}</a><span class="what">${summary}</span></li>
`,
)}</ul>
</section>
`,
)}</section>
`;
}

const HOME_STYLE = inlineCode(`${FORM_STYLE}
.identity { grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); gap: 0.875rem 2rem; padding: 1.25rem; }
.identity dt { font-size: 0.8125rem; color: var(--muted); }
.views .card a { font-weight: 600; }
.views .card { position: relative; }
.views .card a::after { content: ""; position: absolute; inset: 0; border-radius: var(--radius); }
.views .card:hover { border-color: var(--line-strong); }
.starts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.25rem; }
.starts > div { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.5rem; align-content: start; }
.routes { display: grid; grid-template-columns: 14rem minmax(0, 1fr); gap: 0.5rem 2rem; padding-top: 1.25rem; border-top: 1px solid var(--line); }
.routes-head { display: grid; gap: 0.25rem; align-content: start; }
.routes ul { padding: 0; list-style: none; display: grid; gap: 0.375rem; }
.routes li { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 6fr); gap: 0 1.25rem; font-size: 0.9375rem; align-items: baseline; }
.routes li a { font-family: var(--mono); font-size: 0.8125rem; text-decoration: none; }
.routes li a:hover { text-decoration: underline; }
.routes .verb { color: var(--muted); }
.routes .what { color: var(--muted); font-size: 0.875rem; }
@media (max-width: 60rem) { .routes { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 36rem) {
  .routes li { grid-template-columns: minmax(0, 1fr); }
  .identity { grid-template-columns: minmax(0, 1fr); }
}
`);
