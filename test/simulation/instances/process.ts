/** The process of an instance, wired as in the program, except for the machine, the network and the database. */
import { formerKeys, genesisInForce, storedChain } from '../../../src/authority/authority-keys.ts';
import { NOTHING_KNOWN } from '../../../src/authority/host-status.ts';
import type { JsonObject } from '../../../src/base/json/value.ts';
import { jsonText } from '../../../src/base/json/write.ts';
import { createLogger } from '../../../src/base/log/logger.ts';
import type { KnownAuthorityKeys } from '../../../src/edge/auth/known-keys.ts';
import type { HeartbeatSessions } from '../../../src/edge/auth/session.ts';
import { currentDocument } from '../../../src/edge/documents/documents.ts';
import {
  createForwarding,
  type Forwarded,
  type Unanswered,
} from '../../../src/edge/forward/forwarder.ts';
import type { ForwardTarget } from '../../../src/edge/forward/target.ts';
import {
  type Answer,
  type Call,
  OUTCOME_UNKNOWN,
  onceConfirmed,
  UNAVAILABLE,
  whileHeld,
} from '../../../src/protocol/contract/calls.ts';
import {
  createDocumentPublisher,
  documentText,
  publishedDocument,
} from '../../../src/protocol/contract/documents.ts';
import {
  createInstanceStatusMemory,
  instanceStatusIn,
  noteActive,
} from '../../../src/protocol/contract/instance-status.ts';
import { Refusal } from '../../../src/protocol/refusals.ts';
import { createVacancy } from '../../../src/server/forward/active-watch.ts';
import { createForwardKeys, keysIn } from '../../../src/server/forward/keys.ts';
import { seenList } from '../../../src/server/standby.ts';
import { acquireLease, type Lease } from '../../../src/store/postgresql/lease.ts';
import type { StatePosition, Store, Unit } from '../../../src/store/store.ts';
import type { Random } from '../../fuzz/random.ts';
import { type OpenAuthority, open } from '../authority-calls.ts';
import { edgeOf } from '../edge.ts';
import type { KeyFolder } from '../key-folder.ts';
import { type MemoryDisk, subjectsOn } from '../memory-disk.ts';
import { FLUSH_INTERVAL } from '../model/contacts.ts';
import { insist, Violation } from '../violation.ts';
import type { Machine } from './clockwork.ts';
import { type Database, furthest, type SeenRow } from './database.ts';
import { leaseTable } from './lease-table.ts';
import { machineRuntime } from './machine-runtime.ts';
import { type Network, NOT_BEGUN } from './network.ts';
import { remoteStore } from './remote-store.ts';
import { certificatesOn, type Shown } from './shown.ts';

/** How a faulty program would behave. */
export interface ProcessDefect {
  /** Answers by its own clock, also what was forwarded after its term, without confirming that it is still active. */
  readonly answersUnconfirmed?: boolean;
  /** Takes over any database state, without remembering what it has seen. */
  readonly remembersNothing?: boolean;
  /** Activates a key no matter which instances have it. */
  readonly countsNoInstances?: boolean;
  /** Keeps signing with the key that it started with, regardless of the state. */
  readonly forgetsKeys?: boolean;
  /** Serves the genesis block that it has, without requesting the current one. */
  readonly asksNobodyForGenesis?: boolean;
  /** Changes how an edge judges and starts sessions. */
  readonly sessions?: (sessions: HeartbeatSessions) => HeartbeatSessions;
  /** Changes what the active instance reads and writes. */
  readonly store?: (store: Store) => Store;
  /** Sends a request again that may have been carried out, whatever it asks for. */
  readonly repeatsAnything?: boolean;
  /** Serves the last answers that it has passed on as if they were current. */
  readonly unmarkedCopies?: boolean;
  /** Changes what an edge asks the authority. */
  readonly call?: (call: Call) => Call;
}

