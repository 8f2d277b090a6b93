/**
 * Memory of one authority under a steady load of everything that it serves, for as long as requested. Certificates
 * live for an hour and are not kept after that, so from then on, only data that is never removed grows: revocations
 * and attestations. Memory that belongs to no data must not grow.
 */
import { randomInt } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { signAgentDescriptor } from '../test/support/signing.ts';
import type { Settings } from './contest.ts';
import {
  type FleetNode,
  getRequest,
  heartbeatRequest,
  httpRequest,
  inviteSigner,
  joinRequest,
  MAX_INVITES,
  type Network,
  newKeys,
  operatorSigner,
  renewalRequest,
} from './fleet.ts';
import { type Answered, type Lane, openLane } from './load/connection.ts';
import type { Load } from './load.ts';
import { median, type Report } from './report.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';
import { verificationRequests } from './verifications.ts';

const RATE = 300;
const CONNECTIONS = 64;
/** No further requests are started while this many are in progress; a load that falls behind catches up. */
const MOST_UNDER_WAY = 1000;
const SAMPLE_SECONDS = 10;
/** Collections are rare, because each one returns memory to the system. */
const MINUTES_BETWEEN_COLLECTIONS = 5;
/** Certificates live for an hour; until then, the amount of data grows, and memory with it. */
const SETTLED_MINUTES = 65;
const MOST_GROWTH = 0.1;
const VALID = { validity_hours: 1 };

/** The mix of 1,000 requests of all kinds of clients, including invalid ones from strangers. */
const SHARES = {
  heartbeat: 790,
  document: 110,
  verification: 40,
  stranger: 20,
  operatorReads: 15,
  agent: 15,
  renewal: 8,
  membership: 1,
  evidence: 1,
} as const;

const DOCUMENTS = [
  '/crl',
  '/bulletin',
  '/genesis',
  '/policy',
  '/nodes',
  '/healthz',
  '/readyz',
  '/health',
  '/dashboard.json',
  '/dashboard',
  '/connectome',
  '/atlas.json',
  '/recognition-graph',
  '/sovereign-revocation-feed',
  '/attestations?limit=20',
  '/agents?capability=llm:chat',
  '/api-reference',
];
const OPERATOR_READS = [
  ['/nodes', {}],
  ['/admin/certificates', { limit: ['50'] }],
  ['/admin/invites', { limit: ['50'] }],
] as const;

export async function benchMemory(_load: Load, settings: Settings): Promise<Report> {
  const { minutes, nodes, progress, heapSnapshots } = settings;
  const rate = settings.rate ?? RATE;
  // The folder is removed with this process.
  const probe = join(scratchFolder('mesh-na-memory-').path, 'memory.json');
  await using na = await startAuthority(null, settings.threads, undefined, undefined, {
    MESH_PROXY_HOPS: '1',
    MESH_RATE_LIMIT_VERIFY: '60/60',
    MESH_RATE_LIMIT_JOIN: '600/60',
    MESH_RETENTION_CERTIFICATE_DAYS: '0',
    MESH_RETENTION_RENEWED_CERTIFICATE_DAYS: '0',
    MESH_RETENTION_INVITE_DAYS: '0',
    MESH_RETENTION_AGENT_DAYS: '0',
    NODE_OPTIONS: `--import=${fileURLToPath(new URL('memory-probe.js', import.meta.url))}`,
    MEMORY_PROBE_FILE: probe,
    MEMORY_PROBE_SNAPSHOTS: heapSnapshots ?? '',
  });
  progress(`the authority is process ${na.pid}`);
  const sender = await openSender(na.port);
  const traffic = await startTraffic(na, sender.ask, { rate, nodes });
  const samples: Sample[] = [];
  progress(HEADINGS);
  try {
    for (let minute = 1; minute <= minutes; minute += 1) {
      const isCollected = minute % MINUTES_BETWEEN_COLLECTIONS === 0 || minute === minutes;
      const sample = await sampleOf(na, probe, minute, isCollected);
      traffic.assertRunning();
      progress(lineOf(sample));
      samples.push(sample);
    }
  } finally {
    await traffic.stop();
    sender.close();
  }
  return {
    benchmark: 'memory',
    about: `${rate} requests/s for ${minutes} minutes`,
    lines: [],
    comparisons: [],
    notes: [
      `answered: ${[...traffic.answers].map(([what, count]) => `${count} × ${what}`).join(', ')}`,
      ...verdictOf(samples),
    ],
  };
}

