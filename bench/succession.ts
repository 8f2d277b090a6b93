/**
 * Successions of the authority's key in a large network, during heartbeats: how long each step takes, how long it
 * occupies the authority's thread without a pause, and when everything is served under the keys that sign from then on.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { AuthorityError } from '../src/client/authority-error.ts';
import type { GenesisBlock } from '../src/protocol/records/genesis.ts';
import { instantOf } from '../src/protocol/records/record.ts';
import type { SignedSuccession } from '../src/protocol/records/succession-request.ts';
import { exchange } from '../test/support/exchange.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { signersOf } from '../test/support/signers.ts';
import { type Ground, signedSuccession } from '../test/support/successions.ts';
import { operatorOf } from './audience.ts';
import type { Settings } from './contest.ts';
import { enrolledFleet } from './enrolled-fleet.ts';
import { fillWithLargeNetwork } from './large-network.ts';
import type { Load } from './load.ts';
import { lineOf, median, type Report } from './report.ts';
import { assertAccepted, type RoundResult } from './round.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';

const MOST_TURN_MS = 50;
const MOST_UNTIL_SERVED_S = 60;
const HEARTBEATS_PER_SECOND = 1000;
const FLEET = 1000;
const CONNECTIONS = 16;
const ATTESTATIONS = 1000;
const TREATIES = 50;
/** Requests of the operator at a time. */
const AT_ONCE = 8;
/** Longer than a step, and shorter than the authority's timeout for idle connections. */
const BEATING_SECONDS = 8;
const SETTLING_MS = 1500;
const QUIET_MS = 1000;
/** Covers the time between the measurements. */
const MARGIN_MS = 300;
/** A key is staged this long before it is due, so that the authority can prepare for it. */
const NOTICE_MS = 20_000;

/** A step, and which keys sign what is served after it. */
interface Step {
  readonly keys: readonly string[];
  /** Keys that may have signed it before. */
  readonly others: readonly string[];
  /** In monotonic milliseconds. */
  readonly askedAt: number;
  /** Null if the authority activated a due key on its own just before the request. */
  readonly answeredMs: number | null;
}

export async function benchSuccession(load: Load, settings: Settings): Promise<Report> {
  const { seeded, dataDir, rounds, threads, progress, cpuProf } = settings;
  const rate = settings.rate ?? HEARTBEATS_PER_SECOND;
  const revoked = Math.floor(seeded / 10);
  // The folder is removed with this process.
  const probe = join(scratchFolder('mesh-na-turns-').path, 'turns.json');
  await using na = await startAuthority(
    cpuProf === null ? null : join(cpuProf, 'succession'),
    threads,
    (folder) =>
      fillWithLargeNetwork(folder, settings, { nodes: seeded, revoked, invites: 0, agents: 0 }),
    undefined,
    {
      NODE_OPTIONS: `--import=${fileURLToPath(new URL('turn-probe.js', import.meta.url))}`,
      TURN_PROBE_FILE: probe,
    },
  );
  const plan = { nodes: FLEET, connections: CONNECTIONS, rate, bulletin: true } as const;
  const fleet = await enrolledFleet(load, na, plan);
  progress('issuing attestations and treaties');
  const records = await issueRecords(na);

  const taken = new Map<string, Taken[]>();
  /** Measures a step during heartbeats, at `at` if it is given, and reads what the step changed. */
  async function take(name: string, work: () => Promise<Step | null>, at = 0): Promise<void> {
    await sleep(Math.max(0, at - SETTLING_MS - QUIET_MS - MARGIN_MS - systemRuntime.now()));
    const beating = fleet.beat(BEATING_SECONDS);
    await sleep(SETTLING_MS);
    await longestTurn(na, probe);
    await sleep(QUIET_MS);
    const quiet = await longestTurn(na, probe);
    const step = await work();
    const turn = await longestTurn(na, probe);
    const servedAfterMs = step && (await servedAfter(na, records, step));
    const beats = assertAccepted(name, await beating);
    const answeredMs = step?.answeredMs ?? null;
    const all = taken.get(name) ?? [];
    all.push({ quiet, turn, answeredMs, servedAfterMs, beats });
    taken.set(name, all);
    progress(`${name}: longest turn ${turn.own.toFixed(0)} ms, before it ${quiet.own.toFixed(0)}`);
  }

  for (let round = 1; round <= rounds; round += 1) {
    progress(`round ${round} of ${rounds}, load average ${loadavg()[0]?.toFixed(1)}`);
    await take('no step', () => sleep(QUIET_MS, null));
    const planned = await stage(na, 'planned', NOTICE_MS);
    const due = instantOf(planned.statement.activates_at);
    await take('planned activation', () => activate(na, planned), due);
    await take('finish', () => finish(na, planned));
    await take('activation after a theft', async () =>
      activate(na, await stage(na, 'compromise', 0)),
    );
  }
  const all = [...taken].map(([name, steps]) => ({ name, steps }));
  return {
    benchmark: 'succession',
    about: `${dataDir === null ? `${seeded} nodes, ${revoked} of them revoked` : 'a large network'}, ${ATTESTATIONS} attestations, ${TREATIES} treaties; ${rate} heartbeats/s with bulletins, ${threads} thread(s)`,
    lines: all.map(({ name, steps }) => lineOf({ name, rounds: steps.map(({ beats }) => beats) })),
    comparisons: [],
    notes: [
      `load average at the end ${loadavg()[0]?.toFixed(1)}`,
      `targets: at most ${MOST_TURN_MS} ms in one turn of the event loop; everything is served under the new key within ${MOST_UNTIL_SERVED_S} s`,
      ...all.flatMap(notesOf),
    ],
  };
}

