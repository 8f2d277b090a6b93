/** The data folder of a large network: an existing one, or a new one. */
import { symlinkSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Settings } from './contest.ts';
import { type SeedCounts, seed } from './seed.ts';

export async function fillWithLargeNetwork(
  folder: string,
  { seeded, dataDir, progress }: Settings,
  counts: SeedCounts = largeNetwork(seeded),
): Promise<void> {
  if (dataDir !== null) {
    symlinkSync(resolve(dataDir), folder);
    return;
  }
  progress(`writing a network of ${seeded} nodes`);
  await seed(folder, counts);
}

/** One in ten nodes has an agent and one in a hundred is revoked, as in the network of a million. */
export function largeNetwork(nodes: number): SeedCounts {
  const tenth = Math.floor(nodes / 10);
  return { nodes, revoked: Math.floor(nodes / 100), invites: tenth, agents: tenth };
}
