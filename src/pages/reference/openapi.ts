/** The HTTP surface as OpenAPI 3.0.3, generated from the route table [core-4-15]. */

import type { JsonObject, JsonValue } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { REFUSALS, type RefusalName } from '../../protocol/refusals.ts';
import {
  maxBodyBytes,
  maxBodyValues,
  type NamedRoute,
  type RouteDescription,
  refusalsOf,
} from '../../protocol/route-description.ts';
import { type RouteGroup, routeGroups } from './contents.ts';
import { answerExample, bodyExample, pathExamples, queryExamples } from './example.ts';
import { createSchemas, inFull, type Schemas } from './openapi-schemas.ts';

const API_VERSION = 'v0.1';
const GENERAL_STATUSES = [400, 401, 403, 404, 409, 422, 429, 500, 503] as const;
const BODY_STATUSES = [408, 413] as const;

export const AUTH_HINTS: Readonly<Record<RouteDescription['access'], string>> = {
  public: 'no authentication',
  internal: 'not gated in code: restrict by deployment',
  node: 'signed body, or header X-Mesh-Node-Proof',
  operator: 'X-Admin-* headers, standard tier',
  'operator-privileged': 'X-Admin-* headers, privileged tier',
  'public-or-operator': 'public; with X-Admin-* headers of standard tier, the full form',
};

export function openApiText(routes: readonly NamedRoute[], networkName: string) {
  return {
    beginning: jsonText(openApiDocument(routes, networkName)).slice(0, -1),
    /** The only part with the base URL: clients can send any number of different host names. */
    end: (url: string) => `,"servers":${jsonText([{ url }])}}`,
  };
}

function openApiDocument(routes: readonly NamedRoute[], networkName: string): JsonObject {
  const schemas = createSchemas();
  const groups = routeGroups(routes);
  const paths = pathsOf(groups, schemas, networkName);
  return {
    openapi: '3.0.3',
    info: {
      title: `Network Authority of ${networkName}`,
      version: API_VERSION,
      description: ABOUT,
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    tags: groups.map(({ title, note }) => ({ name: title, description: note })),
    paths: inOrderOf(routes, paths),
    components: {
      schemas: { ...schemas.components(), Error: ERROR_SCHEMA },
      responses: { Error: ERROR_ANSWER },
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

const ABOUT = `Enrollment, liveness, renewal and revocation of the nodes of one trust network.

Operators sign each request and send four headers: \`X-Admin-Key-Id\`, \`X-Admin-Timestamp\`, \`X-Admin-Nonce\` and
\`X-Admin-Signature\`. The signature covers the canonical JSON of \`{"v": 2, method, path, query, audience, body, key_id,
timestamp, nonce}\`, where \`audience\` is the public key of the authority. As it covers the request, a generated client
computes it in an interceptor, just before the request is sent. Nodes sign the body of a request, or send the header
\`X-Mesh-Node-Proof\`.

Each error is the envelope \`{"error": {code, message, details, request_id}}\`.`;

const ERROR_SCHEMA = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'details', 'request_id'],
      properties: {
        code: { type: 'string' },
        message: { type: 'string' },
        details: { type: 'object', additionalProperties: true },
        request_id: { type: 'string' },
      },
    },
  },
};

const REQUEST_ID = '7d0f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00';

const HEADERS = {
  'X-Request-ID': {
    description: 'The id of the request that was sent, else a new one',
    schema: { type: 'string' },
    example: REQUEST_ID,
  },
};

const ETag = {
  description: 'Of this version of the answer; sent as `If-None-Match`, it is answered 304',
  schema: { type: 'string' },
};

const UNCHANGED = {
  description: 'The version that `If-None-Match` names is the present one',
  headers: { ...HEADERS, ETag },
};

const ERROR_ANSWER = {
  description: 'The error envelope',
  headers: HEADERS,
  content: {
    'application/json': {
      schema: { $ref: '#/components/schemas/Error' },
      example: {
        error: {
          code: 'rate_limit_exceeded',
          message: REFUSALS.rate_limit_exceeded.message,
          details: {},
          request_id: REQUEST_ID,
        },
      },
    },
  },
};

const REPLAYED = {
  description: 'Set on the answer to a request that had arrived before',
  schema: { type: 'string', enum: ['true'] },
};

const STALE_SINCE = {
  description:
    'Set by an instance that cannot reach any that writes: changes after this instant may be missing',
  schema: { type: 'string', format: 'date-time' },
};

function inHeader(name: string, description: string): JsonObject {
  return { type: 'apiKey', in: 'header', name, description };
}

