/** What can go wrong with machines, the connections between them, and their connections to the database. */
import type { KeyFolder } from '../key-folder.ts';
import type { Machine } from './clockwork.ts';
import type { Database } from './database.ts';
import type { Instance } from './instance.ts';
import type { Network } from './network.ts';
import type { Asked } from './process.ts';

export interface World {
  readonly machines: readonly Machine[];
  readonly network: Network<Asked>;
  readonly database: Database;
  readonly folders: ReadonlyMap<string, KeyFolder>;
}

/**
 * A commit that the database has lost may be answered up to 208 ms later, and the key that it replaced is deleted then.
 * The process ends because of the loss, and must find the copy when it starts again, after 200 ms.
 */
const RESTORED_AFTER_MS = [50, 250] as const;

/** Lease renewals count as changes, too. */
const MOST_LOST_CHANGES = 6;

/** Starts the fault for `lasts` milliseconds; returns the function that ends it, or null if it ends by itself. */
type Fault = (world: World, instance: Instance, lasts: number) => (() => void) | null;

export const FAULTS = {
  kill(_world, instance) {
    instance.kill();
    return () => instance.start();
  },
  /** The instance hands over and is restarted automatically. */
  stop(_world, instance) {
    instance.stop();
    return null;
  },
  suspend(_world, { machine }) {
    machine.suspend();
    return () => machine.resume();
  },
  /** Stops the whole machine, including its clock, so the process cannot notice. */
  pause(_world, { machine }) {
    machine.pause();
    return () => machine.resume();
  },
  'hears nobody'({ machines, network }, { machine }) {
    for (const other of machines) network.cut(other, machine);
    return () => {
      for (const other of machines) network.heal(other, machine);
    };
  },
  'is heard by nobody'({ machines, network }, { machine }) {
    for (const other of machines) network.cut(machine, other);
    return () => {
      for (const other of machines) network.heal(machine, other);
    };
  },
  'cut from the database'({ database }, { machine }) {
    database.cut(machine);
    return () => database.heal(machine);
  },
  'late to the database'({ database }, { machine }, lasts) {
    database.delayNext(machine, lasts);
    return null;
  },
  'database clock set back'({ database }, _instance, lasts) {
    database.clockSet -= 20 * lasts;
    return null;
  },
  'database clock set forward'({ database }, _instance, lasts) {
    database.clockSet += 20 * lasts;
    return null;
  },
  /** A lagging standby replaces the database. */
  'database loses its end'({ database, folders }, { machine: { clockwork } }, lasts) {
    database.loseEnd(1 + (lasts % MOST_LOST_CHANGES));
    // The lost changes may include the replacement of a key whose file was deleted since: the one who promotes the standby
    // restores a copy.
    const putBack = () => {
      for (const folder of folders.values()) folder.putBack();
    };
    putBack();
    for (const later of RESTORED_AFTER_MS) clockwork.at(clockwork.now + later, putBack);
    return putBack;
  },
  'slow database'({ database }) {
    database.delay = 200;
    return () => {
      database.delay = 0;
    };
  },
} as const satisfies { readonly [name: string]: Fault };

export type FaultName = keyof typeof FAULTS;
