import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { withinBudget } from '../../protocol/records/signature-search.ts';

/** Half of what an edge may spend: about 10 ms during which all other requests wait. */
const AUTHORITY_BUDGET = 5 * 1024 * 1024;

/** Signature checks of one command, all of which share the budget. */
export function checksOfCommand(): VerifySignature {
  return withinBudget(verifySignature, AUTHORITY_BUDGET);
}