/** An operator sends these four together. */
const OPERATOR_SCHEMES = {
  OperatorKeyId: inHeader('X-Admin-Key-Id', 'Id of the operator key'),
  OperatorTimestamp: inHeader('X-Admin-Timestamp', 'Time of the request in ISO 8601'),
  OperatorNonce: inHeader('X-Admin-Nonce', 'Unique for each request of the key'),
  OperatorRequestSignature: inHeader(
    'X-Admin-Signature',
    'Base64 of the Ed25519 signature over the canonical operator payload',
  ),
};

const SECURITY_SCHEMES = {
  ...OPERATOR_SCHEMES,
  OperatorSignature: inHeader(
    'X-Mesh-Operator-Signature',
    'A label for the four X-Admin-* headers together. No header of this name is read.',
  ),
  NodeProof: inHeader(
    'X-Mesh-Node-Proof',
    'Proof of possession of a node key, in place of the signed members of the body',
  ),
  HeartbeatSession: inHeader(
    'X-Mesh-Session',
    'Proof of a heartbeat in a session, in place of a signature',
  ),
};

const BY_OPERATOR = Object.fromEntries(Object.keys(OPERATOR_SCHEMES).map((name) => [name, []]));

/** Alternatives; the empty one needs nothing. */
const SECURITY: Readonly<Record<RouteDescription['access'], readonly JsonObject[]>> = {
  public: [],
  internal: [],
  node: [{}, { NodeProof: [] }],
  operator: [BY_OPERATOR],
  'operator-privileged': [BY_OPERATOR],
  'public-or-operator': [{}, BY_OPERATOR],
};

function securityOf({ access, hasSessions }: RouteDescription): readonly JsonObject[] {
  return hasSessions === true ? [...SECURITY[access], { HeartbeatSession: [] }] : SECURITY[access];
}

interface PathItems {
  [path: string]: { [method: string]: JsonValue };
}

function pathsOf(
  groups: readonly RouteGroup<NamedRoute>[],
  schemas: Schemas,
  networkName: string,
): PathItems {
  const paths: PathItems = {};
  for (const { title, routes } of groups) {
    for (const route of routes) {
      const operations = paths[route.path] ?? {};
      paths[route.path] = operations;
      operations[route.method.toLowerCase()] = operationOf(route, title, schemas, networkName);
    }
  }
  return paths;
}

/** Keeps the order of the route table, which groups related routes. */
function inOrderOf(routes: readonly RouteDescription[], paths: PathItems): JsonObject {
  return Object.fromEntries(routes.map(({ path }) => [path, paths[path] ?? {}]));
}

function operationOf(
  route: NamedRoute,
  tag: string,
  schemas: Schemas,
  networkName: string,
): JsonObject {
  return {
    operationId: route.name,
    tags: [tag],
    summary: route.summary,
    description: descriptionOf(route),
    ...parametersOf(route, schemas),
    ...requestBodyOf(route, schemas, networkName),
    responses: responsesOf(route, schemas, networkName),
    security: securityOf(route),
    'x-mesh-access': route.access,
    'x-mesh-auth-hint': AUTH_HINTS[route.access],
    'x-mesh-rate-limit': route.limit,
    ...(route.method === 'GET' ? {} : bodyBoundsOf(route)),
    'x-mesh-error-codes': [...new Set(refusalsOf(route).map((name) => REFUSALS[name].code))],
    ...exampleOutcomeOf(route),
  };
}

/** Markdown: what the route does beyond its summary, who may call it, and its possible errors. */
function descriptionOf(route: RouteDescription): string {
  const { description, exampleNeeds, limit, access } = route;
  const refusals = refusalsOf(route).map((name) => `- ${refusalText(name)}`);
  const paragraphs = [
    description ?? `${route.summary}.`,
    `Access: ${AUTH_HINTS[access]}.`,
    limit === 'none' ? '' : `Limit: bucket ${limit}, per address.`,
    exampleNeeds === undefined
      ? ''
      : `The example needs ${exampleNeeds.what}; without it the answer is \`${outcomeText(exampleNeeds.otherwise)}\`.`,
    refusals.length === 0 ? '' : `Refusals:\n\n${refusals.join('\n')}`,
  ];
  return paragraphs.filter((paragraph) => paragraph !== '').join('\n\n');
}

function refusalText(name: RefusalName): string {
  return `\`${outcomeText(name)}\`: ${REFUSALS[name].message}`;
}

function outcomeText(name: RefusalName): string {
  const { status, code } = REFUSALS[name];
  return `${status} ${code}`;
}

