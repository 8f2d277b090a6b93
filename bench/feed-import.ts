/**
 * How long an import of another sovereign's revocations occupies the authority without a pause. The feed has the
 * maximum length; every other one revokes only what an earlier one has already revoked.
 */
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemRuntime } from '../src/base/runtime.ts';
import { importRows } from '../src/edge/routes/recognition.ts';
import type { Prepared } from '../src/protocol/contract/calls.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { openSimulatedNetwork } from '../test/support/simulated-network.ts';
import { ownMilliseconds } from './cpu.ts';

/** The limit in the default settings. */
export const FEED_ENTRIES = 100_000;
const IMPORTS = 6;
const ISSUER_KEY = 'a key of the issuer';

/** The CPU milliseconds of the longest slice of each import, in ascending order. */
export async function longestSlicesOfImports(): Promise<number[]> {
  const scratch = scratchFolder('mesh-na-feeds-');
  const folder = join(scratch.path, 'data');
  const network = await openSimulatedNetwork(folder, { now: systemRuntime.now(), elapsed: 0 });
  try {
    const longest: number[] = [];
    for (let sequence = 1; sequence <= IMPORTS; sequence += 1) {
      const feed = verifiedFeed(`issuer-${Math.ceil(sequence / 2)}`, sequence);
      longest.push(await longestTurn(() => network.importFeed(feed)));
    }
    return longest.sort((a, b) => a - b);
  } finally {
    await network.close();
    scratch.remove();
  }
}

/** The feed in the form in which the edge passes it on. */
function verifiedFeed(issuer: string, sequence: number): Prepared['importFeed'] {
  const ids = Array.from({ length: FEED_ENTRIES }, (_, number) => `attestation-${number}`).sort();
  return {
    feedId: `feed-${sequence}`,
    issuer,
    sequence,
    revokedCount: ids.length,
    rows: importRows({ revoked_attestation_ids: ids, revocation_reasons: {} }),
    isSigned: true,
    verifiedUnder: ISSUER_KEY,
    issuer_public_keys: [ISSUER_KEY],
    expected_issuer_sovereign_id: null,
  };
}

/** The CPU milliseconds of the longest turn of this thread's event loop during the work. */
async function longestTurn(work: () => Promise<void>): Promise<number> {
  let longest = 0;
  let isDone = false;
  let before = ownMilliseconds();
  const done = work().finally(() => {
    isDone = true;
  });
  while (!isDone) {
    const now = ownMilliseconds();
    longest = Math.max(longest, now - before);
    before = now;
    await nextTurn();
  }
  await done;
  return longest;
}
