/**
 * Each answer in JSON that a test receives must be one that its route declares: a refusal of the route, or one that any
 * route can return; or else the declared form, in which every member is named.
 */
import assert from 'node:assert/strict';
import Type from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import type { Operation } from '../../src/protocol/api/define.ts';
import { API } from '../../src/protocol/api/table.ts';
import { REFUSALS, type RefusalName } from '../../src/protocol/refusals.ts';
import { refusalsOf } from '../../src/protocol/route-description.ts';

/** [service-order-of-checks], [service-error-codes] */
const ANY_ROUTE: readonly RefusalName[] = [
  'bad_request',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'rate_limit_exceeded',
  'admin_auth_throttled',
  'request_entity_too_large',
  'repeated_parameter',
  'invalid_json',
  'invalid_json_object',
  'request_validation_failed',
  'service_not_ready',
  'overloaded',
  'authority_unavailable',
  'outcome_unknown',
  'signer_unavailable',
  'restored_recently',
  'restore_pending',
  'shutting_down',
  'internal_server_error',
];

const declared = Object.entries<Operation>(API).map(([name, operation]) => {
  const { method, path, pathEnd, answer } = operation;
  const pattern = path.replaceAll('.', '\\.').replace(/\{\w+\}/g, pathEnd ? '.+' : '[^/]+');
  const refusals = [...refusalsOf(operation), ...ANY_ROUTE].map((refusal) => REFUSALS[refusal]);
  let form: Validator | undefined;
  return {
    name,
    method,
    path,
    pattern: new RegExp(`^${pattern}$`),
    refusals: new Set(refusals.map(({ status, code }) => `${status} ${code}`)),
    /** Compiled when it is first needed. */
    form() {
      form ??= Compile(
        'contentType' in answer ? Type.Object({}) : Type.Unsafe(closed(answer) as object),
      );
      return form;
    },
  };
});

const byPath = new Map(declared.map((each) => [`${each.method} ${each.path}`, each]));
const byPattern = declared.filter(({ path }) => path.includes('{'));

/** `body` is undefined if the answer is not JSON. */
export function assertDeclared(
  method: string,
  path: string,
  // biome-ignore lint/suspicious/noExplicitAny: any JSON that was received
  { status, body }: { readonly status: number; readonly body: any },
): void {
  if (body === undefined) return;
  const route =
    byPath.get(`${method} ${path}`) ??
    byPattern.find((each) => each.method === method && each.pattern.test(path));
  if (route === undefined) return;
  const code: unknown = body?.error?.code;
  if (code !== undefined) {
    const refusal = `${status} ${code}`;
    assert.ok(route.refusals.has(refusal), `${route.name} does not declare ${refusal}`);
    return;
  }
  const form = route.form();
  if (form.Check(body)) return;
  assert.fail(
    `The answer of ${route.name} is not as declared: ${JSON.stringify(form.Errors(body))}`,
  );
}

/**
 * The schema as JSON, in which objects have only the members that it names, unless it says that they may have others.
 * What only code can check is left out: numbers have been read as JavaScript reads them.
 */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, closed(value)]),
  );
  return 'properties' in copy ? { additionalProperties: false, ...copy } : copy;
}
