/** Plays one history to its end. */
import type { Answer } from '../../../src/protocol/contract/answers.ts';
import { chanceOf } from './chance.ts';
import { createClients } from './clients.ts';
import { Clockwork, Machine, withTimersOfMachines } from './clockwork.ts';
import { Database } from './database.ts';
import { FAULTS } from './faults.ts';
import { type History, INSTANCES, LONGEST_FAULT_MS, TROUBLE_MS } from './histories.ts';
import { Instance, type InstanceDefect } from './instance.ts';
import { Network } from './network.ts';

export interface Defect extends InstanceDefect {
  /** Changes the database. */
  readonly database?: (database: Database) => void;
  /** Changes a message on its way. */
  readonly tamper?: (message: object) => object[];
  /** Changes what a client takes an answer for. */
  readonly told?: (answer: Answer) => Answer;
}

/** By then all instances serve. */
const BEGINS_MS = 1500;
/**
 * How soon after the last trouble everything is well again: held requests are answered, and a lease runs out for each instance
 * that remembers more than the database has, and is started again.
 */
const RECOVERY_MS = 7000;
const WELL_MS = BEGINS_MS + TROUBLE_MS + LONGEST_FAULT_MS + RECOVERY_MS;
/** How long a request may take then. */
const PATIENCE_MS = 500;

export function play(history: History, defect: Defect = {}): Promise<void> {
  return withTimersOfMachines(() => playOn(history, defect));
}

async function playOn({ seed, rates, faults, requests }: History, defect: Defect): Promise<void> {
  const chance = chanceOf(seed);
  const clockwork = new Clockwork();
  const database = new Database(clockwork, chance);
  defect.database?.(database);
  const network = new Network(clockwork, chance, defect.tamper);
  const machines = Array.from({ length: INSTANCES }, (_, index) => {
    const clock = { rate: rates[index] ?? 1, offset: chance.between(1, 1e9) };
    return new Machine(`machine-${index + 1}`, clockwork, clock);
  });
  const world = { machines, network, database };
  const instances = machines.map((machine) => new Instance(machine, { database, network, defect }));
  const told = defect.told ?? ((answer) => answer);
  const clients = createClients({ clockwork, chance, instances, lost: database.lost, told });

  for (const instance of instances) instance.start();
  await clockwork.runUntil(BEGINS_MS - 1);
  for (const { at, what, instance: index, lasts } of faults) {
    clockwork.at(BEGINS_MS + at, () => {
      const end = FAULTS[what](world, instances[index] as Instance, lasts);
      if (end !== null) clockwork.at(clockwork.now + lasts, end);
    });
  }
  for (const { at, what, instance: index, invite } of requests) {
    clockwork.at(BEGINS_MS + at, () => {
      const instance = instances[index] as Instance;
      if (what === 'read') clients.readList(instance);
      else clients.change(instance, what === 'join' ? `invite-${invite}` : null);
    });
  }
  // A holder learns that the database has lost its end when it stores something.
  for (const instance of instances) {
    clockwork.at(WELL_MS - RECOVERY_MS, () => clients.change(instance, null));
  }
  await clockwork.runUntil(WELL_MS);

  for (const instance of instances) clockwork.at(WELL_MS, () => clients.change(instance, null));
  await clockwork.runUntil(WELL_MS + PATIENCE_MS);
  for (const machine of machines) machine.kill();
  clients.assertHolds(database.entries, INSTANCES);
}
