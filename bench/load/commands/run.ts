/** `load prepare`, `run`, `find` and `storm`. */
import { availableParallelism } from 'node:os';
import { type OperatorOptions, operatorClient } from '../../../src/cli/connection/operator.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from '../../../src/cli/kernel/errors.ts';
import { asJson, printNote, printNotice, printResult } from '../../../src/cli/kernel/output.ts';
import { whileWaiting } from '../../../src/cli/kernel/terminal.ts';
import { stopSignal } from '../../../src/cli/service/stop-request.ts';
import { findRate, parseObjectives } from '../find.ts';
import { addToFleet, createFleet, type Fleet, readFleet, signingNode } from '../fleet-folder.ts';
import { HIGHEST_RATE_OF_A_NODE, measure } from '../measure.ts';
import type { Mix } from '../mix.ts';
import { prepareFleet } from '../prepare.ts';
import type { Place } from '../requests.ts';
import { prepareReturn } from '../returning-fleet.ts';
import type { RunReport } from '../run-report.ts';
import { fleetIn, type GuardOptions, permittedNetwork, placeOf } from './place.ts';
import { foundText, reportText, stormText } from './text.ts';

interface PrepareOptions extends OperatorOptions, GuardOptions {
  readonly fleet: string;
  readonly nodes: number;
  readonly connections: number;
}

interface MeasuringOptions extends GuardOptions {
  readonly fleet: string;
  readonly mix: Mix;
  readonly bulletins?: boolean;
  readonly sessions?: boolean;
  readonly connections: number;
  readonly for: number;
  readonly warmUp: number;
  readonly timeout: number;
  readonly signingThreads?: number;
}

interface RunOptions extends MeasuringOptions {
  readonly rate: number;
}

interface FindOptions extends MeasuringOptions {
  readonly slo: string;
  readonly from: number;
  readonly highest: number;
}

interface StormOptions extends GuardOptions {
  readonly fleet: string;
  readonly nodes?: number;
  readonly connections?: number;
  readonly within: number;
  readonly timeout: number;
  readonly longest: number;
}

/** A year, so that a folder with a fleet can be used as long. */
const VALIDITY_HOURS = 8760;
const MOST_CONNECTIONS = 10_000;
const MOST_SIGNING_THREADS = 8;

export async function runPrepare(options: PrepareOptions): Promise<void> {
  const { fleet: folder, nodes, connections } = options;
  const place = placeOf(options);
  const earlier = onLocalFiles(() => readFleet(folder));
  const { network_name, network_authority } = await permittedNetwork(options, place, earlier);
  const client = operatorClient(options);
  const network = {
    version: 1,
    network_name,
    authority_key: network_authority.public_key,
    validity_hours: VALIDITY_HOURS,
  } as const;
  const fleet = earlier ?? onLocalFiles(() => createFleet(folder, network));
  const had = fleet.nodes.length;
  const stopped = stopSignal();
  let enrolled = 0;
  await prepareFleet({
    folder,
    place,
    connections,
    stopped,
    count: Math.max(nodes - had, 0),
    validityHours: fleet.network.validity_hours,
    async invite(count) {
      const { tokens = [] } = await client.createInvites({
        count,
        max_validity_hours: fleet.network.validity_hours,
      });
      return tokens.map(({ token_id }) => token_id);
    },
    progress(done) {
      enrolled = done;
      if (process.stderr.isTTY) process.stderr.write(`\rEnrolled ${had + done} of ${nodes}`);
    },
    onLimited() {
      const cure = 'serve with MESH_RATE_LIMIT_JOIN=off to enroll faster';
      if (!options.json) printNote(`The authority limits joins, so this takes longer: ${cure}.`);
    },
  }).catch((error) => {
    printNotice(`${had + enrolled} of ${nodes} nodes are enrolled; the same command continues`);
    throw error;
  });
  if (process.stderr.isTTY) process.stderr.write('\n');
  const total = had + enrolled;
  const result = { fleet: folder, network_name, nodes: total, enrolled };
  printResult(options, result, [
    `The fleet in ${folder} has ${total} nodes of the network "${network_name}".`,
  ]);
  if (total < nodes) {
    const message = `Stopped with ${total} of ${nodes} nodes; the same command continues`;
    throw failure(EXIT.failed, 'stopped', message);
  }
}

