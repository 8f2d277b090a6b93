/** `load prepare`, `run`, `find`, `storm` and `compare`. */
import { availableParallelism } from 'node:os';
import { InvalidArgumentError } from 'commander';
import { MOST_BYTES } from '../../../src/base/byte-bounds.ts';
import { parseDuration } from '../../../src/base/duration.ts';
import { readArgument } from '../../../src/base/named-file.ts';
import { type OperatorOptions, operatorClient } from '../../../src/cli/connection/operator.ts';
import { CA_OPTION, URL_OPTION } from '../../../src/cli/connection/server.ts';
import { type OptionsIn, option } from '../../../src/cli/kernel/command.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from '../../../src/cli/kernel/errors.ts';
import { wholeNumber } from '../../../src/cli/kernel/options.ts';
import {
  asJson,
  type OutputOptions,
  printNote,
  printNotice,
  printResult,
} from '../../../src/cli/kernel/output.ts';
import { whileWaiting } from '../../../src/cli/kernel/terminal.ts';
import { stopSignal } from '../../../src/cli/service/stop-request.ts';
import { findRate, parseObjectives } from '../find.ts';
import {
  addToFleet,
  createFleet,
  type Fleet,
  parsed,
  readFleet,
  signingNode,
} from '../fleet-folder.ts';
import { HIGHEST_RATE_OF_A_NODE, measure } from '../measure.ts';
import { KINDS, type Mix, parseMix } from '../mix.ts';
import { prepareFleet } from '../prepare.ts';
import type { Place } from '../requests.ts';
import { prepareReturn } from '../returning-fleet.ts';
import { compareRuns, differingSettings, type RunReport, readRunReport } from '../run-report.ts';
import { fleetIn, permittedNetwork, placeOf } from './place.ts';
import { differencesText, foundText, reportText, stormText } from './text.ts';

const MIX = 'heartbeat=95,renew=1,crl=3,verify=1';

const FLEET = option('--fleet <folder>', 'folder of the fleet', { fallback: './fleet' });

const YES = option(
  '--yes <network>',
  'name of the network, to put load on one that has other nodes than the fleet',
);

/** The options of a command that sends requests at a rate. */
function measuring(times: { readonly for: string; readonly warmUp: string }) {
  return [
    FLEET,
    URL_OPTION,
    CA_OPTION,
    option('--mix <shares>', 'shares of heartbeat, renew, crl and verify', {
      parse: mixOf,
      fallback: mixOf(MIX),
      shown: MIX,
    }),
    option('--bulletins', 'heartbeats ask for the bulletin'),
    option(
      '--sessions',
      'each node begins a session before the run, and makes its heartbeats in it',
    ),
    option('--connections <count>', 'keep-alive connections', {
      parse: wholeNumber(60_000),
      fallback: 64,
    }),
    durationOption('--for <duration>', 'how long to measure', times.for, 1),
    durationOption('--warm-up <duration>', 'how long to send before that', times.warmUp),
    durationOption('--timeout <duration>', 'how long to wait for an answer', '10s', 1),
    option(
      '--signing-threads <count>',
      'threads that sign requests (default: one for each core, up to 8)',
      { parse: wholeNumber(64) },
    ),
    YES,
  ] as const;
}

/** In milliseconds. */
function durationOption<const Flags extends string>(
  flags: Flags,
  about: string,
  shown: string,
  least = 0,
) {
  const parse = (text: string) => {
    const duration = text === '0s' ? 0 : parseDuration(text);
    if (duration !== null && duration >= least) return duration;
    throw new InvalidArgumentError('It must be a duration such as 30s or 2m.');
  };
  return option(flags, `${about}, such as 30s or 2m`, { parse, fallback: parse(shown), shown });
}

function mixOf(text: string): Mix {
  const mix = parseMix(text);
  if (mix !== null) return mix;
  throw new InvalidArgumentError(
    `It must be shares of ${KINDS.join(', ')}, such as heartbeat=95,crl=5.`,
  );
}

export const PREPARE = [
  FLEET,
  option('--nodes <count>', 'nodes that the fleet is to have', {
    parse: wholeNumber(10_000_000),
    required: true,
  }),
  option('--connections <count>', 'joins at the same time', {
    parse: wholeNumber(1000),
    fallback: 32,
  }),
  YES,
] as const;

export const RUN = [
  option('--rate <count>', 'requests per second', {
    parse: wholeNumber(1_000_000),
    required: true,
  }),
  ...measuring({ for: '30s', warmUp: '5s' }),
] as const;

export const FIND = [
  option('--slo <objectives>', 'such as p99=50ms or p50=5ms,p99.9=100ms', { required: true }),
  option('--from <rate>', 'the first rate to try', {
    parse: wholeNumber(1_000_000),
    fallback: 1000,
  }),
  option('--highest <rate>', 'the highest rate to try', {
    parse: wholeNumber(1_000_000),
    fallback: 200_000,
  }),
  ...measuring({ for: '10s', warmUp: '2s' }),
] as const;

export const STORM = [
  FLEET,
  URL_OPTION,
  CA_OPTION,
  option('--nodes <count>', 'nodes that return (default: the fleet)', {
    parse: wholeNumber(10_000_000),
  }),
  option(
    '--connections <count>',
    'the most connections at a time (default: one for each node, up to 10000)',
    { parse: wholeNumber(60_000) },
  ),
  durationOption('--within <duration>', 'the nodes return within this time', '1s'),
  durationOption('--timeout <duration>', 'how long a node waits for an answer', '10s', 1),
  durationOption('--longest <duration>', 'give up after this time', '5m', 1),
  YES,
] as const;

type MeasuringOptions = OptionsIn<ReturnType<typeof measuring>> & OutputOptions;

/** A year, so that a folder with a fleet can be used as long. */
const VALIDITY_HOURS = 8760;
const MOST_CONNECTIONS = 10_000;
const MOST_SIGNING_THREADS = 8;

export async function runPrepare(
  options: OptionsIn<typeof PREPARE> & OperatorOptions,
): Promise<void> {
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

export async function runLoad(options: OptionsIn<typeof RUN> & OutputOptions): Promise<void> {
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

export async function runFind(options: OptionsIn<typeof FIND> & OutputOptions): Promise<void> {
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

export async function runStorm(options: OptionsIn<typeof STORM> & OutputOptions): Promise<void> {
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

/** Two runs that were saved. */
export function runCompare(first: string, second: string, options: OutputOptions): void {
  const [a, b] = [reportIn(first), reportIn(second)];
  const figures = compareRuns(a, b);
  const settings = differingSettings(a, b);
  const result = { first, second, settings, figures: figures.map(asJson) };
  printResult(options, result, differencesText(figures, settings));
}

function reportIn(file: string): RunReport {
  return onLocalFiles(() => {
    const report = readRunReport(parsed(readArgument(file, MOST_BYTES.record).toString()));
    if (report === null)
      throw new Error(`${file} is not a run saved by npm run load -- run --json`);
    return report;
  });
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
