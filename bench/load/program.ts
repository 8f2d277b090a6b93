/** `npm run load`: how much load an authority carries, measured from outside with a fleet enrolled for it. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../../src/base/duration.ts';
import { OPERATOR } from '../../src/cli/connection/operator.ts';
import { CA_OPTION, URL_OPTION } from '../../src/cli/connection/server.ts';
import { asking, NOBODY } from '../../src/cli/kernel/command.ts';
import { wholeNumber } from '../../src/cli/kernel/options.ts';
import { finished, newProgram } from '../../src/cli/program.ts';
import { KINDS, type Mix, parseMix } from './mix.ts';

const MIX = 'heartbeat=95,renew=1,crl=3,verify=1';

export function buildLoadProgram(): Command {
  const load = newProgram('load').description(
    'Measures how much load an authority carries, with a fleet enrolled for it.',
  );

  const prepare = load
    .command('prepare')
    .description(
      'enroll a fleet of nodes for measurements; continues if it was interrupted (standard)',
    )
    .addOption(fleetOption())
    .requiredOption('--nodes <count>', 'nodes that the fleet is to have', wholeNumber(10_000_000))
    .option('--connections <count>', 'joins at the same time', wholeNumber(1000), 32)
    .addOption(yesOption())
    .action(async (options) => (await import('./commands/run.ts')).runPrepare(options));
  asking(prepare, OPERATOR, [
    'npm run load -- prepare --nodes 10000 --fleet ./fleet',
    'npm run load -- prepare --nodes 10000 --fleet ./fleet --profile test --yes alpha',
  ]);

  const run = load
    .command('run')
    .description('send requests at a fixed rate, and measure how long they take')
    .requiredOption('--rate <count>', 'requests per second', wholeNumber(1_000_000))
    .action(async (options) => (await import('./commands/run.ts')).runLoad(options));
  addMeasuring(run, { for: '30s', warmUp: '5s' }, [
    'npm run load -- run --fleet ./fleet --rate 5000 --for 60s',
    'npm run load -- run --fleet ./fleet --rate 500 --mix heartbeat=1,verify=1 --json > a.json',
  ]);

  const find = load
    .command('find')
    .description('find the highest rate that meets an objective for latency')
    .requiredOption('--slo <objectives>', 'such as p99=50ms or p50=5ms,p99.9=100ms')
    .option('--from <rate>', 'the first rate to try', wholeNumber(1_000_000), 1000)
    .option('--highest <rate>', 'the highest rate to try', wholeNumber(1_000_000), 200_000)
    .action(async (options) => (await import('./commands/run.ts')).runFind(options));
  addMeasuring(find, { for: '10s', warmUp: '2s' }, [
    'npm run load -- find --fleet ./fleet --slo p99=50ms',
    'npm run load -- find --fleet ./fleet --slo p99=50ms --for 60s --json > curve.json',
  ]);

  const storm = load
    .command('storm')
    .description('let an entire fleet return at once, as after an outage')
    .addOption(fleetOption())
    .addOption(URL_OPTION)
    .addOption(CA_OPTION)
    .option('--nodes <count>', 'nodes that return (default: the fleet)', wholeNumber(10_000_000))
    .option(
      '--connections <count>',
      'the most connections at a time (default: one for each node, up to 10000)',
      wholeNumber(60_000),
    )
    .addOption(optionalDuration('--within <duration>', 'the nodes return within this time', '1s'))
    .addOption(durationOption('--timeout <duration>', 'how long a node waits for an answer', '10s'))
    .addOption(durationOption('--longest <duration>', 'give up after this time', '5m'))
    .addOption(yesOption())
    .action(async (options) => (await import('./commands/run.ts')).runStorm(options));
  asking(storm, NOBODY, ['npm run load -- storm --fleet ./fleet --nodes 100000 --within 1s']);

  const compare = load
    .command('compare')
    .description('compare two runs that were saved with --json')
    .argument('<first>', 'file of the first run')
    .argument('<second>', 'file of the second run')
    .action(async (first, second, options) =>
      (await import('./commands/compare.ts')).runCompare(first, second, options),
    );
  asking(compare, NOBODY, ['npm run load -- compare before.json after.json']);
  return finished(load);
}

/** Ends the definition of a command that sends requests at a rate. */
function addMeasuring(
  command: Command,
  times: { readonly for: string; readonly warmUp: string },
  lines: readonly string[],
): void {
  command
    .addOption(fleetOption())
    .addOption(URL_OPTION)
    .addOption(CA_OPTION)
    .addOption(mixOption())
    .option('--bulletins', 'heartbeats ask for the bulletin')
    .option(
      '--sessions',
      'each node begins a session before the run, and makes its heartbeats in it',
    )
    .option('--connections <count>', 'keep-alive connections', wholeNumber(60_000), 64)
    .addOption(durationOption('--for <duration>', 'how long to measure', times.for))
    .addOption(
      optionalDuration('--warm-up <duration>', 'how long to send before that', times.warmUp),
    )
    .addOption(durationOption('--timeout <duration>', 'how long to wait for an answer', '10s'))
    .option(
      '--signing-threads <count>',
      'threads that sign requests (default: one for each core, up to 8)',
      wholeNumber(64),
    )
    .addOption(yesOption());
  asking(command, NOBODY, lines);
}

function fleetOption(): Option {
  return new Option('--fleet <folder>', 'folder of the fleet').default('./fleet');
}

function mixOption(): Option {
  return new Option('--mix <shares>', 'shares of heartbeat, renew, crl and verify')
    .argParser(mixOf)
    .default(mixOf(MIX), MIX);
}

function mixOf(text: string): Mix {
  const mix = parseMix(text);
  if (mix !== null) return mix;
  throw new InvalidArgumentError(
    `It must be shares of ${KINDS.join(', ')}, such as heartbeat=95,crl=5.`,
  );
}

function yesOption(): Option {
  return new Option(
    '--yes <network>',
    'name of the network, to put load on one that has other nodes than the fleet',
  );
}

function durationOption(flags: string, description: string, fallback: string): Option {
  return new Option(flags, `${description}, such as 30s or 2m`)
    .argParser(milliseconds)
    .default(milliseconds(fallback), fallback);
}

/** For durations that may be 0. */
function optionalDuration(flags: string, description: string, fallback: string): Option {
  return durationOption(flags, description, fallback).argParser((text) =>
    text === '0s' ? 0 : milliseconds(text),
  );
}

function milliseconds(text: string): number {
  const duration = parseDuration(text);
  if (duration !== null && duration > 0) return duration;
  throw new InvalidArgumentError('It must be a duration such as 30s or 2m.');
}
