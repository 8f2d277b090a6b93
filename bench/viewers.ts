/**
 * A thousand viewers of the live dashboard while heartbeats run at full speed: their cost to the
 * heartbeats, and the time until a change reaches them.
 */
import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { keyFromSeed } from '../src/client/keys.ts';
import { createOperatorClient } from '../src/client/operator-client.ts';
import { readKeyFile } from '../src/keys/key-file.ts';
import { systemRuntime } from '../src/runtime.ts';
import { contest, rateOf, type Settings, type Standing } from './contest.ts';
import { newKeys } from './fleet.ts';
import { type Load, startLoad } from './load.ts';
import { compare, lineOf, type Report } from './report.ts';
import { assertAccepted, type RoundResult } from './round.ts';
import { type AuthorityProcess, OTHER, startAuthority, startOther } from './servers.ts';

const VIEWERS = 1000;
const CONNECTIONS = 64;
const NODES = 1000;
const ENROLLING = { connections: 32, seconds: 600, rate: null };
const FIRST_GUESS = 15_000;
const HEADROOM = 1.3;
const CHANGE_EVERY_MS = 1000;
const TARGET = 0.9;

export async function benchViewers(load: Load, settings: Settings): Promise<Report> {
  const { cpuProf, threads } = settings;
  await using na = await startAuthority(cpuProf && join(cpuProf, 'viewers'), threads);
  await using other = await startOther(settings, threads);
  // A fleet is enrolled in one network.
  await using otherLoad = other && startLoad();

  const ours = await enrolledSide(load, na);
  const theirs = other && otherLoad && (await enrolledSide(otherLoad, other));
  const [watched, unwatched, others] = (await contest(
    [
      { name: `${VIEWERS} viewers`, run: ours.watched },
      { name: 'no viewers', run: ours.unwatched },
      ...(theirs ? [{ name: `${OTHER}, ${VIEWERS} viewers`, run: theirs.watched }] : []),
    ],
    settings,
  )) as [Standing, Standing, Standing | undefined];
  return {
    benchmark: 'viewers',
    about: `${NODES} nodes on ${CONNECTIONS} connections, closed loop, a treaty a second`,
    lines: [watched, unwatched, ...(others ? [others] : [])].map(lineOf),
    comparisons: [
      compare(watched, unwatched, TARGET),
      ...(others ? [compare(watched, others, null)] : []),
    ],
    notes: [
      delayNote('', ours.delays),
      ...(theirs ? [delayNote(`${OTHER}: `, theirs.delays)] : []),
    ],
  };
}

interface Side {
  /** From the answers of changes to their arrival at viewers, in milliseconds. */
  readonly delays: readonly number[];
  watched(seconds: number): Promise<RoundResult>;
  unwatched(seconds: number): Promise<RoundResult>;
}

/** An authority with its nodes, which send heartbeats with and without viewers beside them. */
async function enrolledSide(load: Load, na: AuthorityProcess): Promise<Side> {
  const plan = { target: na, ...ENROLLING };
  assertAccepted('NA joins', await load.ask('enroll', { plan, network: na.network, nodes: NODES }));
  const delays: number[] = [];
  let fastest = FIRST_GUESS;

  async function unwatched(seconds: number): Promise<RoundResult> {
    await load.ask('sign', { count: Math.ceil(seconds * fastest * HEADROOM) });
    const order = { target: na, connections: CONNECTIONS, rate: null, seconds };
    const result = await load.ask('heartbeats', order);
    fastest = Math.max(fastest, rateOf(result));
    return result;
  }

  async function watched(seconds: number): Promise<RoundResult> {
    const viewers = await openViewers(na);
    const running = unwatched(seconds);
    delays.push(...(await changeUntil(na, viewers, running)));
    for (const { socket } of viewers) socket.destroy();
    return running;
  }

  return { delays, watched, unwatched };
}

function delayNote(whose: string, delays: readonly number[]): string {
  const sorted = [...delays].sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(0);
  return `${whose}from the answer of a change to a viewer: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}

interface Viewer {
  readonly socket: Socket;
  /** Calls back with whatever arrives. */
  onText: (text: string) => void;
}

async function openViewers(na: AuthorityProcess): Promise<Viewer[]> {
  const viewers: Viewer[] = [];
  for (let i = 0; i < VIEWERS; i += 1) viewers.push(await openViewer(na));
  return viewers;
}

/** A minimal WebSocket client: frames of the server are plain text after a few bytes of header. */
function openViewer({ port }: AuthorityProcess): Promise<Viewer> {
  const key = createHash('md5').update(systemRuntime.uuid()).digest('base64');
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port });
    const viewer: Viewer = { socket, onText: () => undefined };
    socket.on('error', reject);
    socket.once('data', () => {
      socket.on('data', (bytes) => viewer.onText(bytes.toString('latin1')));
      resolve(viewer);
    });
    socket.write(
      'GET /live?topic=dashboard&form=patches HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\n' +
        `Connection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    );
  });
}

/** Issues a treaty a second until the round has ended; how long each took to reach each viewer. */
async function changeUntil(
  na: AuthorityProcess,
  viewers: readonly Viewer[],
  round: Promise<unknown>,
): Promise<number[]> {
  let running = true;
  void round.finally(() => {
    running = false;
  });
  const operator = createOperatorClient({
    url: na.url,
    keyId: 'ops-privileged',
    key: keyFromSeed(readKeyFile(join(na.dataDir, 'keys', 'operator-privileged.key'))),
  });
  const [key] = newKeys(1);
  const delays: number[] = [];
  while (running) {
    const subject = `neighbor-${systemRuntime.uuid()}`;
    let answeredAt = Number.POSITIVE_INFINITY;
    for (const viewer of viewers) {
      viewer.onText = (text) => {
        if (!text.includes(subject)) return;
        delays.push(Math.max(0, systemRuntime.elapsed() - answeredAt));
        viewer.onText = () => undefined;
      };
    }
    await operator.issueTreaty({
      subject_sovereign_id: subject,
      subject_public_keys: [key?.publicKey ?? ''],
      validity_hours: 24,
    });
    answeredAt = systemRuntime.elapsed();
    await sleep(CHANGE_EVERY_MS);
  }
  return delays;
}
