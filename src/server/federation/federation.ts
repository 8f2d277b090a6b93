/**
 * Visits the authorities of other sovereigns that treaties have addresses of [core-4-13-3]. Only the active instance does, and
 * without such treaties nothing is scheduled.
 */
import { type PartnerFacts, partnerKey } from '../../authority/host-status.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { Runtime } from '../../base/runtime.ts';
import type { Call } from '../../protocol/contract/calls.ts';
import type { PartnerAddress } from '../../protocol/contract/inputs.ts';
import type { Reach } from '../outbound/address.ts';
import { createStrangerClient } from '../outbound/client.ts';
import { createLookup } from '../outbound/lookup.ts';
import { type Problem, type Served, visit } from './visit.ts';

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
  readonly maxFeedEntries: number;
  /** Runs `visitDue` as periodic work. */
  runDue(): void;
}

const MOST_AT_ONCE = 2;
/** For each of the two documents of a partner. */
const LIMIT_MS = 5000;
/** Treaties that are issued together are read together. */
const SHORTEST_WAIT_MS = 100;

export type Federation = ReturnType<typeof createFederation>;

export function createFederation(
  { every, allowsPrivate }: FederationSettings,
  tools: FederationTools,
) {
  const { runtime } = tools;
  const stopped = new AbortController();
  const { signal: abort } = stopped;
  const reach: Reach = { allowsPrivate, setting: 'MESH_FEDERATION_PRIVATE=1' };
  const client = createStrangerClient({ lookup: createLookup(reach), limitMs: LIMIT_MS });
  const partners = createPartners(every, tools);
  let timer: NodeJS.Timeout | undefined;

  function plan(): void {
    clearTimeout(timer);
    const first = partners.firstDueAt();
    if (first === null || abort.aborted) return;
    timer = setTimeout(tools.runDue, Math.max(first - runtime.elapsed(), SHORTEST_WAIT_MS));
  }

  async function visitNext(): Promise<void> {
    for (
      let next = partners.nextDue();
      next !== undefined && !abort.aborted;
      next = partners.nextDue()
    ) {
      next.dueAt = runtime.elapsed() + every;
      const problem = await visit(next.address, next.served, { ...tools, client, reach, abort });
      if (!abort.aborted) next.judge(problem);
    }
  }

  return {
    /** By `partnerKey`. */
    facts: partners.facts,
    /** Call at the start, and when treaties have changed. */
    async readPartners(): Promise<void> {
      await partners.read();
      plan();
    },
    async visitDue(): Promise<void> {
      await partners.read();
      await Promise.all(Array.from({ length: MOST_AT_ONCE }, visitNext));
      plan();
    },
    stop(): void {
      stopped.abort();
      clearTimeout(timer);
      client.close();
    },
  };
}

/** The partners that the treaties name, and when each is due. */
function createPartners(every: number, tools: FederationTools) {
  const { call, runtime } = tools;
  const partners = new Map<string, Partner>();
  /** The first visits after a start are spread over the interval; a new partner is visited at once. */
  let isStarting = true;

  function random(): number {
    return runtime.randomBytes(4).readUInt32LE() / 2 ** 32;
  }

  return {
    facts: partners as ReadonlyMap<string, PartnerFacts>,
    async read(): Promise<void> {
      const answer = await call('readPartners', null);
      if (!answer.ok) return;
      const found = JSON.parse(answer.json) as readonly PartnerAddress[];
      const keys = new Set(found.map(({ subject, endpoint }) => partnerKey(subject, endpoint)));
      for (const key of partners.keys()) if (!keys.has(key)) partners.delete(key);
      for (const address of found) {
        const key = partnerKey(address.subject, address.endpoint);
        const known = partners.get(key);
        if (known !== undefined) known.use(address);
        else partners.set(key, createPartner(address, tools, isStarting ? every * random() : 0));
      }
      isStarting = false;
    },
    /** By the monotonic clock; null without partners. */
    firstDueAt: (): number | null =>
      partners.size === 0 ? null : Math.min(...[...partners.values()].map(({ dueAt }) => dueAt)),
    /** Those that fail come last, so that slow ones do not delay the others. */
    nextDue(): Partner | undefined {
      const now = runtime.elapsed();
      let next: Partner | undefined;
      for (const partner of partners.values()) {
        if (partner.dueAt <= now && (next === undefined || isBefore(partner, next))) next = partner;
      }
      return next;
    },
  };
}

type Partner = ReturnType<typeof createPartner>;

function createPartner(
  first: PartnerAddress,
  { runtime, logger }: Pick<FederationTools, 'runtime' | 'logger'>,
  delay: number,
) {
  const { subject, endpoint } = first;
  const name = `${JSON.stringify(subject)} at ${new URL(endpoint).host}`;
  let address = first;
  let served: Served = { tags: new Map(), feedIssuedAt: null };
  let problem: Problem | null = null;
  /** By the monotonic clock, because the wall clock may be set meanwhile. */
  let fetchedFrom: number | null = null;
  let failingFrom: number | null = null;

  function instantAt(elapsed: number | null): number | null {
    return elapsed === null ? null : runtime.now() - (runtime.elapsed() - elapsed);
  }

  return {
    /** On the monotonic clock. */
    dueAt: runtime.elapsed() + delay,
    get address() {
      return address;
    },
    get served() {
      return served;
    },
    subject,
    endpoint,
    get fetchedAt() {
      return instantAt(fetchedFrom);
    },
    get failingSince() {
      return instantAt(failingFrom);
    },
    get problem() {
      return problem;
    },
    /** Other treaties may accept what these have refused, or have to follow what these have. */
    use(found: PartnerAddress): void {
      if (found.treatyIds.join() !== address.treatyIds.join()) {
        served = { ...served, tags: new Map() };
      }
      address = found;
    },
    judge(found: Problem | null): void {
      if (found !== null && failingFrom === null) {
        logger.write('WARNING', 'federation', `${name} cannot be imported: ${found.text}`);
      }
      if (found === null && failingFrom !== null) {
        logger.write('INFO', 'federation', `${name} is imported again`);
      }
      problem = found;
      failingFrom = found === null ? null : (failingFrom ?? runtime.elapsed());
      if (found === null) fetchedFrom = runtime.elapsed();
    },
  };
}

function isBefore(one: Partner, other: Partner): boolean {
  const isFailing = ({ problem }: Partner) => (problem === null ? 0 : 1);
  return (isFailing(one) - isFailing(other) || one.dueAt - other.dueAt) < 0;
}