export async function runLoad(options: RunOptions): Promise<void> {
  const { fleet: folder, rate } = options;
  const place = placeOf(options);
  const fleet = fleetIn(folder);
  assertLargeEnough(fleet, rate);
  await permittedNetwork(options, place, fleet);
  const report = await whileWaiting('Measuring', () =>
    measured(options, place, rate, stopSignal()),
  );
  printResult(options, asJson(report), reportText(report));
}

export async function runFind(options: FindOptions): Promise<void> {
  const { fleet: folder, slo, from, highest } = options;
  const objectives = parseObjectives(slo);
  if (objectives === null) {
    throw usageFailure(
      '--slo takes objectives such as p50=5ms,p99=50ms; p50, p90, p99, p99.9, p99.99, max',
    );
  }
  const place = placeOf(options);
  const fleet = fleetIn(folder);
  assertLargeEnough(fleet, Math.min(from, highest));
  const most = Math.min(highest, highestRate(fleet));
  await permittedNetwork(options, place, fleet);
  const stopped = stopSignal();
  const found = await findRate({ objectives, from, highest: most }, async (rate) => {
    if (!options.json) printNote(`Trying ${rate} requests/s.`);
    return whileWaiting('Measuring', () => measured(options, place, rate, stopped));
  });
  printResult(options, asJson(found), foundText(found, slo));
  if (found.rate === null) throw failure(EXIT.refused, 'objective_missed', '');
}

export async function runStorm(options: StormOptions): Promise<void> {
  const place = placeOf(options);
  const fleet = fleetIn(options.fleet);
  const count = options.nodes ?? fleet.nodes.length;
  if (count > fleet.nodes.length) {
    throw usageFailure(`The fleet has only ${fleet.nodes.length} nodes`);
  }
  await permittedNetwork(options, place, fleet);
  const connections = options.connections ?? Math.min(count, MOST_CONNECTIONS);
  const storm = await whileWaiting('Measuring', async () => {
    const begin = await prepareReturn(fleet.nodes.slice(0, count).map(signingNode), {
      ...place,
      connections,
      withinMs: options.within,
      patienceMs: options.timeout,
      longestMs: options.longest,
    });
    return begin();
  });
  const result = { nodes: count, connections, within_ms: options.within, ...storm };
  printResult(options, asJson(result), stormText(result));
}

/** A run with the nodes as they are now, since an earlier one may have renewed some. */
async function measured(
  options: MeasuringOptions,
  place: Place,
  rate: number,
  stopped: AbortSignal,
): Promise<RunReport> {
  const fleet = fleetIn(options.fleet);
  const { mix, bulletins = false, sessions = false, signingThreads = defaultThreads() } = options;
  const report = await measure({
    url: options.url,
    place,
    fleet,
    mix,
    bulletins,
    sessions,
    rate,
    seconds: options.for / 1000,
    warmUpSeconds: options.warmUp / 1000,
    connections: options.connections,
    patienceMs: options.timeout,
    signingThreads: Math.min(signingThreads, fleet.nodes.length),
    stopped,
    renewed: (nodes) => onLocalFiles(() => addToFleet(options.fleet, nodes)),
  });
  if (report !== null) return report;
  throw failure(EXIT.failed, 'stopped', 'Stopped before the end, so there is no result');
}

/** They work on demand, so more of them than are needed cost nothing. */
function defaultThreads(): number {
  return Math.min(availableParallelism(), MOST_SIGNING_THREADS);
}

function highestRate(fleet: Fleet): number {
  return fleet.nodes.length * HIGHEST_RATE_OF_A_NODE;
}

function assertLargeEnough(fleet: Fleet, rate: number): void {
  const highest = highestRate(fleet);
  if (rate <= highest) return;
  const nodes = Math.ceil(rate / HIGHEST_RATE_OF_A_NODE);
  throw usageFailure(
    `A fleet of ${fleet.nodes.length} nodes can send at most ${highest} requests/s, because the requests of a node need different timestamps; ${rate}/s need ${nodes} nodes`,
  );
}
