/** Stages the succession that the root key has signed, and takes it back [authority-keys-9-1], [authority-keys-9-2]. */
import type { AuthorityKeyRefusal } from '../../../machines/authority-key.ts';
import { SHA256 } from '../../base/crypto/digest.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { Refusal } from '../../base/refusal.ts';
import type { AuthoritySuccession } from '../../protocol/records/authority-succession.ts';
import { instantOf } from '../../protocol/records/record.ts';
import {
  type SignedSuccession,
  successionProblem,
} from '../../protocol/records/succession-request.ts';
import { genesisInForce } from '../derived/authority-keys.ts';
import type { Handler } from '../engine/admission.ts';
import type { Authority } from '../engine/authority.ts';
import { refusalIn } from '../subjects/kinds.ts';
import { publishAuthorityKeys } from './published-keys.ts';

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
  const refused = refusalIn<AuthorityKeyRefusal>(
    unit.send('authority-key', statement.to_key, {
      type: 'stage',
      statement,
      genesis,
      rollBack,
      isOtherStaged: chain.staged !== null,
      problem: problem?.reason ?? null,
    }),
  );
  if (refused?.refusal === 'succession_rejected' && problem !== null) {
    throw new Refusal(refused.refusal, { cause: problem.reason, message: problem.message });
  }
  if (refused !== null) throw new Refusal(refused.refusal);
  unit.audit('authority_succession_staged', auditDetails(statement, remoteAddr));
  unit.whenCommitted(() => publishAuthorityKeys(na));
  return answerOf(statement, 'staged');
};

export const cancelSuccession: Handler<'cancelSuccession'> = (na, unit, _, { remoteAddr }) => {
  const { staged } = na.authorityKeys.chain();
  const id = staged?.publicKey ?? '';
  const refused = refusalIn<AuthorityKeyRefusal>(
    unit.send('authority-key', id, { type: 'cancel' }),
  );
  if (refused !== null || staged === null) {
    throw new Refusal(refused?.refusal ?? 'succession_not_staged');
  }
  unit.remove('authority-key', id);
  unit.audit('authority_succession_cancelled', auditDetails(staged.statement, remoteAddr));
  unit.whenCommitted(() => publishAuthorityKeys(na));
  return answerOf(staged.statement, 'absent');
};

/** Why the succession cannot be staged; null if it can. */
function problemOf(na: Authority, succession: SignedSuccession, now: number): Problem | null {
  const { kind, to_key, overlap_until } = succession.statement;
  const chain = na.authorityKeys.chain();
  const ground = {
    genesis: genesisInForce(chain, na.settings.genesis),
    successions: chain.inForce,
  };
  const tools = { verify: verifySignature, sha256: SHA256 };
  const problem = successionProblem(succession, ground, now, tools);
  if (problem !== null) return problem;
  if (kind === 'planned' && instantOf(overlap_until) <= now) {
    const message = `Its overlap ended at ${overlap_until}; prepare and sign it again with later times.`;
    return { reason: 'overlap_ended', message };
  }
  if (na.operatorRegistry.isKnown(na.subjects, to_key)) {
    return { reason: 'key_of_operator', message: takenBy('an operator', to_key) };
  }
  const isNodes =
    na.certificates.ownedBy(to_key).length > 0 || na.revocations.isCompromised(to_key);
  return isNodes ? { reason: 'key_of_node', message: takenBy('a node', to_key) } : null;
}

function takenBy(whose: string, key: string): string {
  return `Its next key ${key} is, or was, the key of ${whose}; prepare a succession to a new key.`;
}

export function auditDetails(statement: AuthoritySuccession, remoteAddr: string): JsonObject {
  const { succession_id, sequence, kind, from_key, to_key, activates_at } = statement;
  return {
    succession_id,
    sequence,
    kind,
    from_key,
    to_key,
    activates_at,
    remote_addr: remoteAddr,
  };
}

export function answerOf(
  { to_key, sequence, kind, activates_at, overlap_until }: AuthoritySuccession,
  state: string,
) {
  return { public_key: to_key, state, sequence, kind, activates_at, overlap_until };
}
