/** `/api-reference`: the route table, for people. */
import { counted } from '../../base/counts.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { visitInSlices } from '../../base/work.ts';
import { REFUSALS, type RefusalName } from '../../protocol/refusals.ts';
import {
  type Access,
  isOperatorRoute,
  type RouteDescription,
  refusalsOf,
} from '../../protocol/route-description.ts';
import { ADDRESS_PLACE, addressNote, type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';
import { folded } from '../ui/parts.ts';
import {
  anchorOf,
  fieldList,
  nothingFits,
  type RouteGroup,
  referenceContents,
  routeGroups,
} from './contents.ts';
import { type CurlContext, curlCommand, signingSetup } from './curl.ts';
import { answerExample, bodyExample } from './example.ts';
import { AUTH_HINTS } from './openapi.ts';
import { type Direction, demandedOf } from './openapi-schemas.ts';

/** The page is the same for all readers: unless a public URL is configured, the browser fills in the address. */
export function* apiReferencePage(
  routes: readonly RouteDescription[],
  networkName: string,
  publicUrl: string | null,
): Generator<void, HtmlPage> {
  const baseUrl = publicUrl?.replaceAll("'", '%27') ?? ADDRESS_PLACE;
  return renderPage({
    title: 'API reference',
    lede: 'Every route of this authority, from its route table. swagger.json describes the same routes as OpenAPI 3.0.3.',
    path: '/api-reference',
    networkName,
    body: html`${addressNote(publicUrl)}${yield* reference(routeGroups(routes), { networkName, baseUrl })}`,
  });
}

function* reference(groups: readonly RouteGroup[], context: CurlContext): Generator<void, Html> {
  const sections: Html[] = [];
  for (const group of groups) sections.push(yield* groupSection(group, context));
  return html`<div class="reference">
${referenceContents('Search routes', groups.map(contentsOf))}<div class="entries">
<section aria-labelledby="general">
<h2 id="general">General</h2>
<dl class="facts">
<dt>Bodies</dt>
<dd>JSON objects in UTF-8. Unknown members are ignored.</dd>
<dt>Refusals</dt>
<dd>The error envelope, <code>{"error": {"code", "message", "details", "request_id"}}</code>. Every answer carries <code>X-Request-ID</code>.</dd>
<dt>Any route</dt>
<dd>404 <code>not_found</code>, 405 <code>method_not_allowed</code>; with a body 400 <code>invalid_json</code>, 400 <code>invalid_json_object</code>, 408 <code>request_timeout</code>, 413 <code>request_entity_too_large</code>; on an internal error, 500 <code>internal_server_error</code>.</dd>
<dt>Limits</dt>
<dd>Requests over a limit are answered 429 <code>rate_limit_exceeded</code>, with <code>Retry-After</code> in seconds.</dd>
<dt>Caching</dt>
<dd>Public documents and pages carry an <code>ETag</code>; a matching <code>If-None-Match</code> is answered 304. Longer ones are compressed for clients that send <code>Accept-Encoding: gzip</code>.</dd>
</dl>
<details><summary>How the examples of operators and nodes are signed</summary>
<div class="example" id="signing">
<p class="small">Operators and nodes sign each request separately, with a fresh timestamp and nonce. Their examples write the text to sign to a file and sign it with <code>openssl</code>, using the functions defined here. <code>docs/signing.md</code>, which ships with the program, explains each step. The key files are in the current folder.</p>
${snippet('Once in a shell', signingSetup(context.baseUrl))}</div>
</details>
</section>
${nothingFits}${sections}</div>
</div>`;
}

/** Each route is one slice: its schemas and its example take about a millisecond. */
function* groupSection(
  { id, title, note, routes }: RouteGroup,
  context: CurlContext,
): Generator<void, Html> {
  const entries: Html[] = [];
  yield* visitInSlices(routes, 1, (route) => entries.push(entry(route, context)));
  return html`<section aria-labelledby="${id}" data-group>
<div class="section-head"><h2 id="${id}">${title}</h2><p class="muted small">${note}</p></div>
${entries}</section>`;
}

function contentsOf({ id, title, routes }: RouteGroup) {
  return { id, title, links: routes.map((route) => [anchorOf(route), nameOf(route)] as const) };
}

function nameOf({ method, path }: RouteDescription): Html {
  return html`<span class="verb">${method}</span> ${path}`;
}

const ACCESS_BADGES: Readonly<Record<Access, readonly [string, string]>> = {
  public: ['public', 'ok'],
  'public-or-operator': ['public, or operator', 'ok'],
  internal: ['internal', 'neutral'],
  node: ['node', 'neutral'],
  operator: ['operator', 'warn'],
  'operator-privileged': ['privileged operator', 'danger'],
};

/** Text between backquotes becomes code. */
function withCode(text: string): Html {
  const pieces = text.split('`');
  return html`${pieces.map((piece, index) => (index % 2 === 0 ? html`${piece}` : html`<code>${piece}</code>`))}`;
}

function entry(route: RouteDescription, context: CurlContext): Html {
  const { access, summary, description } = route;
  const [label, state] = ACCESS_BADGES[access];
  const anchor = anchorOf(route);
  return html`<article class="entry" id="${anchor}" data-entry>
<div class="entry-head"><h3><a href="#${anchor}">${nameOf(route)}</a></h3><span class="badge ${state}">${label}</span></div>
<p>${summary}.${description === undefined ? '' : html` <span class="muted">${withCode(description)}</span>`}</p>
${facts(route)}${request(route)}${answer(route)}${refusals(route)}${example(route, context)}</article>`;
}

function facts(route: RouteDescription): Html {
  const { access, limit } = route;
  return html`<dl class="facts">
<dt>Access<dd>${AUTH_HINTS[access]}
${limit === 'none' ? '' : html`<dt>Limit<dd>bucket ${limit}, per address`}
<dt>Success<dd>${successOf(route)}, ${mediaTypeOf(route)}</dl>`;
}

function successOf({ created }: RouteDescription): string {
  if (created === undefined) return '200';
  return created === 'always' ? '201' : '200, or 201 where MESH_CREATED_STATUS says so';
}

function mediaTypeOf({ answer: described }: RouteDescription): string {
  if (!('contentType' in described)) return 'application/json';
  return String(described.contentType).split(';')[0] ?? '';
}

function request({ path, query, body }: RouteDescription): Html {
  const fields = [...parameterFields(path, query), ...fieldsOf(body, 'sent')];
  if (fields.length === 0) return NO_HTML;
  const members = fields.filter(isInside);
  const nested =
    members.length === 0
      ? ''
      : folded(`Nested: ${counted(members.length, 'field')}`, described(members));
  return html`<h4>Request</h4>${described(fields.filter((field) => !isInside(field)))}${nested}`;
}

/** Whether a field is nested in another one. */
function isInside({ path }: Field): boolean {
  return /[.[]/.test(path);
}

function answer({ answer: schema }: RouteDescription): Html {
  const fields = 'contentType' in schema ? [] : fieldsOf(schema);
  return fields.length === 0
    ? NO_HTML
    : folded(`Answer: ${counted(fields.length, 'field')}`, described(fields, OPTIONAL));
}

type Mark = (isRequired: boolean) => Html;

const REQUIRED: Mark = (isRequired) => (isRequired ? html` <b>required</b>` : NO_HTML);
/** Of an answer, most fields are always present. */
const OPTIONAL: Mark = (isRequired) => (isRequired ? NO_HTML : html` <b>optional</b>`);

function described(fields: readonly Field[], mark = REQUIRED): Html {
  return fieldList(
    fields.map(({ path, type, isRequired, notes }) => {
      const about =
        notes.length === 0 ? '' : html` <small>· ${withCode(notes.join(' · '))}</small>`;
      return [path, html`${type}${mark(isRequired)}${about}`] as const;
    }),
  );
}

function refusals(route: RouteDescription): Html {
  const found = inOrder(route).map(
    ({ status, code, message }) => [`${status} ${code}`, message] as const,
  );
  return found.length === 0 ? NO_HTML : folded(`Refusals: ${found.length}`, fieldList(found));
}

function inOrder(route: RouteDescription) {
  const limited: readonly RefusalName[] = route.limit === 'none' ? [] : ['rate_limit_exceeded'];
  const names = new Set([...refusalsOf(route), ...limited]);
  return [...names].map((name) => REFUSALS[name]).sort((a, b) => a.status - b.status);
}

/** The request body, the command that sends it, and the body of the answer. */
function example(route: RouteDescription, context: CurlContext): Html {
  const sent = bodyExample(route, context.networkName);
  const answered = answerExample(route, context.networkName);
  return folded(
    'Example',
    html`<div class="example">${exampleNotes(route)}
${sent === undefined ? '' : snippet('Body', indented(sent))}
${snippet('Request', curlCommand(route, context))}
${answered === undefined ? '' : snippet('Answer', indented(answered))}</div>`,
  );
}

function exampleNotes(route: RouteDescription): Html {
  const { access, exampleNeeds } = route;
  const isSigned = access === 'node' || isOperatorRoute(route);
  if (exampleNeeds === undefined && !isSigned) return NO_HTML;
  return html`<p class="small muted">${
    exampleNeeds === undefined ? '' : `To succeed it needs ${exampleNeeds.what}. `
  }${isSigned ? html`First, <a href="#signing">set up signing</a>.` : ''}</p>`;
}

function snippet(label: string, text: string): Html {
  return html`<figure><figcaption>${label}</figcaption><pre class="code">${text}</pre></figure>`;
}

function indented(value: JsonValue): string {
  return JSON.stringify(value, null, 2);
}

/** Flattens the members of a schema into a list of named fields for the reference. */

interface Field {
  /** For example `signatures[].key_id`; `<name>` stands for any name. */
  readonly path: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly notes: readonly string[];
}

/** Nesting beyond this depth would clutter the reference. */
const DEEPEST = 4;

/** Clients may omit members with a default; answers always have them. */
function fieldsOf(schema: unknown, direction: Direction = 'answered'): Field[] {
  if (!isJsonObject(schema)) return [];
  const { anyOf } = schema;
  return Array.isArray(anyOf) ? fieldsOfAny(anyOf, direction) : membersOf(schema, '', 1, direction);
}

/** Merges the fields of all forms; a field is required if every form requires it. */
function fieldsOfAny(forms: readonly JsonValue[], direction: Direction): Field[] {
  const ofForms = forms.map((form) => fieldsOf(form, direction));
  const byPath = new Map(ofForms.flat().map((field) => [field.path, field]));
  const isInAll = (path: string) =>
    ofForms.every((fields) => fields.some((field) => field.path === path && field.isRequired));
  return [...byPath.values()].map((field) => ({ ...field, isRequired: isInAll(field.path) }));
}

/** The path and query parameters of a request. */
function parameterFields(path: string, query: unknown): Field[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    path: name,
    type: 'string',
    isRequired: true,
    notes: ['in the path'],
  }));
  const inQuery = fieldsOf(query).map((field) => ({
    ...field,
    notes: ['in the query', ...field.notes],
  }));
  return [...inPath, ...inQuery];
}

