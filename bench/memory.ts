/**
 * Memory of one authority under a steady load of everything that it serves, for as long as requested. Certificates
 * live for an hour and are not kept after that, so from then on, only data that is never removed grows: revocations
 * and attestations. Memory that belongs to no data must not grow.
 */
import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { jsonText } from '../src/base/json/write.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { signAgentDescriptor } from '../test/support/signing.ts';
import { operatorOf } from './audience.ts';
import type { Settings } from './contest.ts';
import { memoryOf } from './cpu.ts';
import {
  commandSigner,
  type FleetNode,
  getRequest,
  heartbeatRequest,
  httpRequest,
  inviteSigner,
  joinRequest,
  newKeys,
  operatorSigner,
  renewalRequest,
  SITE,
} from './fleet.ts';
import { openConnection } from './load/connection.ts';
import { drive } from './load/drive.ts';
import { createFleet, readFleet, signingNode } from './load/fleet-folder.ts';
import { prepareFleet } from './load/prepare.ts';
import type { Load } from './load.ts';
import { median, type Report } from './report.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';
import { verificationRequests } from './verifications.ts';

const RATE = 300;
const CONNECTIONS = 64;
const SAMPLE_SECONDS = 10;
/** Certificates live for an hour; until then, the amount of data grows, and memory with it. */
const SETTLED_MINUTES = 65;
const MOST_GROWTH = 0.1;
const VALIDITY_HOURS = 1;
const VALID = { validity_hours: VALIDITY_HOURS };
/** A request waits this long for its answer. */
const PATIENCE_MS = 60_000;

/** The mix of 1,000 requests of all kinds of clients, including invalid ones from strangers. */
const SHARES = {
  heartbeat: 790,
  document: 110,
  verification: 40,
  stranger: 20,
  operatorRead: 15,
  agent: 15,
  renewal: 8,
  invite: 1,
  attestation: 1,
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
  const { minutes, nodes, progress } = settings;
  const rate = settings.rate ?? RATE;
  await using na = await startAuthority(null, settings.threads, undefined, undefined, {
    MESH_PROXY_HOPS: '1',
    MESH_RATE_LIMIT_VERIFY: '60/60',
    MESH_RATE_LIMIT_JOIN: '600/60',
    MESH_RETENTION_CERTIFICATE_DAYS: '0',
    MESH_RETENTION_RENEWED_CERTIFICATE_DAYS: '0',
    MESH_RETENTION_INVITE_DAYS: '0',
    MESH_RETENTION_AGENT_DAYS: '0',
  });
  progress(`the authority is process ${na.pid}`);
  const traffic = trafficOf(na, await enrolled(na, nodes));
  const answers = new Map<string, number>();
  const underWay = new Map<number, Sending>();
  const connect = () => openConnection(na);
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, connect));
  const sending = drive(
    { seconds: minutes * 60, rate, patienceMs: PATIENCE_MS },
    {
      connections,
      next(index) {
        const next = traffic.next();
        underWay.set(index, next);
        return next.bytes;
      },
      answered({ index }, status, body) {
        const { what, then } = underWay.get(index) as Sending;
        underWay.delete(index);
        answers.set(`${what} ${status}`, (answers.get(`${what} ${status}`) ?? 0) + 1);
        if (status === 200) then?.(JSON.parse(body.toString()));
      },
      lost({ index }, cause) {
        // A server ends connections that are idle; a request that crosses this end is sent again.
        const lost = underWay.get(index) as Sending;
        underWay.delete(index);
        answers.set(cause, (answers.get(cause) ?? 0) + 1);
        traffic.again(lost);
      },
      replace: connect,
    },
  );
  const samples = await samplesUntil(na, minutes, progress);
  await sending;
  return {
    benchmark: 'memory',
    about: `${rate} requests/s for ${minutes} minutes`,
    lines: [],
    comparisons: [],
    notes: [
      `answered: ${[...answers].map(([what, count]) => `${count} × ${what}`).join(', ')}`,
      ...verdictOf(samples),
    ],
  };
}

async function enrolled(na: AuthorityProcess, nodes: number): Promise<FleetNode[]> {
  // The folder is removed with this process.
  const folder = scratchFolder('mesh-na-memory-').path;
  const operator = operatorOf(na);
  const authority_key = na.network.audience;
  createFleet(folder, { version: 1, network_name: 'bench', authority_key, ...VALID });
  await prepareFleet({
    folder,
    place: { target: { port: na.port }, site: SITE },
    count: nodes,
    connections: CONNECTIONS,
    validityHours: VALIDITY_HOURS,
    async invite(count) {
      const { tokens = [] } = await operator.createInvites({ count });
      return tokens.map(({ token_id }) => token_id);
    },
    progress: () => undefined,
    onLimited: () => undefined,
    stopped: new AbortController().signal,
  });
  return readFleet(folder)?.nodes.map(signingNode) ?? [];
}

interface Sending {
  readonly what: string;
  readonly bytes: Buffer;
  /** Called with the body if the request is accepted. */
  then?(body: Record<string, unknown>): void;
}

