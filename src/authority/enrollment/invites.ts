/** POST /admin/invite [core-4-7]. A token is shown once; only its hash is stored. */
import type { Invite } from '../../../machines/invite.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { InviteTerms } from '../../protocol/contract/inputs.ts';
import type { Handler } from '../engine/admission.ts';
import type { Authority } from '../engine/authority.ts';
import { refusePrivateKeys } from '../engine/known-keys.ts';
import { assertRoom } from '../engine/room.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';

const HOUR = 3_600_000;
const TOKEN_BYTES = 24;
const FINGERPRINT_LENGTH = 16;
/** Fingerprints that a repeated request is answered with: what is kept of an answer is short. */
const MOST_KEPT = 200;

export const createInvites: Handler<'createInvites'> = (na, unit, terms, operator) => {
  refusePrivateKeys(na, [terms.recipient]);
  assertRoom(na);
  const created = Array.from({ length: terms.count ?? 1 }, () =>
    createInvite(na, unit, terms, operator.remoteAddr),
  );
  const fingerprints = created.slice(0, MOST_KEPT).map(({ id }) => fingerprintOf(id));
  unit.keepAs({ done: { count: created.length, token_fingerprints: fingerprints } });
  const tokens = created.map(({ token }) => token);
  const [first] = tokens;
  return terms.count === null ? { ...first } : { ...first, tokens };
};

/** The key under which an invite is stored: a stolen database holds no usable token. */
export function inviteId(token: string): string {
  return sha256Hex(token);
}

/** Identifies a token in the audit log without disclosing it. */
export function fingerprintOf(id: string): string {
  return id.slice(0, FINGERPRINT_LENGTH);
}

function createInvite(na: Authority, unit: UnitOfWork, terms: InviteTerms, remoteAddr: string) {
  const { batch } = terms;
  const token = na.runtime.randomBytes(TOKEN_BYTES).toString('hex');
  const expiresAt = unit.at + terms.tokenExpiryHours * HOUR;
  const invite: Invite = {
    roles: terms.roles,
    maxValidityHours: terms.maxValidityHours,
    createdAt: unit.at,
    expiresAt,
    recipient: terms.recipient,
    ...(batch !== null && { batch }),
    usedAt: null,
    usedBy: null,
  };
  const id = inviteId(token);
  unit.send('invite', id, { type: 'create', invite });
  unit.audit('invite_created', {
    token_fingerprint: fingerprintOf(id),
    roles: terms.roles,
    remote_addr: remoteAddr,
    ...(batch !== null && { batch }),
  });
  return { id, token: { token_id: token, expires_at: formatInstant(expiresAt) } };
}
