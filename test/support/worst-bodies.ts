/**
 * Searches for the most expensive request to a public route: honest bodies are grown in every way and sent to a server
 * in a separate process, and the CPU time of its threads is read from the operating system.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import fc from 'fast-check';
import { signerFromSeed, verifySignature } from '../../src/base/crypto/ed25519.ts';
import { ROUTES } from '../../src/edge/routes/table.ts';
import { maxBodyBytes, maxBodyValues } from '../../src/protocol/route-description.ts';
import { type ChildServer, startChildServer } from './child-server.ts';
import { type ThreadCpu, threadCpuOf } from './cpu.ts';
import { networkFolder } from './folders.ts';
import {
  grownBody,
  pairedShapes,
  plainShapes,
  type Room,
  type Shape,
  shapes,
} from './grown-bodies.ts';
import { type HonestBody, honestBodies } from './honest-bodies.ts';
import { get, send } from './requests.ts';

export interface Cost extends ThreadCpu {
  readonly path: string;
  readonly status: number;
  /** The reason of a verdict, or the code of a refusal. */
  readonly outcome: string;
  readonly bytes: number;
}

export interface Found extends Cost {
  readonly shape: Shape;
}

export interface Search {
  /** The number of random shapes to try in addition to those that are known to be bad. */
  readonly rounds: number;
  readonly seed: number;
  /** How many of the plain shapes to try; all of them if absent. */
  readonly plain?: number;
  progress(found: Found): void;
}

const UNLIMITED = {
  MESH_RATE_LIMIT_VERIFY: 'off',
  MESH_TRUST_CYCLE_HOURS: '0',
};

