/** The agent registry [core-4-6]. */

import { createHash } from 'node:crypto';
import type { AgentRegistration } from '../../machines/agent-registration.ts';
import { canonicalJson, compareCodePoints, JsonText } from '../base/json/write.ts';
import { createOrderedList, type OrderedList } from '../base/ordered-list.ts';
import { instantOf } from '../protocol/records/record.ts';
import { signedText } from '../protocol/records/signed-record.ts';
import { Refusal } from '../protocol/refusals.ts';
import type { Handler } from './engine/admission.ts';
import type { Run } from './engine/execute.ts';
import { pageOf } from './engine/page.ts';
import { assertRoom } from './host-status.ts';
import type { ReplayRule } from './replay/replay.ts';
import { refusalIn, type Subject } from './subjects/kinds.ts';
import { SortedTexts } from './subjects/sorted-texts.ts';
import type { UnitOfWork } from './subjects/unit-of-work.ts';

interface RegisteredAgent {
  readonly key: string;
  readonly registration: AgentRegistration;
}

/** The most registrations that one unit evicts; the others are not listed meanwhile. */
const MOST_EVICTED = 250;

/**
 * Committed agent registrations, indexed by capability and by expiry, so that neither lookups nor evictions
 * slow down as the registry grows.
 */
export function createAgentIndex() {
  const registered = new Map<string, AgentRegistration>();
  const byTag = new Map<string, OrderedList<RegisteredAgent>>();
  /** When each registration expires, followed by its key. */
  const expiries = new SortedTexts();
  const toEvict = new Set<string>();

  function drop(key: string): void {
    const registration = registered.get(key);
    if (registration === undefined) return;
    registered.delete(key);
    expiries.delete(expiryOf(key, registration));
    for (const tag of new Set(registration.capabilities)) {
      const tagged = byTag.get(tag);
      tagged?.remove({ key, registration });
      if (tagged?.items().length === 0) byTag.delete(tag);
    }
  }

  function add(key: string, registration: AgentRegistration): void {
    registered.set(key, registration);
    expiries.add(expiryOf(key, registration));
    for (const tag of new Set(registration.capabilities)) {
      const tagged = byTag.get(tag) ?? createOrderedList(newestFirst);
      tagged.add({ key, registration });
      byTag.set(tag, tagged);
    }
  }

  function expire(now: number): void {
    for (let next = expiries.minKey(); next !== undefined; next = expiries.minKey()) {
      if (Number(next.slice(0, INSTANT_DIGITS)) > now) return;
      const key = next.slice(INSTANT_DIGITS);
      drop(key);
      toEvict.add(key);
    }
  }

  return {
    put(key: string, { value, context }: Subject<'agent-registration'>) {
      drop(key);
      toEvict.delete(key);
      if (value === 'registered') add(key, context);
    },
    count: () => registered.size,
    find: (nodePublicKey: string): AgentRegistration | undefined => registered.get(nodePublicKey),
    /** Registrations with exactly this tag, newest first. */
    withCapability: (tag: string): readonly RegisteredAgent[] => byTag.get(tag)?.items() ?? [],
    /** Stops listing registrations that have expired. */
    expire,
    /** Node keys of registrations that have expired and must be evicted, a bounded number of them. */
    takeExpired(now: number): string[] {
      expire(now);
      const taken = [...toEvict].slice(0, MOST_EVICTED);
      for (const key of taken) toEvict.delete(key);
      return taken;
    },
  };
}

/** Enough for every instant, so that the texts are sorted by time. */
const INSTANT_DIGITS = 16;

function expiryOf(key: string, { expiresAt }: AgentRegistration): string {
  return String(Math.max(0, Math.ceil(expiresAt))).padStart(INSTANT_DIGITS, '0') + key;
}

function newestFirst(a: RegisteredAgent, b: RegisteredAgent): number {
  return (
    b.registration.registeredAt - a.registration.registeredAt || compareCodePoints(a.key, b.key)
  );
}