/** The error with which an empty authority answers the example, if it does. */
function exampleOutcomeOf({ exampleNeeds }: RouteDescription): JsonObject {
  if (exampleNeeds === undefined) return {};
  return { 'x-mesh-example-outcome': outcomeText(exampleNeeds.otherwise) };
}

const PATH_PARAMETERS: { readonly [name: string]: string } = {
  attestation_id: 'Id of the attestation',
  key_id: 'Id of the operator key',
  node_public_key: 'Base64 public key of the node, percent-encoded',
  treaty_id: 'Id of the treaty',
};

function parametersOf(route: RouteDescription, schemas: Schemas): JsonObject {
  const inPath = pathExamples(route).map(([name, example]) => {
    const schema = { type: 'string', minLength: 1 };
    const description = PATH_PARAMETERS[name] ?? name;
    return { name, in: 'path', required: true, description, schema, example };
  });
  const given = new Map(queryExamples(route));
  const inQuery = Object.entries(route.query?.properties ?? {}).map(([name, member]) => {
    const { description = name, ...schema } = schemas.referring(member, 'sent');
    const example = given.get(name);
    const required = route.query?.required?.includes(name) === true;
    const shown = example !== undefined && { example };
    return { name, in: 'query', required, description, schema, ...shown };
  });
  const parameters = [...inPath, ...inQuery, ...(route.keepsAnswer ? [RETRY] : [])];
  return parameters.length === 0 ? {} : { parameters };
}

const RETRY = {
  name: 'X-Mesh-Retry',
  in: 'header',
  required: false,
  description:
    'Marks a request that is sent again byte for byte, because its answer was lost: it gets its first answer, with `X-Mesh-Replayed`',
  schema: { type: 'string', enum: ['1'] },
};

function bodyBoundsOf(route: RouteDescription): JsonObject {
  const values = maxBodyValues(route);
  return {
    'x-mesh-max-body-bytes': maxBodyBytes(route),
    ...(values === undefined ? {} : { 'x-mesh-max-body-values': values }),
  };
}

/** Describes the limits of a body, and the errors beyond them. */
function bodyDescriptionOf(route: RouteDescription): string {
  const values = maxBodyValues(route);
  const bytes = `At most ${maxBodyBytes(route)} bytes: larger bodies are answered 413 request_entity_too_large.`;
  if (values === undefined) return bytes;
  return `${bytes} At most ${values} JSON values: bodies with more are answered 400 invalid_json.`;
}

function requestBodyOf(route: RouteDescription, schemas: Schemas, networkName: string): JsonObject {
  const { body } = route;
  const example = bodyExample(route, networkName);
  if (example === undefined) return {};
  const content = { schema: schemas.referring(body, 'sent'), example };
  return {
    requestBody: {
      description: bodyDescriptionOf(route),
      required: inFull(body, 'sent').required !== undefined,
      content: { 'application/json': content },
    },
  };
}

function responsesOf(route: RouteDescription, schemas: Schemas, networkName: string): JsonObject {
  const success = {
    description: route.summary,
    headers: {
      ...HEADERS,
      ...(route.hasEtag && { ETag }),
      ...(route.hasLastCopy && { 'X-Mesh-Stale-Since': STALE_SINCE }),
      ...(route.keepsAnswer && { 'X-Mesh-Replayed': REPLAYED }),
    },
    content: contentOf(route, schemas, networkName),
  };
  // Every operation lists 200 [core-4-15], even one that answers 201.
  const responses: { [status: string]: JsonValue } = { 200: success };
  if (route.created !== undefined) responses[201] = success;
  if (route.hasEtag) responses[304] = UNCHANGED;
  for (const status of GENERAL_STATUSES) responses[status] = ERROR_RESPONSE;
  if (route.method !== 'GET')
    for (const status of BODY_STATUSES) responses[status] = ERROR_RESPONSE;
  for (const refusal of route.refusals) responses[REFUSALS[refusal].status] = ERROR_RESPONSE;
  return responses;
}

function contentOf(route: RouteDescription, schemas: Schemas, networkName: string) {
  const { answer } = route;
  if ('contentType' in answer) {
    const mediaType = String(answer.contentType).split(';')[0] ?? '';
    const type = mediaType === 'application/json' ? 'object' : 'string';
    return { [mediaType]: { schema: { type } } };
  }
  const example = answerExample(route, networkName) ?? null;
  return { 'application/json': { schema: schemas.referring(answer, 'answered'), example } };
}

const ERROR_RESPONSE = { $ref: '#/components/responses/Error' };
