/**
 * The HTTP surface as OpenAPI 3.0.3, made from the route table [core-4-15]. JSON Schema words
 * that 3.0.3 does not know are lowered: a constant to a one-value enum, a union with null to nullable.
 */
import { maxBodyBytes, type RouteDescription } from '../http/route-description.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json/value.ts';
import { REFUSALS, type RefusalName } from '../refusal.ts';
import { exampleOf } from './example.ts';

const API_VERSION = 'v0.1';
const GENERAL_STATUSES = [400, 401, 403, 404, 409, 422, 429, 500] as const;
const BODY_STATUSES = [408, 413] as const;

/** Refusals every route of an access class can give, beside its own. */
export const ACCESS_REFUSALS: Readonly<Record<RouteDescription['access'], readonly RefusalName[]>> =
  {
    public: [],
    internal: [],
    node: ['node_auth_failed'],
    operator: ['admin_auth_failed'],
    'operator-privileged': ['admin_auth_failed', 'insufficient_operator_tier'],
    'public-or-operator': ['admin_auth_failed'],
  };

export const AUTH_HINTS: Readonly<Record<RouteDescription['access'], string>> = {
  public: 'no authentication',
  internal: 'not gated in code: restrict by deployment',
  node: 'signed body, or header X-Mesh-Node-Proof',
  operator: 'X-Admin-* headers, standard tier',
  'operator-privileged': 'X-Admin-* headers, privileged tier',
  'public-or-operator': 'public; with X-Admin-* headers of standard tier, the full form',
};

export function openApiDocument(
  routes: readonly RouteDescription[],
  networkName: string,
  baseUrl: string,
): JsonObject {
  return {
    openapi: '3.0.3',
    info: {
      title: `Network Authority of ${networkName}`,
      version: API_VERSION,
      description:
        'Enrollment, liveness, renewal and revocation of the nodes of one trust network.',
      license: { name: 'MIT' },
    },
    servers: [{ url: baseUrl }],
    paths: pathsOf(routes),
    components: {
      schemas: { Error: ERROR_SCHEMA },
      responses: {
        Error: {
          description: 'The error envelope',
          headers: { 'X-Request-ID': { schema: { type: 'string' } } },
          content: {
            'application/json': {
              schema: { $ref: '#/components/schemas/Error' },
              example: ERROR_EXAMPLE,
            },
          },
        },
      },
      securitySchemes: {
        OperatorSignature: { type: 'apiKey', in: 'header', name: 'X-Mesh-Operator-Signature' },
        NodeProof: { type: 'apiKey', in: 'header', name: 'X-Mesh-Node-Proof' },
      },
    },
  };
}

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

const ERROR_EXAMPLE = {
  error: {
    code: 'rate_limit_exceeded',
    message: REFUSALS.rate_limit_exceeded.message,
    details: {},
    request_id: '7d0f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00',
  },
};

function pathsOf(routes: readonly RouteDescription[]): JsonObject {
  const paths: { [path: string]: { [method: string]: JsonValue } } = {};
  for (const route of routes) {
    const operations = paths[route.path] ?? {};
    paths[route.path] = operations;
    operations[route.method.toLowerCase()] = operationOf(route);
  }
  return paths;
}

function operationOf(route: RouteDescription): JsonObject {
  const refusals = [...route.refusals, ...ACCESS_REFUSALS[route.access]];
  return {
    operationId: operationId(route),
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    ...parametersOf(route),
    ...(route.body === undefined
      ? {}
      : { requestBody: { content: { 'application/json': withExample(lower(route.body)) } } }),
    responses: responsesOf(route),
    ...securityOf(route),
    'x-mesh-access': route.access,
    'x-mesh-auth-hint': AUTH_HINTS[route.access],
    'x-mesh-rate-limit': route.limit,
    ...(route.method === 'GET' ? {} : { 'x-mesh-max-body-bytes': maxBodyBytes(route) }),
    'x-mesh-error-codes': [...new Set(refusals.map((refusal) => REFUSALS[refusal].code))],
  };
}

/** `POST /admin/operator-keys/{key_id}/revoke` becomes `post_admin_operator_keys_key_id_revoke`. */
function operationId({ method, path }: RouteDescription): string {
  return `${method.toLowerCase()}${path.replace(/[^A-Za-z0-9]+/g, '_').replace(/_$/, '')}`;
}

function parametersOf({ path, query = {} }: RouteDescription): JsonObject {
  const schema = { type: 'string' };
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    return { name, in: 'path', required: true, schema };
  });
  const inQuery = Object.entries(query).map(([name, description]) => {
    return { name, in: 'query', required: false, description, schema };
  });
  const parameters = [...inPath, ...inQuery];
  return parameters.length === 0 ? {} : { parameters };
}

function withExample(schema: JsonValue): JsonObject {
  return { schema, example: exampleOf(schema) };
}

function responsesOf(route: RouteDescription): JsonObject {
  const content =
    'contentType' in route.answer
      ? { [String(route.answer.contentType).split(';')[0] ?? '']: { schema: {} } }
      : { 'application/json': withExample(lower(route.answer)) };
  const success = { description: route.summary, content };
  // Every operation lists 200 [core-4-15], also one that answers 201.
  const responses: { [status: string]: JsonValue } = { 200: success };
  if (route.created !== undefined) responses[201] = success;
  for (const status of GENERAL_STATUSES) responses[status] = ERROR_RESPONSE;
  if (route.method !== 'GET')
    for (const status of BODY_STATUSES) responses[status] = ERROR_RESPONSE;
  for (const refusal of route.refusals) responses[REFUSALS[refusal].status] = ERROR_RESPONSE;
  return responses;
}

const ERROR_RESPONSE = { $ref: '#/components/responses/Error' };

function securityOf({ access }: RouteDescription): JsonObject {
  switch (access) {
    case 'node':
      return { security: [{}, { NodeProof: [] }] };
    case 'operator':
    case 'operator-privileged':
      return { security: [{ OperatorSignature: [] }] };
    case 'public-or-operator':
      return { security: [{}, { OperatorSignature: [] }] };
    default:
      return {};
  }
}

/** A TypeBox schema in the words of OpenAPI 3.0.3. */
function lower(schema: unknown): JsonValue {
  if (Array.isArray(schema)) return schema.map(lower);
  if (!isJsonObject(schema)) return schema as JsonValue;
  const { const: constant, anyOf, patternProperties, natural, fresh: _, ...rest } = schema;
  if (natural === true) return { ...lowerMembers(rest), type: 'integer' };
  if (constant !== undefined) return { ...lowerMembers(rest), enum: [constant] };
  if (Array.isArray(anyOf)) return { ...lowerMembers(rest), ...lowerUnion(anyOf) };
  if (isJsonObject(patternProperties)) {
    const [values = {}] = Object.values(patternProperties);
    return { ...lowerMembers(rest), additionalProperties: lower(values) };
  }
  return lowerMembers(rest);
}

function lowerMembers(schema: JsonObject): { [name: string]: JsonValue } {
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, lower(value)]));
}

function lowerUnion(branches: readonly JsonValue[]): JsonObject {
  const others = branches.filter((branch) => !isJsonObject(branch) || branch.type !== 'null');
  const nullable = others.length < branches.length ? { nullable: true } : {};
  if (others.length === 1) return { ...(lower(others[0]) as JsonObject), ...nullable };
  return { anyOf: lower(others), ...nullable };
}
