/** The pages for people, the ends of their live connections, and the description of the API for programs. */
import Type from 'typebox';
import { LIFECYCLE_STATES } from '../rows/recognition.ts';
import { publicAnswer, publicDocument, publicPage } from './define.ts';
import { EVALUATED, EVALUATING, FURTHER_QUESTION } from './graph.ts';
import { type Parameter, pageOf, text, word } from './parameters.ts';

export const showHome = publicPage('GET /', { summary: 'Home page with links to the routes' });

export const showApiReference = publicPage('GET /api-reference', {
  isOwn: true,
  summary: 'The HTTP surface, as a page',
});

export const showCliReference = publicPage('GET /cli-reference', {
  isOwn: true,
  summary: 'The commands of mesh-na, as a page',
});

export const STYLE_TYPE = 'text/css; charset=utf-8';
export const SCRIPT_TYPE = 'text/javascript; charset=utf-8';

/** Named by the digest of its content, so that browsers keep it, and pages cost only what is in them. */
function pageAsset<Path extends string>(
  route: `GET ${Path}`,
  summary: string,
  contentType: string,
) {
  return publicDocument(route, {
    isOwn: true,
    summary,
    exampleNeeds: { what: 'the digest that a page names', otherwise: 'not_found' },
    answer: { contentType },
    refusals: ['not_found'],
  });
}

export const getStyle = pageAsset('GET /assets/{digest}.css', 'The style of the pages', STYLE_TYPE);

export const getScript = pageAsset(
  'GET /assets/{digest}.js',
  'The script of the pages',
  SCRIPT_TYPE,
);

/** The pages that change while they are open. */
export const LIVE_TOPICS = ['dashboard', 'connectome'] as const;
export type LiveTopic = (typeof LIVE_TOPICS)[number];

export const watchPage = publicAnswer('GET /live', {
  usesBaseUrl: true,
  summary: 'WebSocket that says when a live page has another version',
  description: 'For pages of this site only. What is sent to it is ignored.',
  query: { topic: { ...word(LIVE_TOPICS, 'The page'), isRequired: true } },
  exampleNeeds: { what: 'an upgrade to a WebSocket', otherwise: 'upgrade_required' },
  answer: Type.Object({
    topic: Type.String(),
    version: Type.String(),
    spread_ms: Type.Integer({ description: 'How long to wait at most before getting the page' }),
  }),
  refusals: ['upgrade_required', 'unknown_live_topic', 'foreign_origin', 'shutting_down'],
});

/** A parameter that is only read once both sovereigns are named. */
function readLater({ schema }: Parameter): Parameter<null> {
  return { schema, refusal: null, read: () => null };
}

export const showTrust = publicPage('GET /trust', {
  hasErrorPage: true,
  summary: 'Why one sovereign trusts another, as a page',
  description: `The answer of \`GET /connectome/trust-path\` with \`explain=1\` in words. A question counts in the bucket
EXPLAIN, per address.`,
  query: {
    from: { ...text(EVALUATING), alias: 'source' },
    to: { ...text(EVALUATED), alias: 'target' },
    without: readLater(FURTHER_QUESTION.without),
    as_of: readLater(FURTHER_QUESTION.as_of),
  },
  refusals: ['invalid_without', 'invalid_as_of', 'treaty_not_found'],
});

export const HISTORY_RANGE_NAMES = ['1h', '24h', '7d', '90d'] as const;

export const showDashboard = publicPage('GET /dashboard', {
  summary: 'Health, trust and history of this sovereign, as a page',
  query: {
    range: word(HISTORY_RANGE_NAMES, 'How much history to draw', { default: '24h' }),
    numbers: word(['shown'], 'Whether the numbers of the history are shown, too'),
  },
  refusals: ['service_not_ready'],
});

/** The columns by which treaties can be sorted. */
export const TREATY_ORDERS = ['from', 'to', 'state', 'begins', 'ends', 'id'] as const;

export const showConnectome = publicPage('GET /connectome', {
  limit: 'SEARCH',
  summary: 'The recognition graph with its counts, treaties and revocations, as a page',
  query: {
    q: text('Part of the name of either sovereign, or of the id'),
    state: word(LIFECYCLE_STATES, 'Lifecycle state'),
    sort: word(
      TREATY_ORDERS.flatMap((order) => [order, `-${order}`]),
      'Column to sort by; with a minus sign in descending order',
    ),
    page: pageOf('the treaties'),
    blast: pageOf('the imported revocations'),
    material: pageOf('the revoked trust material'),
  },
  refusals: ['service_not_ready'],
});

export const showAtlas = publicPage('GET /atlas', {
  limit: 'SEARCH',
  summary: 'The recognition graph to explore, as a page',
  description: 'A question for a trust path counts in the bucket TRUST_PATH, per address.',
  query: {
    q: text('Part of the names of sovereigns to show'),
    state: word(LIFECYCLE_STATES, 'Lifecycle state that a treaty of theirs must have'),
    sovereign: text('Sovereign to select'),
    from: text('Sovereign that evaluates, for a trust path'),
    to: text('Sovereign that is evaluated'),
  },
  refusals: ['service_not_ready'],
});

export const showTreaty = publicPage('GET /treaty', {
  hasErrorPage: true,
  summary: 'One treaty with its parties, keys, scope and history, as a page',
  query: { id: text('Id of the treaty') },
  refusals: ['treaty_not_found', 'service_not_ready'],
});

export const showSovereign = publicPage('GET /sovereign', {
  limit: 'SEARCH',
  hasErrorPage: true,
  summary: 'One sovereign with its treaties, feed and revocations, as a page',
  query: {
    id: text(
      'Name of the sovereign, this one by default; of a long name `sha256:` and its hex digest',
    ),
    out: pageOf('the treaties that it issued'),
    in: pageOf('the treaties that recognize it'),
    revoked: pageOf('its revoked attestations'),
  },
  refusals: ['not_found', 'service_not_ready'],
});

export const showAttestation = publicPage('GET /attestation', {
  hasErrorPage: true,
  summary: 'One attestation with its subject and history, as a page',
  query: { id: text('Id of the attestation') },
  refusals: ['attestation_not_found'],
});

export const showCapability = publicPage('GET /capability', {
  limit: 'SEARCH',
  hasErrorPage: true,
  summary: 'The agents with a capability, as a page',
  query: {
    name: text('Tag that must match exactly'),
    cursor: text('The place from which the next page begins'),
  },
});

export const search = publicPage('GET /search', {
  limit: 'SEARCH',
  summary: 'Sovereigns, treaties, pages, routes and commands by parts of their names, as a page',
  query: { q: text('Words that must all be in a name, a path or a description') },
  refusals: ['service_not_ready'],
});

export const describeApi = publicDocument('GET /swagger.json', {
  isOwn: true,
  usesBaseUrl: true,
  summary: 'This HTTP surface as OpenAPI 3.0.3',
  answer: { contentType: 'application/json' },
});
