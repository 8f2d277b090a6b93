/** Revocations: with a list of 100,000 entries, and in several linked instances. */
import type { Store } from '../src/store/store.ts';
import { contest, type Settings } from './contest.ts';
import { enrolledFleet } from './fleet.ts';
import { getRequest } from './load/requests.ts';
import { bytesOf, commandSigner } from './network.ts';
import { type Line, lineOf, type Report } from './report.ts';
import { type RequestSource, type RoundResult, runRound, UNTIL_ALL_ARE_SENT } from './rounds.ts';
import { seed } from './seed.ts';
import {
  type AuthorityProcess,
  isReadyAs,
  startAuthority,
  startInstances,
  storeIn,
} from './servers.ts';

const LONG_LIST = 100_000;
const SHORT_LIST = 1000;
/** Certificates that the run can revoke. */
const SPARE = 20_000;
const AT_ONCE = 8;
/** Heartbeats per second, and health checks per second. */
const PROBES = 250;
const HELD_READS = 200;
const IN_A_ROUND = 200;
const TARGETS = 'targets: a revocation within 150 ms, others within 20 ms';

/**
 * The time until a revocation in a long list is acknowledged, its effect on heartbeats and health checks in the meantime,
 * and the cost of a reader that already has the list.
 */
export async function benchCrl(settings: Settings): Promise<Report> {
  const { seconds, threads, progress } = settings;
  progress(`crl: writing ${LONG_LIST} revoked certificates`);
  let spare: string[] = [];
  await using na = await startAuthority(settings, {
    async fill(folder) {
      spare = await seedRevoked(folder, LONG_LIST);
    },
  });
  const nextRevocation = revocations(na, spare);
  const probe = { connections: AT_ONCE, rate: PROBES };
  const node = await enrolledFleet(na, { nodes: 1, ...probe });
  const lines: Line[] = [];
  for (const connections of [1, AT_ONCE]) {
    progress(`crl: ${connections} revocations at once`);
    const round = { target: na, seconds };
    const [revoked, beats, health] = await Promise.all([
      runRound({ ...round, connections, rate: null }, nextRevocation),
      node.beat(seconds),
      runRound({ ...round, ...probe }, () => bytesOf(getRequest('/healthz'))),
    ]);
    lines.push(
      lineOf({ name: `revocations, ${connections} at once`, rounds: [revoked] }),
      lineOf({ name: `heartbeats, during ${connections}`, rounds: [beats] }),
      lineOf({ name: `GET /healthz, during ${connections}`, rounds: [health] }),
    );
  }
  lines.push(lineOf({ name: 'GET /crl, held', rounds: [await heldReads(na)] }));
  const about = `${LONG_LIST} revoked certificates, ${threads} thread(s), rounds of ${seconds} s`;
  return { benchmark: 'crl', about, lines, comparisons: [], notes: [TARGETS] };
}

/** Reads by a client that has the newest list, which are answered with 304 and without its megabytes. */
async function heldReads(na: AuthorityProcess): Promise<RoundResult> {
  const whole = await fetch(`${na.url}/crl`, { headers: { 'Accept-Encoding': 'identity' } });
  await whole.arrayBuffer();
  const headers = { 'If-None-Match': whole.headers.get('etag') ?? '' };
  const request = bytesOf({ ...getRequest('/crl'), headers });
  const plan = { target: na, connections: 1, status: 304, ...UNTIL_ALL_ARE_SENT };
  return runRound(plan, (index) => (index < HELD_READS ? request : undefined));
}

/** The time until revocations are acknowledged by three linked instances, compared to a single instance. */
export async function benchRevocations(settings: Settings): Promise<Report> {
  const { connections = 1, progress } = settings;
  progress(`writing two networks with ${SHORT_LIST} revoked certificates`);
  const ofOne: string[] = [];
  await using one = await startInstances(settings, fillingInto(ofOne));
  const alone = await one.start();
  const ofThree: string[] = [];
  await using three = await startInstances(settings, fillingInto(ofThree));
  const active = await three.start();
  const standby = await three.start();
  const other = await three.start();
  for (const instance of [standby, other]) await isReadyAs('standby', instance);

  function revoke(target: AuthorityProcess, certificates: string[]): () => Promise<RoundResult> {
    const next = revocations(target, certificates);
    const plan = { target, connections, ...UNTIL_ALL_ARE_SENT, rate: settings.rate ?? null };
    return () => runRound(plan, (index) => (index < IN_A_ROUND ? next(index) : undefined));
  }
  const about = `${IN_A_ROUND} in a round on ${connections} connection(s), a list of ${SHORT_LIST} and more`;
  const against = { 'one instance': null };
  return await contest(settings, 'revocations', about, [
    { name: 'one instance', run: revoke(alone, ofOne) },
    { name: 'three, at the active one', run: revoke(active, ofThree), against },
    { name: 'three, at a standby', run: revoke(standby, ofThree), against },
  ]);
}

function fillingInto(spare: string[]) {
  return async (folder: string, url: string) => {
    const open = (dataDir: string) => storeIn(url, dataDir);
    spare.push(...(await seedRevoked(folder, SHORT_LIST, open)));
  };
}

/** Returns certificates that can be revoked in addition. */
async function seedRevoked(
  folder: string,
  revoked: number,
  open?: (dataDir: string) => Promise<Store>,
): Promise<string[]> {
  const counts = { nodes: revoked + SPARE, revoked, invites: 0, agents: 0 };
  const { issued } = await seed(folder, counts, open);
  return issued;
}

/** Signed revocations of these certificates, from the last to the first. */
function revocations({ privileged }: AuthorityProcess, spare: string[]): RequestSource {
  const sign = commandSigner(privileged, '/admin/revoke');
  return () => {
    const certId = spare.pop();
    if (certId === undefined) return undefined;
    return bytesOf(sign({ cert_id: certId, reason: 'superseded' }));
  };
}
