/**
 * Committed agent registrations, indexed by capability and by expiry: neither look-ups nor eviction cost
 * more as the registry grows.
 */
import TinyQueue from 'tinyqueue';
import type { AgentRegistration } from '../../../machines/agent-registration.ts';
import { compareCodePoints } from '../../json/write.ts';
import { createOrderedList, type OrderedList } from '../../ordered-list.ts';
import type { SubjectListener } from '../engine/subjects.ts';

export interface AgentIndex {
  readonly follow: SubjectListener;
  count(): number;
  find(nodePublicKey: string): AgentRegistration | undefined;
  /** Registrations with exactly this tag, newest first. */
  withCapability(tag: string): readonly RegisteredAgent[];
  /** Stops listing registrations whose time has passed. */
  expire(now: number): void;
  /** Node keys of the registrations that expired since the last call and have to be evicted. */
  takeExpired(now: number): string[];
}

export interface RegisteredAgent {
  readonly key: string;
  readonly registration: AgentRegistration;
}

interface Expiry {
  readonly at: number;
  readonly key: string;
}

export function createAgentIndex(): AgentIndex {
  const registered = new Map<string, AgentRegistration>();
  const byTag = new Map<string, OrderedList<RegisteredAgent>>();
  /** A refreshed registration leaves its old expiry in the queue; it is skipped when its turn comes. */
  const expiries = new TinyQueue<Expiry>([], (a, b) => a.at - b.at);
  let toEvict = new Set<string>();

  function drop(key: string): void {
    const registration = registered.get(key);
    if (registration === undefined) return;
    registered.delete(key);
    for (const tag of new Set(registration.capabilities)) {
      const tagged = byTag.get(tag);
      tagged?.remove({ key, registration });
      if (tagged?.items().length === 0) byTag.delete(tag);
    }
  }

  function put(key: string, registration: AgentRegistration): void {
    drop(key);
    registered.set(key, registration);
    expiries.push({ at: registration.expiresAt, key });
    for (const tag of new Set(registration.capabilities)) {
      const tagged = byTag.get(tag) ?? createOrderedList(newestFirst);
      tagged.add({ key, registration });
      byTag.set(tag, tagged);
    }
  }

  function expire(now: number): void {
    for (let next = expiries.peek(); next !== undefined && next.at <= now; ) {
      expiries.pop();
      if (registered.get(next.key)?.expiresAt === next.at) {
        drop(next.key);
        toEvict.add(next.key);
      }
      next = expiries.peek();
    }
  }

  return {
    follow(kind, id, { value, context }) {
      if (kind !== 'agent-registration') return;
      if (value === 'registered') put(id, context as AgentRegistration);
      else drop(id);
    },
    count: () => registered.size,
    find: (nodePublicKey) => registered.get(nodePublicKey),
    withCapability: (tag) => byTag.get(tag)?.items() ?? [],
    expire,
    takeExpired(now) {
      expire(now);
      const taken = [...toEvict];
      toEvict = new Set();
      return taken;
    },
  };
}

function newestFirst(a: RegisteredAgent, b: RegisteredAgent): number {
  return (
    b.registration.registeredAt - a.registration.registeredAt || compareCodePoints(a.key, b.key)
  );
}
