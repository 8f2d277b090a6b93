/** The example of every route in the published description is answered as the description says [core-4-15]. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Ajv } from 'ajv';
import type { JsonObject } from '../src/base/json/value.ts';
import { type Operation, readDescription } from './support/described.ts';
import { operate, outcome, type Received, send } from './support/requests.ts';
import { inExampleOrder } from './support/routes.ts';
import { sharedAuthority } from './support/shared-authority.ts';

const shared = sharedAuthority();
let document: JsonObject;
let operations: readonly Operation[];

before(async () => {
  ({ document, operations } = await readDescription(await shared()));
});

/** Makes Ajv interpret `nullable` as OpenAPI 3.0.3 defines it. */
function createAnswerCheck() {
  const ajv = new Ajv({ strict: false, formats: { 'date-time': isInstant } });
  ajv.addSchema(document, 'document');
  return ({ method, path }: Operation, { status, body }: Received): string => {
    const steps = ['paths', path, method.toLowerCase(), 'responses', String(status), 'content'];
    const place = [...steps, 'application/json', 'schema'].map(pointer).join('/');
    const validate = ajv.getSchema(`document#/${place}`);
    if (validate === undefined) return `${status} is not described`;
    return validate(body) ? '' : ajv.errorsText(validate.errors);
  };
}

function isInstant(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(text);
}

function pointer(step: string): string {
  return encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'));
}

test('each example is answered as the description says, in the documented form', async () => {
  const problemOf = createAnswerCheck();
  const refusalOf = ({ described }: Operation) => described['x-mesh-example-outcome'];
  const inOrder = inExampleOrder(operations, {
    method: ({ method }) => method,
    isRefused: (operation) => refusalOf(operation) !== undefined,
  });
  for (const operation of inOrder) {
    const refusal = refusalOf(operation);
    const name = `${operation.method} ${operation.path}`;
    const answer = await sendExample(operation);
    if (refusal !== undefined) {
      assert.equal(outcome(answer), refusal, `${name} lacks what it needs`);
      continue;
    }
    assert.match(String(answer.status), /^20[01]$/, `${name}: ${answer.text}`);
    const type = answer.headers.get('content-type')?.split(';')[0] ?? '';
    assert.ok(type in operation.described.responses[answer.status].content, `${name}: ${type}`);
    if (type === 'application/json') assert.equal(problemOf(operation, answer), '', name);
  }
});

test('exactly the reads with an ETag describe it, and the 304 for clients that have it', async () => {
  const reads = operations.filter(
    ({ method, described }) => method === 'GET' && !described['x-mesh-example-outcome'],
  );
  for (const operation of reads) {
    const { path } = operation;
    const { responses } = operation.described;
    const etag = (await sendExample(operation)).headers.get('etag');
    assert.equal(responses[304] !== undefined, etag !== null, path);
    assert.equal(responses[200].headers.ETag !== undefined, etag !== null, path);
    if (etag === null) continue;
    const headers = { 'If-None-Match': etag };
    assert.equal((await send(await shared(), 'GET', path, { headers })).status, 304, path);
  }
});

async function sendExample({ method, path, described }: Operation): Promise<Received> {
  const parameters: { name: string; in: string; example?: string }[] = described.parameters ?? [];
  const authority = await shared();
  let target = path;
  const query = new URLSearchParams();
  for (const { name, in: place, example } of parameters) {
    if (example === undefined) continue;
    if (place === 'query') query.set(name, example);
    else target = target.replace(`{${name}}`, encodeURIComponent(example));
  }
  const url = query.size === 0 ? target : `${target}?${query}`;
  const body = described.requestBody?.content['application/json'].example;
  if (described['x-mesh-access'].startsWith('operator'))
    return operate(authority, url, body, { method });
  return send(authority, method, url, body === undefined ? {} : { body: JSON.stringify(body) });
}