function membersOf(
  schema: JsonObject,
  prefix: string,
  depth: number,
  direction: Direction,
): Field[] {
  if (depth > DEEPEST) return [];
  const { properties } = schema;
  if (!isJsonObject(properties)) return [];
  const demanded = new Set(demandedOf(schema, direction));
  return Object.entries(properties).flatMap(([name, member]) => {
    if (!isJsonObject(member)) return [];
    const value = isJsonObject(member.described) ? member.described : member;
    const path = `${prefix}${name}`;
    const field = {
      path,
      type: typeText(value),
      isRequired: demanded.has(name),
      notes: notesOf(value),
    };
    return [field, ...below(value, path, depth, direction)];
  });
}

/** The nested members: of an object, of the items of a list, or of an object with any names. */
function below(schema: JsonObject, path: string, depth: number, direction: Direction): Field[] {
  const { items, anyOf, properties } = schema;
  if (isJsonObject(properties)) return membersOf(schema, `${path}.`, depth + 1, direction);
  if (isJsonObject(items)) return below(items, `${path}[]`, depth, direction);
  const named = namedValues(schema);
  if (named !== null) return below(named, `${path}.<name>`, depth, direction);
  if (Array.isArray(anyOf)) {
    return anyOf.filter(isJsonObject).flatMap((branch) => below(branch, path, depth, direction));
  }
  return [];
}

