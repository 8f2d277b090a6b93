/** Plays one history against the authority and the model, and compares the two after each step. */
import { verifyAuditChain } from '../../src/authority/audit/audit.ts';
import { GENESIS_HASH } from '../../src/store/store.ts';
import type { Defect } from './process.ts';
import { type History, perform, type Step } from './steps.ts';
import { compareAll, compareDocuments } from './views.ts';
import { insist } from './violation.ts';
import { World } from './world.ts';

/** Totals over all histories so far. */
export const walked = { steps: 0, successions: 0, changesOfKeys: 0 };

/** Each step takes some time, so that later steps have later timestamps. */
const STEP = 20;

export async function play(
  { enrolled, steps }: History,
  defect: Defect = {},
  takesOver = false,
): Promise<void> {
  const world = await World.start(defect, takesOver);
  let looks = 0;
  for (const step of [...enrollment(enrolled), ...steps]) {
    await perform(step, world);
    looks += 1;
    if (looks % 3 > 0) world.process.follow(looks % 2 === 0);
    world.runtime.advance(STEP);
    await compareDocuments(world);
    await world.lookAtKeys();
  }
  await world.settle();
  await compareAll(world);
  // At most an activation and the end of an overlap are due.
  for (let time = 0; time < 2; time += 1) {
    await world.keepKeys();
    await world.settle();
  }
  insist(!world.isKeyDue, () => 'A change of keys is due, and does not come');
  await compareAll(world);
  await world.lookAtKeys(true);
  await world.restart();
  await compareAll(world);
  const { inForce, terms } = world.shown.authority;
  walked.steps += steps.length;
  walked.successions += inForce.filter(({ kind }) => kind !== 'roll_back').length;
  walked.changesOfKeys += terms.length - 1;
  const verdict = await verifyAuditChain(world.process.disk.audit, GENESIS_HASH);
  insist(verdict.valid, () => `The audit chain is broken: ${JSON.stringify(verdict)}`);
}

function enrollment(nodes: number): readonly Step[] {
  const by = { operator: 0, flaw: 'none', isWellFormed: true, isHeld: false } as const;
  return Array.from({ length: nodes }, (_, node): readonly Step[] => [
    { do: 'invite', hours: 24, bound: -1, ...by },
    { do: 'join', node, invite: 0, hours: 24, flaw: 'none', late: 0, isHeld: false },
  ]).flat();
}
