/** `docs/routes.md`: every route, with its request, answer and refusals. */

import { REFUSALS } from '../src/base/refusal.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { AUTH_HINTS, refusalsOf } from '../src/pages/reference/openapi.ts';
import { routeGroups } from '../src/pages/reference/route-groups.ts';
import { type Field, fieldsOf, parameterFields } from '../src/pages/reference/schema-fields.ts';
import { maxBodyBytes, type RouteDescription } from '../src/protocol/route-description.ts';
import { errorAnchor } from './errors.ts';
import { code, page, sentence, table } from './markdown.ts';

const INTRODUCTION = `The HTTP surface. A running authority describes it too: \`/api-reference\` for people, \`/swagger.json\` as OpenAPI 3.0.3
for programs, with the members inside of records. [The contract](wire/service.md) has every rule.

Bodies are JSON objects in UTF-8, whatever the content type says; unknown members are ignored. Any route can also answer
404 \`not_found\`, 405 \`method_not_allowed\`, 500 \`internal_server_error\`, 503 \`authority_unavailable\`
and 503 \`shutting_down\`; one that takes a body
400 \`invalid_json\`, 400 \`invalid_json_object\`, 408 \`request_timeout\` and 413 \`request_entity_too_large\`; one with a limit
429 \`rate_limit_exceeded\`. [Errors](errors.md) says what to do about each. How to sign is in
[Signing requests](signing.md); limits are set as in [Configuration](configuration.md#rate-limits).

Public documents carry an \`ETag\`, and \`If-None-Match\` answers 304. Lists take \`limit\` and \`cursor\`, and answer
\`next_cursor\` while there are more rows; without them the whole list is sent.`;

export function routesPage(): string {
  const groups = routeGroups(ROUTES);
  return page(
    'Routes',
    INTRODUCTION,
    table(
      ['Route', 'Access', 'What it does'],
      groups.flatMap(({ routes }) =>
        routes.map((route) => [
          `[${code(nameOf(route))}](#${anchorOf(route)})`,
          route.access,
          sentence(route.summary),
        ]),
      ),
    ),
    ...groups.map(({ title, note, routes }) =>
      [`## ${title}`, note, ...routes.map(sectionOf)].join('\n\n'),
    ),
  );
}

function nameOf({ method, path }: RouteDescription): string {
  return `${method} ${path}`;
}

/** The anchor that Markdown renderers give the heading. */
function anchorOf(route: RouteDescription): string {
  const words = nameOf(route).toLowerCase();
  return words.replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-');
}

function sectionOf(route: RouteDescription): string {
  const { summary, description } = route;
  const answer = 'contentType' in route.answer ? [] : topLevel(fieldsOf(route.answer));
  return [
    `### ${nameOf(route)}`,
    [sentence(summary), description ?? ''].join(' ').trim(),
    factsOf(route),
    ...fieldTable('Request', requestFields(route)),
    ...fieldTable('Answer', answer),
  ].join('\n\n');
}

function factsOf(route: RouteDescription): string {
  const { access, limit, method, answer, created } = route;
  const type = 'contentType' in answer ? String(answer.contentType) : 'application/json';
  const status = created === undefined ? '200' : CREATED[created];
  const refusals = refusalsOf(route).map((name) => {
    const { status: refused, code: wireCode } = REFUSALS[name];
    return `[${refused} ${code(wireCode)}](errors.md#${errorAnchor(name)})`;
  });
  const listed = [...new Set(refusals)].sort().join(', ');
  return [
    `- **Access:** ${AUTH_HINTS[access]}`,
    `- **Limit:** ${limit === 'none' ? 'none' : `${code(limit)}, per address`}`,
    ...(method === 'GET' ? [] : [`- **Body:** at most ${maxBodyBytes(route) / 1024} KiB`]),
    `- **Success:** ${status}, ${code(type)}`,
    ...(listed === '' ? [] : [`- **Refusals:** ${listed}`]),
  ].join('\n');
}

const CREATED = {
  always: '201',
  as_configured: '200, or 201 with `MESH_CREATED_STATUS=201`',
} as const;

function requestFields({ path, query, body }: RouteDescription): Field[] {
  return [...parameterFields(path, query), ...topLevel(fieldsOf(body, 'sent'))];
}

function topLevel(fields: readonly Field[]): Field[] {
  return fields.filter(({ path }) => !/[.[]/.test(path));
}

function fieldTable(head: string, fields: readonly Field[]): string[] {
  if (fields.length === 0) return [];
  const rows = fields.map(({ path, type, isRequired, notes }) => [
    code(path),
    type,
    isRequired ? 'yes' : '',
    notes.join('; '),
  ]);
  const presence = head === 'Request' ? 'Required' : 'Always';
  return [table([head, 'Type', presence, 'Notes'], rows)];
}
