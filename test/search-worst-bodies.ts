/** `npx tsx test/search-worst-bodies.ts --rounds N [--seed S]`: the long form of public-cost.deep.test.ts. */
import { parseArgs } from 'node:util';
import {
  describeCost,
  describeFound,
  growthByHosts,
  slowness,
  startMeasuredServer,
  worstBodies,
  worstQueries,
} from './support/worst-bodies.ts';

const HOSTS = 10_000;
/** Megabytes. */
const MOST_GROWTH = 30;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '500' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
});

await using server = await startMeasuredServer();
const growth = (await growthByHosts(server, HOSTS)) / 1024 ** 2;
say(`${HOSTS} requests with as many host names: ${growth.toFixed(1)} MB more resident memory`);
if (growth > MOST_GROWTH) throw new Error(`More than ${MOST_GROWTH} MB stay in memory`);
say(
  `seed ${values.seed}; this machine is ${slowness().toFixed(2)} times as slow as the nominal one`,
);
const worst = new Map<string, number>();
const found = await worstBodies(server, {
  rounds: Number(values.rounds),
  seed: Number(values.seed),
  progress(one) {
    if (one.edge <= (worst.get(one.path) ?? 0)) return;
    worst.set(one.path, one.edge);
    say(describeFound(one));
  },
});
say(`The worst body of each route:\n${found.map(describeFound).join('\n')}`);
say(`The worst queries:\n${(await worstQueries(server)).slice(0, 5).map(describeCost).join('\n')}`);

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