export const registerAgent: Handler<'registerAgent'> = (na, unit, given) => {
  const { descriptor, signatureValid, remoteAddr } = given;
  const key = descriptor.node_public_key;
  const isNew = unit.current('agent-registration', key)?.value !== 'registered';
  const emitted = unit.send('agent-registration', key, {
    type: 'register',
    registration: {
      json: canonicalJson(descriptor),
      content: digestOf(signedText(descriptor)),
      capabilities: descriptor.capabilities,
      registeredAt: instantOf(descriptor.registered_at),
      expiresAt: instantOf(descriptor.expires_at),
    },
    hasActiveCertificate: na.certificates.liveOf(key, unit.at).length > 0,
    keyCompromised: na.revocations.isCompromised(key),
    signatureValid,
  });
  const refused = refusalIn(emitted);
  if (refused !== null) throw new Refusal(refused.refusal);
  if (isNew) assertRoom(na);
  // The current registration was sent again, by a node that lost the answer or by anyone else.
  if (emitted.some(({ type }) => type === 'unchanged')) unit.awaitEarlierCommits();
  else {
    unit.audit('agent_registered', {
      agent_id: descriptor.agent_id,
      node_public_key: key,
      remote_addr: remoteAddr,
    });
  }
  return { status: 'registered', expires_at: descriptor.expires_at };
};

const ENVELOPES: ReplayRule = { scope: 'agent-delete', window: false, durable: true };

/**
 * Each envelope is valid for only one request, no matter how that was answered, so that a recorded envelope cannot
 * remove a later registration.
 */
export const removeAgent: Handler<'removeAgent'> = (na, unit, given) => {
  const { nodePublicKey: key, node, envelope, remoteAddr } = given;
  // The base64 of a signature is already canonical; the digest only keeps the ledger entries short.
  const signed = envelope && { ...envelope, nonce: digestOf(envelope.signature), identity: null };
  const replayed =
    signed !== null && na.replay.check(ENVELOPES, key, signed, signed.valid) !== 'fresh';
  evictExpired(unit, key);
  const refused = refusalIn(
    unit.send('agent-registration', key, {
      type: 'remove',
      signedAt: signed?.signedAt ?? node?.signedAt ?? unit.at,
      signatureValid: signed === null || signed.valid,
      replayed,
    }),
  );
  if (signed?.valid && !replayed) na.replay.spend(unit, ENVELOPES, key, signed);
  if (refused !== null) throw new Refusal(refused.refusal);
  unit.audit('agent_deregistered', { node_public_key: key, remote_addr: remoteAddr });
  return { status: 'deregistered' };
};

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}

/**
 * Evicts expired registrations when liveness is flushed. Queries store nothing: they omit expired registrations and
 * leave the eviction to the next flush.
 */
export const evictAgents: Run<null> = (na, unit) => {
  for (const key of na.agents.takeExpired(unit.at)) evictExpired(unit, key);
  return null;
};

function evictExpired(unit: UnitOfWork, key: string): void {
  const registered = unit.current('agent-registration', key)?.value === 'registered';
  if (registered) unit.send('agent-registration', key, { type: 'evict', at: unit.at });
}

export const countAgents: Handler<'countAgents'> = (na, _given, at) => {
  na.agents.expire(at);
  return { count: na.agents.count(), capability: null };
};

export const listAgents: Handler<'listAgents'> = (na, { capability, ...page }, at) => {
  na.agents.expire(at);
  return pageOf(
    {
      items: na.agents.withCapability(capability ?? ''),
      placeOf: ({ registration, key }) => ({ at: registration.registeredAt, id: key }),
      compare: (a, b) => b.at - a.at || compareCodePoints(a.id, b.id),
      passes: () => true,
      row: ({ registration }) => new JsonText(registration.json),
      lengthOf: ({ registration }) => registration.json.length,
    },
    page,
  );
};

export const readAgent: Handler<'readAgent'> = (na, { node_public_key: key }, at) => {
  na.agents.expire(at);
  const registration = na.agents.find(key);
  if (registration === undefined) throw new Refusal('agent_not_registered');
  return new JsonText(registration.json);
};
