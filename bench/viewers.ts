/**
 * A thousand viewers of the live dashboard while heartbeats run at full speed: their cost to the
 * heartbeats, and the time until a change reaches them.
 */
import { createHash } from 'node:crypto';
import { Agent, get } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { systemRuntime } from '../src/base/runtime.ts';
import { type Audience, CONNECTIONS, enrolledSide, type Listener, NODES } from './audience.ts';
import { contest, type Measured, type Settings } from './contest.ts';
import { newKeys } from './fleet.ts';
import { type Load, startLoad } from './load.ts';
import { delayText } from './probes.ts';
import { compare, lineOf, type Report } from './report.ts';
import { type AuthorityProcess, OTHER, startAuthority, startOther } from './servers.ts';

const VIEWERS = 1000;
const TARGET = 0.9;

export async function benchViewers(load: Load, settings: Settings): Promise<Report> {
  const { cpuProf, threads } = settings;
  await using na = await startAuthority(cpuProf && join(cpuProf, 'viewers'), threads);
  await using other = await startOther(settings, threads);
  // Each fleet is enrolled in only one network.
  await using otherLoad = other && startLoad();

  const ours = await enrolledSide(load, na, AUDIENCE);
  const theirs = other && otherLoad && (await enrolledSide(otherLoad, other, AUDIENCE));
  const [watched, unwatched, others] = (await contest(
    [
      { name: `${VIEWERS} viewers`, run: ours.heard },
      { name: 'no viewers', run: ours.unheard },
      ...(theirs ? [{ name: `${OTHER}, ${VIEWERS} viewers`, run: theirs.heard }] : []),
    ],
    settings,
  )) as [Measured, Measured, Measured | undefined];
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

function delayNote(whose: string, delays: readonly number[]): string {
  return `${whose}from the answer of a change to a viewer: ${delayText(delays)}`;
}

const AUDIENCE: Audience = {
  open: openViewers,
  happen(operator, mark) {
    const [key] = newKeys(1);
    return operator.issueTreaty({
      subject_sovereign_id: `neighbor-${mark}`,
      subject_public_keys: [key?.publicKey ?? ''],
      validity_hours: 24,
    });
  },
};

async function openViewers(na: AuthorityProcess): Promise<Listener[]> {
  const viewers: Listener[] = [];
  for (let i = 0; i < VIEWERS; i += 1) viewers.push(await openViewer(na));
  return viewers;
}

/** Viewers share the copies that they got. */
const copies = new Map<string, string>();
const agent = new Agent({ keepAlive: true, maxSockets: VIEWERS });

/** Gets the page as browsers do when their socket says that there is another version. */
function fetchPage(port: number, take: (text: string) => void): void {
  const headers = { 'Accept-Encoding': 'gzip' };
  get({ port, path: '/dashboard', agent, headers }, async (answer) => {
    const pieces: Buffer[] = [];
    for await (const piece of answer as AsyncIterable<Buffer>) pieces.push(piece);
    const etag = String(answer.headers.etag);
    const text = copies.get(etag) ?? gunzipSync(Buffer.concat(pieces)).toString();
    copies.set(etag, text);
    take(text);
  });
}

/** A minimal WebSocket client: the server's frames are plain text after a header of a few bytes. */
function openViewer({ port }: AuthorityProcess): Promise<Listener> {
  const key = createHash('md5').update(systemRuntime.uuid()).digest('base64');
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port });
    let isWaiting = false;
    const viewer: Listener = { socket, onText: () => undefined };
    socket.on('error', reject);
    socket.once('data', () => {
      socket.on('data', (bytes) => {
        const text = bytes.toString('latin1');
        viewer.onText(text);
        const [, spread] = /"spread_ms":(\d+)/.exec(text) ?? [];
        if (spread === undefined || isWaiting) return;
        isWaiting = true;
        setTimeout(() => {
          isWaiting = false;
          fetchPage(port, (page) => viewer.onText(page));
        }, Math.random() * Number(spread));
      });
      resolve(viewer);
    });
    socket.write(
      'GET /live?topic=dashboard HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\n' +
        `Connection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    );
  });
}
