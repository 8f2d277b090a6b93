/** Plays a suite, and sends what is found in each run. */
import { SUITES } from './suites.ts';

for (const { find } of SUITES.get(String(process.argv[2])) ?? []) process.send?.(await find());
process.disconnect();
