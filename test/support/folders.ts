import { rmSync } from 'node:fs';
import { makeNetworkFolder } from './authority.ts';

/** A data folder of its own for one test, gone when the test ends. */
export function networkFolder(networkName: string) {
  const { folder } = makeNetworkFolder(networkName);
  return {
    path: folder,
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
