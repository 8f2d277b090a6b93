/**
 * `npx tsx test/simulation/main.ts --histories 100000 --seed N`, or `--seed N --path P` to replay one that failed. `--clocks wrong`
 * sets the wall clock now and then and lets nodes sign ahead of time; `--take-overs` makes each start continue with a
 * followed state instead of reading it; `--successions 15` replaces the authority's key fifteen times as often;
 * `--instances` plays histories of three instances on one database.
 */
import { parseArgs } from 'node:util';
import { walked as walkedByInstances } from './instances/play.ts';
import {
  describe as describeInstances,
  simulate as simulateInstances,
} from './instances/simulate.ts';
import { walked } from './play.ts';
import { describe, simulate } from './simulate.ts';

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
const histories = Number(values.histories);
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed);
const { path } = values;
const clocks = values.clocks === 'wrong' ? 'wrong' : 'right';
process.stdout.write(`seed ${seed}\n`);
const draw = { histories, seed, shrinks: true, ...(path === undefined ? {} : { path }) };
const problem = values.instances ? await ofInstances() : await ofOneAuthority();
process.stdout.write(`${problem ?? `${histories} histories hold`}\n`);
if (values.instances) {
  const { changes, changesOfKeys, beats } = walkedByInstances;
  const ofKeys = `${changesOfKeys} of them of the keys that sign`;
  process.stdout.write(`${changes} changes, ${ofKeys}; ${beats} heartbeats in sessions\n`);
} else {
  const { steps, successions, changesOfKeys } = walked;
  process.stdout.write(
    `${steps} steps, ${successions} successions, ${changesOfKeys} changes of the keys that sign\n`,
  );
}
if (problem !== null) process.exitCode = 1;

async function ofOneAuthority(): Promise<string | null> {
  const successions = Number(values.successions);
  const finding = await simulate({
    ...draw,
    clocks,
    successions,
    takesOver: values['take-overs'],
  });
  return finding && describe(finding);
}

async function ofInstances(): Promise<string | null> {
  const finding = await simulateInstances(draw);
  return finding && describeInstances(finding);
}