/** A server without limits, with its edges on separate threads. */
export async function startMeasuredServer() {
  const folder = await networkFolder('alpha');
  const args = ['--threads', '2'];
  const server = await startChildServer(folder.path, { environment: UNLIMITED, args });
  return {
    ...server,
    async [Symbol.asyncDispose]() {
      await server.end('SIGKILL');
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Units that fill the longest possible request line in ways that are as expensive as possible to read. */
const QUERIES = ['a', '%7f', '%e2%98%83', '+', '&', '&x=', '%', '=%3d&'];
const QUERY_LENGTH = 3000;

/** The costs of the longest queries on public GET routes: only the expensive ones, the worst first. */
export async function worstQueries(server: ChildServer): Promise<Cost[]> {
  const found: Cost[] = [];
  for (const { method, access, path, query = {} } of ROUTES) {
    if (method !== 'GET' || access === 'internal' || path.includes('{') || path === '/live')
      continue;
    const names = [...Object.keys(query), 'unknown'];
    for (const unit of QUERIES) {
      const share = Math.floor(QUERY_LENGTH / names.length / unit.length);
      const text = names.map((name) => `${name}=${unit.repeat(share)}`).join('&');
      const cost = await measured(server, 'GET', `${path}?${text}`);
      if (cost.edge > (found[0]?.edge ?? 0)) {
        const again = await leastOf(3, () => measured(server, 'GET', `${path}?${text}`));
        found.unshift({ ...again, path });
      }
    }
  }
  found.sort((a, b) => b.edge - a.edge);
  return found;
}

/** The worst body of each route that accepts one. */
export async function worstBodies(server: ChildServer, search: Search): Promise<Found[]> {
  const bodies = honestBodies(Date.now());
  const random = fc.sample(shapes, { seed: search.seed, numRuns: Math.max(1, search.rounds) });
  const plain = spread(plainShapes(bodies), search.plain ?? Infinity);
  await warmUp(server, bodies);
  const worst = new Map<string, Found>();
  const tries = [...pairedShapes(bodies), ...plain, ...random.slice(0, search.rounds)];
  for (const shape of tries) {
    const known = worst.get(pathOf(bodies, shape))?.edge ?? 0;
    const found = await tried(server, bodies, shape, known);
    search.progress(found);
    if (found.edge > known) worst.set(found.path, found);
  }
  return [...worst.values()].sort((a, b) => b.edge - a.edge);
}

function pathOf(bodies: readonly HonestBody[], { route }: Shape): string {
  return (bodies[route % bodies.length] as HonestBody).path;
}

/** This many of the items, evenly spread over the list. */
function spread<T>(items: readonly T[], count: number): T[] {
  if (count >= items.length) return [...items];
  return Array.from(
    { length: count },
    (_, index) => items[Math.floor((index * items.length) / count)] as T,
  );
}

/** Compiles the hot paths, because only their work is to be measured. */
async function warmUp(server: ChildServer, bodies: readonly HonestBody[]): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    for (const shape of spread(plainShapes(bodies), 12)) {
      const { path, text } = grownBody(bodies, shape, { bytes: 64 * 1024, values: 4096 });
      await send(server.na, 'POST', path, { body: text });
    }
  }
}

/** A single measurement may include garbage collection for earlier requests, so a new worst is the least of several. */
async function tried(
  server: ChildServer,
  bodies: readonly HonestBody[],
  shape: Shape,
  known: number,
): Promise<Found> {
  const { path, text } = grownBody(bodies, shape, roomOf(pathOf(bodies, shape)));
  const first = await measured(server, 'POST', path, text);
  const least =
    first.edge > known ? await leastOf(3, () => measured(server, 'POST', path, text)) : first;
  return { ...(least.edge < first.edge ? least : first), shape };
}

async function leastOf(times: number, measure: () => Promise<Cost>): Promise<Cost> {
  let least = await measure();
  for (let again = 1; again < times; again += 1) {
    const next = await measure();
    if (next.edge < least.edge) least = next;
  }
  return least;
}

async function measured(
  { na, process }: ChildServer,
  method: 'GET' | 'POST',
  path: string,
  text = '',
): Promise<Cost> {
  let [status, outcome] = [0, ''];
  const cpu = await threadCpuOf(process.pid ?? 0, async () => {
    const answer = await send(na, method, path, method === 'POST' ? { body: text } : {});
    status = answer.status;
    outcome = String(answer.body?.reason ?? answer.body?.error?.code ?? '');
    // This is answered on the same connection, and thus by the same thread, after it has finished the first request.
    await get(na, '/healthz');
  });
  return { ...cpu, path, status, outcome, bytes: Buffer.byteLength(text) };
}

function roomOf(path: string): Room {
  const route = ROUTES.find((one) => one.path === path && one.method === 'POST');
  if (route === undefined) throw new Error(`No route takes POST ${path}`);
  return { bytes: maxBodyBytes(route), values: maxBodyValues(route) ?? Infinity };
}

/** Milliseconds for 200 signature checks on the machine for which CPU limits are stated. */
const NOMINAL = 200 * 0.037;

/** How much slower this machine currently is than the one for which limits are stated; at least 1. */
export function slowness(): number {
  const { publicKey } = signerFromSeed(Buffer.alloc(32, 1));
  const signature = signerFromSeed(Buffer.alloc(32, 2)).sign('text');
  const check = () => {
    const before = process.cpuUsage();
    for (let i = 0; i < 200; i += 1) verifySignature(publicKey, 'text', signature);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  const times = Array.from({ length: 5 }, check).sort((a, b) => a - b);
  return Math.max(1, (times[2] ?? NOMINAL) / NOMINAL);
}

/** Documents and pages that contain, or may contain, the address of the authority. */
const ADDRESSED = ['/', '/api-reference', '/swagger.json', '/sovereign.json'];

/** By how many bytes the server's resident memory grows over requests that each name a different host. */
export async function growthByHosts(server: ChildServer, requests: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const ask = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, turn) => askByHost(server.na.url, agent, turn)));
  // After this, everything that is built only once exists, and the heap has the size that this work needs.
  await ask(1000);
  const before = residentBytes(server);
  await ask(requests);
  agent.destroy();
  return residentBytes(server) - before;
}

async function askByHost(url: string, agent: Agent, turn: number): Promise<void> {
  const path = ADDRESSED[turn % ADDRESSED.length] ?? '/';
  const headers = {
    Host: `${randomUUID()}.example`,
    'Accept-Encoding': turn % 8 < 4 ? 'gzip' : 'identity',
  };
  const asked = request(url + path, { agent, headers });
  asked.end();
  const [answer]: IncomingMessage[] = await once(asked, 'response');
  assert.equal(answer?.statusCode, 200);
  await once(answer.resume(), 'end');
}

function residentBytes({ process }: ChildServer): number {
  const status = readFileSync(`/proc/${process.pid}/status`, 'utf8');
  return 1024 * Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
}

export function describeCost({ path, edge, main, bytes, status, outcome }: Cost): string {
  const times = `${edge.toFixed(1)} ms edge, ${main.toFixed(1)} ms authority`;
  return `${path}: ${times}, ${bytes} bytes, ${status} ${outcome}`;
}

export function describeFound(found: Found): string {
  return `${describeCost(found)}, ${JSON.stringify(found.shape)}`;
}
