/**
 * Visits the authorities of other sovereigns that treaties have addresses of [core-4-13-3]. Only the active instance does.
 * What they answer is fetched and read on a thread of its own, which is started with the first visit.
 */
import { type PartnerFacts, partnerKey } from '../../authority/host-status.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { Runtime } from '../../base/runtime.ts';
import type { Call } from '../../protocol/contract/calls.ts';
import type { PartnerAddress } from '../../protocol/contract/inputs.ts';
import type { Reach } from '../outbound/lookup.ts';
import { NOTHING_SERVED, type Served, type Visited } from './visit.ts';

export interface FederationSettings {
  /** Milliseconds between two visits of a partner. */
  readonly every: number;
  /** Whether partners may be on this machine or its private network, and may lack TLS. */
  readonly allowsPrivate: boolean;
}

export interface FederationTools {
  readonly call: Call;
  readonly runtime: Runtime;
  readonly logger: Logger;
  startThread(reach: Reach): VisitThread;
}

/** Where partners are visited. */
export interface VisitThread {
  visit(partner: PartnerAddress, served: Served, now: number): Promise<Visited>;
  /** Ends what is being fetched. */
  end(): void;
}

const MOST_AT_ONCE = 2;
/** How often the partners are read while visits go on. */
const READ_MS = 1000;

export type Federation = ReturnType<typeof createFederation>;

export function createFederation(
  { every, allowsPrivate }: FederationSettings,
  { startThread, ...tools }: FederationTools,
) {
  const { call, runtime } = tools;
  const reach: Reach = { allowsPrivate, setting: 'MESH_FEDERATION_PRIVATE=1' };
  const partners = new Map<string, Partner>();
  /** What was read last, and when. */
  let text = '';
  let readAt = Number.NEGATIVE_INFINITY;
  /** The first visits after a start are spread over the interval; a new partner is visited at once. */
  let spreadMs = every;
  let thread: VisitThread | null = null;
  let isStopped = false;

  async function readPartners(): Promise<void> {
    readAt = runtime.elapsed();
    const answer = await call('readPartners', null);
    if (!answer.ok || answer.json === text) return;
    text = answer.json;
    const known = new Map(partners);
    partners.clear();
    for (const address of JSON.parse(text) as readonly PartnerAddress[]) {
      const key = partnerKey(address.subject, address.endpoint);
      const partner = known.get(key) ?? createPartner(address, spreadMs * random(), tools);
      partner.address = address;
      partners.set(key, partner);
    }
    spreadMs = 0;
  }

  function random(): number {
    return runtime.randomBytes(4).readUInt32LE() / 2 ** 32;
  }

  /** Those that fail come later, so that slow ones do not delay the others, but not last, when they might never come. */
  function rankOf({ dueAt, problem }: Partner): number {
    return problem === null ? dueAt : dueAt + every;
  }

  function nextDue(): Partner | undefined {
    const now = runtime.elapsed();
    let next: Partner | undefined;
    for (const partner of partners.values()) {
      if (partner.dueAt <= now && (next === undefined || rankOf(partner) < rankOf(next)))
        next = partner;
    }
    return isStopped ? undefined : next;
  }

  async function visitNext(): Promise<void> {
    for (let next = nextDue(); next !== undefined; next = nextDue()) {
      next.dueAt = runtime.elapsed() + every;
      thread ??= startThread(reach);
      const visited = await thread.visit(next.address, next.visited.served, runtime.now());
      if (isStopped) return;
      next.judge(visited);
      if (runtime.elapsed() - readAt >= READ_MS) await readPartners();
    }
  }

  return {
    /** By `partnerKey`. */
    facts: partners as ReadonlyMap<string, PartnerFacts>,
    /** Call at the start. */
    readPartners,
    async visitDue(): Promise<void> {
      await readPartners();
      await Promise.all(Array.from({ length: MOST_AT_ONCE }, visitNext));
    },
    /** Ends what is being fetched. */
    stop(): void {
      isStopped = true;
      thread?.end();
    },
  };
}

type Partner = ReturnType<typeof createPartner>;

function createPartner(
  first: PartnerAddress,
  delay: number,
  { runtime, logger }: Pick<FederationTools, 'runtime' | 'logger'>,
) {
  const { subject, endpoint } = first;
  const name = `${JSON.stringify(subject)} at ${new URL(endpoint).host}`;
  /** By the monotonic clock, because the wall clock may be set meanwhile. */
  let fetchedFrom: number | null = null;
  let failingFrom: number | null = null;

  function instantAt(elapsed: number | null): number | null {
    return elapsed === null ? null : runtime.now() - (runtime.elapsed() - elapsed);
  }

  const partner = {
    subject,
    endpoint,
    /** On the monotonic clock. */
    dueAt: runtime.elapsed() + delay,
    visited: { problem: null, served: NOTHING_SERVED } as Visited,
    address: first,
    get fetchedAt() {
      return instantAt(fetchedFrom);
    },
    get failingSince() {
      return instantAt(failingFrom);
    },
    get problem() {
      return partner.visited.problem;
    },
    judge(visited: Visited): void {
      const { problem } = visited;
      partner.visited = visited;
      if (problem === null) fetchedFrom = runtime.elapsed();
      if ((problem === null) === (failingFrom === null)) return;
      failingFrom = problem === null ? null : runtime.elapsed();
      if (problem === null) logger.write('INFO', 'federation', `${name} is imported again`);
      else logger.write('WARNING', 'federation', `${name} cannot be imported: ${problem.text}`);
    },
  };
  return partner;
}
