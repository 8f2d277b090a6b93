/**
 * Successions of the authority's key in a large network, during heartbeats: how long each step takes, how long it
 * occupies the authority's thread without a pause, and when everything is served under the keys that sign from then on.
 * Also measures the cost of two signatures.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { SHA256 } from '../src/base/crypto/digest.ts';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { type GenesisBlock, genesisDigest } from '../src/protocol/records/genesis.ts';
import { instantOf } from '../src/protocol/records/record.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { signersOf } from '../test/support/signers.ts';
import type { Settings } from './contest.ts';
import { fillWithLargeNetwork } from './large-network.ts';
import type { Load } from './load.ts';
import { benchOverlap } from './overlap.ts';
import { lineOf, median, type Report } from './report.ts';
import { assertAccepted, type RoundResult, runRound } from './round.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';
import {
  activate,
  finish,
  operatorOf,
  read,
  readText,
  type Step,
  stage,
} from './succession-steps.ts';

const MOST_TURN_MS = 50;
const MOST_UNTIL_SERVED_S = 60;
const HEARTBEATS_PER_SECOND = 1000;
const FLEET = 1000;
const CONNECTIONS = 16;
const ENROLLING = { connections: 32, seconds: 600, rate: null };
const ATTESTATIONS = 1000;
/** Each one belongs to another issuer, whose feed changes with the key. */
const REVOKED_ATTESTATIONS = 100;
const TREATIES = 50;
/** Longer than a step, and shorter than the authority's timeout for idle connections. */
const BEATING_SECONDS = 8;
const SETTLING_MS = 1500;
const QUIET_MS = 1000;
/** Covers the time between the measurements. */
const MARGIN_MS = 300;
/** A key is staged this long before it is due, so that the authority can prepare for it. */
const NOTICE_MS = 20_000;

export async function benchSuccession(load: Load, settings: Settings): Promise<Report[]> {
  return [await benchSteps(load, settings), ...(await benchOverlap(settings))];
}

