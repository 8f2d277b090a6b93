/** Requests as clients send them, and helpers to send invalid ones. */
import { randomBytes } from 'node:crypto';
import { type Agent, type OutgoingHttpHeaders, request } from 'node:http';
import { signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { jsonText } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import {
  NODE_PROOF_HEADER,
  type NodeRequest,
  type OperatorRequest,
} from '../../src/client/signing.ts';
import type { TestAuthority, TestOperator } from './authority.ts';
import type { TestClock } from './clock.ts';
import { assertDeclared } from './declared-answers.ts';
import { exchange } from './exchange.ts';
import { nodeProofHeader, operatorHeaders, signNodeBody } from './signing.ts';

/** An answer as tests read it. Bodies are plain JSON: tests about numbers read `text`. */
export interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads members of a body it then asserts on
  readonly body: any;
}

/** The receiver of a request, whose log lines and periodic work are awaited. */
interface Addressed {
  readonly url: string;
  readonly clock?: TestClock;
  settle?(): Promise<void>;
}

interface RawRequest {
  readonly headers?: OutgoingHttpHeaders;
  readonly pieces?: readonly (string | Uint8Array)[];
  /** Keeps connections for later requests; if absent, each request has its own connection. */
  readonly agent?: Agent;
}

export async function send(
  na: Addressed,
  method: string,
  path: string,
  init: {
    body?: string;
    headers?: Readonly<Record<string, string>>;
    signal?: AbortSignal;
  } = {},
): Promise<Received> {
  await na.clock?.idle();
  const { status, headers, bytes } = await exchange(na.url + path, { method, ...init });
  const text = bytes.toString('utf8');
  await na.settle?.();
  const isJson = headers.get('content-type')?.startsWith('application/json');
  const body = isJson && text !== '' ? JSON.parse(text) : undefined;
  assertDeclared(method, new URL(path, na.url).pathname, { status, body });
  return { status, headers, text, body };
}

export function get(na: Addressed, path: string): Promise<Received> {
  return send(na, 'GET', path);
}

/** Requests that `fetch` cannot send: any method, empty or repeated headers, a body in pieces. */
export async function sendRaw(
  na: Addressed,
  method: string,
  path: string,
  init: RawRequest = {},
): Promise<Received> {
  await na.clock?.idle();
  const received = await sendBytes(na, method, path, init);
  await na.settle?.();
  return received;
}

function sendBytes(
  na: Addressed,
  method: string,
  path: string,
  init: RawRequest,
): Promise<Received> {
  const { hostname, port } = new URL(na.url);
  const { headers = {}, pieces = [], agent = false } = init;
  return new Promise((resolve, reject) => {
    const outgoing = request({ hostname, port, method, path, headers, agent });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        const given = Object.entries(incoming.headers).map(
          ([name, value]) => [name, String(value)] as [string, string],
        );
        const isJson = incoming.headers['content-type']?.startsWith('application/json');
        resolve({
          status: incoming.statusCode ?? 0,
          headers: new Headers(given),
          text,
          body: isJson && text !== '' ? JSON.parse(text) : undefined,
        });
      });
    });
    for (const piece of pieces) outgoing.write(piece);
    outgoing.end();
  });
}

/** `200`, or the status and code of a refusal, such as `401 admin_auth_failed`. */
export function outcome({ status, body }: Received): string {
  const code: unknown = body?.error?.code;
  return code === undefined ? String(status) : `${status} ${code}`;
}

export interface OperatorCall {
  readonly operator?: TestOperator;
  readonly method?: string;
  readonly timestamp?: string;
  readonly nonce?: string;
  readonly version?: 1 | 2;
  /** Changes the finished headers, for example to drop or replace one. */
  readonly alter?: (headers: Record<string, string>) => void;
}

/** A signed request as data, so that it can be sent twice, late or elsewhere. */
export interface SignedRequest {
  readonly method: string;
  readonly path: string;
  readonly init: { readonly body?: string; readonly headers: Readonly<Record<string, string>> };
}

export function sendSigned(na: TestAuthority, { method, path, init }: SignedRequest) {
  return send(na, method, path, init);
}

/** A signed operator request; the privileged operator signs unless another is given. */
export async function operate(
  na: TestAuthority,
  path: string,
  body: JsonObject = {},
  call: OperatorCall = {},
): Promise<Received> {
  return sendSigned(na, operatorRequest(na, path, body, call));
}

export function operatorRequest(
  na: TestAuthority,
  path: string,
  body: JsonObject = {},
  call: OperatorCall = {},
): SignedRequest {
  const method = call.method ?? 'POST';
  const { keyId, key } = call.operator ?? na.privileged;
  const url = new URL(path, na.url);
  const request: OperatorRequest = {
    method,
    path: decodeURIComponent(url.pathname),
    query: queryOf(url),
    audience: na.audience,
    body: method === 'GET' ? {} : body,
    keyId,
    timestamp: call.timestamp ?? formatInstant(na.clock.now()),
    nonce: call.nonce ?? freshNonce(),
  };
  const headers: Record<string, string> = { ...operatorHeaders(request, key, call.version ?? 2) };
  call.alter?.(headers);
  const init = method === 'GET' ? { headers } : { headers, body: jsonText(body) };
  return { method, path, init };
}

