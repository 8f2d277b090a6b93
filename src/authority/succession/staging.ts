/** Stages the succession that the root key has signed, and takes it back [authority-keys-9-1], [authority-keys-9-2]. */

import { SHA256 } from '../../base/crypto/digest.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import type { AuthorityKeyStep } from '../../protocol/answers/operators.ts';
import { publishedDocument } from '../../protocol/contract/documents.ts';
import {
  type AuthorityKeys,
  authorityKeysDigest,
  firstKey,
} from '../../protocol/records/authority-chain.ts';
import type { AuthoritySuccession } from '../../protocol/records/authority-succession.ts';
import { type GenesisBlock, genesisDigest } from '../../protocol/records/genesis.ts';
import { instantOf } from '../../protocol/records/record.ts';
import {
  type SignedSuccession,
  successionProblem,
} from '../../protocol/records/succession-request.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import {
  committedChain,
  genesisInForce,
  type KeyChain,
  type StagedKey,
} from '../authority-keys.ts';
import type { Handler } from '../engine/admission.ts';
import { refusalIn, type SubjectTypes } from '../subjects/kinds.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';

interface Problem {
  readonly reason: string;
  /** One sentence. */
  readonly message: string;
}

export const stageSuccession: Handler<'stageSuccession'> = (
  na,
  unit,
  { succession },
  { remoteAddr },
) => {
  const { statement, genesis, roll_back: rollBack } = succession;
  const chain = na.authorityKeys.chain();
  if (chain.current === null) {
    const { genesis: first } = na.settings;
    unit.send('authority-key', first.network_authority.public_key, {
      type: 'found',
      genesis: first,
    });
  }
  const problem = problemOf(na, succession, unit.at);
  const event = {
    type: 'stage' as const,
    statement,
    genesis,
    rollBack,
    isOtherStaged: chain.staged !== null,
    problem: problem?.reason ?? null,
  };
  const details = problem === null ? {} : { message: problem.message };
  sendToKey(unit, statement.to_key, event, details);
  unit.audit('authority_succession_staged', auditDetails(statement, { remote_addr: remoteAddr }));
  unit.whenCommitted(() => void publishAuthorityKeys(na));
  return answerOf(na, statement, 'staged');
};

export const cancelSuccession: Handler<'cancelSuccession'> = (na, unit, _, { remoteAddr }) => {
  const { staged } = na.authorityKeys.chain();
  if (staged === null) {
    sendToKey(unit, '', { type: 'cancel' });
    throw new Refusal('succession_not_staged');
  }
  cancelStaged(unit, staged, { remote_addr: remoteAddr });
  unit.whenCommitted(() => void publishAuthorityKeys(na));
  return answerOf(na, staged.statement, 'absent');
};

export function cancelStaged(
  unit: UnitOfWork,
  { publicKey, statement }: StagedKey,
  by: JsonObject,
): void {
  sendToKey(unit, publicKey, { type: 'cancel' });
  unit.remove('authority-key', publicKey);
  unit.audit('authority_succession_canceled', auditDetails(statement, by));
}

/** Sends an event to the machine of a key; throws its refusal, with the reason as the cause. */
export function sendToKey(
  unit: UnitOfWork,
  publicKey: string,
  event: SubjectTypes['authority-key']['event'],
  details: JsonObject = {},
): void {
  const refused = refusalIn(unit.send('authority-key', publicKey, event));
  if (refused === null) return;
  const { refusal, reason } = refused;
  throw new Refusal(refusal, { ...(reason !== undefined && { cause: reason }), ...details });
}

/** Why the succession cannot be staged; null if it can. */
function problemOf(na: Authority, succession: SignedSuccession, now: number): Problem | null {
  const { sequence, kind, to_key, overlap_until } = succession.statement;
  const chain = na.authorityKeys.chain();
  if (chain.has(to_key)) {
    const message = `Its next key ${to_key} already is, or was, the authority's; prepare a succession to a new key.`;
    return { reason: 'key_used_before', message };
  }
  const basis = {
    genesis: genesisInForce(chain, na.settings.genesis),
    successions: chain.inForce,
  };
  const tools = { verify: verifySignature, sha256: SHA256 };
  const problem = successionProblem(succession, basis, now, tools);
  if (problem?.reason === 'gap' || problem?.reason === 'fork') {
    const message = `It has the sequence ${sequence}, but the next one here is ${chain.inForce.length + 1}; prepare and sign it again with --authority-keys, which names what /authority-keys answers.`;
    return { reason: problem.reason, message };
  }
  if (problem !== null) return problem;
  if (kind === 'planned' && instantOf(overlap_until) <= now) {
    const message = `Its overlap ended at ${overlap_until}; prepare and sign it again with later times.`;
    return { reason: 'overlap_ended', message };
  }
  if (na.operatorRegistry.isKnown(to_key)) {
    return { reason: 'key_of_operator', message: takenBy('an operator', to_key) };
  }
  const isNodes =
    na.certificates.ownedBy(to_key).length > 0 || na.revocations.isCompromised(to_key);
  return isNodes ? { reason: 'key_of_node', message: takenBy('a node', to_key) } : null;
}

function takenBy(whose: string, key: string): string {
  return `Its next key ${key} is, or was, the key of ${whose}; prepare a succession to a new key.`;
}

export function auditDetails(statement: AuthoritySuccession, by: JsonObject): JsonObject {
  const { succession_id, sequence, kind, from_key, to_key, activates_at } = statement;
  return { succession_id, sequence, kind, from_key, to_key, activates_at, ...by };
}

export function answerOf(
  { signer }: Pick<Authority, 'signer'>,
  { to_key, sequence, kind, activates_at, overlap_until }: AuthoritySuccession,
  state: AuthorityKeyStep['state'],
): AuthorityKeyStep {
  const key_held = signer.holds(to_key);
  return { public_key: to_key, state, sequence, kind, activates_at, overlap_until, key_held };
}

/** Publishes the committed keys of the authority [authority-keys-2]; returns the genesis block in force. */
export function publishAuthorityKeys({
  subjects,
  settings,
  publisher,
  bulletin,
  knownChains,
}: Pick<
  Authority,
  'subjects' | 'settings' | 'publisher' | 'bulletin' | 'knownChains'
>): GenesisBlock {
  const chain = committedChain({ subjects });
  publisher.publish(
    'authority_keys',
    publishedDocument(jsonText(documentOf(chain, settings.genesis))),
  );
  knownChains.publish(chain.published);
  const genesis = genesisInForce(chain, settings.genesis);
  publisher.publish('genesis', publishedDocument(jsonText(genesis)));
  const { published } = chain;
  const digest = published.length === 0 ? null : authorityKeysDigest(published, SHA256);
  bulletin.named(genesisDigest(genesis, SHA256), digest);
  return genesis;
}

function documentOf(
  chain: KeyChain,
  { network_name, root_public_key, network_authority }: Authority['settings']['genesis'],
): AuthorityKeys {
  const keys = chain.current === null ? [firstKey(network_authority.public_key)] : chain.keys;
  return { network_name, root_public_key, keys: [...keys], successions: [...chain.published] };
}