async function benchSteps(load: Load, settings: Settings): Promise<Report> {
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
  const { network } = na;
  const joining = { plan: { target: na, ...ENROLLING }, network, nodes: FLEET };
  assertAccepted('joins', await load.ask('enroll', joining));
  progress('issuing attestations and treaties');
  const issued = await issueRecords(na);
  await read(na, '/policy');

  const taken = new Map<string, Taken[]>();
  /** Measures a step during heartbeats, at `at` if it is given, and reads what the step changed. */
  async function take(name: string, work: () => Promise<Step | null>, at = 0): Promise<void> {
    await load.ask('sign', { count: rate * BEATING_SECONDS, bulletin: true });
    await sleep(Math.max(0, at - SETTLING_MS - QUIET_MS - MARGIN_MS - systemRuntime.now()));
    const plan = { connections: CONNECTIONS, seconds: BEATING_SECONDS, rate };
    const beating = load.ask('heartbeats', { target: na, ...plan });
    await sleep(SETTLING_MS);
    await longestTurn(na, probe);
    await sleep(QUIET_MS);
    const quiet = await longestTurn(na, probe);
    const step = await work();
    const turn = await longestTurn(na, probe);
    const servedAfterMs = step && (await servedAfter(na, issued, step));
    const beats = assertAccepted(name, await beating);
    const all = taken.get(name) ?? [];
    const answeredMs = step?.isAcknowledged ? step.answeredAt - step.askedAt : null;
    all.push({ quiet, turn, answeredMs, servedAfterMs, beats });
    taken.set(name, all);
    const answered = answeredMs === null ? '' : `answered after ${answeredMs.toFixed(0)} ms, `;
    progress(
      `${name}: ${answered}longest turn ${turnText(turn)}, before it ${turnText(quiet)}; longest heartbeat ${beats.latency?.max.toFixed(0)} ms`,
    );
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
    about: `${dataDir === null ? `${seeded} nodes, ${revoked} of them revoked` : 'a large network'}, ${ATTESTATIONS} attestations, ${TREATIES} treaties, ${REVOKED_ATTESTATIONS + 1} feeds; ${rate} heartbeats/s with bulletins, ${threads} thread(s)`,
    lines: all.map(({ name, steps }) => lineOf({ name, rounds: steps.map(({ beats }) => beats) })),
    comparisons: [],
    notes: [
      `load average at the end ${loadavg()[0]?.toFixed(1)}`,
      `targets: at most ${MOST_TURN_MS} ms in one turn of the event loop; everything is served under the new key within ${MOST_UNTIL_SERVED_S} s`,
      ...all.flatMap(notesOf),
    ],
  };
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

function turnText({ elapsed, own, cpu }: Turn): string {
  return `${own.toFixed(0)} ms (CPU ${cpu.toFixed(0)} ms, with other processes ${elapsed.toFixed(0)} ms)`;
}

/** The longest turn since the last call. */
async function longestTurn({ pid }: AuthorityProcess, probe: string): Promise<Turn> {
  process.kill(pid, 'SIGUSR2');
  while (!existsSync(probe)) await sleep(2);
  const found = JSON.parse(readFileSync(probe, 'utf8')) as Turn;
  rmSync(probe);
  return found;
}

interface Issued {
  readonly attestations: readonly string[];
  readonly treaties: readonly string[];
}

async function issueRecords(na: AuthorityProcess): Promise<Issued> {
  const ask = operatorOf(na, na.network.audience);
  async function all(count: number, path: string, id: string, body: (index: number) => object) {
    const ids: string[] = [];
    const plan = { target: na, connections: 8, seconds: 600, rate: null };
    const requestAt = (index: number) =>
      index < count ? ask.request(path, body(index)) : undefined;
    const result = await runRound(plan, requestAt, (index, answer) => {
      ids[index] = String(JSON.parse(answer.toString())[id]);
    });
    assertAccepted(path, result);
    return ids;
  }
  const attestations = await all(
    ATTESTATIONS + REVOKED_ATTESTATIONS,
    '/admin/attestations',
    'attestation_id',
    (index) => ({
      subject_id: `agent-${index}`,
      roles: ['role:client'],
      ...(index >= ATTESTATIONS && { issuer_sovereign_id: `issuer-${index - ATTESTATIONS}` }),
    }),
  );
  for (const id of attestations.splice(ATTESTATIONS)) {
    await ask.answer(`/admin/attestations/${id}/revoke`, { reason: 'ended' });
  }
  const treaties = await all(TREATIES, '/admin/recognition-treaties', 'treaty_id', (index) => ({
    subject_sovereign_id: `sovereign-${index}`,
    subject_public_keys: [systemRuntime.randomBytes(32).toString('base64')],
  }));
  return { attestations, treaties };
}

/** Milliseconds from the request until everything was read; after the answer, nothing outdated may be served. */
async function servedAfter(na: AuthorityProcess, issued: Issued, step: Step): Promise<number> {
  for (;;) {
    try {
      await assertServed(na, issued, step);
      return systemRuntime.elapsed() - step.askedAt;
    } catch (cause) {
      if (step.isAcknowledged) throw cause;
      await sleep(100);
    }
  }
}

async function assertServed(na: AuthorityProcess, issued: Issued, step: Step): Promise<void> {
  const { keys, genesis } = step;
  const expected = keys.join();
  async function assertSigned(path: string, member?: string, text = ''): Promise<void> {
    const body = parseJson(text || (await readText(na, path))) as JsonObject;
    const record = member === undefined ? body : (body[member] as JsonObject);
    const found = signersOf(record, [...keys, ...step.others]).join();
    if (found !== expected) throw new Error(`${path} is signed by ${found}, not by ${expected}`);
  }
  const list = await readText(na, '/crl');
  const served = (await read(na, '/genesis')) as unknown as GenesisBlock;
  if (genesisDigest(served, SHA256) !== genesisDigest(genesis, SHA256)) {
    throw new Error('GET /genesis is not the genesis block of the succession');
  }
  const feed = '/sovereign-revocation-feed';
  const others = Array.from(
    { length: REVOKED_ATTESTATIONS },
    (_, index) => `${feed}?issuer_sovereign_id=issuer-${index}`,
  );
  for (const path of ['/policy', feed, ...others]) await assertSigned(path);
  for (const id of issued.treaties) await assertSigned(`/recognition-treaties/${id}`, 'treaty');
  const waiting = [...issued.attestations];
  async function readNext(): Promise<void> {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      await assertSigned(`/attestations/${id}`, 'attestation');
    }
  }
  await Promise.all([readNext(), readNext(), readNext(), readNext()]);
  // Checked last, because it takes so long that idle connections are closed.
  await assertSigned('/crl', undefined, list);
}