export interface Surroundings {
  readonly database: Database;
  readonly network: Network<Asked>;
  readonly chance: Random;
  /** By machine name. */
  readonly folders: ReadonlyMap<string, KeyFolder>;
  readonly defect: ProcessDefect;
  /** Called with each violation. */
  found(cause: unknown): void;
}

/** A request, as the instance handles it that is active when it arrives. */
export type Asked = (running: Running) => Promise<unknown>;

/** The public interface of a running process. */
export interface Running {
  /** Calls the authority of this instance, if it is active. */
  readonly call: Call;
  /** Answers the request, or has the active instance answer it; null if nothing is asked. */
  ask(question: (running: Running) => Answer | Promise<Answer> | null): Promise<Answer | null>;
  readonly authorityKeys: KnownAuthorityKeys;
  readonly sessions: HeartbeatSessions;
  now(): number;
  /** Returns the document that it has, without confirming that it is active. */
  held(name: keyof Shown): JsonObject | null;
  /**
   * Null if nobody says what is currently published. Rejects if the active instance shows less than before its turn.
   */
  read(): Promise<Shown | null>;
  /** What it shows if it is active. */
  readHere(): Promise<Shown | null>;
  stop(inFlight: Iterable<Promise<unknown>>): Promise<void>;
}

const LEASE_MS = 1500;
const HOLD_MS = 3000;
const logger = createLogger({
  level: 'CRITICAL',
  format: 'text',
  destination: { write: () => undefined },
  now: () => 0,
});
/** How often a waiting instance reads the stored state. */
const FOLLOW_MS = 250;
/** How often the active instance checks whether a key change is due. */
const KEYS_MS = 1000;
/** How often each instance writes its row. */
const ROW_MS = 1000;
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
  const { documents, authorityKeys, sessions, deriveSecret } = edgeOf({
    publisher,
    signer,
    genesis,
    runtime,
    sessions: defect.sessions,
  });
  const keys = createForwardKeys(signer, genesis);
  publisher.follow(({ name, document }) => {
    if (name === 'authority_keys') keys.know(keysIn(document));
  });
  const forwarding = createForwarding<ForwardTarget | 'this instance'>({
    holdMs: HOLD_MS,
    elapsed,
  });
  const vacancy = createVacancy({ memory, leaseMs: LEASE_MS, logger, elapsed });
  let led: Call = () => UNAVAILABLE;
  /** What it has passed on last. */
  let copy: Shown | null = null;
  let isStopping = false;
  const serving = network.serve(machine, keys, (asked) =>
    instanceStatus.isActive() && !isStopping ? asked(running) : Promise.resolve(NOT_BEGUN),
  );
  const edge = { documents, instanceStatus, call: (...given: Parameters<Call>) => led(...given) };
  const ended = new AbortController();
  let authority: OpenAuthority | null = null;
  const holder = `${machine.name} ${machine.life}`;
  let position: StatePosition | null = null;
  /** The certificates on the list that it had shown by the time its turn came. */
  let before: readonly string[] = [];
  let lease: Lease | null = null;
  let rows: readonly SeenRow[] = [];

  /** Writes the row of this instance, and reads those of the others. */
  async function writeRow(): Promise<void> {
    const own = { name: machine.name, nextKey: keys.nextKey() };
    rows = (await database.ask(machine, () => database.writeRow(own)).catch(() => null)) ?? rows;
    machine.after(ROW_MS, () => void writeRow());
  }

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
      keys.know(seen.chain.keys);
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
    standby: {
      configuration: {},
      link: serving.address,
      seen(holder) {
        vacancy.reached();
        if (holder?.link == null || instanceStatus.isActive()) return;
        const { term, link: address } = holder;
        forwarding.turnTo({ term, address, keys: keys.offered() });
      },
      missed: vacancy.missed,
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
    const list = seenList(copy === null ? undefined : publishedDocument(jsonText(copy.crl)));
    const seen = defect.remembersNothing === true ? null : { position, list };
    before = certificatesOn(copy?.crl ?? null);
    lease = held;
    const { term, previousOwner } = held;
    const by = { term, holder, previousOwner };
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
    led = defect.call?.(call) ?? call;
    noteActive(memory, term);
    forwarding.turnTo('this instance');
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
    return others().filter(({ nextKey }) => nextKey !== publicKey).length;
  }

  /** The other instances that this one has seen lately. */
  function others() {
    return rows.filter(({ name }) => name !== machine.name);
  }

  /** Reports a violation if a key takes over while an instance that was seen lacks it. */
  function activatedEverywhere(unit: Unit): Unit {
    for (const { entry } of unit.audit) {
      if (entry.event_type !== 'authority_key_activated') continue;
      const publicKey = String(entry.details.to_key);
      for (const { name } of others()) {
        if (folders.get(name)?.has(publicKey) === true) continue;
        found(new Violation(`${name} was seen and lacks ${publicKey}, which takes over`));
      }
    }
    return unit;
  }

  async function shown(name: keyof Shown): Promise<JsonObject> {
    const known = held(name);
    if (defect.asksNobodyForGenesis === true && name === 'genesis' && known !== null) return known;
    const document = await currentDocument(name, runtime.now(), edge);
    if (document === undefined) throw new Refusal('service_not_ready');
    return JSON.parse(documentText(document));
  }

  /** Asks the active instance, wherever that is. */
  function forward<Result>(
    isRead: boolean,
    asked: (running: Running) => Promise<Result>,
  ): Promise<Result | Unanswered> {
    const request: Forwarded<ForwardTarget | 'this instance', Result> = {
      isRead,
      isRepeatable: isRead || defect.repeatsAnything === true,
      bytes: 0,
      isGone: () => false,
      send: (target) =>
        target === 'this instance'
          ? asked(running).then((answer) => ({ kind: 'answered', answer }))
          : network.ask<Result>(machine, target, asked as Asked),
    };
    return forwarding.forward(request);
  }

  /** What the active instance shows. */
  async function readHere(): Promise<Shown | null> {
    const names = ['genesis', 'authority_keys', 'crl'] as const;
    const read = await Promise.all(names.map(shown)).catch((cause) => {
      if (cause instanceof Refusal) return null;
      throw cause;
    });
    if (read === null) return null;
    const [genesis, authority_keys, crl] = read as [JsonObject, JsonObject, JsonObject];
    const listed = certificatesOn(crl);
    const missing = authority === null ? [] : before.filter((id) => !listed.includes(id));
    const what = () => `${machine.name} is active without ${missing}, which it has shown`;
    insist(missing.length === 0, what);
    return { genesis, authority_keys, crl };
  }

  every(SECRET_MS, async () => deriveSecret());

  const running: Running = {
    call: (...given) => led(...given),
    authorityKeys,
    sessions,
    now: runtime.now,
    held,
    readHere,
    async ask(question) {
      if (instanceStatus.isActive()) return question(running);
      const answer = await forward(false, async (active) => question(active));
      if (answer === 'outcome_unknown') return OUTCOME_UNKNOWN;
      return typeof answer === 'string' ? UNAVAILABLE : answer;
    },
    async read() {
      if (instanceStatus.isActive()) return readHere();
      const read = instanceStatus.isVacant()
        ? 'authority_unavailable'
        : await forward(true, (active) => active.readHere());
      if (typeof read !== 'string') {
        copy = read ?? copy;
        return read;
      }
      // A copy is marked, so it promises nothing.
      const isShown = instanceStatus.isVacant() && defect.unmarkedCopies === true;
      return isShown ? copy : null;
    },
    async stop(inFlight) {
      isStopping = true;
      await Promise.all(inFlight);
      ended.abort();
      await leading.catch(() => undefined);
      await (authority === null ? lease?.end('abandoned') : authority.close());
      serving.close();
    },
  };

  const leading = acquired.then(lead);
  await Promise.race([leading, waits]);
  void follow();
  void writeRow();
  leading.catch((cause) => {
    if (!ended.signal.aborted) fatal(cause);
  });

  return running;
}
