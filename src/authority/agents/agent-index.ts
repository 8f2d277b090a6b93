/**
 * Committed agent registrations, indexed by capability and by expiry, so that neither lookups nor evictions
 * slow down as the registry grows.
 */
import TinyQueue from 'tinyqueue';
import type { AgentRegistration } from '../../../machines/agent-registration.ts';
import { compareCodePoints } from '../../base/json/write.ts';
import { createOrderedList, type OrderedList } from '../../base/ordered-list.ts';
import type { Subject, SubjectKind } from '../subjects/kinds.ts';

export type AgentIndex = ReturnType<typeof createAgentIndex>;

export interface RegisteredAgent {
  readonly key: string;
  readonly registration: AgentRegistration;
}

interface Expiry {
  readonly at: number;
  readonly key: string;
}

/** A registration and its valid expiry in the queue, which may be earlier than the actual one after a refresh. */
interface Held {
  readonly registration: AgentRegistration;
  awaited: Expiry;
}

/** The queue is rebuilt once it holds this many more stale expiries than there are registrations. */
const MOST_PASSED_OVER = 1000;

export function createAgentIndex() {
  const registered = new Map<string, Held>();
  const byTag = new Map<string, OrderedList<RegisteredAgent>>();
  let expiries = queueOf([]);
  let toEvict = new Set<string>();

  function awaitEnd(registration: AgentRegistration, key: string): Expiry {
    const expiry = { at: registration.expiresAt, key };
    expiries.push(expiry);
    return expiry;
  }

  /** Clients that repeatedly register and leave would otherwise fill the queue with expiries that may be years away. */
  function clearAway(): void {
    if (expiries.length <= 2 * registered.size + MOST_PASSED_OVER) return;
    expiries = queueOf(Array.from(registered.values(), ({ awaited }) => awaited));
  }

  function drop(key: string): void {
    const held = registered.get(key);
    if (held === undefined) return;
    const { registration } = held;
    registered.delete(key);
    for (const tag of new Set(registration.capabilities)) {
      const tagged = byTag.get(tag);
      tagged?.remove({ key, registration });
      if (tagged?.items().length === 0) byTag.delete(tag);
    }
  }

  function put(key: string, registration: AgentRegistration): void {
    const before = registered.get(key)?.awaited;
    drop(key);
    // A refreshed registration expires later; it is checked again when its earlier expiry is reached.
    const isInTime = before !== undefined && before.at <= registration.expiresAt;
    const awaited = isInTime ? before : awaitEnd(registration, key);
    registered.set(key, { registration, awaited });
    clearAway();
    for (const tag of new Set(registration.capabilities)) {
      const tagged = byTag.get(tag) ?? createOrderedList(newestFirst);
      tagged.add({ key, registration });
      byTag.set(tag, tagged);
    }
  }

  function expire(now: number): void {
    for (let next = expiries.peek(); next !== undefined && next.at <= now; ) {
      expiries.pop();
      const held = registered.get(next.key);
      if (held?.awaited === next) {
        if (held.registration.expiresAt <= now) {
          drop(next.key);
          toEvict.add(next.key);
        } else held.awaited = awaitEnd(held.registration, next.key);
      }
      next = expiries.peek();
    }
  }

  return {
    follow(kind: SubjectKind, id: string, { value, context }: Subject) {
      if (kind !== 'agent-registration') return;
      if (value === 'registered') put(id, context as AgentRegistration);
      else drop(id);
    },
    count: () => registered.size,
    find: (nodePublicKey: string): AgentRegistration | undefined =>
      registered.get(nodePublicKey)?.registration,
    /** Registrations with exactly this tag, newest first. */
    withCapability: (tag: string): readonly RegisteredAgent[] => byTag.get(tag)?.items() ?? [],
    /** Stops listing registrations that have expired. */
    expire,
    /** Node keys of the registrations that expired since the last call and must be evicted. */
    takeExpired(now: number): string[] {
      expire(now);
      const taken = [...toEvict];
      toEvict = new Set();
      return taken;
    },
    /** The number of queued expiries. */
    awaited: () => expiries.length,
  };
}

function queueOf(expiries: Expiry[]): TinyQueue<Expiry> {
  return new TinyQueue(expiries, (a, b) => a.at - b.at);
}

function newestFirst(a: RegisteredAgent, b: RegisteredAgent): number {
  return (
    b.registration.registeredAt - a.registration.registeredAt || compareCodePoints(a.key, b.key)
  );
}
