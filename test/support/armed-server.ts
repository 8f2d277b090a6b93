/** A server with an armed fault. */
import { rmSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { type ChildServer, startChildServer } from './child-server.ts';
import { makeNetworkFolder } from './folders.ts';

/** `program` serves until it gets SIGUSR2 and shows its fault after that. */
export async function startArmed(
  t: TestContext,
  threads: string,
  program: readonly string[],
): Promise<ChildServer> {
  const { folder } = makeNetworkFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const server = await startChildServer(folder, { args: ['--threads', threads], program });
  server.process.kill('SIGUSR2');
  return server;
}
