/**
 * Shell commands that send the example of a route. Signed ones need the functions of `signingSetup`, defined once per
 * shell; `docs/signing.md` explains every step of both.
 */

import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import type { RouteDescription } from '../../protocol/route-description.ts';
import { bodyExample, EXAMPLE_KEY, pathExamples, queryExamples } from './example.ts';

export interface CurlContext {
  readonly baseUrl: string;
  readonly networkName: string;
}

/** The keys of an operator and of a node, and the functions that sign with them. */
export function signingSetup(baseUrl: string): string {
  return `umask 077
# The key of an operator, in the form that openssl reads
{ printf '\\x30\\x2e\\x02\\x01\\x00\\x30\\x05\\x06\\x03\\x2b\\x65\\x70\\x04\\x22\\x04\\x20'
  grep -v '^#' mesh-data/keys/operator-privileged.key | base64 -d; } > operator.der
key_id=ops-privileged
# The key of a node, made unless it is there
test -e node.der || openssl genpkey -algorithm ed25519 -outform DER -out node.der
node_key=$(openssl pkey -in node.der -inform DER -pubout -outform DER | tail -c 32 | base64)
# The authority that requests are meant for: compare its key with the one that you were given
audience=$(curl -s ${quoted(`${baseUrl}/sovereign.json`)} | jq -r .network_authority.public_key)
now() { date -u +%Y-%m-%dT%H:%M:%S.%6NZ; }
nonce() { openssl rand -hex 16; }
sha256() { openssl dgst -sha256 -r | cut -d' ' -f1; }
uri() { jq -rn --arg text "$1" '$text | @uri'; }
# The signature, by a key, of the content of the file named text
sign() { openssl pkeyutl -sign -rawin -inkey "$1" -keyform DER -in text | base64 | tr -d '\\n'; }`;
}

export function curlCommand(route: RouteDescription, context: CurlContext): string {
  const { access, body } = route;
  if (access === 'operator' || access === 'operator-privileged') return byOperator(route, context);
  if (access !== 'node') return unsigned(route, context);
  return body?.properties.signatures === undefined
    ? byProofHeader(route, context)
    : bySignedRecord(route, context);
}

function unsigned(route: RouteDescription, context: CurlContext): string {
  const body = bodyExample(route, context.networkName);
  const data = body === undefined ? '' : ` -d ${quoted(canonicalJson(body))}`;
  return `${curl(route, urlOf(route, context))}${data}`;
}

function byOperator(route: RouteDescription, context: CurlContext): string {
  const body = bodyExample(route, context.networkName);
  const signed = inOrder({
    audience: '"%s"',
    body: body === undefined ? '{}' : '%s',
    key_id: '"%s"',
    ...namesOf(route, decodedPath(route)),
    nonce: '"%s"',
    timestamp: '"%s"',
    v: '2',
  });
  return [
    ...(body === undefined ? [] : [`body=${quoted(canonicalJson(body))}`]),
    'timestamp=$(now) nonce=$(nonce)',
    `printf ${quoted(signed)} \\`,
    `  "$audience" ${body === undefined ? '' : '"$body" '}"$key_id" "$nonce" "$timestamp" > text`,
    `${curl(route, urlOf(route, context))}${body === undefined ? '' : ' -d "$body"'} \\`,
    '  -H "X-Admin-Key-Id: $key_id" -H "X-Admin-Timestamp: $timestamp" \\',
    '  -H "X-Admin-Nonce: $nonce" -H "X-Admin-Signature: $(sign operator.der)"',
  ].join('\n');
}

/** The header replaces the members that would sign the body. */
function byProofHeader(route: RouteDescription, context: CurlContext): string {
  const { timestamp, nonce, signature, signed_at, version, ...body } =
    bodyExample(route, context.networkName) ?? {};
  const hasBody = Object.keys(body).length > 0;
  const ofKey = pathExamples(route).length > 0;
  const signed = inOrder({
    audience: '"%s"',
    body_sha256: '"%s"',
    key: '"%s"',
    ...namesOf(route, ofKey ? route.path.replace(/\{\w+\}/, '%s') : route.path),
    nonce: '"%s"',
    purpose: '"node-proof"',
    timestamp: '"%s"',
    v: '1',
  });
  const url = ofKey
    ? `${quoted(context.baseUrl + route.path.replace(/\{\w+\}/, ''))}"$(uri "$node_key")"`
    : urlOf(route, context);
  return [
    `body=${hasBody ? ofOwnKey(body) : ''} timestamp=$(now) nonce=$(nonce)`,
    `printf ${quoted(signed)} \\`,
    `  "$audience" "$(printf %s "$body" | sha256)" "$node_key" "$nonce" ${ofKey ? '"$node_key" ' : ''}"$timestamp" > text`,
    `${curl(route, url)}${hasBody ? ' -d "$body"' : ''} \\`,
    '  -H "X-Mesh-Node-Proof: v=1; key=$node_key; ts=$timestamp; nonce=$nonce; sig=$(sign node.der)"',
  ].join('\n');
}

function bySignedRecord(route: RouteDescription, context: CurlContext): string {
  const { signatures, ...record } = bodyExample(route, context.networkName) ?? {};
  return [
    `printf %s ${ofOwnKey(record)} > text`,
    'record=$(jq -c --arg key_id "$node_key" --arg sig "$(sign node.der)" \\',
    "  '. + {signatures: [{$key_id, $sig}]}' text)",
    `${curl(route, urlOf(route, context))} -d "$record"`,
  ].join('\n');
}

/** The request as it appears in the signed text, as a `printf` format. */
function namesOf(route: RouteDescription, path: string) {
  const lists = queryExamples(route).map(([name, value]) => [name, [value]] as const);
  const query = canonicalJson(Object.fromEntries(lists));
  return {
    method: `"${route.method}"`,
    path: `"${path}"`,
    query: query.replaceAll('\\', '\\\\').replaceAll('%', '%%'),
  };
}

/** Serializes an object of already serialized members, sorted as in canonical JSON. */
function inOrder(members: { readonly [name: string]: string }): string {
  const sorted = Object.entries(members).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${sorted.map(([name, text]) => `"${name}":${text}`).join(',')}}`;
}

/** Replaces the example key, which belongs to nobody, with the key of the signing node. */
function ofOwnKey(body: JsonObject): string {
  return quoted(canonicalJson(body)).replaceAll(EXAMPLE_KEY, `'"$node_key"'`);
}

function curl({ method, body }: RouteDescription, url: string): string {
  const isImplied = method === 'GET' || (method === 'POST' && body !== undefined);
  return `curl -s ${isImplied ? '' : `-X ${method} `}${url}`;
}

function urlOf(route: RouteDescription, { baseUrl }: CurlContext): string {
  const query = new URLSearchParams(Object.fromEntries(queryExamples(route)));
  const target = filled(route, encodeURIComponent);
  return quoted(`${baseUrl}${target}${query.size === 0 ? '' : `?${query}`}`);
}

function decodedPath(route: RouteDescription): string {
  return filled(route, (value) => value);
}

function filled(route: RouteDescription, encode: (value: string) => string): string {
  return pathExamples(route).reduce(
    (path, [name, value]) => path.replace(`{${name}}`, encode(value)),
    route.path,
  );
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
