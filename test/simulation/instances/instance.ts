/** One instance, put together as the program does it, but for the machine, the network and the database. */

import { createLogger } from '../../../src/base/log/logger.ts';
import { createRateLimits, type RateLimitSettings } from '../../../src/edge/rate-limit.ts';
import type { Answer } from '../../../src/protocol/contract/answers.ts';
import { type Call, onceConfirmed, whileHeld } from '../../../src/protocol/contract/calls.ts';
import { documentText } from '../../../src/protocol/contract/documents.ts';
import {
  createInstanceStatusMemory,
  instanceStatusIn,
  noteWriter,
} from '../../../src/protocol/contract/instance-status.ts';
import {
  createDocumentCache,
  createDocumentPublisher,
} from '../../../src/protocol/contract/publications.ts';
import { RATE_BUCKETS } from '../../../src/protocol/route-description.ts';
import { createCallRouter } from '../../../src/server/link/call-router.ts';
import { createLinkClient, withdrawAll } from '../../../src/server/link/client.ts';
import { openLinkHost } from '../../../src/server/link/host.ts';
import { acquireLease, type Lease } from '../../../src/store/postgresql/lease.ts';
import type { StatePosition } from '../../../src/store/store.ts';
import { insist } from '../violation.ts';
import type { Machine } from './clockwork.ts';
import type { Database, StoredEntry } from './database.ts';
import { leaseTable } from './lease-table.ts';
import type { Network } from './network.ts';
import { type Change, openStandIn, positionOf, type StandIn } from './stand-in.ts';

export interface Surroundings {
  readonly database: Database;
  readonly network: Network;
  readonly defect: InstanceDefect;
}

/** What a wrong program would do. */
export interface InstanceDefect {
  /** Answers by its own clock, without asking whether it is still the holder. */
  readonly answersUnconfirmed?: boolean;
  /** Takes over whatever the database has, without remembering what it has seen. */
  readonly remembersNothing?: boolean;
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
/** After an end of the process, by whoever supervises it. */
const RESTART_MS = 200;
/** How often an instance that waits reads what is stored. */
const FOLLOW_MS = 250;

/** The public face of a process while it runs. */
interface Running {
  readonly call: Call;
  readList(): Promise<readonly string[] | null>;
  stop(inFlight: Iterable<Promise<unknown>>): Promise<void>;
}

export class Instance {
  readonly machine: Machine;
  readonly #surroundings: Surroundings;
  #running: Running | null = null;
  readonly #inFlight = new Set<Promise<unknown>>();

  constructor(machine: Machine, surroundings: Surroundings) {
    this.machine = machine;
    this.#surroundings = surroundings;
  }

  start(): void {
    if (this.machine.isRunning) return;
    this.machine.start(() => {
      const { life } = this.machine;
      run(this.machine, this.#surroundings, (cause) => this.#end(life, cause)).then(
        (running) => {
          if (this.machine.life === life) this.#running = running;
        },
        (cause) => this.#end(life, cause),
      );
    });
  }

  /** The process is gone, and its kernel closes its connections. */
  kill(): void {
    this.machine.kill();
    this.#running = null;
    this.#inFlight.clear();
    this.#surroundings.network.died(this.machine);
  }

  #end(life: number, _cause: unknown): void {
    if (this.machine.life !== life || !this.machine.isRunning) return;
    this.kill();
    this.#startLater();
  }

  #startLater(): void {
    const { clockwork } = this.machine;
    clockwork.at(clockwork.now + RESTART_MS, () => this.start());
  }

  /** Hands over, ends, and is started again. */
  stop(): void {
    const { machine } = this;
    const running = this.#running;
    const { life } = machine;
    if (running === null) return;
    machine.run(life, () => {
      // Its listeners are closed, and no request reaches it any more.
      this.#running = null;
      running.stop(this.#inFlight).then(
        () => this.#end(life, null),
        (cause) => this.#end(life, cause),
      );
    });
  }

  /** Null when nobody answers. */
  change(name: 'join' | 'revokeCertificate', change: Change): Promise<Answer> | null {
    return this.#asked((running) => running.call(name, change as never));
  }

  /** Rejects with a violation when it writes, and shows less than before its turn. */
  readList(): Promise<readonly string[] | null> | null {
    return this.#asked((running) => running.readList());
  }

  #asked<Result>(ask: (running: Running) => Result | Promise<Result>): Promise<Result> | null {
    const running = this.#running;
    if (running === null || !this.machine.isRunning) return null;
    const { life } = this.machine;
    const answered = new Promise<Result>((resolve, reject) => {
      this.machine.run(life, () => {
        Promise.resolve(ask(running)).then(resolve, reject);
      });
    });
    const ended: Promise<unknown> = answered.then(
      () => this.#inFlight.delete(ended),
      () => this.#inFlight.delete(ended),
    );
    this.#inFlight.add(ended);
    return answered;
  }
}

