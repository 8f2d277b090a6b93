/**
 * `npx tsx test/restoring/main.ts --histories 1000 --seed N`: many random histories, each restored from a backup. With
 * `--store postgresql` the state is in a database before the restore, after it, or both.
 */
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { startCluster } from '../support/postgresql.ts';
import { HISTORY, playAndRestore } from './histories.ts';
import { type Route, routesWith, WITHIN_FOLDERS } from './places.ts';

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '1000' },
    seed: { type: 'string' },
    store: { type: 'string', default: 'lmdb' },
  },
});
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed);
process.stdout.write(`seed ${seed}\n`);
if (values.store === 'postgresql') {
  await using cluster = await startCluster();
  await play(await routesWith(cluster));
} else {
  await play([WITHIN_FOLDERS]);
}
process.stdout.write(`${values.histories} histories hold\n`);

function play(routes: readonly Route[]): Promise<void> {
  // A failing history shows the route by its name.
  const route = fc
    .constantFrom(...routes)
    .map((one) => Object.defineProperty({ ...one }, fc.toStringMethod, { value: () => one.name }));
  const property = fc.asyncProperty(HISTORY, route, playAndRestore);
  return fc.assert(property, { numRuns: Number(values.histories), seed });
}
