/** Plays one history to its end. */
import type { Answer } from '../../../src/protocol/contract/calls.ts';
import { randomFrom } from '../../fuzz/random.ts';
import { KeyFolder } from '../key-folder.ts';
import { copyOfDisk } from '../memory-disk.ts';
import { createClients } from './clients.ts';
import { Clockwork, Machine, withTimersOfMachines } from './clockwork.ts';
import { Database } from './database.ts';
import { FAULTS } from './faults.ts';
import { type History, INSTANCES, LONGEST_FAULT_MS, requestOf, TROUBLE_MS } from './histories.ts';
import { Instance } from './instance.ts';
import { Network } from './network.ts';
import type { Asked, ProcessDefect } from './process.ts';
import { isKeyChange } from './remote-store.ts';
import { SEED } from './seed.ts';

export interface Defect extends ProcessDefect {
  /** Changes the database. */
  readonly database?: (database: Database) => void;
  /** Changes an answer before the client sees it. */
  readonly received?: (answer: Answer) => Answer;
}

/** Totals over all histories so far. */
export const walked = { changes: 0, changesOfKeys: 0, beats: 0 };

/** All instances serve by then. */
const BEGINS_MS = 1500;
/**
 * How soon after the last fault everything works again. This allows for held requests to be answered, and for one lease
 * to expire per instance that remembers more than the database has and is therefore restarted.
 */
const RECOVERY_MS = 7000;
const WELL_MS = BEGINS_MS + TROUBLE_MS + LONGEST_FAULT_MS + RECOVERY_MS;
/** How long a request may take after recovery. */
const PATIENCE_MS = 500;
/** How long the active instance may take to store the last heartbeats. */
const STORED_MS = 1500;

export function play(history: History, defect: Defect = {}): Promise<void> {
  return withTimersOfMachines(() => playOn(history, defect));
}

async function playOn(history: History, defect: Defect): Promise<void> {
  const { seed, rates, ahead, faults, requests } = history;
  const chance = randomFrom(seed);
  const clockwork = new Clockwork();
  const database = new Database(clockwork, chance, copyOfDisk(SEED.disk));
  defect.database?.(database);
  const network = new Network<Asked>(clockwork, chance);
  const machines = Array.from({ length: INSTANCES }, (_, index) => {
    const clock = {
      rate: rates[index] ?? 1,
      offset: chance.between(1, 1e9),
      ahead: ahead[index] ?? 0,
    };
    return new Machine(`machine-${index + 1}`, clockwork, clock);
  });
  const folders = new Map(machines.map(({ name }) => [name, new KeyFolder()]));
  const world = { machines, network, database, folders };
  const found = (cause: unknown) => clients.found(cause);
  const surroundings = { database, network, chance, folders, defect, found };
  const instances = machines.map((machine) => new Instance(machine, surroundings));
  const received = defect.received ?? ((answer) => answer);
  const clients = createClients({ clockwork, chance, instances, database, received });

  for (const instance of instances) instance.start();
  clockwork.at(BEGINS_MS - 100, () => clients.beginSessions(instances[0] as Instance));
  await clockwork.runUntil(BEGINS_MS - 1);
  for (const { at, what, instance: index, lasts } of faults) {
    clockwork.at(BEGINS_MS + at, () => {
      const end = FAULTS[what](world, instances[index] as Instance, lasts);
      if (end !== null) clockwork.at(clockwork.now + lasts, end);
    });
  }
  for (const { at, instance: index, ...request } of requests) {
    const instance = instances[index] as Instance;
    clockwork.at(BEGINS_MS + at, () => clients.send(instance, request));
  }
  // Instances that have followed the change of a key accept nothing from those that have not, until they are restarted.
  clockwork.at(WELL_MS - RECOVERY_MS, () => {
    if (![...database.lost].some(isKeyChange)) return;
    for (const instance of instances) {
      instance.folder.putBack();
      instance.kill();
      instance.start();
    }
  });
  // A holder notices that the database has lost its last changes when it stores something.
  for (const instance of instances) {
    clockwork.at(WELL_MS - RECOVERY_MS, () => {
      clients.send(instance, requestOf(0, 'bringKeys', 0));
      clients.send(instance, requestOf(0, 'revoke', 0));
    });
  }
  await clockwork.runUntil(WELL_MS);

  for (const instance of instances) {
    clockwork.at(WELL_MS, () => clients.send(instance, requestOf(0, 'revoke', 0)));
    clockwork.at(WELL_MS + PATIENCE_MS / 2, () => clients.readLast(instance));
  }
  for (const index of instances.keys()) clockwork.at(WELL_MS, () => clients.beatLast(index));
  await clockwork.runUntil(WELL_MS + PATIENCE_MS + STORED_MS);
  for (const machine of machines) machine.kill();
  walked.changes += database.changes.length;
  walked.changesOfKeys += database.changes.filter(({ facts }) => facts.some(isKeyChange)).length;
  walked.beats += clients.beatsCounted();
  clients.assertHolds(INSTANCES);
}
