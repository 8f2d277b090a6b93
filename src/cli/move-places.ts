/** The places that `mesh-na store move` can use. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemRuntime } from '../base/runtime.ts';
import type { Place } from '../maintenance/move/move.ts';
import { storeAddress } from './store-address.ts';

const FOLDER = /^lmdb:(.+)$/;

/** `dataDir` is the folder of the keys, which is marked as in use if the state is in a database. */
export async function placeOf(text: string, dataDir: string): Promise<Place> {
  const folder = FOLDER.exec(text)?.[1];
  return folder === undefined ? databasePlace(text, dataDir) : folderPlace(text, folder);
}

async function folderPlace(shown: string, folder: string): Promise<Place> {
  const { ARRIVING, arrivalIn } = await import('../store/lmdb/arrival.ts');
  const { openLmdbReader, openLmdbSource } = await import('../store/lmdb/source.ts');
  const { createHolderQuestion } = await import('../store/lmdb/ask-holder.ts');
  const hasState = () => existsSync(join(folder, 'state'));
  return {
    shown,
    async openSource() {
      const isArriving = !hasState() && arrivalIn(folder) !== null;
      return openLmdbSource(isArriving ? join(folder, ARRIVING) : folder);
    },
    isServable: async () => hasState(),
    async movedTo() {
      const { movedFrom } = await import('../store/lmdb/retire.ts');
      return movedFrom(folder);
    },
    openReader: async () => openLmdbReader(folder),
    ask: createHolderQuestion(folder),
    async hold() {
      const { holdFolder } = await import('../store/lmdb/retire.ts');
      return holdFolder(folder);
    },
    async receive() {
      const { openLmdbReceiver } = await import('../store/lmdb/receiver.ts');
      return openLmdbReceiver(folder);
    },
  };
}

async function databasePlace(url: string, dataDir: string): Promise<Place> {
  const address = await storeAddress(url);
  const { moverOptions } = await import('../store/open.ts');
  const { openPostgresqlReader, openPostgresqlSource } = await import(
    '../store/postgresql/source.ts'
  );
  const held = await import('../store/postgresql/held.ts');
  const mover = moverOptions(systemRuntime);
  return {
    shown: `postgresql://${address.map(({ shown }) => shown).join(',')}`,
    openSource: () => openPostgresqlSource(address),
    isServable: () => held.isServable(address),
    movedTo: () => held.movedFromDatabase(address),
    openReader: () => openPostgresqlReader(address),
    ask: seldom(async () => {
      const holder = await held.askWriter({ ...mover, address });
      return { holder, isAsked: holder !== null };
    }),
    hold: () => held.holdDatabase({ ...mover, address }),
    async receive() {
      const { openPostgresqlReceiver } = await import('../store/postgresql/receiver.ts');
      return openPostgresqlReceiver({ ...mover, address, dataDir });
    },
  };
}

/** Answers are cached for this time. */
const ASK_AGAIN_MS = 1000;

function seldom(ask: Place['ask']): Place['ask'] {
  let last: { readonly at: number; readonly answer: Awaited<ReturnType<typeof ask>> } | null = null;
  return async () => {
    const at = systemRuntime.elapsed();
    if (last === null || at - last.at >= ASK_AGAIN_MS) last = { at, answer: await ask() };
    return last.answer;
  };
}
