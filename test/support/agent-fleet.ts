/** A fleet of node agents in one process, minute by minute on the clock of their authority. */
import assert from 'node:assert/strict';
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { SigningKey } from '../../src/client/keys.ts';
import { createNodeAgent, type NodeAgent } from '../../src/client/node-agent.ts';
import type { Fetch } from '../../src/client/options.ts';
import type { JoinCertificate } from '../../src/protocol/records/join-certificate.ts';
import type { TestAuthority } from './authority.ts';
import { MINUTE } from './clock.ts';
import { type Files, newAgentKey, storageIn, stored } from './members.ts';
import { get, operate } from './requests.ts';

export interface FleetMember {
  readonly key: SigningKey;
  readonly token: string;
  readonly files: Files;
  /** Null before it joins and while it is away. */
  agent: NodeAgent | null;
}

export interface AgentFleet {
  readonly members: readonly FleetMember[];
  /** The number of minutes that have passed. */
  minute(): number;
  /** Starts an agent with what it has stored, or with the network as the first one knows it; its first turn is in the current minute. */
  start(member: FleetMember): Promise<void>;
  /** Lets minutes pass in which agents take their turns when they are due, each after `act`. */
  pass(minutes: number, act?: (minute: number) => Promise<unknown>): Promise<void>;
  /** The requests of each minute in this span: all, or those to one path. */
  requests(from: number, until: number, path?: string): number[];
  /** What the agents complained about, each once. */
  readonly complaints: ReadonlySet<string>;
}

const URL_OF_NA = 'http://authority.invalid';
/** The most agents that take a turn at the same time. */
const AT_ONCE = 50;
const MOST_INVITES = 1000;
/** Real time, because thousands of agents in one process take longer than each would on its own machine. */
const PATIENCE_MS = 600_000;

/** A busy machine reuses connections that the server has closed in the meantime because they were idle. */
export const fetchAgain: Fetch = (url, init) => fetch(url, init).catch(() => fetch(url, init));

/** For the authority of such a fleet: requests of one minute arrive at once, and none is turned away. */
export const PATIENT = { MESH_LONGEST_WAIT_MS: '0' };

export interface FleetPlan {
  readonly size: number;
  /** How long the certificates of a member last. */
  validityHours(member: number): number;
}

export async function createAgentFleet(
  na: TestAuthority,
  { size, validityHours }: FleetPlan,
): Promise<AgentFleet> {
  const rootKey: string = (await get(na, '/genesis')).body.root_public_key;
  const tokens = await tokensOf(
    na,
    Array.from({ length: size }, (_, index) => validityHours(index)),
  );
  const members: FleetMember[] = tokens.map((token) => ({
    key: newAgentKey(),
    token,
    files: new Map(),
    agent: null,
  }));
  const asked = new Map<string, number[]>();
  const due = new Map<number, FleetMember[]>();
  const complaints = new Set<string>();
  let minute = 0;

  function count(path: string): void {
    const minutes = asked.get(path) ?? [];
    asked.set(path, minutes);
    minutes[minute] = (minutes[minute] ?? 0) + 1;
  }

  function plan(member: FleetMember, at: number): void {
    const planned = due.get(at) ?? [];
    due.set(at, planned);
    planned.push(member);
  }

  async function turn(member: FleetMember): Promise<void> {
    const { agent, files } = member;
    if (agent === null) return;
    const wait = await agent.turn();
    assert.ok(typeof wait === 'number', JSON.stringify(wait));
    const isEnrolled = Date.parse(certificateOf(files).expires_at) > na.clock.now();
    assert.ok(isEnrolled, agent.state().problem ?? 'without a valid certificate');
    plan(member, minute + Math.max(1, Math.ceil(wait / MINUTE)));
  }

  return {
    members,
    complaints,
    minute: () => minute,
    async start(member) {
      const { key, token, files } = member;
      if (files.size === 0) {
        for (const name of ['genesis', 'crl', 'policy'] as const) {
          const known = members[0]?.files.get(name);
          if (known !== undefined) files.set(name, known);
        }
      }
      member.agent = await createNodeAgent({
        url: URL_OF_NA,
        timeoutMs: PATIENCE_MS,
        fetch(url, init) {
          count(new URL(url).pathname);
          return fetchAgain(url.replace(URL_OF_NA, na.url), init);
        },
        key,
        rootKey,
        storage: storageIn(files),
        verify: verifySignature,
        token: () => token,
        now: na.clock.now,
        onEvent(event) {
          if (event.type === 'refused') complaints.add(`${event.what}: ${event.problem}`);
          if (event.type === 'failed') complaints.add(event.problem);
        },
      });
      plan(member, minute);
    },
    async pass(minutes, act) {
      for (const end = minute + minutes; minute < end; minute += 1) {
        await act?.(minute);
        await na.keepKeys();
        const now = due.get(minute) ?? [];
        due.delete(minute);
        for (let from = 0; from < now.length; from += AT_ONCE) {
          await Promise.all(now.slice(from, from + AT_ONCE).map(turn));
        }
        na.clock.advance(MINUTE);
      }
    },
    requests(from, until, path) {
      const counted = path === undefined ? [...asked.values()] : [asked.get(path) ?? []];
      return Array.from({ length: until - from }, (_, index) =>
        counted.reduce((sum, minutes) => sum + (minutes[from + index] ?? 0), 0),
      );
    },
  };
}

export function certificateOf(files: Files): JoinCertificate {
  return stored(files, 'certificate');
}

/** One invite for each of the validities, in their order. */
async function tokensOf(na: TestAuthority, validities: readonly number[]): Promise<string[]> {
  const left = new Map<number, string[]>();
  for (const hours of new Set(validities)) {
    const tokens: string[] = [];
    const wanted = validities.filter((each) => each === hours).length;
    while (tokens.length < wanted) {
      const count = Math.min(MOST_INVITES, wanted - tokens.length);
      const terms = { count, max_validity_hours: hours };
      const { body } = await operate(na, '/admin/invite', terms);
      tokens.push(...body.tokens.map((token: { token_id: string }) => token.token_id));
    }
    left.set(hours, tokens);
  }
  return validities.map((hours) => left.get(hours)?.pop() ?? '');
}
