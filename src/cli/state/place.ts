/** Where commands find the state: in a data folder or a database. */

import { messageOf } from '../../base/error-message.ts';
import { systemRuntime } from '../../base/runtime.ts';
import type { Config } from '../../server/config/load.ts';
import type { Environment, Flags } from '../../server/config/options.ts';
import type { StoreAddress } from '../../store/postgresql/address.ts';
import type { StateSource, StateTarget } from '../../store/stream/ports.ts';
import { DATA_DIR, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure } from '../kernel/errors.ts';

/** Resolves the address in a URL, completed by the usual variables. */
export async function storeAddress(url: string): Promise<StoreAddress> {
  const { parseStoreAddress } = await import('../../store/postgresql/address.ts');
  return parseStoreAddress(url, process.env);
}

export function storeOption(description: string) {
  return option('--store <url>', description, { env: 'MESH_STORE' });
}

/** Options of commands that read one state. */
export const PLACE = [DATA_DIR, storeOption('database with the state, as for serve')] as const;

export type StatePlace = OptionsIn<typeof PLACE>;

/** The database that `serve` would use with these options; null when the state is in the data folder. */
export async function databaseOf({ dataDir, store }: StatePlace): Promise<StoreAddress | null> {
  const { readSettings } = await import('../../server/config/settings.ts');
  const { MESH_CONFIG } = process.env;
  const { setting, problems } = readSettings({ dataDir, store: store ?? '' }, { MESH_CONFIG });
  const [problem] = problems;
  if (problem !== undefined) throw new Error(problem);
  const url = setting('store');
  return url === null ? null : storeAddress(url);
}

/** The variables that `serve` would read. */
export function environment(): Environment {
  return process.env;
}

/** The settings that `serve` would use with these flags. */
export async function settingsOf(flags: Flags): Promise<Config> {
  const { loadConfig } = await import('../../server/config/load.ts');
  return loadConfig(flags, process.env, systemRuntime.now());
}

/** `address` is null for the data folder. */
export async function openSource(
  dataDir: string,
  address: StoreAddress | null,
): Promise<StateSource> {
  if (address === null) {
    const { openLmdbSource } = await import('../../store/lmdb/source.ts');
    return openLmdbSource(dataDir);
  }
  const { openPostgresqlSource } = await import('../../store/postgresql/source.ts');
  return openPostgresqlSource(address);
}

export async function openTarget(
  dataDir: string,
  address: StoreAddress | null,
): Promise<StateTarget> {
  if (address === null) {
    const { openLmdbTarget } = await import('../../store/lmdb/receiver.ts');
    return openLmdbTarget(dataDir);
  }
  const { openPostgresqlTarget } = await import('../../store/postgresql/receiver.ts');
  return openPostgresqlTarget(address, dataDir);
}

/** Reports any problem with a state or its place as a one-sentence failure. */
export async function onState<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof Error && 'failure' in cause) throw cause;
    const message = messageOf(cause);
    throw failure(EXIT.unusable, 'store_unusable', message);
  }
}
