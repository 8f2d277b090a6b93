/** `mesh-na console` on a large network: how long its node pages take to show their rows. */
import { join } from 'node:path';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { createOperatorClient } from '../src/client/operator-client.ts';
import { type ConsoleTarget, startTestConsole, type TestConsole } from '../test/support/console.ts';
import { asKey } from '../test/support/signing.ts';
import type { Settings } from './contest.ts';
import { countCpuOf } from './cpu.ts';
import { fillWithLargeNetwork } from './large-network.ts';
import type { Load } from './load.ts';
import { median, type Report } from './report.ts';
import { startAuthority } from './servers.ts';

/** Few nodes have a name and a label, so a search for them reads most of the list. */
const DESCRIBED = 20;

const VIEWS: Readonly<Record<string, string>> = {
  'no filter': 'nodes',
  'role of all': 'nodes?role=role:client',
  'active ones': 'nodes?status=active',
  'a label that few have': 'nodes?label=rack%3Dr1',
  'a name that one has': 'nodes?q=edge-7',
  'a name that nobody has': 'nodes?q=nobody',
  'a label that nobody has': 'nodes?label=rack%3Dnone',
  'silent for a week, which none is': 'nodes?silent=7d',
  'revoked, one in a hundred': 'nodes?status=revoked',
  'by name': 'nodes?sort=name',
  'by last contact': 'nodes?sort=-contact',
  'last contact of each': 'contacts',
  'first rows as CSV': 'nodes.csv',
};

export async function benchConsole(_load: Load, settings: Settings): Promise<Report> {
  const { cpuProf, threads, rounds, progress } = settings;
  const profiles = cpuProf === null ? null : join(cpuProf, 'console');
  await using na = await startAuthority(profiles, threads, (folder) =>
    fillWithLargeNetwork(folder, settings),
  );
  const seed = readKeyFile(join(na.dataDir, 'keys', 'operator-privileged.key'));
  const privileged = { keyId: 'ops-privileged', key: signerFromSeed(seed) };
  const target = { url: na.url, audience: na.network.audience, privileged, clock: systemRuntime };
  await using console = await startTestConsole(target);
  await describeSome(target);
  const notes: string[] = [];
  for (const [name, path] of Object.entries(VIEWS)) {
    const times: number[] = [];
    const cpu: number[] = [];
    for (let round = 0; round <= rounds; round += 1) {
      progress(`console: ${name}, round ${round} of ${rounds}`);
      const [started, own, server] = [
        systemRuntime.elapsed(),
        process.cpuUsage(),
        countCpuOf(na.pid),
      ];
      await firstBytes(console, path);
      // The first view also looks up who the operator is, so it does not count.
      if (round === 0) continue;
      times.push(systemRuntime.elapsed() - started);
      const { user, system } = process.cpuUsage(own);
      cpu.push((user + system) / 1000 + server().all * 1000);
    }
    const [elapsed, busy] = [times, cpu].map((each) => median(each).toFixed(0));
    notes.push(`${name}: ${elapsed} ms, ${busy} ms of CPU of the console and the authority`);
  }
  return {
    benchmark: 'console',
    about: `views of ${settings.seeded} nodes until their first bytes, ${rounds} of each`,
    lines: [],
    comparisons: [],
    notes,
  };
}

/** Resolves with the answer: a page is sent when it is complete, a CSV file while it is read. */
async function firstBytes(console: TestConsole, path: string): Promise<void> {
  const { cookie, root } = await console.open();
  const answer = await fetch(console.origin + root + path, { headers: { cookie } });
  if (answer.status !== 200) throw new Error(`${path} was answered with ${answer.status}`);
  const reader = answer.body?.getReader();
  await reader?.read();
  await reader?.cancel();
}

async function describeSome({ url, audience, privileged }: ConsoleTarget): Promise<void> {
  const { keyId, key } = privileged;
  const client = createOperatorClient({ url, audience, keyId, key: asKey(key) });
  const { certificates } = await client.listCertificates({ status: 'in_use', limit: DESCRIBED });
  for (const [index, { node_public_key: node }] of certificates.entries()) {
    await client.describeNode({
      node_public_key: node,
      name: `edge-${index}`,
      labels: { rack: 'r1' },
    });
  }
}
