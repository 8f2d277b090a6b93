/**
 * Many connected listeners that are notified of events while heartbeats run at full speed: compares rounds with and
 * without listeners, and measures how long it takes until they learn of an operator's action.
 */
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { keyFromSeed } from '../src/client/keys.ts';
import { createOperatorClient, type OperatorClient } from '../src/client/operator-client.ts';
import { rateOf } from './contest.ts';
import type { Load } from './load.ts';
import { assertAccepted, type RoundResult } from './round.ts';
import type { AuthorityProcess } from './servers.ts';

export const CONNECTIONS = 64;
export const NODES = 1000;
const ENROLLING = { connections: 32, seconds: 600, rate: null };
const FIRST_GUESS = 15_000;
const HEADROOM = 1.3;
const EVERY_MS = 1000;

export interface Listener {
  readonly socket: Socket;
  /** Called with all text that arrives. */
  onText: (text: string) => void;
}

export interface Audience {
  open(na: AuthorityProcess): Promise<readonly Listener[]>;
  /** Causes an event that listeners are notified of, containing this mark; resolves with the answer. */
  happen(operator: OperatorClient, mark: string): Promise<unknown>;
}

export interface Side {
  /** Milliseconds from the answer to an action until a listener received its event. */
  readonly delays: readonly number[];
  heard(seconds: number): Promise<RoundResult>;
  unheard(seconds: number): Promise<RoundResult>;
}

/** An authority with its nodes, which send heartbeats with and without listeners. */
export async function enrolledSide(
  load: Load,
  na: AuthorityProcess,
  audience: Audience,
): Promise<Side> {
  const plan = { target: na, ...ENROLLING };
  assertAccepted('NA joins', await load.ask('enroll', { plan, network: na.network, nodes: NODES }));
  const delays: number[] = [];
  let fastest = FIRST_GUESS;

  async function unheard(seconds: number): Promise<RoundResult> {
    await load.ask('sign', { count: Math.ceil(seconds * fastest * HEADROOM) });
    const order = { target: na, connections: CONNECTIONS, rate: null, seconds };
    const result = await load.ask('heartbeats', order);
    fastest = Math.max(fastest, rateOf(result));
    return result;
  }

  async function heard(seconds: number): Promise<RoundResult> {
    const listeners = await audience.open(na);
    const running = unheard(seconds);
    delays.push(...(await happenUntil(na, listeners, audience, running)));
    for (const { socket } of listeners) socket.destroy();
    return running;
  }

  return { delays, heard, unheard };
}

/** Causes an event each second until the round has ended; returns how long each one took to reach each listener. */
async function happenUntil(
  na: AuthorityProcess,
  listeners: readonly Listener[],
  { happen }: Audience,
  round: Promise<unknown>,
): Promise<number[]> {
  let running = true;
  void round.finally(() => {
    running = false;
  });
  const operator = operatorOf(na);
  const delays: number[] = [];
  while (running) {
    const mark = systemRuntime.uuid();
    let answeredAt = Number.POSITIVE_INFINITY;
    for (const listener of listeners) {
      listener.onText = (text) => {
        if (!text.includes(mark)) return;
        delays.push(Math.max(0, systemRuntime.elapsed() - answeredAt));
        listener.onText = () => undefined;
      };
    }
    await happen(operator, mark);
    answeredAt = systemRuntime.elapsed();
    await sleep(EVERY_MS);
  }
  return delays;
}

/** A client of the privileged operator. */
export function operatorOf({ url, dataDir }: AuthorityProcess): OperatorClient {
  const seed = readKeyFile(join(dataDir, 'keys', 'operator-privileged.key'));
  return createOperatorClient({ url, keyId: 'ops-privileged', key: keyFromSeed(seed) });
}
