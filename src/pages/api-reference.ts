/** `/api-reference`: the route table, for people. */
import type { HtmlPage } from '../http/reply.ts';
import type { Access, RouteDescription } from '../http/route-description.ts';
import { REFUSALS, type RefusalName } from '../refusal.ts';
import { ACCESS_REFUSALS, AUTH_HINTS } from '../views/openapi.ts';
import { anchorOf, type RouteGroup, routeGroups } from '../views/route-groups.ts';
import { type Field, fieldsOf, parameterFields } from '../views/schema-fields.ts';
import { FILTER_SCRIPT } from './filter-script.ts';
import { renderPage } from './frame.ts';
import { nothingFits, referenceContents } from './reference-contents.ts';
import { REFERENCE_STYLE } from './reference-style.ts';
import { type Html, joined, template } from './templates.ts';

export function apiReferencePage(
  routes: readonly RouteDescription[],
  networkName: string,
): HtmlPage {
  const groups = routeGroups(routes);
  return renderPage({
    title: 'API reference',
    lede: 'Every route of this authority, from its route table. swagger.json describes the same routes as OpenAPI 3.0.3.',
    path: '/api-reference',
    networkName,
    body: reference({
      contents: referenceContents({ search: 'Search routes', groups: groups.map(contentsOf) }),
      nothingFits,
      groups: groups.map(({ id, title, note, routes: held }) => ({
        id,
        title,
        note,
        entries: joined(held.map(entryOf)),
      })),
    }),
    style: REFERENCE_STYLE,
    script: FILTER_SCRIPT,
  });
}

function contentsOf({ id, title, routes }: RouteGroup) {
  const links = routes.map((route) => ({
    anchor: anchorOf(route),
    mark: route.method,
    label: route.path,
  }));
  return { id, title, links };
}

const reference = template<{
  readonly contents: Html;
  readonly nothingFits: Html;
  readonly groups: readonly {
    readonly id: string;
    readonly title: string;
    readonly note: string;
    readonly entries: Html;
  }[];
}>(`<div class="reference">
<%~ it.contents %>
<div class="entries">
<section aria-labelledby="general">
<h2 id="general">In general</h2>
<dl class="facts">
<dt>Bodies</dt>
<dd>JSON objects in UTF-8. Members that a route does not know are ignored.</dd>
<dt>Refusals</dt>
<dd>The error envelope, <code>{"error": {"code", "message", "details", "request_id"}}</code>. Every answer carries <code>X-Request-ID</code>.</dd>
<dt>Any route</dt>
<dd>404 <code>not_found</code>, 405 <code>method_not_allowed</code>; with a body 400 <code>invalid_json</code>, 400 <code>invalid_json_object</code>, 408 <code>request_timeout</code>, 413 <code>request_entity_too_large</code>; when something is wrong here, 500 <code>internal_server_error</code>.</dd>
<dt>Limits</dt>
<dd>A limit that is reached answers 429 <code>rate_limit_exceeded</code>, with <code>Retry-After</code> in seconds.</dd>
<dt>Caching</dt>
<dd>Public documents and pages carry an <code>ETag</code>, and <code>If-None-Match</code> answers 304. The longer ones come compressed to <code>Accept-Encoding: gzip</code>.</dd>
</dl>
</section>
<%~ it.nothingFits %>
<% for (const group of it.groups) { %>
<section aria-labelledby="<%= group.id %>" data-group>
<div class="section-head"><h2 id="<%= group.id %>"><%= group.title %></h2><p class="muted small"><%= group.note %></p></div>
<%~ group.entries %>
</section>
<% } %>
</div>
</div>
`);

const ACCESS_BADGES: Readonly<Record<Access, readonly [string, string]>> = {
  public: ['public', 'ok'],
  'public-or-operator': ['public, or operator', 'ok'],
  internal: ['internal', 'neutral'],
  node: ['node', 'neutral'],
  operator: ['operator', 'warn'],
  'operator-privileged': ['privileged operator', 'danger'],
};

