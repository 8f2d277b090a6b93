/** `npm run load`: how much load an authority carries, measured from outside with a fleet enrolled for it. */
import type { Command, Option } from 'commander';
import { OPERATOR } from '../../src/cli/connection/operator.ts';
import { asking, NOBODY } from '../../src/cli/kernel/command.ts';
import { newProgram, withHelp } from '../../src/cli/program.ts';
import * as commands from './commands/run.ts';

export function buildLoadProgram(): Command {
  const load = newProgram('load').description(
    'Measures how much load an authority carries, with a fleet enrolled for it.',
  );
  const prepare = load
    .command('prepare')
    .description(
      'enroll a fleet of nodes for measurements; continues if it was interrupted (standard)',
    )
    .action(commands.runPrepare);
  asking(withOptions(prepare, commands.PREPARE), OPERATOR, [
    'npm run load -- prepare --nodes 10000 --fleet ./fleet',
    'npm run load -- prepare --nodes 10000 --fleet ./fleet --profile test --yes alpha',
  ]);
  const run = load
    .command('run')
    .description('send requests at a fixed rate, and measure how long they take')
    .action(commands.runLoad);
  asking(withOptions(run, commands.RUN), NOBODY, [
    'npm run load -- run --fleet ./fleet --rate 5000 --for 60s',
    'npm run load -- run --fleet ./fleet --rate 500 --mix heartbeat=1,verify=1 --json > a.json',
  ]);
  const find = load
    .command('find')
    .description('find the highest rate that meets an objective for latency')
    .action(commands.runFind);
  asking(withOptions(find, commands.FIND), NOBODY, [
    'npm run load -- find --fleet ./fleet --slo p99=50ms',
    'npm run load -- find --fleet ./fleet --slo p99=50ms --for 60s --json > curve.json',
  ]);
  const storm = load
    .command('storm')
    .description('let an entire fleet return at once, as after an outage')
    .action(commands.runStorm);
  asking(withOptions(storm, commands.STORM), NOBODY, [
    'npm run load -- storm --fleet ./fleet --nodes 100000 --within 1s',
  ]);
  const compare = load
    .command('compare')
    .description('compare two runs that were saved with --json')
    .argument('<first>', 'file of the first run')
    .argument('<second>', 'file of the second run')
    .action(commands.runCompare);
  asking(compare, NOBODY, ['npm run load -- compare before.json after.json']);
  return withHelp(load);
}

function withOptions(command: Command, options: readonly Option[]): Command {
  for (const each of options) command.addOption(each);
  return command;
}
