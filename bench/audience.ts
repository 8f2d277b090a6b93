/**
 * Many connected listeners that are notified of events while heartbeats run at full speed: compares rounds with and
 * without listeners, and measures how long it takes until they learn of an operator's action.
 */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemRuntime } from '../src/base/runtime.ts';
import { keyFromSeed } from '../src/client/keys.ts';
import { createOperatorClient, type OperatorClient } from '../src/client/operator-client.ts';
import { enrolledFleet } from './enrolled-fleet.ts';
import type { Load } from './load.ts';
import type { RoundResult } from './round.ts';
import type { AuthorityProcess } from './servers.ts';

export const CONNECTIONS = 64;
export const NODES = 1000;
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
  const { beat } = await enrolledFleet(load, na, { nodes: NODES, connections: CONNECTIONS });
  const delays: number[] = [];

  async function heard(seconds: number): Promise<RoundResult> {
    const listeners = await audience.open(na);
    const running = beat(seconds);
    delays.push(...(await happenUntil(na, listeners, audience, running)));
    for (const { socket } of listeners) socket.destroy();
    return running;
  }

  return { delays, heard, unheard: (seconds) => beat(seconds) };
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

/** A client of the privileged operator; its requests name this key of the authority. */
export function operatorOf({ url, privileged }: AuthorityProcess, audience = privileged.audience) {
  const { operatorKeyId: keyId, operatorSeed } = privileged;
  const key = keyFromSeed(Buffer.from(operatorSeed, 'base64'));
  return createOperatorClient({ url, audience, keyId, key });
}
