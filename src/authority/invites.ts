/**
 * Invites: operators create them [core-4-7], and list and withdraw them [core-4-18]. A token is shown only once, and
 * only its hash is stored.
 */
import type { Invite } from '../../machines/invite.ts';
import { sha256Hex } from '../base/crypto/digest.ts';
import { HOUR_MS } from '../base/duration.ts';
import { formatInstant, formatInstantIfAny } from '../base/timestamp.ts';
import type { CallInput } from '../protocol/contract/calls.ts';
import type { OperatorClaim } from '../protocol/contract/claims.ts';
import { Refusal } from '../protocol/refusals.ts';
import { type InviteRow, type InviteStatus, numberedName } from '../protocol/rows/invite.ts';
import { descriptionTest, labelTexts } from '../protocol/rows/node-description.ts';
import type { Authority } from './authority.ts';
import type { Handler } from './engine/admission.ts';
import { refusePrivateKeys } from './engine/known-keys.ts';
import { pageFrom } from './engine/page.ts';
import { assertRoom } from './host-status.ts';
import { descriptionRow, lengthOfDescription } from './node-descriptions.ts';
import { refusalIn, type Subject } from './subjects/kinds.ts';
import { beginningWith, SortedTexts } from './subjects/sorted-texts.ts';
import type { UnitOfWork } from './subjects/unit-of-work.ts';

type Terms = CallInput<'createInvites'>;

const TOKEN_BYTES = 24;
const FINGERPRINT_LENGTH = 16;
/** The most fingerprints in the answer to a repeated request, because only short answers are kept. */
const MOST_KEPT = 200;

export const createInvites: Handler<'createInvites'> = (na, unit, terms, operator) => {
  refusePrivateKeys(na, [terms.recipient_public_key]);
  assertRoom(na);
  const created = Array.from({ length: terms.count ?? 1 }, (_, index) =>
    createInvite(na, unit, { ...terms, name: nameOf(terms, index + 1) }, operator.remoteAddr),
  );
  const fingerprints = created.slice(0, MOST_KEPT).map(({ id }) => fingerprintOf(id));
  unit.keepAs({ done: { count: created.length, token_fingerprints: fingerprints } });
  const tokens = created.map(({ token }) => token);
  const [first] = tokens;
  return terms.count === null ? { ...first } : { ...first, tokens };
};

/** The name for the node that joins with the token of this number. */
function nameOf({ name }: Terms, number: number): string | null {
  return name === null ? null : numberedName(name, number);
}

/** The key under which an invite is stored: a stolen database contains no usable tokens. */
export function inviteId(token: string): string {
  return sha256Hex(token);
}

/** Identifies a token in the audit log without disclosing it. */
export function fingerprintOf(id: string): string {
  return id.slice(0, FINGERPRINT_LENGTH);
}

function createInvite(na: Authority, unit: UnitOfWork, terms: Terms, remoteAddr: string) {
  const { batch, name, labels } = terms;
  const described = {
    ...(name !== null && { name }),
    ...(labels !== null && { labels: labelTexts(labels) }),
  };
  const token = na.runtime.randomBytes(TOKEN_BYTES).toString('hex');
  const expiresAt = unit.at + terms.token_expiry_hours * HOUR_MS;
  const invite: Invite = {
    roles: terms.roles,
    maxValidityHours: terms.max_validity_hours,
    createdAt: unit.at,
    expiresAt,
    recipient: terms.recipient_public_key,
    ...(batch !== null && { batch }),
    ...described,
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
    ...descriptionRow(described),
  });
  const expiry = formatInstant(expiresAt);
  return { id, token: { token_id: token, expires_at: expiry, ...(name !== null && { name }) } };
}

/** Approximate number of characters in a row, not counting its roles. */
const ROW_CHARACTERS = 500;

const NO_INVITE = '';

/** The most invites that one request withdraws, which equals the most that one request creates. */
const MOST_WITHDRAWN = 1000;

interface Listed {
  readonly id: string;
  readonly context: Invite;
  readonly status: InviteStatus;
}

/** Sorted by fingerprint, so that an invite keeps its position when its status changes. */
export const listInvites: Handler<'listInvites'> = (na, { after, limit, ...filter }, at) => {
  const isWanted = descriptionTest(filter);
  return pageFrom(
    {
      placeOf: ({ id }) => ({ at: 0, id }),
      found(invite: Listed) {
        const { context, status } = invite;
        const passes = (filter.status ?? status) === status && (isWanted?.(context) ?? true);
        return passes ? invite : null;
      },
      row: rowOf,
      lengthOf: ({ context }) =>
        ROW_CHARACTERS + context.roles.join().length + lengthOfDescription(context),
    },
    listed(na, idsAfter(na, filter, after?.id ?? ''), at),
    limit,
  );
};

