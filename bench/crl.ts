/**
 * A revocation list of 100,000 entries: the time until a revocation is acknowledged, its effect on heartbeats and
 * health checks in the meantime, and the cost of a reader that already has the list.
 */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { jsonText } from '../src/base/json/write.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { openLmdbStore } from '../src/store/lmdb/store.ts';
import { operatorHeaders } from '../test/support/signing.ts';
import type { Settings } from './contest.ts';
import {
  getRequest,
  heartbeatSigner,
  httpRequest,
  inviteSigner,
  joinRequest,
  newKeys,
} from './fleet.ts';
import { openConnection } from './load/connection.ts';
import type { Load } from './load.ts';
import { type Line, lineOf, type Report } from './report.ts';
import { assertAccepted, type RoundResult, runRound } from './round.ts';
import { seed } from './seed.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';

const REVOKED = 100_000;
/** Certificates that the run revokes. */
const SPARE = 10_000;
const AT_ONCE = 8;
/** Heartbeats per second, and health checks per second. */
const PROBES = 250;
const HELD_READS = 200;
const MOST_MS = 150;
const MOST_STALL_MS = 20;

export async function benchCrl(_load: Load, settings: Settings): Promise<Report> {
  const { seconds, threads, cpuProf, progress } = settings;
  progress(`crl: writing ${REVOKED} revoked certificates`);
  const spare: string[] = [];
  let dataDir = '';
  const fill = async (folder: string) => {
    dataDir = folder;
    await seed(folder, { nodes: REVOKED + SPARE, revoked: REVOKED, invites: 0, agents: 0 });
    spare.push(...(await issuedCertificates(folder)));
  };
  const profiles = cpuProf === null ? null : join(cpuProf, 'crl');
  await using na = await startAuthority(profiles, threads, fill);
  const nextRevocation = revocationSigner(na, dataDir, spare);
  const heartbeats = heartbeatSigner([await enrolledNode(na)]);

  const lines: Line[] = [];
  const notes = [`a revocation must stay below ${MOST_MS} ms, a stall below ${MOST_STALL_MS} ms`];
  for (const connections of [1, AT_ONCE]) {
    progress(`crl: ${connections} revocations at once`);
    const name = `revocations, ${connections} at once`;
    const watched = () =>
      timedRound(name, na, { connections, seconds, rate: null }, nextRevocation);
    const signed = heartbeats(PROBES * seconds);
    const probe = { connections: AT_ONCE, seconds, rate: PROBES };
    const [revocations, beats, checks] = await Promise.all([
      watched(),
      timedRound(`heartbeats, during ${connections}`, na, probe, (index) => signed[index]),
      timedRound(`GET /healthz, during ${connections}`, na, probe, () => getRequest('/healthz')),
    ]);
    for (const { line, longest } of [revocations, beats, checks]) {
      lines.push(line);
      notes.push(`${line.name}: the longest took ${longest.toFixed(1)} ms`);
    }
  }
  lines.push(await heldReads(na));
  return {
    benchmark: 'crl',
    about: `${REVOKED} revoked certificates, ${threads} thread(s), rounds of ${seconds} s`,
    lines,
    comparisons: [],
    notes,
  };
}

export async function issuedCertificates(dataDir: string): Promise<string[]> {
  const store = openLmdbStore(dataDir);
  const spare: string[] = [];
  const { subjects } = await store.load();
  for await (const batch of subjects) {
    for (const { kind, id, snapshot } of batch) {
      if (kind === 'certificate' && snapshot.value === 'issued') spare.push(id);
    }
  }
  await store.close();
  return spare;
}

interface Timed {
  readonly line: Line;
  /** The longest time from a request to its answer, in milliseconds. */
  readonly longest: number;
}

async function timedRound(
  name: string,
  target: AuthorityProcess,
  plan: { readonly connections: number; readonly seconds: number; readonly rate: number | null },
  requestAt: (index: number) => Buffer | undefined,
): Promise<Timed> {
  const sentAt: number[] = [];
  let longest = 0;
  const result: RoundResult = await runRound(
    { target, ...plan },
    (index) => {
      const request = requestAt(index);
      sentAt[index] = performance.now();
      return request;
    },
    (index) => {
      longest = Math.max(longest, performance.now() - (sentAt[index] ?? 0));
    },
  );
  return { line: lineOf({ name, rounds: [assertAccepted(name, result)] }), longest };
}

/** Creates signed revocations of these certificates, from the last to the first. */
export function revocationSigner(
  na: AuthorityProcess,
  dataDir: string,
  spare: string[],
): () => Buffer | undefined {
  const key = signerFromSeed(readKeyFile(join(dataDir, 'keys', 'operator-privileged.key')));
  const path = '/admin/revoke';
  return () => {
    const certId = spare.pop();
    if (certId === undefined) return undefined;
    const body = { cert_id: certId, reason: 'superseded' };
    const timestamp = new Date(systemRuntime.now()).toISOString();
    const request = { method: 'POST', path, query: {}, body, timestamp, nonce: randomUUID() };
    const { audience } = na.network;
    const headers = operatorHeaders({ ...request, audience, keyId: 'ops-privileged' }, key);
    return httpRequest('POST', path, headers, jsonText(body));
  };
}

/** One node that can sign its heartbeats. */
async function enrolledNode(na: AuthorityProcess) {
  const [key] = newKeys(1);
  if (key === undefined) throw new Error('There is no key');
  const { token_id: token } = await asked<{ token_id: string }>(na, inviteSigner(na.network)({}));
  const { cert_id: certId } = await asked<{ cert_id: string }>(na, joinRequest(key, token));
  return { key, certId };
}

async function asked<Answer>({ port }: AuthorityProcess, request: Buffer): Promise<Answer> {
  const connection = await openConnection({ port });
  try {
    return await new Promise((resolve, reject) => {
      connection.failed = reject;
      connection.answered = (status, body) => {
        if (status >= 300) reject(new Error(`The authority answered ${status}: ${body}`));
        else resolve(JSON.parse(body.toString('utf8')) as Answer);
      };
      connection.send(request);
    });
  } finally {
    connection.close();
  }
}

/** Reads by clients that have the newest list, which are answered with 304 and without its megabytes. */
async function heldReads({ url }: AuthorityProcess): Promise<Line> {
  const whole = await fetch(`${url}/crl`, { headers: { 'Accept-Encoding': 'identity' } });
  await whole.arrayBuffer();
  const etag = whole.headers.get('etag') ?? '';
  const times: number[] = [];
  const started = performance.now();
  for (let read = 0; read < HELD_READS; read += 1) {
    const before = performance.now();
    const { status } = await fetch(`${url}/crl`, { headers: { 'If-None-Match': etag } });
    if (status !== 304) throw new Error(`GET /crl with If-None-Match was answered ${status}`);
    times.push(performance.now() - before);
  }
  const seconds = (performance.now() - started) / 1000;
  times.sort((a, b) => a - b);
  const percentile = (share: number) => times[Math.floor(HELD_READS * share)] ?? null;
  return {
    name: 'GET /crl, held',
    requests_per_second: Math.round(HELD_READS / seconds),
    cpu_us_per_request: 0,
    main_us_per_request: 0,
    server_cpu: 0,
    client_cpu: 0,
    p50_ms: percentile(0.5),
    p99_ms: percentile(0.99),
    p999_ms: percentile(0.999),
  };
}
