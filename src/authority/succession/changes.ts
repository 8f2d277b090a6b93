/**
 * Changes of the keys that sign: activation, rollback and the end of an overlap [authority-keys-9]. Each is one
 * transaction, during which nothing else is decided, so every record is signed by the keys of its time.
 */
import type { JsonObject } from '../../base/json/value.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import { formerKeys } from '../authority-keys.ts';
import type { Handler } from '../engine/admission.ts';
import { publishActivePolicy, type Run } from '../engine/execute.ts';
import { signLicensePolicyAgain } from '../recognition/trust-records.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import { laggardsIn } from './adoption.ts';
import {
  answerOf,
  auditDetails,
  cancelStaged,
  publishAuthorityKeys,
  sendToKey,
} from './staging.ts';

export const activateSuccession: Handler<'activateSuccession'> = (na, unit, _, { remoteAddr }) =>
  activate(na, unit, { remote_addr: remoteAddr });

export const rollBackAuthorityKey: Handler<'rollBackAuthorityKey'> = (
  na,
  unit,
  _,
  { remoteAddr },
) => {
  const { current, previous, staged, inForce } = na.authorityKeys.chain();
  const isRolledBack = inForce.at(-1)?.kind === 'roll_back';
  const { publicKey = '' } = current ?? {};
  sendToKey(unit, publicKey, {
    type: 'roll_back',
    at: unit.at,
    isRolledBack,
    isOver: previous === null || previous.overlapUntil <= unit.at,
    isHeld: previous !== null && na.signer.holds(previous.publicKey),
    crlSequence: na.revocations.list.nextNumber(unit),
  });
  const statement = unit.existing('authority-key', publicKey).rollBack?.statement;
  if (statement === undefined || previous === null) throw new Refusal('roll_back_impossible');
  // The staged statement follows the one that is rolled back.
  if (staged !== null) cancelStaged(unit, staged, { remote_addr: remoteAddr });
  sendToKey(unit, previous.publicKey, { type: 'return' });
  changeKeys(na, unit, previous.publicKey);
  unit.audit('authority_key_rolled_back', auditDetails(statement, { remote_addr: remoteAddr }));
  return answerOf(na, statement, 'current');
};

export const finishSuccession: Handler<'finishSuccession'> = (
  na,
  unit,
  { despite },
  { remoteAddr },
) => {
  // Null if there is nothing to follow: the nodes were counted just before.
  const counted = na.census.adoption();
  const behind = counted === null ? 0 : laggardsIn(counted.nodes);
  return finish(na, unit, { behind, despite }, { despite, remote_addr: remoteAddr });
};

/** Activates a staged succession at its time, and ends an overlap at its end. */
export const keepKeys: Run<null> = (na, unit) => {
  const { staged, previous } = na.authorityKeys.chain();
  const isOver = previous !== null && previous.overlapUntil <= unit.at;
  if (staged !== null && staged.activatesAt <= unit.at) {
    const isHeld =
      na.signer.holds(staged.publicKey) && na.hostStatus().instancesWithout(staged.publicKey) === 0;
    // An overlap ends even if the key that is due is missing.
    if (isHeld || !isOver) return activate(na, unit, {});
  }
  return isOver ? finish(na, unit, { behind: null, despite: 0 }, {}) : null;
};

function activate(na: Authority, unit: UnitOfWork, by: JsonObject) {
  const { current, previous, staged } = na.authorityKeys.chain();
  const { publicKey = '', statement, activatesAt = Infinity } = staged ?? {};
  const without = na.hostStatus().instancesWithout(publicKey);
  const event = {
    type: 'activate' as const,
    at: unit.at,
    isDue: activatesAt <= unit.at,
    isHeld: na.signer.holds(publicKey) && without === 0,
    crlSequence: na.revocations.list.nextNumber(unit),
  };
  const details =
    statement === undefined
      ? {}
      : { activates_at: statement.activates_at, ...(without > 0 && { instances: without }) };
  sendToKey(unit, publicKey, event, details);
  if (statement === undefined || current === null) throw new Refusal('succession_not_staged');
  // At most two keys sign, so the next overlap ends the one before.
  if (previous !== null) retire(unit, previous.publicKey, { behind: null, despite: 0 });
  const kind = statement.kind === 'compromise' ? statement.kind : 'planned';
  sendToKey(unit, current.publicKey, { type: 'replace', at: unit.at, kind });
  changeKeys(na, unit, publicKey);
  if (previous !== null) unit.audit('authority_key_retired', { public_key: previous.publicKey });
  unit.audit('authority_key_activated', auditDetails(statement, by));
  return answerOf(na, statement, 'current');
}

interface Followers {
  /** The nodes that have not followed; null if the overlap ends without asking. */
  readonly behind: number | null;
  readonly despite: number;
}

function finish(na: Authority, unit: UnitOfWork, followers: Followers, by: JsonObject) {
  const { current, previous, inForce } = na.authorityKeys.chain();
  const statement = inForce.at(-1);
  const { publicKey = '' } = previous ?? {};
  retire(unit, publicKey, followers);
  if (statement === undefined || current === null) throw new Refusal('no_overlap');
  if (unit.existing('authority-key', current.publicKey).rollBack !== null) {
    sendToKey(unit, current.publicKey, { type: 'settle' });
  }
  changeKeys(na, unit, current.publicKey);
  unit.audit('authority_key_retired', { public_key: publicKey, ...by });
  return { ...answerOf(na, statement, 'retired'), public_key: publicKey, key_held: false };
}

function retire(unit: UnitOfWork, publicKey: string, { behind, despite }: Followers): void {
  const details = behind === null ? {} : { count: behind };
  sendToKey(unit, publicKey, { type: 'finish', at: unit.at, behind, despite }, details);
}

/** Issues the lists anew; `issuer` is the key that is current once the unit is stored. */
function changeKeys(na: Authority, unit: UnitOfWork, issuer: string): void {
  unit.exclude();
  // Comes before the lists are rendered, which happens when the unit is stored, too.
  unit.whenCommitted(() => useKeys(na));
  na.revocations.list.issue(unit, [], issuer);
  for (const feed of na.feeds.all()) feed.issue(unit);
}

/** Signs with the keys that the state says, and publishes what names them. Resolves when their files are in place. */
export function useKeys(na: Authority): Promise<void> | undefined {
  const chain = na.authorityKeys.chain();
  if (chain.terms.length > 0) na.signer.use(chain.terms);
  const genesis = publishAuthorityKeys(na);
  publishActivePolicy(na);
  signLicensePolicyAgain(na);
  const former = formerKeys(chain);
  return former === null ? undefined : na.keysSettled(genesis, former);
}
