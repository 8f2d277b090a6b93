/**
 * `npm run simulate -- --histories 100000 --seed N`, or `--seed N --path P` for one that failed. With
 * `--clocks wrong` the wall clock is set now and then, and nodes sign ahead of time.
 */
import { parseArgs } from 'node:util';
import { describe, simulate } from './simulate.ts';

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '2000' },
    seed: { type: 'string' },
    path: { type: 'string' },
    clocks: { type: 'string', default: 'right' },
  },
});
const histories = Number(values.histories);
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed);
const { path } = values;
const clocks = values.clocks === 'wrong' ? 'wrong' : 'right';
process.stdout.write(`seed ${seed}\n`);
const finding = await simulate({
  histories,
  seed,
  clocks,
  ...(path === undefined ? {} : { path }),
});
if (finding !== null) {
  process.stdout.write(`${describe(finding)}\n`);
  process.exitCode = 1;
} else {
  process.stdout.write(`${histories} histories hold\n`);
}