// What is sent

type Ask = (address: string, request: Buffer) => Promise<Answered>;

interface Sender {
  readonly ask: Ask;
  close(): void;
}

/** Sends each request on the next idle connection, as a proxy would. */
async function openSender(port: number): Promise<Sender> {
  const idle = await Promise.all(Array.from({ length: CONNECTIONS }, () => openLane({ port })));
  const all = [...idle];
  const waiting: ((lane: Lane) => void)[] = [];

  async function takeLane(): Promise<Lane> {
    // Uses the connection that was idle longest, because a server closes idle connections.
    const lane = idle.shift();
    if (lane !== undefined) return lane;
    return new Promise((resolve) => waiting.push(resolve));
  }

  return {
    async ask(address, request) {
      const lane = await takeLane();
      const answer = await lane.ask(withHeader(request, `X-Forwarded-For: ${address}`));
      const next = waiting.shift();
      if (next === undefined) idle.push(lane);
      else next(lane);
      return answer;
    },
    close() {
      for (const lane of all) lane.close();
    },
  };
}

function withHeader(request: Buffer, line: string): Buffer {
  const start = request.indexOf('\r\n');
  return Buffer.concat([
    request.subarray(0, start),
    Buffer.from(`\r\n${line}`),
    request.subarray(start),
  ]);
}

interface Member {
  readonly node: FleetNode;
  readonly address: string;
}

interface Traffic {
  readonly answers: ReadonlyMap<string, number>;
  /** Throws if the traffic has ended early. */
  assertRunning(): void;
  stop(): Promise<void>;
}

