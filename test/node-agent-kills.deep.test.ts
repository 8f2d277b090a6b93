/** Node agents with real folders, whose authority is killed while all of them are joining or renewing. */
import assert from 'node:assert/strict';
import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { folderStorage } from '../src/cli/node/run.ts';
import type { AgentStorage } from '../src/client/agent-storage.ts';
import { type AgentEnd, createNodeAgent } from '../src/client/node-agent.ts';
import type { Fetch } from '../src/client/options.ts';
import { pause } from '../src/client/waiting.ts';
import type { TestAuthority } from './support/authority.ts';
import { type ChildServer, startChildServer } from './support/child-server.ts';
import { HOUR, REAL_TIME } from './support/clock.ts';
import { networkFolder, scratchFolder } from './support/folders.ts';
import { programWith } from './support/injected-faults.ts';
import { newAgentKey } from './support/members.ts';
import { get, joinedNode, operate } from './support/requests.ts';
import { auditEntriesOf, LMDB_ONLY } from './support/test-stores.ts';

/** `npm run test:longer -- fleet` sets more. */
const KILLS = Number(process.env.MESH_TEST_FLEET_KILLS ?? 2);
const AGENTS = KILLS > 2 ? 200 : 24;
/** The number of joins and renewals that are answered before a kill; all other answers are lost. */
const ANSWERED = AGENTS / 4;
const VALIDITY_HOURS = 24;
/** After this time, the renewal window of every certificate has passed, and none has expired. */
const UNTIL_ALL_RENEW = 19 * HOUR;
/** Agents wait for this fraction of their normal delays, but never for longer than the limit. */
const HASTE = 1 / 100;
const LONGEST_WAIT_MS = 1000;
const PATIENCE_MS = 120_000;

test(
  `${AGENTS} agents whose authority is killed ${KILLS} times while they join and renew get one certificate each time, and keep it`,
  LMDB_ONLY,
  async () => {
    await using network = networkFolder('alpha');
    await using scratch = scratchFolder();
    await using authority = killable(network.path);
    const fleet: Member[] = [];
    const stop = new AbortController();
    setMaxListeners(2 * AGENTS, stop.signal);
    using _agents = { [Symbol.dispose]: () => stop.abort() };
    let ended: Promise<AgentEnd[]> = Promise.resolve([]);

    async function enlist(na: TestAuthority): Promise<void> {
      const rootKey: string = (await get(na, '/genesis')).body.root_public_key;
      const terms = { count: AGENTS, max_validity_hours: VALIDITY_HOURS };
      const { tokens } = (await operate(na, '/admin/invite', terms)).body;
      for (const { token_id: token } of tokens) {
        const folder = join(scratch.path, String(fleet.length));
        fleet.push(await memberOf(authority, { folder, rootKey, token, signal: stop.signal }));
      }
      ended = Promise.all(fleet.map((member) => member.ended));
    }

    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = await authority.start();
      if (kill === 0) await enlist(before);
      await revokeAnother(before);
      await authority.serveUntilKilled(ANSWERED);
      const sequence = await revokeAnother(await authority.start());
      authority.serve();
      const isCaughtUp = (member: Member) =>
        member.certificates.length > kill && member.sequences.at(-1) === sequence;
      await until(() => fleet.every(isCaughtUp), fleet);
      await authority.stop(UNTIL_ALL_RENEW);
    }
    stop.abort();
    for (const { code } of await ended) assert.equal(code, 'stopped');

    const entries = await auditEntriesOf({ dataDir: network.path });
    const successors = new Map<string, string>();
    for (const { event_type, details } of entries) {
      if (event_type !== 'certificate_renewed') continue;
      const { old_cert_id, new_cert_id } = details as Record<string, string>;
      assert.ok(old_cert_id !== undefined && new_cert_id !== undefined);
      assert.ok(!successors.has(old_cert_id), 'renewed twice');
      successors.set(old_cert_id, new_cert_id);
    }
    const issued = entries.filter(({ event_type }) => event_type === 'certificate_issued');
    assert.equal(
      issued.length,
      AGENTS + 2 * KILLS,
      'each joined once, except those that were revoked',
    );
    for (const { certificates, sequences, refusals } of fleet) {
      assert.equal(certificates.length, KILLS);
      for (const [index, certificate] of certificates.slice(1).entries()) {
        assert.equal(certificate, successors.get(certificates[index] ?? ''));
      }
      assert.deepEqual(
        sequences,
        sequences.toSorted((a, b) => a - b),
      );
      assert.deepEqual(refusals, []);
    }
  },
);