/** The schema of the values of an object with any names; null for other schemas. */
function namedValues({ patternProperties }: JsonObject): JsonObject | null {
  if (!isJsonObject(patternProperties)) return null;
  const [values] = Object.values(patternProperties);
  return isJsonObject(values) ? values : null;
}

function typeText(schema: JsonObject): string {
  const { type, format, items, anyOf, const: constant, enum: values, natural } = schema;
  if (constant !== undefined) return JSON.stringify(constant);
  if (Array.isArray(values)) return 'string';
  if (natural === true) return 'integer';
  if (format === 'date-time') return 'ISO 8601 time';
  if (Array.isArray(anyOf)) {
    const branches = anyOf.filter(isJsonObject).map(typeText);
    return [...new Set(branches)].join(' or ');
  }
  if (type === 'array') return `list of ${isJsonObject(items) ? typeText(items) : 'anything'}`;
  if (type === 'object' && namedValues(schema) !== null) return 'object with any names';
  return typeof type === 'string' ? type : 'anything';
}

function notesOf(schema: JsonObject): string[] {
  const { description, enum: values, default: fallback } = schema;
  const { minimum, maximum, minLength, maxLength, minItems, maxItems } = schema;
  const notes = [
    typeof description === 'string' ? description : '',
    Array.isArray(values) ? `one of ${values.map(String).join(', ')}` : '',
    bounds(minimum, maximum, ''),
    minLength === 1 && maxLength === undefined
      ? 'not empty'
      : bounds(minLength, maxLength, 'characters'),
    bounds(minItems, maxItems, 'items'),
    isShown(fallback) ? `default ${JSON.stringify(fallback)}` : '',
    ...nestedNotes(schema),
  ];
  return [...new Set(notes)].filter((note) => note !== '');
}

/** Notes on the items of a list, or on the branches of a union, that have no members. */
function nestedNotes({ items, anyOf }: JsonObject): string[] {
  const nested = [items, ...(Array.isArray(anyOf) ? anyOf : [])];
  return nested.filter(isJsonObject).flatMap(notesOf);
}

/** Records have a default for every member; empty ones are noise. */
function isShown(fallback: JsonValue | undefined): fallback is JsonValue {
  return (
    typeof fallback === 'number' ||
    typeof fallback === 'boolean' ||
    (typeof fallback === 'string' && fallback !== '')
  );
}

function bounds(least: JsonValue | undefined, most: JsonValue | undefined, unit: string): string {
  const tail = unit === '' ? '' : ` ${unit}`;
  if (least !== undefined && most !== undefined) return `${text(least)} to ${text(most)}${tail}`;
  if (least !== undefined) return `at least ${text(least)}${tail}`;
  if (most !== undefined) return `at most ${text(most)}${tail}`;
  return '';
}

function text(value: JsonValue): string {
  return String(value);
}