/** Resolves when it serves. */
async function run(
  machine: Machine,
  { database, network, defect }: Surroundings,
  fatal: (cause: unknown) => void,
): Promise<Running> {
  const { elapsed } = machine;
  const memory = createInstanceStatusMemory();
  const instanceStatus = instanceStatusIn(memory);
  const publisher = createDocumentPublisher();
  const documents = createDocumentCache(publisher.versions);
  publisher.follow(documents.take);
  const limits = createRateLimits(NO_LIMITS);
  const link = { program: 'one', publisher, logger, elapsed, wires: network.wires(machine) };
  const host = await openLinkHost({
    ...link,
    address: { host: machine.name, port: 0 },
  });
  const client = createLinkClient({
    edgesCaughtUp: () => Promise.resolve(),
    answered: () => undefined,
    nextKey: () => null,
    ...link,
    name: machine.name,
    instance: machine.name,
    instanceStatus,
    linked: () => callRouter.resume(),
  });
  const callRouter = createCallRouter({ client, holdMs: HOLD_MS, rateLimits: NO_LIMITS, elapsed });
  const ended = new AbortController();
  let authority: StandIn | null = null;
  const holder = `${machine.name} ${machine.life}`;
  let position: StatePosition | null = null;
  let seenList: readonly string[] = [];
  /** The list that it has shown when its turn came. */
  let before: readonly string[] = [];
  documents.onChange((name, document) => {
    if (name !== 'crl') return;
    const list = listOf(documentText(document));
    if (list.length >= seenList.length) seenList = list;
  });

  function shown(): readonly string[] | null {
    const latest = documents.latest('crl');
    return latest === undefined ? null : listOf(documentText(latest));
  }

  /** Reads what is stored, as an instance does that keeps the state ready. */
  async function follow(): Promise<void> {
    if (lease !== null) return;
    position = await database
      .ask(machine, () => furthest(position, database.entries))
      .catch(() => position);
    machine.after(FOLLOW_MS, () => void follow());
  }

  let lease: Lease | null = null;

  let isWaiting: () => void = () => undefined;
  const waits = new Promise<void>((resolve) => {
    isWaiting = resolve;
  });
  const acquired = acquireLease({
    // Another at each start.
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
    stopRequested: () => undefined,
    lost: fatal,
  });

  async function lead(held: Lease): Promise<void> {
    client.close();
    const list = { sequence: seenList.length, lastRevoked: seenList.at(-1) ?? null };
    const seen = defect.remembersNothing === true ? null : { position, list };
    before = shown() ?? [];
    withdrawAll(publisher);
    lease = held;
    const { epoch } = held;
    const committed = held.noteHeld;
    const opened = await openStandIn({
      database,
      machine,
      epoch,
      holder,
      seen,
      publisher,
      fatal,
      committed,
    });
    authority = opened;
    const heldSince = defect.answersUnconfirmed === true ? () => null : held.heldSince;
    const call = onceConfirmed(whileHeld(opened.call, held.isHeld), heldSince, elapsed);
    noteWriter(memory, epoch);
    host.startServing({ epoch, call, limits, heldSince });
    callRouter.lead({ call, limits, isHeld: held.isHeld });
  }

  const leading = acquired.then(lead);
  await Promise.race([leading, waits]);
  void follow();
  leading.catch((cause) => {
    if (!ended.signal.aborted) fatal(cause);
  });

  return {
    call: callRouter.call,
    async readList() {
      const answer = await callRouter.call('awaitPublications', null);
      const list = shown();
      if (!answer.ok || list === null) return null;
      const missing = authority === null ? [] : before.filter((id) => !list.includes(id));
      const what = () => `${machine.name} writes without ${missing}, which it has shown`;
      insist(missing.length === 0, what);
      return list;
    },
    async stop(inFlight) {
      await Promise.all([...inFlight, host.halt()]);
      ended.abort();
      await leading.catch(() => undefined);
      await authority?.close();
      await lease?.end('released');
      client.close();
      host.close();
    },
  };
}

/** What is stored, or what was read before, where that is gone. */
function furthest(
  seen: StatePosition | null,
  entries: readonly StoredEntry[],
): StatePosition | null {
  if (seen === null) return positionOf(entries);
  const { auditHead } = positionOf(entries.slice(0, seen.revision));
  return auditHead === seen.auditHead ? positionOf(entries) : seen;
}

function listOf(text: string): readonly string[] {
  return (JSON.parse(text) as { readonly revoked_certificates: string[] }).revoked_certificates;
}