/** The requests in order; those that follow from an answer come next. */
function trafficOf(na: AuthorityProcess, fleet: FleetNode[]) {
  const upcoming: Sending[] = [];
  const verifications = verificationRequests().map(({ path, body }) =>
    httpRequest('POST', path, {}, body),
  );
  const addresses = fleet.map(anyAddress);
  const turns = { heartbeat: 0, agent: 0, renewal: 0, verification: 0, document: 0 };

  function inTurn(what: keyof typeof turns): number {
    turns[what] += 1;
    return turns[what];
  }
  function sent(what: string, from: string, bytes: Buffer, then?: Sending['then']): Sending {
    return { what, bytes: withHeader(bytes, `X-Forwarded-For: ${from}`), ...(then && { then }) };
  }
  function memberAt(turn: number) {
    const index = turn % fleet.length;
    return { index, node: fleet[index] as FleetNode, address: addresses[index] ?? '' };
  }
  function command(path: string, body: Record<string, string>, then?: Sending['then']): Sending {
    return sent(
      path.split('/', 3).join('/'),
      OPERATOR,
      commandSigner(na.privileged, path)(body),
      then,
    );
  }

  const making: { readonly [What in keyof typeof SHARES]: () => Sending } = {
    heartbeat() {
      const turn = inTurn('heartbeat');
      const { node, address } = memberAt(turn);
      const further = turn % 4 === 0 ? { bulletin: true } : {};
      return sent('heartbeat', address, heartbeatRequest(node, systemRuntime.now(), further));
    },
    document() {
      const turn = inTurn('document');
      const path = DOCUMENTS[turn % (DOCUMENTS.length + 1)] ?? `/trust?from=bench&to=s-${turn}`;
      return sent('document', anyAddress(), getRequest(path));
    },
    verification() {
      const request = verifications[inTurn('verification') % verifications.length] as Buffer;
      return sent('verification', anyAddress(), request);
    },
    /** Uses a key that has never joined. */
    stranger() {
      const [key] = newKeys(1) as [FleetNode['key']];
      const node = { key, certId: systemRuntime.uuid() };
      return sent('stranger', anyAddress(), heartbeatRequest(node, systemRuntime.now()));
    },
    operatorRead() {
      const [path, query] = OPERATOR_READS[randomInt(OPERATOR_READS.length)] ?? OPERATOR_READS[0];
      const headers = operatorSigner(na.network, 'GET', path, query)({});
      const search = 'limit' in query ? `?limit=${query.limit}` : '';
      return sent('operator read', OPERATOR, httpRequest('GET', path + search, headers));
    },
    agent() {
      const { index, node, address } = memberAt(inTurn('agent'));
      const agent = {
        agent_id: `agent-${index}`,
        network_name: 'bench',
        capabilities: ['llm:chat', `site:${index % 100}`],
        endpoint: { host: 'agent.example', port: 443 },
      };
      const descriptor = signAgentDescriptor(agent, node.key, systemRuntime.now());
      return sent('agent', address, httpRequest('POST', '/agents', {}, jsonText(descriptor)));
    },
    /** Sends the request twice, like a client that lost the answer. */
    renewal() {
      const { index, node, address } = memberAt(inTurn('renewal'));
      const request = renewalRequest(node, VALID);
      return sent('renewal', address, request, ({ cert_id }) => {
        fleet[index] = { key: node.key, certId: String(cert_id) };
        upcoming.push(sent('renewal again', address, withHeader(request, 'X-Mesh-Retry: 1')));
      });
    },
    /** A node joins and is revoked. */
    invite() {
      return sent('invite', OPERATOR, inviteSigner(na.network)({}), ({ token_id }) => {
        const [key] = newKeys(1) as [FleetNode['key']];
        const request = joinRequest(key, String(token_id), VALID);
        const revoke = ({ cert_id }: Record<string, unknown>) => {
          const body = { cert_id: String(cert_id), reason: 'unspecified' };
          upcoming.push(command('/admin/revoke', body));
        };
        upcoming.push(sent('join', anyAddress(), request, revoke));
      });
    },
    attestation() {
      const subject_id = systemRuntime.uuid();
      const issue = commandSigner(na.privileged, '/admin/attestations');
      const request = issue({ subject_id, roles: ['role:client'] });
      return sent('attestation', OPERATOR, request, ({ attestation_id }) => {
        const path = `/admin/attestations/${attestation_id}/revoke`;
        upcoming.push(command(path, { reason: 'ended' }));
      });
    },
  };
  const deck = Object.entries(SHARES).flatMap(([what, share]) =>
    Array<keyof typeof SHARES>(share).fill(what as keyof typeof SHARES),
  );
  return {
    next: () => upcoming.shift() ?? making[deck[randomInt(deck.length)] ?? 'heartbeat'](),
    again: (lost: Sending) => void upcoming.push(lost),
  };
}

const OPERATOR = '192.0.2.1';

function anyAddress(): string {
  return `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`;
}

function withHeader(request: Buffer, line: string): Buffer {
  const start = request.indexOf('\r\n');
  const added = Buffer.from(`\r\n${line}`);
  return Buffer.concat([request.subarray(0, start), added, request.subarray(start)]);
}

/** The most MiB within a minute; `anonymous` excludes mapped files. */
interface Sample {
  readonly resident: number;
  readonly anonymous: number;
}

async function samplesUntil(
  { pid }: AuthorityProcess,
  minutes: number,
  progress: Settings['progress'],
): Promise<Sample[]> {
  const samples: Sample[] = [];
  while (samples.length < minutes) {
    let [resident, anonymous] = [0, 0];
    for (let second = 0; second < 60; second += SAMPLE_SECONDS) {
      await sleep(SAMPLE_SECONDS * 1000);
      const now = memoryOf(pid);
      resident = Math.max(resident, now.resident);
      anonymous = Math.max(anonymous, now.anonymous);
    }
    samples.push({ resident, anonymous });
    progress(`minute ${samples.length}: ${resident} MB resident, ${anonymous} MB of its own`);
  }
  return samples;
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
  return [
    `from minute ${from}: resident memory ${percent(resident)}, without mapped files ${percent(anonymous)}`,
    Math.max(resident, anonymous) <= MOST_GROWTH ? 'memory is flat' : 'MEMORY GREW',
  ];
}
