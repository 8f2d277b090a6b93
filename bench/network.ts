/** What the operators of a network and its new nodes send. */
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import type { Query } from '../src/client/http.ts';
import { keyFromSeed } from '../src/client/keys.ts';
import { createOperatorClient } from '../src/client/operator-client.ts';
import { operatorHeaders } from '../test/support/signing.ts';
import type { LoadRequest } from './load/requests.ts';
import * as requests from './load/requests.ts';
import { type RoundPlan, type RoundResult, runRound } from './rounds.ts';
import type { AuthorityProcess } from './servers.ts';

/** What clients of an authority need to know, as a plain value that can be sent between processes. */
export interface Network {
  /** The authority's public key. */
  readonly audience: string;
  readonly operatorKeyId: string;
  /** Base64 of the operator's seed. */
  readonly operatorSeed: string;
}

export const SITE = { host: 'mesh-na.bench', prefix: '' };
/** The most tokens of one invite request. */
const MAX_INVITES = 1000;

export function bytesOf(request: LoadRequest): Buffer {
  return requests.bytesOf(request, SITE);
}

/** Creates the headers with which the network's operator signs requests to one route. */
export function operatorSigner(network: Network, method: string, path: string, query: Query = {}) {
  const key = signerFromSeed(Buffer.from(network.operatorSeed, 'base64'));
  const { audience, operatorKeyId: keyId } = network;
  return (body: JsonObject) => {
    const stamp = requests.newStamp();
    return operatorHeaders({ method, path, query, ...stamp, audience, keyId, body }, key);
  };
}

/** Creates signed commands of the network's operator to one route. */
export function commandSigner(network: Network, path: string) {
  const sign = operatorSigner(network, 'POST', path);
  return (body: JsonObject): LoadRequest => {
    const { headers, ...request } = requests.postRequest(path, jsonText(body));
    return { ...request, headers: { ...headers, ...sign(body) } };
  };
}

export function operatorClient({ url, privileged }: AuthorityProcess) {
  const { audience, operatorKeyId: keyId, operatorSeed } = privileged;
  const key = keyFromSeed(Buffer.from(operatorSeed, 'base64'));
  return createOperatorClient({ url, audience, keyId, key });
}

/** Invite tokens, made by the thousand. */
export async function newTokens(
  plan: RoundPlan,
  network: Network,
  count: number,
): Promise<string[]> {
  const invite = commandSigner(network, '/admin/invite');
  const batches: LoadRequest[] = [];
  for (let left = count; left > 0; left -= MAX_INVITES) {
    batches.push(invite({ count: Math.min(left, MAX_INVITES) }));
  }
  const { answers } = await sendAll(plan, batches);
  return answers.flatMap(({ tokens }) =>
    (tokens as { readonly token_id: string }[]).map(({ token_id }) => token_id),
  );
}

/** Lets a new node join with each of the tokens. */
export async function joinAll(
  plan: RoundPlan,
  tokens: readonly string[],
  further?: JsonObject,
): Promise<{ result: RoundResult; nodes: requests.FleetNode[] }> {
  const keys = tokens.map(requests.newKey);
  const joins = keys.map((key, index) => requests.joinRequest(key, tokens[index] ?? '', further));
  const { result, answers } = await sendAll(plan, joins);
  const nodes = keys.map((key, index) => ({ key, certId: String(answers[index]?.cert_id) }));
  return { result, nodes };
}

/** A round of exactly these requests; keeps the answers in the order of the requests. */
export async function sendAll(
  plan: RoundPlan,
  all: readonly LoadRequest[],
): Promise<{ result: RoundResult; answers: JsonObject[] }> {
  const bytes = all.map(bytesOf);
  const answers: JsonObject[] = [];
  const result = await runRound(
    plan,
    (index) => bytes[index],
    (index, body) => {
      answers[index] = JSON.parse(body.toString()) as JsonObject;
    },
  );
  return { result, answers };
}