interface Member {
  /** Ids of the stored certificates, and sequences of the stored revocation lists, in order. */
  readonly certificates: readonly string[];
  readonly sequences: readonly number[];
  readonly refusals: readonly string[];
  readonly ended: Promise<AgentEnd>;
  /** Why it ended, or its current problem. */
  problem(): string | null;
}

interface Posting {
  readonly folder: string;
  readonly rootKey: string;
  readonly token: string;
  readonly signal: AbortSignal;
}

/** An agent that runs until the signal is aborted. */
async function memberOf(
  { fetch, now }: KillableAuthority,
  { folder, rootKey, token, signal }: Posting,
): Promise<Member> {
  const certificates: string[] = [];
  const sequences: number[] = [];
  const refusals: string[] = [];
  const files = folderStorage(folder);
  const storage: AgentStorage = {
    read: files.read,
    write(name, text) {
      files.write(name, text);
      if (name === 'certificate') certificates.push(JSON.parse(text).cert_id);
      if (name === 'crl') sequences.push(JSON.parse(text).sequence);
    },
  };
  const agent = await createNodeAgent({
    url: NOWHERE,
    fetch,
    now,
    key: newAgentKey(),
    rootKey,
    storage,
    verify: verifySignature,
    token: () => token,
    wait: (ms, aborted) => pause(Math.min(ms * HASTE, LONGEST_WAIT_MS), aborted),
    onEvent(event) {
      if (event.type === 'refused') refusals.push(`${event.what}: ${event.problem}`);
    },
  });
  const ended = agent.run(signal);
  const problem = () => agent.state().ended?.code ?? agent.state().problem;
  return { certificates, sequences, refusals, ended, problem };
}

const NOWHERE = 'http://authority.invalid';

interface KillableAuthority extends AsyncDisposable {
  /** The time of the authority and its agents, in milliseconds since the epoch. */
  now(): number;
  /** Sends the requests of agents; there is no answer unless the authority serves. */
  readonly fetch: Fetch;
  start(): Promise<TestAuthority>;
  /** From now on, agents can reach it. */
  serve(): void;
  /**
   * Like `serve`, until this many joins and renewals have been answered; then it is killed, and all its other answers
   * are lost. Resolves when it is dead.
   */
  serveUntilKilled(answers: number): Promise<void>;
  /** Stops it, and advances the clock by this much for the next start. */
  stop(milliseconds: number): Promise<void>;
}

function killable(dataDir: string): KillableAuthority {
  let running: ChildServer | null = null;
  let serving: ChildServer | null = null;
  let answersLeft = Number.POSITIVE_INFINITY;
  let kill: () => void = () => undefined;
  let aheadMs = 0;
  const now = () => Date.now() + aheadMs;
  const authority: KillableAuthority = {
    now,
    async fetch(url, init) {
      const asked = serving;
      if (asked === null) throw new Error('Nobody serves');
      const answer = await fetch(url.replace(NOWHERE, asked.na.url), init);
      if (serving === asked && ['/join', '/renew'].includes(new URL(url).pathname)) {
        if (answersLeft === 0) kill();
        answersLeft -= 1;
      }
      if (serving !== asked) throw new Error('The authority was killed');
      return answer;
    },
    async start() {
      const program = programWith(`const { now } = Date; Date.now = () => now() + ${aheadMs};`);
      running = await startChildServer(dataDir, { program });
      return { ...running.na, clock: { ...REAL_TIME, now } };
    },
    serve() {
      answersLeft = Number.POSITIVE_INFINITY;
      serving = running;
    },
    async serveUntilKilled(answers) {
      authority.serve();
      answersLeft = answers;
      await new Promise<void>((resolve) => {
        kill = () => {
          serving = null;
          resolve();
        };
      });
      await running?.end('SIGKILL');
    },
    async stop(milliseconds) {
      serving = null;
      assert.equal((await running?.end('SIGTERM'))?.code, 0);
      aheadMs += milliseconds;
    },
    async [Symbol.asyncDispose]() {
      serving = null;
      await running?.end('SIGKILL');
    },
  };
  return authority;
}

/** Has another node join, and revokes it; returns the sequence of the list with the revocation. */
async function revokeAnother(na: TestAuthority): Promise<number> {
  const { certId } = await joinedNode(na);
  return (await operate(na, '/admin/revoke', { cert_id: certId })).body.crl_sequence;
}

async function until(holds: () => boolean, fleet: readonly Member[]): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!holds()) {
    const problems = new Set(fleet.map(({ problem }) => problem()));
    assert.ok(Date.now() < deadline, `It does not come to pass: ${[...problems].join('; ')}`);
    await delay(20);
  }
}
