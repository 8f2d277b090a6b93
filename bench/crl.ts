/**
 * A revocation list of 100,000 entries: the time until a revocation is acknowledged, its effect on heartbeats and
 * health checks in the meantime, and the cost of a reader that already has the list.
 */
import { join } from 'node:path';
import { openLmdbStore } from '../src/store/lmdb/store.ts';
import type { Settings } from './contest.ts';
import { enrolledFleet } from './enrolled-fleet.ts';
import { commandSigner, httpRequest } from './fleet.ts';
import type { Load } from './load.ts';
import { healthRequest } from './probes.ts';
import { type Line, lineOf, type Report } from './report.ts';
import { assertAccepted, type RequestSource, type RoundResult, runRound } from './round.ts';
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

export async function benchCrl(load: Load, settings: Settings): Promise<Report> {
  const { seconds, threads, cpuProf, progress } = settings;
  progress(`crl: writing ${REVOKED} revoked certificates`);
  const spare: string[] = [];
  const profiles = cpuProf === null ? null : join(cpuProf, 'crl');
  await using na = await startAuthority(profiles, threads, async (folder) => {
    await seed(folder, { nodes: REVOKED + SPARE, revoked: REVOKED, invites: 0, agents: 0 });
    spare.push(...(await issuedCertificates(folder)));
  });
  const nextRevocation = revocations(na, spare);
  const probe = { connections: AT_ONCE, rate: PROBES };
  const node = await enrolledFleet(load, na, { nodes: 1, ...probe });

  const lines: Line[] = [];
  const notes = [`a revocation must stay below ${MOST_MS} ms, a stall below ${MOST_STALL_MS} ms`];
  for (const connections of [1, AT_ONCE]) {
    progress(`crl: ${connections} revocations at once`);
    const round = { target: na, seconds };
    const results = await Promise.all([
      runRound({ ...round, connections, rate: null }, nextRevocation),
      node.beat(seconds),
      runRound({ ...round, ...probe }, healthRequest),
    ]);
    const names = [
      `revocations, ${connections} at once`,
      `heartbeats, during ${connections}`,
      `GET /healthz, during ${connections}`,
    ];
    for (const [index, result] of results.entries()) {
      const name = names[index] ?? '';
      lines.push(lineOf({ name, rounds: [assertAccepted(name, result)] }));
      notes.push(`${name}: the longest took ${result.latency?.max.toFixed(1)} ms`);
    }
  }
  lines.push(lineOf({ name: 'GET /crl, held', rounds: [await heldReads(na)] }));
  return {
    benchmark: 'crl',
    about: `${REVOKED} revoked certificates, ${threads} thread(s), rounds of ${seconds} s`,
    lines,
    comparisons: [],
    notes,
  };
}

async function issuedCertificates(dataDir: string): Promise<string[]> {
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

/** Signed revocations of these certificates, from the last to the first. */
export function revocations({ privileged }: AuthorityProcess, spare: string[]): RequestSource {
  const sign = commandSigner(privileged, '/admin/revoke');
  return () => {
    const certId = spare.pop();
    return certId === undefined ? undefined : sign({ cert_id: certId, reason: 'superseded' });
  };
}

/** Reads by a client that has the newest list, which are answered with 304 and without its megabytes. */
async function heldReads(na: AuthorityProcess): Promise<RoundResult> {
  const whole = await fetch(`${na.url}/crl`, { headers: { 'Accept-Encoding': 'identity' } });
  await whole.arrayBuffer();
  const request = httpRequest('GET', '/crl', { 'If-None-Match': whole.headers.get('etag') ?? '' });
  const plan = { target: na, connections: 1, seconds: 60, rate: null };
  const result = await runRound(plan, (index) => (index < HELD_READS ? request : undefined));
  if (result.refusals['304'] === HELD_READS) return result;
  throw new Error(`GET /crl with If-None-Match was answered ${JSON.stringify(result.refusals)}`);
}
