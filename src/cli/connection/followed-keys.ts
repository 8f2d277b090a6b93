/** How commands follow the authority from one key to the next [authority-keys-7]. */
import type { FollowVerdict, NetworkTrust } from '../../client/followed-keys.ts';
import type { Received } from '../../client/received.ts';
import type { AuthoritySuccession } from '../../protocol/records/authority-succession.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { EXIT, failure } from '../kernel/errors.ts';

/** Follows a document of authority keys; with a genesis, which must be verified, it decides what is in force. */
export function followKeys(
  trust: NetworkTrust,
  document: Received,
  genesis?: GenesisBlock,
): FollowVerdict {
  const verdict = trust.follow(document, genesis);
  if (verdict.refusal === null) return verdict;
  const message = `The authority keys are rejected: ${verdict.refusal.message}`;
  throw failure(EXIT.refused, 'invalid_authority_keys', message);
}

/** A statement in one line. */
export function successionText(statement: AuthoritySuccession, isInForce: boolean): string {
  const { kind, to_key, activates_at, overlap_until, distrusted_from } = statement;
  if (!isInForce) return `The authority's key will be replaced by ${to_key} on ${activates_at}`;
  if (kind === 'roll_back')
    return `The authority's key is ${to_key} again: its change was rolled back`;
  const replaced = `The authority's key was replaced by ${to_key} on ${activates_at}`;
  return kind === 'planned'
    ? `${replaced}, as planned; both keys sign until ${overlap_until}`
    : `${replaced}, because it was compromised; what only the old key signed from ${distrusted_from} on is void`;
}