function queryOf(url: URL): { [name: string]: string[] } {
  const query: { [name: string]: string[] } = Object.create(null);
  for (const name of url.searchParams.keys()) query[name] = url.searchParams.getAll(name);
  return query;
}

export function freshNonce(): string {
  return randomBytes(16).toString('hex');
}

/** A node: its key, and its certificate after joining. */
export interface TestNode {
  readonly key: Signer;
  readonly certId: string;
}

export function newKey(): Signer {
  return signerFromSeed(randomBytes(32));
}

export interface NodeCall {
  /** Signs instead of the node. */
  readonly signedBy?: Signer;
  readonly timestamp?: string;
  readonly nonce?: string;
  /** Changes the signed body before it is sent. */
  readonly alter?: (body: Record<string, unknown>) => void;
}

/** Sends a body signed by `key`. */
export async function nodeRequest(
  na: TestAuthority,
  path: string,
  key: Signer,
  body: JsonObject,
  call: NodeCall = {},
): Promise<Received> {
  return sendSigned(na, signedByNode(na, path, key, body, call));
}

export function signedByNode(
  na: TestAuthority,
  path: string,
  key: Signer,
  body: JsonObject,
  call: NodeCall = {},
): SignedRequest {
  const signed: Record<string, unknown> = {
    ...signNodeBody({ node_public_key: key.publicKey, ...body }, call.signedBy ?? key, {
      timestamp: call.timestamp ?? formatInstant(na.clock.now()),
      nonce: call.nonce ?? freshNonce(),
    }),
  };
  call.alter?.(signed);
  return { method: 'POST', path, init: { headers: {}, body: jsonText(signed as JsonObject) } };
}

/** A request whose proof is in the header; `change` replaces parts of the signed text. */
export async function provenByNode(
  na: TestAuthority,
  path: string,
  key: Signer,
  body: JsonObject,
  { signedBy = key, alter = (header: string) => header, ...change }: HeaderCall = {},
): Promise<SignedRequest> {
  const bodyText = jsonText({ node_public_key: key.publicKey, ...body });
  const request = {
    method: 'POST',
    path,
    query: {},
    audience: na.audience,
    bodyText,
    timestamp: formatInstant(na.clock.now()),
    nonce: freshNonce(),
    ...change,
  };
  // The proof names the key of the node, even if another signs it.
  const signer = { publicKey: key.publicKey, sign: signedBy.sign };
  const header = alter(await nodeProofHeader(request, signer));
  return {
    method: 'POST',
    path,
    init: { headers: { [NODE_PROOF_HEADER]: header }, body: bodyText },
  };
}

interface HeaderCall extends Partial<NodeRequest> {
  readonly signedBy?: Signer;
  /** Changes the header. */
  readonly alter?: (header: string) => string;
}

export async function invite(na: TestAuthority, terms: JsonObject = {}): Promise<string> {
  const { body } = await operate(na, '/admin/invite', terms, { operator: na.standard });
  return body.token_id;
}

/** A new node that has joined with its own invite. */
export async function joinedNode(na: TestAuthority, terms: JsonObject = {}): Promise<TestNode> {
  const key = newKey();
  const { body } = await nodeRequest(na, '/join', key, { invite_token: await invite(na, terms) });
  return { key, certId: body.cert_id };
}

export function heartbeat(
  na: TestAuthority,
  node: TestNode,
  { status = 'healthy', ...call }: NodeCall & { readonly status?: string } = {},
) {
  const body = { cert_id: node.certId, status };
  return nodeRequest(na, '/heartbeat', node.key, body, call);
}

/** The audit events logged so far: names and details. */
export function auditEvents(
  na: TestAuthority,
): { type: string; details: Record<string, unknown> }[] {
  return na.logLines.flatMap((line) => {
    const match = / mesh\.audit (\w+) (\{.*\})/.exec(line);
    if (match === null) return [];
    return [{ type: match[1] ?? '', details: JSON.parse(match[2] ?? '{}') }];
  });
}

/** Nodes that have joined at the same time, with the invites of one request. */
export async function joinedNodes(
  na: TestAuthority,
  count: number,
  terms: JsonObject = {},
): Promise<TestNode[]> {
  const call = { operator: na.standard };
  const { body } = await operate(na, '/admin/invite', { ...terms, count }, call);
  const joins = body.tokens.map(async ({ token_id }: { token_id: string }) => {
    const key = newKey();
    const joined = await nodeRequest(na, '/join', key, { invite_token: token_id });
    return { key, certId: joined.body.cert_id };
  });
  return Promise.all(joins);
}