async function stage(
  na: AuthorityProcess,
  kind: 'planned' | 'compromise',
  activatesIn: number,
): Promise<SignedSuccession> {
  const genesis = (await read(na, '/genesis')) as unknown as GenesisBlock;
  const { successions } = (await read(na, '/authority-keys')) as unknown as Ground;
  const ground = { genesis, successions, now: systemRuntime.now() };
  const signed = signedSuccession(na.dataDir, ground, { kind, activatesIn });
  await operatorOf(na, genesis.network_authority.public_key).stageSuccession(signed);
  return signed;
}

/** Activates the staged key as soon as its time has come. */
async function activate(na: AuthorityProcess, { statement }: SignedSuccession): Promise<Step> {
  const { from_key: old, to_key: next, kind, activates_at } = statement;
  await sleep(Math.max(0, instantOf(activates_at) - systemRuntime.now() + 1));
  const operator = operatorOf(na, next);
  const askedAt = systemRuntime.elapsed();
  const isAcknowledged = await operator.activateSuccession().then(
    () => true,
    (cause) => {
      if (cause instanceof AuthorityError && cause.code === 'succession_not_staged') return false;
      throw cause;
    },
  );
  const answeredMs = isAcknowledged ? systemRuntime.elapsed() - askedAt : null;
  return { keys: kind === 'planned' ? [next, old] : [next], others: [old], askedAt, answeredMs };
}

/** Ends the overlap, although nodes have not followed. */
async function finish(na: AuthorityProcess, { statement }: SignedSuccession): Promise<Step> {
  const { from_key: old, to_key: next } = statement;
  const operator = operatorOf(na, next);
  const askedAt = systemRuntime.elapsed();
  const { nodes } = await operator.readAdoption();
  await operator.finishSuccession({ despite: nodes?.laggards ?? 0 });
  const answeredMs = systemRuntime.elapsed() - askedAt;
  return { keys: [next], others: [old], askedAt, answeredMs };
}

/** In milliseconds. */
interface Turn {
  readonly elapsed: number;
  /** The elapsed time without waiting for a processor that other work occupied: computing, and waiting for the disk. */
  readonly own: number;
  readonly cpu: number;
}

interface Taken {
  readonly quiet: Turn;
  readonly turn: Turn;
  readonly answeredMs: number | null;
  readonly servedAfterMs: number | null;
  readonly beats: RoundResult;
}