export const withdrawInvite: Handler<'withdrawInvite'> = (na, unit, { fingerprint }, operator) => {
  const event = { type: 'withdraw' as const, at: unit.at, by: operator.keyId };
  const emitted = unit.send('invite', idOf(na, fingerprint), event);
  const refused = refusalIn(emitted);
  if (refused !== null) throw new Refusal(refused.refusal);
  const answer = { token_fingerprint: fingerprint, status: 'withdrawn' };
  if (emitted.some(({ type }) => type === 'already_withdrawn')) {
    return { ...answer, already_withdrawn: true };
  }
  auditWithdrawal(unit, fingerprint, operator);
  return { ...answer, already_withdrawn: false };
};

/** The id of the invite with this fingerprint; `NO_INVITE`, which matches no invite, if there is none. */
function idOf({ inviteIds }: Authority, fingerprint: string): string {
  for (const id of inviteIds.after(fingerprint)) {
    return fingerprintOf(id) === fingerprint ? id : NO_INVITE;
  }
  return NO_INVITE;
}

/** Withdraws in a single unit, so that all invites of a leaked batch become useless at the same time, or none do. */
export const withdrawInviteBatch: Handler<'withdrawInviteBatch'> = (
  na,
  unit,
  { batch, fingerprints },
  operator,
) => {
  const found = na.inviteBatches.find(batch);
  if (found === undefined) throw new Refusal('batch_not_found');
  const event = { type: 'withdraw' as const, at: unit.at, by: operator.keyId };
  const { unused } = found;
  const meant = fingerprints?.flatMap((each) => [...beginningWith(each, unused, '')]);
  let withdrawn = 0;
  for (const id of meant ?? unused.after('')) {
    if (withdrawn === MOST_WITHDRAWN) break;
    unit.send('invite', id, event);
    auditWithdrawal(unit, fingerprintOf(id), operator);
    withdrawn += 1;
  }
  return { batch, withdrawn, remaining: unused.size - withdrawn };
};

function auditWithdrawal(
  unit: UnitOfWork,
  fingerprint: string,
  { remoteAddr }: Pick<OperatorClaim, 'remoteAddr'>,
): void {
  unit.audit('invite_withdrawn', { token_fingerprint: fingerprint, remote_addr: remoteAddr });
}

function idsAfter(
  na: Authority,
  { batch, fingerprint }: Pick<CallInput<'listInvites'>, 'batch' | 'fingerprint'>,
  after: string,
): Iterable<string> {
  const ids = batch === null ? na.inviteIds : na.inviteBatches.find(batch)?.ids;
  return ids === undefined ? [] : beginningWith(fingerprint ?? '', ids, after);
}

/** Only committed invites are listed. */
function* listed(na: Authority, ids: Iterable<string>, at: number): Generator<Listed> {
  for (const id of ids) {
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
    batch: context.batch ?? null,
    ...descriptionRow(context),
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

/** Sorted ids. Read them before anything else is decided. */
interface Batch {
  readonly ids: SortedTexts;
  readonly unused: SortedTexts;
}

/**
 * The invites of each batch, and which of them are unused, including decisions that are not committed yet. The cost of
 * reading or withdrawing a batch does not depend on other invites, and used invites do not slow down a withdrawal.
 */
export function createInviteBatches() {
  const batches = new Map<string, Batch>();

  function heldAs(batch: string): Batch {
    const held = batches.get(batch) ?? { ids: new SortedTexts(), unused: new SortedTexts() };
    batches.set(batch, held);
    return held;
  }

  return {
    put(id: string, { value, context: { batch } }: Subject<'invite'>) {
      if (batch === undefined) return;
      const { ids, unused } = heldAs(batch);
      ids.add(id);
      if (value === 'unused') unused.add(id);
      else unused.delete(id);
    },
    remove(id: string, { context: { batch } }: Subject<'invite'>) {
      const held = batch === undefined ? undefined : batches.get(batch);
      if (batch === undefined || held === undefined) return;
      held.ids.delete(id);
      held.unused.delete(id);
      if (held.ids.size === 0) batches.delete(batch);
    },
    /** Undefined if no invite belongs to the batch. */
    find: (batch: string): Batch | undefined => batches.get(batch),
  };
}
