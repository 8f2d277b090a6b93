/**
 * Memory of one authority under a steady load of everything that it serves, for as long as requested. Certificates
 * live for an hour and are not kept after that, so from then on, only data that is never removed grows: revocations
 * and attestations. Memory that belongs to no data must not grow.
 */
import { randomInt } from 'node:crypto';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { signAgentDescriptor } from '../test/support/signing.ts';
import type { Settings } from './contest.ts';
import { memoryOf } from './cpu.ts';
import { openConnection } from './load/connection.ts';
import { drive } from './load/drive.ts';
import {
  type FleetNode,
  getRequest,
  heartbeatRequest,
  joinRequest,
  type LoadRequest,
  newKey,
  postRequest,
  renewalRequest,
} from './load/requests.ts';
import { bytesOf, commandSigner, joinAll, newTokens, operatorSigner } from './network.ts';
import { verificationRequests } from './repeated.ts';
import { median, type Report } from './report.ts';
import { UNTIL_ALL_ARE_SENT } from './rounds.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';

const CONNECTIONS = 64;
const SAMPLE_SECONDS = 10;
/** Certificates live for an hour; until then, the amount of data grows, and memory with it. */
const SETTLED_MINUTES = 65;
const MOST_GROWTH = 0.1;
const VALID = { validity_hours: 1 };
/** A request waits this long for its answer. */
const PATIENCE_MS = 60_000;

const ENVIRONMENT = {
  MESH_PROXY_HOPS: '1',
  MESH_RATE_LIMIT_VERIFY: '60/60',
  MESH_RATE_LIMIT_JOIN: '600/60',
  MESH_RETENTION_CERTIFICATE_DAYS: '0',
  MESH_RETENTION_RENEWED_CERTIFICATE_DAYS: '0',
  MESH_RETENTION_INVITE_DAYS: '0',
  MESH_RETENTION_AGENT_DAYS: '0',
};

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

type Kind = keyof typeof SHARES;

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

export async function benchMemory(settings: Settings): Promise<Report> {
  const { minutes, nodes = 1000, rate = 300, progress } = settings;
  await using na = await startAuthority(settings, { environment: ENVIRONMENT });
  progress(`the authority is process ${na.pid}`);
  const traffic = trafficOf(na, await enrolled(na, nodes));
  const answers = new Map<string, number>();
  const underWay = new Map<number, Sending>();
  const connect = () => openConnection(na);

  function ended(index: number, how: (what: string) => string): Sending {
    const sending = underWay.get(index) as Sending;
    underWay.delete(index);
    const outcome = how(sending.what);
    answers.set(outcome, (answers.get(outcome) ?? 0) + 1);
    return sending;
  }
  const sending = drive(
    { seconds: minutes * 60, rate, patienceMs: PATIENCE_MS },
    {
      connections: await Promise.all(Array.from({ length: CONNECTIONS }, connect)),
      next(index) {
        const next = traffic.next();
        underWay.set(index, next);
        return bytesOf(next.request);
      },
      answered({ index }, status, body) {
        const { then } = ended(index, (what) => `${what} ${status}`);
        if (status === 200) then?.(JSON.parse(body.toString()) as JsonObject);
      },
      // A server ends connections that are idle; a request that crosses this end is sent again.
      lost: ({ index }, cause) => traffic.again(ended(index, () => cause)),
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
  const plan = { target: na, connections: CONNECTIONS, ...UNTIL_ALL_ARE_SENT };
  const tokens = await newTokens(plan, na.network, nodes);
  return (await joinAll(plan, tokens, { ...VALID })).nodes;
}

interface Sending {
  readonly what: string;
  readonly request: LoadRequest;
  /** Called with the body if the request is accepted. */
  then?(body: JsonObject): void;
}

const OPERATOR = '192.0.2.1';

function anyAddress(): string {
  return `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`;
}

/** The requests in order; those that follow from an answer come next. */
function trafficOf(na: AuthorityProcess, fleet: FleetNode[]) {
  const upcoming: Sending[] = [];
  const verifications = verificationRequests().map(({ path, body }) => postRequest(path, body));
  const addresses = fleet.map(anyAddress);
  const turns = new Map<Kind, number>();

  function inTurn(what: Kind): number {
    const turn = (turns.get(what) ?? 0) + 1;
    turns.set(what, turn);
    return turn;
  }
  function memberAt(turn: number) {
    const index = turn % fleet.length;
    return { index, node: fleet[index] as FleetNode, address: addresses[index] ?? '' };
  }
  function sent(what: string, from: string, request: LoadRequest, then?: Sending['then']): Sending {
    const headers = { ...request.headers, 'X-Forwarded-For': from };
    return { what, request: { ...request, headers }, ...(then && { then }) };
  }
  function command(path: string, body: JsonObject, then?: Sending['then']): Sending {
    const what = path.split('/', 3).join('/');
    return sent(what, OPERATOR, commandSigner(na.privileged, path)(body), then);
  }

  const making: { readonly [What in Kind]: () => Sending } = {
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
      const request = verifications[inTurn('verification') % verifications.length] as LoadRequest;
      return sent('verification', anyAddress(), request);
    },
    /** Uses a key that has never joined. */
    stranger() {
      const node = { key: newKey(), certId: systemRuntime.uuid() };
      return sent('stranger', anyAddress(), heartbeatRequest(node, systemRuntime.now()));
    },
    operatorRead() {
      const [path, query] = OPERATOR_READS[randomInt(OPERATOR_READS.length)] ?? OPERATOR_READS[0];
      const headers = operatorSigner(na.network, 'GET', path, query)({});
      const search = 'limit' in query ? `?limit=${query.limit}` : '';
      return sent('operator read', OPERATOR, { ...getRequest(path + search), headers });
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
      return sent('agent', address, postRequest('/agents', jsonText(descriptor)));
    },
    /** Sends the request twice, like a client that lost the answer. */
    renewal() {
      const { index, node, address } = memberAt(inTurn('renewal'));
      const request = renewalRequest(node, VALID);
      const again = { ...request, headers: { ...request.headers, 'X-Mesh-Retry': '1' } };
      return sent('renewal', address, request, ({ cert_id }) => {
        fleet[index] = { key: node.key, certId: String(cert_id) };
        upcoming.push(sent('renewal again', address, again));
      });
    },
    /** A node joins and is revoked. */
    invite() {
      return command('/admin/invite', {}, ({ token_id }) => {
        const request = joinRequest(newKey(), String(token_id), VALID);
        const revoke = ({ cert_id }: JsonObject) => {
          const body = { cert_id: String(cert_id), reason: 'unspecified' };
          upcoming.push(command('/admin/revoke', body));
        };
        upcoming.push(sent('join', anyAddress(), request, revoke));
      });
    },
    attestation() {
      const issued = { subject_id: systemRuntime.uuid(), roles: ['role:client'] };
      return command('/admin/attestations', issued, ({ attestation_id }) => {
        const path = `/admin/attestations/${attestation_id}/revoke`;
        upcoming.push(command(path, { reason: 'ended' }));
      });
    },
  };
  const deck = Object.entries(SHARES).flatMap(([what, share]) =>
    Array<Kind>(share).fill(what as Kind),
  );
  return {
    next: () => upcoming.shift() ?? making[deck[randomInt(deck.length)] ?? 'heartbeat'](),
    again: (lost: Sending) => void upcoming.push(lost),
  };
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
      await systemRuntime.pause(SAMPLE_SECONDS * 1000);
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
