/**
 * `npm run test:tls-swaps`: changes the TLS pair of a live server again and again under new connections, and counts
 * the handshakes that fail, with and without changes.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import { parseArgs } from 'node:util';
import { startChildServer } from './support/child-server.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { makeTlsPair, putInPlace } from './support/tls-files.ts';

const { values } = parseArgs({
  options: {
    swaps: { type: 'string', default: '50' },
    rate: { type: 'string', default: '2000' },
    threads: { type: 'string', default: '2' },
  },
});
const [swaps, rate] = [Number(values.swaps), Number(values.rate)];
const PAUSE_MS = 200;
const TICK_MS = 5;
/** More would only wait for each other. */
const MOST_PENDING = 64;

const folder = mkdtempSync(join(tmpdir(), 'mesh-tls-swaps-'));
const { folder: dataDir } = makeNetworkFolder();
const pairs = ['even', 'odd'].map((name) => makeTlsPair(folder, name));
const served = { certFile: join(folder, 'served.crt'), keyFile: join(folder, 'served.pem') };
putInPlace(pairAt(0), served);
const args = ['--tls-cert', served.certFile, '--tls-key', served.keyFile];
const server = await startChildServer(dataDir, { args: [...args, '--threads', values.threads] });
try {
  report('without changes', await run(0));
  const changed = await run(swaps);
  report(`with ${swaps} changes`, changed);
  process.exitCode = changed.names.size === 2 ? 0 : 1;
} finally {
  await server.end('SIGTERM');
  for (const path of [folder, dataDir]) rmSync(path, { recursive: true, force: true });
}

interface Counted {
  opened: number;
  failed: number;
  readonly seconds: number;
  readonly names: ReadonlySet<string>;
}

/** New connections all the while, as many a second as asked for or as this machine makes. */
async function run(changes: number): Promise<Counted> {
  const counted = { opened: 0, failed: 0 };
  const names = new Set<string>();
  const pending = new Set<Promise<void>>();
  const started = performance.now();
  const stop = new AbortController();
  const asking = ask();
  for (let swap = 1; swap <= swaps; swap += 1) {
    await delay(PAUSE_MS);
    if (swap > changes) continue;
    putInPlace(pairAt(swap), served);
    server.process.kill('SIGHUP');
  }
  await delay(PAUSE_MS);
  stop.abort();
  await asking;
  await Promise.all(pending);
  return { ...counted, seconds: (performance.now() - started) / 1000, names };

  async function ask(): Promise<void> {
    for (let asked = 0; !stop.signal.aborted; await delay(TICK_MS)) {
      const due = ((performance.now() - started) / 1000) * rate;
      for (; asked < due && pending.size < MOST_PENDING; asked += 1) {
        const one = handshake().finally(() => pending.delete(one));
        pending.add(one);
      }
      asked = Math.floor(Math.max(asked, due));
    }
  }

  async function handshake(): Promise<void> {
    const port = Number(new URL(server.na.url).port);
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    try {
      await once(socket, 'secureConnect');
      names.add(String(socket.getPeerCertificate().subject.CN));
      counted.opened += 1;
    } catch {
      counted.failed += 1;
    } finally {
      socket.destroy();
    }
  }
}

function pairAt(index: number) {
  const pair = pairs[index % pairs.length];
  if (pair === undefined) throw new Error('There are two pairs');
  return pair;
}

function report(what: string, { opened, failed, seconds }: Counted): void {
  const perSecond = Math.round(opened / seconds);
  process.stdout.write(`${what}: ${opened} handshakes, ${perSecond}/s, ${failed} failed\n`);
}
