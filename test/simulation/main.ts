/**
 * `npx tsx test/simulation/main.ts --histories 100000 --seed N`, or `--seed N --path P` to replay one that failed. `--clocks wrong`
 * sets the wall clock now and then and lets nodes sign ahead of time; `--take-overs` makes each start continue with a
 * followed state instead of reading it; `--successions 15` replaces the authority's key fifteen times as often;
 * `--instances` plays histories of three instances on one database.
 */
import { parseArgs } from 'node:util';
import { walked as walkedByInstances } from './instances/play.ts';
import { walked } from './play.ts';
import { ofAuthority, ofInstances, simulate } from './simulate.ts';

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '2000' },
    seed: { type: 'string' },
    path: { type: 'string' },
    clocks: { type: 'string', default: 'right' },
    successions: { type: 'string', default: '1' },
    'take-overs': { type: 'boolean', default: false },
    instances: { type: 'boolean', default: false },
  },
});
const { path, 'take-overs': takesOver } = values;
const histories = Number(values.histories);
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed);
const clocks = values.clocks === 'wrong' ? 'wrong' : 'right';
const successions = Number(values.successions);
const kind = values.instances ? ofInstances() : ofAuthority({ clocks, successions, takesOver });
process.stdout.write(`seed ${seed}\n`);
const failure = await simulate(kind, { histories, seed, ...(path === undefined ? {} : { path }) });
process.stdout.write(`${failure?.report ?? `${histories} histories hold`}\n`);
process.stdout.write(`${JSON.stringify(values.instances ? walkedByInstances : walked)}\n`);
if (failure !== null) process.exitCode = 1;
