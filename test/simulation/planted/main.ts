/** Sends what the simulation finds for each defect in one of the tables, in their order. */
import { PLANTED } from './tables.ts';

for (const { find } of PLANTED.get(String(process.argv[2])) ?? []) {
  const found = await find();
  process.send?.(found && { after: found.after, problem: found.problem });
}
process.disconnect();
