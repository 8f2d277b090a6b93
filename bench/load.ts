/** The load generator as seen by the run: a separate process that executes one order at a time. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { childOptions, stopChild, watchChild } from './children.ts';
import type { Network } from './fleet.ts';
import type { RoundPlan, RoundResult, Target } from './round.ts';

/** The orders of the load generator, with their answers. */
export interface Work {
  /** Creates nodes and joins them. */
  enroll: { order: { plan: RoundPlan; network: Network; nodes: number }; answer: RoundResult };
  /** Renews the certificate of each enrolled node; does not affect heartbeats signed already. */
  renew: { order: { plan: RoundPlan }; answer: RoundResult };
  /** Signs the heartbeats that every round sends until the next call. */
  sign: { order: { count: number; bulletin?: true }; answer: null };
  /** From now on, the nodes send their heartbeats in sessions. */
  sessions: { order: { target: Target; connections: number }; answer: null };
  heartbeats: { order: RoundPlan; answer: RoundResult };
  /** Sends the same request repeatedly, given in base64; every answer must equal the given one. */
  repeat: { order: { plan: RoundPlan; request: string; answer?: string }; answer: RoundResult };
  /** One invite request for each node, then the joins. */
  pairs: {
    order: { plan: RoundPlan; network: Network; count: number };
    answer: { invites: RoundResult; joins: RoundResult };
  };
  /** Joins only, with invites created by the thousand before the round. */
  joins: { order: { plan: RoundPlan; network: Network; count: number }; answer: RoundResult };
}

export interface Load {
  ask<Name extends keyof Work>(
    name: Name,
    order: Work[Name]['order'],
  ): Promise<Work[Name]['answer']>;
  [Symbol.asyncDispose](): Promise<void>;
}

export type Reply =
  | { readonly ok: true; readonly answer: unknown }
  | { readonly ok: false; readonly problem: string };

export function startLoad(): Load {
  const path = fileURLToPath(new URL('load-child.ts', import.meta.url));
  const child = fork(path, childOptions());
  watchChild(child, 'the load generator');
  return {
    ask: (name, order) => ask(child, { name, order }),
    [Symbol.asyncDispose]: () => stopChild(child),
  };
}

function ask<Answer>(child: ChildProcess, message: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    function onExit(): void {
      reject(new Error('The load generator ended'));
    }
    child.once('exit', onExit);
    child.once('message', (reply: Reply) => {
      child.off('exit', onExit);
      if (reply.ok) resolve(reply.answer as Answer);
      else reject(new Error(reply.problem));
    });
    child.send(message);
  });
}
