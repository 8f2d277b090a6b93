/**
 * `npm run chaos -- --rounds N [--fault NAME] [--seed S] [--short]`: the failure table on real processes, with all rows
 * in random order in each round. Exits with 1 if anything acknowledged was lost, done twice or hidden by an older
 * answer.
 */
import { parseArgs } from 'node:util';
import { type Random, randomFrom } from '../fuzz/random.ts';
import { deploy } from './deployment.ts';
import { FAULTS, type Fault, PLANTED } from './faults.ts';
import { createLedger } from './ledger.ts';
import { startLoad } from './load.ts';
import { playFault, type Seen } from './rounds.ts';

const LONG = { suspended: 10_000, cut: 5000, withoutDatabase: 30_000, slow: 10_000 };
const SHORT = { suspended: 3000, cut: 2000, withoutDatabase: 4000, slow: 2000 };
const LEASE_MS = 1500;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '1' },
    fault: { type: 'string', multiple: true },
    seed: { type: 'string' },
    short: { type: 'boolean', default: false },
  },
});
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed);
const random = randomFrom(seed);
const named = new Set(values.fault);
const chosen =
  named.size === 0 ? FAULTS : [...FAULTS, PLANTED].filter(({ name }) => named.has(name));
if (chosen.length === 0) {
  throw new Error(`Faults are ${FAULTS.map(({ name }) => name).join(', ')}`);
}
process.stdout.write(`seed ${seed}\n`);

await using deployment = await deploy(LEASE_MS);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // The database servers keep their state in memory, where nobody else would remove it.
  process.once(signal, () => {
    void deployment[Symbol.asyncDispose]().then(() => process.exit(1));
  });
}
const ledger = createLedger();
const load = startLoad(deployment, ledger);
for (let round = 1; round <= Number(values.rounds); round += 1) {
  for (const fault of inAnyOrder(chosen, random)) {
    const seen = await playFault(fault, deployment, values.short ? SHORT : LONG, load, ledger);
    process.stdout.write(`${round} ${lineOf(seen)}\n`);
    if (seen.violations.length > 0) process.exitCode = 1;
  }
}
await load.stop();

function inAnyOrder(faults: readonly Fault[], { below }: Random): Fault[] {
  const left = [...faults];
  return faults.map(() => left.splice(below(left.length), 1)[0] as Fault);
}

function lineOf(seen: Seen): string {
  const { fault, longestPause, backAfter, acknowledged, failures, violations } = seen;
  return [
    `${fault}: ${acknowledged} acknowledged`,
    `longest pause ${Math.round(longestPause)} ms`,
    `back after ${Math.round(backAfter)} ms`,
    `${seen.documents} documents read after changes`,
    `${seen.staleLists} lists as stale`,
    `sent again: ${Array.from(failures, ([what, times]) => `${times} × ${what}`).join(', ') || 'none'}`,
    ...violations.map((violation) => `\n  VIOLATION ${violation}`),
  ].join('; ');
}
