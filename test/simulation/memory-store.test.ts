import { type OpenedStore, testStore } from '../store/conformance.ts';
import { emptyDisk } from './memory-disk.ts';
import { openMemoryStore } from './memory-store.ts';

testStore({ name: 'memory', open });

async function open(): Promise<OpenedStore> {
  const disk = emptyDisk();
  return {
    store: openMemoryStore(disk, 'at_once'),
    reopen: async () => openMemoryStore(disk, 'at_once'),
    async dieAfter(units) {
      const store = openMemoryStore(disk, 'at_once');
      for (const unit of units) await store.commit(unit).catch(() => undefined);
      store.crash();
    },
    auditEntries: async () => [...disk.audit],
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
