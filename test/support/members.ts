/** Node agents whose files and events a test sees. */
import { randomBytes } from 'node:crypto';
import { signerFromSeed, verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { AgentRecord, AgentStorage } from '../../src/client/agent-storage.ts';
import type { SigningKey } from '../../src/client/keys.ts';
import {
  type AgentEvent,
  createNodeAgent,
  type NodeAgent,
  type NodeAgentOptions,
} from '../../src/client/node-agent.ts';
import { asKey } from './signing.ts';

export type Files = Map<AgentRecord, string>;

export interface Member {
  readonly agent: NodeAgent;
  readonly files: Files;
  readonly events: AgentEvent[];
}

export type MemberOptions = Omit<NodeAgentOptions, 'key' | 'storage' | 'onEvent'> & {
  readonly key?: SigningKey;
  /** Replaces the storage in the files. */
  readonly storage?: AgentStorage;
};

/** A native key, because agents of tests sign and verify a lot in one process. */
export function newAgentKey(): SigningKey {
  return asKey(signerFromSeed(randomBytes(32)));
}

export function storageIn(
  files: Files,
  isRefused: (name: AgentRecord) => boolean = () => false,
): AgentStorage {
  return {
    read: (name) => files.get(name) ?? null,
    write(name, text) {
      if (isRefused(name)) throw new Error('no space left');
      files.set(name, text);
    },
  };
}

/** An agent that starts with what is in these files. */
export async function startMember(options: MemberOptions, files: Files): Promise<Member> {
  const events: AgentEvent[] = [];
  const agent = await createNodeAgent({
    key: newAgentKey(),
    storage: storageIn(files),
    verify: verifySignature,
    ...options,
    onEvent: (event) => events.push(event),
  });
  return { agent, files, events };
}

/** What the agent refused, and why. */
export function refusals({ events }: Member): string[] {
  return events.flatMap((event) =>
    event.type === 'refused' ? [`${event.what}: ${event.problem}`] : [],
  );
}

/** Problems, as an operator would read them. */
export function complaints({ events }: Member): string[] {
  return events.flatMap((event) => {
    if (event.type === 'refused') return [`${event.what}: ${event.problem}`];
    return event.type === 'failed' ? [event.problem] : [];
  });
}

/** The changes of the authority's key that the agent has followed or knows to be coming. */
export function followed({ events }: Member): string[] {
  return events.flatMap((event) =>
    event.type === 'succession'
      ? [`${event.statement.kind} ${event.isInForce ? 'in force' : 'announced'}`]
      : [],
  );
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads members of a record it then asserts on
export function stored(files: Files, record: AgentRecord): any {
  return JSON.parse(files.get(record) ?? '{}');
}

/** The ids of the keys that signed a stored record. */
export function signersOf({ files }: Member, record: AgentRecord): string[] {
  const { signatures } = stored(files, record);
  return signatures.map(({ key_id }: { key_id: string }) => key_id);
}
