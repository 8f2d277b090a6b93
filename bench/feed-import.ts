/**
 * How long an import of another sovereign's revocations holds the authority without a pause. The feed is as
 * long as may be; every other one revokes only what an earlier one has revoked.
 */
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemRuntime } from '../src/base/runtime.ts';
import { importRows } from '../src/edge/routes/recognition.ts';
import type { ImportFeed } from '../src/protocol/contract/inputs.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { ownMilliseconds } from './cpu.ts';
import { openSimulatedNetwork } from './simulated-network.ts';

/** The bound of the default settings. */
export const FEED_ENTRIES = 100_000;
const IMPORTS = 6;
const ISSUER_KEY = 'a key of the issuer';

/** Milliseconds of CPU of the longest slice of each import, the shortest first. */
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

/** As the edge hands it over. */
function verifiedFeed(issuer: string, sequence: number): ImportFeed {
  const ids = Array.from({ length: FEED_ENTRIES }, (_, number) => `attestation-${number}`).sort();
  return {
    feedId: `feed-${sequence}`,
    issuer,
    sequence,
    revokedCount: ids.length,
    rows: importRows({ revoked_attestation_ids: ids, revocation_reasons: {} }),
    isSigned: true,
    verifiedUnder: ISSUER_KEY,
    issuerKeys: [ISSUER_KEY],
    expectedIssuer: null,
  };
}

/** Of the turns of this thread's event loop while the work is under way. */
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
