/** Invites as operators read and withdraw them [core-4-18]. */
import type { Invite, InviteRefusal } from '../../../machines/invite.ts';
import { Refusal } from '../../refusal.ts';
import { formatInstant, formatInstantIfAny } from '../../timestamp.ts';
import type { InviteRow, InviteStatus } from '../../views/rows/invite.ts';
import type { Handler } from '../engine/admission.ts';
import type { Authority } from '../engine/authority.ts';
import { pageFrom } from '../engine/page.ts';
import { refusalIn } from '../engine/refusals.ts';
import type { Subject } from '../engine/subject-table.ts';
import { fingerprintOf } from './invites.ts';

/** Approximate characters of a row beside its roles. */
const ROW_CHARACTERS = 500;

const NO_INVITE = '';

interface Listed {
  readonly id: string;
  readonly context: Invite;
  readonly status: InviteStatus;
}

/** Sorted by fingerprint: an invite keeps its place whatever becomes of it. */
export const listInvites: Handler<'listInvites'> = (na, { filter, ...page }, at) =>
  pageFrom(
    {
      placeOf: ({ id }) => ({ at: 0, id }),
      passes: ({ status }) => (filter.status ?? status) === status,
      row: rowOf,
      lengthOf: ({ context }) => ROW_CHARACTERS + context.roles.join().length,
    },
    listedAfter(na, page.after?.id ?? '', at),
    page.limit,
  );

/** The pages after the first, for a reader that was admitted already. */
export const readInvitePage: Handler<'readInvitePage'> = listInvites;

export const withdrawInvite: Handler<'withdrawInvite'> = (na, unit, { fingerprint }, operator) => {
  const event = { type: 'withdraw' as const, at: unit.at, by: operator.keyId };
  const emitted = unit.send('invite', idOf(na, fingerprint), event);
  const refused = refusalIn<InviteRefusal>(emitted);
  if (refused !== null) throw new Refusal(refused.refusal);
  const answer = { token_fingerprint: fingerprint, status: 'withdrawn' };
  if (emitted.some(({ type }) => type === 'already_withdrawn')) {
    return { ...answer, already_withdrawn: true };
  }
  unit.audit('invite_withdrawn', {
    token_fingerprint: fingerprint,
    remote_addr: operator.remoteAddr,
  });
  return { ...answer, already_withdrawn: false };
};

/** No invite has the id that is answered for an unknown fingerprint. */
function idOf({ inviteIds }: Authority, fingerprint: string): string {
  for (const id of inviteIds.after(fingerprint)) {
    return fingerprintOf(id) === fingerprint ? id : NO_INVITE;
  }
  return NO_INVITE;
}

function* listedAfter(na: Authority, after: string, at: number): Generator<Listed> {
  for (const id of na.inviteIds.after(after)) {
    const invite = na.subjects.committed('invite', id);
    if (invite === undefined) continue;
    yield { id, context: invite.context, status: statusOf(invite, at) };
  }
}

function statusOf({ value, context }: Subject<'invite'>, at: number): InviteStatus {
  if (value === 'consumed' || value === 'withdrawn') return value;
  return context.expiresAt < at ? 'expired' : 'unused';
}

function rowOf({ id, context, status }: Listed): InviteRow {
  return {
    token_fingerprint: fingerprintOf(id),
    status,
    roles: [...context.roles],
    max_validity_hours: context.maxValidityHours,
    recipient_public_key: context.recipient,
    created_at: formatInstant(context.createdAt),
    expires_at: formatInstant(context.expiresAt),
    used_at: formatInstantIfAny(context.usedAt),
    used_by: context.usedBy,
    withdrawn_at: formatInstantIfAny(context.withdrawnAt ?? null),
    withdrawn_by: context.withdrawnBy ?? null,
  };
}
