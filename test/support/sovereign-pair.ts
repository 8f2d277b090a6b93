/** Two authorities, of the networks alpha and beta, on one clock. */
import { startTestAuthority } from './authority.ts';
import { testClock } from './clock.ts';
import { networkFolder } from './folders.ts';

export async function sovereignPair(clock = testClock()) {
  const folder = networkFolder('beta');
  const alpha = await startTestAuthority({ clock });
  const beta = await startTestAuthority({ clock, dataDir: folder.path });
  return {
    ...{ clock, alpha, beta },
    async [Symbol.asyncDispose]() {
      for (const resource of [alpha, beta, folder]) await resource[Symbol.asyncDispose]();
    },
  };
}
