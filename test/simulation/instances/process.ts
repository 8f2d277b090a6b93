/** The process of an instance, wired as in the program, except for the machine, the network and the database. */
import { formerKeys, genesisInForce, storedChain } from '../../../src/authority/authority-keys.ts';
import { NOTHING_KNOWN } from '../../../src/authority/host-status.ts';
import type { JsonObject } from '../../../src/base/json/value.ts';
import { jsonText } from '../../../src/base/json/write.ts';
import { createLogger } from '../../../src/base/log/logger.ts';
import {
  type KnownAuthorityKeys,
  publishedAuthorityKeys,
} from '../../../src/edge/auth/known-keys.ts';
import { createHeartbeatSessions, type HeartbeatSessions } from '../../../src/edge/auth/session.ts';
import { currentDocument } from '../../../src/edge/documents/documents.ts';
import { createRateLimits, type RateLimitSettings } from '../../../src/edge/limits/rate-limit.ts';
import { type Call, onceConfirmed, whileHeld } from '../../../src/protocol/contract/calls.ts';
import { documentText, publishedDocument } from '../../../src/protocol/contract/documents.ts';
import {
  createInstanceStatusMemory,
  instanceStatusIn,
  noteWriter,
} from '../../../src/protocol/contract/instance-status.ts';
import {
  createDocumentCache,
  createDocumentPublisher,
} from '../../../src/protocol/contract/publications.ts';
import { Refusal } from '../../../src/protocol/refusals.ts';
import { RATE_BUCKETS } from '../../../src/protocol/route-description.ts';
import { createCallRouter } from '../../../src/server/link/call-router.ts';
import { createLinkClient, withdrawAll } from '../../../src/server/link/client.ts';
import { openLinkHost } from '../../../src/server/link/host.ts';
import { createLinkKeys } from '../../../src/server/link/keys.ts';
import { followSessionSecret } from '../../../src/server/session-secrets.ts';
import { followList } from '../../../src/server/waiting.ts';
import { acquireLease, type Lease } from '../../../src/store/postgresql/lease.ts';
import type { StatePosition, Unit } from '../../../src/store/store.ts';
import { patientQueue } from '../../support/request-queue.ts';
import { type OpenAuthority, open } from '../authority-calls.ts';
import type { KeyFolder } from '../key-folder.ts';
import { type MemoryDisk, subjectsOn } from '../memory-disk.ts';
import { FLUSH_INTERVAL } from '../model/contacts.ts';
import { SESSION_LASTS } from '../session-beats.ts';
import { insist, Violation } from '../violation.ts';
import type { Chance } from './chance.ts';
import type { Machine } from './clockwork.ts';
import { type Database, furthest } from './database.ts';
import type { ProcessDefect } from './defect.ts';
import { leaseTable } from './lease-table.ts';
import { machineRuntime } from './machine-runtime.ts';
import type { Network } from './network.ts';
import { remoteStore } from './remote-store.ts';
import { certificatesOn, type Shown } from './shown.ts';

export interface Surroundings {
  readonly database: Database;
  readonly network: Network;
  readonly chance: Chance;
  /** By machine name. */
  readonly folders: ReadonlyMap<string, KeyFolder>;
  readonly defect: ProcessDefect;
  /** Called with each violation. */
  found(cause: unknown): void;
}

/** The public interface of a running process. */
export interface Running {
  readonly call: Call;
  readonly authorityKeys: KnownAuthorityKeys;
  readonly sessions: HeartbeatSessions;
  now(): number;
  /** Returns the document that it has, without asking the writer. */
  held(name: keyof Shown): JsonObject | null;
  /**
   * Null if it does not know what is currently published. Rejects if it is the writer and shows less than before its
   * turn.
   */
  read(): Promise<Shown | null>;
  stop(inFlight: Iterable<Promise<unknown>>): Promise<void>;
}

