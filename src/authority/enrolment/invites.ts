/** POST /admin/invite (wire rules 4.7). A token is shown once; only its hash is kept. */
import type { Invite } from '../../../machines/invite.ts';
import type { Input, OperatorClaim } from '../../contract/claims.ts';
import { sha256Hex } from '../../crypto/digest.ts';
import { jsonText } from '../../json/write.ts';
import { formatInstant } from '../../timestamp.ts';
import type { Authority, Handler } from '../engine/execute.ts';
import { accept } from '../engine/input.ts';
import type { UnitOfWork } from '../engine/unit-of-work.ts';
import { authenticateOperator } from './operator-keys.ts';

const HOUR = 3_600_000;
const TOKEN_BYTES = 24;

export interface InviteTerms {
  readonly roles: readonly string[];
  readonly maxValidityHours: number;
  readonly tokenExpiryHours: number;
  readonly recipient: string | null;
  /** How many tokens; null for one, answered in the short form. */
  readonly count: number | null;
}

export interface CreateInvites {
  readonly operator: OperatorClaim;
  readonly input: Input<InviteTerms>;
}

export const createInvites: Handler<CreateInvites> = (na, unit, command) => {
  authenticateOperator(na, unit, command.operator, 'standard');
  const terms = accept(command.input);
  const tokens = Array.from({ length: terms.count ?? 1 }, () =>
    createInvite(na, unit, terms, command.operator.remoteAddr),
  );
  const [first] = tokens;
  return jsonText(terms.count === null ? { ...first } : { ...first, tokens });
};

/** The key under which an invite is kept: a stolen database holds no usable token. */
export function inviteId(token: string): string {
  return sha256Hex(token);
}

/** Names a token in the audit log without disclosing it. */
export function tokenFingerprint(token: string): string {
  return inviteId(token).slice(0, 16);
}

function createInvite(
  na: Authority,
  unit: UnitOfWork,
  terms: InviteTerms,
  remoteAddr: string,
): { token_id: string; expires_at: string } {
  const token = na.runtime.randomBytes(TOKEN_BYTES).toString('hex');
  const expiresAt = unit.at + terms.tokenExpiryHours * HOUR;
  const invite: Invite = {
    roles: terms.roles,
    maxValidityHours: terms.maxValidityHours,
    createdAt: unit.at,
    expiresAt,
    recipient: terms.recipient,
    usedAt: null,
    usedBy: null,
  };
  unit.send('invite', inviteId(token), { type: 'create', invite });
  unit.audit('invite_created', {
    token_fingerprint: tokenFingerprint(token),
    roles: terms.roles,
    remote_addr: remoteAddr,
  });
  return { token_id: token, expires_at: formatInstant(expiresAt) };
}
