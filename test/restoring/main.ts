/** `npm run test:restores -- --histories 1000 --seed N`: many random histories, each restored from a backup. */
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { HISTORY, playAndRestore } from './histories.ts';

const { values } = parseArgs({
  options: { histories: { type: 'string', default: '1000' }, seed: { type: 'string' } },
});
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed);
process.stdout.write(`seed ${seed}\n`);
await fc.assert(fc.asyncProperty(HISTORY, playAndRestore), {
  numRuns: Number(values.histories),
  seed,
});
process.stdout.write(`${values.histories} histories hold\n`);