const LEASE_MS = 1500;
const HOLD_MS = 3000;
const NO_LIMITS = Object.fromEntries(
  RATE_BUCKETS.map((bucket) => [bucket, null]),
) as RateLimitSettings;
const logger = createLogger({
  level: 'CRITICAL',
  format: 'text',
  destination: { write: () => undefined },
  now: () => 0,
});
/** How often a waiting instance reads the stored state. */
const FOLLOW_MS = 250;
/** How often the writer checks whether a key change is due. */
const KEYS_MS = 1000;
/** How often it looks for the session secret while it lacks the key. */
const SECRET_MS = 1000;

/** Resolves when it serves. */
export async function startProcess(
  machine: Machine,
  { database, network, chance, folders, defect, found }: Surroundings,
  fatal: (cause: unknown) => void,
): Promise<Running> {
  const { elapsed } = machine;
  const runtime = machineRuntime(machine, chance);
  const folder = folders.get(machine.name) as KeyFolder;
  const { genesis } = folder;
  const signer = folder.signer();
  const memory = createInstanceStatusMemory();
  const instanceStatus = instanceStatusIn(memory);
  const publisher = createDocumentPublisher();
  publisher.publish('genesis', publishedDocument(jsonText(genesis)));
  const documents = createDocumentCache(publisher.versions);
  publisher.follow(documents.take);
  const { public_key } = genesis.network_authority;
  const authorityKeys = publishedAuthorityKeys(genesis, public_key, documents);
  const seenList = followList(publisher);
  const limits = createRateLimits(NO_LIMITS);
  const keys = createLinkKeys({ signer, genesis, publisher, elapsed });
  const wires = network.wires(machine, keys);
  const link = { program: 'one', publisher, logger, elapsed, wires };
  const host = await openLinkHost({ ...link, address: { host: machine.name, port: 0 } });
  const client = createLinkClient({
    edgesCaughtUp: () => Promise.resolve(),
    answered: () => undefined,
    nextKey: keys.nextKey,
    ...link,
    name: machine.name,
    instance: machine.name,
    instanceStatus,
    linked: () => callRouter.resume(),
  });
  const callRouter = createCallRouter({ client, holdMs: HOLD_MS, rateLimits: NO_LIMITS, elapsed });
  const edge = { documents, instanceStatus, call: callRouter.call };
  const ended = new AbortController();
  let authority: OpenAuthority | null = null;
  const holder = `${machine.name} ${machine.life}`;
  let position: StatePosition | null = null;
  /** The certificates on the list that it had shown by the time its turn came. */
  let before: readonly string[] = [];
  let lease: Lease | null = null;

  function held(name: keyof Shown): JsonObject | null {
    const latest = documents.latest(name);
    return latest === undefined ? null : JSON.parse(documentText(latest));
  }

  /** Reads the stored state, as an instance does that keeps its state ready. */
  async function follow(): Promise<void> {
    if (lease !== null) return;
    const seen = await database.ask(machine, () => lookAt(database.disk)).catch(() => null);
    if (seen !== null) {
      position = seen.position;
      const former = formerKeys(seen.chain);
      if (former !== null) folder.settle(genesisInForce(seen.chain, folder.genesis), former);
    }
    machine.after(FOLLOW_MS, () => void follow());
  }

  function lookAt(disk: MemoryDisk) {
    return {
      position: furthest(position, disk),
      chain: storedChain(subjectsOn(disk, 'authority-key')),
    };
  }

  let isWaiting: () => void = () => undefined;
  const waits = new Promise<void>((resolve) => {
    isWaiting = resolve;
  });
  const acquired = acquireLease({
    // Different at each start.
    holder: { id: holder, name: machine.name },
    candidate: {
      configuration: {},
      link: host.address,
      seen(holder) {
        if (holder?.link != null) client.follow({ epoch: holder.epoch, link: holder.link });
      },
      missed: () => undefined,
      cannotWrite: () => undefined,
      waiting: isWaiting,
      signal: ended.signal,
    },
    clock: { elapsed, after: (milliseconds, work) => machine.after(milliseconds, work) },
    ttl: LEASE_MS,
    connect: async () => leaseTable(database, machine),
    confirmed: () => undefined,
    lost: fatal,
  });

  async function lead(held: Lease): Promise<void> {
    client.close();
    const seen = defect.remembersNothing === true ? null : { position, list: seenList() };
    before = certificatesOn(heldList());
    withdrawAll(publisher);
    lease = held;
    const { epoch, previousOwner } = held;
    const by = { epoch, holder, previousOwner };
    const { noteHeld: committed, end } = held;
    const remote = remoteStore({ database, machine, by, committed, end });
    const store = defect.store?.(remote) ?? remote;
    const opened = await open({
      store: { ...store, commit: (unit) => store.commit(activatedEverywhere(unit)) },
      seen,
      hostStatus: () => ({ ...NOTHING_KNOWN, instancesWithout }),
      runtime,
      publisher,
      signer: defect.forgetsKeys === true ? { ...signer, use: () => undefined } : signer,
      folder,
      fatal: (_where, cause) => fatal(cause),
    });
    authority = opened;
    const heldSince = defect.answersUnconfirmed === true ? () => null : held.heldSince;
    const call = onceConfirmed(whileHeld(opened.call, held.isHeld), heldSince, elapsed);
    noteWriter(memory, epoch);
    host.startServing({ epoch, call, queue: patientQueue(elapsed), limits, heldSince });
    callRouter.lead({ call, limits, isHeld: held.isHeld });
    every(KEYS_MS, opened.keepKeys);
    every(FLUSH_INTERVAL, opened.flush);
  }

  function every(milliseconds: number, work: () => Promise<void>): void {
    machine.after(milliseconds, () => {
      work().then(() => every(milliseconds, work), fatal);
    });
  }

  function instancesWithout(publicKey: string): number {
    if (defect.countsNoInstances === true) return 0;
    return host.followers().filter(({ nextKey }) => nextKey !== publicKey).length;
  }

  /** Reports a violation if a key takes over while a linked instance lacks it. */
  function activatedEverywhere(unit: Unit): Unit {
    for (const { entry } of unit.audit) {
      if (entry.event_type !== 'authority_key_activated') continue;
      const publicKey = String(entry.details.to_key);
      for (const { instance } of host.followers()) {
        if (folders.get(instance)?.has(publicKey) === true) continue;
        found(new Violation(`${instance} is linked and lacks ${publicKey}, which takes over`));
      }
    }
    return unit;
  }

  function heldList(): JsonObject | null {
    return documents.get('crl') === undefined ? null : held('crl');
  }

  async function shown(name: keyof Shown): Promise<JsonObject> {
    const known = held(name);
    if (defect.asksNobodyForGenesis === true && name === 'genesis' && known !== null) return known;
    const document = await currentDocument(name, runtime.now(), edge);
    if (document === undefined) throw new Refusal('service_not_ready');
    return JSON.parse(documentText(document));
  }

  const created = createHeartbeatSessions({ lastsMs: SESSION_LASTS, runtime });
  const sessions = defect.sessions?.(created) ?? created;
  const { use } = sessions;
  const deriveSecret = followSessionSecret({ signer, genesis, publisher, use });
  every(SECRET_MS, async () => deriveSecret());

  const leading = acquired.then(lead);
  await Promise.race([leading, waits]);
  void follow();
  leading.catch((cause) => {
    if (!ended.signal.aborted) fatal(cause);
  });

  return {
    call: defect.call?.(callRouter.call) ?? callRouter.call,
    authorityKeys,
    sessions,
    now: runtime.now,
    held,
    async read() {
      const names = ['genesis', 'authority_keys', 'crl'] as const;
      const read = await Promise.all(names.map(shown)).catch((cause) => {
        if (cause instanceof Refusal) return null;
        throw cause;
      });
      if (read === null) return null;
      const [genesis, authority_keys, crl] = read as [JsonObject, JsonObject, JsonObject];
      const listed = certificatesOn(crl);
      const missing = authority === null ? [] : before.filter((id) => !listed.includes(id));
      const what = () => `${machine.name} writes without ${missing}, which it has shown`;
      insist(missing.length === 0, what);
      return { genesis, authority_keys, crl };
    },
    async stop(inFlight) {
      await Promise.all([...inFlight, host.halt()]);
      ended.abort();
      await leading.catch(() => undefined);
      await (authority === null ? lease?.end('abandoned') : authority.close());
      client.close();
      host.close();
    },
  };
}