function entryOf(route: RouteDescription): Html {
  const { method, path, access, limit, summary, description = '' } = route;
  const [accessLabel, accessState] = ACCESS_BADGES[access];
  const [answerType, answer] = answerOf(route);
  const refusals = refusalsOf(route);
  const codes = refusals.map(({ code }) => code).join(' ');
  const fields = requestFields(route);
  return entry({
    anchor: anchorOf(route),
    search: [
      method,
      path,
      summary,
      description,
      accessLabel,
      codes,
      ...fields.map((f) => f.path),
    ].join(' '),
    method,
    path,
    accessLabel,
    accessState,
    summary,
    description,
    facts: [
      ['Access', AUTH_HINTS[access]],
      ['Limit', limit === 'none' ? 'none' : `bucket ${limit}, per address`],
      ['Success', `${successOf(route)}, ${answerType}`],
    ],
    fields,
    answer,
    refusals,
  });
}

function successOf({ created }: RouteDescription): string {
  if (created === undefined) return '200';
  return created === 'always' ? '201' : '200, or 201 where MESH_CREATED_STATUS says so';
}

function answerOf({ answer }: RouteDescription): [string, Field[]] {
  if (!('contentType' in answer)) return ['application/json', fieldsOf(answer)];
  return [String(answer.contentType).split(';')[0] ?? '', []];
}

function requestFields({ path, query, body }: RouteDescription): Field[] {
  return [...parameterFields(path, query), ...fieldsOf(body, 'sent')];
}

function refusalsOf({ refusals, access, limit }: RouteDescription) {
  const limited: readonly RefusalName[] = limit === 'none' ? [] : ['rate_limit_exceeded'];
  const names = new Set([...refusals, ...ACCESS_REFUSALS[access], ...limited]);
  return [...names].map((name) => REFUSALS[name]).sort((a, b) => a.status - b.status);
}

const entry = template<{
  readonly anchor: string;
  readonly search: string;
  readonly method: string;
  readonly path: string;
  readonly accessLabel: string;
  readonly accessState: string;
  readonly summary: string;
  readonly description: string;
  readonly facts: readonly (readonly [string, string])[];
  readonly fields: readonly Field[];
  readonly answer: readonly Field[];
  readonly refusals: readonly {
    readonly status: number;
    readonly code: string;
    readonly message: string;
  }[];
}>(`<% const fieldList = (fields) => { %>
<dl class="fields">
<% for (const field of fields) { %>
<div><dt><code><%= field.path %></code></dt><dd><%= field.type %><% if (field.isRequired) { %> <span class="required">required</span><% } %><% if (field.notes.length > 0) { %> <span class="note">· <%= field.notes.join(' · ') %></span><% } %></dd></div>
<% } %>
</dl>
<% } %>
<article class="entry" id="<%= it.anchor %>" aria-labelledby="<%= it.anchor %>-head" data-entry="<%= it.search %>">
<div class="entry-head"><h3 id="<%= it.anchor %>-head"><a href="#<%= it.anchor %>"><span class="verb"><%= it.method %></span> <%= it.path %></a></h3><span class="badge <%= it.accessState %>"><%= it.accessLabel %></span></div>
<p><%= it.summary %>.<% if (it.description) { %> <span class="muted"><%= it.description %></span><% } %></p>
<dl class="facts">
<% for (const [term, text] of it.facts) { %>
<dt><%= term %></dt><dd><%= text %></dd>
<% } %>
</dl>
<% if (it.fields.length > 0) { %>
<h4>Request</h4>
<% fieldList(it.fields.filter(({ path }) => !/[.[]/.test(path))) %>
<% const members = it.fields.filter(({ path }) => /[.[]/.test(path)); %>
<% if (members.length > 0) { %>
<details><summary>Inside of them: <%= members.length %> field<% if (members.length > 1) { %>s<% } %></summary>
<% fieldList(members) %>
</details>
<% } %>
<% } %>
<% if (it.answer.length > 0) { %>
<details><summary>Answer: <%= it.answer.length %> field<% if (it.answer.length > 1) { %>s<% } %></summary>
<% fieldList(it.answer) %>
</details>
<% } %>
<% if (it.refusals.length > 0) { %>
<details><summary>Refusals: <%= it.refusals.length %></summary>
<dl class="fields">
<% for (const refusal of it.refusals) { %>
<div><dt><%= refusal.status %> <code><%= refusal.code %></code></dt><dd><%= refusal.message %></dd></div>
<% } %>
</dl>
</details>
<% } %>
</article>
`);
