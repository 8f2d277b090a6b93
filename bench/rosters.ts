/** An operator who reads the roster of a large network continuously: the effect on heartbeats. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { systemRuntime } from '../src/base/runtime.ts';
import { contest, type Measured, type Settings } from './contest.ts';
import { operatorSigner } from './fleet.ts';
import { fillWithLargeNetwork } from './large-network.ts';
import type { Load } from './load.ts';
import { lineOf, type Report } from './report.ts';
import { assertAccepted, type RoundResult } from './round.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';

const FLEET = 1000;
const CONNECTIONS = 64;
const ENROLLING = { connections: 32, seconds: 600, rate: null };
/** Below the capacity of the server, so that latency shows stalls and not queues. */
const HEARTBEATS_PER_SECOND = 4000;
/** No heartbeats are sent between rounds, and the first ones after a pause wait for the disk. */
const SETTLING_SECONDS = 0.5;

export async function benchRosters(load: Load, settings: Settings): Promise<Report> {
  const { cpuProf, threads } = settings;
  const rate = settings.rate ?? HEARTBEATS_PER_SECOND;
  const connections = settings.connections ?? CONNECTIONS;
  const profiles = cpuProf === null ? null : join(cpuProf, 'rosters');
  await using na = await startAuthority(profiles, threads, (folder) =>
    fillWithLargeNetwork(folder, settings),
  );
  const plan = { target: na, ...ENROLLING };
  assertAccepted('joins', await load.ask('enroll', { plan, network: na.network, nodes: FLEET }));
  const rosters: RosterRead[] = [];

  async function beat(seconds: number): Promise<RoundResult> {
    await load.ask('sign', { count: Math.ceil(seconds * rate) });
    const settling = SETTLING_SECONDS;
    return load.ask('heartbeats', { target: na, connections, rate, seconds, settling });
  }
  const standings = (await contest(
    [
      {
        name: 'during rosters',
        async run(seconds) {
          const running = beat(seconds);
          rosters.push(...(await readRostersUntil(na, running)));
          return running;
        },
      },
      { name: 'no rosters', run: beat },
    ],
    settings,
  )) as [Measured, Measured];
  const [roster] = rosters;
  const seconds = rosters.map((read) => read.seconds).sort((a, b) => a - b);
  return {
    benchmark: 'rosters',
    about: `heartbeats, ${rate}/s on ${connections} connections in an open loop, ${threads} thread(s)`,
    lines: standings.map(lineOf),
    comparisons: [],
    notes: [
      `a roster of ${roster?.count} nodes and ${Math.round((roster?.bytes ?? 0) / 1e6)} MB ` +
        `took ${seconds[0]?.toFixed(1)} to ${seconds.at(-1)?.toFixed(1)} s`,
    ],
  };
}

interface RosterRead {
  readonly count: number;
  readonly bytes: number;
  readonly seconds: number;
}

/** Reads one roster after another until the round has ended; the last one completely. */
async function readRostersUntil(
  na: AuthorityProcess,
  round: Promise<unknown>,
): Promise<RosterRead[]> {
  let running = true;
  void round.finally(() => {
    running = false;
  });
  const reads: RosterRead[] = [];
  while (running) reads.push(await readRoster(na));
  return reads;
}

async function readRoster({ url, network }: AuthorityProcess): Promise<RosterRead> {
  const started = systemRuntime.elapsed();
  const headers = operatorSigner(network, 'GET', '/nodes')({});
  const [response] = (await once(request(`${url}/nodes`, { headers }).end(), 'response')) as [
    IncomingMessage,
  ];
  let bytes = 0;
  let start = '';
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (start === '') start = chunk.toString('latin1', 0, 64);
  });
  await once(response, 'end');
  const count = Number(/^\{"count":(\d+)/.exec(start)?.[1] ?? Number.NaN);
  return { count, bytes, seconds: (systemRuntime.elapsed() - started) / 1000 };
}
