/** Changes that the authority makes on its own, and when they are allowed. */
import type { Unit } from '../../src/store/store.ts';
import { dueNow } from './model/authority-keys.ts';
import { publicationOf, publishNext, RETENTION } from './model/enrollment.ts';
import type { Change, Moment, State } from './model/state.ts';
import { insist, Violation } from './violation.ts';

/** Lists are published again after half of their validity of one day, or if the clock was ahead when they were dated. */
const HALF_DAY = 12 * 3_600_000;

/** Returns the change made by a unit that no request caused; throws if that unit is not allowed. */
export function backgroundChange(unit: Unit, moment: Moment): Change {
  const { state, now } = moment;
  if (unit.subjects.some(({ kind }) => kind === 'authority-key')) return keyChange(moment);
  const changes = unit.subjects.map(({ kind, id, snapshot }): Change => {
    switch (kind) {
      case 'crl':
        return reissue(state, 'crl', now);
      case 'sovereign-feed':
        return reissue(state, (snapshot.context as { readonly issuer: string }).issuer, now);
      case 'agent-registration':
        return evict(state, id, now);
      case 'removal-count':
        return () => undefined;
      default:
        throw new Violation(`Nobody asked for a change of ${kind} ${id} to ${snapshot.value}`);
    }
  });
  const removals = unit.removals.map(({ kind, id }) => forget(state, kind, id, now));
  return (next, made) => {
    for (const change of [...changes, ...removals]) change(next, made);
  };
}

function keyChange(moment: Moment): Change {
  const change = dueNow(moment)?.change;
  if (change == null) throw new Violation('The keys of the authority change, and nothing is due');
  return change;
}

function reissue(state: State, name: string, now: number): Change {
  const { sequence, issuedAt } = publicationOf(state, name);
  insist(
    now - issuedAt >= HALF_DAY || issuedAt > now,
    () => `${name} ${sequence} is published again although it is fresh`,
  );
  return (next) => publishNext(next, name, now);
}

function evict(state: State, nodeKey: string, now: number): Change {
  const agent = state.agents.get(nodeKey);
  insist(
    agent?.isRegistered === true && agent.expiresAt <= now,
    () => `The agent of ${nodeKey} is evicted, and nobody asked for it`,
  );
  return ({ agents }) => agents.set(nodeKey, { ...agent, isRegistered: false });
}

/** Ended subjects may be removed. A removed certificate becomes unknown; nothing else changes. */
function forget(state: State, kind: string, id: string, now: number): Change {
  insist(hasEnded(state, kind, id, now - RETENTION), () => `${kind} ${id} is removed too early`);
  return ({ certificates }) => {
    if (kind === 'certificate') certificates.delete(id);
  };
}

function hasEnded(state: State, kind: string, id: string, before: number): boolean {
  const invite = state.invites.get(id);
  const certificate = state.certificates.get(id);
  switch (kind) {
    case 'invite':
      return invite !== undefined && (invite.isUsed || invite.expiresAt <= before);
    case 'certificate':
      return certificate?.revocation === null && certificate.expiresAt <= before;
    case 'agent-registration':
      return state.agents.get(id)?.isRegistered === false;
    default:
      return false;
  }
}
