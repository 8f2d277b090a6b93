/** The steps of a succession, as an operator takes them in a running authority. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import type { GenesisBlock } from '../src/protocol/records/genesis.ts';
import { instantOf } from '../src/protocol/records/record.ts';
import type { SignedSuccession } from '../src/protocol/records/succession-request.ts';
import { exchange } from '../test/support/exchange.ts';
import { type Ground, signedSuccession } from '../test/support/successions.ts';
import { httpRequest, operatorSigner } from './fleet.ts';
import type { AuthorityProcess } from './servers.ts';

/** A step, and which keys sign what is served after it. */
export interface Step {
  readonly keys: readonly string[];
  /** Keys that may have signed it before. */
  readonly others: readonly string[];
  readonly genesis: GenesisBlock;
  /** In monotonic milliseconds. */
  readonly askedAt: number;
  readonly answeredAt: number;
  /** False if the authority activated a due key on its own just before the request. */
  readonly isAcknowledged: boolean;
}

/** The privileged operator, whose requests name this key of the authority. */
export function operatorOf({ dataDir, network, url }: AuthorityProcess, audience: string) {
  const seed = readKeyFile(join(dataDir, 'keys', 'operator-privileged.key')).toString('base64');
  const operator = { ...network, audience, operatorKeyId: 'ops-privileged', operatorSeed: seed };
  const headersOf = (path: string, body: object) =>
    operatorSigner(operator, 'POST', path)(body as JsonObject);

  async function send(path: string, body: object): Promise<{ status: number; answer: JsonObject }> {
    const headers = { 'Content-Type': 'application/json', ...headersOf(path, body) };
    const sent = { method: 'POST', headers, body: jsonText(body as JsonObject) };
    const { status, bytes } = await exchange(url + path, sent);
    return { status, answer: parseJson(bytes.toString()) as JsonObject };
  }
  return {
    /** The signed request as bytes. */
    request: (path: string, body: object) =>
      httpRequest('POST', path, headersOf(path, body), jsonText(body as JsonObject)),
    send,
    async answer(path: string, body: object): Promise<JsonObject> {
      const { status, answer } = await send(path, body);
      if (status !== 200) throw new Error(`${path} was answered ${status}: ${jsonText(answer)}`);
      return answer;
    },
  };
}

export async function read(na: AuthorityProcess, path: string): Promise<JsonObject> {
  return parseJson(await readText(na, path)) as JsonObject;
}

export async function readText({ url }: AuthorityProcess, path: string): Promise<string> {
  const headers = { 'Accept-Encoding': 'identity' };
  const { status, bytes } = await exchange(url + path, { method: 'GET', headers });
  const text = bytes.toString();
  if (status !== 200) throw new Error(`${path} was answered ${status}: ${text}`);
  return text;
}

/** Stages a succession to a new key. */
export async function stage(
  na: AuthorityProcess,
  kind: 'planned' | 'compromise',
  activatesIn: number,
): Promise<SignedSuccession> {
  const genesis = (await read(na, '/genesis')) as unknown as GenesisBlock;
  const { successions } = (await read(na, '/authority-keys')) as unknown as Ground;
  const ground = { genesis, successions, now: systemRuntime.now() };
  const signed = signedSuccession(na.dataDir, ground, { kind, activatesIn });
  const operator = operatorOf(na, genesis.network_authority.public_key);
  await operator.answer('/admin/authority-keys', signed);
  return signed;
}

/** Activates the staged key as soon as its time has come. */
export async function activate(na: AuthorityProcess, signed: SignedSuccession): Promise<Step> {
  const { from_key: old, to_key: next, kind, activates_at } = signed.statement;
  await sleep(Math.max(0, instantOf(activates_at) - systemRuntime.now() + 1));
  const operator = operatorOf(na, next);
  const askedAt = systemRuntime.elapsed();
  const { status, answer } = await operator.send('/admin/authority-keys/activate', {});
  const answeredAt = systemRuntime.elapsed();
  const isAcknowledged = status === 200;
  const { code } = (answer.error ?? {}) as { code?: string };
  if (!isAcknowledged && code !== 'succession_not_staged') {
    throw new Error(`The activation was answered ${status}: ${jsonText(answer)}`);
  }
  const keys = kind === 'planned' ? [next, old] : [next];
  return { keys, others: [old], genesis: signed.genesis, askedAt, answeredAt, isAcknowledged };
}

/** Ends the overlap, although nodes have not followed. */
export async function finish(na: AuthorityProcess, signed: SignedSuccession): Promise<Step> {
  const { from_key: old, to_key: next } = signed.statement;
  const operator = operatorOf(na, next);
  const path = '/admin/authority-keys/finish';
  const askedAt = systemRuntime.elapsed();
  const { status, answer } = await operator.send(path, {});
  if (status !== 200) {
    const { details } = (answer.error ?? {}) as { details?: { count?: number } };
    await operator.answer(path, { despite: details?.count ?? 0 });
  }
  const answeredAt = systemRuntime.elapsed();
  const { genesis } = signed;
  return { keys: [next], others: [old], genesis, askedAt, answeredAt, isAcknowledged: true };
}
