/** The data folder of a large network: an existing one, or a new one. */
import { symlinkSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Settings } from './contest.ts';
import { seed } from './seed.ts';

/** Of ten nodes one has an agent, and of a hundred one is revoked, as in a network of a million. */
export async function fillWithLargeNetwork(
  folder: string,
  { seeded, dataDir, progress }: Settings,
): Promise<void> {
  if (dataDir !== null) {
    symlinkSync(resolve(dataDir), folder);
    return;
  }
  progress(`writing a network of ${seeded} nodes`);
  const tenth = Math.floor(seeded / 10);
  await seed(folder, {
    nodes: seeded,
    revoked: Math.floor(seeded / 100),
    invites: tenth,
    agents: tenth,
  });
}