function notesOf({ name, steps }: { readonly name: string; readonly steps: readonly Taken[] }) {
  const text = (milliseconds: (one: Taken) => number | null) => {
    const values = steps.flatMap((one) => milliseconds(one) ?? []);
    if (values.length === 0) return '-';
    return `${median(values).toFixed(0)} [${Math.min(...values).toFixed(0)}..${Math.max(...values).toFixed(0)}] ms`;
  };
  const turns = (when: 'turn' | 'quiet') =>
    `${text((one) => one[when].own)}; CPU ${text((one) => one[when].cpu)}; with other processes ${text((one) => one[when].elapsed)}`;
  return [
    `${name}: answered after ${text(({ answeredMs }) => answeredMs)}, everything read after ${text(({ servedAfterMs }) => servedAfterMs)}`,
    `  longest turn: ${turns('turn')}`,
    `  in the second before: ${turns('quiet')}`,
    `  longest heartbeat: ${text(({ beats }) => beats.latency?.max ?? null)}`,
  ];
}

/** The longest turn since the last call. */
async function longestTurn({ pid }: AuthorityProcess, probe: string): Promise<Turn> {
  process.kill(pid, 'SIGUSR2');
  while (!existsSync(probe)) await sleep(2);
  const found = JSON.parse(readFileSync(probe, 'utf8')) as Turn;
  rmSync(probe);
  return found;
}

/** Returns the paths at which the records are served. */
async function issueRecords(na: AuthorityProcess): Promise<string[]> {
  const operator = operatorOf(na, na.network.audience);
  const attestations = await several(ATTESTATIONS, async (index) => {
    const issued = { subject_id: `agent-${index}`, roles: ['role:client'] };
    const { attestation_id } = await operator.issueAttestation(issued);
    return `/attestations/${attestation_id}`;
  });
  const treaties = await several(TREATIES, async (index) => {
    const { treaty_id } = await operator.issueTreaty({
      subject_sovereign_id: `sovereign-${index}`,
      subject_public_keys: [systemRuntime.randomBytes(32).toString('base64')],
    });
    return `/recognition-treaties/${treaty_id}`;
  });
  return [...attestations, ...treaties];
}

async function several<T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> {
  const done: T[] = [];
  const waiting = Array.from({ length: count }, (_, index) => index).values();
  async function inTurn(): Promise<void> {
    for (const index of waiting) done.push(await work(index));
  }
  await Promise.all(Array.from({ length: AT_ONCE }, inTurn));
  return done;
}

/** Milliseconds from the request until everything was read; after the answer, nothing outdated may be served. */
async function servedAfter(
  na: AuthorityProcess,
  records: readonly string[],
  step: Step,
): Promise<number> {
  for (;;) {
    try {
      await assertServed(na, records, step);
      return systemRuntime.elapsed() - step.askedAt;
    } catch (cause) {
      if (step.answeredMs !== null) throw cause;
      await sleep(100);
    }
  }
}

async function assertServed(
  na: AuthorityProcess,
  records: readonly string[],
  { keys, others }: Step,
): Promise<void> {
  const paths = ['/crl', '/policy', '/sovereign-revocation-feed', ...records];
  await several(paths.length, async (index) => {
    const path = paths[index] ?? '';
    const body = await read(na, path);
    const record = (body.attestation ?? body.treaty ?? body) as JsonObject;
    const found = signersOf(record, [...keys, ...others]).join();
    if (found !== keys.join()) throw new Error(`${path} is signed by ${found}, not by ${keys}`);
  });
}

async function read({ url }: AuthorityProcess, path: string): Promise<JsonObject> {
  const headers = { 'Accept-Encoding': 'identity' };
  const { status, bytes } = await exchange(url + path, { method: 'GET', headers });
  if (status !== 200) throw new Error(`${path} was answered ${status}: ${bytes}`);
  return parseJson(bytes.toString()) as JsonObject;
}