async function startTraffic(
  na: AuthorityProcess,
  ask: Ask,
  { rate, nodes }: { readonly rate: number; readonly nodes: number },
): Promise<Traffic> {
  const privileged: Network = {
    ...na.network,
    operatorKeyId: 'ops-privileged',
    operatorSeed: readKeyFile(join(na.dataDir, 'keys', 'operator-privileged.key')).toString(
      'base64',
    ),
  };
  const answers = new Map<string, number>();
  let asked = 0;
  let failure: unknown = null;

  async function count(what: string, address: string, request: Buffer): Promise<Answered> {
    asked += 1;
    const answer = await ask(address, request);
    const name = `${what} ${answer.status}`;
    answers.set(name, (answers.get(name) ?? 0) + 1);
    return answer;
  }
  async function operate(path: string, body: JsonObject): Promise<JsonObject> {
    const headers = operatorSigner(privileged, 'POST', path)(body);
    const request = httpRequest('POST', path, headers, jsonText(body));
    const { text } = await count(path.split('/').slice(0, 3).join('/'), OPERATOR, request);
    return JSON.parse(text) as JsonObject;
  }
  async function joined(token: string): Promise<Member> {
    const [key] = newKeys(1) as [FleetNode['key']];
    const address = anyAddress();
    const { text } = await count('join', address, joinRequest(key, token, VALID));
    return { node: { key, certId: String(JSON.parse(text).cert_id) }, address };
  }

  const fleet: Member[] = [];
  while (fleet.length < nodes) {
    const invites = inviteSigner(na.network)({
      count: Math.min(MAX_INVITES, nodes - fleet.length),
    });
    const { text } = await count('invites', OPERATOR, invites);
    const { tokens } = JSON.parse(text) as { tokens: { token_id: string }[] };
    fleet.push(...(await Promise.all(tokens.map(({ token_id }) => joined(token_id)))));
  }
  const verifications = verificationRequests().map(({ path, body }) =>
    httpRequest('POST', path, {}, body),
  );
  const turns = { heartbeat: 0, agent: 0, renewal: 0, verification: 0, document: 0 };
  function inTurn(what: keyof typeof turns): number {
    turns[what] += 1;
    return turns[what];
  }
  function memberAt(turn: number): [Member, number] {
    const index = turn % fleet.length;
    return [fleet[index] as Member, index];
  }

  const doing: { readonly [What in keyof typeof SHARES]: () => Promise<unknown> } = {
    async heartbeat() {
      const turn = inTurn('heartbeat');
      const [{ node, address }] = memberAt(turn);
      const further = turn % 4 === 0 ? { bulletin: true } : {};
      await count('heartbeat', address, heartbeatRequest(node, systemRuntime.now(), further));
    },
    async document() {
      const turn = inTurn('document');
      const path = DOCUMENTS[turn % (DOCUMENTS.length + 1)] ?? `/trust?from=bench&to=s-${turn}`;
      await count('document', anyAddress(), getRequest(path));
    },
    async verification() {
      const request = verifications[inTurn('verification') % verifications.length] as Buffer;
      await count('verification', anyAddress(), request);
    },
    /** Uses a key that has never joined. */
    async stranger() {
      const [key] = newKeys(1) as [FleetNode['key']];
      const node = { key, certId: systemRuntime.uuid() };
      await count('stranger', anyAddress(), heartbeatRequest(node, systemRuntime.now()));
    },
    async operatorReads() {
      const [path, query] = OPERATOR_READS[randomInt(OPERATOR_READS.length)] ?? OPERATOR_READS[0];
      const headers = operatorSigner(na.network, 'GET', path, query)({});
      const search = 'limit' in query ? `?limit=${query.limit}` : '';
      await count('operator read', OPERATOR, httpRequest('GET', path + search, headers, ''));
    },
    async agent() {
      const [{ node, address }, index] = memberAt(inTurn('agent'));
      const agent = {
        agent_id: `agent-${index}`,
        network_name: 'bench',
        capabilities: ['llm:chat', `site:${index % 100}`],
        endpoint: { host: 'agent.example', port: 443 },
      };
      const descriptor = signAgentDescriptor(agent, node.key, systemRuntime.now());
      await count('agent', address, httpRequest('POST', '/agents', {}, jsonText(descriptor)));
    },
    /** Sends the request twice, like a client that lost the answer. */
    async renewal() {
      const [{ node, address }, index] = memberAt(inTurn('renewal'));
      const request = renewalRequest(node, VALID);
      const { status, text } = await count('renewal', address, request);
      if (status !== 200) return;
      fleet[index] = { address, node: { ...node, certId: String(JSON.parse(text).cert_id) } };
      await count('renewal again', address, withHeader(request, 'X-Mesh-Retry: 1'));
    },
    async membership() {
      const { token_id } = await operate('/admin/invite', {});
      const { node } = await joined(String(token_id));
      await operate('/admin/revoke', { cert_id: node.certId, reason: 'unspecified' });
    },
    async evidence() {
      const issued = await operate('/admin/attestations', {
        subject_id: systemRuntime.uuid(),
        roles: ['role:client'],
      });
      await operate(`/admin/attestations/${issued.attestation_id}/revoke`, { reason: 'ended' });
    },
  };
  const deck = Object.entries(SHARES).flatMap(([what, share]) =>
    Array<keyof typeof SHARES>(share).fill(what as keyof typeof SHARES),
  );

  const startedAt = systemRuntime.elapsed();
  const atStart = asked;
  const underWay = new Set<Promise<unknown>>();
  const timer = setInterval(() => {
    const due = atStart + ((systemRuntime.elapsed() - startedAt) / 1000) * rate;
    while (asked < due && underWay.size < MOST_UNDER_WAY && failure === null) {
      const done = doing[deck[randomInt(deck.length)] ?? 'heartbeat']().catch((cause) => {
        failure = cause;
      });
      underWay.add(done);
      void done.then(() => underWay.delete(done));
    }
  }, 10);
  function assertRunning(): void {
    if (failure !== null) throw failure;
  }
  return {
    answers,
    assertRunning,
    async stop() {
      clearInterval(timer);
      await Promise.all(underWay);
    },
  };
}

