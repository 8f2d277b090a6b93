/** Reads all of a state, and checks all that can be checked of it [backup-5]. */
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import type { TableSummaries } from '../../store/stream/manifest.ts';
import type { StateReading } from '../../store/stream/ports.ts';
import { summarize } from '../../store/stream/write.ts';
import { createStateCheck } from './check-state.ts';

/** Rejects with one sentence about the first thing that is off. */
export async function soundTables(
  source: StateReading,
  verify: VerifySignature,
): Promise<TableSummaries> {
  const check = createStateCheck(source.facts.network.authority_public_key, verify);
  const tables = await summarize(source, check.watch);
  check.finish(source.facts);
  return tables;
}