const OPERATOR = '192.0.2.1';

function anyAddress(): string {
  return `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`;
}

// What is measured

interface Sample {
  readonly minute: number;
  /** The maximum within a minute, in bytes; `anonymous` excludes mapped files, which the system may reclaim. */
  readonly resident: number;
  readonly anonymous: number;
  /** The size after a collection; null in minutes without one. */
  readonly heap: number | null;
  readonly external: number | null;
  /** The number of all stored subjects, of any kind. */
  readonly subjects: number;
}

async function sampleOf(
  na: AuthorityProcess,
  probe: string,
  minute: number,
  isCollected: boolean,
): Promise<Sample> {
  let [resident, anonymous] = [0, 0];
  for (let second = 0; second < 60; second += SAMPLE_SECONDS) {
    await sleep(SAMPLE_SECONDS * 1000);
    const status = readFileSync(`/proc/${na.pid}/status`, 'latin1');
    resident = Math.max(resident, kilobytesIn(status, 'VmRSS') * 1024);
    anonymous = Math.max(anonymous, kilobytesIn(status, 'RssAnon') * 1024);
  }
  const metrics = await (await fetch(`${na.url}/metrics`)).text();
  const kinds = [...metrics.matchAll(/^mesh_na_subjects\{.*\} (\d+)$/gm)];
  const subjects = kinds.reduce((sum, [, count]) => sum + Number(count), 0);
  const collected = isCollected ? await collect(na.pid, probe) : null;
  return {
    minute,
    resident,
    anonymous,
    subjects,
    heap: collected?.heapUsed ?? null,
    external: collected?.external ?? null,
  };
}

async function collect(pid: number, probe: string): Promise<NodeJS.MemoryUsage> {
  process.kill(pid, 'SIGUSR2');
  while (!existsSync(probe)) await sleep(100);
  const found = JSON.parse(readFileSync(probe, 'utf8')) as NodeJS.MemoryUsage;
  rmSync(probe);
  return found;
}

function kilobytesIn(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? Number.NaN);
}

const HEADINGS = 'minute  resident  anonymous  heap after collection  external  subjects';

function lineOf({ minute, resident, anonymous, heap, external, subjects }: Sample): string {
  const cells = [minute, ...[resident, anonymous, heap, external].map(megabytes), subjects];
  return cells
    .map((cell, column) => String(cell).padStart([6, 10, 11, 23, 10, 10][column] ?? 0))
    .join('');
}

function megabytes(bytes: number | null): string {
  return bytes === null ? '-' : (bytes / 1_048_576).toFixed(1);
}

/**
 * Measures growth from when certificates expire as fast as they are issued; in a short run, from a third of its
 * length.
 */
function verdictOf(samples: readonly Sample[]): string[] {
  const from = Math.min(SETTLED_MINUTES, Math.floor(samples.length / 3));
  const settled = samples.slice(from);
  const part = Math.min(5, Math.ceil(settled.length / 2));
  const growth = (of: (sample: Sample) => number) => {
    const before = median(settled.slice(0, part).map(of));
    return (median(settled.slice(-part).map(of)) - before) / before;
  };
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  const [resident, anonymous] = [growth((one) => one.resident), growth((one) => one.anonymous)];
  const collected = settled.filter(({ heap }) => heap !== null);
  const [first, last] = [collected[0], collected.at(-1)];
  const added = (last?.subjects ?? 0) - (first?.subjects ?? 0);
  const heap = (last?.heap ?? 0) - (first?.heap ?? 0);
  return [
    `from minute ${from}: resident memory ${percent(resident)}, without mapped files ${percent(anonymous)}, ` +
      `heap after collection ${megabytes(heap)} MB for ${added} further subjects`,
    Math.max(resident, anonymous) <= MOST_GROWTH ? 'memory is flat' : 'MEMORY GREW',
  ];
}
